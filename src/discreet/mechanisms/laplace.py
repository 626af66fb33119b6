"""Discrete Laplace noise: the mechanism of counts and sums under pure differential privacy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidValue
from discreet.exact import Grid
from discreet.mechanisms.mechanism import (
    LatticeMechanism,
    add,
    numeric,
    on_grid,
    public_grid,
    reasonable_noise,
    whole_by_type,
)
from discreet.mechanisms.tails import laplace_reach
from discreet.noise import Bits, discrete_laplace
from discreet.privacy import events

LARGEST_DIMENSION = 10**12
_FLAT = 600.0  # 1 / scale from which on a draw is 0, but for a chance that floats barely hold


def calibrate_noise(steps: int, epsilon: Fraction) -> events.DiscreteLaplace:
    """Returns the noise on integers for an epsilon, if one unit moves them by so many steps in the L1 norm.

    >>> calibrate_noise(3, Fraction(1, 2))
    DiscreteLaplace(scale=Fraction(6, 1), sensitivity=3)
    """
    return events.DiscreteLaplace(scale=steps / epsilon, sensitivity=steps)


def draw_variance(scale: Fraction) -> float:
    """Returns the variance of a discrete Laplace draw, 2 r / (1 - r)^2 with r = e^(-1 / scale).

    >>> round(draw_variance(Fraction(10)), 3)  # of a continuous draw it would be 200
    199.833
    """
    rate = min(float(1 / scale), _FLAT)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


@dataclass(frozen=True, slots=True, init=False)
class Laplace(LatticeMechanism):
    """Adds exact discrete Laplace noise on a public grid.

    Formal guarantee: pure epsilon-DP for every two values, or arrays, at an L1 distance of at most `sensitivity`
    (Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009). The rounding to the grid is counted
    inside the sensitivity: in steps it is ceil(sensitivity / step) + dimension - 1, and the noise has P(z) ~
    exp(-epsilon |z| / steps).

    An array is one value: `sensitivity` is how far one unit can move the *whole array* in the L1 norm, all entries
    together. Arrays of integers, and arrays that lie on the grid, may have any size. An array of other floats may have
    `dimension` entries, because the rounding of each one can add a step. That such an array is refused depends on the
    values: if not every possible dataset gives an array on the grid, state the dimension.

    Args:
        epsilon: above 0.
        sensitivity: above 0, in the units of the value, in the L1 norm.
        grid: a `Grid`, or its step, a power of two.
        dimension: how many entries may lie off the grid.

    Raises:
        InvalidParameter: outside these domains.

    >>> Laplace(epsilon=1, sensitivity=1).interval(100, confidence=0.95)
    Interval(low=97, high=103)

    A person in three of ten counts moves the array by 3, and every entry gets noise for 3:

    >>> Laplace(epsilon=1, sensitivity=3).event
    DiscreteLaplace(scale=Fraction(3, 1), sensitivity=3)
    >>> Laplace(epsilon=1, sensitivity=3).release([10, 20, 30, 40]).shape
    (4,)
    """

    epsilon: Fraction
    sensitivity: Fraction
    grid: Grid
    dimension: int

    def __init__(
        self, *, epsilon: Number, sensitivity: Number, grid: Grid | Number = Grid.integers(), dimension: int = 1
    ) -> None:
        assign(
            self,
            epsilon=check.positive(epsilon=epsilon),
            sensitivity=check.positive(sensitivity=sensitivity),
            grid=public_grid(grid),
            dimension=check.integer(dimension=dimension, at_least=1, at_most=LARGEST_DIMENSION),
        )
        reasonable_noise(self._scale * self.grid.step, "sensitivity")

    @property
    def _steps(self) -> int:
        return self.grid.l1_steps(self.sensitivity, self.dimension)

    @property
    def _scale(self) -> Fraction:
        return self._steps / self.epsilon

    @property
    def event(self) -> events.DiscreteLaplace:
        """Returns what one release costs, for accounting."""
        return calibrate_noise(self._steps, self.epsilon)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases the value on the grid, plus noise.

        Returns:
            An int or an array of integers on the grid of whole numbers, else a float or an array of floats.

        Raises:
            InvalidValue: if the value is no finite number, or an array off the grid with more than `dimension` entries.
        """
        found = numeric(value)
        if not isinstance(found, np.ndarray):
            steps = self.grid.steps(found)
            return self.grid.value(steps + discrete_laplace(self._scale, bits=bits))
        steps = self.grid.steps(found)
        if found.size > self.dimension and not whole_by_type(found, self.grid) and not on_grid(found, self.grid):
            hint = f"Pass dimension={found.size}, which counts the rounding of every entry, or integers."
            raise InvalidValue(f"on the grid, or to have at most dimension={self.dimension} entries", hint)
        return self.grid.value(add(steps, discrete_laplace(self._scale, found.shape, bits=bits)))

    def noise_steps(self, outside: Fraction) -> int:
        """Returns the smallest number of steps that the noise of one entry exceeds with at most this probability."""
        return laplace_reach(self._scale, outside)


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(LatticeMechanism):
    """Adds exact discrete Laplace noise of a given scale to integers: the geometric mechanism, by its noise.

    Formal guarantee: pure DP with epsilon = sensitivity / scale for integers, or arrays of integers, at an L1 distance
    of at most `sensitivity` (Ghosh, Roughgarden, Sundararajan 2009). For scales found by accounting; `Laplace` takes
    an epsilon.

    Args:
        scale: above 0; P(z) ~ exp(-|z| / scale). A float is taken as the binary number it is.
        sensitivity: a whole number from 1, of the whole array in the L1 norm.

    Raises:
        InvalidParameter: outside these domains.

    >>> DiscreteLaplace(scale=2, sensitivity=1).interval(10)
    Interval(low=4, high=16)
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, *, scale: Number, sensitivity: int) -> None:
        event = events.DiscreteLaplace(scale=scale, sensitivity=sensitivity)
        reasonable_noise(event.scale, "scale")
        assign(self, scale=event.scale, sensitivity=event.sensitivity)

    @property
    def grid(self) -> Grid:  # type: ignore[override]
        """Returns the grid of whole numbers."""
        return Grid.integers()

    @property
    def event(self) -> events.DiscreteLaplace:
        """Returns what one release costs, for accounting."""
        return events.DiscreteLaplace(scale=self.scale, sensitivity=self.sensitivity)

    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """Releases the integer or the array of integers, plus noise.

        Raises:
            InvalidValue: if the value is not of an integer type; floats are refused even where they are whole, because
                a refusal that looks at the value would tell something about it.
        """
        found = numeric(value)
        if not whole_by_type(found, self.grid):
            raise InvalidValue("to be of an integer type", "Pass integers, or use Laplace with a grid for real values.")
        steps = self.grid.steps(found)
        if not isinstance(found, np.ndarray):
            return int(steps + discrete_laplace(self.scale, bits=bits))
        return self.grid.value(add(steps, discrete_laplace(self.scale, found.shape, bits=bits)))

    def noise_steps(self, outside: Fraction) -> int:
        """Returns the smallest number of steps that the noise of one entry exceeds with at most this probability."""
        return laplace_reach(self.scale, outside)
