"""Regression M-estimates by noisy Newton or gradient steps: the plan, made from public facts, and its run."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.check import Number
from discreet.mechanisms import Gaussian, KNorm, Laplace, Quantile
from discreet.noise import Bits
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.statistics.descent import deviation
from discreet.statistics.glm import RESIDUAL, UNIT, Design
from discreet.statistics.regression_scores import Response
from discreet.statistics.rows import RADIUS
from discreet.statistics.symmetric_noise import SymmetricNoise
from discreet.statistics.widths import half_width

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CURVATURE = RESIDUAL * RADIUS * RADIUS  # what a curvature of 1 is
_CAREFUL = 1.3  # deviations of their own noise by which plugged-in matrices err to the wide side
_STRAYS = 0.95  # the most of an error that a step is believed to keep
_SLOWLY = 3.0  # gradient steps far from the solution, where scores are clipped, gain less than those near it
_FAR = 8.0  # the longest step, in margins of a row of length 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a run found: weights, and the half-widths of their intervals."""

    theta: Floats
    widths: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPlan:
    """Everything about a run that is fixed before a row is seen.

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
        """The largest length of a row's gradient, in integers."""
        return self.response.residual_bound * RADIUS

    @property
    def event(self) -> Event:
        """What a run costs."""
        first = [part.event for part in (self.start, self.size) if part is not None and not isinstance(part, int)]
        step: list[Event] = [self.gradient.event]
        if self.curvature is not None:
            step.append(self.curvature.event)
        steps = events.Repeated(events.Composed(step), self.steps)
        return events.Composed([*first, steps, self.square.event, self.slope.event])

    def run(self, rows: Integers, targets: Integers, start: Floats, confidence: Number, bits: Bits) -> Fit:
        """The fit: every line that reads rows or targets ends in a mechanism."""
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
                metric = _floored(self.curvature, self.curvature.release(sums, bits))
            theta = theta + _held(np.linalg.solve(metric, slope))
        margins = design.margins(theta)
        residuals = response.residuals(margins, targets)
        squares = self.square.release(design.curvature(residuals * residuals >> 10, self.square.limit), bits)
        slopes = self.slope.release(design.curvature(response.slopes(margins, targets), self.slope.limit), bits)
        return Fit(theta=theta, widths=self._widths(theta - start, metric, squares, slopes, confidence))

    def _count(self, rows: int, bits: Bits) -> float:
        if self.size is None:
            return 1.0
        return float(self.size) if isinstance(self.size, int) else max(1.0, float(self.size.release(rows, bits=bits)))

    def _widths(self, moved: Floats, metric: Floats, squares: Floats, slopes: Floats, confidence: Number) -> Floats:
        """By the sandwich H^-1 M H^-1 of sums and the noise of all steps (10.4 for matrices), and what start is left.

        A step keeps C = 1 - W^-1 H of an error, so noise e of a step that came j steps before the last reaches the
        result as C^j W^-1 e.
        """
        size = len(moved)
        curve = _floored(self.slope, slopes - _CAREFUL * self.slope.deviation * np.eye(size))
        spread = _positive(squares + _CAREFUL * self.square.deviation * np.eye(size)) / CURVATURE
        inverse = np.linalg.inv(curve)
        kept = _shrunk(np.eye(size) - np.linalg.solve(metric, curve))
        carried, noise = np.linalg.inv(metric), np.zeros((size, size))
        for _ in range(self.steps):
            noise += carried @ carried.T
            carried = kept @ carried
        left = np.linalg.matrix_power(kept, self.steps)
        drift = np.abs(left @ np.linalg.solve(np.eye(size) - left, moved)) * (1 if self.curvature else _SLOWLY)
        sampling = np.diag(inverse @ spread @ inverse)
        noises = np.diag(noise) * (deviation(self.gradient) / UNIT) ** 2
        wide = [self._width(*pair, confidence) for pair in zip(sampling, noises, strict=True)]
        return np.asarray(np.array(wide) + drift)

    def _width(self, sampling: float, noise: float, confidence: Number) -> float:
        """Normal errors; an entry of K-norm noise has lighter tails than the Laplace law of its variance."""
        if isinstance(self.gradient, Gaussian):
            return half_width(confidence, deviation=float(sampling + noise) ** 0.5)
        return half_width(confidence, deviation=float(sampling) ** 0.5, scales=[float(noise / 2) ** 0.5])


def _floored(noise: SymmetricNoise, released: Floats) -> Floats:
    """A released curvature as a matrix whose eigenvalues are no smaller than its noise could make them look."""
    values, vectors = np.linalg.eigh((released + released.T) / 2)
    floor = noise.deviation * np.sqrt(len(values))
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T) / CURVATURE


def _positive(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _held(move: Floats) -> Floats:
    length = float(np.linalg.norm(move))
    return move * (_FAR / length) if length > _FAR else move


def _shrunk(kept: Floats) -> Floats:
    """What a step keeps of an error, believed only as far as steps converge."""
    radius = float(np.abs(np.linalg.eigvals(kept)).max())
    return kept * (_STRAYS / radius) if radius > _STRAYS else kept


def predicted_error(dimension: int, size: int, steps: int, multiplier: float, slope: float) -> float:
    """The relative noise of a released curvature of isotropic rows, over half of which say something.

    Above 1/2, Newton steps go astray and gradient steps are better.
    """
    noise = multiplier * float(np.sqrt(2 * dimension * steps))
    return noise / (size * slope / (2 * dimension))


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
