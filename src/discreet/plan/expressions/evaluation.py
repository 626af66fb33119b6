"""The meanings of all functions in plain Python: outputs are computed with them, and every engine is held to them.

Total by construction: every function has a value, or NULL (None), for all arguments of its types.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any, TypeVar

from discreet.errors import InternalError
from discreet.plan.expressions.elementary import ELEMENTARY
from discreet.plan.expressions.functions import FUNCTIONS, Signature
from discreet.plan.expressions.text_meanings import TEXTS
from discreet.plan.model.nodes import Call, Column, Expression, Literal
from discreet.plan.model.types import Type

Day = TypeVar("Day", bound=dt.date)

LAST_DAY = dt.date.max.toordinal()
"""The number of the last day; the first has number 1."""

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def day_number(value: dt.date) -> Fraction:
    """Returns the number of a day, 1 for 0001-01-01; a moment's with the part of the day that has passed.

    >>> day_number(dt.datetime(1, 1, 2, 12))
    Fraction(5, 2)
    """
    passed = value - dt.datetime.combine(value.date(), dt.time()) if isinstance(value, dt.datetime) else dt.timedelta()
    return value.toordinal() + Fraction(passed // dt.timedelta(microseconds=1), 86_400_000_000)


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


def _start_of_week(value: dt.date) -> dt.date | None:
    day = _day(value)
    number = day.toordinal() - day.weekday()
    return dt.date.fromordinal(number) if number >= 1 else None


def _add_days(value: Day, days: int) -> Day | None:
    number = value.toordinal() + days
    return value + dt.timedelta(days=days) if 1 <= number <= LAST_DAY else None


def _add_months(value: Day, months: int) -> Day | None:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    return value.replace(year=year, month=month + 1, day=min(value.day, monthrange(year, month + 1)[1]))


DAYS: dict[str, Callable[..., Any]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar().week,
    "day": lambda day: day.day,
    "day_of_year": lambda day: day.timetuple().tm_yday,
    "day_of_week": lambda day: day.isoweekday(),
    "day_name": lambda day: DAY_NAMES[day.weekday()],
    "month_name": lambda day: MONTH_NAMES[day.month - 1],
    "hour": lambda moment: moment.hour,
    "days_between": lambda a, b: b.toordinal() - a.toordinal(),
    "microseconds_between": lambda a, b: (b - a) // dt.timedelta(microseconds=1),
    "add_days": _add_days,
    "add_months": _add_months,
    "start_of_year": lambda day: _day(day).replace(month=1, day=1),
    "start_of_quarter": lambda day: _day(day).replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "start_of_month": lambda day: _day(day).replace(day=1),
    "start_of_week": _start_of_week,
    "end_of_month": lambda day: _day(day).replace(day=monthrange(day.year, day.month)[1]),
}
"""By the names of `functions.FUNCTIONS`; no argument is NULL."""


Values = Mapping[str, Any]
"""Values by column; numbers may be int, float or Fraction."""

INT_LOW, INT_HIGH = -(2**63), 2**63 - 1

_INT = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def evaluate(expression: Expression, values: Values) -> Any:
    """Computes the value of an expression, None for NULL.

    >>> half = Call("divide", (Column("n", Type.FLOAT), Literal(0.0, Type.FLOAT)), Type.FLOAT)
    >>> evaluate(half, {"n": 3.0}) is None
    True
    """
    if isinstance(expression, Call):
        return _called(expression, values)
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Column):
        return values[expression.name]
    raise InternalError(f"A {type(expression).__name__} has no value.")


def _called(expression: Call, values: Values) -> Any:
    function, parts = expression.function, expression.arguments
    kinds, as_given = _wanted(function, tuple([part.type for part in parts]), expression.type)
    if function == "if":  # every expression is total: the other branch has a value that nobody needs
        place = 1 if evaluate(parts[0], values) is True else 2
        return _argument(evaluate(parts[place], values), kinds[place])
    arguments = [evaluate(part, values) for part in parts]
    if not as_given:
        arguments = [_argument(value, kind) for value, kind in zip(arguments, kinds, strict=True)]
    lenient = _LENIENT.get(function)
    if lenient is not None:
        return lenient(arguments)
    if None in arguments:
        return None
    return _RESULTS[expression.type](_STRICT[function](*arguments))


@cache
def _wanted(function: str, given: tuple[Type, ...], result: Type) -> tuple[tuple[Type, ...], bool]:
    """The types that the function takes these arguments as, and whether none of them is a double."""
    fitting = (signature for signature in FUNCTIONS[function].signatures if signature.accepts(given))
    signature = next((signature for signature in fitting if signature.result is result), None)
    kinds = given if signature is None else taken(signature, len(given))
    return kinds, Type.FLOAT not in kinds


def taken(signature: Signature, count: int) -> tuple[Type, ...]:
    """Returns the types of so many arguments of a signature, the last one repeated."""
    return signature.arguments + signature.arguments[-1:] * (count - len(signature.arguments))


def _argument(value: Any, kind: Type) -> Any:
    """Numbers where doubles are asked for become doubles; those that do not exist are NULL."""
    return _double(value) if kind is Type.FLOAT else value


def _double(value: Any) -> float | None:
    if value is None:
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found + 0.0 if math.isfinite(found) else None  # + 0.0: there is one zero


def _whole(value: Any) -> Any:
    return value if value is not None and INT_LOW <= value <= INT_HIGH else None


_RESULTS: dict[Type, Callable[[Any], Any]] = {kind: lambda value: value for kind in Type}
_RESULTS |= {Type.FLOAT: _double, Type.INT: _whole}

# ----------------------------------------------------------------------------------------------------- NULL has a say


def _and(arguments: Sequence[Any]) -> bool | None:
    if any(argument is False for argument in arguments):
        return False
    return None if None in arguments else True


def _or(arguments: Sequence[Any]) -> bool | None:
    if any(argument is True for argument in arguments):
        return True
    return None if None in arguments else False


def _present(arguments: Sequence[Any]) -> list[Any]:
    return [argument for argument in arguments if argument is not None]


def _null_if(arguments: Sequence[Any]) -> Any:
    first, second = arguments
    return None if first is not None and first == second else first


_LENIENT: dict[str, Callable[[Sequence[Any]], Any]] = {
    "and": _and,
    "or": _or,
    "is_null": lambda arguments: arguments[0] is None,
    "coalesce": lambda arguments: next(iter(_present(arguments)), None),
    "greatest": lambda arguments: max(_present(arguments), default=None),
    "least": lambda arguments: min(_present(arguments), default=None),
    "null_if": _null_if,
}

# ------------------------------------------------------------------------------------------------------------- numbers


def _divide(a: float, b: float) -> float | None:
    return a / b if b else None


def _integer_divide(a: Any, b: Any) -> int | None:
    return math.trunc(Fraction(a) / Fraction(b)) if b else None


def _modulo(a: Any, b: Any) -> Any:
    return a - b * math.trunc(Fraction(a) / Fraction(b)) if b else None


def _round(value: float) -> int:
    exact = Fraction(value)
    size = math.floor(abs(exact) + Fraction(1, 2))
    return size if exact >= 0 else -size


def _to_int(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if _INT.fullmatch(value) else None
    return int(value)


def _to_float(value: Any) -> float | None:
    return None if isinstance(value, str) and not _FLOAT.fullmatch(value) else _double(value)


# ------------------------------------------------------------------------------------------------------ texts and dates


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _to_date(value: Any) -> dt.date | None:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(value) if _DATE.fullmatch(value) else None
    except ValueError:
        return None


def _to_timestamp(value: dt.date) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


_STRICT: dict[str, Callable[..., Any]] = {
    "add": add,
    "subtract": sub,
    "multiply": mul,
    "divide": _divide,
    "integer_divide": _integer_divide,
    "modulo": _modulo,
    "negate": lambda a: -a,
    "absolute": abs,
    "round": _round,
    "floor": math.floor,
    "ceil": math.ceil,
    "equal": eq,
    "not_equal": ne,
    "less": lt,
    "less_equal": le,
    "greater": gt,
    "greater_equal": ge,
    "not": lambda a: not a,
    "in": lambda a, *members: a in members,
    "to_int": _to_int,
    "round_to_int": round,  # of Python's numbers it is to the even one
    "to_float": _to_float,
    "to_text": _to_text,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "square_root": lambda a: math.sqrt(a) if a >= 0 else None,
    **ELEMENTARY,
    **DAYS,
    **TEXTS,
}

MEANINGS = frozenset(_STRICT) | frozenset(_LENIENT) | {"if"}
"""The functions that have a meaning here: all of `functions.FUNCTIONS`, which a test asserts."""
