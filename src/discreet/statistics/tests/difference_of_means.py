"""The private comparison of two means."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import NumericColumn, column
from discreet.statistics.noise_errors import beyond, deviation, half_width, number_noise
from discreet.statistics.tests.results import TestResult

Alternative = Literal["two-sided", "greater", "less"]
Noise = Laplace | Gaussian

_SUM, _SQUARE, _COUNT = Fraction(55), Fraction(15), Fraction(30)
_CAREFUL = 1.3  # deviations of its own noise by which the variance errs to the wide side


def difference_of_means_test(
    x: Any,
    y: Any,
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    alternative: Alternative = "two-sided",
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> TestResult:
    """Tests whether two samples of different units have the same mean, with an interval for the difference.

    Of each sample the sum and the sum of squares around the middle of the bounds are released, and under ADD_REMOVE
    the number of values. The p-value is that of a normal error with both samples' variances plus the noise, whose law
    is used as it is; variances err to the wide side.

    Formal guarantee: the event of the result, which keeps to the budget. A unit is in one sample, so both samples are
    released at the price of one (parallel composition); a replaced unit stays in its sample. Values are integers d
    around the middle with |d| <= w: the sum has sensitivity w under ADD_REMOVE and 2 w under REPLACE, squares d^2 // w
    have w, the number has 1.

    Args:
        x: a number for each unit of the first sample.
        y: likewise for the second; no unit is in both.
        bounds: public limits (low, high) of both.
        epsilon: with or without `delta`; or `rho` alone.
        delta: for Gaussian noise.
        rho: for Gaussian noise, as zCDP.
        alternative: "greater" is a larger mean of x.
        neighbours: the relation to protect.
        confidence: of the interval for mean(x) - mean(y).
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong; nothing has been read then.

    >>> from discreet.noise import SeededBits
    >>> x, y = np.linspace(0, 8, 900), np.linspace(1, 10, 900)
    >>> found = difference_of_means_test(x, y, bounds=(0, 10), epsilon=1, bits=SeededBits(1))
    >>> found.reject(0.01), round(found.estimate.value, 1)
    (True, -1.5)
    """
    spending, sure = Spending.of(epsilon, delta, rho), check.probability(confidence=confidence)
    relation = Neighbours(neighbours)
    if alternative not in ("two-sided", "greater", "less"):
        raise InvalidParameter("alternative", alternative, "to be 'two-sided', 'greater' or 'less'")
    plan = _Plan.of(spending, column([], bounds=bounds, neighbours=relation))
    source = source_of(bits)
    first, second = (plan.run(column(z, bounds=bounds, neighbours=relation), source) for z in (x, y))
    apart = first.mean - second.mean
    spread = (first.variance + second.variance) ** 0.5
    scales = [*first.scales, *second.scales]
    wide = half_width(sure, deviation=spread, scales=scales)
    both = beyond(apart, deviation=spread, scales=scales)
    p_value = both if alternative == "two-sided" else _one_side(both, apart, alternative)
    estimate = Estimate(apart, apart - wide, apart + wide, plan.event, confidence=sure, private=source.private)
    return TestResult(p_value=p_value, statistic=apart, event=plan.event, estimate=estimate, private=source.private)


def _one_side(both: float, apart: float, alternative: Alternative) -> float:
    return both / 2 if (apart > 0) == (alternative == "greater") else 1 - both / 2


@dataclass(frozen=True, slots=True)
class _Mean:
    """A private mean with the variance of its normal errors and the scales of its Laplace errors."""

    mean: float
    variance: float
    scales: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is released of one sample; the same for both."""

    sum: Noise
    square: Noise
    count: Noise | None

    @classmethod
    def of(cls, spending: Spending, empty: NumericColumn) -> _Plan:
        replaced = empty.neighbours is Neighbours.REPLACE
        weights = [_SUM, _SQUARE] if replaced else [_SUM, _SQUARE, _COUNT]
        parts = spending.shares(weights)
        return cls(
            sum=number_noise(parts[0], (2 if replaced else 1) * empty.width),
            square=number_noise(parts[1], empty.width),
            count=None if replaced else number_noise(parts[2], 1),
        )

    @property
    def event(self) -> Event:
        """Returns what both samples cost, each unit being in one of them."""
        parts = (self.sum, self.square, self.count)
        return events.Composed([part.event for part in parts if part is not None])

    def run(self, values: NumericColumn, bits: Bits) -> _Mean:
        """Runs the test in half steps d = 2 step - width around the middle."""
        around, width = 2 * values.steps - values.width, values.width
        total = float(self.sum.release(int(around.sum()), bits=bits))
        squares = float(self.square.release(int((around * around // width).sum()), bits=bits))
        size = float(values.size) if self.count is None else float(self.count.release(values.size, bits=bits))
        size = max(1.0, size)
        middle = min(max(total / size, -width), width)
        mean_square = (squares + _CAREFUL * deviation(self.square)) * width / size
        spread = min(max(mean_square - middle**2, 0.0), float(width) ** 2) / size
        return self._in_units(values, middle, spread, size)

    def _in_units(self, values: NumericColumn, middle: float, spread: float, size: float) -> _Mean:
        """Returns a mean in half steps; noise of the count moves it by its distance from the middle over n."""
        unit = float(values.step) / 2
        mean = float(values.low) + unit * (middle + values.width)
        weights = [(self.sum, 1.0), (self.count, abs(middle))]
        errors = [deviation(part) * weight * unit / size for part, weight in weights if part is not None]
        if isinstance(self.sum, Laplace):
            scales = tuple(error / float(np.sqrt(2)) for error in errors)  # a scale of b is a deviation of b sqrt 2
            return _Mean(mean, spread * unit**2, scales)
        return _Mean(mean, spread * unit**2 + sum(error**2 for error in errors), ())
