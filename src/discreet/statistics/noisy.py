"""Released sums of powers of values, the law of their noise, and how far the noise and a sample can reach together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.lazy import special
from discreet.privacy.events import Event

Floats = NDArray[np.float64]

_APART = 1.01  # scales nearer than this are told apart by raising the larger
_TINY = 1e-9  # relative: a smaller scale is raised to this, which lengthens tails by nothing that could be seen
_LOST = 1e-9  # of a probability, at most, where weights of 10^5 cancel
_HALVINGS = 28
_ROUNDS, _POINTS = 5, 33  # of the search for an end: 32^5 parts of the range


@dataclass(frozen=True, slots=True, kw_only=True)
class Noisy:
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
        """For each row p the estimate of the sum over all values of p_0 + p_1 c + p_2 c^2 + ..."""
        known = polynomials @ self.constants[: polynomials.shape[1]]
        return np.asarray(self._weights(polynomials) @ self.values + known)

    def _weights(self, polynomials: Floats) -> Floats:
        return np.asarray(polynomials @ self.powers[: polynomials.shape[1]])

    def reach(self, polynomials: Floats, risk: float) -> Floats:
        """How much such a sum may exceed its estimate: it does so with at most this probability, for each row."""
        weights = np.abs(self._weights(polynomials))
        slack = weights @ self.steps
        if self.laplace:
            found = farthest((weights * self.scales).T, 2 * risk)  # symmetric: one side has half of it
        else:
            found = special.ndtri(1 - risk) * np.sqrt((weights**2) @ (self.scales**2))
        return np.asarray(found + slack)

    def outside(self, polynomials: Floats, variances: Floats | float) -> Floats:
        """For each row the chance that noise and a normal sampling error of this variance are as far from 0 together.

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
    """P(|N(0, variance) + sum of Laplace draws| > distance), the sizes of the draws in the rows, never too small.

    The characteristic function prod 1 / (1 + s_i^2 u^2) is sum_i w_i / (1 + s_i^2 u^2) with w_i = prod_(j != i) s_i^2 /
    (s_i^2 - s_j^2) for different s_i: the law is a signed mixture of single Laplace laws, each of which is added to the
    normal law in closed form. Nearly equal sizes are told apart by raising one, which makes every tail heavier.
    """
    ordered, shares = _mixture(sizes)
    found = np.sum(shares * _one_beyond(distance, np.sqrt(variance), ordered), axis=0)
    return np.asarray(np.clip(found, 0.0, 1.0))


def farthest(sizes: Floats, risk: float) -> Floats:
    """A distance that a sum of Laplace draws, their sizes in the rows, exceeds with at most this probability."""
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
    """Sizes told apart, in ascending order, and the weights of their single laws; larger than 10^5 they never are."""
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
    """P(|N(0, sigma^2) + Lap(size)| > distance).

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
    """The range from the smallest to the largest accepted number between low and high, `start` included.

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
