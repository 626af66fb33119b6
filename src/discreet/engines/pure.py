"""Every function of the table in plain Python: the meaning that all other engines are held to."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from discreet.engines.validation import INT_HIGH, INT_LOW, wanted
from discreet.plan.functions import FUNCTIONS
from discreet.plan.nodes import Call, Column, Expression, Literal, Value
from discreet.plan.types import Type

Row = Mapping[str, Value]

_INT = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
)
TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_UPPER = {ord(small): small.upper() for small in "abcdefghijklmnopqrstuvwxyz"}
_LOWER = {ord(large): large.lower() for large in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def evaluate(expression: Expression, row: Row) -> Value:
    """The value of an expression on one row; it always has one, or NULL."""
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Literal):
        return expression.value
    if not isinstance(expression, Call):
        raise TypeError(expression)
    values = [evaluate(argument, row) for argument in expression.arguments]
    if expression.function in FUNCTIONS:
        kinds = zip(values, wanted(expression), strict=True)
        values = [float(value) if kind is Type.FLOAT and value is not None else value for value, kind in kinds]  # type: ignore[arg-type]
    if expression.function in NULLS:
        return _within(NULLS[expression.function](*values))
    return None if None in values else _within(STRICT[expression.function](*values))


def _within(value: Value) -> Value:
    """A result as it is if it is a value of its type, else NULL."""
    if type(value) is int:
        return value if INT_LOW <= value <= INT_HIGH else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def steps(value: Value, exponent: int, low: int, high: int) -> int | None:
    """The term of a sum: clip(floor(x * 2^-exponent + 1/2), low, high), computed exactly; NULL of NULL."""
    if value is None:
        return None
    nearest = math.floor(Fraction(value) / Fraction(2) ** exponent + Fraction(1, 2))  # type: ignore[arg-type]
    return max(low, min(high, nearest))


def _truncated(a: int, b: int) -> int | None:
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    quotient = _truncated(a, b)
    return None if quotient is None else a - b * quotient


def _multiply(a: Any, b: Any) -> Any:
    return a * b


def _round(x: float) -> float:
    whole = math.trunc(x)
    return math.copysign(float(abs(whole) + (abs(x - whole) >= 0.5)), x)


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _chosen(choose: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def among(*values: Any) -> Any:
        present = [value for value in values if value is not None]
        return choose(present) if present else None

    return among


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _null_if(a: Any, b: Any) -> Any:
    return None if a is not None and b is not None and a == b else a


@cache
def _pattern(like: str) -> re.Pattern[str]:
    parts = {"%": ".*", "_": "."}
    return re.compile("".join(parts.get(letter, re.escape(letter)) for letter in like), re.DOTALL)


def _to_int(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if _INT.fullmatch(value) else None
    return int(value)


def _to_float(value: Any) -> float | None:
    if isinstance(value, str) and not _FLOAT.fullmatch(value):
        return None
    return float(value)


def _to_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_date(value: Any) -> dt.date | None:
    if isinstance(value, str):
        return _day(value) if _DATE.fullmatch(value) else None
    return day_of(value)


def _day(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def day_of(value: dt.date | dt.datetime) -> dt.date:
    """The day of a day or a moment."""
    return value.date() if isinstance(value, dt.datetime) else value


def _read_timestamp(text: str) -> dt.datetime | None:
    match = _TIMESTAMP.fullmatch(text)
    day = _day(match[1]) if match else None
    if match is None or day is None:
        return None
    return dt.datetime.combine(day, dt.time.fromisoformat(_six_decimals((match[2] or " 00:00")[1:])))


def _six_decimals(time: str) -> str:
    whole, point, decimals = time.partition(".")
    return f"{whole}{point}{decimals:0<6}" if point else whole


def _read_bool(text: str) -> bool | None:
    return True if text in TRUE else False if text in FALSE else None


def _substring(text: str, start: int, count: int) -> str:
    first, last = max(start, 1), start + max(count, 0)
    return text[first - 1 : max(last, first) - 1]


def _start_of_week(value: Any) -> dt.date:
    day = day_of(value)
    return day - dt.timedelta(days=day.weekday())


def _quarter(value: Any) -> int:
    month: int = value.month
    return (month + 2) // 3


STRICT: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": _multiply,
    "divide": lambda a, b: a / b if b else None,
    "integer_divide": _truncated,
    "modulo": _remainder,
    "negate": lambda a: -a,
    "absolute": abs,
    "round": _round,
    "floor": lambda x: float(math.floor(x)),
    "ceil": lambda x: float(math.ceil(x)),
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "not": lambda a: not a,
    "in": lambda a, *others: a in others,
    "like": lambda text, like: _pattern(like).fullmatch(text) is not None,
    "to_int": _to_int,
    "to_float": _to_float,
    "to_text": _to_text,
    "to_date": _to_date,
    "year": lambda day: day.year,
    "quarter": _quarter,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "day_of_week": lambda day: day.isoweekday(),
    "hour": lambda moment: moment.hour,
    "start_of_year": lambda day: dt.date(day.year, 1, 1),
    "start_of_quarter": lambda day: dt.date(day.year, 3 * _quarter(day) - 2, 1),
    "start_of_month": lambda day: dt.date(day.year, day.month, 1),
    "start_of_week": _start_of_week,
    "upper": lambda text: text.translate(_UPPER),
    "lower": lambda text: text.translate(_LOWER),
    "trim": lambda text: text.strip(" "),
    "length": len,
    "substring": _substring,
    "read_bool": _read_bool,
    "read_timestamp": _read_timestamp,
    "midnight": lambda day: dt.datetime.combine(day, dt.time()),
}
"""Functions that are NULL as soon as an argument is."""

NULLS: Mapping[str, Callable[..., Any]] = {
    "greatest": _chosen(max),
    "least": _chosen(min),
    "and": _and,
    "or": _or,
    "is_null": lambda a: a is None,
    "if": lambda condition, then, otherwise: then if condition is True else otherwise,
    "coalesce": _coalesce,
    "null_if": _null_if,
}
"""Functions that say themselves what NULL means."""
