"""MODE(x) of values that no list names: the largest of their groups, which are private.

Where the values of x are public, a mode is drawn among them. Else SELECT g, MODE(x) AS m ... GROUP BY g is written out
as what it means,

    SELECT g, x AS m ... WHERE x IS NOT NULL GROUP BY g, x QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY COUNT(*)
    DESC) = 1

so that groups of g and x are counted with noise and selected as all private groups are, and the largest that is shown
is the mode. It costs what these counts cost, needs a delta, and is free where they were released before. A g without
any shown x has no row.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.measurement.releases.candidates import candidates_of
from discreet.plan.expressions.calls import NULL
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, columns
from discreet.plan.model.types import Type
from discreet.sql.clauses.select_parts import keys_of, readable
from discreet.sql.functions import read
from discreet.sql.scope import Scope, same

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def largest_groups(tree: exp.Select, conditions: list[exp.Expr], scope: Scope) -> tuple[exp.Select, list[exp.Expr]]:
    """Returns a SELECT of one MODE of private values as that of its groups, and its conditions; others as they are.

    Args:
        tree: the SELECT.
        conditions: on its rows.
        scope: of one row.
    """
    place = _only_mode(tree)
    if place is None:
        return tree, conditions
    argument = _argument(tree.expressions[place].unalias())
    value = None if argument is None else _private(argument, scope)
    keys = [_resolve_key(key, tree, scope) for key in keys_of(tree)]
    if argument is None or value is None or any(isinstance(key, _SETS) for key in keys):
        return tree, conditions
    present = exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null()))
    return _written_out(tree, place, (argument, value), keys), [*conditions, present]


def _only_mode(tree: exp.Select) -> int | None:
    """Returns the place of the only aggregate, if it is a mode alone, and nothing else is asked of groups."""
    outputs = [output.unalias() for output in tree.expressions]
    together = [place for place, output in enumerate(outputs) if output.find(exp.AggFunc, exp.WithinGroup) is not None]
    if len(together) != 1 or tree.args.get("having") or tree.args.get("qualify"):
        return None
    if not keys_of(tree) and any(tree.args.get(part) for part in ("order", "limit", "offset")):
        return None
    return together[0]


def _argument(node: exp.Expr) -> exp.Expr | None:
    """Returns what MODE(x), or MODE() WITHIN GROUP (ORDER BY x), is about."""
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode) and node.this.this is None:
        ordered = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        return ordered[0].this if len(ordered) == 1 else None
    return node.this if isinstance(node, exp.Mode) else None


def _private(argument: exp.Expr, scope: Scope) -> Expression | None:
    """Returns the argument if its values make private groups; None if it has public ones, or makes no groups."""
    if isinstance(argument, exp.Distinct):
        return None
    value = read(argument, scope)
    names = {column.name for column in columns(value)}
    if value is NULL or value.type is Type.FLOAT or not names or names & set(scope.schema.ids):
        return None
    return value if candidates_of(value, scope.schema) is None else None


def _resolve_key(key: exp.Expr, tree: exp.Select, scope: Scope) -> exp.Expr:
    """Returns a key as its expression, where it is the place or the name of an output."""
    outputs: list[exp.Expr] = tree.expressions
    if isinstance(key, exp.Literal) and not key.is_string and 1 <= int(key.this) <= len(outputs):
        return outputs[int(key.this) - 1].unalias()
    if isinstance(key, exp.Column) and not key.table and not scope.knows(key):
        return next((output.unalias() for output in outputs if output.alias and same(output.alias, key.name)), key)
    return key


def _written_out(
    tree: exp.Select, place: int, about: tuple[exp.Expr, Expression], keys: Sequence[exp.Expr]
) -> exp.Select:
    found, (argument, value) = tree.copy(), about
    made = Aggregate(name="#1", kind="mode", argument=value)
    name = tree.expressions[place].alias or readable(ColumnRef("#1", value.type), {"#1": made})
    outputs = list(found.expressions)
    outputs[place] = exp.Alias(this=argument.copy(), alias=exp.to_identifier(name, quoted=True))
    found.set("expressions", outputs)
    found.set("group", exp.Group(expressions=[*(key.copy() for key in keys), argument.copy()]))
    order = exp.Order(expressions=[exp.Ordered(this=exp.Count(this=exp.Star(), big_int=True), desc=True)])
    if not keys:
        found.set("order", order)
        found.set("limit", exp.Limit(expression=exp.Literal.number(1)))
        return found
    window = exp.Window(this=exp.RowNumber(), partition_by=[key.copy() for key in keys], order=order, over="OVER")
    found.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    return found
