"""Losses of linear classifiers, and the minimiser of a regularised sum of them, to a distance known for certain.

Slopes of losses are tables of integers, or floats with the constants that bound them. Output and objective perturbation
speak of the exact minimiser. Floats find another point; what matters is that its distance from the exact one keeps to a
public bound whatever the rows are, because that bound is part of the sensitivity. Nothing here is released, and nothing
can fail to converge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import optimize, special
from discreet.statistics.inputs import RADIUS
from discreet.statistics.row_sums import class_residuals, link_table, sign_residuals, softmax_residuals

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_ROWS = 1 << 26
TOLERANCE = 2.0**-10  # of the gradient's length, in units of the largest gradient of one row
_ROUNDOFF = 1.01 * 2.0**-53  # also for sums: gamma_k <= 1.01 k u (Higham 2002, Lemma 3.1, k u < 0.01)
_LIBRARY = 2.0**-40  # what is trusted of exponentials and logarithms near 1
_BLOCK = 1 << 12  # rows that are added up by one product; sums of blocks are added afterwards

WIDTH = 0.5  # of the bend of the hinge, to both sides of 1


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

    loss: MarginLoss
    ridge: float
    features: int
    tilt_bound: float = 0.0

    @property
    def furthest(self) -> float:
        """Returns W: ridge / 2 ||w*||^2 - tilt_bound ||w*|| <= F(w*) <= F(0) <= MOST_ROWS times the loss at 0."""
        return self.reach(MOST_ROWS)

    def reach(self, count: int) -> float:
        """Returns how long the minimiser for so many rows is at most."""
        tilt = self.tilt_bound
        return (tilt + math.sqrt(tilt**2 + 2 * self.ridge * count * self.loss.at_zero)) / self.ridge

    @property
    def tolerance(self) -> float:
        """Returns how long the gradient may be where we stop: public, and at least twice the error of computing it."""
        return max(TOLERANCE * self.loss.slope, 2 * self.error(2 * self.furthest + 1, MOST_ROWS))

    def error(self, length: float, count: int) -> float:
        """Returns how wrong a computed gradient is at most, at weights of such a length.

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
        """Returns the weights, (outputs, features)."""
        if len(rows) > MOST_ROWS:
            raise InvalidParameter("rows", "their number", f"to be at most {MOST_ROWS}", "Use method='gradient'.")
        problem = EmpiricalRisk(self, rows.astype(np.float64) / RADIUS, codes, 0.0 if tilt is None else tilt)
        with np.errstate(all="ignore"):  # a warning would reveal something about rows
            found = problem.quick()
            length = float(np.linalg.norm(found))
            if length <= 2 * self.furthest and self._is_certain(problem.gradient(found), length, len(rows)):
                return found
            return problem.slow(self.reach(len(rows)))

    def _is_certain(self, gradient: Floats, length: float, count: int) -> bool:
        """Returns whether weights of such a length and gradient are a minimiser within the tolerance; NaN is not."""
        return float(np.linalg.norm(gradient)) * (1 + 1e-9) + self.error(length, count) <= self.tolerance


@dataclass(frozen=True, slots=True)
class EmpiricalRisk:
    """An objective for rows in floats, of weights around an origin."""

    objective: Objective
    rows: Floats
    codes: Integers
    tilt: Floats | float
    origin: Floats | float = 0.0

    def gradient(self, weights: Floats) -> Floats:
        """Returns the gradient, with an error that the objective knows."""
        return self._both(weights)[1]

    def _both(self, weights: Floats) -> tuple[float, Floats]:
        value, slope = 0.0, np.zeros_like(weights)
        for start in range(0, len(self.rows), _BLOCK):
            part = self.rows[start : start + _BLOCK]
            margins = part @ (weights + self.origin).T
            losses, residuals = self.objective.loss.value(margins, self.codes[start : start + _BLOCK])
            value += float(losses.sum())
            slope += residuals.T @ part
        ridge = self.objective.ridge
        value += ridge / 2 * float(np.sum(weights**2)) + float(np.sum(self.tilt * weights))
        return value, slope + ridge * weights + self.tilt

    def quick(self) -> Floats:
        """Returns what a quasi-Newton method finds; its distance from the minimiser is unknown."""
        shape = (self.objective.loss.outputs, self.objective.features)

        def both(flat: Floats) -> tuple[float, Floats]:
            value, slope = self._both(flat.reshape(shape))
            return value, slope.ravel()

        options: Any = {"maxiter": 500, "maxcor": 30, "ftol": 0.0, "gtol": self.objective.tolerance / 64}
        found = optimize.minimize(both, np.zeros(math.prod(shape)), jac=True, method="L-BFGS-B", options=options)
        return np.asarray(found.x, dtype=np.float64).reshape(shape)

    def slow(self, furthest: float) -> Floats:
        """Descends by plain gradients, from 0 to a minimiser that is so far at most; see `Objective`."""
        made, count = self.objective, len(self.rows)
        steepest = count * made.loss.curvature + made.ridge
        distance = max(furthest * made.ridge * 2 / made.tolerance, math.e)
        weights = np.zeros((made.loss.outputs, made.features))
        for _ in range(math.ceil(steepest / made.ridge * math.log(distance)) + 1):
            weights = weights - self.gradient(weights) / steepest
        return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginLoss:
    """A loss of the margins of a row, one for each output, and of the row's class.

    Attributes:
        outputs: how many margins there are; 1 for two classes.
        slope: the largest L2 norm of the gradient by the margins.
        curvature: the largest eigenvalue of the second derivative by the margins.
        at_zero: the loss where all margins are 0.
        one_signed: whether the slope is s g with g >= 0 and a sign s that the row alone decides.
        twice_smooth: whether second derivatives are continuous.
        residuals: slopes as integers, in units of 1 / RESIDUAL, of integer margins and codes of classes.
        value: losses and slopes of margins in floats, (n, outputs), and codes of classes.
    """

    outputs: int
    slope: float
    curvature: float
    at_zero: float
    one_signed: bool
    twice_smooth: bool
    residuals: Callable[[Integers, Integers], Integers]
    value: Callable[[Floats, Integers], tuple[Floats, Floats]]


def logistic(classes: int) -> MarginLoss:
    """Returns ln(1 + e^-m) of the margin m of the right side, or minus the logarithm of softmax for more classes.

    The gradient of softmax is p - e_y, whose norm is at most sqrt(2); its second derivative diag(p) - p p^T has
    eigenvalues of at most 1/2.
    """
    if classes == 2:
        return MarginLoss(
            outputs=1,
            slope=1.0,
            curvature=0.25,
            at_zero=float(np.log(2)),
            one_signed=True,
            twice_smooth=True,
            residuals=class_residuals,
            value=_logistic,
        )
    return MarginLoss(
        outputs=classes,
        slope=float(np.sqrt(2)),
        curvature=0.5,
        at_zero=float(np.log(classes)),
        one_signed=False,
        twice_smooth=True,
        residuals=softmax_residuals,
        value=_softmax,
    )


def capped_logistic() -> MarginLoss:
    """Returns the logistic loss of two classes, continued by its tangent where the margin of the right side is below 0.

    Its slope is at most 1/2 instead of 1: rows on the wrong side all pull alike, and less noise covers one of them.
    """
    return replace(logistic(2), slope=0.5, twice_smooth=False, value=_compute_capped_loss)


def hinge(classes: int) -> MarginLoss:
    """Returns max(0, 1 - m), its corner made round between 1/2 and 3/2; one against the rest for many classes."""
    outputs = 1 if classes == 2 else classes
    return MarginLoss(
        outputs=outputs,
        slope=float(np.sqrt(outputs)),
        curvature=1 / (2 * WIDTH),
        at_zero=float(outputs),
        one_signed=outputs == 1,
        twice_smooth=False,
        residuals=_hinge_residuals,
        value=_hinge,
    )


def _logistic(margins: Floats, codes: Integers) -> tuple[Floats, Floats]:
    signs = _signs(codes, 1)
    known = signs != 0
    away = signs * margins
    return np.where(known, np.logaddexp(0.0, -away), 0.0).sum(axis=1), -signs * special.expit(-away)


def _compute_capped_loss(margins: Floats, codes: Integers) -> tuple[Floats, Floats]:
    signs = _signs(codes, 1)
    away = signs * margins
    losses = np.where(away < 0, np.log(2) - away / 2, np.logaddexp(0.0, -away))
    return np.where(signs != 0, losses, 0.0).sum(axis=1), np.asarray(-signs * np.minimum(special.expit(-away), 0.5))


def capped_bends(margins: Floats, codes: Integers) -> Floats:
    """Returns second derivatives of the capped loss, in floats; at its corner either would do."""
    away = _signs(codes, 1) * margins
    chance = special.expit(-away)
    return np.where((_signs(codes, 1) != 0) & (away >= 0), chance * (1 - chance), 0.0)


def _softmax(margins: Floats, codes: Integers) -> tuple[Floats, Floats]:
    known = (codes >= 0) & (codes < margins.shape[1])
    right = codes[:, None] == np.arange(margins.shape[1])
    losses = special.logsumexp(margins, axis=1) - np.sum(margins * right, axis=1)
    return np.where(known, losses, 0.0), np.where(known[:, None], special.softmax(margins, axis=1) - right, 0.0)


def _hinge_slope(margins: Floats) -> Floats:
    return -np.clip((1 + WIDTH - margins) / (2 * WIDTH), 0.0, 1.0)


_HINGE = link_table(_hinge_slope)


def _hinge_residuals(margins: Integers, codes: Integers) -> Integers:
    if margins.ndim == 1:
        return sign_residuals(margins, codes, _HINGE)
    known = (codes >= 0) & (codes < margins.shape[1])
    columns = [
        sign_residuals(margins[:, k], np.where(known, codes == k, -1).astype(np.int64), _HINGE)
        for k in range(margins.shape[1])
    ]
    return np.stack(columns, axis=1)


def _hinge(margins: Floats, codes: Integers) -> tuple[Floats, Floats]:
    signs = _signs(codes, margins.shape[1])
    away = signs * margins
    slope = np.where(signs == 0, 0.0, _hinge_slope(away))
    bend = np.square(np.clip(1 + WIDTH - away, 0.0, 2 * WIDTH)) / (4 * WIDTH)
    losses = bend + np.clip(1 - WIDTH - away, 0.0, None)
    return np.where(signs == 0, 0.0, losses).sum(axis=1), np.asarray(signs * slope, dtype=np.float64)


def _signs(codes: Integers, outputs: int) -> Integers:
    """Returns +1 for the output of the right class, -1 for the others, 0 in all for a class that is none."""
    if outputs == 1:
        return np.where((codes == 0) | (codes == 1), 2 * codes - 1, 0)[:, None]
    signs = np.where(codes[:, None] == np.arange(outputs), 1, -1)
    return np.where(((codes >= 0) & (codes < outputs))[:, None], signs, 0)
