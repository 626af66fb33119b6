"""The laws that mechanisms declare, written from their definitions, and the p-value of a sample against a law.

The p-value is that of the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant: P(sup |F_n - F| > d) <= 2
exp(-2 n d^2) for every law, discrete ones included, and every n; so it is never too small under the true law.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import special

Floats = NDArray[np.float64]


class Law(ABC):
    """A distribution on the integers."""

    @abstractmethod
    def cdf(self, z: Floats) -> Floats:
        """P(Z <= z) at whole z."""

    def pmf(self, z: Floats) -> Floats:
        """P(Z = z) at whole z."""
        return self.cdf(z) - self.cdf(z - 1)


@dataclass(frozen=True, slots=True)
class Geometric(Law):
    """P(g) = (1 - a) a^g, g >= 0, a = exp(-1/scale): P(G <= g) = 1 - a^(g+1)."""

    scale: Fraction

    def cdf(self, z: Floats) -> Floats:
        """P(Z <= z) at whole z."""
        result: Floats = np.where(z < 0, 0.0, -np.expm1(-(z + 1) / float(self.scale)))
        return result


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Law):
    """P(z) = (1 - a) / (1 + a) a^|z|: P(Z <= z) = a^-z / (1 + a) below 0, and 1 - P(Z <= -z - 1) from 0 on."""

    scale: Fraction

    def cdf(self, z: Floats) -> Floats:
        """P(Z <= z) at whole z."""
        scale = float(self.scale)
        tail = np.exp(-np.where(z < 0, -z, z + 1) / scale) / (1 + math.exp(-1 / scale))
        result: Floats = np.where(z < 0, tail, 1 - tail)
        return result

    def variance(self) -> float:
        """2 a / (1 - a)^2."""
        a = math.exp(-1 / float(self.scale))
        return 2 * a / (1 - a) ** 2


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Law):
    """P(z) proportional to exp(-z^2 / (2 sigma^2)).

    From sigma = 10^4 on the sum is replaced by the normal law at z + 1/2: the midpoint rule is off by at most
    max |phi'| / (24 sigma^2) < 0.011 / sigma^2, about 10^-10, where a sample of 10^6 sees nothing below 10^-3.
    """

    sigma: Fraction

    def cdf(self, z: Floats) -> Floats:
        """P(Z <= z) at whole z."""
        sigma = float(self.sigma)
        if sigma >= 1e4:
            return np.asarray(special.ndtr((z + 0.5) / sigma))
        support, weights = self._table()
        sums = np.concatenate([[0.0], np.cumsum(weights)]) / weights.sum()
        index = np.clip(np.asarray(z).astype(np.int64) - int(support[0]) + 1, 0, len(weights))
        return np.asarray(sums[index])

    def _table(self) -> tuple[Floats, Floats]:
        reach = math.ceil(14 * float(self.sigma)) + 2  # P(|Z| > 14 sigma) < 10^-43
        support = np.arange(-reach, reach + 1, dtype=np.float64)
        return support, np.exp(-(support**2) / (2 * float(self.sigma) ** 2))

    def variance(self) -> float:
        """The sum over the table."""
        support, weights = self._table()
        return float((support**2 * weights).sum() / weights.sum())


@dataclass(frozen=True, slots=True)
class Uniform(Law):
    """All integers from 0 to bound - 1 alike."""

    bound: int

    def cdf(self, z: Floats) -> Floats:
        """P(Z <= z) at whole z."""
        result: Floats = np.clip((z + 1) / self.bound, 0, 1)
        return result


@dataclass(frozen=True, slots=True)
class Categorical(Law):
    """Index i with a probability proportional to chances[i]."""

    chances: tuple[float, ...]

    def cdf(self, z: Floats) -> Floats:
        """P(Z <= z) at whole z."""
        sums = np.concatenate([[0.0], np.cumsum(self.chances)]) / sum(self.chances)
        result: Floats = sums[np.clip(np.asarray(z).astype(np.int64) + 1, 0, len(self.chances))]
        return result


@dataclass(frozen=True, slots=True)
class Bernoulli(Law):
    """1 with the probability, else 0."""

    probability: float

    def cdf(self, z: Floats) -> Floats:
        """P(Z <= z) at whole z."""
        result: Floats = np.where(z < 0, 0.0, np.where(z < 1, 1 - self.probability, 1.0))
        return result


def p_value(draws: NDArray[Any] | list[int] | list[bool], law: Law) -> float:
    """An upper bound on the probability that a sample of the law strays as far from it as this one.

    The distance is largest at a value drawn or just below one, because between two of them the sample's own curve is
    flat.
    """
    sample = np.asarray(draws).astype(np.float64)
    values, counts = np.unique(sample, return_counts=True)
    after = np.cumsum(counts) / sample.size
    before = after - counts / sample.size
    gap = max(np.abs(after - law.cdf(values)).max(), np.abs(before - law.cdf(values - 1)).max())
    return min(1.0, 2 * math.exp(-2 * sample.size * float(gap) ** 2))


def share_p_value(hits: int, tosses: int, probability: float) -> float:
    """Hoeffding's bound for the share of hits among independent tosses of one coin."""
    return min(1.0, 2 * math.exp(-2 * tosses * (hits / tosses - probability) ** 2))
