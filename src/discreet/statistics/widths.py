"""How wide an interval must be for the sum of a normal error and several Laplace errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number

_STEP = 2 * np.pi / 120  # of the integral: repeats the law every 120 deviations
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
    laplace = np.asarray(scales, dtype=np.float64)
    total = float(np.sqrt(deviation**2 + 2 * np.sum(laplace**2)))
    if total == 0:
        return 0.0
    points = np.arange(0.5, _END / _STEP) * _STEP
    law = np.exp(-((deviation / total * points) ** 2) / 2) / points
    for scale in laplace / total:
        law /= 1 + (scale * points) ** 2
    low, high = 0.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        inside = 2 / np.pi * _STEP * float(np.sum(np.sin(points * middle) * law))
        low, high = (middle, high) if inside < chance else (low, middle)
    return high * total
