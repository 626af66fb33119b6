"""The noise of one part of a budget, what it leaves in the result of a descent, and how wide intervals must be."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.lazy import optimize
from discreet.mechanisms import Gaussian, KNorm, Laplace
from discreet.statistics.budget_split import Spending

Floats = NDArray[np.float64]

_PURE_IN_GAUSSIAN = Fraction(797, 1000)  # below 2 / sqrt(2 pi) = 0.79788
_SMALLEST_SLOPE = 0.02

_STEP = 2 * np.pi / 120  # of the integral: repeats the law every 120 deviations
_FURTHEST = 40.0  # deviations; nothing is asked for beyond
_END = 200.0  # beyond, the integrand oscillates below 1e-6


def pure_part(part: Spending) -> Fraction:
    """Returns the epsilon of a pure release that fits into a part of a budget.

    Formal guarantee: with a Gaussian budget, an epsilon-DP release is mu-GDP for mu = 2 Phi^-1(1 / (1 + e^-epsilon)),
    where the trade-off curves touch (Dong, Roth, Su 2022, Proposition 2.5 and the symmetry of both curves). As a
    function of epsilon this is concave from 0 on with slope sqrt(2 pi) / 2 there, so epsilon <= 0.797 mu suffices.
    """
    if part.epsilon is not None:
        return part.epsilon
    return _PURE_IN_GAUSSIAN / part.noise_multiplier


def number_noise(part: Spending, sensitivity: int) -> Laplace | Gaussian:
    """Returns the mechanism for one integer that a unit moves by at most `sensitivity`: it uses all of the part."""
    if part.epsilon is not None:
        return Laplace(epsilon=part.epsilon, sensitivity=sensitivity)
    return Gaussian.with_multiplier(noise_multiplier=part.noise_multiplier, sensitivity=sensitivity)


def vector_noise(part: Spending, sensitivity: int, dimension: int) -> KNorm | Gaussian:
    """Returns the mechanism for an integer vector that a unit moves by at most `sensitivity` in the L2 norm."""
    if part.epsilon is not None:
        return KNorm(epsilon=part.epsilon, sensitivity=sensitivity, dimension=dimension)
    return Gaussian.with_multiplier(noise_multiplier=part.noise_multiplier, sensitivity=sensitivity)


def deviation(mechanism: Laplace | Gaussian | KNorm) -> float:
    """Returns the standard deviation of the noise of one entry.

    A K-norm radius of law Gamma(d, b) has E R^2 = d (d+1) b^2.
    """
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
        """Returns the weights rate C_s, s = 1..steps, of the noise of each step."""
        powers = self._powers(slope)
        found = [
            powers[max(s, self.steps - self.last + 1) - s : self.steps - s + 1].sum() for s in range(1, self.steps + 1)
        ]
        return self.rate * np.array(found) / self.last

    def memory(self, slope: float) -> float:
        """Returns the weight of the start."""
        return float(np.abs(self._powers(slope)[self.steps - self.last + 1 :].mean()))

    def drift(self, slope: float, moved: float) -> float:
        """Returns the remaining distance between start and solution, judged by how far the result moved."""
        kept = self.memory(slope)
        return abs(moved) * kept / (1 - kept)


def half_width(
    confidence: Number, *, deviation: float = 0.0, scales: Sequence[float] | NDArray[np.float64] = ()
) -> float:
    """Returns the w with P(|N(0, deviation^2) + sum Lap(scale)| <= w) = confidence.

    Of the total variance only a sum is needed for normal errors; Laplace errors have heavier tails, which 1.96
    deviations do not cover. The probability is 2 / pi times the integral of sin(t w) phi(t) / t, with the
    characteristic function phi (Gil-Pelaez 1951).

    >>> round(half_width(0.95, deviation=1.0), 4), round(half_width(0.95, scales=[1.0]), 4)
    (1.96, 2.9957)
    """
    chance = float(check.probability(confidence=confidence))
    law = _Law.of(deviation, scales)
    if law.total == 0 or law.inside(_FURTHEST) <= chance:
        return _FURTHEST * law.total
    return law.total * float(optimize.brentq(lambda width: law.inside(width) - chance, 0.0, _FURTHEST, xtol=1e-10))


def beyond(distance: float, *, deviation: float = 0.0, scales: Sequence[float] | NDArray[np.float64] = ()) -> float:
    """Returns P(|N(0, deviation^2) + sum Lap(scale)| >= distance), a two-sided p-value.

    >>> round(beyond(1.959964, deviation=1.0), 6), round(beyond(3.0, scales=[1.0]), 6)
    (0.05, 0.049787)
    """
    law = _Law.of(deviation, scales)
    if law.total == 0:
        return float(distance == 0)
    return min(1.0, max(0.0, 1 - law.inside(min(abs(distance) / law.total, _FURTHEST))))


@dataclass(frozen=True, slots=True)
class _Law:
    """The characteristic function of the error over its standard deviation, on the points of the integral."""

    total: float
    points: NDArray[np.float64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, deviation: float, scales: Sequence[float] | NDArray[np.float64]) -> _Law:
        laplace = np.asarray(scales, dtype=np.float64)
        total = float(np.sqrt(deviation**2 + 2 * np.sum(laplace**2)))
        points = np.arange(0.5, _END / _STEP) * _STEP
        unit = total or 1.0
        values = np.exp(-((deviation / unit * points) ** 2) / 2) / points
        for scale in laplace / unit:
            values /= 1 + (scale * points) ** 2
        return cls(total, points, values)

    def inside(self, distance: float) -> float:
        """Returns P(|error| <= distance), the distance in standard deviations."""
        return 2 / np.pi * _STEP * float(np.sum(np.sin(self.points * distance) * self.values))
