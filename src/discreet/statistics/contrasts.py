"""Statistics of two samples, or of pairs, under many permutations at once: whole numbers of known sensitivity.

Every statistic is recomputed for each permutation of the pooled values (of the partners, for pairs). `sensitivity` is
how far one replaced unit can move it, the same for every permutation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.statistics.column import Column
from discreet.statistics.rows import exact_product, within

Integers = NDArray[np.int64]

_HEIGHT = 256  # of a hat
_KNOTS = 16
_REACH = 4  # how many spacings a hat reaches to either side
RADIUS = 426  # of a vector of hats: 256 sqrt(2.75), where 2.75 = 1 + 2 (9 + 4 + 1) / 16
_CALLED = 1 << 16  # steps of a real statistic in one sensitivity


def hats(values: Column) -> Integers:
    """Each value as 16 heights max(0, 1 - |x - c| / h) around public centres, none negative, of length <= RADIUS.

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
        """How many things are permuted."""

    @property
    @abstractmethod
    def sensitivity(self) -> int:
        """How far one replaced unit can move the statistic of any permutation."""

    @abstractmethod
    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """The statistic for each row of `orders`, a permutation."""


@dataclass(frozen=True)
class MeanDifference(Contrast):
    """|m sum(x) - n sum(y)|, or without the bars: the difference of means times n m, in steps.

    A replaced value moves one sum by at most the width, and the statistic by at most max(n, m) times that.
    """

    x: Column
    y: Column
    sign: int = 0  # 0 for both directions

    @property
    def size(self) -> int:
        """The pooled number of values."""
        return self.x.size + self.y.size

    @property
    def sensitivity(self) -> int:
        """max(n, m) width."""
        return max(self.x.size, self.y.size) * self.x.width

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """From the sum of the first n, since both sums add up to the same total."""
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

    x: Column
    y: Column

    @property
    def size(self) -> int:
        """The pooled number of values."""
        return self.x.size + self.y.size

    @property
    def sensitivity(self) -> int:
        """max(n, m) sqrt(2) RADIUS, rounded up, and 1."""
        return _root_up(2 * (max(self.x.size, self.y.size) * RADIUS) ** 2) + 1

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """By one exact product: each permutation is a row of zeros and ones."""
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

    x: Column
    y: Column

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.x.size

    @property
    def sensitivity(self) -> int:
        """4 RADIUS^2 (n - 1) and 1."""
        return 4 * RADIUS * RADIUS * max(0, self.size - 1) + 1

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """For each permutation of the partners."""
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
class Called(Contrast):
    """A caller's statistic of two arrays in steps of a 65536th of its stated sensitivity; NaN counts as 0."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    statistic: Callable[[Any, Any], float]
    stated: Fraction

    @property
    def size(self) -> int:
        """The pooled number of values."""
        return self.x.size + self.y.size

    @property
    def sensitivity(self) -> int:
        """65536 steps, and 1 for rounding."""
        return _CALLED + 1

    def values(self, orders: NDArray[np.intp]) -> list[int]:
        """One call for each permutation."""
        pooled, step = np.concatenate([self.x, self.y]), float(self.stated) / _CALLED
        return [self._steps(pooled[order], step) for order in orders]

    def _steps(self, values: NDArray[np.float64], step: float) -> int:
        found = float(self.statistic(values[: self.x.size], values[self.x.size :]))
        return math.floor(found / step) if math.isfinite(found / step) else 0


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return root + (root * root < square)
