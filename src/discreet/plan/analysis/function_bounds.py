"""Rules for `value_bounds`: spans of days (a day counts as its `day_number`), of roots, and of what is whole."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from discreet.exact import float_above, float_below
from discreet.plan.expressions.evaluation import DAYS, LAST_DAY
from discreet.plan.expressions.interval_arithmetic import EMPTY, Span
from discreet.plan.model.nodes import Call, Expression, Literal
from discreet.plan.model.types import Type

Rule = Callable[[Sequence[Span]], Span]

DAY = 86_400_000_000
"""Microseconds."""


def is_whole(expression: Expression) -> bool:
    """Tells whether every value of an expression is a whole number, as its shape alone tells.

    >>> is_whole(Call("floor", (Literal(2.5, Type.FLOAT),), Type.FLOAT))
    True
    """
    if expression.type is Type.INT:
        return True
    if isinstance(expression, Literal):
        return expression.value is None or (isinstance(expression.value, float) and expression.value.is_integer())
    if not isinstance(expression, Call) or expression.type is not Type.FLOAT:
        return False
    if expression.function in ("round", "floor", "ceil"):
        return True
    values = expression.arguments[1:] if expression.function == "if" else expression.arguments
    return expression.function in _KEEP_WHOLE and all(is_whole(part) for part in values)


_KEEP_WHOLE = {
    *("add", "subtract", "multiply", "negate", "absolute", "greatest", "least", "if", "coalesce", "null_if"),
    "to_float",
}
"""Functions of doubles whose value is whole if their arguments are: a sum that is rounded is beyond 2^53, and whole."""


def as_day(found: Span) -> Span:
    """Returns what of an interval is surely within the years 1 to 9999; an unbounded day stays unbounded."""
    return found.within(Fraction(1), Fraction(LAST_DAY + 1)) if found.is_bounded else found


def root(spans: Sequence[Span]) -> Span:
    """Returns an interval of roots of what is not negative; each end is moved by one double, more than its rounding."""
    held = spans[0].within(Fraction(0), math.inf)
    if held.is_empty:
        return EMPTY
    low = Fraction(math.nextafter(math.sqrt(float_below(Fraction(held.low))), 0))
    if isinstance(held.high, float):
        return Span(low, held.high)
    largest = math.nextafter(math.sqrt(min(float_above(held.high), _LARGEST)), math.inf)
    return Span(low, Fraction(largest))


_LARGEST = math.nextafter(math.inf, 0)  # no value of an expression is larger


def _of_day(monotone: Callable[[dt.date], int | dt.date | None]) -> Rule:
    """A function of days that never decreases and always has a value."""

    def value(end: Fraction) -> int:
        found = monotone(dt.date.fromordinal(min(max(math.floor(end), 1), LAST_DAY)))
        return found.toordinal() if isinstance(found, dt.date) else found or 0

    return lambda spans: spans[0] if spans[0].is_empty else spans[0].map(value)


def _months_later(spans: Sequence[Span]) -> Span:
    """A month has 28 to 31 days, and the day in it moves by 3 at most; the time of day stays."""
    days, months = spans
    if days.is_empty or months.is_empty:
        return EMPTY
    return days + Span(min(28 * months.low, 31 * months.low) - 3, max(28 * months.high, 31 * months.high) + 3)


DAY_RULES: Mapping[str, Rule] = {
    "to_date": lambda spans: spans[0].map(math.floor),
    "to_timestamp": lambda spans: spans[0],
    **{f"start_of_{part}": _of_day(DAYS[f"start_of_{part}"]) for part in ("year", "quarter", "month", "week")},
    "end_of_month": _of_day(DAYS["end_of_month"]),
    "year": _of_day(DAYS["year"]),
    "days_between": lambda spans: spans[1] - spans[0],
    "microseconds_between": lambda spans: (spans[1] - spans[0]) * Span.exactly(DAY),
    "add_days": lambda spans: spans[0] + spans[1],
    "add_months": _months_later,
}
"""Functions of days whose results lie within bounds if the days do."""
