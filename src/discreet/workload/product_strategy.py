"""Exact measurements of several attributes: the Kronecker product of strategies, which is never written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import Grid
from discreet.mechanisms.strategy import LARGEST_ENTRY, ONE_CELL, Contribution, IntegerStrategy, whole_counts
from discreet.privacy import Neighbours
from discreet.workload.factor_strategies import FactorStrategy

Floats = NDArray[np.float64]

_LARGEST = 1 << 62
_PRODUCT_BITS = 30  # of entries of a product: four billion people still fit below 2^62


def largest_entry(factors: int) -> int:
    """Returns how large the integers of each factor may be, so that those of the product stay in their limits.

    >>> largest_entry(1) == LARGEST_ENTRY, largest_entry(3)
    (True, 1024)
    """
    return LARGEST_ENTRY if factors == 1 else 1 << max(_PRODUCT_BITS // factors, 1)


@dataclass(frozen=True, slots=True, eq=False)
class ProductStrategy:
    """Measurements of every combination of measurements of each attribute.

    Norms of columns of a Kronecker product are products of norms, so that all sensitivities are exact integers.
    """

    factors: tuple[FactorStrategy, ...]

    @property
    def _strategies(self) -> tuple[IntegerStrategy, ...]:
        return tuple(factor.strategy for factor in self.factors)

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of the counts."""
        return tuple(strategy.cells for strategy in self._strategies)

    @property
    def rows(self) -> int:
        """Returns how many measurements there are."""
        return math.prod(strategy.rows for strategy in self._strategies)

    @property
    def grid(self) -> Grid:
        """Returns what a step is."""
        return Grid(sum(strategy.grid.exponent for strategy in self._strategies))

    def product(self, counts: Any) -> NDArray[Any]:
        """Returns the exact measurements, in steps, one axis for each attribute.

        Raises:
            InvalidValue: if the counts are not of an integer type, or have another shape.
        """
        given = whole_counts(counts, self.shape)
        if len(self.factors) == 1:
            return self._strategies[0].product(given)
        largest = math.prod(int(np.max(np.abs(strategy.matrix))) for strategy in self._strategies)
        fits = float(np.sum(np.abs(given.astype(np.float64)))) * largest < _LARGEST
        kind = np.int64 if fits else object  # an error would reveal the counts: Python's integers hold all of them
        given = given.astype(kind)
        for axis, strategy in enumerate(self._strategies):
            given = np.moveaxis(np.tensordot(strategy.matrix.astype(kind), given, axes=(1, axis)), 0, axis)
        return given

    def l2_squared(
        self, contribution: Contribution = ONE_CELL, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> int:
        """Returns a square that the L2 norm of one unit's move, in steps, never exceeds.

        Columns are at most sqrt(S) long, S a product. Their inner products are products of entries of Gram matrices,
        which lie between bounds, so that ||a - b||^2 <= 2 S - 2 times the lower one; and 4 S in any case.
        """
        if len(self.factors) == 1:
            return self._strategies[0].l2_squared(contribution, neighbours)
        single = math.prod(strategy.l2_squared() for strategy in self._strategies)
        held = (contribution.cells * contribution.amount) ** 2
        if Neighbours(neighbours) is Neighbours.ADD_REMOVE:
            return single * held
        plain = contribution == ONE_CELL
        return max(single, 2 * single - 2 * max(self._least_product(), -single)) if plain else 4 * single * held

    def _least_product(self) -> int:
        low = high = 1
        for strategy in self._strategies:
            gram = strategy.gram()
            ends = [end * int(entry) for end in (low, high) for entry in (gram.min(), gram.max())]
            low, high = min(ends), max(ends)
        return low

    def l1(self, contribution: Contribution = ONE_CELL, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> int:
        """Returns a number that the L1 norm of one unit's move, in steps, never exceeds."""
        if len(self.factors) == 1:
            return self._strategies[0].l1(contribution, neighbours)
        single = math.prod(strategy.l1() for strategy in self._strategies)
        replaced = Neighbours(neighbours) is Neighbours.REPLACE
        return single * contribution.cells * contribution.amount * (1 + replaced)

    def decode_cells(self, measurements: Floats) -> Floats:
        """Returns cells from measurements in units of the strategy."""
        cells = measurements.reshape([strategy.rows for strategy in self._strategies])
        for axis, factor in enumerate(self.factors):
            cells = np.moveaxis(np.tensordot(factor.decoder, cells, axes=(1, axis)), 0, axis)
        return np.asarray(cells)

    @property
    def covariances(self) -> tuple[Floats, ...]:
        """Returns the factors of the covariance of the cells, for measurements of variance 1."""
        return tuple(factor.covariance for factor in self.factors)

    def measure_cells(self, cells: Floats, *, back: bool = False) -> Floats:
        """Returns what would be measured of cells, or the transposed map, in floats: for fits, after the release."""
        for axis, strategy in enumerate(self._strategies):
            matrix = strategy.values().T if back else strategy.values()
            cells = np.moveaxis(np.tensordot(matrix, cells, axes=(1, axis)), 0, axis)
        return np.asarray(cells)

    @property
    def steepness(self) -> float:
        """Returns the largest singular value, squared."""
        return math.prod(float(np.linalg.norm(strategy.values(), 2)) ** 2 for strategy in self._strategies)
