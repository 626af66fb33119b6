"""Noisy gradient descent on exact integers, from the prior of the classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.learn.linear.placed_rows import CLIP, PlacedRows, WeightsBudget
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.row_sums import UNIT

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS, MORE_STEPS = 100, 300  # with Gaussian noise: many small pieces add up to one large piece
WORK = 2.2e9  # of rows times weights times steps, about 4 seconds
FEWEST, MOST = 4, 100  # steps with K-norm noise: T pieces are sqrt(T) times as long as one
MOST_DRAWN = 25_000  # entries of K-norm noise in a fit, about 5 seconds
MOMENTUM = 0.9
_STABLE = 3.3  # of step size times curvature: momentum 0.9 is stable below 2 (1 + 0.9) = 3.8
_SIGNAL = 20.0  # of n mu / sqrt(d) for a step size of 1; chosen on training folds of several tables
_PURE_SIGNAL = 0.5  # of n epsilon / d for a step size of 1; likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Gradient descent with momentum, every gradient released with noise.

    Formal guarantee: a row moves each gradient by at most `clip` in the L2 norm when it is added or removed, by 2 clip
    when it is replaced (`statistics.row_sums.Design`), whatever the weights. Weights depend on released gradients
    alone, so T steps of noise multiplier sqrt(T) / mu are mu-GDP together (Dong, Roth, Su 2022, Corollary 3.3), and T
    steps of epsilon / T are epsilon-DP (Dwork, McSherry, Nissim, Smith 2006).

    Attributes:
        steps: how many there are, whatever the data.
        noise: of one step.
        neighbours: the relation to protect.
        clip: the largest gradient of a row, in units of 1 / UNIT.
    """

    steps: int
    noise: VectorNoise
    neighbours: Neighbours
    clip: int = CLIP

    @classmethod
    def of(cls, spending: Spending, neighbours: Neighbours, *, steps: int = STEPS) -> Descent:
        """Returns the descent that uses all of a budget."""
        noise = VectorNoise(part=spending.share(Fraction(1, steps)))
        return cls(steps=steps, noise=noise, neighbours=neighbours)

    @property
    def event(self) -> Event:
        """Returns what all steps cost."""
        return events.Repeated(self.noise.event, self.steps)

    @property
    def sensitivity(self) -> int:
        """Returns how far a row moves a gradient in the L2 norm."""
        return self.clip if self.neighbours is Neighbours.ADD_REMOVE else 2 * self.clip

    def rate(self, count: float, size: int, curvature: float) -> float:
        """Returns the step size: as much as the noise allows, and never so much that the descent could swing up.

        Args:
            count: how many rows there are, about.
            size: how many weights.
            curvature: the largest second derivative of a row's loss by its margins.
        """
        part = self.noise.part
        if part.is_pure:
            heard = count * self.steps * float(part.pure_epsilon) / size / _PURE_SIGNAL
        else:
            heard = count * math.sqrt(self.steps / size) / float(part.noise_multiplier) / _SIGNAL
        return min(heard, _STABLE / curvature)

    def run(
        self,
        gradient: Callable[[Floats], Integers],
        start: Floats,
        *,
        count: float,
        curvature: float,
        ridge: float,
        bits: Bits,
    ) -> Floats:
        """Returns the mean of the weights of the second half of all steps.

        Args:
            gradient: exact sums over rows for weights, in units of 1 / UNIT.
            start: the first weights, public.
            count: how many rows there are, about.
            curvature: the largest second derivative of a row's loss.
            ridge: the weight of ||theta||^2 / 2 in the sum of losses.
            bits: the source of randomness.
        """
        mechanism = self.noise.mechanism(self.sensitivity, start.size)
        rate = self.rate(count, start.size, curvature + ridge / count)
        theta, velocity, total = start, np.zeros(start.shape), np.zeros(start.shape)
        for step in range(self.steps):
            noisy = np.asarray(mechanism.release(gradient(theta), bits=bits), dtype=np.float64) / UNIT
            velocity = MOMENTUM * velocity - rate * (noisy + ridge * theta) / count
            theta = theta + velocity
            if step >= self.steps // 2:
                total += theta
        return total / (self.steps - self.steps // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(WeightsBudget):
    """Weights by noisy gradients, whose number follows from the released number of rows.

    Where gradients hold much more than noise there are more steps.

    Attributes:
        steps: how many; None if that is chosen.
        ridge: the weight of ||theta||^2 / 2.
    """

    steps: int | None
    ridge: float = 0.0

    def theta(self, rows: PlacedRows, bits: Bits) -> Floats:
        """Releases the gradients of a descent from the prior, and returns where it ends."""
        start, count = rows.start, rows.place.count
        return self.descent(count, start.size).run(
            rows.gradient, start, count=count, curvature=rows.loss.curvature, ridge=self.ridge, bits=bits
        )

    def descent(self, count: float, size: int) -> Descent:
        """Returns the descent for about so many rows and so many weights."""
        steps = self._chosen_steps(count, size) if self.steps is None else self.steps
        return Descent.of(self.rest(count, size), self.neighbours, steps=steps)

    def _chosen_steps(self, count: float, size: int) -> int:
        """Returns how many steps there are, by rules chosen on training folds.

        T pure steps are heard sqrt(T) times less than one, so there are more only where rows can be heard. Gaussian
        noise of T steps is heard as that of one; more of them come closer to the minimiser.
        """
        heard = self.signal_to_noise(count, size)
        if self.part.is_pure:
            return max(FEWEST, min(math.ceil(math.sqrt(heard)), MOST, MOST_DRAWN // size))
        return int(max(STEPS, min(heard / 2, MORE_STEPS, WORK / (count * size))))
