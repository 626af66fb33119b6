"""The K-norm mechanism: Laplace noise of many dimensions at once, for the L2 and the maximum norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Grid, Real, settle
from discreet.mechanisms.mechanism import (
    CONFIDENCE,
    HALF,
    AdditiveMechanism,
    exact_offsets,
    numeric,
    public_grid,
    reasonable_noise,
)
from discreet.mechanisms.tails import DIGITS, polynomial_reach
from discreet.noise import Bits, LazyUniform, source_of
from discreet.noise.real import disc_point
from discreet.privacy import events

STEPS = 1024  # of the default grid, per sensitivity / epsilon
LARGEST_DIMENSION = 10**4
FIRST_DIGITS = 28  # decide nearly every rounding

Vector = Callable[[int], list[Enclosure]]
"""A real vector as a recipe: given a number of digits, enclosures computed with that many."""


class Norm(Enum):
    """The norms for which the K-norm law can be drawn directly.

    A unit that moves each of 3 entries by up to 1 moves them by up to sqrt(3) in the L2 norm:

    >>> error = KNorm(epsilon=1, sensitivity=1, dimension=3, norm=Norm.LINF).error()
    >>> float(error), float(KNorm(epsilon=1, sensitivity="1.7320509", dimension=3, norm=Norm.L2).error())
    (5.1875, 7.125)
    """

    L2 = "l2"
    LINF = "linf"

    @classmethod
    def _missing_(cls, value: object) -> Norm:
        raise InvalidParameter("norm", value, "to be 'l2' or 'linf'", "For the L1 norm use Laplace.")


@dataclass(frozen=True, slots=True, init=False)
class KNorm(AdditiveMechanism):
    """Adds noise of density ~ exp(-epsilon ||z|| / sensitivity) and rounds the result to a public grid, correctly.

    Formal guarantee: pure epsilon-DP for every two vectors at a distance of at most `sensitivity` in the norm: the
    triangle inequality bounds the log ratio of densities (Hardt, Talwar 2010), and rounding is post-processing, so
    that nothing is added to the sensitivity. The noise is computed from lazily drawn bits in enclosures until every
    entry's grid point is certain.

    With b = sensitivity / epsilon: for L2, a radius of law Gamma(d, b) times a uniform direction; for the maximum
    norm, a radius of law Gamma(d + 1, b) times a uniform point of the cube [-1, 1]^d.

    Args:
        epsilon: above 0.
        sensitivity: above 0, how far one unit can move the whole vector in the norm.
        dimension: the number of entries, exactly.
        norm: "l2" or "linf".
        grid: a `Grid`, or its step; None is the coarsest with at least 1024 steps to sensitivity / epsilon.

    Raises:
        InvalidParameter: outside these domains.

    >>> mechanism = KNorm(epsilon=1, sensitivity=1, dimension=3)
    >>> mechanism.release([0.5, 1.5, -2.0]).shape, mechanism.event
    ((3,), Pure(epsilon=Fraction(1, 1)))
    """

    epsilon: Fraction
    sensitivity: Fraction
    dimension: int
    norm: Norm
    grid: Grid

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number,
        dimension: int,
        norm: Norm | Literal["l2", "linf"] = Norm.L2,
        grid: Grid | Number | None = None,
    ) -> None:
        budget, move = check.positive(epsilon=epsilon), check.positive(sensitivity=sensitivity)
        reasonable_noise(move / budget, "sensitivity")
        found = Grid.finer_than(move / budget / STEPS) if grid is None else grid
        assign(
            self,
            epsilon=budget,
            sensitivity=move,
            dimension=check.integer(dimension=dimension, at_least=1, at_most=LARGEST_DIMENSION),
            norm=Norm(norm),
            grid=public_grid(found),
        )

    @property
    def event(self) -> events.Pure:
        """Returns what one release costs, for accounting."""
        return events.Pure(self.epsilon)

    @property
    def _scale(self) -> Fraction:
        return self.sensitivity / self.epsilon

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases the grid points nearest to the entries plus noise.

        Raises:
            InvalidValue: if an entry is no finite number, or there are more or fewer than `dimension`.
        """
        found = numeric(value)
        if np.size(found) != self.dimension:
            size = np.size(found)
            raise InvalidValue(f"to have exactly dimension={self.dimension} entries", f"Pass dimension={size}.")
        places = exact_offsets(found, self.grid)
        noise = _DRAWS[self.norm](self.dimension, source_of(bits))
        scale = self._scale / self.grid.step
        steps = settle(lambda digits: _nearest(noise(digits), scale, places), digits=FIRST_DIGITS)
        if not isinstance(found, np.ndarray):
            return self.grid.value(steps[0])
        array = np.empty(found.size, dtype=object)
        array[:] = steps
        return self.grid.value(_compact(array).reshape(found.shape))

    def error(self, *, confidence: check.Number = CONFIDENCE) -> Fraction:
        """Returns the distance that the error of one entry keeps to with at least this probability."""
        reach = _reach(self.norm, self.dimension, 1 - check.probability(confidence=confidence))
        return math.ceil(reach * self._scale / self.grid.step + HALF) * self.grid.step


def _nearest(noise: list[Enclosure], scale: Fraction, places: list[Fraction]) -> list[int]:
    return [(z * scale + (place + HALF)).floor() for z, place in zip(noise, places, strict=True)]


def _compact(steps: Any) -> Any:
    return steps.astype(np.int64) if all(abs(step) < 1 << 62 for step in steps) else steps


def _gamma(shape: int, bits: Bits) -> Real:
    """Returns the sum of exponential variables, minus the logarithm of a product of uniform ones."""
    uniforms = [LazyUniform(bits) for _ in range(shape)]

    def value(digits: int) -> Enclosure:
        product = Enclosure.of(1, digits)
        for uniform in uniforms:
            product = product * uniform(digits)
        return -product.log()

    return value


def _sphere(dimension: int, bits: Bits) -> Vector:
    """Returns density ~ exp(-||z||_2): a radius of law Gamma(d) times a uniform direction, that of a normal vector."""
    radius = _gamma(dimension, bits)
    pairs = [disc_point(bits) for _ in range((dimension + 1) // 2)]

    def value(digits: int) -> list[Enclosure]:
        entries = [normal for x, y in pairs for normal in _normals(x(digits), y(digits))][:dimension]
        square = Enclosure.of(0, digits)
        for entry in entries:
            square = square + entry * entry
        factor = radius(digits) / square.sqrt()
        return [entry * factor for entry in entries]

    return value


def _normals(first: Enclosure, second: Enclosure) -> tuple[Enclosure, Enclosure]:
    """Returns two independent normal variables from one uniform point of the disc (Marsaglia, Bray 1964)."""
    x, y = first * 2 - 1, second * 2 - 1
    square = x * x + y * y
    factor = (square.log() * -2 / square).sqrt()
    return x * factor, y * factor


def _cube(dimension: int, bits: Bits) -> Vector:
    """Returns density ~ exp(-||z||_inf): a radius of law Gamma(d + 1) times a uniform point of the cube."""
    radius = _gamma(dimension + 1, bits)
    uniforms = [LazyUniform(bits) for _ in range(dimension)]

    def value(digits: int) -> list[Enclosure]:
        factor = radius(digits)
        return [(uniform(digits) * 2 - 1) * factor for uniform in uniforms]

    return value


_DRAWS: dict[Norm, Callable[[int, Bits], Vector]] = {Norm.L2: _sphere, Norm.LINF: _cube}


@lru_cache(maxsize=1024)
def _reach(norm: Norm, dimension: int, outside: Fraction) -> Fraction:
    return polynomial_reach(_WEIGHTS[norm](dimension), outside)


def _sphere_weights(dimension: int) -> list[Enclosure]:
    """Returns the weights w_j of P(|Z_1| > x) <= e^(-x) sum_j w_j x^j / j! for the density ~ exp(-||z||_2).

    The characteristic function of that density is (1 + |t|^2)^-(d+1)/2, so that an entry is distributed like G - G'
    with independent G, G' of law Gamma(k), k = (d + 1) / 2. If d is even, k is rounded up: that adds an independent
    symmetric variable to a symmetric unimodal one, which widens every tail (Anderson 1955). For whole k let G and G'
    be the k-th arrivals of two Poisson processes: G > x + G' if j < k arrivals of the first come up to x, and of the
    fair coin tosses that follow k fall on the second before k - j on the first, with probability q_j = sum over i < k
    - j of C(k + i - 1, i) / 2^(k + i). Both signs count: w_j = 2 q_j.
    """
    k = dimension // 2 + 1
    term = Enclosure.of(Fraction(1, 1 << k), DIGITS)
    total = Enclosure.of(0, DIGITS)
    weights = []
    for i in range(k):
        total = total + term
        term = term * Fraction(k + i, 2 * (i + 1))
        weights.append(total * 2)
    return weights[::-1]


def _cube_weights(dimension: int) -> list[Enclosure]:
    """Returns the same for the density ~ exp(-||z||_inf), exactly.

    P(|Z_1| > x) = E (1 - x / R)_+ = P(R > x) - (x / d) P(R' > x) with R of law Gamma(d + 1) and R' of law Gamma(d);
    written as Poisson sums the two combine to w_j = 1 - j / d for j < d.
    """
    return [Enclosure.of(1 - Fraction(j, dimension), DIGITS) for j in range(dimension)]


_WEIGHTS: dict[Norm, Callable[[int], list[Enclosure]]] = {Norm.L2: _sphere_weights, Norm.LINF: _cube_weights}
