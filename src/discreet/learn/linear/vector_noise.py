"""Noise for a vector that one row moves by a bounded length: Gaussian with a delta, K-norm without one."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.mechanisms import Gaussian, KNorm
from discreet.privacy import events
from discreet.statistics.budget_split import Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorNoise:
    """Prices one release of a vector, whatever its length and sensitivity turn out to be.

    Formal guarantee: the mechanism for any L2 sensitivity and dimension has exactly the cost `event`.

    Attributes:
        part: the budget of this release; all of it is used.

    >>> VectorNoise(part=Spending.of(epsilon=2)).event
    Pure(epsilon=Fraction(2, 1))
    """

    part: Spending

    @property
    def event(self) -> events.Pure | events.Gaussian:
        """Returns what the release costs."""
        if self.part.is_pure:
            return events.Pure(self.part.pure_epsilon)
        return events.Gaussian(self.part.noise_multiplier)

    def mechanism(self, sensitivity: Number, dimension: int) -> Gaussian | KNorm:
        """Returns the noise for a vector of so many entries that a row moves so far in the L2 norm."""
        if self.part.is_pure:
            return KNorm(epsilon=self.part.pure_epsilon, sensitivity=sensitivity, dimension=dimension)
        return Gaussian.with_multiplier(noise_multiplier=self.part.noise_multiplier, sensitivity=sensitivity)

    def deviation(self, sensitivity: Fraction | int, dimension: int) -> float:
        """Returns the standard deviation of the noise in one entry.

        A K-norm radius of law Gamma(d, b) has the mean square d (d + 1) b^2, divided evenly between d entries.
        """
        if self.part.is_pure:
            return float(sensitivity / self.part.pure_epsilon) * math.sqrt(dimension + 1)
        return float(self.part.noise_multiplier * sensitivity)
