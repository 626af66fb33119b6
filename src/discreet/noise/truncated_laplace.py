"""Discrete Laplace noise that never exceeds a public number, by drawing again what does."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.noise.exponential_coin import accept_many, accept_one
from discreet.noise.laplace import discrete_laplace
from discreet.noise.rng import TURNS, Bits, Shape, endless, shape_of, source_of
from discreet.noise.uniform import uniform_below

_LARGEST = 1 << 52


def truncated_laplace(scale: check.Number, most: int, size: Shape, *, bits: Bits | None = None) -> NDArray[Any]:
    """Draws exact discrete Laplace noise under the condition |z| <= most: P(z) ~ exp(-|z| / scale) on -most ... most.

    Args:
        scale: any positive rational; a float is taken as the binary number it is.
        most: the largest size of a draw, at least 0.
        size: the shape of the array: of int64, or of Python ints for scales or sizes above 2^52.
        bits: the source of randomness; None is the secure one of the system.

    Formal guarantee: the law is exact. Draws of the whole law are thrown away where they are too large, or, where most
    of them would be, whole numbers from -most to most are kept with probability exp(-|z| / scale). Either way more than
    half are kept: P(|Z| <= most) >= 1 - 1/e where most >= scale, and the mean of exp(-|z| / scale) is no less below.

    >>> truncated_laplace("1/1000000", 5, (2, 3)).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    source = source_of(bits)
    exact, limit = check.positive(scale=scale, floats="exact"), check.integer(most=most, at_least=0)
    shape = shape_of(size)
    count = math.prod(shape)
    if limit >= exact:
        return _long(exact, limit, count, source).reshape(shape)
    if limit <= _LARGEST:
        return _short(exact, limit, count, source).reshape(shape)
    return np.array([_one(exact, limit, source) for _ in range(count)], dtype=object).reshape(shape)


def _long(scale: Fraction, most: int, count: int, bits: Bits) -> NDArray[Any]:
    """Draws of the whole law."""
    result = discrete_laplace(scale, count, bits=bits)
    for _ in range(TURNS):
        outside = np.flatnonzero((result > most) | (result < -most))
        if not outside.size:
            return result
        result[outside] = discrete_laplace(scale, outside.size, bits=bits)
    raise endless()


def _short(scale: Fraction, most: int, count: int, bits: Bits) -> NDArray[np.int64]:
    """Draws of a flat law."""
    result = np.empty(count, dtype=np.int64)
    missing, rate = np.arange(count), float(1 / scale)
    for _ in range(TURNS):
        if not missing.size:
            return result
        drawn = uniform_below(2 * most + 1, missing.size, bits=bits) - most
        exact = partial(_rate, drawn, scale)
        good = accept_many(np.abs(drawn) * rate, exact, bits)
        result[missing[good]] = drawn[good]
        missing = missing[~good]
    raise endless()


def _rate(drawn: NDArray[np.int64], scale: Fraction, index: int) -> Fraction:
    return abs(int(drawn[index])) / scale


def _one(scale: Fraction, most: int, bits: Bits) -> int:
    for _ in range(TURNS):
        drawn = uniform_below(2 * most + 1, bits=bits) - most
        x = abs(drawn) / scale
        if accept_one(float(x), partial(Fraction, x), bits):
            return drawn
    raise endless()
