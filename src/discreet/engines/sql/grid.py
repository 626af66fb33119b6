"""A number as whole steps of a public grid, in SQL: clip(floor(x * 2^-exponent + 1/2), low, high), exactly.

Formal guarantee: the result equals the formula computed with rationals, for every double and every 64-bit integer. No
number is rounded on the way except where it cannot matter: multiplying a double by a power of two is exact unless it
falls below the smallest double, far from the half where the result would change; and s - floor(s) is exact below 1/2,
and where it is rounded it stays at or above. (floor(s + 1/2) would not do: 0.5 - 2^-54 would become 1.) The cases
of CASE keep NULL, which LEAST and GREATEST would turn into a bound.
"""

from __future__ import annotations

import sys
from fractions import Fraction

from discreet.engines.sql.expressions import Printer, Term
from discreet.exact import float_above, float_below
from discreet.plan.expressions.evaluation import INT_HIGH, INT_LOW
from discreet.plan.model.readings import Statistic
from discreet.plan.model.types import Type

_CLIP = "CASE WHEN {{0}} <= {low} THEN {bottom} WHEN {{0}} >= {high} THEN {top} ELSE {inside} END"
_NULL_OR = "CASE WHEN {{0}} IS NULL THEN NULL ELSE {inside} END"


def steps(printer: Printer, statistic: Statistic, argument: Term, kind: Type) -> Term:
    """The term of a sum as a named BIGINT, NULL where the argument is."""
    form = _whole_number if kind is Type.INT else _double
    return printer.name(form(printer, statistic, printer.name(argument)))


def _double(printer: Printer, statistic: Statistic, x: Term) -> Term:
    low, high = (Fraction(steps) * Fraction(2) ** statistic.exponent for steps in (statistic.low, statistic.high))
    bottom, top = _below(low), _above(high)
    clipped = printer.fill(_clip(_number(bottom), _number(top)), x)
    scale = _number(2.0**-statistic.exponent)
    scaled = printer.name(printer.fill(f"{{0}} * {scale}", clipped))
    whole = printer.fill(
        "CAST(floor({0}) AS BIGINT) + CAST({0} - floor({0}) >= CAST('0.5' AS DOUBLE) AS BIGINT)", scaled
    )
    if (Fraction(bottom), Fraction(top)) == (low, high):
        return whole
    return printer.fill(_clip(str(statistic.low), str(statistic.high)), printer.name(whole))


def _clip(low: str, high: str) -> str:
    return _CLIP.format(low=low, bottom=low, high=high, top=high, inside="{0}")


def _below(bound: Fraction) -> float:
    return float_below(max(bound, -Fraction(sys.float_info.max)))


def _above(bound: Fraction) -> float:
    return float_above(min(bound, Fraction(sys.float_info.max)))


def _number(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


def _whole_number(printer: Printer, statistic: Statistic, x: Term) -> Term:
    form = _finer if statistic.exponent <= 0 else _coarser
    return printer.fill(form(statistic), x)


def _finer(statistic: Statistic) -> str:
    """x * 2^k lies inside the bounds exactly if x lies inside theirs divided by 2^k; inside, it cannot overflow."""
    scale = 1 << -statistic.exponent
    return _CLIP.format(
        low=_wide(statistic.low // scale),
        bottom=statistic.low,
        high=_wide(-(-statistic.high // scale)),
        top=statistic.high,
        inside=f"{{0}} * {min(scale, 1 << 62)}",  # a larger scale leaves only x = 0 inside
    )


def _coarser(statistic: Statistic) -> str:
    """floor((x + half) / step), on numbers shifted to be positive, where rounding down is rounding towards zero."""
    step, half = 1 << statistic.exponent, 1 << (statistic.exponent - 1)
    if half > INT_HIGH:  # every x is nearest to zero
        return _NULL_OR.format(inside=max(statistic.low, min(statistic.high, 0)))
    base = max(statistic.low, INT_LOW // step - 1)
    inside = f"CAST((CAST({{0}} AS HUGEINT) + {half - base * step}) // {step} + {base} AS BIGINT)"
    return _CLIP.format(
        low=_wide((statistic.low + 1) * step - half - 1),
        bottom=statistic.low,
        high=_wide(statistic.high * step - half),
        top=statistic.high,
        inside=inside,
    )


def _wide(bound: int) -> str:
    """A bound to compare 64-bit integers with; beyond them, the first number that compares alike."""
    return str(max(INT_LOW - 1, min(INT_HIGH + 1, bound)))
