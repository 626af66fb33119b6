"""Tests whether a sample follows the law that was declared for it; laws are written from their definitions.

The p-value is that of the Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant: P(sup |F_n - F| > d) <= 2
exp(-2 n d^2) for every law, discrete ones included, and every n; so it is never too small under the true law.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.report.display import Display, DisplayMixin

Floats = NDArray[np.float64]


class Law(ABC):
    """Describes a distribution on the integers; a law of your own needs its distribution function only.

    >>> class Dice(Law):
    ...     def cdf(self, z):
    ...         return np.clip(np.asarray(z) / 6, 0, 1)
    >>> Dice().pmf(np.array([0.0, 1.0, 6.0, 7.0])).round(3).tolist()
    [0.0, 0.167, 0.167, 0.0]
    >>> fits([1, 2, 3, 4, 5, 6] * 100, Dice()).passed, fits([1, 2, 3, 4, 6, 6] * 100, Dice()).passed
    (True, False)
    """

    @abstractmethod
    def cdf(self, z: Floats) -> Floats:
        """Returns P(Z <= z) at whole z."""

    def pmf(self, z: Floats) -> Floats:
        """Returns P(Z = z) at whole z."""
        return self.cdf(z) - self.cdf(z - 1)


@dataclass(frozen=True, slots=True)
class GeometricLaw(Law):
    """P(g) = (1 - a) a^g, g >= 0, a = exp(-1/scale): P(G <= g) = 1 - a^(g+1).

    >>> from discreet.noise import SeededBits, geometric
    >>> draws = geometric(3, 10_000, bits=SeededBits(1))
    >>> fits(draws, GeometricLaw(Fraction(3))).passed, fits(draws, GeometricLaw(Fraction(4))).passed
    (True, False)
    """

    scale: Fraction

    def cdf(self, z: Floats) -> Floats:
        """Returns P(Z <= z) at whole z."""
        result: Floats = np.where(z < 0, 0.0, -np.expm1(-(z + 1) / float(self.scale)))
        return result


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLaw(Law):
    """P(z) = (1 - a) / (1 + a) a^|z|: P(Z <= z) = a^-z / (1 + a) below 0, and 1 - P(Z <= -z - 1) from 0 on."""

    scale: Fraction

    def cdf(self, z: Floats) -> Floats:
        """Returns P(Z <= z) at whole z."""
        scale = float(self.scale)
        tail = np.exp(-np.where(z < 0, -z, z + 1) / scale) / (1 + math.exp(-1 / scale))
        result: Floats = np.where(z < 0, tail, 1 - tail)
        return result

    def variance(self) -> float:
        """Returns 2 a / (1 - a)^2."""
        a = math.exp(-1 / float(self.scale))
        return 2 * a / (1 - a) ** 2


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw(Law):
    """P(z) proportional to exp(-z^2 / (2 sigma^2)).

    From sigma = 10^4 on the sum is replaced by the normal law at z + 1/2: the midpoint rule is off by at most
    max |phi'| / (24 sigma^2) < 0.011 / sigma^2, about 10^-10, where a sample of 10^6 sees nothing below 10^-3.

    >>> DiscreteGaussianLaw(3).cdf(np.array([-1.0, 0.0])).round(4).tolist()
    [0.4335, 0.5665]
    """

    sigma: Fraction

    def cdf(self, z: Floats) -> Floats:
        """Returns P(Z <= z) at whole z."""
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
        """Returns the variance as a sum over the table."""
        support, weights = self._table()
        return float((support**2 * weights).sum() / weights.sum())


@dataclass(frozen=True, slots=True)
class UniformLaw(Law):
    """All integers from 0 to bound - 1 alike.

    >>> from discreet.noise import SeededBits, uniform_below
    >>> draws = uniform_below(6, 10_000, bits=SeededBits(1))
    >>> fits(draws, UniformLaw(6)).passed, fits(draws, UniformLaw(7)).passed
    (True, False)
    """

    bound: int

    def cdf(self, z: Floats) -> Floats:
        """Returns P(Z <= z) at whole z."""
        result: Floats = np.clip((z + 1) / self.bound, 0, 1)
        return result


@dataclass(frozen=True, slots=True)
class CategoricalLaw(Law):
    """Index i with a probability proportional to chances[i].

    >>> CategoricalLaw((1, 2, 1)).pmf(np.arange(3)).tolist()
    [0.25, 0.5, 0.25]
    >>> [p_value(draws * 200, CategoricalLaw((1, 2, 1))) > 1e-6 for draws in ([0, 1, 1, 2], [0, 0, 1, 2])]
    [True, False]
    """

    chances: tuple[float, ...]

    def cdf(self, z: Floats) -> Floats:
        """Returns P(Z <= z) at whole z."""
        sums = np.concatenate([[0.0], np.cumsum(self.chances)]) / sum(self.chances)
        result: Floats = sums[np.clip(np.asarray(z).astype(np.int64) + 1, 0, len(self.chances))]
        return result


@dataclass(frozen=True, slots=True)
class BernoulliLaw(Law):
    """1 with the probability, else 0.

    >>> draws = [True, False, False, False] * 100
    >>> p_value(draws, BernoulliLaw(0.25)), p_value(draws, BernoulliLaw(0.5)) < 1e-9
    (1.0, True)
    """

    probability: float

    def cdf(self, z: Floats) -> Floats:
        """Returns P(Z <= z) at whole z."""
        result: Floats = np.where(z < 0, 0.0, np.where(z < 1, 1 - self.probability, 1.0))
        return result


def p_value(draws: NDArray[Any] | list[int] | list[bool], law: Law) -> float:
    """Returns an upper bound on the probability that a sample of the law strays as far from it as this one.

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
    """Returns Hoeffding's bound for the share of hits among independent tosses of one coin.

    It is at least the chance that the share strays as far from the probability, to either side.

    >>> round(share_p_value(520, 1000, 0.5), 3), round(share_p_value(5200, 10_000, 0.5), 5)
    (0.899, 0.00067)
    """
    return min(1.0, 2 * math.exp(-2 * tosses * (hits / tosses - probability) ** 2))


LEVEL = 1e-6
_LEAST = 25.0  # expected draws in a cell: the chi-squared law is then near enough for levels down to one in a million
_WIDE = 4096  # cells at most


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodnessOfFit(DisplayMixin):
    """Compares a sample with the law it should have.

    Attributes:
        p_value: at most this is the chance that a sample of the law strays as far from it.
        gap: the largest distance between the distribution functions.
        draws: how many there were.
        level: below which the fit is refused.
    """

    p_value: float
    gap: float
    draws: int
    level: float

    @property
    def passed(self) -> bool:
        """Returns whether the sample may well be one of the law."""
        return self.p_value >= self.level

    def summary(self) -> str:
        """Returns the finding in plain sentences."""
        verdict = "follows the declared law as far as it shows" if self.passed else "does not follow the declared law"
        return (
            f"A sample of {self.draws:,} {verdict}: the distribution functions are {self.gap:.4f} apart, and a sample "
            f"of the law is as far off with a chance of at most {self.p_value:.2g}."
        )

    def _display(self) -> Display:
        rows = [
            ("distance of the distribution functions", f"{self.gap:.4f}"),
            ("p-value", f"{self.p_value:.2g}, refused below {self.level:.2g}"),
            ("verdict", "follows the declared law" if self.passed else "does not follow the declared law"),
        ]
        return Display(title=f"A sample of {self.draws:,} draws", columns=("", ""), rows=rows)


def fits(sample: ArrayLike, law: Law | Callable[[Floats], Floats], *, level: Number = LEVEL) -> GoodnessOfFit:
    """Tests whether draws follow a law, against everything else: too wide, too narrow, shifted, bumpy.

    Args:
        sample: independent draws, whole numbers for a `Law`, any numbers for a continuous distribution function.
        law: what was declared.
        level: the chance at which a sample of the law itself may be refused.

    Returns:
        A `GoodnessOfFit`. For a continuous law its p-value is that of the inequality of Dvoretzky, Kiefer and Wolfowitz
        with Massart's constant, which holds for every number of draws. For a law on the whole numbers it is twice the
        smaller of that and of Pearson's chi-squared test, which sees single values better, on cells that expect at
        least 25 draws.

    Raises:
        InvalidParameter: without draws, or if they are no finite numbers.

    >>> from fractions import Fraction
    >>> from discreet.audit.mechanisms.goodness_of_fit import DiscreteLaplaceLaw
    >>> from discreet.noise import SeededBits, discrete_laplace
    >>> draws = discrete_laplace(2, 20_000, bits=SeededBits(1))
    >>> fits(draws, DiscreteLaplaceLaw(Fraction(2))).passed, fits(draws, DiscreteLaplaceLaw(Fraction(3, 2))).passed
    (True, False)
    """
    draws = np.asarray(sample, dtype=np.float64).ravel()
    if not draws.size or not np.all(np.isfinite(draws)):
        raise InvalidParameter("sample", f"{draws.size} draws", "to hold finite numbers, at least one")
    limit = float(check.probability(level=level))
    gap = _gap(draws, law)
    uniform = min(1.0, 2 * math.exp(-2 * draws.size * gap**2))
    if isinstance(law, Law):
        uniform = min(1.0, 2 * min(p_value(draws, law), _pearson(draws, law)))
    return GoodnessOfFit(p_value=uniform, gap=gap, draws=draws.size, level=limit)


def _gap(draws: Floats, law: Law | Callable[[Floats], Floats]) -> float:
    values, counts = np.unique(draws, return_counts=True)
    after = np.cumsum(counts) / draws.size
    before = after - counts / draws.size
    at, left = (law.cdf(values), law.cdf(values - 1)) if isinstance(law, Law) else (law(values),) * 2
    return float(max(np.abs(after - at).max(), np.abs(before - left).max()))


def _pearson(draws: Floats, law: Law) -> float:
    """Returns the p-value of Pearson's test; 1 if there are no two cells."""
    edges = _edges(draws, law)
    if edges.size < 1:
        return 1.0
    chances = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    found = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)
    expected = chances * draws.size
    distance = float(np.sum((found - expected) ** 2 / expected))
    return float(special.chdtrc(edges.size, distance))


def _edges(draws: Floats, law: Law) -> NDArray[Any]:
    """Returns the last values of cells, fixed by the law and by where draws can be at all, not by where they are."""
    low, high = _around(law, draws.size)
    values = np.unique(np.floor(np.linspace(low, high, int(min(_WIDE, high - low + 1)))))
    kept, used = [], 0.0
    for value, reached in zip(values.tolist(), law.cdf(values).tolist(), strict=True):
        if (reached - used) * draws.size >= _LEAST and (1 - reached) * draws.size >= _LEAST:
            kept.append(value)
            used = reached
    return np.array(kept)


def _around(law: Law, draws: int) -> tuple[float, float]:
    """Returns a range that leaves less than one cell outside on either side, by doubling."""
    reach = 1.0
    share = _LEAST / draws / 2
    while reach < 2.0**60 and (float(law.cdf(np.array(-reach))) > share or float(law.cdf(np.array(reach))) < 1 - share):
        reach *= 2
    return -reach, reach
