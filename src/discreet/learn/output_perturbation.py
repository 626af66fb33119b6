"""Output perturbation: the minimiser of a regularised objective, found for certain, plus noise.

Chaudhuri, Monteleoni, Sarwate (2011); for private numbers of rows the objective is a sum, not a mean, so that its
regularisation, and with it the noise, does not depend on how many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.objective import logistic_spread
from discreet.exact import float_above
from discreet.learn.losses import Loss
from discreet.learn.minimise import Objective
from discreet.mechanisms import Gaussian, KNorm, Laplace
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

COUNT_SHARE = Fraction(1, 20)  # of the budget, for the number of rows where it is private and decides the ridge
LEAST_RIDGE = 1.0  # in the sum of losses of rows of length 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """The number of rows: public under REPLACE, paid for under ADD_REMOVE."""

    spending: Spending | None

    @classmethod
    def of(cls, spending: Spending, neighbours: Neighbours) -> tuple[Counting, Spending]:
        """How the number is found, and what is left of the budget."""
        if neighbours is Neighbours.REPLACE:
            return cls(spending=None), spending
        return cls(spending=spending.share(COUNT_SHARE)), spending.share(1 - COUNT_SHARE)

    @property
    def mechanism(self) -> Laplace | Gaussian | None:
        """The noise of the count, if it has any."""
        if self.spending is None:
            return None
        if self.spending.is_pure:
            return Laplace(epsilon=self.spending.pure_epsilon, sensitivity=1)
        return Gaussian.with_multiplier(noise_multiplier=self.spending.noise_multiplier, sensitivity=1)

    def release(self, count: int, bits: Bits) -> float:
        """About how many rows there are, at least 1."""
        mechanism = self.mechanism
        return max(1.0, float(count if mechanism is None else mechanism.release(count, bits=bits)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPerturbation:
    """The minimiser w of sum l + (Lambda / 2) ||w||^2 over rows of length at most 1, plus noise.

    Formal guarantee: adding or removing a row moves the exact minimiser by at most G / Lambda, G the largest gradient
    of a row; replacing one by 2 G / Lambda, or g(W) / Lambda for the logistic loss of two classes (`logistic_spread`,
    W a bound of ||w||). We release a point within tau / Lambda of it (`Objective`), so the noise is made for 2 tau /
    Lambda more: K-norm noise for a pure epsilon, else Gaussian. Lambda is given, or follows from a released count.

    Attributes:
        spending: the whole budget.
        neighbours: the relation to protect.
        ridge: Lambda, or None to choose it by the number of rows.
    """

    spending: Spending
    neighbours: Neighbours
    ridge: float | None

    @property
    def _parts(self) -> tuple[Counting | None, Spending]:
        if self.ridge is not None:
            return None, self.spending
        return Counting.of(self.spending, self.neighbours)

    @property
    def event(self) -> Event:
        """What all of it costs."""
        counting, rest = self._parts
        found: list[Event] = []
        if counting is not None and counting.mechanism is not None:
            found.append(counting.mechanism.event)
        found.append(events.Pure(rest.pure_epsilon) if rest.is_pure else events.Gaussian(rest.noise_multiplier))
        return found[0] if len(found) == 1 else events.Composed(found)

    def run(self, rows: Integers, codes: Integers, loss: Loss, bits: Bits) -> Floats:
        """The noisy weights, (outputs, entries of a row)."""
        counting, rest = self._parts
        size = loss.outputs * rows.shape[1]
        ridge = self.ridge
        if ridge is None and counting is not None:
            ridge = chosen_ridge(counting.release(len(rows), bits), size, rest)
        objective = Objective(loss=loss, ridge=float(ridge or LEAST_RIDGE), features=rows.shape[1])
        public = len(rows) if self.neighbours is Neighbours.REPLACE else None
        mechanism = noise(sensitivity(objective, public), size, rest)
        found = objective.minimiser(rows, codes)
        return np.asarray(mechanism.release(found.ravel(), bits=bits), dtype=np.float64).reshape(found.shape)


def sensitivity(objective: Objective, count: int | None) -> Fraction:
    """How far one row moves what is released before the noise, rounded up; a count means rows are replaced."""
    loss, ridge = objective.loss, objective.ridge
    moved = loss.slope
    if count is not None:
        moved *= 2
        if loss.one_signed and loss.twice_smooth and objective.features > 1:
            moved = min(moved, logistic_spread(min(objective.reach(count), count / ridge)))
    return Fraction(float_above(Fraction(moved + 2 * objective.tolerance) / Fraction(ridge))) * (1 + Fraction(1, 2**40))


def noise(moved: Fraction, size: int, spending: Spending) -> Gaussian | KNorm:
    """The noise for a vector that one row moves so far in the L2 norm."""
    if spending.is_pure:
        return KNorm(epsilon=spending.pure_epsilon, sensitivity=moved, dimension=size)
    return Gaussian.with_multiplier(noise_multiplier=spending.noise_multiplier, sensitivity=moved)


def chosen_ridge(count: float, size: int, spending: Spending) -> float:
    """The regularisation that balances its own bias with the noise, from public facts and a released count.

    Noise of squared length v / Lambda^2 costs about n v h / (2 Lambda^2) for a curvature of h in a direction, the bias
    about Lambda ||w||^2 / 2, so Lambda is of the order of (n v h / ||w||^2)^(1/3).
    """
    if spending.is_pure:
        squared = size * (size + 1) / float(spending.pure_epsilon) ** 2
    else:
        squared = size * float(spending.noise_multiplier) ** 2
    return max(LEAST_RIDGE, math.cbrt(_BALANCE * count * squared / size))


_BALANCE = 0.01  # h size / ||w||^2, chosen on training folds
