"""Strategies for the queries over one attribute: what to measure, and how cells follow from it.

A strategy is judged by its sensitivity squared times tr(W A^+ (W A^+)^T), the total variance of all answers. Normal
noise gets the optimal one. For Laplace noise there is no such program, and the best of several is taken: every cell
alone, the queries themselves, trees, and cells with a few weighted sums, which are optimised (McKenna, Miklau, Hay,
Machanavajjhala 2018, there called p-identity).

Cells that no query distinguishes are one cell. Where the queries have a lower rank than there are cells left,
measurements are combinations of queries, so that rounding them to a grid leaves what they span as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import Grid
from discreet.lazy import linalg, optimize
from discreet.mechanisms.optimal_gram import PRECISION, optimal_gram
from discreet.mechanisms.strategy import LARGEST_ENTRY, IntegerStrategy

Floats = NDArray[np.float64]

_SINGULAR = 1e-10  # relative: eigenvalues of V below have none of the queries' weight
_RIDGE = 1e-9
_FEW_CELLS = 1024
_COARSE = 256  # steps that combinations of queries have at least
_ROUGH = 1e-4  # of the total variance, relative, for more cells
_BRANCHES = (2, 4, 8, 16)
_MOST_OPTIMISED = 256  # cells: weighted sums are searched by gradients of a cubic cost
_MOST_SUMS = 32
_SEARCHES = 150


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactorStrategy:
    """What is measured of one attribute.

    Attributes:
        strategy: the measurements, integers.
        decoder: from measurements to cells, in units of the strategy; where cells are not known, queries still are.
    """

    strategy: IntegerStrategy
    decoder: Floats

    @property
    def covariance(self) -> Floats:
        """Returns the covariance of the cells, for measurements of variance 1."""
        return self.decoder @ self.decoder.T

    def total(self, gram: Floats) -> float:
        """Returns the total variance of all queries, for measurements of variance 1."""
        return float(np.sum(gram * self.covariance))


@dataclass(frozen=True, slots=True, eq=False)
class FactorQueries:
    """The queries over one attribute, as all that is needed of them: V, and which cells are distinguished.

    Attributes:
        gram: V.
        classes: for each cell the number of its class, -1 if no query counts it.
        rows: the queries themselves, where they are few.
    """

    gram: Floats
    classes: NDArray[np.intp]
    rows: Floats | None = None

    def gaussian(self, largest: int = LARGEST_ENTRY) -> FactorStrategy:
        """Returns the strategy for normal noise."""
        small = self._reduced_gram()
        if _full_rank(small):
            return self._widen_strategy(_square(optimal_gram(small, precision=_precision(len(small))).gram, largest))
        basis = self._basis()
        if basis is None:
            return self._widen_strategy(
                _square(optimal_gram(_add_ridge(small), precision=_precision(len(small))).gram, largest)
            )
        inverse = np.linalg.pinv(basis.values())
        found = optimal_gram(inverse.T @ small @ inverse, basis=basis.values()).gram
        return self._widen_strategy(
            _combine_measurements(np.asarray(np.linalg.cholesky(found).T, dtype=np.float64), basis, largest)
        )

    def laplace(self, largest: int = LARGEST_ENTRY) -> FactorStrategy:
        """Returns the best of several strategies for Laplace noise."""
        small = self._reduced_gram()
        tried = (
            _add_decoder(strategy) for strategy in self._candidates(small, largest) if _in_limits(strategy, largest)
        )
        choices = [choice for choice in tried if _spans(choice, small)]
        return self._widen_strategy(min(choices, key=lambda choice: _laplace_error(choice, small)))

    def _candidates(self, small: Floats, largest: int) -> Iterator[IntegerStrategy]:
        cells = len(small)
        yield IntegerStrategy(matrix=np.eye(cells, dtype=np.int64))
        basis = self._basis()
        if basis is not None:
            yield basis
        rows = self._reduced_rows()
        if rows is not None and len(rows) <= 4 * cells and _full_rank(small) and _is_exact(rows, largest):
            yield IntegerStrategy.round_matrix(rows, largest=largest)
        for branch in _BRANCHES:
            if cells > branch:
                yield IntegerStrategy(matrix=_tree(cells, branch))
        if 2 <= cells <= _MOST_OPTIMISED:
            yield IntegerStrategy.round_matrix(_optimised_sums(small), largest=largest)

    def _representatives(self) -> NDArray[np.intp]:
        return np.array([int(np.argmax(self.classes == name)) for name in np.unique(self.classes[self.classes >= 0])])

    def _reduced_gram(self) -> Floats:
        chosen = self._representatives()
        return np.asarray(self.gram[np.ix_(chosen, chosen)])

    def _reduced_rows(self) -> Floats | None:
        return None if self.rows is None else np.asarray(self.rows[:, self._representatives()])

    def _basis(self) -> IntegerStrategy | None:
        """Returns independent queries, if they have a lower rank than there are cells and a grid holds them exactly."""
        rows = self._reduced_rows()
        if rows is None or _full_rank(self._reduced_gram()):
            return None
        _, triangle, order = linalg.qr(rows.T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        chosen = rows[np.sort(order[: int(np.sum(sizes > 1e-9 * sizes[0]))])]
        return IntegerStrategy.round_matrix(chosen) if _is_exact(chosen, LARGEST_ENTRY) else None

    def _widen_strategy(self, small: FactorStrategy) -> FactorStrategy:
        """Gives every cell what its class has; what is found of a class is spread evenly."""
        names, places = np.unique(self.classes, return_inverse=True)
        if names[0] != -1:
            places = places + 1
        matrix = np.pad(small.strategy.matrix, ((0, 0), (1, 0)))[:, places]
        sizes = np.bincount(places, minlength=len(small.decoder) + 1)
        decoder = np.pad(small.decoder, ((1, 0), (0, 0)))[places] / sizes[places][:, None]
        return FactorStrategy(strategy=IntegerStrategy(matrix=matrix, grid=small.strategy.grid), decoder=decoder)


def _precision(cells: int) -> float:
    """Returns how near to the optimum to go: with many cells a round takes minutes, and the last change little."""
    return PRECISION if cells <= _FEW_CELLS else _ROUGH


def _full_rank(gram: Floats) -> bool:
    spectrum = np.linalg.eigvalsh(gram)
    return bool(spectrum[0] > _SINGULAR * spectrum[-1])


def _add_ridge(gram: Floats) -> Floats:
    """Adds a little weight on everything, so that the matrix has full rank."""
    return gram + _RIDGE * float(np.linalg.eigvalsh(gram)[-1]) * np.eye(len(gram))


def _is_exact(rows: Floats, largest: int) -> bool:
    return bool(np.array_equal(IntegerStrategy.round_matrix(rows, largest=largest).values(), rows))


def _in_limits(strategy: IntegerStrategy, largest: int) -> bool:
    return int(np.max(np.abs(strategy.matrix))) <= largest


def _inverse(strategy: IntegerStrategy) -> Floats:
    rows = strategy.values()
    found = (
        np.linalg.inv(rows) if strategy.rows == strategy.cells and _full_rank(rows.T @ rows) else np.linalg.pinv(rows)
    )
    return np.asarray(found, dtype=np.float64)


def _add_decoder(strategy: IntegerStrategy) -> FactorStrategy:
    return FactorStrategy(strategy=strategy, decoder=_inverse(strategy))


def _regular(strategy: IntegerStrategy) -> IntegerStrategy:
    """Returns a square strategy, or every entry alone if rounding has made it singular: answers must follow from it."""
    rows = strategy.values()
    return strategy if _full_rank(rows.T @ rows) else IntegerStrategy(matrix=np.eye(len(rows), dtype=np.int64))


def _square(gram: Floats, largest: int) -> FactorStrategy:
    strategy = _regular(IntegerStrategy.round_matrix(np.linalg.cholesky(gram).T, largest=largest))
    return FactorStrategy(strategy=strategy, decoder=_inverse(strategy))


def _combine_measurements(weights: Floats, basis: IntegerStrategy, largest: int) -> FactorStrategy:
    """Measurements M B, M rounded to a grid and B of integers: their product is exact, and spans what B does."""
    widest = int(np.max(np.sum(np.abs(basis.matrix), axis=0)))
    finest = max(largest, _COARSE * widest) if _COARSE * widest <= LARGEST_ENTRY else largest
    rounded = _regular(IntegerStrategy.round_matrix(weights, largest=max(finest // widest, 1)))
    grid = Grid(rounded.grid.exponent + basis.grid.exponent)
    strategy = IntegerStrategy(matrix=rounded.matrix @ basis.matrix, grid=grid)
    return FactorStrategy(strategy=strategy, decoder=np.linalg.pinv(basis.values()) @ np.linalg.inv(rounded.values()))


def _spans(choice: FactorStrategy, gram: Floats) -> bool:
    """Returns whether all queries follow from a strategy, which a coarse grid could have cut short: V A^+ A = V."""
    return bool(
        np.allclose(gram @ choice.decoder @ choice.strategy.values(), gram, rtol=1e-6, atol=1e-6 * np.max(gram))
    )


def _laplace_error(choice: FactorStrategy, gram: Floats) -> float:
    sensitivity = float(choice.strategy.l1()) * float(choice.strategy.grid.step)
    return sensitivity**2 * choice.total(gram)


def _tree(cells: int, branch: int) -> NDArray[np.int64]:
    """Returns every cell, and sums of blocks of branch, branch^2, ... neighbours, up to all of them."""
    levels, width = [np.arange(cells)], branch
    while width < cells * branch:
        levels.append(np.arange(cells) // width)
        width *= branch
    rows = [(blocks == block).astype(np.int64) for blocks in levels for block in range(int(blocks[-1]) + 1)]
    return np.array(rows)


def _optimised_sums(gram: Floats) -> Floats:
    """[I; T] diag(1 / (1 + column sums of T)), T >= 0, whose columns all have the L1 norm 1.

    With s = 1 + 1^T T, K = (I + T^T T)^-1 and U_ij = s_i V_ij s_j, the error is tr(U K), and its gradient in T is
    -2 T K U K plus 2 (V * K) s in every row.
    """
    cells = len(gram)
    count = max(1, min(cells // 8, _MOST_SUMS))
    scale = float(np.trace(gram))

    def error(flat: Floats) -> tuple[float, Floats]:
        sums = flat.reshape(count, cells)
        lengths = 1 + np.sum(sums, axis=0)
        inverse = np.linalg.inv(np.eye(cells) + sums.T @ sums)
        scaled = lengths[:, None] * gram * lengths
        slope = -2 * sums @ (inverse @ scaled @ inverse) + 2 * (gram * inverse) @ lengths
        return float(np.sum(scaled * inverse)) / scale, np.asarray(slope).ravel() / scale

    places = np.arange(count * cells)
    start = 0.5 * (1 + np.sin(1.0 + places * (places % 7 + 1.0)))  # fixed, and without structure
    found = optimize.minimize(
        error, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * start.size, options={"maxiter": _SEARCHES}
    )
    sums = np.maximum(found.x.reshape(count, cells), 0)
    return np.asarray(np.vstack([np.eye(cells), sums]) / (1 + np.sum(sums, axis=0)))


def of_structures(parts: list[Any], shares: list[float]) -> FactorQueries:
    """Returns the queries of several structures over one attribute, with their weights, as one."""
    gram = sum(share * part.gram() for part, share in zip(parts, shares, strict=True))
    labels = np.array([part.classes() for part in parts])
    _, classes = np.unique(labels, axis=1, return_inverse=True)
    counted = np.where((labels >= 0).any(axis=0), classes.reshape(-1), -1)
    rows = parts[0].matrix() if len(parts) == 1 and parts[0].count <= 8 * parts[0].cells else None
    return FactorQueries(np.asarray(gram), counted, rows)
