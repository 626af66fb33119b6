"""Regression M-estimates by noisy Newton or gradient steps: the plan, made from public facts, and its run.

What a row contributes, its residual, its weight in a step and its slope, comes from public tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.mechanisms import Gaussian, KNorm, Laplace, Quantile
from discreet.noise import Bits
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.statistics.inputs import RADIUS
from discreet.statistics.noise_errors import deviation, half_width
from discreet.statistics.robust.scores import Huber, Score
from discreet.statistics.row_sums import (
    MARGIN,
    RESIDUAL,
    SIGMOID,
    UNIT,
    Design,
    SymmetricNoise,
    class_residuals,
    link_table,
    look_up,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST_BOUND = 4.0  # of a score: 2^24 times its square, in units of 2^-10, is then at most the largest curvature
_FURTHEST_TARGET = 1 << 50
NOWHERE = np.int64(1 << 60)  # the target of a row that counts nowhere

CURVATURE = RESIDUAL * RADIUS * RADIUS  # what a curvature of 1 is
_CAREFUL = 1.3  # deviations of their own noise by which plugged-in matrices err to the wide side
_STRAYS = 0.95  # the most of an error that a step is believed to keep
_SLOWLY = 3.0  # gradient steps far from the solution, where scores are clipped, gain less than those near it
_FAR = 8.0  # the longest step, in margins of a row of length 1
NEWTON_STEPS = 5
GRADIENT_STEPS = 100
SHARES = {
    "start": Fraction(8),
    "count": Fraction(4),
    "gradient": Fraction(55),
    "curvature": Fraction(15),
    "square": Fraction(11),
    "slope": Fraction(11),
}


class Response(ABC):
    """How targets meet margins: integer residuals (score units of 1 / RESIDUAL), step weights >= 0, and slopes."""

    residual_bound: int
    weight_bound: int
    slope_bound: int
    signed: bool

    @abstractmethod
    def targets(self, y: Floats, scale: float) -> Integers:
        """Returns targets as integers, each one alone."""

    @abstractmethod
    def residuals(self, margins: Integers, targets: Integers) -> Integers:
        """Returns psi of the rows: positive where the target lies above the margin."""

    @abstractmethod
    def weights(self, margins: Integers, targets: Integers) -> Integers:
        """Returns curvatures for a step, never negative."""

    @abstractmethod
    def slopes(self, margins: Integers, targets: Integers) -> Integers:
        """Returns slopes of psi, for the interval."""


@dataclass(frozen=True)
class NumericResponse(Response):
    """Targets that are numbers, with a score of (y - margin) / scale.

    The weight of a step is psi(u) / u, with which each step is one of iteratively reweighted least squares: it never
    overshoots and is never negative, even for scores that turn back.
    """

    score: Score

    @cached_property
    def _psi(self) -> Integers:
        found = link_table(self.score.psi)
        if np.abs(found).max() > _LARGEST_BOUND * RESIDUAL:
            raise InvalidParameter("psi", self.score, f"bounded by {_LARGEST_BOUND:g}", "Rescale the score.")
        return found

    @cached_property
    def _weight(self) -> Integers:
        return np.maximum(link_table(lambda u: np.clip(self.score.psi(u) / u, 0, _LARGEST_BOUND)), 0)

    @cached_property
    def _slope(self) -> Integers:
        return link_table(lambda u: np.clip(self.score.slope(u), -_LARGEST_BOUND, _LARGEST_BOUND))

    @property
    def residual_bound(self) -> int:  # type: ignore[override]
        """Returns the largest |psi|."""
        return int(np.abs(self._psi).max())

    @property
    def weight_bound(self) -> int:  # type: ignore[override]
        """Returns the largest psi(u) / u."""
        return int(self._weight.max())

    @property
    def slope_bound(self) -> int:  # type: ignore[override]
        """Returns the largest |psi'|."""
        return int(np.abs(self._slope).max())

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """Returns whether the score turns back somewhere."""
        return bool((self._slope < 0).any())

    def targets(self, y: Floats, scale: float) -> Integers:
        """Returns y / scale in units of a margin; a missing one is marked as a row that counts nowhere."""
        with np.errstate(over="ignore"):
            scaled = np.clip(np.nan_to_num(y / scale * MARGIN, nan=0.0), -_FURTHEST_TARGET, _FURTHEST_TARGET)
        return np.where(np.isnan(y), NOWHERE, np.rint(scaled).astype(np.int64))

    def residuals(self, margins: Integers, targets: Integers) -> Integers:
        """Returns psi of the differences; Huber's is the clipped difference itself."""
        if isinstance(self.score, Huber):
            shift = (MARGIN // RESIDUAL).bit_length() - 1
            bound = self.residual_bound
            found = np.clip((targets - margins + (1 << (shift - 1))) >> shift, -bound, bound)
        else:
            found = look_up(self._psi, targets - margins)
        return np.where(targets == NOWHERE, 0, found)

    def weights(self, margins: Integers, targets: Integers) -> Integers:
        """Returns psi(u) / u."""
        return np.where(targets == NOWHERE, 0, look_up(self._weight, targets - margins))

    def slopes(self, margins: Integers, targets: Integers) -> Integers:
        """Returns psi'(u), the slope of the score."""
        return np.where(targets == NOWHERE, 0, look_up(self._slope, targets - margins))


@dataclass(frozen=True)
class BinaryResponse(Response):
    """Targets 0 and 1 with the score of logistic regression, y - 1 / (1 + e^-margin); other targets count nowhere."""

    residual_bound: int = RESIDUAL
    weight_bound: int = RESIDUAL // 4
    slope_bound: int = RESIDUAL // 4
    signed: bool = False

    def targets(self, y: Floats, scale: float) -> Integers:  # noqa: ARG002 - margins have no scale here
        """Returns targets 0 and 1, and -1 for anything else."""
        return np.where(y == 1, 1, np.where(y == 0, 0, -1)).astype(np.int64)

    def residuals(self, margins: Integers, targets: Integers) -> Integers:
        """Returns the target minus the chance."""
        return -class_residuals(margins, targets, SIGMOID)

    def weights(self, margins: Integers, targets: Integers) -> Integers:
        """Returns p (1 - p)."""
        return np.where(targets >= 0, look_up(_VARIANCE, margins), 0)

    def slopes(self, margins: Integers, targets: Integers) -> Integers:
        """Returns p (1 - p), the same as the weights."""
        return self.weights(margins, targets)


_VARIANCE = link_table(lambda z: special.expit(z) * special.expit(-z))


def response_of(psi: Any) -> Response:
    """Returns a score of residuals, or the name of logistic regression.

    Raises:
        InvalidParameter: if it is neither.
    """
    if psi == "logistic_regression":
        return BinaryResponse()
    if not isinstance(psi, Score):
        hint = "Pass e.g. psi=Huber() for numbers, or psi='logistic_regression' for targets 0 and 1."
        raise InvalidParameter("psi", psi, "to be a Score or 'logistic_regression'", hint)
    found = NumericResponse(psi)
    if found.residual_bound == 0 or found.slope_bound == 0:
        raise InvalidParameter("psi", psi, "not to be 0 everywhere")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionFit:
    """Holds what a run found: weights, and the half-widths of their intervals."""

    theta: Floats
    widths: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPlan:
    """Holds everything about a run that is fixed before a row is seen.

    Formal guarantee: the run releases a median of the targets (if it needs a start), a count (gradient steps, if the
    number of rows is private), `steps` gradients with their curvatures (Newton) or without, a sum of squared residuals
    times x x^T and one of slopes times x x^T, and nothing else depends on the data; `event` is their composition. The
    gradient of a row is r x, of length at most `clip`; curvatures of steps have weights >= 0.

    Attributes:
        response: residuals, weights and slopes.
        steps: how many.
        start: finds the first guess of the intercept; None if all weights begin at 0.
        size: the public number of rows, or the mechanism that counts them; None for Newton, which needs no number.
        gradient: the noise of each gradient.
        curvature: the noise of each curvature; None for gradient steps.
        square: the noise of the sum of squared residuals.
        slope: the noise of the sum of slopes; None if it is the last curvature.
    """

    response: Response
    steps: int
    start: Quantile | None
    size: Laplace | Gaussian | int | None
    gradient: KNorm | Gaussian
    curvature: SymmetricNoise | None
    square: SymmetricNoise
    slope: SymmetricNoise

    @property
    def clip(self) -> int:
        """Returns the largest length of a row's gradient, in integers."""
        return self.response.residual_bound * RADIUS

    @property
    def event(self) -> Event:
        """Returns what a run costs."""
        first = [part.event for part in (self.start, self.size) if part is not None and not isinstance(part, int)]
        step: list[Event] = [self.gradient.event]
        if self.curvature is not None:
            step.append(self.curvature.event)
        steps = events.Repeated(events.Composed(step), self.steps)
        return events.Composed([*first, steps, self.square.event, self.slope.event])

    def run(self, rows: Integers, targets: Integers, start: Floats, confidence: Number, bits: Bits) -> RegressionFit:
        """Returns the fit: every line that reads rows or targets ends in a mechanism."""
        design, response = Design.of(rows, clip=self.clip), self.response
        theta, metric = start.copy(), np.eye(len(start))
        size = self._count(len(rows), bits)
        for _ in range(self.steps):
            margins = design.margins(theta)
            slope = self.gradient.release(design.gradient(response.residuals(margins, targets)), bits=bits) / UNIT
            if self.curvature is None:
                metric = np.eye(len(start)) * size * response.weight_bound / RESIDUAL
            else:
                sums = design.curvature(response.weights(margins, targets), self.curvature.limit)
                metric = _floor_eigenvalues(self.curvature, self.curvature.release(sums, bits))
            theta = theta + _limit_step(np.linalg.solve(metric, slope))
        margins = design.margins(theta)
        residuals = response.residuals(margins, targets)
        squares = self.square.release(design.curvature(residuals * residuals >> 10, self.square.limit), bits)
        slopes = self.slope.release(design.curvature(response.slopes(margins, targets), self.slope.limit), bits)
        return RegressionFit(theta=theta, widths=self._widths(theta - start, metric, squares, slopes, confidence))

    def _count(self, rows: int, bits: Bits) -> float:
        if self.size is None:
            return 1.0
        return float(self.size) if isinstance(self.size, int) else max(1.0, float(self.size.release(rows, bits=bits)))

    def _widths(self, moved: Floats, metric: Floats, squares: Floats, slopes: Floats, confidence: Number) -> Floats:
        """Returns half-widths by the sandwich H^-1 M H^-1, the noise of all steps, and what remains of the start.

        A step keeps C = 1 - W^-1 H of an error, so noise e of a step that came j steps before the last reaches the
        result as C^j W^-1 e.
        """
        size = len(moved)
        curve = _floor_eigenvalues(self.slope, slopes - _CAREFUL * self.slope.deviation * np.eye(size))
        spread = _positive(squares + _CAREFUL * self.square.deviation * np.eye(size)) / CURVATURE
        inverse = np.linalg.inv(curve)
        kept = _limit_spectral_radius(np.eye(size) - np.linalg.solve(metric, curve))
        carried, noise = np.linalg.inv(metric), np.zeros((size, size))
        for _ in range(self.steps):
            noise += carried @ carried.T
            carried = kept @ carried
        # an error e of the start shrinks to C^T e, so the run moved by (I - C^T) e: C^T (I - C^T)^-1 of that remains
        left = np.linalg.matrix_power(kept, self.steps)
        drift = np.abs(left @ np.linalg.solve(np.eye(size) - left, moved)) * (1 if self.curvature else _SLOWLY)
        sampling = np.diag(inverse @ spread @ inverse)
        noises = np.diag(noise) * (deviation(self.gradient) / UNIT) ** 2
        wide = [self._width(*pair, confidence) for pair in zip(sampling, noises, strict=True)]
        return np.asarray(np.array(wide) + drift)

    def _width(self, sampling: float, noise: float, confidence: Number) -> float:
        """Returns the half-width of errors; K-norm noise has lighter tails than the Laplace law of its variance."""
        if isinstance(self.gradient, Gaussian):
            return half_width(confidence, deviation=float(sampling + noise) ** 0.5)
        # a Laplace law of scale b has the variance 2 b^2
        return half_width(confidence, deviation=float(sampling) ** 0.5, scales=[float(noise / 2) ** 0.5])


def _floor_eigenvalues(noise: SymmetricNoise, released: Floats) -> Floats:
    """Returns a released curvature as a matrix whose eigenvalues are no smaller than its noise could make them look."""
    values, vectors = np.linalg.eigh((released + released.T) / 2)
    floor = noise.deviation * np.sqrt(len(values))
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T) / CURVATURE


def _positive(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _limit_step(move: Floats) -> Floats:
    length = float(np.linalg.norm(move))
    return move * (_FAR / length) if length > _FAR else move


def _limit_spectral_radius(kept: Floats) -> Floats:
    """Returns what a step keeps of an error, believed only as far as steps converge."""
    radius = float(np.abs(np.linalg.eigvals(kept)).max())
    return kept * (_STRAYS / radius) if radius > _STRAYS else kept


def predicted_error(dimension: int, size: int, steps: int, multiplier: float, slope: float) -> float:
    """Returns the relative noise of a released curvature of isotropic rows, if over half of them are informative.

    Above 1/2, Newton steps go astray and gradient steps are better.
    """
    noise = multiplier * float(np.sqrt(2 * dimension * steps))
    return noise / (size * slope / (2 * dimension))
