"""Arithmetic of whole numbers and doubles, roundings, roots, and the larger or smaller of several values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Any

from discreet.exact import float_above, float_below
from discreet.plan.expressions.functions.record import (
    NUMBERS,
    ORDERED,
    BoundsRule,
    F,
    Form,
    Function,
    N,
    Nulls,
    Rounding,
    Template,
    each,
    exact,
    is_inside,
    map_monotone,
    takes,
)
from discreet.plan.expressions.interval_arithmetic import EMPTY, Span, greatest, hull, least
from discreet.plan.model.nodes import FunctionCall

# ------------------------------------------------------------------------------------------------------------ in Python


def _divide(a: float, b: float) -> float | None:
    return a / b if b else None


def _integer_divide(a: Any, b: Any) -> int | None:
    return math.trunc(Fraction(a) / Fraction(b)) if b else None


def _modulo(a: Any, b: Any) -> Any:
    return a - b * math.trunc(Fraction(a) / Fraction(b)) if b else None


def _half_away(value: float | Fraction) -> int:
    exact = Fraction(value)
    size = math.floor(abs(exact) + Fraction(1, 2))
    return size if exact >= 0 else -size


def _present(arguments: Sequence[Any]) -> list[Any]:
    return [argument for argument in arguments if argument is not None]


# --------------------------------------------------------------------------------------------------------------- bounds


def _pair(operation: Callable[[Any, Any], Any]) -> BoundsRule:
    return lambda spans: operation(spans[0], spans[1])


def _quotients(spans: Sequence[Span]) -> Span:
    """Towards zero, by a whole number that is not zero: never further from zero than the dividend."""
    exact = spans[0] / spans[1]
    return exact.map(math.trunc) if exact.is_bounded else hull([spans[0], -spans[0]])


def _remainders(spans: Sequence[Span]) -> Span:
    """The sign of the dividend, and smaller in size than dividend and divisor."""
    dividend, largest = spans[0], abs(spans[1]).high - 1
    if dividend.is_empty or spans[1].is_empty:
        return EMPTY
    same = _same_quotient(dividend, spans[1])
    if same is not None:
        return same
    return Span(
        max(min(dividend.low, Fraction(0)), -max(largest, Fraction(0))),
        min(max(dividend.high, Fraction(0)), max(largest, Fraction(0))),
    )


def _same_quotient(dividend: Span, divisor: Span) -> Span | None:
    """Remainders of numbers between two multiples of one divisor: they grow with the number."""
    if not dividend.is_bounded or not divisor.is_bounded or divisor.low != divisor.high or divisor.low == 0:
        return None
    by, low, high = Fraction(divisor.low), Fraction(dividend.low), Fraction(dividend.high)
    quotient = math.trunc(low / by)
    if low < 0 < high or math.trunc(high / by) != quotient:
        return None
    return Span(low - by * quotient, high - by * quotient)


def _roots(spans: Sequence[Span]) -> Span:
    """Returns the roots of what is not negative; each end is moved by one double, more than its rounding."""
    held = spans[0].within(Fraction(0), math.inf)
    if held.is_empty:
        return EMPTY
    low = Fraction(math.nextafter(math.sqrt(float_below(Fraction(held.low))), 0))
    if isinstance(held.high, float):
        return Span(low, held.high)
    largest = math.nextafter(math.sqrt(min(float_above(held.high), _LARGEST)), math.inf)
    return Span(low, Fraction(largest))


_LARGEST = math.nextafter(math.inf, 0)  # no value of an expression is larger


def _is_divided(call: FunctionCall, arguments: Sequence[Span], result: Span) -> bool:
    """Returns whether the divisor is surely not zero, and the result fits."""
    by = arguments[1]
    return not by.low <= 0 <= by.high and is_inside(call, arguments, result)


def _is_root(_call: FunctionCall, arguments: Sequence[Span], result: Span) -> bool:
    return arguments[0].low >= 0 and result.is_bounded


# ------------------------------------------------------------------------------------------------------------------ SQL


def _finite(text: str) -> Template:
    return Template(text, infinite=True)


def _spark_rounded(sql: str) -> Template:
    """Returns a whole number in FLOAT; doubles beyond 2^53 are whole."""
    return Template(f"CASE WHEN abs({{0}}) < 9007199254740992D THEN CAST({sql} AS DOUBLE) ELSE {{0}} END", repeats=(0,))


def _both(whole: Form, double: Form) -> dict[Any, Form]:
    return {N: whole, F: double}


# -------------------------------------------------------------------------------------------------------------- records

_OPERATIONS = (
    Function(
        "add",
        "a + b",
        each(2, NUMBERS),
        compute=add,
        bounds=_pair(add),
        present=is_inside,
        rounding=Rounding.KEPT,
        alike=True,
        symbol="+",
        sql=_both(exact("{0} + {1}"), _finite("{0} + {1}")),
        spelled={"spark": {N: "try_add({0}, {1})"}},
    ),
    Function(
        "subtract",
        "a - b",
        each(2, NUMBERS),
        compute=sub,
        bounds=_pair(sub),
        present=is_inside,
        rounding=Rounding.KEPT,
        alike=True,
        symbol="-",
        sql=_both(exact("{0} - {1}"), _finite("{0} - {1}")),
        spelled={"spark": {N: "try_subtract({0}, {1})"}},
    ),
    Function(
        "multiply",
        "a * b",
        each(2, NUMBERS),
        compute=mul,
        bounds=_pair(mul),
        present=is_inside,
        rounding=Rounding.KEPT,
        alike=True,
        symbol="*",
        sql=_both(exact("{0} * {1}"), _finite("{0} * {1}")),
        spelled={"spark": {N: "try_multiply({0}, {1})"}},
    ),
    Function(
        "divide",
        "a / b in FLOAT; NULL if b is 0",
        takes(F, F, result=F),
        compute=_divide,
        bounds=_pair(truediv),
        present=_is_divided,
        symbol="/",
        sql=Template("CASE WHEN {1} <> 0 THEN {0} / {1} END", repeats=(1,), infinite=True),
    ),
    Function(
        "integer_divide",
        "a / b rounded towards zero; NULL if b is 0",
        takes(N, N, result=N),
        compute=_integer_divide,
        bounds=_quotients,
        present=_is_divided,
        symbol="//",
        advice="// takes whole numbers; write CAST(x AS INT): {filtered}.",
        spelled={
            "duckdb": Template(
                "CASE WHEN {1} <> 0 THEN TRY_CAST(CAST({0} AS HUGEINT) // CAST({1} AS HUGEINT) AS BIGINT) END",
                repeats=(1,),
            ),
            "spark": Template(
                "CASE WHEN {1} = -1 THEN try_subtract(0L, {0}) WHEN {1} <> 0 THEN {0} DIV {1} END", repeats=(0, 1)
            ),
        },
    ),
    Function(
        "modulo",
        "the remainder of a // b, with the sign of a; NULL if b is 0",
        takes(N, N, result=N),
        compute=_modulo,
        bounds=_remainders,
        present=_is_divided,
        symbol="%",
        advice="% takes whole numbers; write CAST(x AS INT): {filtered}.",
        words=("MOD",),
        example="AVG(MOD(age, 10))",
        sql=exact("{0} % {1}", "{1} <> 0"),
        spelled={"spark": Template("CASE WHEN {1} <> 0 THEN {0} % {1} END", repeats=(1,))},
    ),
    Function(
        "negate",
        "-a",
        each(1, NUMBERS),
        compute=lambda a: -a,
        bounds=lambda spans: -spans[0],
        present=is_inside,
        rounding=Rounding.KEPT,
        symbol="-",
        sql=_both(exact("-{0}"), "-{0}"),
        spelled={"spark": {N: "try_subtract(0L, {0})"}},
    ),
)

_ROUNDINGS = (
    Function(
        "absolute",
        "the absolute value of a",
        each(1, NUMBERS),
        compute=abs,
        bounds=lambda spans: abs(spans[0]),
        present=is_inside,
        rounding=Rounding.KEPT,
        words=("ABS",),
        example="AVG(ABS(age - 50))",
        sql=_both(exact("abs({0})"), "abs({0})"),
        spelled={
            "spark": {N: Template("CASE WHEN {0} >= 0 THEN {0} ELSE try_subtract(0L, {0}) END", repeats=(0,))},
        },
    ),
    Function(
        "round",
        "the nearest whole number, halves away from zero, in FLOAT",
        takes(F, result=F),
        compute=_half_away,
        bounds=map_monotone(_half_away),
        present=is_inside,
        rounding=Rounding.WHOLE,
        sql="round({0})",
        spelled={
            "spark": _spark_rounded(
                "CASE WHEN {0} < 0 THEN -1L ELSE 1L END"
                " * (floor(abs({0})) + CASE WHEN abs({0}) - floor(abs({0})) >= 0.5D THEN 1L ELSE 0L END)"
            ),
        },
    ),
    Function(
        "floor",
        "the largest whole number that is not above a, in FLOAT",
        takes(F, result=F),
        compute=math.floor,
        bounds=map_monotone(math.floor),
        present=is_inside,
        rounding=Rounding.WHOLE,
        words=("FLOOR",),
        example="AVG(FLOOR(charge))",
        sql="floor({0})",
        spelled={"spark": _spark_rounded("floor({0})")},
    ),
    Function(
        "ceil",
        "the smallest whole number that is not below a, in FLOAT",
        takes(F, result=F),
        compute=math.ceil,
        bounds=map_monotone(math.ceil),
        present=is_inside,
        rounding=Rounding.WHOLE,
        words=("CEIL", "CEILING"),
        example="AVG(CEIL(charge))",
        sql="ceil({0})",
        spelled={"spark": _spark_rounded("ceil({0})")},
    ),
    Function(
        "square_root",
        "the square root of a, as the nearest double; NULL if a < 0",
        takes(F, result=F),
        compute=lambda a: math.sqrt(a) if a >= 0 else None,
        bounds=_roots,
        present=_is_root,
        words=("SQRT",),
        example="AVG(SQRT(charge))",
        sql=Template("sqrt(CASE WHEN {0} >= 0 THEN {0} END)", repeats=(0,)),
    ),
)

_EXTREMES = (
    Function(
        "greatest",
        "the largest argument that is not NULL; NULL if all are; it clips from below, and turns NULL into the limit",
        each(1, ORDERED, variadic=True),
        compute=lambda arguments: max(_present(arguments), default=None),
        nulls=Nulls.ALL,
        bounds=greatest,
        rounding=Rounding.KEPT,
        alike=True,
        words=("GREATEST",),
        example="AVG(GREATEST(charge, 10))",
        sql="greatest({all})",
        spelled={"spark": Template("greatest({0}, {all})", repeats=(0,))},  # which takes two arguments at least
    ),
    Function(
        "least",
        "the smallest argument that is not NULL; NULL if all are; it clips from above, and turns NULL into the limit",
        each(1, ORDERED, variadic=True),
        compute=lambda arguments: min(_present(arguments), default=None),
        nulls=Nulls.ALL,
        bounds=least,
        rounding=Rounding.KEPT,
        alike=True,
        words=("LEAST",),
        example="AVG(LEAST(charge, 500))",
        sql="least({all})",
        spelled={"spark": Template("least({0}, {all})", repeats=(0,))},
    ),
)

ARITHMETIC = (*_OPERATIONS, *_ROUNDINGS, *_EXTREMES)
