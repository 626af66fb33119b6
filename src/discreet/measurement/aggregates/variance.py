"""VARIANCE and STDDEV, and AVG, SUM and COUNT beside them: sums of values and of their squares, paid for together.

Squares count from the middle of the bounds, and from half of the largest one, so that they are as small as they can be:
with u = x - middle, a row adds q = u^2 - s, where s is half of the largest u^2. The points (u, q) of all values lie in
a trapezoid: below the chord of the parabola, above its lowest point and above its tangents at both ends.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

from discreet.measurement.aggregates.form import Form, Ratio, Variance
from discreet.measurement.aggregates.linear import Linear
from discreet.measurement.aggregates.mean import Moments, centred_moments, paired_moments
from discreet.measurement.aggregates.steps import Steps
from discreet.measurement.aggregates.sum import clipped_sum
from discreet.plan.analysis.stability import Corner
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Statistic


def half_square(steps: Steps) -> int:
    """What squares count from: half of the largest."""
    return (steps.high - steps.middle) ** 2 // 2


def square_sum(argument: Expression, steps: Steps) -> Statistic:
    """The sum of (x - middle)^2 less half of the largest square, over values clipped to their bounds."""
    term = clipped_sum(argument, steps, steps.middle)
    return replace(term, kind="product", factor=term, less=half_square(steps) << 2 * steps.finer)


def product_error(one: Steps, other: Steps) -> Fraction:
    """How far rounding can move the product of two values, each counted from its middle: no further than the sides."""
    sides = [(steps.high - steps.middle) * steps.step for steps in (one, other)]
    return sides[0] * other.error + sides[1] * one.error + one.error * other.error


def trapezoid(steps: Steps) -> tuple[tuple[int, int], ...]:
    """Corners around all points (u, u^2 - s), in whole steps.

    The tangent at an end e of the parabola meets its lowest level at e / 2; a corner a little farther out makes the
    trapezoid larger, not smaller.
    """
    left, right, less = steps.middle - steps.low, steps.high - steps.middle, half_square(steps)
    top = (-left, left**2 - less), (right, right**2 - less)
    return *top, (-left // 2, -less), (-(-right // 2), -less)


def _corners(steps: Steps) -> tuple[tuple[int, int], ...]:
    """The trapezoid with sums of u counted `_times`; where they and squares are rounded, each by less than 1 more."""
    corners = tuple((_times(steps) * u, q) for u, q in trapezoid(steps))
    if not steps.finer:
        return corners
    return tuple((u + i, q + j) for u, q in corners for i, j in product((-1, 1), repeat=2))


def _times(steps: Steps) -> int:
    """What a step of a sum counts for beside squares: a centred sum moves as far as the squares, a pair twice as far.

    The error of a variance has both parts, and counts and means come from the pair.
    """
    return max(1, -(-(steps.high - steps.middle) // 2))


def paired_spread_form(argument: Expression, steps: Steps, *, nulls: bool) -> Form:
    """The sums of x - low, of x - high and of squares, for Laplace noise; see `paired_form`.

    A row moves the first two by the width, whatever x is, and the squares by half of the largest at most, which it does
    at both ends: the L1 norm of the corners is attained.
    """
    times = _times(steps)
    least, most = times * (steps.low - steps.middle), times * (steps.high - steps.middle)
    pair = [replace(clipped_sum(argument, steps, end), times=times) for end in (steps.low, steps.high)]
    corners: list[Corner] = [(u - least, u - most, q) for u, q in _corners(steps)]
    grains = steps.finer, steps.finer, 2 * steps.finer
    if not nulls:
        return Form(statistics=(*pair, square_sum(argument, steps)), corners=tuple(corners), grains=grains)
    missing = Statistic(kind="nulls", argument=argument, times=times * steps.width)
    corners = [*((*corner, 0) for corner in corners), (0, 0, 0, times * steps.width)]
    return Form(statistics=(*pair, square_sum(argument, steps), missing), corners=tuple(corners), grains=(*grains, 0))


def paired_spread(place: int, steps: Steps) -> tuple[Moments, Linear]:
    """What the form at a place tells, and the number of its NULLs where it counts them."""
    once = Fraction(1, _times(steps))
    plain = paired_moments(place, steps)
    known = replace(plain, centred=plain.centred * once, values=plain.values * once)
    nulls = Linear.at(place + 3) * Fraction(1, _times(steps) * steps.width)
    return replace(known, squares=Linear.at(place + 2)), nulls


def centred_spread_form(argument: Expression, steps: Steps) -> Form:
    """The sums of x - middle and of squares, and the number of NULLs, beside a count of rows; see `centred_form`."""
    corners = [(u, q, 0) for u, q in _corners(steps) if u or q]
    missing = Statistic(kind="nulls", argument=argument, times=_longest(steps))
    summed = replace(clipped_sum(argument, steps, steps.middle), times=_times(steps))
    return Form(
        statistics=(summed, square_sum(argument, steps), missing),
        corners=(*corners, (0, 0, _longest(steps))),
        grains=(steps.finer, 2 * steps.finer, 0),
    )


def _longest(steps: Steps) -> int:
    """The longest move of a row's value, which a NULL counts as much as."""
    return max(abs(u) + abs(q) for u, q in _corners(steps))


def centred_spread(place: int, steps: Steps, rows: Linear) -> Moments:
    """What the form at a place tells, given the number of rows."""
    plain = centred_moments(place, steps, rows)
    return replace(
        plain,
        centred=plain.centred * Fraction(1, _times(steps)),
        values=rows + Linear.at(place + 2) * Fraction(-1, _longest(steps)),
        squares=Linear.at(place + 1),
    )


def variance(known: Moments, squares: Linear, *, sample: bool, root: bool) -> Variance:
    """How a variance, or its root, follows from moments."""
    steps = known.steps
    unit, most = steps.step**2, (steps.high - steps.middle) ** 2
    mean_square = Ratio(
        top=squares * unit,
        bottom=known.values,
        centre=half_square(steps) * unit,
        low=Fraction(0),
        high=most * unit,
        error=product_error(steps, steps),
    )
    origin = steps.middle * steps.step
    return Variance(mean=known.mean, squares=mean_square, origin=origin, sample=sample, root=root)
