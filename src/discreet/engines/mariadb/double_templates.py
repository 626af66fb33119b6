"""Doubles on MariaDB, where a result that is too large is an error, and one that is too small is zero.

Each template asks first, by operations that cannot fail, whether the operation itself would. MariaDB has neither NaN
nor infinite numbers. Whole numbers of `floor` and `ceil` count as numbers without decimals, and a subquery keeps 17
digits of such a number: 0e0 is added, which makes them doubles like any other.
"""

from __future__ import annotations

import sys

from discreet.engines.sql.dialect import Templates
from discreet.plan.expressions.functions import Template
from discreet.plan.model.types import Type


def number(value: float) -> str:
    """Writes a double as an SQL literal; without an exponent it would be a decimal number.

    >>> number(0.5), number(-1e300)
    ('0.5e0', '-1e+300')
    """
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _power(exponent: int) -> str:
    return number(2.0**exponent)


_UP, _DOWN = _power(512), _power(-512)

# ---------------------------------------------------------------------------------------------------------- arithmetic


def _sum(sign: str) -> Template:
    """Writes a sum: next to a number below 2^969 none leaves the range of doubles; halves of larger ones are exact."""
    made, small = f"{{0}} {sign} {{1}}", _power(969)
    half = f"{{0}} * {number(0.5)} {sign} {{1}} * {number(0.5)}"
    return Template(
        f"CASE WHEN ABS({{0}}) < {small} OR ABS({{1}}) < {small} THEN {made} "
        f"WHEN ABS({half}) < {_power(1023)} THEN {made} END",
        repeats=(0, 1),
    )


def _product() -> Template:
    """Writes a product: only two numbers from 1 on may be too large together."""
    return Template(
        "CASE WHEN ABS({0}) >= 1 AND ABS({1}) >= 1 "
        f"THEN CASE WHEN ABS(({{0}} * {_DOWN}) * ({{1}} * {_DOWN})) < 1 THEN {{0}} * {{1}} END ELSE {{0}} * {{1}} END",
        repeats=(0, 1),
    )


def _quotient() -> Template:
    """Writes a quotient: only by a number below 1 it may become too large.

    A quotient of doubles is never as near to a power of two as to be rounded to it without being it, so that the
    comparison of the scaled one decides.
    """
    return Template(
        "CASE WHEN {1} = 0 THEN NULL WHEN ABS({1}) >= 1 THEN {0} / {1} "
        f"WHEN ABS({{0}}) < {_power(-51)} THEN {{0}} / {{1}} "
        f"WHEN ABS({{1}}) < {_power(-600)} AND ABS({{0}}) > {_power(500)} THEN NULL "
        f"WHEN ABS(({{0}} * {_DOWN}) / ({{1}} * {_UP})) < 1 THEN {{0}} / {{1}} END",
        repeats=(0, 1),
    )


def scale_double(exponent: int) -> Template:
    """Returns a double {0} times two to a power, NULL where that would be too large."""
    made = f"{{0}} * {_power(exponent)}"
    if exponent <= 0:
        return Template(made)
    return Template(f"CASE WHEN ABS({{0}}) < {_power(1024 - exponent)} THEN {made} END", repeats=(0,))


# --------------------------------------------------------------------------------------------------------- from a text

_FLOAT = r"\A[+-]?+(?:[0-9]++[.]?[0-9]*+|[.][0-9]++)(?:[eE][+-]?[0-9]++)?\z"
_LARGEST = number(sys.float_info.max)
_TOO_LARGE = str(2**1024 - 2**970).rstrip("0")  # the digits of the first number that is rounded to an infinite one


def _from_text() -> Template:
    """Reads a text as the nearest double; a cast holds what is too large at the largest double.

    Where the cast has that size, the text is taken for 0.d times ten to the power k, where d neither begins nor ends
    with 0, and compared with the first number that is too large. The arguments after the text: the double; digits
    without a sign, before the exponent; d with zeros at the end; k.
    """
    ten = r"CAST(REGEXP_REPLACE({0}, '\A[^eE]*+[eE]?', '') || '' AS DECIMAL(65,0))"
    large = f"WHEN ABS({{1}}) >= {_LARGEST} THEN"
    all_digits = "REPLACE({2}, '.', '')"
    whole = "CHAR_LENGTH(SUBSTRING_INDEX({2}, '.', 1))"
    steps = (
        f"CASE WHEN {{0}} REGEXP '{_FLOAT}' THEN CAST({{0}} AS DOUBLE) + 0e0 END",
        rf"CASE {large} REGEXP_REPLACE({{0}}, '\A[+-]|[eE].*+\z', '') END",
        f"TRIM(LEADING '0' FROM {all_digits})",
        f"CASE WHEN {{2}} IS NOT NULL THEN {whole} - CHAR_LENGTH({all_digits}) + CHAR_LENGTH({{3}}) + {ten} END",
    )
    return Template(
        "CASE WHEN {2} IS NULL THEN {1} WHEN {4} > 309 THEN NULL "
        f"WHEN {{4}} = 309 AND TRIM(TRAILING '0' FROM {{3}}) >= '{_TOO_LARGE}' THEN NULL ELSE {{1}} END",
        repeats=(0,),
        steps=steps,
    )


# ---------------------------------------------------------------------------------------------------------- elementary

_ZERO_BELOW = number(-746.0)  # the exponential of what lies below is zero
_NULL_ABOVE = number(700.0)  # above 2^1000, where results are NULL


def _powers() -> Template:
    """Writes powers: the result's logarithm, the argument after those given, says whether it is too large.

    It is computed with an exponent that is held to sizes at which the product stays a double.
    """
    held = f"GREATEST(LEAST({{1}}, {number(1e300)}), {number(-1e300)})"
    step = f"CASE WHEN {{0}} = 0 THEN NULL ELSE {held} * LN(ABS({{0}})) END"
    return Template(
        "CASE WHEN {0} = 0 AND {1} > 0 THEN 0e0 WHEN {0} = 0 AND {1} = 0 THEN 1e0 WHEN {0} = 0 THEN NULL "
        f"WHEN {{0}} < 0 AND {{1}} <> FLOOR({{1}}) THEN NULL WHEN {{2}} > {_NULL_ABOVE} THEN NULL "
        f"WHEN {{2}} < {_ZERO_BELOW} THEN 0e0 WHEN {{2}} IS NOT NULL THEN POW({{0}}, {{1}}) END",
        repeats=(0, 1),
        steps=(step,),
        gridded=True,
    )


def _series() -> str:
    """Writes the hyperbolic sine of a number from -1 to 1 by its power series, without a difference of equal sizes."""
    text = "1e0"
    for place in range(16, 0, -2):
        text = f"(1e0 + {{0}} * {{0}} / {number(place * (place + 1))} * {text})"
    return f"{{0}} * {text}"


_SINH = "(EXP({0}) - EXP(-{0})) / 2e0"
_COSH = "(EXP({0}) + EXP(-{0})) / 2e0"
_HELD = f"ABS({{0}}) < {_NULL_ABOVE}"


def _put_on_grid(text: str) -> Template:
    return Template(text, repeats=(0,), gridded=True)


DOUBLES: Templates = {
    ("add", Type.FLOAT): _sum("+"),
    ("subtract", Type.FLOAT): _sum("-"),
    ("multiply", Type.FLOAT): _product(),
    "divide": _quotient(),
    "floor": Template("FLOOR({0}) + 0e0"),
    "ceil": Template("CEILING({0}) + 0e0"),
    # The nearest, halves away from zero; the rest after the whole part is exact.
    "round": Template(
        "SIGN({0}) * (FLOOR(ABS({0})) + CASE WHEN ABS({0}) - FLOOR(ABS({0})) >= 5e-1 THEN 1e0 ELSE 0e0 END)",
        repeats=(0,),
    ),
    ("to_int", Type.FLOAT): Template(
        f"CASE WHEN {{0}} >= {number(-(2.0**63))} AND {{0}} < {number(2.0**63)} "
        "THEN CAST(CASE WHEN {0} < 0 THEN CEILING({0}) ELSE FLOOR({0}) END AS SIGNED) END",
        repeats=(0,),
    ),
    "round_to_int": Template(  # whose cast rounds halves to the even one
        f"CASE WHEN {{0}} >= {number(-(2.0**63))} AND {{0}} < {number(2.0**63)} THEN CAST({{0}} AS SIGNED) END",
        repeats=(0,),
    ),
    ("to_float", Type.TEXT): _from_text(),
    "exp": _put_on_grid(f"CASE WHEN {{0}} < {_NULL_ABOVE} THEN EXP({{0}}) END"),
    "power": _powers(),
    "cube_root": Template(  # with one step of Newton's, for a third is no double
        "CASE WHEN {0} = 0 THEN 0e0 ELSE SIGN({0}) * ({1} - ({1} - ABS({0}) / ({1} * {1})) / 3e0) END",
        repeats=(0,),
        steps=("POW(ABS({0}), 1e0 / 3e0)",),
        gridded=True,
    ),
    "sinh": _put_on_grid(f"CASE WHEN ABS({{0}}) <= 1 THEN {_series()} WHEN {_HELD} THEN {_SINH} END"),
    "cosh": _put_on_grid(f"CASE WHEN {_HELD} THEN {_COSH} END"),
    "tanh": _put_on_grid(
        f"CASE WHEN ABS({{0}}) <= 1 THEN {_series()} / ({_COSH}) WHEN ABS({{0}}) > 20 THEN SIGN({{0}}) + 0e0 "
        "ELSE 1e0 - 2e0 / (EXP(2e0 * {0}) + 1e0) END"
    ),
}
"""The templates of what computes with doubles."""
