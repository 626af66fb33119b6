"""Sets of linear queries over the cells of a domain, by their structure; no matrix is written out unless it is given.

A structure knows its Gram matrix V = W^T W, how it answers from cells, and the variances that a covariance of cells
gives to its queries; that is all a plan needs. Ranges of n cells are n (n + 1) / 2 queries, and everything about them
follows from cumulative sums.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.mechanisms.optimal_gram import MOST_CELLS

Floats = NDArray[np.float64]

MOST_PARTS = 256  # of a union
MOST_ENTRIES = 1 << 26  # of a matrix that is given
_HINT = (
    "Pass a matrix with a row for each query and a column for each cell, Ranges(n), Prefixes(n), or a Product of them."
)


class Queries(ABC):
    """Linear queries over the cells of one attribute."""

    __slots__ = ()

    @property
    @abstractmethod
    def cells(self) -> int:
        """Returns how many cells there are."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Returns how many queries there are."""

    @abstractmethod
    def gram(self) -> Floats:
        """Returns V = W^T W."""

    @abstractmethod
    def apply(self, cells: Floats) -> Floats:
        """Returns the answers, along the first axis, from values of cells along the first axis."""

    @abstractmethod
    def variances(self, covariance: Floats) -> Floats:
        """Returns the diagonal of W C W^T."""

    def classes(self) -> NDArray[np.intp]:
        """Returns the class of each cell: no query distinguishes cells of a class, or counts those of class -1."""
        return np.arange(self.cells)

    def matrix(self) -> Floats:
        """Returns the queries as a matrix, where that is small."""
        check.integer(entries=self.cells * self.count, at_most=MOST_ENTRIES)
        return self.apply(np.eye(self.cells))


def _size(cells: object) -> int:
    return check.integer(cells=cells, at_least=1, at_most=MOST_CELLS)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Matrix(Queries):
    """Queries that are given one by one.

    >>> Matrix([[1, 1, 0], [0, 1, 1]]).gram().tolist()
    [[1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]]
    """

    rows: Floats

    def __init__(self, rows: Any) -> None:
        try:
            found = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidParameter("matrix", type(rows).__name__, "to be a matrix of numbers", _HINT) from None
        shown = f"an array of shape {found.shape}"
        if found.ndim != 2 or not 0 < found.size <= MOST_ENTRIES:
            raise InvalidParameter("matrix", shown, "to have rows and columns", _HINT)
        check.integer(cells=found.shape[1], at_most=MOST_CELLS)
        if not np.isfinite(found).all() or not found.any():
            raise InvalidParameter("matrix", shown, "to be of finite numbers, and not all 0", _HINT)
        assign(self, rows=found)

    @property
    def cells(self) -> int:
        """Returns how many cells there are."""
        return int(self.rows.shape[1])

    @property
    def count(self) -> int:
        """Returns how many queries there are."""
        return int(self.rows.shape[0])

    def gram(self) -> Floats:
        """Returns V = W^T W."""
        return self.rows.T @ self.rows

    def apply(self, cells: Floats) -> Floats:
        """Returns the answers, along the first axis, from values of cells along the first axis."""
        return np.tensordot(self.rows, cells, axes=1)

    def variances(self, covariance: Floats) -> Floats:
        """Returns the diagonal of W C W^T."""
        return np.asarray(np.sum((self.rows @ covariance) * self.rows, axis=1))

    def matrix(self) -> Floats:
        """Returns the queries as a matrix."""
        return self.rows

    def classes(self) -> NDArray[np.intp]:
        """Returns for each cell the number of its class."""
        _, found = np.unique(self.rows, axis=1, return_inverse=True)
        return np.where(self.rows.any(axis=0), found.reshape(-1), -1)


@dataclass(frozen=True, slots=True)
class _Line(Queries):
    """Queries over cells in a line, as many as there are cells unless said otherwise."""

    size: int

    def __post_init__(self) -> None:
        _size(self.size)

    @property
    def cells(self) -> int:
        """Returns how many cells there are."""
        return self.size

    @property
    def count(self) -> int:
        """Returns how many queries there are."""
        return self.size


@dataclass(frozen=True, slots=True)
class Each(_Line):
    """One query for each cell.

    >>> Each(3).matrix().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    def gram(self) -> Floats:
        """Returns V = W^T W."""
        return np.eye(self.size)

    def apply(self, cells: Floats) -> Floats:
        """Returns the answers, along the first axis, from values of cells along the first axis."""
        return cells

    def variances(self, covariance: Floats) -> Floats:
        """Returns the diagonal of W C W^T."""
        return np.diag(covariance).copy()


@dataclass(frozen=True, slots=True)
class Total(_Line):
    """The sum of all cells.

    >>> Total(3).matrix().tolist()
    [[1.0, 1.0, 1.0]]
    """

    @property
    def count(self) -> int:
        """Returns how many queries there are."""
        return 1

    def gram(self) -> Floats:
        """Returns V = W^T W."""
        return np.ones((self.size, self.size))

    def apply(self, cells: Floats) -> Floats:
        """Returns the answers, along the first axis, from values of cells along the first axis."""
        return np.asarray(np.sum(cells, axis=0, keepdims=True))

    def variances(self, covariance: Floats) -> Floats:
        """Returns the diagonal of W C W^T."""
        return np.array([np.sum(covariance)])

    def classes(self) -> NDArray[np.intp]:
        """Returns for each cell the number of its class."""
        return np.zeros(self.size, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Prefixes(_Line):
    """Sums of the first 1, 2, ..., n cells: a cumulative histogram.

    >>> Prefixes(3).matrix().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """

    def gram(self) -> Floats:
        """Returns V = W^T W."""
        places = np.arange(self.size)
        return self.size - np.maximum(places[:, None], places).astype(np.float64)

    def apply(self, cells: Floats) -> Floats:
        """Returns the answers, along the first axis, from values of cells along the first axis."""
        return np.cumsum(cells, axis=0)

    def variances(self, covariance: Floats) -> Floats:
        """Returns the diagonal of W C W^T."""
        return np.diag(np.cumsum(np.cumsum(covariance, axis=0), axis=1)).copy()


@dataclass(frozen=True, slots=True)
class Ranges(_Line):
    """Sums of all n (n + 1) / 2 ranges of neighbouring cells, by their first cell and then by their last.

    >>> Ranges(2).matrix().tolist()
    [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """

    @property
    def count(self) -> int:
        """Returns how many queries there are."""
        return self.size * (self.size + 1) // 2

    def gram(self) -> Floats:
        """Returns V = W^T W: cells i <= j are both in the ranges that begin at i or before and end at j or after."""
        places = np.arange(self.size, dtype=np.float64)
        first, last = np.minimum(places[:, None], places), np.maximum(places[:, None], places)
        return np.asarray((first + 1) * (self.size - last))

    def _ends(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first, last = np.triu_indices(self.size)
        return first, last + 1

    def apply(self, cells: Floats) -> Floats:
        """Returns the answers, along the first axis, from values of cells along the first axis."""
        sums = np.concatenate([np.zeros((1, *cells.shape[1:])), np.cumsum(cells, axis=0)])
        first, beyond = self._ends()
        return np.asarray(sums[beyond] - sums[first])

    def variances(self, covariance: Floats) -> Floats:
        """Returns the diagonal of W C W^T."""
        sums = np.zeros((self.size + 1, self.size + 1))
        sums[1:, 1:] = np.cumsum(np.cumsum(covariance, axis=0), axis=1)
        first, beyond = self._ends()
        return np.asarray(sums[beyond, beyond] - sums[first, beyond] - sums[beyond, first] + sums[first, first])


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Product:
    """Queries over several attributes: one for each combination of a query of each.

    Its matrix would be the Kronecker product of theirs.

    >>> product = Product(Ranges(10), Each(3))
    >>> product.shape, product.count
    ((10, 3), 165)
    """

    factors: tuple[Queries, ...]

    def __init__(self, *factors: Any) -> None:
        if not factors:
            raise InvalidParameter("factors", factors, "to be queries of one attribute or more", _HINT)
        found = tuple(factor if isinstance(factor, Queries) else Matrix(factor) for factor in factors)
        check.integer(cells=math.prod(factor.cells for factor in found), at_most=1 << 24)
        check.integer(queries=math.prod(factor.count for factor in found), at_most=1 << 24)
        assign(self, factors=found)

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of the counts: one axis for each attribute."""
        return tuple(factor.cells for factor in self.factors)

    @property
    def count(self) -> int:
        """Returns how many queries there are."""
        return math.prod(factor.count for factor in self.factors)

    def apply(self, cells: Floats) -> Floats:
        """Returns the answers from values of cells, one axis for each attribute."""
        for axis, factor in enumerate(self.factors):
            cells = np.moveaxis(factor.apply(np.moveaxis(cells, axis, 0)), 0, axis)
        return cells

    def variances(self, covariances: tuple[Floats, ...]) -> Floats:
        """Returns the variances of all queries, where the cells' covariance is a Kronecker product, too."""
        result = np.ones(())
        for factor, covariance in zip(self.factors, covariances, strict=True):
            result = np.multiply.outer(result, factor.variances(covariance))
        return np.asarray(result)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Union:
    """Several sets of queries over the same attributes, asked together.

    >>> Union(Product(Each(2), Total(3)), Product(Total(2), Prefixes(3))).count
    5
    """

    parts: tuple[Product, ...]

    def __init__(self, *parts: Any) -> None:
        found = tuple(part if isinstance(part, Product) else Product(part) for part in parts)
        if not 1 <= len(found) <= MOST_PARTS or len({part.shape for part in found}) > 1:
            shapes = [part.shape for part in found]
            raise InvalidParameter("parts", shapes, f"to be 1 to {MOST_PARTS}, over the same cells", _HINT)
        assign(self, parts=found)

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape of the counts."""
        return self.parts[0].shape

    @property
    def count(self) -> int:
        """Returns how many queries there are."""
        return sum(part.count for part in self.parts)
