"""One person's number, inferred from releases: how often it is near the truth, and how often it could be by chance."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.lazy import special
from discreet.mechanisms import Laplace
from discreet.noise import Bits
from discreet.noise.experiment import uniforms
from discreet.report.attack_finding import Finding
from discreet.report.display import plain

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_FINENESS = 1 << 20  # steps of the public grid between two bounds


@dataclass(frozen=True, kw_only=True)
class Inference(Finding):
    """Reports a number that was inferred, or one for each trial.

    Attributes:
        tolerance: how near to the truth counts as right.
        measured: whether `success` was measured against the truth; else it is what is expected.
    """

    tolerance: float
    measured: bool

    def details(self) -> tuple[str, ...]:
        """Returns the number, and what counts as right."""
        known = [] if np.ndim(self.recovered) else [f"Inferred: {plain(self.recovered)}."]
        if not self.measured:
            known.append("The rate is expected, not measured: the truth was not given.")
        return (*known, f"Right means within {self.tolerance:g}.")


def make_inference(
    attack: str,
    found: Any,
    *,
    truth: Any,
    tolerance: float,
    noise: float | None,
    predicted: float | None = None,
    baseline: float,
    bound: float | None,
) -> Inference:
    """Returns the finding about a number, or about one for each trial.

    Args:
        attack: its name.
        found: what was inferred; NaN where nothing could be.
        truth: one number, or one for each trial; None if it is not known here.
        tolerance: how near counts as right.
        noise: the standard deviation of `found`, if it is known; normal noise is assumed for the prediction.
        predicted: a better prediction.
        baseline: the share that is right by chance.
        bound: what a guarantee allows.
    """
    expected = predicted if predicted is not None else None if noise is None else near(tolerance, noise)
    if truth is None:
        success = 1.0 if expected is None else expected  # without noise, arithmetic is never wrong
    else:
        right = np.asarray(truth) if np.ndim(found) else check.rational(truth=truth)
        success = float(np.mean(np.asarray(abs(found - right) <= tolerance)))
    return Inference(
        attack=attack,
        goal="numbers inferred" if np.ndim(found) else "number inferred",
        success=success,
        baseline=baseline,
        targets=max(1, int(np.size(found))),
        predicted=expected,
        bound=bound,
        recovered=found,
        tolerance=tolerance,
        measured=truth is not None,
    )


def near(tolerance: float, noise: float) -> float:
    """Returns how often normal noise stays within a tolerance."""
    return float(2 * special.ndtr(tolerance / noise) - 1) if noise > 0 else 1.0


def near_twice(tolerance: float, scale: float) -> float:
    """Returns how often the difference of two Laplace numbers of this scale stays within a tolerance.

    Its density is (1 + |d| / s) e^(-|d| / s) / 4s.

    >>> round(near_twice(1, 1), 4)
    0.4482
    """
    ratio = tolerance / scale
    return 1 - math.exp(-ratio) * (1 + ratio / 2)


def span(name: str, ends: Any) -> tuple[Fraction, Fraction]:
    """Returns two ends, the first below the second.

    Raises:
        InvalidParameter: if they are no such pair.
    """
    try:
        low, high = ends
    except (TypeError, ValueError):
        raise InvalidParameter(name, ends, "to be a pair of numbers", f"Pass e.g. {name}=(0, 100).") from None
    first, last = check.rational(**{name: low}), check.rational(**{name: high})
    if first >= last:
        raise InvalidParameter(name, ends, "to begin below its end", f"Pass e.g. {name}=(0, 100).")
    return first, last


def evenly(ends: tuple[Fraction, Fraction], count: int, *, bits: Bits) -> Floats:
    """Returns numbers spread evenly between two ends."""
    low, high = float(ends[0]), float(ends[1])
    return np.asarray(low + (high - low) * uniforms(count, bits=bits))


def sensible(found: Floats, ends: tuple[Fraction, Fraction], tolerance: float) -> Floats:
    """Returns the best guesses for numbers that are spread evenly between two ends.

    What was inferred, kept inside them.

    If each alone is right with probability p, and by chance with probability b <= 1/2, these are right with
    probability 1 - (1 - p) (1 - b): next to an end, one side of the noise does no harm. Where nothing was inferred
    (NaN), the middle is guessed.
    """
    low, high = float(ends[0]), float(ends[1])
    reach = min(tolerance, (high - low) / 2)
    return np.clip(np.where(np.isnan(found), (low + high) / 2, found), low + reach, high - reach)


def by_chance(ends: tuple[Fraction, Fraction], tolerance: float) -> float:
    """Returns how often the best guess comes near a number that is spread evenly between two ends."""
    return min(1.0, 2 * tolerance / float(ends[1] - ends[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedValues:
    """Holds values clipped to public bounds and rounded to a public grid, as whole numbers of its steps.

    Attributes:
        bounds: public.
    """

    bounds: tuple[Fraction, Fraction]

    @property
    def grid(self) -> Grid:
        """Returns at least a million steps between the bounds."""
        return Grid.finer_than((self.bounds[1] - self.bounds[0]) / _FINENESS)

    @property
    def width(self) -> int:
        """Returns how far one value can be replaced, in steps: clipping and rounding keep the order of values."""
        return int(self.grid.steps(self.bounds[1]) - self.grid.steps(self.bounds[0]))

    def steps(self, values: Any) -> Whole:
        """Returns the values on the grid."""
        inside = np.clip(np.asarray(values, dtype=np.float64), float(self.bounds[0]), float(self.bounds[1]))
        return np.asarray(self.grid.steps(inside))

    def noisy(self, totals: Whole, *, epsilon: Fraction, reach: int = 1, bits: Bits) -> Floats:
        """Returns totals with exact noise, in the units of the values.

        Formal guarantee: epsilon-DP when one value is replaced, for totals that belong together; an array may hold
        several releases side by side, and each alone is epsilon-DP.

        Args:
            totals: in steps.
            epsilon: of totals that belong together.
            reach: the sum of the weights that one value has in them.
            bits: the source of randomness.
        """
        law = Laplace(epsilon=epsilon, sensitivity=reach * self.width)
        return np.asarray(law.release(totals, bits=bits), dtype=np.float64) * float(self.grid.step)

    def scale(self, epsilon: Fraction, reach: int = 1) -> float:
        """Returns the scale of the noise, in the units of the values."""
        return float(reach * self.width / epsilon * self.grid.step)
