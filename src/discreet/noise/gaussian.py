"""Discrete Gaussian noise by exact rejection from discrete Laplace noise (Canonne, Kamath, Steinke 2020, Alg. 3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.noise.coin import LARGEST, accept_many, accept_one
from discreet.noise.laplace import discrete_laplace, laplace_drawer
from discreet.noise.rng import TURNS, Bits, Shape, endless, shape_of, source_of

_LARGEST_ARRAY_SIGMA = 1 << 45  # proposals stay far below 2^53, where floats hold integers exactly
_LARGEST_HALF_PRECISION = 1 << 300  # with it x > 2^299 for z != 0 and x < 2^-300 for z = 0, and no product overflows
_PROPOSALS = 1.4  # per draw still missing; about 0.76 of the proposals are accepted


@dataclass(frozen=True, slots=True)
class _Target:
    """exp(-z^2 / (2 variance)) and the Laplace proposal of scale t = floor(sigma) + 1 under it."""

    variance: Fraction
    scale: int
    centre: float  # variance / t <= sigma, where the acceptance is largest
    half_precision: float  # 1 / (2 variance), or 2^300 where it is more and every z but 0 is out of reach
    propose: Callable[[Bits], int]
    small: bool  # whether |z| - centre is as good in floats as the error bound of `_many` says

    def approximate_rejection(self, proposal: int) -> float:
        """Returns the same x as `rejection`, off by less than 2^-42 wherever it is at most 64."""
        if not self.small:
            return float(min(self.rejection(proposal), Fraction(LARGEST)))
        distance = abs(proposal) - self.centre
        return distance * distance * self.half_precision

    def rejection(self, proposal: int) -> Fraction:
        """Returns the x of the acceptance probability exp(-x), x = (|z| - variance / t)^2 / (2 variance)."""
        return (abs(proposal) - self.variance / self.scale) ** 2 / (2 * self.variance)


def _target(sigma: Any) -> _Target:
    try:
        return _target_of(sigma)
    except TypeError:
        check.positive(sigma=sigma)  # what cannot be hashed is no number: this says so
        raise


@lru_cache(maxsize=1024, typed=True)
def _target_of(sigma: Any) -> _Target:
    exact = check.positive(sigma=sigma, floats="exact")
    variance, scale = exact * exact, math.floor(exact) + 1
    half_precision = float(min(1 / (2 * variance), Fraction(_LARGEST_HALF_PRECISION)))
    small = scale <= _LARGEST_ARRAY_SIGMA
    return _Target(variance, scale, float(variance / scale), half_precision, laplace_drawer(scale), small)


@overload
def discrete_gaussian(sigma: check.Number, size: None = None, *, bits: Bits | None = None) -> int: ...
@overload
def discrete_gaussian(sigma: check.Number, size: Shape, *, bits: Bits | None = None) -> NDArray[np.int64]: ...
def discrete_gaussian(
    sigma: check.Number, size: Shape | None = None, *, bits: Bits | None = None
) -> int | NDArray[np.int64]:
    """Draws exact discrete Gaussian noise, P(z) proportional to exp(-z^2 / (2 sigma^2)) on all integers.

    Args:
        sigma: any positive rational; a float is taken as the binary number it is.
        size: None for one int, else the shape of an int64 array (of Python ints for sigma above 2^45).
        bits: the source of randomness; None is the secure one of the system.

    Formal guarantee: the law is exact and its support unbounded.

    >>> discrete_gaussian("1/100", 4).tolist()
    [0, 0, 0, 0]
    """
    source = source_of(bits)
    target = _target(sigma)
    if size is None:
        return _one(target, source)
    shape = shape_of(size)
    count = math.prod(shape)
    if not target.small:
        return np.array([_one(target, source) for _ in range(count)], dtype=object).reshape(shape)
    return _many(target, count, source).reshape(shape)


def _one(target: _Target, bits: Bits) -> int:
    for _ in range(TURNS):
        proposal = target.propose(bits)
        x = target.approximate_rejection(proposal)
        if accept_one(x, lambda: target.rejection(proposal), bits):  # noqa: B023 - called before the next turn
            return proposal
    raise endless()


def _many(target: _Target, count: int, bits: Bits) -> NDArray[np.int64]:
    """Fills the array with accepted proposals; `centre <= sigma` keeps the error of x below 2^-44 where x <= 64.

    With d = |z| - centre, the roundings give x an absolute error of at most 2^-53 (|d| / sigma + 4 x), and |d| / sigma
    is sqrt(2 x) <= 12.
    """
    result = np.empty(count, dtype=np.int64)
    done = 0
    for _ in range(TURNS):
        if done == count:
            return result
        proposals = discrete_laplace(target.scale, int((count - done) * _PROPOSALS) + 16, bits=bits)
        x = np.abs(proposals) - target.centre
        x *= x
        x *= target.half_precision
        kept = proposals[accept_many(x, lambda i: target.rejection(int(proposals[i])), bits)][: count - done]  # noqa: B023
        result[done : done + kept.size] = kept
        done += kept.size
    raise endless()
