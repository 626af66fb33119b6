"""Sliding windows in bounded memory: a band of the square root, for any number of periods."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.exact import root_above
from discreet.stream.exact_products import LARGEST_LENGTH, WEIGHT_BITS, Floats, Integers, exact_product, to_grid
from discreet.stream.factor import Decoder, Encoder, Factor
from discreet.stream.participation import Participation, earliest_move
from discreet.stream.toeplitz import square_root_series

LARGEST_WINDOW = LARGEST_LENGTH


@dataclass(frozen=True, eq=False)
class Banded(Factor):
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
        return _Encoder(self.column)

    def decoder(self) -> Decoder:
        """Returns a new decoder, before the first period."""
        return _Decoder(self.column)


class _Encoder(Encoder):
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


class _Decoder(Decoder):
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
def banded_factor(window: int, horizon: int) -> Banded:
    """Returns the banded factor of sums over a window."""
    return Banded(horizon, to_grid(square_root_series(window)))
