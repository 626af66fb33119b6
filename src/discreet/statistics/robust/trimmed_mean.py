"""Trimmed means and medians with noise scaled to their smooth sensitivity: little noise where the data is calm."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import NumericColumn, column
from discreet.statistics.robust import smooth_sensitivity as smooth
from discreet.statistics.robust.centre import FINE, CentrePlan, known_target, only_replace, some_values

_HALF = Fraction(1, 2)


def trimmed_mean(
    x: Any,
    *,
    bounds: Any = None,
    epsilon: Number | None = None,
    trim: Number = Fraction(1, 10),
    beta: Number | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    target: str = "population",
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the mean of the values between two quantiles, robust against the shares that it leaves out.

    The interval covers the trimmed mean of the population: the sampling error is normal with a deviation of at most
    half the range of what is kept, over (1 - 2 trim) sqrt(n) (Tukey and McLaughlin 1963; Popoviciu 1935).

    Args:
        x: a vector of numbers, one for each unit.
        bounds: public limits (low, high); they may be wide, because noise follows the middle of the data.
        epsilon: of everything that is released; no delta is needed.
        trim: the share left out on each side, from 0, below one half; the number is floor(trim n).
        beta: the smoothness, public and fixed in advance, below half of epsilon; None is a good choice.
        neighbours: "replace": the number of values is public.
        target: "population", or "sample" for an interval around the trimmed mean of these values.
        confidence: the probability that the interval covers it.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, before anything is read.
        InvalidValue: if the values are no vector of numbers, or none.

    Formal guarantee: epsilon-DP under REPLACE, as the sum of three pure releases (`discreet.statistics.robust.centre`).

    >>> from discreet.noise import SeededBits
    >>> print(trimmed_mean([1.0] * 500 + [2.0] * 500, bounds=(0, 1000), epsilon=1, bits=SeededBits(1)))
    1.49526 [1.4541, 1.53641] NOT PRIVATE (seeded randomness)
    """
    share = check.share(trim=trim)
    if share >= _HALF:
        raise InvalidParameter("trim", trim, "below 1/2", "Use smooth_median to keep only the middle.")
    only_replace(neighbours)
    request = _Request.of(bounds, epsilon, beta, target, confidence)
    values = column(x, bounds=bounds, neighbours=Neighbours.REPLACE, fine=FINE)
    n = some_values(values.public_size)
    cut = math.floor(share * n)
    kept = n - 2 * cut
    plan = request.plan(kept, (kept, cut))
    return _release(values, cut, plan, (0, math.sqrt(n) / (2 * kept)), source_of(bits))


def smooth_median(
    x: Any,
    *,
    bounds: Any = None,
    epsilon: Number | None = None,
    beta: Number | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    target: str = "population",
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the median, with noise scaled to its smooth sensitivity.

    It is half-way between the middle two of an even number of values.

    The interval covers the median of the population: its sampling error is normal, and the order statistics sqrt(n)
    ranks beyond the middle are two deviations away.

    Args:
        x: a vector of numbers, one for each unit.
        bounds: public limits (low, high).
        epsilon: of everything that is released; no delta is needed.
        beta: the smoothness, public and fixed in advance, below half of epsilon; None is a good choice.
        neighbours: "replace": the number of values is public.
        target: "population", or "sample" for an interval around the median of these values.
        confidence: the probability that the interval covers it.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, before anything is read.
        InvalidValue: if the values are no vector of numbers, or none.

    Formal guarantee: epsilon-DP under REPLACE, as the sum of three pure releases (`discreet.statistics.robust.centre`).

    >>> from discreet.noise import SeededBits
    >>> found = smooth_median(range(1001), bounds=(0, 1000), epsilon=1, bits=SeededBits(1))
    >>> found.low < 500 < found.high
    True
    """
    only_replace(neighbours)
    request = _Request.of(bounds, epsilon, beta, target, confidence)
    values = column(x, bounds=bounds, neighbours=Neighbours.REPLACE, fine=FINE)
    n = some_values(values.public_size)
    cut = (n - 1) // 2
    beyond = min(math.isqrt(n) + 1, cut)
    plan = request.plan(n - 2 * cut, (beyond, cut - beyond))
    return _release(values, cut, plan, (beyond, math.sqrt(n) / (2 * max(beyond, 1))), source_of(bits))


class _Request:
    """Holds what a caller asked for, checked before any value is read."""

    __slots__ = ("beta", "epsilon", "outside", "population")

    def __init__(self, epsilon: Fraction, beta: Number | None, outside: Fraction, *, population: bool) -> None:
        self.epsilon, self.beta, self.outside, self.population = epsilon, beta, outside, population

    @classmethod
    def of(cls, bounds: Any, epsilon: Any, beta: Any, target: str, confidence: Any) -> _Request:
        check.limits(bounds=bounds)
        budget = Spending.of(epsilon).pure_epsilon
        outside = 1 - check.probability(confidence=confidence)
        found = cls(budget, beta, outside, population=known_target(target))
        found.plan(1, (1, 1))
        return found

    def plan(self, kept: int, ranks: tuple[int, int]) -> CentrePlan:
        """Returns one step for each value kept is the floor: small, and above 0."""
        return CentrePlan.of(
            epsilon=self.epsilon,
            beta=self.beta,
            floor=Fraction(1, kept),
            ranks=ranks,
            outside=self.outside,
            population=self.population,
        )


def _release(values: NumericColumn, cut: int, plan: CentrePlan, error: tuple[int, float], bits: Bits) -> Estimate:
    """Returns the mean of all but `cut` values on each side.

    The deviation of its sampling error is a factor times the gap to so many ranks beyond: `error` holds both.
    """
    n, width = values.public_size, values.width
    steps = np.sort(values.steps)
    kept = n - 2 * cut
    centre = Fraction(int(steps[cut : n - cut].sum()), kept)
    sensitivity = smooth.trimmed_mean(steps, width, cut, plan.noise.beta, plan.noise.floor)
    beyond, factor = error

    def compute_bound() -> Fraction:
        return _widest(steps, width, (cut + 1, n - cut), beyond, plan.spread_beta) * Fraction(factor)

    found = plan.release_interval(centre, sensitivity, compute_bound, max(kept, n // 2), bits)
    low, high, step = float(values.low), float(values.top), float(values.step)
    ends = low + step * np.array([found.low - 1, found.high + 1])  # values were rounded to steps
    value, *inside = np.clip([ends.mean(), *ends], low, high).tolist()
    return Estimate(value, inside[0], inside[1], plan.event, confidence=1 - plan.outside, private=bits.private)


def _widest(steps: Any, width: int, ranks: tuple[int, int], beyond: int, beta: Fraction) -> Fraction:
    """Returns a smooth bound of the distance from order statistics so many ranks beyond to the middle's other end."""
    left, right = ranks
    sides = {(left - beyond, right), (left, right + beyond)}
    return max(smooth.smooth_gap(steps, width, side, beta, Fraction(1)) for side in sides)
