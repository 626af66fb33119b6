"""Doubles on PostgreSQL, which raises where others go on: when a result is infinite, and when it is too small for one.

Each template asks first, by comparisons and by operations that cannot fail, whether the operation itself would. All
products with powers of two here are exact, so that what they are compared with decides as the true result would.

Every test of an argument is a condition of its own, and what could fail comes behind it in the same CASE: PostgreSQL
computes what is constant before it reads a row, but never behind a condition that is FALSE by constants alone. What
comes behind the value of an earlier step, which is no constant, must not be one either.
"""

from __future__ import annotations

from discreet.engines.sql.dialect import Templates
from discreet.plan.expressions.functions import Template
from discreet.plan.model.types import Type

DOUBLE = "double precision"


def number(value: float) -> str:
    """Writes a double as an SQL literal."""
    return f"CAST('{float(value)!r}' AS {DOUBLE})"


def _power(exponent: int) -> str:
    return number(2.0**exponent)


_UP, _DOWN = _power(512), _power(-512)
_LEAST = 2.0**-51  # the least double is 2^-1074: half of it, times 2^1024

# ---------------------------------------------------------------------------------------------------------- arithmetic


def _sum(sign: str) -> Template:
    """Writes a sum: next to a number below 2^969 none leaves the range of doubles; halves of larger ones are exact."""
    made, small = f"{{0}} {sign} {{1}}", _power(969)
    half = f"{{0}} * {number(0.5)} {sign} {{1}} * {number(0.5)}"
    return Template(
        f"CASE WHEN abs({{0}}) < {small} OR abs({{1}}) < {small} THEN {made} "
        f"WHEN abs({half}) < {_power(1023)} THEN {made} END",
        repeats=(0, 1),
    )


def _split(factor: str) -> tuple[str, str]:
    """Returns the upper and the lower half of a number's digits (Veltkamp)."""
    product = f"{factor} * {number(2.0**27 + 1)}"
    upper = f"({product} - ({product} - {factor}))"
    return upper, f"({factor} - {upper})"


def _product() -> Template:
    """Writes a product: two numbers from 1 on may be too large together, two below 1 too small; others are neither.

    A product of numbers below 1 is zero if it is at most 2^-1075. Scaled by 2^1024 it is rounded at a place where that
    does not matter, unless it is rounded to the limit itself: then its error, found exactly (Dekker), decides.
    """
    one, other = f"(abs({{0}}) * {_UP})", f"(abs({{1}}) * {_UP})"
    scaled, limit = f"{one} * {other}", number(_LEAST)
    (a, b), (c, d) = _split(one), _split(other)
    error = f"{b} * {d} - ((({limit} - {a} * {c}) - {b} * {c}) - {a} * {d})"
    tiny = _power(-538)
    return Template(
        f"CASE WHEN abs({{0}}) >= 1 AND abs({{1}}) >= 1 "
        f"THEN CASE WHEN abs(({{0}} * {_DOWN}) * ({{1}} * {_DOWN})) < 1 THEN {{0}} * {{1}} END "
        "WHEN abs({0}) >= 1 OR abs({1}) >= 1 OR {0} = 0 OR {1} = 0 THEN {0} * {1} "
        f"WHEN abs({{0}}) < {tiny} AND abs({{1}}) < {tiny} THEN 0 "
        f"WHEN {scaled} > {limit} THEN {{0}} * {{1}} "
        f"WHEN {scaled} < {limit} THEN 0 "
        f"WHEN {error} > 0 THEN {{0}} * {{1}} "
        f"WHEN {scaled} = {limit} THEN 0 END",
        repeats=(0, 1),
    )


def _quotient() -> Template:
    """Writes a quotient: by a number from 1 on it may become too small, by one below 1 too large.

    A quotient of doubles is never as near to a power of two as to be rounded to it without being it, so that the
    comparison of the scaled one decides.
    """
    return Template(
        "CASE WHEN {1} = 0 THEN NULL WHEN abs({1}) >= 1 "
        f"THEN CASE WHEN {{0}} = 0 OR abs({{0}}) >= {_power(-50)} THEN {{0}} / {{1}} "
        f"WHEN abs(({{0}} * {_UP}) / ({{1}} * {_DOWN})) > {number(_LEAST)} THEN {{0}} / {{1}} "
        "WHEN {0} IS NOT NULL THEN 0 END "
        f"WHEN abs({{0}}) < {number(_LEAST)} THEN {{0}} / {{1}} "
        f"WHEN abs({{1}}) < {_power(-600)} AND abs({{0}}) > {_power(500)} THEN NULL "
        f"WHEN abs(({{0}} * {_DOWN}) / ({{1}} * {_UP})) < 1 THEN {{0}} / {{1}} END",
        repeats=(0, 1),
    )


def scale_double(exponent: int) -> Template:
    """Returns a double {0} times two to a power: zero where it would be too small, NULL where it would be too large."""
    if exponent == 0:
        return Template("{0}")
    made = f"{{0}} * {_power(exponent)}"
    if exponent > 0:
        return Template(f"CASE WHEN abs({{0}}) < {_power(1024 - exponent)} THEN {made} END", repeats=(0,))
    small = _power(-1075 - exponent)
    return Template(f"CASE WHEN abs({{0}}) > {small} THEN {made} WHEN {{0}} IS NOT NULL THEN 0 END", repeats=(0,))


# --------------------------------------------------------------------------------------------------------- from a text

_FLOAT = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_MOST_DIGITS = 800  # a double has 767 that decide at most; whether there are more matters, not which
_TOO_LARGE = str(2**1024 - 2**970).rstrip("0")  # the digits of the first number that is rounded to an infinite one
_TOO_SMALL = str(5**1075)  # those of 2^-1075, the last one that is rounded to zero


def _from_text() -> Template:
    """A text as 0.d times ten to the power k, where d neither begins nor ends with 0: texts of digits are compared.

    The arguments after the text: without plus and with a small e; what comes before e, without a sign; the number
    after e, as far as 18 digits tell it; the digits from the first one that is not 0; k; d.
    """
    ten = "split_part({1}, 'e', 2)"
    digits = f"ltrim({ten}, '-0')"
    exponent = (
        f"CASE WHEN {ten} LIKE '-%' THEN -1 ELSE 1 END * "
        f"CASE WHEN length({digits}) > 18 THEN 1000000000000000000 ELSE CAST('0' || {digits} AS bigint) END"
    )
    all_digits = "replace({2}, '.', '')"
    steps = (
        f"CASE WHEN {{0}} ~ '{_FLOAT}' THEN translate({{0}}, 'E+', 'e') END",
        "ltrim(split_part({1}, 'e', 1), '-')",
        f"CASE WHEN {{1}} IS NOT NULL THEN {exponent} END",
        f"ltrim({all_digits}, '0')",
        f"length(split_part({{2}}, '.', 1)) - length({all_digits}) + length({{4}}) + {{3}}",
        "rtrim({4}, '0')",
    )
    few = f"CASE WHEN length({{6}}) > {_MOST_DIGITS} THEN left({{6}}, {_MOST_DIGITS}) || '1' ELSE {{6}} END"
    written = f"CASE WHEN {{1}} LIKE '-%' THEN '-0.' ELSE '0.' END || {few} || 'e' || CAST({{5}} AS text)"
    return Template(
        f"CASE WHEN {{6}} = '' THEN 0 WHEN {{5}} > 309 OR ({{5}} = 309 AND {{6}} >= '{_TOO_LARGE}') THEN NULL "
        f"WHEN {{5}} < -323 OR ({{5}} = -323 AND {{6}} <= '{_TOO_SMALL}') THEN 0 "
        f"ELSE CAST({written} AS {DOUBLE}) END",
        repeats=(0,),
        steps=steps,
    )


# ---------------------------------------------------------------------------------------------------------- elementary


_ZERO_BELOW = -745.1332191019411  # the exponential of what lies below is less than half of the least double
_LEAST_BELOW = -744.4401  # that of what lies between is the least double
_NULL_ABOVE = 700.0  # above 2^1000, where results are NULL


def _powers() -> Template:
    """Writes powers: the result's logarithm, the second argument after those given, says whether there is a result.

    It is computed with an exponent that is held to sizes at which the product stays a double.
    """
    least_size, most = number(1e-300), f"least(greatest({{1}}, {number(-1e300)}), {number(1e300)})"
    held = f"CASE WHEN abs({{1}}) < {least_size} THEN 0 WHEN {{1}} IS NOT NULL THEN {most} END"
    step = f"CASE WHEN {{0}} = 0 THEN NULL ELSE {held} * ln(abs({{0}})) END"
    settled = "CASE WHEN {2} IS NOT NULL THEN {0} END"  # so that no power of literals is computed beforehand
    odd = "CASE WHEN abs({1}) >= 1 THEN {1} / 2 <> floor({1} / 2) END"
    least = f"CASE WHEN {{0}} < 0 AND {odd} THEN {number(-5e-324)} ELSE {number(5e-324)} END"
    return Template(
        "CASE WHEN {0} = 0 AND {1} > 0 THEN 0 WHEN {0} = 0 AND {1} = 0 THEN 1 WHEN {0} = 0 THEN NULL "
        f"WHEN {{0}} < 0 AND {{1}} <> floor({{1}}) THEN NULL WHEN {{2}} > {number(_NULL_ABOVE)} THEN NULL "
        f"WHEN {{2}} < {number(_ZERO_BELOW)} THEN 0 WHEN {{2}} < {number(_LEAST_BELOW)} THEN {least} "
        f"WHEN {{2}} IS NOT NULL THEN power({settled}, {{1}}) END",
        repeats=(0, 1),
        steps=(step,),
        gridded=True,
    )


_EXP = f"CASE WHEN {{0}} < {number(_ZERO_BELOW)} THEN 0 WHEN {{0}} < {number(_NULL_ABOVE)} THEN exp({{0}}) END"

DOUBLES: Templates = {
    ("add", Type.FLOAT): _sum("+"),
    ("subtract", Type.FLOAT): _sum("-"),
    ("multiply", Type.FLOAT): _product(),
    "divide": _quotient(),
    # The nearest, halves away from zero; the rest after the whole part is exact.
    "round": Template(
        f"trunc({{0}}) + CASE WHEN abs({{0}} - trunc({{0}})) >= {number(0.5)} THEN sign({{0}}) ELSE 0 END", repeats=(0,)
    ),
    ("to_int", Type.FLOAT): Template(
        f"CASE WHEN {{0}} >= {number(-(2.0**63))} AND {{0}} < {number(2.0**63)} THEN CAST(trunc({{0}}) AS bigint) END",
        repeats=(0,),
    ),
    "round_to_int": Template(  # whose cast rounds halves to the even one
        f"CASE WHEN {{0}} >= {number(-(2.0**63))} AND {{0}} < {number(2.0**63)} THEN CAST({{0}} AS bigint) END",
        repeats=(0,),
    ),
    ("to_float", Type.TEXT): _from_text(),
    "exp": Template(_EXP, repeats=(0,), gridded=True),
    "power": _powers(),
}
"""The templates of what computes with doubles."""
