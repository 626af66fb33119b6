"""AVG, and SUM and COUNT beside it: two ways to pay for values whose number is private.

Both can count the rows without a value as well, for nothing: a row has a value or it has none, and so it moves either
the sums or the number of NULLs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.measurement.aggregates.form import Form, Ratio, Total
from discreet.measurement.aggregates.linear import Linear
from discreet.measurement.aggregates.steps import Steps
from discreet.measurement.aggregates.sum import clipped_sum
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """What is known of a bounded argument.

    Args:
        centred: the sum of x - centre, in steps.
        centre: in steps.
        values: how many x there are.
        steps: the grid and the bounds.
        squares: the sum of (x - middle)^2 less half of the largest, in squares of steps, if it is known.
    """

    centred: Linear
    centre: Fraction
    values: Linear
    steps: Steps
    squares: Linear | None = None

    @property
    def count(self) -> Total:
        """COUNT(x)."""
        return Total(self.values, whole=True, positive=True)

    @property
    def sum(self) -> Total:
        """SUM(x): the sum from the centre, and the centre once for each value."""
        return Total(
            (self.centred + self.values * self.centre) * self.steps.step,
            whole=self.steps.whole,
            error=self.steps.error,
            values=self.values,
            positive=self.steps.bounds.low >= 0,
        )

    @property
    def mean(self) -> Ratio:
        """AVG(x)."""
        step = self.steps.step
        return Ratio(
            top=self.centred * step,
            bottom=self.values,
            centre=self.centre * step,
            low=self.steps.bounds.low,
            high=self.steps.bounds.high,
            error=self.steps.error,
        )


def paired_form(argument: Expression, steps: Steps, *, nulls: bool) -> Form:
    """The sums of x - low and of x - high, for Laplace noise.

    One row moves the pair by (x - low, x - high), whose L1 norm is high - low whatever x is: one Laplace draw on each
    costs no more than one sum would, and the count comes free (Kulesza, Suresh, Wang 2024). A NULL counts as much as
    the width, so that it moves the three by the same L1 norm.
    """
    pair = clipped_sum(argument, steps, steps.low), clipped_sum(argument, steps, steps.high)
    corners, grains = ((steps.width, 0), (0, -steps.width)), (steps.finer, steps.finer)
    if not nulls:
        return Form(statistics=pair, corners=corners, grains=grains)
    missing = Statistic(kind="nulls", argument=argument, times=steps.width)
    return Form(
        statistics=(*pair, missing),
        corners=((*corners[0], 0), (*corners[1], 0), (0, 0, steps.width)),
        grains=(*grains, 0),
    )


def paired_moments(place: int, steps: Steps) -> Moments:
    """What the pair at a place tells: its difference is the width times the count, its mean is centred."""
    above, below = Linear.at(place), Linear.at(place + 1)
    return Moments(
        centred=(above + below) * Fraction(1, 2),
        centre=Fraction(steps.low + steps.high, 2),
        values=(above + below * -1) * Fraction(1, steps.width),
        steps=steps,
    )


def paired_nulls(place: int, steps: Steps) -> Linear:
    """The number of NULLs, from the third statistic of the form."""
    return Linear.at(place + 2) * Fraction(1, steps.width)


def centred_form(argument: Expression, steps: Steps) -> Form:
    """The sum of x - middle and the number of NULLs, beside a count of rows that all arguments share.

    One row moves the sum by at most half the width, up to one step, or the number of NULLs by one; centring makes the
    sum's move as short as it can be. A NULL counts as much as the longest such move.
    """
    ends = steps.low - steps.middle, steps.high - steps.middle
    longest = max(abs(end) for end in ends)
    missing = Statistic(kind="nulls", argument=argument, times=longest)
    corners = *((end, 0) for end in ends if end), (0, longest)
    return Form(
        statistics=(clipped_sum(argument, steps, steps.middle), missing),
        corners=tuple(corners),
        grains=(steps.finer, 0),
    )


def centred_moments(place: int, steps: Steps, rows: Linear) -> Moments:
    """What the form at a place tells, given the number of rows."""
    longest = max(steps.middle - steps.low, steps.high - steps.middle)
    return Moments(
        centred=Linear.at(place),
        centre=Fraction(steps.middle),
        values=rows + Linear.at(place + 1) * Fraction(-1, longest),
        steps=steps,
    )
