"""The factor of least mean variance, as a dense lower-triangular matrix: for streams of up to 4,096 periods."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import root_above
from discreet.lazy import linalg
from discreet.mechanisms.optimal_gram import MOST_CELLS, optimal_gram
from discreet.stream.factor import Decoder, Encoder, Gain, Participation, SumFactorization
from discreet.stream.toeplitz import WEIGHT_BITS, Floats, History, Integers, squared_length, to_grid

LARGEST_ORDER = MOST_CELLS


@dataclass(frozen=True, eq=False)
class TriangularFactorization(SumFactorization):
    """A lower-triangular C on the grid 2^-26, for sums over all periods so far or over a window of them.

    Args:
        horizon: how many periods there are.
        matrix: C, in steps of 2^-26.
        window: over how many periods sums go.
    """

    horizon: int
    matrix: Integers
    window: int
    bits: int = WEIGHT_BITS

    def sensitivity(self, participation: Participation) -> Fraction:
        """Returns the length of the longest column: each unit is in one period.

        Raises:
            InvalidParameter: if it may be in several.
        """
        if participation.times > 1:
            hint = "Pass method='square root', whose sensitivity is known for several."
            raise InvalidParameter("participation", participation, "to be one period for method='optimal'", hint)
        columns = np.ldexp(self.matrix.astype(np.float64), -WEIGHT_BITS)
        near = np.sum(columns**2, axis=0)
        longest = np.flatnonzero(near >= np.max(near) * (1 - 1e-9))  # the others are certainly shorter
        squared = max(squared_length(self.matrix[:, j]) for j in longest.tolist())
        return root_above(Fraction(squared, 1 << (2 * WEIGHT_BITS)))

    def encoder(self) -> Encoder:
        """Returns a new encoder, before the first period."""
        return _TriangularEncoder(self)

    def decoder(self) -> Decoder:
        """Returns a new decoder, before the first period."""
        return _TriangularDecoder(self)

    def gains(self) -> Iterator[Gain]:
        """Yields the gain of each period: squares and sizes of the rows of B = W C^-1."""
        inverse = linalg.solve_triangular(_floats(self.matrix), np.eye(self.horizon), lower=True)
        sums = np.cumsum(inverse, axis=0)
        sums[self.window :] -= sums[: -self.window].copy() if self.window < self.horizon else 0
        return map(Gain, np.sum(sums**2, axis=1).tolist(), np.sum(np.abs(sums), axis=1).tolist())


class _TriangularEncoder(Encoder):
    __slots__ = ("_history", "_matrix")

    def __init__(self, factor: TriangularFactorization) -> None:
        self._matrix, self._history = factor.matrix, History(factor.horizon)

    def step(self, value: int) -> int:
        """Takes the next value and returns the next entry of C x."""
        self._history.append(value)
        row = self._matrix[self._history.count - 1, : self._history.count]
        return self._history.product(row, row.astype(np.float64))


class _TriangularDecoder(Decoder):
    """Solves C x = y row by row, and adds up the x_t of the window."""

    __slots__ = ("_count", "_matrix", "_solved", "_window")

    def __init__(self, factor: TriangularFactorization) -> None:
        self._matrix, self._window = factor.matrix, factor.window
        self._solved, self._count = np.zeros(factor.horizon), 0

    def step(self, measured: float) -> float:
        """Takes the next entry of y and returns the next entry of B y."""
        t = self._count
        row = _floats(self._matrix[t, : t + 1])
        self._solved[t] = (measured - float(row[:t] @ self._solved[:t])) / float(row[t])
        self._count += 1
        return float(np.sum(self._solved[max(0, self._count - self._window) : self._count]))


def _floats(matrix: Integers) -> Floats:
    return np.ldexp(matrix.astype(np.float64), -WEIGHT_BITS)


def optimal_running_sum(horizon: int) -> TriangularFactorization:
    """Returns the factor of running sums with the least mean variance."""
    return optimal_window(horizon, horizon)


@lru_cache(maxsize=2)
def optimal_window(window: int, horizon: int) -> TriangularFactorization:
    """Returns the factor of sums over a window with the least mean variance over all periods.

    C is the reverse Cholesky factor of the optimal Gram matrix, rounded to the grid.
    """
    sums = np.tril(np.ones((horizon, horizon))) - np.tril(np.ones((horizon, horizon)), -window)
    return TriangularFactorization(horizon, to_grid(optimal_gram(sums.T @ sums).triangular_factor()), window)
