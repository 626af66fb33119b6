"""Noisy moments of rows: counts, means and variances of columns by groups, and second moments of rows with labels.

Columns of one group of rows, or of several, are released at once. For a regression, rows, a constant and labels are put
side by side, as integers: one matrix of their second moments is all it needs. A row longer than its public norm is
shrunk together with its constant and its labels, which gives it a smaller weight and moves no coefficient of a linear
model; cutting the features alone would.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.exact import root_above
from discreet.learn.features import Features
from discreet.mechanisms import Gaussian
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, Integers, ceil_root, matrix, whole
from discreet.statistics.row_sums import moment_sensitivity, release_symmetric, second_moments

Floats = NDArray[np.float64]

STEPS = 1 << 12  # between the middle of the bounds and either end


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericLabels:
    """What is public about numeric labels: label j is centre_j + spread_j u, u in [-1, 1], an integer up to `radius`.

    Attributes:
        centre: of each label.
        spread: of each label.
        radius: the largest integer, which means the upper bound.
    """

    centre: Floats
    spread: Floats
    radius: int

    @property
    def count(self) -> int:
        """Returns how many labels a row has."""
        return int(self.centre.size)

    def steps(self, y: Floats) -> Integers:
        """Returns labels as integers, not clipped yet; what is missing is 0."""
        with np.errstate(over="ignore"):
            return whole(y - self.centre, self.radius / self.spread)

    def clip_steps(self, steps: Integers) -> Integers:
        """Returns labels within their bounds."""
        return np.clip(steps, -self.radius, self.radius)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondMoments:
    """Second moments of (row, constant, labels), each scaled to its public radius, with noise; all is released.

    Attributes:
        rows: the sum of z z', z the row with its constant, of length at most 1.
        cross: the sum of z u', u the labels in [-1, 1].
        labels: the sum of u u'.
        constant: the entry of the constant in a row that was not shrunk.
        sigma: the deviation of the noise on the diagonal of `rows`; off the diagonal it is sigma / sqrt 2.
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
        """Returns the sum of the squared weights of rows, about their number; at least 1."""
        return max(1.0, float(self.rows[-1, -1]) / self.constant**2)


def constant_of(public: Features) -> int:
    """Returns the constant of an integer row."""
    return int(public.constant / public.unit)


def joint_rows(public: Features, X: Any, labels: NumericLabels | None = None, y: Floats | None = None) -> Integers:
    """Returns integer rows (features, constant, labels); the first two together are at most RADIUS long, exactly.

    With k the features and the constant, r = ceil(||k||) and r > RADIUS, all entries are multiplied by RADIUS / r and
    cut towards zero; labels are clipped to their radius afterwards. A row with a missing label is 0 throughout. Each
    row is a function of itself alone.
    """
    with np.errstate(over="ignore"):
        steps = whole(matrix(X) - public.centre, 1 / (public.spread * public.unit))
    rows = np.hstack([steps, np.full((len(steps), 1), constant_of(public), dtype=np.int64)])
    lengths = np.maximum(ceil_root(_squares(rows)), RADIUS)[:, None]
    near = _shrink_rows(rows, lengths)
    if labels is None or y is None:
        return near
    kept = labels.clip_steps(_shrink_rows(labels.steps(y), lengths))
    known = ~np.any(np.isnan(y), axis=1, keepdims=True)
    return np.where(known, np.hstack([near, kept]), 0)


def _squares(rows: Integers) -> Integers:
    """Returns squared lengths; entries of `whole` are at most 2^26 and features at most 2^10, so nothing overflows."""
    return np.asarray(np.sum(rows * rows, axis=1), dtype=np.int64)


def _shrink_rows(rows: Integers, lengths: Integers) -> Integers:
    return np.asarray(np.sign(rows) * (np.abs(rows) * RADIUS // lengths), dtype=np.int64)


def squared_norm(labels: NumericLabels | None) -> int:
    """Returns the most that the squared length of a joint row can be."""
    return RADIUS**2 + (0 if labels is None else labels.count * labels.radius**2)


def release_moments(
    rows: Integers,
    *,
    public: Features,
    labels: NumericLabels | None,
    spending: Spending,
    neighbours: Neighbours,
    bits: Bits,
) -> SecondMoments:
    """Releases the second moments of joint rows with noise, for all of a Gaussian budget.

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
    return SecondMoments(
        rows=found[:width, :width] / RADIUS**2,
        cross=found[:width, width:] / (RADIUS * radius),
        labels=found[width:, width:] / radius**2,
        constant=constant_of(public) / RADIUS,
        sigma=sigma / RADIUS**2,
        cross_sigma=sigma / (math.sqrt(2) * RADIUS * radius),
        label_sigma=sigma / radius**2,
    )


def label_radius(features: int, labels: int) -> int:
    """Returns how long labels should be next to rows of length RADIUS, from public numbers.

    With T = labels radius^2 / RADIUS^2 the noise of all moments grows as 1 + T. The error of coefficients theta of
    normalised rows is that of the cross moments, as 1 / T, and that of the moments of rows, as ||theta||^2: together
    (1 + T)^2 (labels / T + r^2), least where 2 (r^2 / labels) T^2 + T = 1. For features of equal spread that fill their
    norm, and labels that fill a third of their bounds, r^2 is about features / 10.
    """
    ratio = features / (10 * labels)
    share = (math.sqrt(1 + 8 * ratio) - 1) / (4 * ratio)
    return max(1, math.isqrt(int(RADIUS**2 * share / labels)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Sensitivities of counts, sums and squares that hold together: sum of (move / sensitivity)^2 <= 1.

    Attributes:
        count: of the counts; None if they are public.
        sums: of the sums of k, |k| <= STEPS.
        squares: of the sums of 2 k^2 - STEPS^2.
    """

    count: Fraction | None
    sums: Fraction
    squares: Fraction


def shares(features: int, groups: int, neighbours: Neighbours) -> Shares:
    """Returns how the move of one row is divided, from public numbers.

    With u = k / STEPS in [-1, 1] a row adds (1, u, 2 u^2 - 1) to the count, the sums and the squares of one group; the
    squares are centred, so that they move half as far as u^2 could. Let a and 2 a be the squared sensitivities of the
    sums and of the squares.

    ADD_REMOVE: u^2 / a + (2 u^2 - 1)^2 / 2 a is convex in u^2, so at most 3 / 2a, at u = +-1; with d features and f of
    the whole for the count, a = 3 d / 2 (1 - f).

    REPLACE in one group: with D = |u - v|, |u + v| <= 2 - D, a feature moves by at most D^2 (1 + 2 (2 - D)^2) / a. Its
    derivative, 2 D (1 + 2 (2 - D) (2 - 2 D)) / a, is not negative: (2 - D) (2 - 2 D) >= -1/2 on [0, 2]. So it is at
    most 4 / a, and a >= 4 d; counts stay. With one group that is all. A row that changes its group moves twice as far
    as under ADD_REMOVE, in the square: 2 / count^2 + 3 d / a <= 1; both hold for a = 3 d / (1 - f), f >= 1/4.

    f = 1 / (1 + sqrt(3 d)), rounded, balances the errors that counts and sums bring to means and variances.
    """
    part = Fraction(1, 1 + math.isqrt(3 * features))
    count: Fraction | None
    if neighbours is Neighbours.ADD_REMOVE:
        area, count = Fraction(3 * features, 2) / (1 - part), root_above(1 / part)
    elif groups == 1:
        area, count = Fraction(4 * features), None
    else:
        part = max(part, Fraction(1, 4))
        area, count = Fraction(3 * features) / (1 - part), root_above(2 / part)
    return Shares(count=count, sums=root_above(area) * STEPS, squares=root_above(2 * area) * STEPS**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMoments:
    """What was released about the columns of each group, in units where bounds are -1 and 1.

    Attributes:
        count: of each group, at least 1.
        mean: a row for each group.
        variance: a row for each group; where noise hides it, as small as noise lets it be.
        mean_error: the deviation of the noise of a mean, for each group.
        variance_error: the deviation of the noise of each variance.
    """

    count: Floats
    mean: Floats
    variance: Floats
    mean_error: Floats
    variance_error: Floats


def column_steps(X: Any, low: Floats, high: Floats) -> Integers:
    """Returns values as integers from -STEPS to STEPS, clipped.

    What is missing is the middle. Each is a function of itself.
    """
    with np.errstate(over="ignore"):
        steps = whole(matrix(X) - (low + high) / 2, 2 * STEPS / (high - low))
    return np.clip(steps, -STEPS, STEPS)


def release_columns(
    steps: Integers, codes: Integers | None, groups: int, *, spending: Spending, neighbours: Neighbours, bits: Bits
) -> ColumnMoments:
    """Counts, means and variances of groups, for all of a Gaussian budget.

    Formal guarantee: the event is Gaussian(spending.noise_multiplier). Each block is released by a Gaussian mechanism
    of that multiplier and its sensitivity in `shares`; so in deviations of the noise one row moves all blocks by at
    most 1 / noise_multiplier together. Rows whose code is -1 count nowhere.

    Args:
        steps: of `column_steps`.
        codes: the group of each row; None if there is one group.
        groups: how many there are, public.
        spending: the budget.
        neighbours: the relation to protect.
        bits: the source of randomness.
    """
    several = groups if codes is None else max(groups, 2)  # next to one group there are rows that are in none
    parts, multiplier = shares(steps.shape[1], several, neighbours), spending.noise_multiplier
    places = np.zeros(len(steps), dtype=np.int64) if codes is None else codes
    counts, sums, squares = _sums(steps, places, groups)

    def noisy(exact: Integers, sensitivity: Fraction) -> tuple[Floats, float]:
        mechanism = Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=sensitivity)
        return np.asarray(mechanism.release(exact, bits=bits), dtype=np.float64), float(mechanism.sigma)

    if parts.count is not None:
        sizes = noisy(counts, parts.count)[0]
    elif neighbours is Neighbours.REPLACE and codes is None:
        sizes = counts.astype(np.float64)  # the number of rows, which is public
    else:
        raise InternalError("Counts of groups are private.")
    first, first_sigma = noisy(sums, parts.sums)
    second, second_sigma = noisy(squares, parts.squares)
    return _estimates(sizes, first / STEPS, second / STEPS**2, first_sigma / STEPS, second_sigma / STEPS**2)


def _sums(steps: Integers, codes: Integers, groups: int) -> tuple[Integers, Integers, Integers]:
    """Returns exact counts, sums and centred squares of each group."""
    counts = np.zeros(groups, dtype=np.int64)
    sums = np.zeros((groups, steps.shape[1]), dtype=np.int64)
    squares = np.zeros_like(sums)
    for group in range(groups):
        chosen = steps[codes == group]
        counts[group] = len(chosen)
        sums[group] = chosen.sum(axis=0)
        squares[group] = 2 * np.sum(chosen * chosen, axis=0) - len(chosen) * STEPS**2
    return counts, sums, squares


def _estimates(sizes: Floats, sums: Floats, squares: Floats, sigma: float, square_sigma: float) -> ColumnMoments:
    """Returns means and variances within what bounds allow; a variance that noise could explain is set to its noise."""
    count = np.maximum(sizes, 1.0)
    mean = np.clip(sums / count[:, None], -1, 1)
    second = np.clip((squares / count[:, None] + 1) / 2, 0, 1)
    mean_error = sigma / count
    error = np.hypot(square_sigma / 2 / count[:, None], 2 * mean * mean_error[:, None])
    floor = np.minimum(1 / 3, error)
    variance = np.maximum(second - mean**2, floor)
    return ColumnMoments(
        count=count, mean=mean, variance=variance, mean_error=mean_error, variance_error=np.minimum(error, 1.0)
    )
