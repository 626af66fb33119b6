"""Shorthands of days and moments."""

from __future__ import annotations

from discreet.plan.expressions.calls import NULL, call, parse_date
from discreet.plan.expressions.shorthands.shorthand import Shorthand
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type


def from_sunday(value: Expression) -> Expression:
    """Returns the day of the week, Sunday 0 to Saturday 6."""
    return call("modulo", call("day_of_week", value), Literal(7, Type.INT))


def as_date(value: Expression) -> Expression:
    """Returns the day of a moment; a text that is written out is the day it spells.

    Raises:
        Mismatch: if it spells none, or the value is neither a day, a moment nor a text.
    """
    if value is NULL:
        return Literal(None, Type.DATE)
    if isinstance(value, Literal) and isinstance(value.value, str):
        return parse_date(Type.DATE, value.value)
    return value if value.type is Type.DATE else call("to_date", value)


DATE_SHORTHANDS = (
    Shorthand(
        words=("DAYOFWEEK", "WEEKDAY"),
        meaning="the day of the week, from 0 (Sunday) to 6 (Saturday)",
        example="GROUP BY DAYOFWEEK(day)",
        expand=from_sunday,
    ),
    Shorthand(
        words=("DATE",),
        meaning="the day of a timestamp, as with CAST(a AS DATE)",
        example="GROUP BY DATE(arrived)",
        expand=as_date,
    ),
)
