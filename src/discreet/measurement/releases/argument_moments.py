"""Moments of one argument: forms that count its values and add up their powers, and what follows from these.

Values whose number is private are paid for in two ways. *Paired* sums of x - low and of x - high tell count and sum for
the price of one sum, best under Laplace noise. *Centred* sums of x - middle come with a count of rows that all
arguments share, best under Gaussian noise and for many arguments. Both can count the rows without a value as well, for
nothing: a row has a value or it has none, and so it moves either the sums or the number of NULLs.

Squares count from the middle of the bounds, and from half of the largest one, so that they are as small as they can be:
with u = x - middle, a row adds q = u^2 - s, where s is half of the largest u^2. The points (u, q) of all values lie in
a trapezoid: below the chord of the parabola, above its lowest point and above its tangents at both ends.

With cubes u^3 as well, all moves lie in the box of their ends, which a row at the upper bound reaches in all three
at once: the sum, the square and the cube of the largest value are the largest there are. So the box has no longer
diagonal, in any weighted norm, than such a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.measurement.releases.additive import JointStatistics, LinearCombination
from discreet.measurement.releases.grids import Steps
from discreet.plan.analysis.stability import Corner
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSums:
    """The power sums of one argument, from released statistics.

    Args:
        powers: sums of statistics that are: for 0 the number of values, for 1 the sum of x - centre, in steps, for 2
            the sum of (x - middle)^2 less half of the largest, in squares of steps, for 3 that of (x - middle)^3.
        steps: the grid and the bounds; None if values are only counted.
        centre: in steps.
    """

    powers: Mapping[int, LinearCombination]
    steps: Steps | None = None
    centre: Fraction = Fraction(0)

    def power(self, exponent: int) -> LinearCombination:
        """Returns the sum of one power.

        Raises:
            InternalError: if no layout was asked for it.
        """
        if exponent not in self.powers:
            raise InternalError(f"No released statistic has the sum of the power {exponent}.")
        return self.powers[exponent]

    @property
    def grid(self) -> Steps:
        """Returns the grid of an argument that is added up.

        Raises:
            InternalError: if its values are only counted.
        """
        if self.steps is None:
            raise InternalError("Values that are only counted have no grid.")
        return self.steps


def clipped_sum(argument: Expression, steps: Steps, shift: int = 0) -> Statistic:
    """Returns the sum of x - shift over values clipped to their bounds, in fine steps; NULL adds nothing."""
    exponent, low, high = steps.grid
    return Statistic(kind="sum", argument=argument, exponent=exponent, low=low, high=high, shift=shift << steps.finer)


def square_sum(argument: Expression, steps: Steps) -> Statistic:
    """Returns the sum of (x - middle)^2 less half of the largest square, over values clipped to their bounds."""
    term = clipped_sum(argument, steps, steps.middle)
    return replace(term, kind="product", factor=term, less=half_square(steps) << 2 * steps.finer)


def cube_sum(argument: Expression, steps: Steps) -> Statistic:
    """Returns the sum of (x - middle)^3 over values clipped to their bounds."""
    term = clipped_sum(argument, steps, steps.middle)
    return replace(term, kind="product", factor=replace(term, kind="product", factor=term))


def half_square(steps: Steps) -> int:
    """Returns what squares count from: half of the largest."""
    return (steps.high - steps.middle) ** 2 // 2


def product_error(one: Steps, other: Steps) -> Fraction:
    """Bounds how far rounding moves the product of two values, each counted from its middle: no further than sides."""
    sides = [(steps.high - steps.middle) * steps.step for steps in (one, other)]
    return sides[0] * other.error + sides[1] * one.error + one.error * other.error


def power_error(steps: Steps, power: int) -> Fraction:
    """Bounds how far rounding moves a power of a value counted from its middle: no further than at the side."""
    side = (steps.high - steps.middle) * steps.step
    return Fraction((side + steps.error) ** power - side**power)


# ---------------------------------------------------------------------------------------------------- counts, and sums


def values_form(argument: Expression, *, nulls: bool = False) -> JointStatistics:
    """Counts kept rows whose argument is not NULL, and those where it is: a row moves one of the two by one."""
    values = Statistic(kind="values", argument=argument)
    if not nulls:
        return JointStatistics(statistics=(values,), corners=((1,),))
    return JointStatistics(statistics=(values, Statistic(kind="nulls", argument=argument)), corners=((1, 0), (0, 1)))


def sum_form(argument: Expression, steps: Steps) -> JointStatistics:
    """Adds values, clipped to public bounds, as whole steps: a row adds a number of steps between the bounds."""
    corners = tuple((end,) for end in (steps.low, steps.high) if end)
    return JointStatistics(statistics=(clipped_sum(argument, steps),), corners=corners, grains=(steps.finer,))


# ----------------------------------------------------------------------------------------------------------- one row


def trapezoid(steps: Steps) -> tuple[tuple[int, int], ...]:
    """Returns corners around all points (u, u^2 - s), in whole steps.

    The tangent at an end e of the parabola meets its lowest level at e / 2; a corner a little farther out makes the
    trapezoid larger, not smaller.
    """
    left, right, less = steps.middle - steps.low, steps.high - steps.middle, half_square(steps)
    top = (-left, left**2 - less), (right, right**2 - less)
    return *top, (-left // 2, -less), (-(-right // 2), -less)


def _corners(steps: Steps, order: int) -> tuple[Corner, ...]:
    """Returns corners of what a row adds to weighted sums of u, q and cubes; rounded sums reach 1 further each."""
    left, right = steps.middle - steps.low, steps.high - steps.middle
    if order == 1:
        return (right,), (-left,)
    first, *more = _weights(steps, order)
    if order == 2:
        corners = tuple((first * u, q) for u, q in trapezoid(steps))
        if not steps.finer:
            return corners
        return tuple((u + i, q + j) for u, q in corners for i, j in product((-1, 1), repeat=2))
    if steps.finer:
        raise InternalError("Cubes are added up on one grid.")
    less = half_square(steps)
    ends = (first * -left, first * right), (more[0] * -less, more[0] * (right**2 - less)), (-(left**3), right**3)
    return tuple(product(*ends))


def _weights(steps: Steps, order: int) -> tuple[int, ...]:
    """Returns the weight of each sum relative to the highest power, so that all end with about the same noise.

    With squares, a centred sum moves as far as they do, a pair twice as far: the error of a variance has both parts,
    and counts and means come from the pair. With cubes, a pair and the squares move as far as they do.
    """
    side = steps.high - steps.middle
    if order == 3:
        return max(1, -(-(side**2) // 2)), 2 * side, 1
    return (1,) if order == 1 else (max(1, -(-side // 2)), 1)


def _higher(argument: Expression, steps: Steps, order: int) -> list[Statistic]:
    """Returns the sums of the powers above the first, weighted."""
    made = [build(argument, steps) for build in (square_sum, cube_sum)[: order - 1]]
    return [replace(each, times=times) for each, times in zip(made, _weights(steps, order)[1:], strict=True)]


def _grains(steps: Steps, order: int) -> tuple[int, ...]:
    return tuple(power * steps.finer for power in range(1, order + 1))


# ------------------------------------------------------------------------------------------------------------- paired


def paired_form(argument: Expression, steps: Steps, order: int = 1, *, nulls: bool) -> JointStatistics:
    """Adds up x - low and x - high, and higher powers up to an order, for Laplace noise.

    One row moves the pair by (x - low, x - high), whose L1 norm is high - low whatever x is: one Laplace draw on each
    costs no more than one sum would, and the count comes free (Kulesza, Suresh, Wang 2024). A NULL counts as much as
    the width, so that it moves the three by the same L1 norm. Squares move by half of the largest at most, which a row
    does at both ends: the L1 norm of the corners is attained.
    """
    times = _weights(steps, order)[0]
    least, most = times * (steps.low - steps.middle), times * (steps.high - steps.middle)
    pair = [replace(clipped_sum(argument, steps, end), times=times) for end in (steps.low, steps.high)]
    corners: list[Corner] = [(u - least, u - most, *rest) for u, *rest in _corners(steps, order)]
    statistics, grains = (*pair, *_higher(argument, steps, order)), (steps.finer, *_grains(steps, order))
    if not nulls:
        return JointStatistics(statistics=statistics, corners=tuple(corners), grains=grains)
    missing = Statistic(kind="nulls", argument=argument, times=times * steps.width)
    corners = [*((*corner, 0) for corner in corners), (*[0] * len(statistics), times * steps.width)]
    return JointStatistics(statistics=(*statistics, missing), corners=tuple(corners), grains=(*grains, 0))


def paired_sums(place: int, steps: Steps, order: int) -> PowerSums:
    """Returns the sums of the paired form at a place: its difference is the width times the count, its mean centred."""
    above, below, times = LinearCombination.at(place), LinearCombination.at(place + 1), _weights(steps, order)[0]
    return PowerSums(
        powers={
            0: (above + below * -1) * Fraction(1, steps.width * times),
            1: (above + below) * Fraction(1, 2 * times),
            **_powers(place + 2, steps, order),
        },
        steps=steps,
        centre=Fraction(steps.low + steps.high, 2),
    )


def paired_nulls(place: int, steps: Steps, order: int) -> LinearCombination:
    """Returns the number of NULLs, from the last statistic of the paired form at a place."""
    return LinearCombination.at(place + order + 1) * Fraction(1, _weights(steps, order)[0] * steps.width)


# ------------------------------------------------------------------------------------------------------------ centred


def centred_form(argument: Expression, steps: Steps, order: int = 1) -> JointStatistics:
    """Adds up x - middle and higher powers up to an order, and counts NULLs, in addition to a count of rows.

    One row moves the sum by at most half the width, up to one step, or the number of NULLs by one; centring makes the
    sum's move as short as it can be. A NULL counts as much as the longest such move.
    """
    summed = replace(clipped_sum(argument, steps, steps.middle), times=_weights(steps, order)[0])
    missing = Statistic(kind="nulls", argument=argument, times=_longest(steps, order))
    corners = [(*corner, 0) for corner in _corners(steps, order) if any(corner)]
    return JointStatistics(
        statistics=(summed, *_higher(argument, steps, order), missing),
        corners=(*corners, (*[0] * order, _longest(steps, order))),
        grains=(*_grains(steps, order), 0),
    )


def centred_sums(place: int, steps: Steps, order: int, rows: LinearCombination) -> PowerSums:
    """Returns the sums of the centred form at a place, given the number of rows."""
    return PowerSums(
        powers={
            0: rows + LinearCombination.at(place + order) * Fraction(-1, _longest(steps, order)),
            1: LinearCombination.at(place) * Fraction(1, _weights(steps, order)[0]),
            **_powers(place + 1, steps, order),
        },
        steps=steps,
        centre=Fraction(steps.middle),
    )


def _powers(place: int, steps: Steps, order: int) -> dict[int, LinearCombination]:
    """Returns the sums of the powers above the first, from a place on."""
    weights = enumerate(_weights(steps, order)[1:])
    return {2 + i: LinearCombination.at(place + i) * Fraction(1, weight) for i, weight in weights}


def _longest(steps: Steps, order: int) -> int:
    """Returns the longest move of a row's value in the L1 norm, which a NULL counts as much as."""
    return max(sum(map(abs, corner)) for corner in _corners(steps, order))
