"""Sums of powers of private values, released together: their noise, its law, and how far it reaches with a sample.

Means and variances are made of them. A value is c on a scale from -1 to 1, and u = (1 + c) / 2 on one from 0 to 1; in
integers, with k steps of w, c is (2 k - w) / w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.lazy import special
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Composed, Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import NumericColumn

Floats = NDArray[np.float64]

_APART = 1.01  # of scales nearer than this, the larger is raised, so that all differ
_TINY = 1e-9  # relative: a smaller scale is raised to this, which lengthens tails by nothing that could be seen
_LOST = 1e-9  # of a probability, at most, where weights of 10^5 cancel
_HALVINGS = 28
_ROUNDS, _POINTS = 5, 33  # of the search for an end: 32^5 parts of the range

COUNT_SHARE = Fraction(3, 8)  # of mu^2, for the number of values: near the best for means that could be anywhere
DEGREE = 4
COARSE = 1 << 14  # steps between the bounds: at most 2^15, whose fourth powers fit into int64
_LOW = (1 << 30) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyPowerSums:
    """Numbers that were released, and what they say about sums of powers of c, a value on a scale from -1 to 1.

    The sum of c^j over all values is `powers[j] @ values + constants[j]`, but for the noise.

    Attributes:
        values: the released numbers.
        scales: of the noise of each: b of Laplace noise, sigma of normal noise.
        steps: how far each may lie from the same sum with real noise, because it is on a grid.
        laplace: which of the two noises it is.
        powers: a row for each power, from 0.
        constants: what is known without noise: the number of values under REPLACE.
        event: what was released.
    """

    values: Floats
    scales: Floats
    steps: Floats
    laplace: bool
    powers: Floats
    constants: Floats
    event: Event

    def sums(self, polynomials: Floats) -> Floats:
        """Returns for each row p the estimate of the sum over all values of p_0 + p_1 c + p_2 c^2 + ..."""
        known = polynomials @ self.constants[: polynomials.shape[1]]
        return np.asarray(self._weights(polynomials) @ self.values + known)

    def _weights(self, polynomials: Floats) -> Floats:
        return np.asarray(polynomials @ self.powers[: polynomials.shape[1]])

    def reach(self, polynomials: Floats, risk: float) -> Floats:
        """Returns how much such a sum may exceed its estimate.

        It does so with at most this probability, for each row.
        """
        weights = np.abs(self._weights(polynomials))
        slack = weights @ self.steps
        if self.laplace:
            found = farthest((weights * self.scales).T, 2 * risk)  # symmetric: one side has half of it
        else:
            found = special.ndtri(1 - risk) * np.sqrt((weights**2) @ (self.scales**2))
        return np.asarray(found + slack)

    def outside(self, polynomials: Floats, variances: Floats | float) -> Floats:
        """Returns for each row the chance that noise and a normal sampling error are as far from 0 together.

        This is the p-value of "the sum of p(c) is 0 in the mean", with the given variance of the exact sum.
        """
        weights = np.abs(self._weights(polynomials))
        distance = np.maximum(np.abs(self.sums(polynomials)) - weights @ self.steps, 0.0)
        spread = np.broadcast_to(np.asarray(variances, dtype=float), distance.shape)
        if not self.laplace:
            total = spread + (weights**2) @ (self.scales**2)
            return np.asarray(2 * special.ndtr(-distance / np.sqrt(np.maximum(total, 1e-300))))
        return beyond(distance, spread, (weights * self.scales).T)


def beyond(distance: Floats, variance: Floats, sizes: Floats) -> Floats:
    """Returns P(|N(0, variance) + sum of Laplace draws| > distance), sizes of draws in the rows, never too small.

    The characteristic function prod 1 / (1 + s_i^2 u^2) is sum_i w_i / (1 + s_i^2 u^2) with w_i = prod_(j != i) s_i^2 /
    (s_i^2 - s_j^2) for different s_i: the law is a signed mixture of single Laplace laws, and each is added to the
    normal law in closed form. Of nearly equal sizes one is raised, so that all differ, which makes every tail heavier.
    """
    ordered, shares = _mixture(sizes)
    found = np.sum(shares * _one_beyond(distance, np.sqrt(variance), ordered), axis=0)
    return np.asarray(np.clip(found, 0.0, 1.0))


def farthest(sizes: Floats, risk: float) -> Floats:
    """Returns a distance that a sum of Laplace draws, their sizes in the rows, exceeds at most this often."""
    ordered, shares = _mixture(sizes)
    low, high = np.zeros(sizes.shape[1]), np.sum(ordered, axis=0) * math.log(len(ordered) / risk)
    if risk < 1000 * _LOST:
        return np.asarray(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        heavy = np.sum(shares * np.exp(-middle / ordered), axis=0) > risk - _LOST
        low, high = np.where(heavy, middle, low), np.where(heavy, high, middle)
    return np.asarray(high)


def _mixture(sizes: Floats) -> tuple[Floats, Floats]:
    """Returns different sizes, ascending, and the weights of their single laws; no weight is larger than 10^5."""
    top = np.maximum(np.max(np.abs(sizes), axis=0), 1e-200)
    ordered = np.maximum(np.sort(np.abs(sizes), axis=0) / top, _TINY)
    for i in range(1, len(ordered)):
        ordered[i] = np.maximum(ordered[i], ordered[i - 1] * _APART)
    squares, shares = ordered**2, np.ones_like(ordered)
    for i in range(len(ordered)):
        for j in (j for j in range(len(ordered)) if j != i):
            shares[i] *= squares[i] / (squares[i] - squares[j])
    return ordered * top, shares


def _one_beyond(distance: Floats, sigma: Floats, size: Floats) -> Floats:
    """Returns P(|N(0, sigma^2) + Lap(size)| > distance).

    On each side it is Q(t / sigma) + (e^(h - t/b) Q(sigma/b - t/sigma) - e^(h + t/b) Q(sigma/b + t/sigma)) / 2 with h =
    sigma^2 / (2 b^2) and Q = 1 - Phi, by integration by parts; the products are written so that nothing overflows.
    """
    wide = np.maximum(sigma, 1e-12 * size)
    near, ratio = distance / wide, wide / size
    bell = np.exp(-0.5 * near**2) / 2
    inner, outer = (ratio - near) / math.sqrt(2), (ratio + near) / math.sqrt(2)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        # e^(h - t/b) Q(x) is e^(-t^2 / (2 sigma^2)) erfcx(x / sqrt 2) / 2, and where x < 0 its exponent is negative
        steep = np.exp(np.minimum(ratio * (ratio / 2 - near), 0.0)) * special.ndtr(-math.sqrt(2) * inner)
        first = np.where(inner >= 0, bell * special.erfcx(np.maximum(inner, 0.0)), steep)
    return np.asarray(2 * special.ndtr(-near) + first - bell * special.erfcx(outer))


def hull(accepts: Callable[[Floats], NDArray[np.bool_]], start: float, low: float, high: float) -> tuple[float, float]:
    """Returns the range from the smallest to the largest accepted number between low and high, `start` included.

    What is accepted is looked for on ever finer lattices; the ends lie just outside of it.
    """
    return _end(accepts, start, low), _end(accepts, start, high)


def _end(accepts: Callable[[Floats], NDArray[np.bool_]], inside: float, outer: float) -> float:
    for _ in range(_ROUNDS):
        points = np.linspace(outer, inside, _POINTS)
        accepted = accepts(points)
        accepted[-1] = True
        first = int(np.argmax(accepted))
        if first == 0:
            return outer
        outer, inside = float(points[first - 1]), float(points[first])
    return outer


def exact_sum(values: NDArray[np.int64]) -> int:
    """Returns the sum of integers of any sign and any number, as one that never wraps.

    >>> exact_sum(np.full(9, 2**62)) == 9 * 2**62
    True
    """
    return (int(np.sum(values >> 30)) << 30) + int(np.sum(values & _LOW))


def pair(column: NumericColumn, spending: Spending, bits: Bits) -> NoisyPowerSums:
    """Returns the sums of u and of 1 - u with Laplace noise: the number of values and their sum, in one release.

    Formal guarantee: pure epsilon-DP under ADD_REMOVE. A value more moves the two sums by k and w - k steps, which is w
    in the L1 norm whatever the value is (Kulesza, Suresh, Wang 2024).
    """
    mechanism = Laplace(epsilon=spending.pure_epsilon, sensitivity=column.width)
    ups, downs = exact_sum(column.steps), exact_sum(column.width - column.steps)
    released = [mechanism.release(ups, bits=bits), mechanism.release(downs, bits=bits)]
    return NoisyPowerSums(
        values=np.array([float(Fraction(one, column.width)) for one in released]),
        scales=np.full(2, float(1 / spending.pure_epsilon)),
        steps=np.full(2, 1 / column.width),
        laplace=True,
        powers=np.array([[1.0, 1.0], [1.0, -1.0]]),
        constants=np.zeros(2),
        event=mechanism.event,
    )


def bernstein(column: NumericColumn, spending: Spending, bits: Bits) -> NoisyPowerSums:
    """Returns the sums of Bernstein's polynomials of degree 4 with Laplace noise.

    They contain four moments and the number of values.

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
    return NoisyPowerSums(
        values=np.array([float(Fraction(one, unit)) for one in released]),
        scales=np.full(DEGREE + 1, float((1 + replaced) / spending.pure_epsilon)),
        steps=np.full(DEGREE + 1, 1 / unit),
        laplace=True,
        powers=powers,
        constants=constants,
        event=mechanism.event,
    )


def _from_bernstein() -> Floats:
    """Returns the rows that turn the five sums into sums of powers of c.

    u^i is the sum over j of C(j, i) / C(4, i) times the j-th polynomial, and c^p = (2 u - 1)^p.
    """
    in_u = np.array([[math.comb(j, i) / math.comb(DEGREE, i) for j in range(DEGREE + 1)] for i in range(DEGREE + 1)])
    binomial = [[math.comb(p, i) * 2**i * (-1) ** (p - i) for i in range(DEGREE + 1)] for p in range(DEGREE + 1)]
    return np.asarray(np.array(binomial, dtype=float) @ in_u)


def gaussian(column: NumericColumn, spending: Spending, bits: Bits, degree: int = DEGREE) -> NoisyPowerSums:
    """Returns the sums of c, 1 - c^2, c (1 - c^2) and c^2 (1 - c^2), and the number of values, with normal noise.

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
    return NoisyPowerSums(
        values=np.array([one.value for one in drawn]),
        scales=np.array([one.scale for one in drawn]),
        steps=np.array([one.step for one in drawn]),
        laplace=False,
        powers=powers,
        constants=constants,
        event=events[0] if len(events) == 1 else Composed(events),
    )


def _numbers(column: NumericColumn, degree: int) -> list[int]:
    """Returns the exact sums of the first few of the four numbers, the j-th in units of w^-j."""
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
    """Returns a sum with normal noise, in units of 1 / unit; one value moves it by at most `sensitivity`."""
    mechanism = Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=sensitivity * unit)
    released = mechanism.release(total, bits=bits)
    scale, step = mechanism.sigma / unit, mechanism.grid.step / unit
    return _Drawn(float(Fraction(released) / unit), float(scale), float(step), mechanism.event)


def _from_gaussian(degree: int) -> Floats:
    """Returns the rows that turn (1, c, 1 - c^2, c - c^3, c^2 - c^4) into powers of c."""
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
