"""Coins whose probability is an exactly known real number, one at a time or by the array.

A coin of probability t falls on 1 when a uniform real U is below t. The bits of U are drawn a few at a time and
compared with the leading bits of t; only a tie asks for more bits of both. The bits of t come from enclosures and are
certain, so the law is exact although nearly every toss looks at 16 bits only.

To start quickly, exp(-x) is computed in floats with a proven error, from nothing but correctly rounded additions and
products. The reduced argument r = x - i/64 is exact, being a multiple of the last bit of x below 1/64. The Taylor
polynomial of degree 6 leaves out less than (1/64)^7 / 7! < 2^-54, and its roundings, two table entries and two products
add less than 2^-48, all relative. An error of x itself below 2^-42 adds as much, relative. Together: below 2^-41.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.exact import Enclosure, Real, leading_bits
from discreet.noise.rng import LANE, TIES, WORD, Bits, endless

RELATIVE_ERROR = 2.0**-41
LARGEST = 64.0  # beyond, exp(-x) < 2^-92
_PARTS = 64

_WHOLE = [float(Decimal(-i).exp()) for i in range(int(LARGEST) + 1)]
_PART = [float((Decimal(-i) / _PARTS).exp()) for i in range(_PARTS)]
_WHOLE_ARRAY, _PART_ARRAY = np.array(_WHOLE), np.array(_PART)


def exponential(x: float) -> float:
    """Returns exp(-x) for x from 0 to 64, up to a relative error of 2^-41."""
    whole = int(x)
    part = int((x - whole) * _PARTS)
    r = x - whole - part / _PARTS
    series = 1 - r * (1 - r / 2 * (1 - r / 3 * (1 - r / 4 * (1 - r / 5 * (1 - r / 6)))))
    return _WHOLE[whole] * _PART[part] * series


def exponentials(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the same for an array."""
    whole = x.astype(np.int64)
    rest = x - whole
    part = (rest * _PARTS).astype(np.int64)
    rest -= part / _PARTS
    series = 1 - rest / 6
    for k in (5, 4, 3, 2, 1):
        series *= rest
        series /= -k
        series += 1
    result: NDArray[np.float64] = _WHOLE_ARRAY[whole] * _PART_ARRAY[part] * series
    return result


_REST = WORD - LANE
_MARGIN = 2.0**-36  # far above the relative error of `exponential`, for probabilities made of a few operations


class Coin:
    """A coin of irrational probability given by a recipe for its digits and, to start quickly, by a good float.

    >>> coin = Coin(lambda digits: Enclosure.of(-1, digits).exp())
    >>> coin.lane / 2**16  # the leading 16 bits of 1/e
    0.3678741455078125
    """

    __slots__ = ("_chunks", "_real", "lane")

    def __init__(self, real: Real, approximation: float | None = None) -> None:
        """Keeps the recipe.

        Args:
            real: the probability, strictly between 0 and 1 and no dyadic rational.
            approximation: the probability up to a relative error of 2^-36, or None.
        """
        self._real = real
        self._chunks: dict[int, int] = {}
        self.lane = self._first_look(approximation)

    def _first_look(self, approximation: float | None) -> int:
        if approximation is not None:
            low, high = (int(approximation * (1 + side) * 2**LANE) for side in (-_MARGIN, _MARGIN))
            if low == high:
                return low
        return self.word >> _REST

    @property
    def word(self) -> int:
        """Returns the leading 64 bits."""
        return self._chunk(0)

    def _chunk(self, index: int) -> int:
        if index not in self._chunks:  # two threads may both compute it, and then store the same
            self._chunks[index] = leading_bits(self._real, WORD * (index + 1)) & ((1 << WORD) - 1)
        return self._chunks[index]

    def toss(self, bits: Bits) -> bool:
        """Returns one toss of the coin."""
        return self.resume(bits.lanes(1)[0], bits)

    def resume(self, lane: int, bits: Bits) -> bool:
        """Returns the toss whose first 16 bits were already drawn."""
        return lane < self.lane if lane != self.lane else self.resume_word(lane << _REST | bits.integer(_REST), bits)

    def resume_word(self, drawn: int, bits: Bits) -> bool:
        """Returns the toss whose first 64 bits were already drawn."""
        for index in range(TIES):
            if drawn != self._chunk(index):
                return drawn < self._chunk(index)
            drawn = bits.word()
        raise endless()

    def toss_many(self, count: int, bits: Bits) -> NDArray[np.bool_]:
        """Returns an array of independent tosses."""
        lanes = np.empty(count, dtype=np.uint16)
        bits.fill(lanes)
        result = lanes < self.lane
        for index in np.flatnonzero(lanes == self.lane):
            result[index] = self.resume(self.lane, bits)
        return result


@lru_cache(maxsize=4096)
def exponential_coin(x: Fraction) -> Coin:
    """Returns the coin of probability exp(-x), x > 0 rational; irrational by Lindemann's theorem, so every tie ends."""
    return Coin(lambda digits: Enclosure.of(-x, digits).exp(), _estimate(x))


def _estimate(x: Fraction) -> float:
    """exp(-x) up to a relative error of 2^-41 where x <= 64; beyond, anything below 2^-92 starts with the same bits."""
    return exponential(float(x)) if x <= LARGEST else 2.0**-100
