"""Shorthands of numbers: powers, logarithms, signs, roundings and buckets; and IF."""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet.plan.expressions.calls import NULL, Mismatch, call
from discreet.plan.expressions.shorthands.shorthand import Shorthand
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type

MOST_BUCKETS = 1000
LARGEST_PRODUCT = 8
_NO_PLACES = Literal(0, Type.INT)
_ZERO, _ONE = Literal(0.0, Type.FLOAT), Literal(1.0, Type.FLOAT)


def _if(condition: Expression, yes: Expression, no: Expression = NULL) -> Expression:
    return call("if", condition, yes, no)


# -------------------------------------------------------------------------------------------- powers, logarithms, signs


def _power(base: Expression, exponent: Expression) -> Expression:
    """x^n with a small whole n is a product of n doubles, formed by squaring; x^-n is 1 / x^n, and x^0.5 the root."""
    given = exponent.value if isinstance(exponent, Literal) and exponent.type.is_number else None
    if not isinstance(given, int | float) or (given != 0.5 and (given != int(given) or abs(given) > LARGEST_PRODUCT)):
        return call("power", base, exponent)
    value = call("add", base, _ZERO)
    if given == 0.5:
        return call("square_root", value)
    if given == 0:
        return call("if", call("is_null", value), NULL, _ONE)
    product = _product(value, abs(int(given)))
    return product if given > 0 else call("divide", _ONE, product)


def _product(value: Expression, count: int) -> Expression:
    if count == 1:
        return value
    half = _product(value, count // 2)
    square = call("multiply", half, half)
    return call("multiply", square, value) if count % 2 else square


def _log(*arguments: Expression) -> Expression:
    """LOG(x) is to the base 10, as in DuckDB and PostgreSQL; LOG(b, x) to the base b."""
    if len(arguments) == 1:
        return call("log10", *arguments)
    base, value = arguments
    known = _LOGARITHMS.get(base.value) if isinstance(base, Literal) and base.type.is_number else None
    return call("log", base, value) if known is None else call(known, value)


_LOGARITHMS: dict[object, str] = {2: "log2", 10: "log10"}


def _make_scaling(factor: float) -> Callable[[Expression], Expression]:
    return lambda value: call("multiply", value, Literal(factor, Type.FLOAT))


def _sign(value: Expression) -> Expression:
    zero, one, minus = (Literal(number, Type.INT) for number in (0, 1, -1))
    below = call("if", call("less", value, zero), minus, call("if", call("is_null", value), NULL, zero))
    return call("if", call("greater", value, zero), one, below)


# ------------------------------------------------------------------------------------------------ roundings and buckets


def _trunc(number: Expression) -> Expression:
    """Returns the whole number next to x on the way to zero, in doubles."""
    value = call("add", number, _ZERO)
    return call("if", call("less", value, _ZERO), call("ceil", value), call("floor", value))


def _round(value: Expression, places: Expression = _NO_PLACES) -> Expression:
    """ROUND(x, n) is round(x * 10^n) / 10^n, both steps in doubles."""
    given = places.value if isinstance(places, Literal) and places.type is Type.INT else None
    if not isinstance(given, int) or abs(given) > 9:
        raise Mismatch("ROUND takes a number of places from -9 to 9, written out.", "For example {count}.", argument=1)
    return round_number(value, given)


def round_number(value: Expression, places: int) -> Expression:
    """Returns a number with so many digits after the point, computed in doubles."""
    scale = Literal(10.0 ** abs(places), Type.FLOAT)
    if places == 0:
        return call("round", value)
    grow, shrink = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    return call(shrink, call("round", call(grow, value, scale)), scale)


def _width_bucket(number: Expression, lowest: Expression, highest: Expression, buckets: Expression) -> Expression:
    """Writes 0 below low, n + 1 from high on, else floor((x - low) * n / (high - low)) + 1 in doubles, held to 1..n."""
    value = call("add", number, _ZERO)
    low, high, count = _edge(lowest), _edge(highest), _buckets(buckets)
    if not low < high or not math.isfinite((high - low) * count):
        raise Mismatch("WIDTH_BUCKET goes from a lower to a higher limit.", "For example {buckets}.")
    first, last = Literal(low, Type.FLOAT), Literal(high, Type.FLOAT)
    step = call("multiply", call("subtract", value, first), Literal(float(count), Type.FLOAT))
    place = call("to_int", call("floor", call("divide", step, Literal(high - low, Type.FLOAT))))
    one = Literal(1, Type.INT)
    inside = call("greatest", one, call("least", Literal(count, Type.INT), call("add", place, one)))
    beyond = call("if", call("greater_equal", value, last), Literal(count + 1, Type.INT), inside)
    below = call("if", call("less", value, first), Literal(0, Type.INT), beyond)
    return call("if", call("is_null", value), NULL, below)


def _edge(found: Expression) -> float:
    if isinstance(found, Literal) and found.type.is_number and isinstance(found.value, int | float):
        return float(found.value)
    raise Mismatch("WIDTH_BUCKET takes limits that are written out.", "For example {buckets}.")


def _buckets(found: Expression) -> int:
    count = found.value if isinstance(found, Literal) and found.type is Type.INT else None
    if isinstance(count, int) and 1 <= count <= MOST_BUCKETS:
        return count
    reason = f"WIDTH_BUCKET makes 1 to {MOST_BUCKETS} buckets, a number that is written out."
    raise Mismatch(reason, "For example {buckets}.")


# -------------------------------------------------------------------------------------------------------------- records

NUMBER_SHORTHANDS = (
    Shorthand(words=("SIGN",), meaning="the sign of a: -1, 0 or 1", example="AVG(SIGN(age - 50))", expand=_sign),
    Shorthand(
        words=("ROUND",),
        meaning="a rounded to b decimal places (-9 to 9; 0 without b), halves away from zero; a double",
        example="AVG(ROUND(charge, -1))",
        counts=(1, 2),
        expand=_round,
    ),
    Shorthand(words=("TRUNC",), meaning="a rounded towards zero", example="AVG(TRUNC(charge))", expand=_trunc),
    Shorthand(
        words=("POWER", "POW"),
        meaning="a to the power of b",
        example="AVG(POWER(age, 2))",
        counts=(2,),
        expand=_power,
    ),
    Shorthand(
        words=("LOG", "LOG10", "LOG2"),
        meaning="the logarithm to base 10, or base 2 for LOG2; LOG(b, x) is to base b; NULL for 0 and below",
        example="AVG(LOG(charge + 1))",
        counts=(1, 2),
        expand=_log,
    ),
    Shorthand(
        words=("PI",),
        meaning="the number pi, 3.14...",
        example="AVG(age * PI())",
        counts=(0,),
        expand=lambda: Literal(math.pi, Type.FLOAT),
    ),
    Shorthand(
        words=("RADIANS",),
        meaning="converts an angle from degrees to radians",
        example="AVG(RADIANS(age))",
        expand=_make_scaling(math.pi / 180),
    ),
    Shorthand(
        words=("DEGREES",),
        meaning="converts an angle from radians to degrees",
        example="AVG(DEGREES(age))",
        expand=_make_scaling(180 / math.pi),
    ),
    Shorthand(
        words=("WIDTH_BUCKET",),
        meaning="the number of the band that a is in, of d equal bands from b to c; all bands are public",
        example="GROUP BY WIDTH_BUCKET(charge, 0, 1000, 4)",
        counts=(4,),
        expand=_width_bucket,
    ),
    Shorthand(
        words=("IF",),
        meaning="b if a is TRUE, else c; NULL if there is no c",
        example="AVG(IF(urgent, charge, 0))",
        counts=(2, 3),
        expand=_if,
    ),
)
