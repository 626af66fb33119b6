"""Rows, a constant and labels side by side, as integers: one matrix of their second moments is all a regression needs.

A row longer than its public norm is shrunk together with its constant and its labels, which gives it a smaller weight
and moves no coefficient of a linear model; cutting the features alone would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.learn.features import Features
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, Integers, ceil_root, matrix, whole
from discreet.statistics.row_sums import moment_sensitivity, release_symmetric, second_moments

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What is public about numeric labels: label j is centre_j + spread_j u, u in [-1, 1], an integer up to `radius`.

    Attributes:
        centre: of each label.
        spread: of each label.
        radius: the largest integer, that stands for the upper bound.
    """

    centre: Floats
    spread: Floats
    radius: int

    @property
    def count(self) -> int:
        """How many labels a row has."""
        return int(self.centre.size)

    def steps(self, y: Floats) -> Integers:
        """Labels as integers, not clipped yet; what is missing is 0."""
        with np.errstate(over="ignore"):
            return whole(y - self.centre, self.radius / self.spread)

    def clipped(self, steps: Integers) -> Integers:
        """Labels within their bounds."""
        return np.clip(steps, -self.radius, self.radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Second moments of (row, constant, labels), each scaled to its public radius, with noise; all is released.

    Attributes:
        rows: the sum of z z', z the row with its constant, of length at most 1.
        cross: the sum of z u', u the labels in [-1, 1].
        labels: the sum of u u'.
        constant: the entry of the constant in a row that was not shrunk.
        sigma: the deviation of the noise on the diagonal of `rows`; beside it, sigma / sqrt 2.
        cross_sigma: the deviation of the noise on `cross`.
        label_sigma: the deviation of the noise on the diagonal of `labels`.
    """

    rows: Floats
    cross: Floats
    labels: Floats
    constant: float
    sigma: float
    cross_sigma: float
    label_sigma: float

    @property
    def weight(self) -> float:
        """The sum of the squared weights of rows, about their number; at least 1."""
        return max(1.0, float(self.rows[-1, -1]) / self.constant**2)


def constant_of(public: Features) -> int:
    """The constant of an integer row."""
    return int(public.constant / public.unit)


def joint_rows(public: Features, X: Any, labels: Labels | None = None, y: Floats | None = None) -> Integers:
    """Integer rows (features, constant, labels); the first two together are at most RADIUS long, exactly.

    With k the features and the constant, r = ceil(||k||) and r > RADIUS, all entries are multiplied by RADIUS / r and
    cut towards zero; labels are clipped to their radius afterwards. A row with a missing label is 0 throughout. Each
    row is a function of itself alone.
    """
    with np.errstate(over="ignore"):
        steps = whole(matrix(X) - public.centre, 1 / (public.spread * public.unit))
    rows = np.hstack([steps, np.full((len(steps), 1), constant_of(public), dtype=np.int64)])
    lengths = np.maximum(ceil_root(_squares(rows)), RADIUS)[:, None]
    near = _shrunk(rows, lengths)
    if labels is None or y is None:
        return near
    kept = labels.clipped(_shrunk(labels.steps(y), lengths))
    known = ~np.any(np.isnan(y), axis=1, keepdims=True)
    return np.where(known, np.hstack([near, kept]), 0)


def _squares(rows: Integers) -> Integers:
    """Squared lengths; the entries of `whole` are at most 2^26 and features at most 2^10, so nothing overflows."""
    return np.asarray(np.sum(rows * rows, axis=1), dtype=np.int64)


def _shrunk(rows: Integers, lengths: Integers) -> Integers:
    return np.asarray(np.sign(rows) * (np.abs(rows) * RADIUS // lengths), dtype=np.int64)


def squared_norm(labels: Labels | None) -> int:
    """The most that the squared length of a joint row can be."""
    return RADIUS**2 + (0 if labels is None else labels.count * labels.radius**2)


def release_moments(
    rows: Integers,
    *,
    public: Features,
    labels: Labels | None,
    spending: Spending,
    neighbours: Neighbours,
    bits: Bits,
) -> Moments:
    """The second moments of joint rows with noise, for all of a Gaussian budget.

    Formal guarantee: the event is Gaussian(spending.noise_multiplier). A joint row g has ||g||^2 <= S = RADIUS^2 +
    labels radius^2, so the whole matrix of moments moves by at most S (ADD_REMOVE) or sqrt(2) S (REPLACE) in the
    Frobenius norm, see `moment_sensitivity` and `release_symmetric`. The sum of squared labels is part of the matrix;
    under REPLACE it costs nothing: moments of rows and cross moments alone move as far in the worst case.
    """
    largest, multiplier = squared_norm(labels), spending.noise_multiplier
    move = moment_sensitivity(largest, neighbours)
    found = release_symmetric(second_moments(rows), noise_multiplier=multiplier, sensitivity=move, bits=bits)
    width, radius = public.count + 1, 1 if labels is None else labels.radius
    sigma = float(multiplier * move)
    return Moments(
        rows=found[:width, :width] / RADIUS**2,
        cross=found[:width, width:] / (RADIUS * radius),
        labels=found[width:, width:] / radius**2,
        constant=constant_of(public) / RADIUS,
        sigma=sigma / RADIUS**2,
        cross_sigma=sigma / (math.sqrt(2) * RADIUS * radius),
        label_sigma=sigma / radius**2,
    )


def label_radius(features: int, labels: int) -> int:
    """How long labels should be beside rows of length RADIUS, from public numbers.

    With T = labels radius^2 / RADIUS^2 the noise of all moments grows as 1 + T. The error of coefficients theta of
    normalised rows is that of the cross moments, as 1 / T, and that of the moments of rows, as ||theta||^2: together
    (1 + T)^2 (labels / T + r^2), least where 2 (r^2 / labels) T^2 + T = 1. For features of equal spread that fill their
    norm, and labels that fill a third of their bounds, r^2 is about features / 10.
    """
    ratio = features / (10 * labels)
    share = (math.sqrt(1 + 8 * ratio) - 1) / (4 * ratio)
    return max(1, math.isqrt(int(RADIUS**2 * share / labels)))
