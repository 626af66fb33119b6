"""Output and objective perturbation of linear classifiers, with the error of the minimiser inside the guarantee.

*Output*: the minimiser of a regularised objective, found for certain, plus noise (Chaudhuri, Monteleoni, Sarwate 2011).
For private numbers of rows the objective is a sum, not a mean, so that its regularisation, and with it the noise, does
not depend on how many there are.

*Objective*, of logistic regression: the theorem speaks of the exact minimiser w* for a real normal tilt b. We find w
within t / Lambda of it and release w + N(0, s^2 I): that is a release of w*, followed by one of (w - w*) + N(0, s^2 I),
which a row moves by at most 2 t / Lambda whatever w* is. Basic composition prices both (approximate minima
perturbation, Iyengar et al. 2019).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.accounting import gaussian_sigma
from discreet.accounting.objective_perturbation import left_over, logistic_spread, objective_sigma, pure_regularisation
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Grid, float_above
from discreet.learn.linear.loss_functions import TOLERANCE, MarginLoss, Objective
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Bits
from discreet.privacy import ApproxDP, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

COUNT_SHARE = Fraction(1, 20)  # of the budget, for the number of rows where it is private and decides the ridge
LEAST_RIDGE = 1.0  # in the sum of losses of rows of length 1

_BALANCE = 0.01  # h size / ||w||^2, chosen on training folds
SETTLING = Fraction(1, 20), Fraction(1, 10)  # of epsilon and delta, for the error of the minimiser
_FAR = Fraction(1, 1 << 100)  # P(||b|| > sigma (sqrt(d) + 12)) <= e^-72 (Gaussian concentration), part of delta
_HINT = "Use method='gradient' or method='output'."


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCountPlan:
    """The number of rows: public under REPLACE, paid for under ADD_REMOVE."""

    spending: Spending | None

    @classmethod
    def of(cls, spending: Spending, neighbours: Neighbours) -> tuple[RowCountPlan, Spending]:
        """Returns how the number is found, and the remaining budget."""
        if neighbours is Neighbours.REPLACE:
            return cls(spending=None), spending
        return cls(spending=spending.share(COUNT_SHARE)), spending.share(1 - COUNT_SHARE)

    @property
    def mechanism(self) -> Laplace | Gaussian | None:
        """Returns the noise of the count, if it has any."""
        if self.spending is None:
            return None
        if self.spending.is_pure:
            return Laplace(epsilon=self.spending.pure_epsilon, sensitivity=1)
        return Gaussian.with_multiplier(noise_multiplier=self.spending.noise_multiplier, sensitivity=1)

    def release(self, count: int, bits: Bits) -> float:
        """Releases about how many rows there are, at least 1."""
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
    def _parts(self) -> tuple[RowCountPlan | None, Spending]:
        if self.ridge is not None:
            return None, self.spending
        return RowCountPlan.of(self.spending, self.neighbours)

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        counting, rest = self._parts
        found: list[Event] = []
        if counting is not None and counting.mechanism is not None:
            found.append(counting.mechanism.event)
        found.append(VectorNoise(part=rest).event)
        return found[0] if len(found) == 1 else events.Composed(found)

    def run(self, rows: Integers, codes: Integers, loss: MarginLoss, bits: Bits) -> Floats:
        """Returns the noisy weights, (outputs, entries of a row)."""
        counting, rest = self._parts
        size = loss.outputs * rows.shape[1]
        ridge = self.ridge
        if ridge is None and counting is not None:
            ridge = chosen_ridge(counting.release(len(rows), bits), size, rest)
        objective = Objective(loss=loss, ridge=float(ridge or LEAST_RIDGE), features=rows.shape[1])
        public = len(rows) if self.neighbours is Neighbours.REPLACE else None
        mechanism = VectorNoise(part=rest).mechanism(sensitivity(objective, public), size)
        found = objective.minimiser(rows, codes)
        return np.asarray(mechanism.release(found.ravel(), bits=bits), dtype=np.float64).reshape(found.shape)


def sensitivity(objective: Objective, count: int | None) -> Fraction:
    """Returns how far one row moves what is released before the noise, rounded up; a count means rows are replaced."""
    loss, ridge = objective.loss, objective.ridge
    moved = loss.slope
    if count is not None:
        moved *= 2
        if loss.one_signed and loss.twice_smooth and objective.features > 1:
            moved = min(moved, logistic_spread(min(objective.reach(count), count / ridge)))
    return Fraction(float_above(Fraction(moved + 2 * objective.tolerance) / Fraction(ridge))) * (1 + Fraction(1, 2**40))


def chosen_ridge(count: float, size: int, spending: Spending) -> float:
    """Returns the regularisation that balances its own bias with the noise, from public facts and a released count.

    Noise of squared length v / Lambda^2 costs about n v h / (2 Lambda^2) for a curvature of h in a direction, the bias
    about Lambda ||w||^2 / 2, so Lambda is of the order of (n v h / ||w||^2)^(1/3).
    """
    if spending.is_pure:
        squared = size * (size + 1) / float(spending.pure_epsilon) ** 2
    else:
        squared = size * float(spending.noise_multiplier) ** 2
    return max(LEAST_RIDGE, math.cbrt(_BALANCE * count * squared / size))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbation:
    """The minimiser of sum l + (Lambda / 2) ||w||^2 + <b, w> with b ~ N(0, sigma^2 I), settled by a little noise.

    Formal guarantee: (epsilon_1, delta_1)-DP for the exact minimiser (`objective_sigma`), Gaussian noise for its error,
    and Laplace noise for the number of rows, if it is private and Lambda is not given; the three add up to the budget.

    Attributes:
        spending: the whole budget, an epsilon and a delta.
        neighbours: the relation to protect.
        ridge: Lambda, or None to choose it.
    """

    spending: Spending
    neighbours: Neighbours
    ridge: float | None

    def __post_init__(self) -> None:
        if not isinstance(self.spending.loss, ApproxDP):
            raise InvalidParameter("delta", self.spending.loss, "to come with epsilon", "Pass e.g. delta=1e-6.")
        if self.ridge is not None:
            left_over(self._minimum[0], curvature=Fraction(1, 4), regularisation=Fraction(self.ridge))

    @property
    def _budget(self) -> tuple[Fraction, Fraction]:
        loss = check.instance(ApproxDP, loss=self.spending.loss)
        return loss.epsilon, loss.delta

    @property
    def _counts(self) -> bool:
        return self.ridge is None and self.neighbours is Neighbours.ADD_REMOVE

    @property
    def _minimum(self) -> tuple[Fraction, Fraction]:
        """Returns epsilon and delta of the exact minimiser."""
        epsilon, delta = self._budget
        spent = SETTLING[0] + (COUNT_SHARE if self._counts else 0)
        return epsilon * (1 - spent), delta * (1 - SETTLING[1])

    @property
    def _settling(self) -> Fraction:
        epsilon, delta = self._budget
        return gaussian_sigma(epsilon * SETTLING[0], delta * SETTLING[1])

    @property
    def _counter(self) -> Laplace:
        return Laplace(epsilon=self._budget[0] * COUNT_SHARE, sensitivity=1)

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        found: list[Event] = [self._counter.event] if self._counts else []
        return events.Composed([*found, events.Approx(*self._minimum), events.Gaussian(self._settling)])

    def run(self, rows: Integers, codes: Integers, loss: MarginLoss, bits: Bits) -> Floats:
        """Returns the noisy weights, (1, entries of a row)."""
        two_smooth_classes(loss)
        size = rows.shape[1]
        ridge = self._ridge(len(rows), size, bits)
        epsilon, delta = self._minimum
        sigma = objective_sigma(
            epsilon,
            delta - _FAR,
            gradient=1,
            curvature=Fraction(1, 4),
            regularisation=Fraction(ridge),
            one_signed=True,
            neighbours=self.neighbours,
        )
        grid = Grid.finer_than(Fraction(TOLERANCE) / (4 * math.isqrt(size) + 4))
        draw = Gaussian.with_multiplier(noise_multiplier=sigma, sensitivity=1, grid=grid)
        tilt = np.asarray(draw.release(np.zeros(size), bits=bits), dtype=np.float64)[None, :]
        bound = float(sigma) * (math.sqrt(size) + 12) + 1
        objective = Objective(loss=loss, ridge=ridge, features=size, tilt_bound=bound)
        found = objective.minimiser(rows, codes, tilt)
        settle = Gaussian.with_multiplier(
            noise_multiplier=self._settling, sensitivity=inexactness(objective, float(grid.step) * math.sqrt(size))
        )
        return np.asarray(settle.release(found, bits=bits), dtype=np.float64)

    def _ridge(self, count: int, size: int, bits: Bits) -> float:
        """Returns Lambda: as small as the Jacobian allows for half of epsilon, or as noise asks, sigma^2 d^2 / n."""
        if self.ridge is not None:
            return self.ridge
        about = max(1.0, float(self._counter.release(count, bits=bits)) if self._counts else float(count))
        epsilon, delta = self._minimum
        least = float_above(pure_regularisation(epsilon, curvature=Fraction(1, 4)))
        sigma = float(gaussian_sigma(epsilon, delta))
        return max(1.0, least, 0.1 * (sigma * size) ** 2 / about)


def two_smooth_classes(loss: MarginLoss) -> None:
    """Refuses losses that the theorem does not speak of.

    With more than two classes the gradient of a row has no fixed direction; without a second derivative there is no
    Jacobian.
    """
    if not (loss.one_signed and loss.twice_smooth):
        raise InvalidParameter("method", "objective", "to come with two classes and a logistic loss", _HINT)


def inexactness(objective: Objective, rounding: float) -> Fraction:
    """Returns how far one row moves the error of the minimiser.

    It is twice its bound, the tilt's rounding included, rounded up.
    """
    reach = (objective.tolerance + rounding / 2) / objective.ridge
    return Fraction(2 * reach) * (1 + Fraction(1, 2**40))
