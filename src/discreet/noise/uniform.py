"""Uniform integers and coins of rational probability, by rejection: exact, with no modulo bias."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.noise.rng import TURNS, Bits, Shape, endless, shape_of, source_of


@overload
def uniform_below(bound: int, size: None = None, *, bits: Bits | None = None) -> int: ...
@overload
def uniform_below(bound: int, size: Shape, *, bits: Bits | None = None) -> NDArray[np.int64]: ...
def uniform_below(bound: int, size: Shape | None = None, *, bits: Bits | None = None) -> int | NDArray[np.int64]:
    """Draws integers uniformly from 0 to bound - 1.

    Args:
        bound: how many values there are, at least 1; at most 2^63 for an array.
        size: None for one int, else the shape of an int64 array.
        bits: the source of randomness; None is the secure one of the system.

    >>> uniform_below(1)
    0
    """
    source = source_of(bits)
    limit = check.integer(bound=bound, at_least=1)
    if size is None:
        return _one_below(limit, source)
    check.integer(bound=bound, at_most=1 << 63)
    shape = shape_of(size)
    return _many_below(limit, math.prod(shape), source).reshape(shape)


def _one_below(limit: int, bits: Bits) -> int:
    width = (limit - 1).bit_length()
    for _ in range(TURNS):
        if (drawn := bits.integer(width)) < limit:
            return drawn
    raise endless()


def _many_below(limit: int, count: int, bits: Bits) -> NDArray[np.int64]:
    shift = np.uint64(64 - max(1, (limit - 1).bit_length()))
    result = np.empty(count, dtype=np.int64)
    missing = np.arange(count)
    for _ in range(TURNS):
        if not missing.size:
            return result
        drawn = (bits.words(missing.size) >> shift).astype(np.int64)
        good = (drawn >= 0) & (drawn < limit)
        result[missing[good]] = drawn[good]
        missing = missing[~good]
    raise endless()


@overload
def bernoulli(probability: check.Number, size: None = None, *, bits: Bits | None = None) -> bool: ...
@overload
def bernoulli(probability: check.Number, size: Shape, *, bits: Bits | None = None) -> NDArray[np.bool_]: ...
def bernoulli(
    probability: check.Number, size: Shape | None = None, *, bits: Bits | None = None
) -> bool | NDArray[np.bool_]:
    """Tosses coins that show True with an exactly rational probability.

    >>> bernoulli("2/2"), bernoulli(0)
    (True, False)
    """
    source = source_of(bits)
    chance = check.share(probability=probability)
    if size is None:
        return _one_below(chance.denominator, source) < chance.numerator
    shape = shape_of(size)
    count = math.prod(shape)
    if chance.denominator <= 1 << 63:
        drawn = _many_below(chance.denominator, count, source)
        return (drawn < chance.numerator).reshape(shape)
    tosses = [_one_below(chance.denominator, source) < chance.numerator for _ in range(count)]
    return np.array(tosses, dtype=bool).reshape(shape)
