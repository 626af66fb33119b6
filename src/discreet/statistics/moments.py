"""Sums of powers of private values, released together for one budget: what means and spreads are made of.

A value is c on a scale from -1 to 1, and u = (1 + c) / 2 on one from 0 to 1; in integers, with k steps of w, c is
(2 k - w) / w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Composed, Event
from discreet.statistics.column import Column
from discreet.statistics.noisy import Floats, Noisy
from discreet.statistics.spending import Spending

COUNT_SHARE = Fraction(3, 8)  # of mu^2, for the number of values: near the best for means that could be anywhere
DEGREE = 4
COARSE = 1 << 14  # steps between the bounds: at most 2^15, whose fourth powers fit into int64
_LOW = (1 << 30) - 1


def exact_sum(values: NDArray[np.int64]) -> int:
    """The sum of integers of any sign and any number, as one that never wraps.

    >>> exact_sum(np.full(9, 2**62)) == 9 * 2**62
    True
    """
    return (int(np.sum(values >> 30)) << 30) + int(np.sum(values & _LOW))


def pair(column: Column, spending: Spending, bits: Bits) -> Noisy:
    """The sums of u and of 1 - u with Laplace noise: the number of values and their sum, in one release.

    Formal guarantee: pure epsilon-DP under ADD_REMOVE. A value more moves the two sums by k and w - k steps, which is w
    in the L1 norm whatever the value is (Kulesza, Suresh, Wang 2024).
    """
    mechanism = Laplace(epsilon=spending.pure_epsilon, sensitivity=column.width)
    ups, downs = exact_sum(column.steps), exact_sum(column.width - column.steps)
    released = [mechanism.release(ups, bits=bits), mechanism.release(downs, bits=bits)]
    return Noisy(
        values=np.array([float(Fraction(one, column.width)) for one in released]),
        scales=np.full(2, float(1 / spending.pure_epsilon)),
        steps=np.full(2, 1 / column.width),
        laplace=True,
        powers=np.array([[1.0, 1.0], [1.0, -1.0]]),
        constants=np.zeros(2),
        event=mechanism.event,
    )


def bernstein(column: Column, spending: Spending, bits: Bits) -> Noisy:
    """The sums of Bernstein's polynomials of degree 4 with Laplace noise: four moments and the number of values.

    Formal guarantee: pure epsilon-DP. The polynomials C(4, j) u^j (1 - u)^(4 - j) are never negative and add up to 1,
    so a value more moves the five sums by exactly 1 in the L1 norm, in integers by w^4; another value in its place by
    at most twice as much. Under REPLACE the number of values is known besides.

    Args:
        column: of at most 2^15 steps.
        spending: pure.
        bits: the source of randomness.
    """
    width, steps = column.width, column.steps
    unit = width**DEGREE
    replaced = column.neighbours is Neighbours.REPLACE
    mechanism = Laplace(epsilon=spending.pure_epsilon, sensitivity=unit * (1 + replaced))
    sums = [exact_sum(math.comb(DEGREE, j) * steps**j * (width - steps) ** (DEGREE - j)) for j in range(DEGREE + 1)]
    released = [mechanism.release(one, bits=bits) for one in sums]
    powers, constants = _from_bernstein(), np.zeros(DEGREE + 1)
    if replaced:
        powers[0] = 0.0
        constants[0] = column.public_size
    return Noisy(
        values=np.array([float(Fraction(one, unit)) for one in released]),
        scales=np.full(DEGREE + 1, float((1 + replaced) / spending.pure_epsilon)),
        steps=np.full(DEGREE + 1, 1 / unit),
        laplace=True,
        powers=powers,
        constants=constants,
        event=mechanism.event,
    )


def _from_bernstein() -> Floats:
    """The rows that turn the five sums into sums of powers of c.

    u^i is the sum over j of C(j, i) / C(4, i) times the j-th polynomial, and c^p = (2 u - 1)^p.
    """
    in_u = np.array([[math.comb(j, i) / math.comb(DEGREE, i) for j in range(DEGREE + 1)] for i in range(DEGREE + 1)])
    binomial = [[math.comb(p, i) * 2**i * (-1) ** (p - i) for i in range(DEGREE + 1)] for p in range(DEGREE + 1)]
    return np.asarray(np.array(binomial, dtype=float) @ in_u)


def gaussian(column: Column, spending: Spending, bits: Bits, degree: int = DEGREE) -> Noisy:
    """The sums of c, 1 - c^2, c (1 - c^2) and c^2 (1 - c^2), and the number of values, with normal noise.

    Formal guarantee: mu-GDP for the mu^2 of `spending`. With s = c^2 the four numbers of one value have the squared
    length s + (1 - s)^2 + s (1 - s)^2 + s^2 (1 - s)^2 = 1 - s^3 (1 - s), which is at most 1: all moments together cost
    what the first one costs. They get one noise of sensitivity 1 for 5/8 of mu^2, and the number of values gets 3/8;
    under REPLACE it is public, and two such vectors are at most 2 apart. In integers the j-th of them is a whole
    multiple of w^-j, and gets the noise times w^j. Fewer numbers are no longer a vector than all of them.

    Args:
        column: of at most 2^15 steps if the degree is above 2.
        spending: Gaussian.
        bits: the source of randomness.
        degree: 1, 2 or 4: how many of the four numbers are released.
    """
    replaced = column.neighbours is Neighbours.REPLACE
    part = spending if replaced else spending.share(1 - COUNT_SHARE)
    drawn = [
        _normal(one, column.width**j, Fraction(1 + replaced), part.noise_multiplier, bits)
        for j, one in enumerate(_numbers(column, degree), start=1)
    ]
    events = [drawn[0].event]  # the vector is one release, of one multiplier
    powers, constants = _from_gaussian(degree), np.zeros(degree + 1)
    if replaced:
        constants, powers = powers[:, 0] * column.public_size, powers[:, 1:]
    else:
        count = _normal(column.size, 1, Fraction(1), spending.share(COUNT_SHARE).noise_multiplier, bits)
        drawn, events = [count, *drawn], [*events, count.event]
    return Noisy(
        values=np.array([one.value for one in drawn]),
        scales=np.array([one.scale for one in drawn]),
        steps=np.array([one.step for one in drawn]),
        laplace=False,
        powers=powers,
        constants=constants,
        event=events[0] if len(events) == 1 else Composed(events),
    )


def _numbers(column: Column, degree: int) -> list[int]:
    """The exact sums of the first few of the four numbers, the j-th in units of w^-j."""
    width, centred = column.width, 2 * column.steps - column.width
    rest = width * width - centred * centred
    numbers = [centred, rest]
    if degree > 2:
        numbers += [centred * rest, centred * centred * rest]
    return [exact_sum(one) for one in numbers[:degree]]


@dataclass(frozen=True, slots=True)
class _Drawn:
    value: float
    scale: float
    step: float
    event: Event


def _normal(total: int, unit: int, sensitivity: Fraction, multiplier: Fraction, bits: Bits) -> _Drawn:
    """A sum in units of 1 / unit, of which one value moves so many whole ones, with normal noise."""
    mechanism = Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=sensitivity * unit)
    released = mechanism.release(total, bits=bits)
    scale, step = mechanism.sigma / unit, mechanism.grid.step / unit
    return _Drawn(float(Fraction(released) / unit), float(scale), float(step), mechanism.event)


def _from_gaussian(degree: int) -> Floats:
    """The rows that turn (1, c, 1 - c^2, c - c^3, c^2 - c^4) into powers of c."""
    powers = np.array(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [1.0, 0.0, -1.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, -1.0, 0.0],
            [1.0, 0.0, -1.0, 0.0, -1.0],
        ]
    )
    return powers[: degree + 1, : degree + 1]
