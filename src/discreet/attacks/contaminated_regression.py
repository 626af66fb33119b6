"""Measures what wrong targets do to least squares and to Huber's line, private and not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet import statistics as st
from discreet.attacks.robustness import Floats, Robustness, spread_of, with_outliers
from discreet.lazy import load
from discreet.noise import Bits, source_of
from discreet.noise.experiment import normals, uniforms

WHAT = "A comparison of regressions"  # needs scikit-learn
SLOPE, INTERCEPT, NOISE = 3.0, 10.0, 1.0
_BOUNDS = (0.0, 100.0)
_DELTA = 1e-6
_STEPS = 50
_SMALLEST = 1e-3  # an axis of factors has no zero
Line = tuple[float, float]
Fit = Callable[[Floats, Floats, float, Bits], Line]


def regression_under_outliers(
    rows: int = 2000,
    *,
    shares: Sequence[float] = (0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4),
    epsilon: float = 1,
    runs: int = 5,
    bits: Bits | None = None,
) -> Robustness:
    """Measures how far lines are from y = 10 + 3 x if targets of some rows say 100, the upper bound.

    The distance of two lines is the root of the mean square of their difference for x between -1 and 1.

    Args:
        rows: how many there are; x is uniform, and targets lie around the line with deviation 1.
        shares: how many of them have a wrong target.
        epsilon: of each private fit, at delta 1e-6.
        runs: for the median distance and its spread.
        bits: the source of randomness.

    >>> from discreet.noise import SeededBits
    >>> found = regression_under_outliers(500, shares=(0.1,), runs=1, bits=SeededBits(1))
    >>> {name: round(found.at(name, 0.1), 1) for name in found.found}
    {'least squares': 9.0, 'Huber': 0.2, 'private least squares': 9.5, 'private Huber': 0.1}
    """
    source = source_of(bits)
    found: dict[str, list[tuple[float, tuple[float, float, float]]]] = {name: [] for name in _FITS}
    for share in shares:
        distances: dict[str, list[float]] = {name: [] for name in _FITS}
        for _ in range(runs):
            x, y = _rows(rows, source)
            wrong = with_outliers(y, round(share * rows), at=_BOUNDS[1])
            for name, fit in _FITS.items():
                distances[name].append(_distance(fit(x, wrong, epsilon, source)))
        for name, measured in distances.items():
            found[name].append((float(share), spread_of(measured)))
    return Robustness(
        found={name: tuple(points) for name, points in found.items()},
        allowed={},
        headline="Private least squares follow the outliers as least squares do; a private Huber line stays",
        title=f"distance from the true line, at epsilon {epsilon:g} (log scale)",
        across="share of rows whose target is an outlier at the upper bound",
        shares=False,
    )


def _rows(rows: int, bits: Bits) -> tuple[Floats, Floats]:
    x = 2 * uniforms(rows, bits=bits) - 1
    return x, INTERCEPT + SLOPE * x + NOISE * normals(rows, bits=bits)


def _distance(line: Line) -> float:
    """Returns the root mean square distance of a line to the true one; x^2 has mean 1/3 between -1 and 1."""
    slope, intercept = line
    return max(_SMALLEST, math.sqrt((intercept - INTERCEPT) ** 2 + (slope - SLOPE) ** 2 / 3))


def _least_squares(x: Floats, y: Floats, *_: Any) -> Line:
    slope, intercept = np.polyfit(x, y, 1)
    return float(slope), float(intercept)


def _huber(x: Floats, y: Floats, *_: Any) -> Line:
    """Returns Huber's line by reweighting: a residual beyond 1.345 deviations loses weight at each step."""
    line = 0.0, float(np.median(y))
    for _step in range(_STEPS):
        far = np.abs(y - line[1] - line[0] * x) / NOISE
        weights = np.sqrt(np.minimum(1, 1.345 / np.maximum(far, 1e-12)))
        slope, intercept = np.polyfit(x, y, 1, w=weights)
        line = float(slope), float(intercept)
    return line


def _private_least_squares(x: Floats, y: Floats, epsilon: float, bits: Bits) -> Line:
    seed = None if bits.private else bits.integer(32)
    learner = load("discreet.learn", WHAT).LinearRegression
    model = learner(epsilon=epsilon, delta=_DELTA, norm_bound=1, label_bounds=_BOUNDS, random_state=seed)
    model.fit(x.reshape(-1, 1), y)
    return float(np.ravel(model.coef_)[0]), float(np.ravel(model.intercept_)[0])


def _private_huber(x: Floats, y: Floats, epsilon: float, bits: Bits) -> Line:
    slope, intercept = st.m_regression(
        x.reshape(-1, 1),
        y,
        psi=st.Huber(),
        norm_bound=1,
        bounds=_BOUNDS,
        scale=NOISE,
        epsilon=epsilon,
        delta=_DELTA,
        size=len(x),
        bits=bits,
    ).value
    return float(slope), float(intercept)


_FITS: Mapping[str, Fit] = {
    "least squares": _least_squares,
    "Huber": _huber,
    "private least squares": _private_least_squares,
    "private Huber": _private_huber,
}
