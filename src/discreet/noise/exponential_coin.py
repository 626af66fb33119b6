"""Bernoulli(exp(-x)): one fixed x by a coin, or a different x for every entry of an array.

The array form decides from 64 random bits and a float whose error is proven below; the few entries that fall inside the
error are settled in exact arithmetic, so the law is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.noise.coin import LARGEST, RELATIVE_ERROR, exponential, exponential_coin, exponentials
from discreet.noise.rng import LANE, WORD, Bits, Shape, shape_of, source_of

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
