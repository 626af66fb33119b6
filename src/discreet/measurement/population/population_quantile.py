"""Quantiles of a population, between released quantiles of the sample on either side of them.

A quantile of the sample is released with two fences around it, which hold it whatever the noise. How far the quantile
of the population is from it depends on how dense the values are there, which nothing tells but other quantiles of the
same question: those whose share is so much smaller or larger that sampling does not reach them.

Theorem. Let c be the q-quantile of the N people's rows, and D the number of rows of the sample up to c, less q times
the number n of its rows. Its expectation is zero, but for one row, and its standard deviation at most
sqrt((1 - f) N/(N - 1) k q (1 - q) E[n]) for at most k rows of one person, as that of any part within [-q, 1 - q]
(`population_estimators`). Let |D| <= R. Then c is at or above the r-quantile of the sample if (q - r) n >= R + 1, and
at or below it if (r - q) n >= R + 1; and so it is beyond the fence of that quantile on the far side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.dataclass import dataclass
from discreet.lazy import special
from discreet.measurement.aggregates.quantile import QuantileEstimator
from discreet.measurement.intervals.arithmetic import Floats
from discreet.measurement.intervals.estimators import TotalEstimator
from discreet.measurement.intervals.noise import ULPS, Noise
from discreet.measurement.population.population_estimators import PopulationTotal
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.rank_draws import RISK, RankDraw
from discreet.plan.model.sample import SimpleSample
from discreet.plan.post.outputs import NoisyNumber, NoisyTime

_SHARE = Fraction(1, 20)
"""Of the risk: that a sample has fewer values than are supposed, and that it was to be expected to have more."""

_INTERPOLATED = 2  # ranks, between which a quantile may lie: one in the sample, one in the population


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationQuantile(QuantileEstimator):
    """A quantile of the population.

    Args:
        nearby: the other quantiles of the same values.
        number: how many values there are.
        sample: how it was drawn.
        rows: how many values one person has at most.
    """

    nearby: tuple[RankDraw, ...]
    number: TotalEstimator
    sample: SimpleSample
    rows: int

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> list[NoisyNumber | NoisyTime]:
        """Returns the quantile of each row; where no other quantile is far enough away, an end is that of the bounds.

        Fences of both sides together miss with RISK, the number of values with two shares of the risk.
        """
        left = outside * (1 - 2 * _SHARE) - RISK
        if left <= 0:
            return [self.between(row, self.draw.steps.low, self.draw.steps.high) for row in rows.tolist()]
        apart = self._ranks_apart(noise, rows, outside * _SHARE, left)
        return [
            self.between(row, self._low(row, far), self._high(row, far))
            for row, far in zip(rows.tolist(), apart.tolist(), strict=True)
        ]

    def _ranks_apart(self, noise: Noise, rows: Integers, share: Fraction, left: Fraction) -> Floats:
        """Returns how far apart shares must be, in each row; infinite where there may be no value."""
        q, reach = float(self.draw.need.share), float(self.number.miss(noise, share))
        most = Fraction(self.rows)
        total = PopulationTotal(base=self.number, sample=self.sample, low=Fraction(0), high=most)
        counted = total.expected(noise, rows, share)
        deviation = np.sqrt(float(self.sample.design_factor) * self.rows * q * (1 - q) * counted.high)
        normal, uneven = float(-special.ndtri(float(left) / 2)), float(self.sample.unevenness)
        ranks = normal * deviation * (1 + ULPS) + self.rows * (0.5 + uneven) + _INTERPOLATED
        least = counted.value - reach
        return np.asarray(np.where(least > 0, ranks / np.where(least > 0, least, 1.0), math.inf))

    def _low(self, row: Sequence[int], apart: float) -> int:
        """Returns the lower fence of the nearest quantile that is far enough below."""
        q = self.draw.need.share
        far = [each for each in self.nearby if each.certain and each.fences and q - each.need.share >= apart]
        found = max(far, key=lambda each: each.need.share, default=None)
        return self.draw.steps.low if found is None else min(row[found.place + 1], row[found.place + 2])

    def _high(self, row: Sequence[int], apart: float) -> int:
        """Returns the upper fence of the nearest quantile that is far enough above."""
        q = self.draw.need.share
        far = [each for each in self.nearby if each.certain and each.fences and each.need.share - q >= apart]
        found = min(far, key=lambda each: each.need.share, default=None)
        return self.draw.steps.high if found is None else max(row[found.place + 1], row[found.place + 2])
