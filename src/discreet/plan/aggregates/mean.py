"""AVG: two ways to pay for a mean whose number of rows is private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.plan.aggregates.form import Finished, Form, Noised
from discreet.plan.aggregates.steps import Steps
from discreet.plan.nodes import Expression
from discreet.plan.reading import Statistic
from discreet.plan.schema import Bounds


def mean_forms(argument: Expression, bounds: Bounds) -> tuple[Form, ...]:
    """The pair for Laplace noise, the centred sum with a count for Gaussian noise."""
    steps = Steps.of(bounds, argument.type)
    return PairedMean.of(argument, steps), CentredMean.of(argument, steps)


def _sum(argument: Expression, steps: Steps, shift: int) -> Statistic:
    return Statistic(
        kind="sum", argument=argument, exponent=steps.exponent, low=steps.low, high=steps.high, shift=shift
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedMean(Form):
    """The mean by the sums of x - low and of x - high.

    One row moves the pair by (x - low, x - high), whose L1 norm is high - low whatever x is: one Laplace draw on each
    costs no more than one sum would, and the count comes free (Kulesza, Suresh, Wang 2024).
    """

    steps: Steps

    @classmethod
    def of(cls, argument: Expression, steps: Steps) -> PairedMean:
        """The form of an argument with bounds in steps."""
        statistics = _sum(argument, steps, steps.low), _sum(argument, steps, steps.high)
        return cls(statistics=statistics, corners=((steps.width, 0), (0, -steps.width)), steps=steps)

    def finish(self, noised: Sequence[Noised]) -> Finished:
        """low + width * a / (a + b), a and b being the sums above low and below high, at least one row's worth."""
        above, negative = noised
        below = Noised(-negative.value, negative.error)
        weight = max(above.value + below.value, self.steps.width)
        low, high = _ratio(above.low, below.high, otherwise=0), _ratio(above.high, below.low, otherwise=1)
        share = min(max(Fraction(above.value, weight), low), high)
        return Finished(self._mean(share), self._mean(low), self._mean(high))

    def _mean(self, share: Fraction) -> Fraction:
        return (self.steps.low + self.steps.width * share) * Fraction(2) ** self.steps.exponent


def _ratio(above: int, below: int, otherwise: int) -> Fraction:
    """a / (a + b) for sums of at least 0; without any rows, the end of the interval."""
    a, b = max(above, 0), max(below, 0)
    return Fraction(a, a + b) if a + b else Fraction(otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class CentredMean(Form):
    """The mean by the sum of x - middle and the number of values.

    One row moves the two by (t, 1) with |t| at most half the width, up to one step; centring makes the first as short
    as it can be.
    """

    steps: Steps

    @classmethod
    def of(cls, argument: Expression, steps: Steps) -> CentredMean:
        """The form of an argument with bounds in steps."""
        statistics = _sum(argument, steps, steps.middle), Statistic(kind="values", argument=argument)
        corners = (steps.low - steps.middle, 1), (steps.high - steps.middle, 1)
        return cls(statistics=statistics, corners=corners, steps=steps)

    def finish(self, noised: Sequence[Noised]) -> Finished:
        """middle + sum / count, the count being at least one, within the bounds."""
        centred, count = noised
        least, most = max(count.low, 1), max(count.high, 1)
        return Finished(
            self._mean(Fraction(centred.value, max(count.value, 1))),
            self._mean(min(Fraction(centred.low, least), Fraction(centred.low, most))),
            self._mean(max(Fraction(centred.high, least), Fraction(centred.high, most))),
        )

    def _mean(self, offset: Fraction) -> Fraction:
        inside = min(max(self.steps.middle + offset, Fraction(self.steps.low)), Fraction(self.steps.high))
        return inside * Fraction(2) ** self.steps.exponent
