"""The minimiser of a regularised sum of losses, to a distance that is known for certain.

Output and objective perturbation speak of the exact minimiser. Floats find another point; what matters is that its
distance from the exact one keeps to a public bound whatever the rows are, because that bound is part of the
sensitivity. Nothing here is released, and nothing can fail to converge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.lazy import optimize
from discreet.learn.losses import Loss
from discreet.statistics.inputs import RADIUS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_ROWS = 1 << 26
TOLERANCE = 2.0**-10  # of the gradient's length, in units of the largest gradient of one row
_ROUNDOFF = 1.01 * 2.0**-53  # also for sums: gamma_k <= 1.01 k u (Higham 2002, Lemma 3.1, k u < 0.01)
_LIBRARY = 2.0**-40  # what is trusted of exponentials and logarithms near 1
_BLOCK = 1 << 12  # rows that are added up by one product; sums of blocks are added afterwards


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """F(w) = sum of losses + (ridge / 2) ||w||^2 + <tilt, w> over rows of length at most 1 (integers over RADIUS).

    Formal guarantee: `minimiser` returns w with ||w - w*|| <= tolerance / ridge for the exact minimiser w* of F, for
    all rows and all libraries of linear algebra. F is ridge-strongly convex, so ||w - w*|| <= ||grad F(w)|| / ridge;
    the gradient is computed with an error of at most `error(||w||)`. A point of a quasi-Newton method is kept if that
    certifies it. If it does not, gradient descent from 0 with steps 1 / L, L = n c + ridge, is run for a number of
    steps that follows from n: every step takes the distance d to at most (1 - ridge / L) d + error / L, so that after
    (L / ridge) ln(2 ridge W / tolerance) steps it is at most tolerance / (2 ridge) + error / ridge, if ||w*|| <= W.

    Attributes:
        loss: of a row.
        ridge: above 0.
        features: the number of entries of a row, public.
        tilt_bound: how long the tilt is at most, 0 for none.
    """

    loss: Loss
    ridge: float
    features: int
    tilt_bound: float = 0.0

    @property
    def furthest(self) -> float:
        """W: ridge / 2 ||w*||^2 - tilt_bound ||w*|| <= F(w*) <= F(0) <= MOST_ROWS times the loss at 0."""
        return self.reach(MOST_ROWS)

    def reach(self, count: int) -> float:
        """How long the minimiser for so many rows is at most."""
        tilt = self.tilt_bound
        return (tilt + math.sqrt(tilt**2 + 2 * self.ridge * count * self.loss.at_zero)) / self.ridge

    @property
    def tolerance(self) -> float:
        """How long the gradient may be where we stop: public, and at least twice the error of computing it."""
        return max(TOLERANCE * self.loss.slope, 2 * self.error(2 * self.furthest + 1, MOST_ROWS))

    def error(self, length: float, count: int) -> float:
        """How wrong a computed gradient is at most, at weights of such a length.

        A margin is off by gamma_d ||w||, a slope by the curvature times that and by the library's error; a sum of n
        slopes times rows, added in blocks of 2^12, by gamma of the block's and the blocks' number times n G. The last
        term is for the few additions that follow, a step of the descent included.
        """
        outputs = math.sqrt(self.loss.outputs)
        slope = self.loss.curvature * outputs * self.features * _ROUNDOFF * length + outputs * _LIBRARY
        summed = (_BLOCK + count / _BLOCK + 8) * _ROUNDOFF * (self.loss.slope + slope)
        largest = self.ridge * length + self.tilt_bound + count * (self.loss.slope + self.loss.curvature * length)
        return count * (slope + summed) + 8 * _ROUNDOFF * largest

    def minimiser(self, rows: Integers, codes: Integers, tilt: Floats | None = None) -> Floats:
        """The weights, (outputs, features)."""
        if len(rows) > MOST_ROWS:
            raise InvalidParameter("rows", "their number", f"to be at most {MOST_ROWS}", "Use method='gradient'.")
        problem = _Problem(self, rows.astype(np.float64) / RADIUS, codes, 0.0 if tilt is None else tilt)
        with np.errstate(all="ignore"):  # a warning would tell about rows
            found = problem.quick()
            length = float(np.linalg.norm(found))
            if length <= 2 * self.furthest and self._is_certain(problem.gradient(found), length, len(rows)):
                return found
            return problem.slow()

    def _is_certain(self, gradient: Floats, length: float, count: int) -> bool:
        """Whether weights of such a length and gradient are a minimiser within the tolerance; NaN is not."""
        return float(np.linalg.norm(gradient)) * (1 + 1e-9) + self.error(length, count) <= self.tolerance


@dataclass(frozen=True, slots=True)
class _Problem:
    objective: Objective
    rows: Floats
    codes: Integers
    tilt: Floats | float

    def gradient(self, weights: Floats) -> Floats:
        return self._both(weights)[1]

    def _both(self, weights: Floats) -> tuple[float, Floats]:
        value, slope = 0.0, np.zeros_like(weights)
        for start in range(0, len(self.rows), _BLOCK):
            part = self.rows[start : start + _BLOCK]
            losses, residuals = self.objective.loss.value(part @ weights.T, self.codes[start : start + _BLOCK])
            value += float(losses.sum())
            slope += residuals.T @ part
        ridge = self.objective.ridge
        value += ridge / 2 * float(np.sum(weights**2)) + float(np.sum(self.tilt * weights))
        return value, slope + ridge * weights + self.tilt

    def quick(self) -> Floats:
        shape = (self.objective.loss.outputs, self.objective.features)

        def both(flat: Floats) -> tuple[float, Floats]:
            value, slope = self._both(flat.reshape(shape))
            return value, slope.ravel()

        options: Any = {"maxiter": 500, "maxcor": 30, "ftol": 0.0, "gtol": self.objective.tolerance / 64}
        found = optimize.minimize(both, np.zeros(math.prod(shape)), jac=True, method="L-BFGS-B", options=options)
        return np.asarray(found.x, dtype=np.float64).reshape(shape)

    def slow(self) -> Floats:
        """Plain gradient descent of a length that depends on the number of rows alone, as that of every pass does."""
        made, count = self.objective, len(self.rows)
        steepest = count * made.loss.curvature + made.ridge
        distance = max(made.reach(count) * made.ridge * 2 / made.tolerance, math.e)
        weights = np.zeros((made.loss.outputs, made.features))
        for _ in range(math.ceil(steepest / made.ridge * math.log(distance)) + 1):
            weights = weights - self.gradient(weights) / steepest
        return weights
