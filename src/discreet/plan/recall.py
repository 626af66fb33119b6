"""Questions read back from the ledger: what a canonical text says was released, as a plan again."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction
from typing import Any

from discreet.plan.canonical import VERSION, origin
from discreet.plan.expressions.functions import FUNCTIONS
from discreet.plan.model.nodes import Aggregate, Call, Column, Expression, Key, Literal, Question, Value
from discreet.plan.model.types import Type

_PARTS = frozenset(
    ("version", "table", "source", "where", "keys", "aggregates", "outputs", "having", "order", "limit", "steps")
)
"""What a question of one grouping is written with; one of several groupings has more."""

_TYPES = {kind.value: kind for kind in Type}


def recall(text: str, like: Question) -> Question | None:
    """The released part of a question, without outputs, HAVING, ORDER BY and LIMIT.

    Args:
        text: what `canonical` wrote.
        like: a question about the same rows; its table and source are taken, if they are what the text names.

    Returns:
        None if the text is of another version, of other rows, of several groupings, or names something that is no
        longer known.

    >>> from discreet.plan.canonical import canonical
    >>> asked = Question(table="visits", aggregates=(Aggregate(name="#1", kind="count"),), outputs=())
    >>> recall(canonical(asked), asked) == asked
    True
    """
    form = json.loads(text)
    if "sets" in form:  # several groupings are no union of anything
        return None
    if (
        not form.keys() <= _PARTS
        or form.get("version") != VERSION
        or [form.get("table"), form.get("source")] != json.loads(origin(like))
    ):
        return None
    try:
        return Question(
            table=like.table,
            source=like.source,
            where=_expression(form["where"]) if "where" in form else None,
            keys=tuple(Key(name, _expression(part)) for name, part in form["keys"]),
            aggregates=tuple(_aggregate(place + 1, part) for place, part in enumerate(form["aggregates"])),
            outputs=(),
        )
    except (KeyError, ValueError, TypeError):  # written by a version that knew more
        return None


def _aggregate(place: int, form: dict[str, Any]) -> Aggregate:
    parts: dict[str, Any] = {name: _expression(form[name]) for name in ("argument", "other") if name in form}
    if "quantile" in form:
        parts["quantile"] = Fraction(form["quantile"])
    return Aggregate(name=f"#{place}", kind=form["kind"], **parts)


def _expression(form: list[Any]) -> Expression:
    """A column is ["column", name, type], a literal [type, value], a call [function, type, *arguments]."""
    first, *rest = form
    if first == "column":
        name, kind = rest
        return Column(name, _TYPES[kind])
    if first in _TYPES and len(rest) == 1:
        return Literal(_value(rest[0], _TYPES[first]), _TYPES[first])
    kind, *arguments = rest
    return Call(FUNCTIONS[first].name, tuple(_expression(argument) for argument in arguments), _TYPES[kind])


def _value(written: Any, kind: Type) -> Value:
    if written is None or not isinstance(written, str):
        value: Value = written
    elif kind is Type.FLOAT:
        value = float.fromhex(written)
    elif kind is Type.DATE:
        value = dt.date.fromisoformat(written)
    elif kind is Type.TIMESTAMP:
        value = dt.datetime.fromisoformat(written)
    else:
        value = written
    return value
