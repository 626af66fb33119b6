"""Noisy gradient descent on exact integers: as many full-batch steps as were decided in advance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms import Gaussian
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.row_sums import UNIT

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 100
CLIP = UNIT // 2  # of r x, where |r| <= 1 and ||x|| <= 1 without a clip: noise is halved, large residuals count less
MOMENTUM = 0.9
_STABLE = 3.3  # of step size times curvature: momentum 0.9 is stable below 2 (1 + 0.9) = 3.8
_SIGNAL = 20.0  # of n mu / sqrt(d) for a step size of 1; chosen on training folds of several tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Gradient descent with momentum, every gradient released with Gaussian noise.

    Formal guarantee: a row moves each gradient by at most `clip` in the L2 norm when it is added or removed, by 2 clip
    when it is replaced (`statistics.glm.Design`), whatever the weights. Weights depend on released gradients alone, so
    T steps of noise multiplier sqrt(T) / mu are mu-GDP together (Dong, Roth, Su 2022, Corollary 3.3).

    Attributes:
        steps: how many there are, whatever the data.
        noise_multiplier: of one step.
        neighbours: the relation to protect.
        clip: the largest gradient of a row, in units of 1 / UNIT.
    """

    steps: int
    noise_multiplier: Fraction
    neighbours: Neighbours
    clip: int = CLIP

    @classmethod
    def of(cls, spending: Spending, neighbours: Neighbours, *, steps: int = STEPS) -> Descent:
        """The descent that uses all of a budget."""
        each = spending.share(Fraction(1, steps))
        return cls(steps=steps, noise_multiplier=each.noise_multiplier, neighbours=neighbours)

    @property
    def event(self) -> Event:
        """What all steps cost."""
        return events.Repeated(events.Gaussian(self.noise_multiplier), self.steps)

    @property
    def mechanism(self) -> Gaussian:
        """The noise of a gradient."""
        move = self.clip if self.neighbours is Neighbours.ADD_REMOVE else 2 * self.clip
        return Gaussian.with_multiplier(noise_multiplier=self.noise_multiplier, sensitivity=move)

    def rate(self, count: float, size: int, curvature: float) -> float:
        """The step size: as much as the noise allows, and never so much that the descent could swing up.

        Args:
            count: how many rows there are, about.
            size: how many weights.
            curvature: the largest second derivative of a row's loss by its margins.
        """
        mu = math.sqrt(self.steps) / float(self.noise_multiplier)
        return min(count * mu / math.sqrt(size) / _SIGNAL, _STABLE / curvature)

    def run(
        self,
        gradient: Callable[[Floats], Integers],
        shape: tuple[int, ...],
        *,
        count: float,
        curvature: float,
        ridge: float,
        bits: Bits,
    ) -> Floats:
        """The mean of the weights of the second half of all steps.

        Args:
            gradient: exact sums over rows for weights, in units of 1 / UNIT.
            shape: of the weights.
            count: how many rows there are, about.
            curvature: the largest second derivative of a row's loss.
            ridge: the weight of ||theta||^2 / 2 in the sum of losses.
            bits: the source of randomness.
        """
        mechanism, rate = self.mechanism, self.rate(count, math.prod(shape), curvature + ridge / count)
        theta, velocity, total = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for step in range(self.steps):
            noisy = np.asarray(mechanism.release(gradient(theta), bits=bits), dtype=np.float64) / UNIT
            velocity = MOMENTUM * velocity - rate * (noisy + ridge * theta) / count
            theta = theta + velocity
            if step >= self.steps // 2:
                total += theta
        return total / (self.steps - self.steps // 2)
