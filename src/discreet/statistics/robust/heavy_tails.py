"""The mean of data with heavy tails: clipped around a private median, with the bias of clipping inside the interval."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.mechanisms import Laplace, Quantile
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import FINE, NumericColumn, column
from discreet.statistics.noise_errors import half_width

MEDIAN, COUNT, SUM = 5, 2, 13  # how epsilon is shared; the count's part only where it is not public
_SIDE = Fraction(1, 10)  # of 1 - confidence, for each thing that is only bounded: median, distribution, count
_PER_SCALE = 1 << 10  # steps of the grid to `scale`
_MOST_STEPS = 1 << 43
_LIKELY = 1.3  # how far values are from the median, in scales: decides tau, and nothing else
_PER_TAU = 1 << 16  # units of the sum to tau, so that its noise has one law whatever tau is


def heavy_tailed_mean(
    x: Any,
    *,
    scale: Number,
    moment: Number = 2,
    bounds: Any = None,
    epsilon: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the mean of values with one bounded moment: E|X - mean|^moment <= scale^moment.

    Values are clipped at the distance tau around a private median c. Clipping moves the mean by at most (k - 1)^(k - 1)
    / k^k (scale + |c - mean|)^k / tau^(k - 1), k = moment; tau makes the sum of this and of the noise small, from
    public and released numbers only. The interval holds the bias, the sampling error (normal, of a deviation that the
    moment bounds) and the noise. If the stated moment is wrong, the interval is; privacy does not depend on it.

    Args:
        x: a vector of numbers, one for each unit.
        scale: public, the scale of the moment.
        moment: k, public, above 1, at most 20; 2 if all that is known is a standard deviation.
        bounds: public limits (low, high), as wide as need be: they enter by their logarithm only.
        epsilon: of everything that is released.
        neighbours: the relation to protect; under ADD_REMOVE the number of values is counted for a part of epsilon.
        confidence: the probability that the interval covers the population's mean.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, before anything is read.
        InvalidValue: if the values are no vector of numbers.

    Formal guarantee: epsilon-DP under the relation: a private quantile, a count with Laplace noise (ADD_REMOVE), and a
    sum of values within [-tau, tau], in whole units of tau / 65536, with Laplace noise for tau (ADD_REMOVE) or 2 tau
    (REPLACE); c and tau are functions of what was released before.

    >>> from discreet.noise import SeededBits
    >>> found = heavy_tailed_mean([0.0, 10.0] * 5000, scale=5, bounds=(-1e9, 1e9), epsilon=1, bits=SeededBits(1))
    >>> bool(found.low < 5 < found.high), found.high - found.low < 2
    (True, True)
    """
    low, high = check.limits(bounds=bounds)
    order = check.positive(moment=moment)
    if not 1 < order <= 20:
        raise InvalidParameter("moment", moment, "above 1 and at most 20", "Pass moment=2 for a standard deviation.")
    spread = check.positive(scale=scale)
    outside = 1 - check.probability(confidence=confidence)
    relation = Neighbours(neighbours)
    budget = Spending.of(epsilon).pure_epsilon
    fine = math.ceil((high - low) / spread * _PER_SCALE)
    if fine > _MOST_STEPS:
        raise InvalidParameter("scale", scale, "to be larger, compared with the bounds", "Narrow the bounds.")
    source = source_of(bits)
    values = column(x, bounds=bounds, neighbours=relation, fine=max(FINE, fine))
    plan = TailPlan.of(budget, values.width, relation, outside)
    return plan.estimate(values, float(order), float(spread / values.step), source)


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPlan:
    """The releases of a mean of heavy tails; everything is measured in steps of the column's grid.

    Attributes:
        median: the centre of clipping.
        count: how many values there are; None if that is public.
        total: the sum of clipped values, in units of tau / 65536.
        outside: 1 - confidence.
    """

    median: Quantile
    count: Laplace | None
    total: Laplace
    outside: Fraction

    @classmethod
    def of(cls, epsilon: Fraction, width: int, neighbours: Neighbours, outside: Fraction) -> TailPlan:
        """Returns the plan of a budget."""
        counted = neighbours is Neighbours.ADD_REMOVE
        part = epsilon / (MEDIAN + SUM + (COUNT if counted else 0))
        return cls(
            median=Quantile(
                epsilon=part * MEDIAN,
                quantile=Fraction(1, 2),
                bounds=(0, width),
                grid=Grid.integers(),
                neighbours=neighbours,
            ),
            count=Laplace(epsilon=part * COUNT, sensitivity=1) if counted else None,
            total=Laplace(epsilon=part * SUM, sensitivity=_PER_TAU * (1 if counted else 2)),
            outside=outside,
        )

    @property
    def event(self) -> Event:
        """Returns the event of all releases."""
        parts: list[Event] = [self.median.event]
        if self.count is not None:
            parts.append(self.count.event)
        return events.Composed([*parts, self.total.event])

    def estimate(self, values: NumericColumn, moment: float, scale: float, bits: Bits) -> Estimate:
        """Runs the releases, one after the other; each may use the ones before."""
        centre = int(self.median.release(values.steps, bits=bits))
        size, doubt = self._size(values, bits)
        far = scale * (1 + _distance(moment, self._tail_share(size - doubt)))
        tau = self._clip(size, moment, _LIKELY * scale, values.width)
        unit = tau / _PER_TAU
        mean = int(self.total.release(_clipped_sum(values, centre, tau), bits=bits)) * unit / size
        spread = min(scale if moment >= 2 else math.inf, math.sqrt(tau ** max(2 - moment, 0) * far ** min(moment, 2)))
        scales = [float(self.total.event.scale) * unit / size]
        if self.count is not None:
            scales.append(abs(mean) * float(self.count.event.scale) / size)
        left = 1 - float(self.outside * (1 - 3 * _SIDE))
        half = half_width(left, deviation=spread / math.sqrt(max(size - doubt, 1.0)), scales=scales)
        half = _with_bias(half + unit + 1, abs(mean), (moment, scale, far), tau)
        ends = np.clip(values.value([centre + mean, centre + mean - half, centre + mean + half]), *_limits(values))
        value, low, high = ends.tolist()
        return Estimate(value, low, high, self.event, confidence=1 - self.outside, private=bits.private)

    def _size(self, values: NumericColumn, bits: Bits) -> tuple[float, float]:
        """Returns how many values there are, public or noisy, and how much fewer there may be."""
        if self.count is None:
            return float(max(values.public_size, 1)), 0.0
        doubt = self.count.error(confidence=1 - self.outside * _SIDE)
        return float(max(int(self.count.release(values.size, bits=bits)), 1)), float(doubt)

    def _tail_share(self, size: float) -> float:
        """Returns the share of the population on either side of the released median, at least.

        The empirical share is 1/2 less the ranks that the choice may be off, the population's less by the inequality of
        Dvoretzky, Kiefer, Wolfowitz (Massart 1990).
        """
        if size <= 0:
            return 0.0
        chance = self.outside * _SIDE
        ranks = float(self.median.interval(0, confidence=1 - chance).high)
        return 0.5 - ranks / size - math.sqrt(math.log(2 / float(chance)) / (2 * size))

    def _clip(self, size: float, moment: float, far: float, width: int) -> int:
        """Returns the tau with the smallest sum of the bias bound b / tau^(k - 1) and noise's reach, z tau / size."""
        reach = math.log(1 / float(self.outside)) * float(self.total.event.scale) / _PER_TAU / size
        tau = math.pow((moment - 1) * _clip_bias(moment, far, 1) / reach, 1 / moment)
        return min(max(math.ceil(tau), 1), width)


def _clipped_sum(values: NumericColumn, centre: int, tau: int) -> int:
    """Returns the sum of values clipped around the centre, each alone rounded to units of tau / 65536."""
    near = np.clip(values.steps - centre, -tau, tau)
    return int(((2 * near * _PER_TAU + tau) // (2 * tau)).sum())


def _distance(moment: float, tail: float) -> float:
    """Bounds how far a point with such shares of the law on either side can be from the mean, in units of `scale`.

    By Markov's inequality tail^(-1 / k); if there is a variance, by Cantelli's, sqrt((1 - tail) / tail).
    """
    if tail <= 0:
        return math.inf
    plain = math.pow(tail, -1 / moment)
    return min(plain, math.sqrt((1 - tail) / tail)) if moment >= 2 else plain


def _with_bias(half: float, moved: float, law: tuple[float, float, float], tau: int) -> float:
    """Returns the half-width with the bias of clipping, from what is known of the distance between centre and mean.

    Whenever the mean is within a half-width of the estimate, and that is `moved` from the centre, it is within moved +
    half of the centre: a bound that makes the next bias, and so the half-width itself, smaller.
    """
    moment, scale, far = law
    whole = half + _clip_bias(moment, far, tau)
    for _ in range(4):
        far = min(far, scale + moved + whole)
        whole = half + _clip_bias(moment, far, tau)
    return whole


def _clip_bias(moment: float, far: float, tau: int) -> float:
    """Returns E(|Y| - tau)_+ at most, for E|Y|^k <= far^k: (y - tau) / y^k is largest at y = k tau / (k - 1)."""
    if math.isinf(far):
        return math.inf
    constant = math.pow(moment - 1, moment - 1) / math.pow(moment, moment)
    return constant * far * math.pow(far / tau, moment - 1)


def _limits(values: NumericColumn) -> tuple[float, float]:
    return float(values.low), float(values.top)
