"""How a cell becomes a value of the declared type, in plain Python: the functions of `base.READS`."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from discreet.plan.evaluate import evaluate
from discreet.plan.nodes import Call, Expression, Literal, Value

TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
)


def read(expression: Expression, raw: Value) -> Value:
    """The value of what `base.read_as` made, on a cell."""
    if not isinstance(expression, Call):
        return raw
    inner = expression.arguments[0]
    value = read(inner, raw)
    if value is None:
        return None
    if expression.function in _READING:
        return _READING[expression.function](value)
    found: Value = evaluate(Call(expression.function, (Literal(value, inner.type),), expression.type), {})
    return found


def _read_bool(text: str) -> bool | None:
    return True if text in TRUE else False if text in FALSE else None


def _read_timestamp(text: str) -> dt.datetime | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    time = dt.time.fromisoformat(_six_decimals((match[2] or " 00:00")[1:]))
    try:
        return dt.datetime.combine(dt.date.fromisoformat(match[1]), time)
    except ValueError:  # there is no such day
        return None


def _six_decimals(time: str) -> str:
    whole, point, decimals = time.partition(".")
    return f"{whole}{point}{decimals:0<6}" if point else whole


_READING: Mapping[str, Callable[[Any], Value]] = {
    "read_bool": _read_bool,
    "read_timestamp": _read_timestamp,
    "midnight": lambda day: dt.datetime.combine(day, dt.time()),
}
"""The three that questions do not have."""


def steps(value: Value, exponent: int, low: int, high: int) -> int | None:
    """The term of a sum: clip(floor(x * 2^-exponent + 1/2), low, high), computed exactly; NULL of NULL.

    >>> steps(0.49999999999999994, 0, -9, 9), steps(-1.5, 0, -9, 9), steps(1e300, -20, 0, 500)
    (0, -1, 500)
    """
    if value is None:
        return None
    nearest = math.floor(Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2))  # type: ignore[arg-type]
    return max(low, min(high, nearest))
