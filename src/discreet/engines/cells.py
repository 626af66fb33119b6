"""How a cell becomes a value of the declared type, in plain Python: the functions of `base.READS`.

Total for every Python object: what a type cannot hold is NULL, and so is whatever raises when it is looked at.
"""

from __future__ import annotations

import datetime as dt
import math
import numbers
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW, evaluate
from discreet.plan.model.nodes import Call, Expression, Literal, Value
from discreet.plan.model.types import Type
from discreet.plan.validation import is_unicode

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


def stored(raw: Any) -> tuple[Type, Value]:
    """The type of ours that a Python object is stored as, and its plain value; other objects are texts.

    >>> stored(Decimal("1.5")), stored(Decimal("NaN")), stored(1 << 64)
    ((<Type.FLOAT: 'float'>, 1.5), (<Type.FLOAT: 'float'>, None), (<Type.INT: 'int'>, None))
    """
    kind, convert = next((read for classes, read in _STORED if isinstance(raw, classes)), (Type.TEXT, text_of))
    try:
        return kind, convert(raw)
    except Exception:  # noqa: BLE001 - an object's own code, which may raise anything
        return kind, None


def text_of(raw: Any) -> str | None:
    """An object as text; NULL of what is missing, is not equal to itself, is bytes, or has no text in Unicode."""
    try:
        missing = raw is None or bool(raw != raw) or isinstance(raw, bytes | bytearray | memoryview)  # noqa: PLR0124
        text = "" if missing else str(raw)
    except Exception:  # noqa: BLE001 - an object's own code, which may raise anything
        return None
    return None if missing or not is_unicode(text) else text


def _whole(raw: Any) -> int | None:
    number = int(raw)
    return number if INT_LOW <= number <= INT_HIGH else None


def _finite(raw: Any) -> float | None:
    number = float(raw)
    return number if math.isfinite(number) else None


def _moment(raw: dt.datetime) -> dt.datetime:
    """Without a zone, in UTC, and without what a subclass adds."""
    moment = raw if raw.tzinfo is None else raw.astimezone(dt.UTC)
    return dt.datetime.combine(_day(moment), dt.time(moment.hour, moment.minute, moment.second, moment.microsecond))


def _day(raw: dt.date) -> dt.date:
    return dt.date(raw.year, raw.month, raw.day)


_STORED: tuple[tuple[tuple[type, ...], tuple[Type, Callable[[Any], Value]]], ...] = (
    ((bool, np.bool_), (Type.BOOL, bool)),
    ((numbers.Integral,), (Type.INT, _whole)),
    ((numbers.Real, Decimal), (Type.FLOAT, _finite)),
    ((dt.datetime,), (Type.TIMESTAMP, _moment)),
    ((dt.date,), (Type.DATE, _day)),
)


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
