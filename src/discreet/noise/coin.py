"""Coins whose probability is an exactly known real number, one at a time or by the array.

A coin of probability t falls on 1 when a uniform real U is below t. The bits of U are drawn a few at a time and
compared with the leading bits of t; only a tie asks for more bits of both. The bits of t come from enclosures and are
certain, so the law is exact although nearly every toss looks at 16 bits only.

To start quickly, exp(-x) is computed in floats with a proven error, from nothing but correctly rounded additions and
products. The reduced argument r = x - i/64 is exact, being a multiple of the last bit of x below 1/64. The Taylor
polynomial of degree 6 leaves out less than (1/64)^7 / 7! < 2^-54, and its roundings, two table entries and two products
add less than 2^-48, all relative. An error of x itself below 2^-42 adds as much, relative. Together: below 2^-41.

Bernoulli(exp(-x)) for one fixed x is such a coin. With a different x for every entry of an array, 64 random bits and
such a float decide; the few entries that fall inside its error are settled in exact arithmetic, so the law is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.exact import Enclosure, Real, leading_bits
from discreet.noise.rng import LANE, TIES, WORD, Bits, Shape, endless, shape_of, source_of

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


_MARGIN = 2 * RELATIVE_ERROR
_WORDS, _LANES = 2.0**WORD, 2.0**LANE


@overload
def bernoulli_exp(x: check.Number, size: None = None, *, bits: Bits | None = None) -> bool: ...
@overload
def bernoulli_exp(x: check.Number, size: Shape, *, bits: Bits | None = None) -> NDArray[np.bool_]: ...
def bernoulli_exp(x: check.Number, size: Shape | None = None, *, bits: Bits | None = None) -> bool | NDArray[np.bool_]:
    """Tosses coins that show True with probability exp(-x), exactly.

    Args:
        x: a rational of at least 0; a float is taken as the binary number it is.
        size: None for one bool, else the shape of an array.
        bits: the source of randomness; None is the secure one of the system.

    >>> bernoulli_exp(0)
    True
    """
    source = source_of(bits)
    rate = check.not_negative(x=x, floats="exact")
    shape = () if size is None else shape_of(size)
    if size is None:
        return rate == 0 or exponential_coin(rate).toss(source)
    if rate == 0:
        return np.ones(shape, dtype=bool)
    return exponential_coin(rate).toss_many(math.prod(shape), source).reshape(shape)


def accept_many(x: NDArray[np.float64], exact: Callable[[int], Fraction], bits: Bits) -> NDArray[np.bool_]:
    """Tosses independent coins of probability exp(-x_i), x given by floats and, where needed, exactly.

    Args:
        x: approximations of numbers of at least 0, off by less than 2^-42 wherever they are at most 64.
        exact: the i-th number itself, asked for undecided entries only.
        bits: the source of randomness.
    """
    drawn = bits.words(x.size)
    chance = exponentials(np.clip(x, 0.0, LARGEST)) * _WORDS  # beyond 64 only draws up to 2 are undecided
    uniform = drawn.astype(np.float64)
    result = uniform < chance * (1 - _MARGIN) - 2
    unsure = ~result & (uniform <= chance * (1 + _MARGIN) + 2)
    for index in np.flatnonzero(unsure):
        result[index] = _settle(int(drawn[index]), exact(int(index)), bits)
    return result


def accept_one(x: float, exact: Callable[[], Fraction], bits: Bits) -> bool:
    """Returns the same for a single number, from 16 bits nearly always, without the cost of arrays."""
    lane = bits.lanes(1)[0]
    chance = exponential(min(x, LARGEST)) * _LANES
    if lane + 1 < chance * (1 - _MARGIN):
        return True
    if lane > chance * (1 + _MARGIN):
        return False
    return _settle(lane << WORD - LANE | bits.integer(WORD - LANE), exact(), bits)


def _settle(drawn: int, x: Fraction, bits: Bits) -> bool:
    return x == 0 or exponential_coin(x).resume_word(drawn, bits)
