"""Toeplitz factors of running sums and sliding windows: square roots of the series of their sums.

Notation: a series c means the lower-triangular matrix with c_k on its k-th diagonal; products of series are
products of matrices. Running sums are the series 1 + z + z^2 + ... = 1 / (1 - z), sums over a window of w periods are
1 + z + ... + z^(w - 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import root_above
from discreet.mechanisms.strategy import inverse_series, power_series
from discreet.stream.factor import Decoder, Encoder, Gain, Participation, SumFactorization, earliest_move

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

WEIGHT_BITS = 26  # of the entries of a factor: they are multiples of 2^-26 of size at most 1
LARGEST_VALUE = 1 << 52  # of a private integer: floats hold them exactly
LARGEST_LENGTH = 1 << 16
_MODULUS = 1 << 64
_PART = 1 << 13


def to_grid(weights: Floats) -> Integers:
    """Returns weights as multiples of 2^-26, the nearest ones."""
    return np.rint(np.ldexp(weights, WEIGHT_BITS)).astype(np.int64)


def exact_product(weights: Integers, values: Integers, float_weights: Floats, float_values: Floats) -> int:
    """Returns the inner product of two integer vectors, exactly.

    Machine words give it modulo 2^64, floats give it nearly, and both together give it: with weights up to 2^26,
    values up to 2^52 and 2^16 of them, the terms add up to at most S = 2^94 in size, and the float product is off by
    less than 2^16 2^-53 S = 2^57 (Higham 2002, section 3.1), far below half the modulus.

    Args:
        weights: up to 2^26 in size.
        values: below 2^52 in size, as many, at most 2^16.
        float_weights: the same weights, as floats.
        float_values: the same values, as floats.
    """
    residue = int(weights @ values)
    nearly = float_product(float_weights, float_values)
    return residue + _MODULUS * math.floor((nearly - residue) / _MODULUS + 0.5)


def float_product(left: Floats, right: Floats) -> float:
    """Returns the inner product of two vectors of floats; long ones in parts, which wake no other threads."""
    if len(left) <= _PART:
        return float(left @ right)
    return sum(float(left[at : at + _PART] @ right[at : at + _PART]) for at in range(0, len(left), _PART))


class History:
    """The values of a stream so far, as integers and as floats, for exact products.

    Args:
        length: of the longest history that is looked at.
    """

    __slots__ = ("_floats", "_integers", "count")

    def __init__(self, length: int) -> None:
        self._integers, self._floats = np.zeros(length, dtype=np.int64), np.zeros(length)
        self.count = 0

    def append(self, value: int) -> None:
        """Takes the next value."""
        self._integers[self.count] = self._floats[self.count] = value
        self.count += 1

    def product(self, weights: Integers, float_weights: Floats) -> int:
        """Returns the exact inner product of all values, first to last, and as many weights."""
        count = self.count
        return exact_product(weights, self._integers[:count], float_weights, self._floats[:count])


def squared_length(vector: NDArray[Any]) -> int:
    """Returns the squared L2 norm of a vector of integers, exactly."""
    return sum(entry * entry for entry in vector.tolist())


LARGEST_HORIZON = LARGEST_LENGTH


def square_root_series(count: int) -> Floats:
    """Returns the first coefficients of 1 / sqrt(1 - z), the square root of the running sum.

    c_0 = 1, c_k = c_(k-1) (2k - 1) / (2k) (Fichtenberger, Henzinger, Upadhyay 2023).

    >>> square_root_series(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    return power_series(0.5, count)


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
class ToeplitzFactorization(SumFactorization):
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
        return _ToeplitzEncoder(self)

    def decoder(self) -> Decoder:
        """Returns a new decoder, before the first period."""
        return _ToeplitzDecoder(self)

    def gains(self) -> Iterator[Gain]:
        """Yields the gain of each period."""
        squares, sizes = np.cumsum(self.weights**2).tolist(), np.cumsum(np.abs(self.weights)).tolist()
        return map(Gain, squares, sizes)


class _ToeplitzEncoder(Encoder):
    __slots__ = ("_floats", "_history", "_reversed")

    def __init__(self, factor: ToeplitzFactorization) -> None:
        self._reversed = np.ascontiguousarray(factor.column[::-1])
        self._floats = self._reversed.astype(np.float64)
        self._history = History(factor.horizon)

    def step(self, value: int) -> int:
        """Takes the next value and returns the next entry of C x."""
        self._history.append(value)
        count = self._history.count
        return self._history.product(self._reversed[-count:], self._floats[-count:])


class _ToeplitzDecoder(Decoder):
    __slots__ = ("_count", "_measured", "_reversed")

    def __init__(self, factor: ToeplitzFactorization) -> None:
        self._reversed = np.ascontiguousarray(factor.weights[::-1])
        self._measured = np.zeros(factor.horizon)
        self._count = 0

    def step(self, measured: float) -> float:
        """Takes the next entry of y and returns the next entry of B y."""
        self._measured[self._count] = measured
        self._count += 1
        return float_product(self._reversed[-self._count :], self._measured[: self._count])


def _missing(column: Integers) -> Floats:
    """Returns the series of B for running sums, 1 / ((1 - z) c(z)), given that of C on the grid."""
    return np.cumsum(inverse_series(np.ldexp(column.astype(np.float64), -WEIGHT_BITS)))


@lru_cache(maxsize=8)
def square_root_factor(horizon: int) -> ToeplitzFactorization:
    """Returns the square-root factor of running sums: within a constant of the least possible error, for every horizon.

    Rounded to the grid, C is not quite the square root; B is what is exactly missing, up to floats.
    """
    column = to_grid(square_root_series(horizon))
    return ToeplitzFactorization(horizon, column, _missing(column))


@lru_cache(maxsize=8)
def window_factor(window: int, horizon: int) -> ToeplitzFactorization:
    """Returns the square-root factor of sums over a sliding window."""
    column = to_grid(window_series(window, horizon))
    sums = _missing(column)
    return ToeplitzFactorization(
        horizon, column, sums - np.concatenate([np.zeros(min(window, horizon)), sums[:-window]])
    )


LARGEST_WINDOW = LARGEST_LENGTH


@dataclass(frozen=True, eq=False)
class BandedFactorization(SumFactorization):
    """A factor of sums over a window: the first w coefficients of 1 / sqrt(1 - z) on the grid 2^-26, then zeros.

    The coefficients are positive and fall, so that all zeros of their polynomial lie outside the unit circle (Enestrom
    1893, Kakeya 1912): the inverse forgets exponentially fast, and the error does not grow, however long the stream is.

    Args:
        horizon: how many periods there are at most.
        column: the band, in steps of 2^-26.
    """

    horizon: int
    column: Integers
    bits: int = WEIGHT_BITS

    def sensitivity(self, participation: Participation) -> Fraction:
        """Returns how far C x moves: the earliest periods move it farthest, see `earliest_move`."""
        band = self.column[: self.horizon].tolist()
        return root_above(Fraction(earliest_move(band, participation, self.horizon), 1 << (2 * WEIGHT_BITS)))

    def encoder(self) -> Encoder:
        """Returns a new encoder, before the first period."""
        return _BandEncoder(self.column)

    def decoder(self) -> Decoder:
        """Returns a new decoder, before the first period."""
        return _BandDecoder(self.column)


class _BandEncoder(Encoder):
    __slots__ = ("_column", "_floats", "_latest", "_near")

    def __init__(self, column: Integers) -> None:
        self._column, self._floats = column, column.astype(np.float64)
        self._latest, self._near = np.zeros_like(column), np.zeros(len(column))  # newest first

    def step(self, value: int) -> int:
        """Takes the next value and returns the next entry of C x."""
        for latest in (self._latest, self._near):
            latest[1:] = latest[:-1]
            latest[0] = value
        return exact_product(self._column, self._latest, self._floats, self._near)


class _BandDecoder(Decoder):
    """Runs the inverse, x_t = (y_t - c_1 x_(t-1) - ...) / c_0, and adds up the last w of the x_t."""

    __slots__ = ("_band", "_latest")

    def __init__(self, column: Integers) -> None:
        self._band: Floats = np.ldexp(column.astype(np.float64), -WEIGHT_BITS)
        self._latest = np.zeros(len(column))

    def step(self, measured: float) -> float:
        """Takes the next entry of y and returns the next entry of B y."""
        latest = self._latest
        latest[1:] = latest[:-1]
        latest[0] = measured - float(self._band[1:] @ latest[1:])  # c_0 = 1
        return float(np.sum(latest))


@lru_cache(maxsize=8)
def banded_factor(window: int, horizon: int) -> BandedFactorization:
    """Returns the banded factor of sums over a window."""
    return BandedFactorization(horizon, to_grid(square_root_series(window)))
