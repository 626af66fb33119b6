"""Gaussian noise: normal noise rounded to a grid, and the discrete Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet import accounting, check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidValue
from discreet.exact import Grid, root_above
from discreet.mechanisms.mechanism import (
    CONFIDENCE,
    HALF,
    AdditiveMechanism,
    LatticeMechanism,
    add,
    exact_offsets,
    numeric,
    offsets,
    on_grid,
    public_grid,
    reasonable_noise,
    whole_by_type,
)
from discreet.mechanisms.tails import discrete_gaussian_reach, normal_reach
from discreet.noise import Bits, discrete_gaussian, rounded_gaussian, rounded_gaussians, source_of
from discreet.privacy import events

STEPS = 1024  # of the default grid, per sigma: rounding then adds a ten-millionth to the variance
LARGEST_DIMENSION = 10**12
LARGEST_ARRAY_SIGMA = 1 << 50  # in steps; below, draws stay in int64


@dataclass(frozen=True, slots=True, init=False)
class Gaussian(AdditiveMechanism):
    """Adds normal noise and rounds the result to a public grid, correctly.

    Formal guarantee: what is released is a function of v + N(0, sigma^2 I) with a real normal law, so that the whole
    trade-off curve of the Gaussian mechanism holds, in any dimension and on any grid, for all values at an L2 distance
    of at most `sensitivity` (Dong, Roth, Su 2022, Theorem 2.7 and post-processing). Given epsilon and delta, sigma is
    the smallest that the exact curve allows (Balle, Wang 2018), rounded up.

    An array is one value: `sensitivity` is how far one unit can move the *whole array* in the L2 norm. The value
    itself is not rounded before the noise, and nothing is added to the sensitivity.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        sensitivity: above 0, in the units of the value, in the L2 norm.
        grid: a `Grid`, or its step; None is the coarsest with at least 1024 steps to sigma, where rounding cannot be
            seen.

    Raises:
        InvalidParameter: outside these domains.

    >>> mechanism = Gaussian.with_multiplier(noise_multiplier=2, sensitivity=3)
    >>> mechanism.sigma, mechanism.event
    (Fraction(6, 1), Gaussian(noise_multiplier=Fraction(2, 1)))
    >>> mechanism.release([[1.5, 2.0], [3.0, -4.0]]).shape
    (2, 2)
    """

    sigma: Fraction
    sensitivity: Fraction
    grid: Grid

    def __init__(
        self, *, epsilon: Number, delta: Number, sensitivity: Number, grid: Grid | Number | None = None
    ) -> None:
        budget, slack = check.positive(epsilon=epsilon), check.probability(delta=delta)
        move = check.positive(sensitivity=sensitivity)
        self._assign(accounting.gaussian_sigma(budget, slack, sensitivity=move), move, grid)

    def _assign(self, sigma: Fraction, sensitivity: Fraction, grid: Grid | Number | None) -> None:
        reasonable_noise(sigma, "sensitivity")
        found = Grid.finer_than(sigma / STEPS) if grid is None else grid
        assign(self, sigma=sigma, sensitivity=sensitivity, grid=public_grid(found))

    @classmethod
    def with_multiplier(
        cls, *, noise_multiplier: Number, sensitivity: Number, grid: Grid | Number | None = None
    ) -> Self:
        """Returns the mechanism of a given sigma / sensitivity, for calibrations made by accounting."""
        multiplier = check.positive(noise_multiplier=noise_multiplier, floats="exact")
        move = check.positive(sensitivity=sensitivity)
        mechanism = object.__new__(cls)
        mechanism._assign(multiplier * move, move, grid)
        return mechanism

    @classmethod
    def for_rho(cls, *, rho: Number, sensitivity: Number, grid: Grid | Number | None = None) -> Self:
        """Returns the mechanism that satisfies rho-zCDP, rho = sensitivity^2 / (2 sigma^2), sigma rounded up.

        >>> Gaussian.for_rho(rho=0.5, sensitivity=1).sigma
        Fraction(1, 1)
        """
        multiplier = root_above(1 / (2 * check.positive(rho=rho)))
        return cls.with_multiplier(noise_multiplier=multiplier, sensitivity=sensitivity, grid=grid)

    @property
    def event(self) -> events.Gaussian:
        """Returns what one release costs, for accounting."""
        return events.Gaussian(noise_multiplier=self.sigma / self.sensitivity)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases the grid point nearest to the value plus noise.

        Returns:
            An int or an array of integers on a grid of whole numbers, else a float or an array of floats.

        Raises:
            InvalidValue: if the value is no finite number.
        """
        found = numeric(value)
        source = source_of(bits)
        sigma = self.sigma / self.grid.step
        if not isinstance(found, np.ndarray):
            return self.grid.value(rounded_gaussian(sigma, exact_offsets(found, self.grid)[0], source))
        quotients = offsets(found, self.grid) if sigma <= LARGEST_ARRAY_SIGMA else None
        if quotients is not None:
            return self.grid.value(rounded_gaussians(sigma, quotients, source))
        steps = np.empty(found.size, dtype=object)
        steps[:] = [rounded_gaussian(sigma, quotient, source) for quotient in exact_offsets(found, self.grid)]
        return self.grid.value(steps.reshape(found.shape))

    def error(self, *, confidence: check.Number = CONFIDENCE) -> Fraction:
        """Returns the distance between the released number and the exact one that is kept at least this often."""
        reach = normal_reach(1 - check.probability(confidence=confidence))
        return math.ceil(reach * self.sigma / self.grid.step + HALF) * self.grid.step


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(LatticeMechanism):
    """Adds exact discrete Gaussian noise on a public grid.

    Formal guarantee: rho-zCDP with rho = sensitivity^2 / (2 sigma^2), both in steps of the grid, in any dimension, for
    all values at an L2 distance of at most `sensitivity` (Canonne, Kamath, Steinke 2020). Given epsilon and delta,
    sigma is such that the law's own curve, or what is known of it in several dimensions, keeps to them. It is not
    Gaussian DP: `Gaussian` is.

    An array is one value, `sensitivity` is of the *whole array* in the L2 norm, and `dimension` bounds its size. One
    number may lie off the grid: rounding is counted by taking the next whole number of steps. Several numbers must lie
    on the grid, where rounding moves nothing, or `real` is set, and the sensitivity grows by sqrt(dimension) steps.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        sensitivity: above 0, in the units of the value, in the L2 norm.
        grid: a `Grid`, or its step, a power of two.
        dimension: the largest number of entries.
        real: whether entries of arrays may lie off the grid.

    Raises:
        InvalidParameter: outside these domains.

    >>> mechanism = DiscreteGaussian.for_rho(rho=0.5, sensitivity=2, dimension=10)
    >>> mechanism.event
    DiscreteGaussian(sigma=Fraction(2, 1), sensitivity=Fraction(2, 1), dimension=10)
    >>> mechanism.interval(100)
    Interval(low=96, high=104)
    """

    sigma: Fraction
    sensitivity: Fraction
    grid: Grid
    dimension: int
    real: bool

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        sensitivity: Number,
        grid: Grid | Number = Grid.integers(),
        dimension: int = 1,
        real: bool = False,
    ) -> None:
        budget, slack = check.positive(epsilon=epsilon), check.probability(delta=delta)
        self._assign(sensitivity, grid, dimension, real=real)
        self._noise(accounting.discrete_gaussian_sigma(budget, slack, self.sensitivity_steps, self.dimension))

    def _assign(self, sensitivity: Number, grid: Grid | Number, dimension: int, *, real: bool) -> None:
        assign(
            self,
            sensitivity=check.positive(sensitivity=sensitivity),
            grid=public_grid(grid),
            dimension=check.integer(dimension=dimension, at_least=1, at_most=LARGEST_DIMENSION),
            real=check.instance(bool, real=real),
        )

    def _noise(self, sigma_steps: Fraction) -> None:
        reasonable_noise(sigma_steps * self.grid.step, "sensitivity")
        assign(self, sigma=sigma_steps * self.grid.step)

    @classmethod
    def with_sigma(
        cls,
        *,
        sigma: Number,
        sensitivity: Number,
        grid: Grid | Number = Grid.integers(),
        dimension: int = 1,
        real: bool = False,
    ) -> Self:
        """Returns the mechanism of a given sigma, in the units of the value, for calibrations made by accounting."""
        mechanism = object.__new__(cls)
        mechanism._assign(sensitivity, grid, dimension, real=real)
        mechanism._noise(check.positive(sigma=sigma, floats="exact") / mechanism.grid.step)
        return mechanism

    @classmethod
    def for_rho(
        cls,
        *,
        rho: Number,
        sensitivity: Number,
        grid: Grid | Number = Grid.integers(),
        dimension: int = 1,
        real: bool = False,
    ) -> Self:
        """Returns the mechanism that satisfies rho-zCDP, rho = sensitivity^2 / (2 sigma^2) in steps, sigma rounded up.

        >>> DiscreteGaussian.for_rho(rho=0.125, sensitivity=1).sigma
        Fraction(2, 1)
        """
        mechanism = object.__new__(cls)
        mechanism._assign(sensitivity, grid, dimension, real=real)
        mechanism._noise(mechanism.sensitivity_steps * root_above(1 / (2 * check.positive(rho=rho))))
        return mechanism

    @property
    def sensitivity_steps(self) -> Fraction:
        """Returns how far one unit can move the rounded value in the L2 norm, in steps.

        A move of integers is at least 1.
        """
        if self.dimension == 1 or self.real:
            return self.grid.l2_steps(self.sensitivity, self.dimension)
        return max(Fraction(1), self.sensitivity / self.grid.step)

    @property
    def event(self) -> events.DiscreteGaussian:
        """Returns what one release costs, for accounting."""
        sigma = self.sigma / self.grid.step
        return events.DiscreteGaussian(sigma=sigma, sensitivity=self.sensitivity_steps, dimension=self.dimension)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases the value on the grid, plus noise.

        Raises:
            InvalidValue: if the value is no finite number, has more than `dimension` entries, or lies off the grid
                although it has several and `real` is not set.
        """
        found = numeric(value)
        sigma = self.sigma / self.grid.step
        if np.size(found) > self.dimension:
            size = np.size(found)
            raise InvalidValue(f"to have at most dimension={self.dimension} entries", f"Pass dimension={size}.")
        steps = self.grid.steps(found)
        if self.dimension > 1 and not self.real and not whole_by_type(found, self.grid):
            self._check_on_grid(found)
        if not isinstance(found, np.ndarray):
            return self.grid.value(steps + discrete_gaussian(sigma, bits=bits))
        return self.grid.value(add(steps, discrete_gaussian(sigma, found.shape, bits=bits)))

    def _check_on_grid(self, found: Any) -> None:
        if not on_grid(np.asarray(found), self.grid):
            raise InvalidValue("on the grid", "Pass integers, or real=True, which counts the rounding of every entry.")

    def noise_steps(self, outside: Fraction) -> int:
        """Returns a number of steps that the noise of one entry exceeds with at most this probability."""
        return discrete_gaussian_reach(self.sigma / self.grid.step, outside)
