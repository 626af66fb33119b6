"""Private permutation tests: any statistic of bounded sensitivity, with an exact level.

Every statistic of two samples, or of pairs, is recomputed for each permutation of the pooled values (of the partners,
for pairs), as a whole number. Its `sensitivity` is how far one replaced unit can move it, the same for every
permutation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, lower
from discreet.noise import Bits, discrete_laplace, source_of
from discreet.noise.experiment import shuffle_indices
from discreet.privacy import Neighbours, events
from discreet.statistics.inputs import NumericColumn, column, exact_product, vector, within
from discreet.statistics.tests.results import TestResult

Integers = NDArray[np.int64]

_HEIGHT = 256  # of a hat
_KNOTS = 16
_REACH = 4  # how many spacings a hat reaches to either side
RADIUS = 426  # of a vector of hats: 256 sqrt(2.75), where 2.75 = 1 + 2 (9 + 4 + 1) / 16
_CALLED = 1 << 16  # steps of a real statistic in one sensitivity

Named = Literal["mean_difference", "mmd", "hsic"]
Alternative = Literal["two-sided", "greater", "less"]
_MOST = 100_000
_SHIFT_ABOVE = 1 << 24  # sensitivities above are divided by a power of two, so that noise is drawn fast
_SIGNS = {"two-sided": 0, "greater": 1, "less": -1}


def hats(values: NumericColumn) -> Integers:
    """Returns each value as 16 heights max(0, 1 - |x - c| / h) around public centres, of length <= RADIUS.

    Their inner product is a kernel. Since no height is negative, two vectors are at most sqrt(2) RADIUS apart.
    """
    spacing = max(1, values.width // (_KNOTS - 1))
    centres = np.arange(_KNOTS, dtype=np.int64) * spacing
    near = _REACH * spacing - np.abs(values.steps[:, None] - centres)
    return within(np.maximum(near, 0) * _HEIGHT // (_REACH * spacing), RADIUS)


class Contrast(ABC):
    """A statistic of permuted data, in whole numbers."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Returns how many things are permuted."""

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """Returns how far one replaced unit can move the statistic of any permutation."""

    @abstractmethod
    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """Returns the statistic for each row of `orders`, a permutation."""


@dataclass(frozen=True)
class MeanDifference(Contrast):
    """|m sum(x) - n sum(y)|, or without the bars: the difference of means times n m, in steps.

    A replaced value moves one sum by at most the width, and the statistic by at most max(n, m) times that.
    """

    x: NumericColumn
    y: NumericColumn
    sign: int = 0  # 0 for both directions

    @property
    def size(self) -> int:
        """Returns the pooled number of values."""
        return self.x.size + self.y.size

    @property
    def sensitivity(self) -> int:
        """Returns max(n, m) width."""
        return max(self.x.size, self.y.size) * self.x.width

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """Computes the values from the sum of the first n, since both sums add up to the same total."""
        pooled = np.concatenate([self.x.steps, self.y.steps])
        total = int(pooled.sum())
        firsts = [int(pooled[order[: self.x.size]].sum()) for order in orders]
        found = [self.y.size * first - self.x.size * (total - first) for first in firsts]
        return [abs(value) if self.sign == 0 else self.sign * value for value in found]


@dataclass(frozen=True)
class KernelDistance(Contrast):
    """||m sum phi(x) - n sum phi(y)||, rounded down, phi the hats: n m times the maximum mean discrepancy.

    A replaced value moves the vector by at most max(n, m) sqrt(2) RADIUS, hence its length, and rounding adds 1.
    """

    x: NumericColumn
    y: NumericColumn

    @property
    def size(self) -> int:
        """Returns the pooled number of values."""
        return self.x.size + self.y.size

    @property
    def sensitivity(self) -> int:
        """Returns max(n, m) sqrt(2) RADIUS, rounded up, and 1."""
        return _root_up(2 * (max(self.x.size, self.y.size) * RADIUS) ** 2) + 1

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """Computes the values by one exact product: each permutation is a row of zeros and ones."""
        rows = np.concatenate([hats(self.x), hats(self.y)])
        chosen = np.zeros((len(orders), self.size))
        np.put_along_axis(chosen, orders[:, : self.x.size], 1.0, axis=1)
        firsts = exact_product(chosen, rows.astype(np.float64), self.size * RADIUS)
        total = rows.sum(axis=0)
        return [self._length(first, total) for first in firsts.astype(np.int64)]

    def _length(self, first: Integers, total: Integers) -> int:
        n, m = self.x.size, self.y.size
        return math.isqrt(sum((m * int(a) - n * (int(t) - int(a))) ** 2 for a, t in zip(first, total, strict=True)))


@dataclass(frozen=True)
class KernelDependence(Contrast):
    """||n sum phi(x_i) psi(y_i)^T - sum phi sum psi^T||, rounded down: n^2 times the Hilbert-Schmidt criterion's root.

    Changing phi_i by d moves the matrix by d (n psi - sum psi)^T, which is d times a sum of n - 1 differences: at most
    2 RADIUS^2 (n - 1). A replaced unit changes one phi and one psi, at one or two places of the permuted pairs: twice
    that, and rounding adds 1.
    """

    x: NumericColumn
    y: NumericColumn

    @property
    def size(self) -> int:
        """Returns the number of pairs."""
        return self.x.size

    @property
    def sensitivity(self) -> int:
        """Returns 4 RADIUS^2 (n - 1) and 1."""
        return 4 * RADIUS * RADIUS * max(0, self.size - 1) + 1

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """Computes the value for each permutation of the partners."""
        left, right = hats(self.x), hats(self.y)
        margins = [int(a) * int(b) for a in left.sum(axis=0) for b in right.sum(axis=0)]
        across, along = left.T.astype(np.float64), right.astype(np.float64)
        found = []
        for order in orders:
            together = exact_product(across, along[order], self.size * RADIUS * RADIUS).ravel()
            entries = zip(together, margins, strict=True)
            found.append(math.isqrt(sum((self.size * int(both) - apart) ** 2 for both, apart in entries)))
        return found


@dataclass(frozen=True)
class CustomContrast(Contrast):
    """A caller's statistic of two arrays in steps of a 65536th of its stated sensitivity; NaN counts as 0."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    statistic: Callable[[Any, Any], float]
    stated: Fraction

    @property
    def size(self) -> int:
        """Returns the pooled number of values."""
        return self.x.size + self.y.size

    @property
    def sensitivity(self) -> int:
        """Returns 65536 steps, and 1 for rounding."""
        return _CALLED + 1

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """Returns one call for each permutation."""
        pooled, step = np.concatenate([self.x, self.y]), float(self.stated) / _CALLED
        return [self._steps(pooled[order], step) for order in orders]

    def _steps(self, values: NDArray[np.float64], step: float) -> int:
        found = float(self.statistic(values[: self.x.size], values[self.x.size :]))
        return math.floor(found / step) if math.isfinite(found / step) else 0


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return root + (root * root < square)


def permutation_test(
    x: Any,
    y: Any,
    *,
    level: Number,
    epsilon: Number,
    delta: Number | None = None,
    bounds: Any = None,
    y_bounds: Any = None,
    statistic: Named | Callable[[Any, Any], float] = "mean_difference",
    sensitivity: Number | None = None,
    alternative: Alternative = "two-sided",
    permutations: int = 199,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    bits: Bits | None = None,
) -> TestResult:
    """Tests whether two samples have one law ("mean_difference", "mmd"), or pairs are independent ("hsic").

    The statistic T_0 of the data and T_1, ..., T_B of permuted data get independent discrete Laplace noise of scale
    2 S / xi, M_i = T_i + noise, and the null hypothesis is rejected if (1 + #{i >= 1: M_i >= M_0}) / (B + 1) <= level.
    Only this decision is released: the p-value itself may lose more than xi.

    Formal guarantee: (epsilon, delta)-DP under REPLACE; the sizes of the samples, and who belongs to which, are public.
    Proof: fix the permutations, which do not depend on the data, and the noise of M_1, ..., M_B. The data is rejected
    if the noise of M_0 exceeds c = (an order statistic of M_1, ..., M_B) - T_0. Each T_i moves by at most S when a unit
    is replaced, hence so does the order statistic, and c moves by at most 2 S. The tails of discrete Laplace noise at
    two points at most 2 S apart differ by a factor of at most e^(2 S xi / (2 S)) = e^xi, on either side; averaging over
    what was fixed keeps that. With xi = epsilon + ln(1 / (1 - delta)), P <= e^epsilon Q / (1 - delta), so P <=
    e^epsilon Q + delta P. The level is exact: under the null the M_i are exchangeable (Kim, Schrab 2023).

    Args:
        x: a number for each unit of the first sample; missing ones count as the middle of the bounds.
        y: the second sample; for "hsic" the partner of each x.
        level: of the test, fixed in advance.
        epsilon: above 0.
        delta: optional; it helps little.
        bounds: public limits of x, and of y unless `y_bounds` are given.
        y_bounds: public limits of y, for "hsic".
        statistic: a name, or a function of two arrays that is finite everywhere.
        sensitivity: of such a function, when any one value is replaced by any other; it is clipped to nothing.
        alternative: for "mean_difference": "greater" is a larger mean of x.
        permutations: B.
        neighbours: "replace"; the sizes of the samples are public.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: if a parameter is missing or wrong.

    >>> from discreet.noise import SeededBits
    >>> x, y = np.linspace(0, 6, 400), np.linspace(4, 10, 300)
    >>> print(permutation_test(x, y, bounds=(0, 10), level=0.05, epsilon=1, bits=SeededBits(1)))
    rejected at level 0.05 NOT PRIVATE (seeded randomness)
    """
    if Neighbours(neighbours) is not Neighbours.REPLACE:
        hint = "The sizes of the samples are public in a permutation test: pass neighbours='replace'."
        raise InvalidParameter("neighbours", neighbours, "to be 'replace'", hint)
    chance, count = check.probability(level=level), check.integer(permutations=permutations, at_least=1, at_most=_MOST)
    if chance * (count + 1) < 1:
        hint = "With fewer permutations, nothing is ever rejected."
        raise InvalidParameter("permutations", count, f">= {int(1 / chance)}", hint)
    budget, slack = check.positive(epsilon=epsilon), Fraction(0) if delta is None else check.not_negative(delta=delta)
    event = events.Pure(budget) if slack == 0 else events.Approx(budget, slack)
    contrast = _contrast(x, y, bounds, y_bounds, statistic=statistic, stated=sensitivity, alternative=alternative)
    source = source_of(bits)
    orders = np.stack([np.arange(contrast.size), *(shuffle_indices(contrast.size, bits=source) for _ in range(count))])
    rejected = _decide(contrast.values(orders), contrast.sensitivity, _xi(budget, slack), chance, source)
    return TestResult(rejected=rejected, level=chance, event=event, private=source.private)


def _decide(values: list[int], move: int, xi: Fraction, level: Fraction, bits: Bits) -> bool:
    """Returns whether the first value is extreme among all, each with noise of scale 2 move / xi."""
    shift = max(0, move.bit_length() - _SHIFT_ABOVE.bit_length())
    scaled, moved = [value >> shift for value in values], -(-move >> shift)
    noise = discrete_laplace(2 * moved / xi, len(scaled), bits=bits)
    noisy = [value + int(extra) for value, extra in zip(scaled, noise, strict=True)]
    rank = 1 + sum(other >= noisy[0] for other in noisy[1:])
    return rank <= level * len(noisy)


def _xi(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Returns epsilon + ln(1 / (1 - delta)), rounded down."""
    if delta == 0:
        return epsilon
    extra = lower(lambda digits: -Enclosure.of(1 - check.probability(delta=delta), digits).log())
    return epsilon + Fraction(int(extra * 2**40), 2**40)


def _contrast(x: Any, y: Any, bounds: Any, y_bounds: Any, *, statistic: Any, stated: Any, alternative: Any) -> Contrast:
    if alternative not in _SIGNS:
        raise InvalidParameter("alternative", alternative, "to be 'two-sided', 'greater' or 'less'")
    if callable(statistic):
        if stated is None:
            hint = "State how much the function can change if one value becomes any other, e.g. sensitivity=0.01."
            raise InvalidParameter("sensitivity", stated, "to be given with a function", hint)
        return CustomContrast(vector(x), vector(y), statistic, check.positive(sensitivity=stated))
    if statistic not in ("mean_difference", "mmd", "hsic"):
        hint = "Or pass a function of two arrays with its sensitivity."
        raise InvalidParameter("statistic", statistic, "to be 'mean_difference', 'mmd' or 'hsic'", hint)
    check.limits(bounds=bounds)
    limits = bounds if y_bounds is None or statistic != "hsic" else y_bounds
    check.limits(y_bounds=limits)
    first = column(x, bounds=bounds, neighbours=Neighbours.REPLACE)
    second = column(y, bounds=limits, neighbours=Neighbours.REPLACE)
    if statistic == "mean_difference":
        return MeanDifference(first, second, _SIGNS[alternative])
    if statistic == "mmd":
        return KernelDistance(first, second)
    if first.size != second.size:
        raise InvalidValue("to have a partner for each value", "Pass x and y of the same length.")
    return KernelDependence(first, second)
