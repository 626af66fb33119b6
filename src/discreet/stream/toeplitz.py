"""Toeplitz factors of running sums and sliding windows: square roots of the series of their sums.

Notation: a series c stands for the lower-triangular matrix with c_k on its k-th diagonal; products of series are
products of matrices. Running sums are the series 1 + z + z^2 + ... = 1 / (1 - z), sums over a window of w periods are
1 + z + ... + z^(w - 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.exact import root_above
from discreet.stream.exact_products import (
    LARGEST_LENGTH,
    WEIGHT_BITS,
    Floats,
    History,
    Integers,
    float_product,
    to_grid,
)
from discreet.stream.factor import Decoder, Encoder, Factor, Gain
from discreet.stream.participation import Participation, earliest_move

LARGEST_HORIZON = LARGEST_LENGTH


def square_root_series(count: int) -> Floats:
    """Returns the first coefficients of 1 / sqrt(1 - z), the square root of the running sum.

    c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k) (Fichtenberger, Henzinger, Upadhyay 2023).

    >>> square_root_series(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, count)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def window_series(window: int, count: int) -> Floats:
    """Returns the first coefficients of the square root of a sliding window, sqrt((1 - z^w) / (1 - z)).

    It is the square root of the running sum times that of 1 - z^w, whose coefficient of z^(w j) is
    c_j / (1 - 2j) with the c above.
    """
    roots = square_root_series(count)
    sparse = square_root_series(-(-count // window)) / (1 - 2 * np.arange(-(-count // window)))
    found = np.zeros(count)
    for j, weight in enumerate(sparse):
        found[j * window :] += weight * roots[: count - j * window]
    return found


@dataclass(frozen=True, eq=False)
class Toeplitz(Factor):
    """A factor C of a series on the grid 2^-26, and B = W / C of the sums that are wanted.

    Args:
        horizon: how many periods there are.
        column: the series of C, in steps of 2^-26.
        weights: the series of B.
    """

    horizon: int
    column: Integers
    weights: Floats
    bits: int = WEIGHT_BITS

    def sensitivity(self, participation: Participation) -> Fraction:
        """Returns how far C x moves: the earliest periods move it farthest, see `earliest_move`."""
        squared = earliest_move(self.column.tolist(), participation, self.horizon)
        return root_above(Fraction(squared, 1 << (2 * WEIGHT_BITS)))

    def encoder(self) -> Encoder:
        """Returns a new encoder, before the first period."""
        return _Encoder(self)

    def decoder(self) -> Decoder:
        """Returns a new decoder, before the first period."""
        return _Decoder(self)

    def gains(self) -> Iterator[Gain]:
        """Yields the gain of each period."""
        squares, sizes = np.cumsum(self.weights**2).tolist(), np.cumsum(np.abs(self.weights)).tolist()
        return map(Gain, squares, sizes)


class _Encoder(Encoder):
    __slots__ = ("_floats", "_history", "_reversed")

    def __init__(self, factor: Toeplitz) -> None:
        self._reversed = np.ascontiguousarray(factor.column[::-1])
        self._floats = self._reversed.astype(np.float64)
        self._history = History(factor.horizon)

    def step(self, value: int) -> int:
        """Takes the next value and returns the next entry of C x."""
        self._history.append(value)
        count = self._history.count
        return self._history.product(self._reversed[-count:], self._floats[-count:])


class _Decoder(Decoder):
    __slots__ = ("_count", "_measured", "_reversed")

    def __init__(self, factor: Toeplitz) -> None:
        self._reversed = np.ascontiguousarray(factor.weights[::-1])
        self._measured = np.zeros(factor.horizon)
        self._count = 0

    def step(self, measured: float) -> float:
        """Takes the next entry of y and returns the next entry of B y."""
        self._measured[self._count] = measured
        self._count += 1
        return float_product(self._reversed[-self._count :], self._measured[: self._count])


def inverse_series(series: Floats) -> Floats:
    """Returns as many coefficients of 1 / c(z), by Newton's iteration g <- g (2 - c g), which doubles their number.

    >>> inverse_series(np.array([1.0, -1.0, 0.0, 0.0])).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    found = np.array([1 / series[0]])
    while len(found) < len(series):
        length = min(2 * len(found), len(series))
        error = -_product(series[:length], found, length)
        error[0] += 2
        found = _product(found, error, length)
    return found


def _product(left: Floats, right: Floats, length: int) -> Floats:
    """The first coefficients of a product of two series of at most so many."""
    size = 2 * length
    return np.fft.irfft(np.fft.rfft(left, size) * np.fft.rfft(right, size), size)[:length]


def _missing(column: Integers) -> Floats:
    """The series of B for running sums, 1 / ((1 - z) c(z)), given that of C on the grid."""
    return np.cumsum(inverse_series(np.ldexp(column.astype(np.float64), -WEIGHT_BITS)))


@lru_cache(maxsize=8)
def square_root_factor(horizon: int) -> Toeplitz:
    """Returns the square-root factor of running sums: within a constant of the least possible error, for every horizon.

    Rounded to the grid, C is not quite the square root; B is what is exactly missing, up to floats.
    """
    column = to_grid(square_root_series(horizon))
    return Toeplitz(horizon, column, _missing(column))


@lru_cache(maxsize=8)
def window_factor(window: int, horizon: int) -> Toeplitz:
    """Returns the square-root factor of sums over a sliding window."""
    column = to_grid(window_series(window, horizon))
    sums = _missing(column)
    return Toeplitz(horizon, column, sums - np.concatenate([np.zeros(min(window, horizon)), sums[:-window]]))
