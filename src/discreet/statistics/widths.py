"""How wide an interval must be for the sum of a normal error and several Laplace errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.lazy import optimize

_STEP = 2 * np.pi / 120  # of the integral: repeats the law every 120 deviations
_FURTHEST = 40.0  # deviations; nothing is asked for beyond
_END = 200.0  # beyond, the integrand oscillates below 1e-6


def half_width(
    confidence: Number, *, deviation: float = 0.0, scales: Sequence[float] | NDArray[np.float64] = ()
) -> float:
    """The w with P(|N(0, deviation^2) + sum Lap(scale)| <= w) = confidence.

    Of the total variance only a sum is needed for normal errors; Laplace errors have heavier tails, which 1.96
    deviations do not cover. The probability is 2 / pi times the integral of sin(t w) phi(t) / t, with the
    characteristic function phi (Gil-Pelaez 1951).

    >>> round(half_width(0.95, deviation=1.0), 4), round(half_width(0.95, scales=[1.0]), 4)
    (1.96, 2.9957)
    """
    chance = float(check.probability(confidence=confidence))
    law = _Law.of(deviation, scales)
    if law.total == 0 or law.inside(_FURTHEST) <= chance:
        return _FURTHEST * law.total
    return law.total * float(optimize.brentq(lambda width: law.inside(width) - chance, 0.0, _FURTHEST, xtol=1e-10))


def beyond(distance: float, *, deviation: float = 0.0, scales: Sequence[float] | NDArray[np.float64] = ()) -> float:
    """P(|N(0, deviation^2) + sum Lap(scale)| >= distance), a two-sided p-value.

    >>> round(beyond(1.959964, deviation=1.0), 6), round(beyond(3.0, scales=[1.0]), 6)
    (0.05, 0.049787)
    """
    law = _Law.of(deviation, scales)
    if law.total == 0:
        return float(distance == 0)
    return min(1.0, max(0.0, 1 - law.inside(min(abs(distance) / law.total, _FURTHEST))))


@dataclass(frozen=True, slots=True)
class _Law:
    """The characteristic function of the error over its standard deviation, on the points of the integral."""

    total: float
    points: NDArray[np.float64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, deviation: float, scales: Sequence[float] | NDArray[np.float64]) -> _Law:
        laplace = np.asarray(scales, dtype=np.float64)
        total = float(np.sqrt(deviation**2 + 2 * np.sum(laplace**2)))
        points = np.arange(0.5, _END / _STEP) * _STEP
        unit = total or 1.0
        values = np.exp(-((deviation / unit * points) ** 2) / 2) / points
        for scale in laplace / unit:
            values /= 1 + (scale * points) ** 2
        return cls(total, points, values)

    def inside(self, distance: float) -> float:
        """P(|error| <= distance), the distance in standard deviations."""
        return 2 / np.pi * _STEP * float(np.sum(np.sin(self.points * distance) * self.values))
