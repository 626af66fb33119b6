"""Noisy descent: what the noise of every step, and the start, leave in the result."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms import Gaussian, KNorm, Laplace
from discreet.statistics.spending import Spending

Floats = NDArray[np.float64]

_PURE_IN_GAUSSIAN = Fraction(797, 1000)  # below 2 / sqrt(2 pi) = 0.79788
_SMALLEST_SLOPE = 0.02


def pure_part(part: Spending) -> Fraction:
    """The epsilon of a pure release that fits into a part of a budget.

    Formal guarantee: with a Gaussian budget, an epsilon-DP release is mu-GDP for mu = 2 Phi^-1(1 / (1 + e^-epsilon)),
    where the trade-off curves touch (Dong, Roth, Su 2022, Proposition 2.5 and the symmetry of both curves). As a
    function of epsilon this is concave from 0 on with slope sqrt(2 pi) / 2 there, so epsilon <= 0.797 mu suffices.
    """
    if part.epsilon is not None:
        return part.epsilon
    return _PURE_IN_GAUSSIAN / part.noise_multiplier


def number_noise(part: Spending, sensitivity: int) -> Laplace | Gaussian:
    """The mechanism for one integer that a unit moves by at most `sensitivity`: it uses all of the part."""
    if part.epsilon is not None:
        return Laplace(epsilon=part.epsilon, sensitivity=sensitivity)
    return Gaussian.with_multiplier(noise_multiplier=part.noise_multiplier, sensitivity=sensitivity)


def vector_noise(part: Spending, sensitivity: int, dimension: int) -> KNorm | Gaussian:
    """The mechanism for an integer vector that a unit moves by at most `sensitivity` in the L2 norm."""
    if part.epsilon is not None:
        return KNorm(epsilon=part.epsilon, sensitivity=sensitivity, dimension=dimension)
    return Gaussian.with_multiplier(noise_multiplier=part.noise_multiplier, sensitivity=sensitivity)


def deviation(mechanism: Laplace | Gaussian | KNorm) -> float:
    """The standard deviation of the noise of one entry; a K-norm radius of law Gamma(d, b) has E R^2 = d (d+1) b^2."""
    if isinstance(mechanism, Gaussian):
        return float(mechanism.sigma)
    scale = float(mechanism.sensitivity / mechanism.epsilon)
    if isinstance(mechanism, Laplace):
        return scale * float(np.sqrt(2))
    return scale * float(np.sqrt(mechanism.dimension + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A run theta <- theta + rate (mean score + noise) of so many steps whose last iterates are averaged.

    With mean scores of slope -h near the solution, noise e_s of step s reaches the result as rate C_s e_s, C_s =
    (1 / last) sum of (1 - rate h)^(k - s) over k from max(s, steps - last + 1) to steps, and the start keeps a weight
    of (1 / last) sum of (1 - rate h)^k over the averaged k.
    """

    steps: int
    last: int
    rate: float

    def _powers(self, slope: float) -> Floats:
        kept = np.clip(1 - self.rate * max(slope, _SMALLEST_SLOPE), -0.98, 0.98)
        return np.asarray(kept ** np.arange(self.steps + 1))

    def weights(self, slope: float) -> Floats:
        """The weights rate C_s, s = 1..steps, of the noise of each step."""
        powers = self._powers(slope)
        found = [
            powers[max(s, self.steps - self.last + 1) - s : self.steps - s + 1].sum() for s in range(1, self.steps + 1)
        ]
        return self.rate * np.array(found) / self.last

    def memory(self, slope: float) -> float:
        """The weight of the start."""
        return float(np.abs(self._powers(slope)[self.steps - self.last + 1 :].mean()))

    def drift(self, slope: float, moved: float) -> float:
        """What is left of the distance between start and solution, judged by how far the result is from the start."""
        kept = self.memory(slope)
        return abs(moved) * kept / (1 - kept)
