"""One more group for all rows that no shown group has: asked for with a label."""

from __future__ import annotations

from dataclasses import replace

from discreet import check
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.hint_text import Hint
from discreet.measurement.program.program import public_keys
from discreet.plan.analysis.group_keys import values
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import ColumnRef, Expression, Key, Literal, Question, Value, fits
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.plan.validation import check_value


def with_other(plan: Question, schema: TableSchema, label: Value) -> Question:
    """Returns the question with a group of this label added to its own.

    Declared keys: rows whose key is none of them, or NULL, are of the key `label`, which is public like the declared
    ones. It is a group like any other: limits of groups count it.

    Private keys: the kept rows of all groups that are not shown are put together (`Question.rest`).

    *Formal guarantee* for private keys. The sum is a second release, which may depend on the first: whatever groups
    were shown, a unit moves the sum over the others by at most all that it has in its groups together, under both
    relations (`Contribution.gathers`). It meets fresh noise of the same scales, and adaptive composition adds the two
    up: L1 distances over one scale for Laplace noise (pairs that dominate each of the two dominate both together: Zhu,
    Dong, Wang 2022), rho for Gaussian noise. A group that one of two neighbours has alone is shown with a probability
    of at most delta, as before; if it is not, it moves the sum, and its rows are among those of the unit.

    Args:
        plan: what is asked.
        schema: what is public about its rows.
        label: of the type of the keys, and none of the declared ones.

    Raises:
        InvalidParameter: if the label does not fit.
        UnsupportedQuery: if there are no groups, several groupings, or no rows that could be left out.
    """
    if not plan.keys or plan.sets or plan.beside:
        raise UnsupportedQuery(
            Hint("{other} gathers what the groups of one GROUP BY leave out."),
            "Ask with one GROUP BY over columns, and without a subquery.",
        )
    if public_keys(plan, schema) is None:
        for key in plan.keys:
            _check(label, key.expression)
        return replace(plan, rest=Literal(label, plan.keys[0].expression.type))
    keys = tuple(_with_label(key, schema, label) for key in plan.keys)
    if keys == plan.keys:
        raise UnsupportedQuery(
            "All values that the keys can have are groups already: nothing is left for another one.",
            Hint("Leave {other} out, or group by a column with declared keys."),
        )
    return replace(plan, keys=keys)


def _with_label(key: Key, schema: TableSchema, label: Value) -> Key:
    """Returns CASE WHEN k IN (its declared keys) THEN k ELSE label END; a key that has none declared stays as it is."""
    x = key.expression
    column = schema.columns.get(x.name) if isinstance(x, ColumnRef) else None
    if column is None or column.keys is None:
        return key
    _check(label, x)
    if label in (values(x, schema) or ()):
        raise InvalidParameter("other", label, "not to be a declared key", "Choose another label.")
    listed = call("in", x, *(Literal(value, x.type) for value in column.keys if value is not None))
    gathered = call("if", listed, x, Literal(label, x.type))
    if not fits(gathered):
        reason = f"{key.name!r} has too many keys for one more group."
        raise UnsupportedQuery(reason, "Group by a column with fewer keys.")
    return replace(key, expression=gathered)


def _check(label: Value, x: Expression) -> None:
    if isinstance(label, str):
        check.label(other=label)
    try:
        check_value(label, x.type)
    except InvalidParameter:
        hint = "Pass a value of that type" + ("." if x.type is Type.TEXT else ", or group by a text: CAST(k AS TEXT).")
        raise InvalidParameter("other", label, f"to be of the type of the key, {x.type.value}", hint) from None
