"""Objective perturbation without a delta: the minimiser of a tilted objective, within a ball, settled by more noise.

The weights are the projection of v* = argmin F on a ball, F(v) = sum l(<x, w_0 + v>) + (Lambda / 2) ||v||^2 + <b, v>
with a public w_0 and a tilt b of density ~ exp(-epsilon' ||b|| / G). At a given v the tilt is b = -Lambda v - sum grad
l, a bi-Lipschitz map of v, since F without its tilt is strongly convex and has Lipschitz gradients: the density of v*
is that of b times the Jacobian, almost everywhere, also where second derivatives of the loss jump. A row of length 1
moves b by its gradient, at most G = 1/2 here, and the determinant of the Jacobian by a factor of at most 1 + s /
Lambda, s the largest curvature of its loss: epsilon' + ln(1 + s / Lambda) in all (Chaudhuri, Monteleoni, Sarwate 2011,
here for sums). A replaced row moves b by 2 G; the curvature of the row that goes only lowers the factor.

Floats find another point than v*, within a distance that is known for certain; it is settled by a second release.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.objective_perturbation import left_over, pure_regularisation
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Grid, float_above
from discreet.lazy import sparse
from discreet.learn.linear.loss_functions import EmpiricalRisk, Objective, capped_bends, capped_logistic
from discreet.learn.linear.noisy_descent import Schedule
from discreet.learn.linear.placed_rows import PlacedRows, WeightsBudget
from discreet.mechanisms import KNorm
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.statistics.inputs import RADIUS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BALL = 64.0  # of v, for rows of length 1: margins beyond it are certain of any class
SETTLING = Fraction(1, 40)  # of epsilon, for the error of the minimiser
CURVATURE = Fraction(1, 4)
LEAST_RIDGE = 0.5
_SPREAD = 16.0  # Lambda = weights / (16 epsilon) holds the length of v where noise has it; chosen on training folds
_JACOBIAN = Fraction(1, 4)  # of epsilon, that it may take at most
MOST = 1 << 24  # rows
TIGHT = 2.0**-13  # of the gradient's length, in units of the largest gradient of one row
_POLISH = 50  # steps of Newton's method; two or three are enough
_REDUCED = 0.01  # of the gradient, that one step leaves
_PROJECTED = 2.0**-36  # more than the rounding of a projection


@dataclass(frozen=True, slots=True, kw_only=True)
class TiltedMinimum(WeightsBudget):
    """Weights of two classes by objective perturbation, for a pure budget.

    Formal guarantee: epsilon'-DP for v* and what the Jacobian takes (see the module), and K-norm noise for the error of
    the point that floats find: together the whole budget, whatever Lambda the released number of rows asks for.

    Attributes:
        ridge: Lambda; None chooses it.
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.ridge is not None:
            left_over(self.part.pure_epsilon / 2, curvature=CURVATURE, regularisation=Fraction(self.ridge))

    def theta(self, rows: PlacedRows, bits: Bits) -> Floats:
        """Releases the weights, (entries of a row,); where the released number of rows is too large, by gradients."""
        if rows.place.count > MOST / 2:
            descent = Schedule(part=self.part, neighbours=self.neighbours, steps=None, ridge=self.ridge or 0.0)
            return descent.theta(rows, bits)
        start = rows.start
        epsilon = self.rest(rows.place.count, start.size).pure_epsilon
        ridge = chosen_ridge(epsilon, start.size) if self.ridge is None else self.ridge
        objective = BallObjective(
            loss=capped_logistic(), ridge=ridge, features=start.size, origin=float(np.linalg.norm(start))
        )
        tilt_noise = self.tilt(epsilon, objective)
        tilt = np.asarray(tilt_noise.release(np.zeros(start.size), bits=bits), dtype=np.float64)
        found = objective.within_ball(rows.design.rows, rows.targets, start[None, :], tilt[None, :])[0]
        settled = self.settling(epsilon, objective, float(tilt_noise.grid.step))
        return start + np.asarray(settled.release(found, bits=bits), dtype=np.float64)

    def tilt(self, epsilon: Fraction, objective: BallObjective) -> KNorm:
        """Returns the noise of b: what the Jacobian leaves, for the gradient of a row."""
        left = left_over(epsilon * (1 - SETTLING), curvature=CURVATURE, regularisation=Fraction(objective.ridge))
        moved = Fraction(objective.loss.slope) * (1 if self.neighbours is Neighbours.ADD_REMOVE else 2)
        grid = Grid.finer_than(Fraction(objective.tolerance) / (4 * math.isqrt(objective.features) + 4))
        return KNorm(epsilon=left, sensitivity=moved, dimension=objective.features, grid=grid)

    def settling(self, epsilon: Fraction, objective: BallObjective, step: float) -> KNorm:
        """Returns the noise for a point within (tolerance + rounding of the tilt) / Lambda of the exact one."""
        rounding = step * math.sqrt(objective.features) / 2
        reach = Fraction(2 * (objective.tolerance + rounding) / objective.ridge + _PROJECTED)
        return KNorm(epsilon=epsilon * SETTLING, sensitivity=reach, dimension=objective.features)


def chosen_ridge(epsilon: Fraction, size: int) -> float:
    """Returns Lambda from public facts: the Jacobian takes no more than a quarter of epsilon.

    >>> chosen_ridge(Fraction(10), 10), chosen_ridge(Fraction(1), 160)
    (0.5, 10.0)
    """
    least = float_above(pure_regularisation(epsilon, curvature=CURVATURE, part=_JACOBIAN))
    return max(LEAST_RIDGE, least, size / (_SPREAD * float(epsilon)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BallObjective(Objective):
    """The objective around a public origin, with a tilt of any length.

    Formal guarantee: `within_ball` returns the projection of a point v on the ball of radius R = BALL, whose distance
    from the projection of v* is at most tolerance / ridge = tau / Lambda. A point is kept if its gradient, with all
    that could be wrong about it, is no longer than tau max(1, ||v|| / (2 R)). Then ||v - v*|| <= tau / Lambda for
    ||v|| <= 2 R, and projections come no further apart. Otherwise v* is at least ||v|| / 2 > R away from the middle,
    because tau <= R Lambda, and there the projection brings points 2 R / ||v|| as close.

    tau is at least twice the error of a gradient at 4 R, so that plain descent always gets there: the error grows with
    ||v|| no faster than in proportion, as does the tilt, which is at most Lambda ||v*|| + n G.

    Attributes:
        origin: how long w_0 is.
    """

    origin: float

    @property
    def tolerance(self) -> float:
        """Returns tau, the public bound on the gradient's length."""
        wrong = self.error(4 * BALL + 1, MOST, 2 * BALL * self.ridge + MOST)
        return max(TIGHT * self.loss.slope, 2 * wrong)

    def error(self, length: float, count: int, tilt: float = 0.0) -> float:
        """Returns how wrong a computed gradient is at most, with one more rounding for the origin, and for a tilt."""
        weights = (1 + 1 / self.features) * (length + self.origin)
        return Objective.error(self, weights, count) + 2.0**-49 * tilt

    def within_ball(self, rows: Floats, codes: Integers, start: Floats, tilt: Floats) -> Floats:
        """Returns the point within the ball, for integer rows of length at most RADIUS."""
        if len(rows) > MOST:
            raise InvalidParameter("rows", "their number", f"to be at most {MOST}", "Use method='gradient'.")
        problem = EmpiricalRisk(self, rows / RADIUS, codes, tilt, start)
        length = float(np.linalg.norm(tilt))
        with np.errstate(all="ignore"):  # a warning would reveal something about rows
            found = problem.quick()
            for _ in range(_POLISH):
                gradient = problem.gradient(found)
                if self._is_near(found, gradient, length, len(rows)):
                    break
                found = found - _newton_step(problem, found, gradient)
            else:
                found = problem.slow((length + len(rows)) / self.ridge)
        return found * min(1.0, BALL / max(float(np.linalg.norm(found)), BALL))

    def _is_near(self, found: Floats, gradient: Floats, tilt: float, count: int) -> bool:
        """Returns whether a point is as near to v* as is promised; NaN is not."""
        length = float(np.linalg.norm(found))
        wrong = self.error(length, count, tilt)
        return float(np.linalg.norm(gradient)) * (1 + 1e-9) + wrong <= self.tolerance * max(1.0, length / (2 * BALL))


def _newton_step(problem: EmpiricalRisk, weights: Floats, gradient: Floats) -> Floats:
    """Approximates H^-1 g by conjugate gradients: near the minimum values of F are too coarse, gradients are not."""
    rows, ridge = problem.rows, problem.objective.ridge
    bends = capped_bends(rows @ (weights + problem.origin).T, problem.codes)[:, 0]

    def apply_hessian(step: Floats) -> Floats:
        return rows.T @ (bends * (rows @ step)) + ridge * step

    size = gradient.size
    operator = sparse.linalg.LinearOperator((size, size), matvec=apply_hessian)
    found, _ = sparse.linalg.cg(operator, gradient.ravel(), rtol=_REDUCED, maxiter=10 * size)
    return np.asarray(found, dtype=np.float64).reshape(gradient.shape)
