"""Exact sums over integer rows: gradients of generalised linear models, second moments, and noise for symmetric ones.

A row is an integer vector x with ||x||^2 <= RADIUS^2 = 2^24 that means x / 2^12, and the public weights are
theta = theta_int / 2^16. Hence a margin <x, theta_int> is an integer in units of 2^-28, the same whatever other rows
are there; a residual r, in units of 2^-10, is looked up in a public table; and a row adds r x to the gradient, with
|r| <= isqrt(clip^2 // ||x||^2), so that ||r x|| <= clip holds exactly and no rounding adds to the sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import root_above
from discreet.lazy import special
from discreet.mechanisms import Gaussian, KNorm
from discreet.noise import Bits, source_of
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, Integers, ceil_root, exact_product, within

Floats = NDArray[np.float64]

WEIGHT = 1 << 16  # what a weight of 1 is in theta_int
RESIDUAL = 1 << 10  # what a residual of 1 is
MARGIN = RADIUS * WEIGHT  # what a margin of 1 is
BINS = 128  # of a table, in a margin of 1
UNIT = RADIUS * RESIDUAL  # what a gradient of length 1 is
_HALF_TABLE = 2048  # tables reach margins from -16 to 16 and are constant beyond
_LARGEST_WEIGHT = 1 << 30  # |<x, theta_int>| <= 2^12 * 2^30 * sqrt(2^10) < 2^53
_LARGEST_RESIDUAL = 1 << 20
_LARGEST_CLIP = 1 << 31
_LARGEST_CURVATURE = 1 << 38
_LARGEST_SUM = 1 << 52
_EXP_ONE = 1 << 20  # what exp(0) is in the table of softmax

_EXPONENTIALS = np.rint(_EXP_ONE * np.exp(-np.arange(_HALF_TABLE) / BINS)).astype(np.int64)
_BLOCK = 1 << 20  # rows of squared length 2^32 or less add up below 2^53 in a block


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Rows made ready for many gradients of one clip.

    Formal guarantee: a row moves `gradient` by at most `clip` in the L2 norm (of all entries together), and `curvature`
    by at most its `limit` in the Frobenius norm, whatever the residuals and weights: both are held to their limits.
    Adding or removing a row costs that; replacing one moves the gradient by 2 clip, and the curvature, of weights >= 0,
    by sqrt(2) limit, because <x x^T, z z^T> >= 0.

    Attributes:
        rows: integers, held as floats so that products are fast; ||row||^2 <= 2^24.
        squares: ||row||^2.
        limits: how large the residual of each row may be: isqrt(clip^2 // ||x||^2), and at most 2^20.
    """

    rows: Floats
    squares: Integers
    limits: Integers

    @classmethod
    def of(cls, rows: Integers, *, clip: int = UNIT) -> Design:
        """Returns integer rows with the largest length that r x may have, in units of 1 / UNIT.

        >>> Design.of(np.array([[4096, 0], [30, 40]])).limits.tolist()
        [1024, 83886]
        """
        kept = within(np.asarray(rows, dtype=np.int64))
        largest = check.integer(clip=clip, at_least=1, at_most=_LARGEST_CLIP)
        squares = np.sum(kept * kept, axis=1)
        limits = np.minimum(_floor_root(largest * largest // np.maximum(squares, 1)), _LARGEST_RESIDUAL)
        return cls(rows=kept.astype(np.float64), squares=squares, limits=limits)

    def margins(self, theta: Floats) -> Integers:
        """Returns <x, theta_int> for a weight vector, or for each row of a matrix of them: exact."""
        weights = integer_weights(theta)
        products = exact_product(self.rows, weights.T.astype(np.float64), _LARGEST_SUM)
        return np.asarray(products, dtype=np.int64)

    def gradient(self, residuals: Integers) -> Integers:
        """Returns the sum of r x over the rows, or for a matrix of residuals a row for each of its columns."""
        if residuals.ndim == 1:
            held = np.clip(residuals, -self.limits, self.limits)
            return np.asarray(_sums(held[:, None], self.rows, _LARGEST_CLIP * 2)[0])
        return _sums(within(residuals, self.limits), self.rows, _LARGEST_CLIP * 2)

    def curvature(self, weights: Integers, limit: int) -> Integers:
        """Returns the sum of w x x^T over the rows, with |w| ||x||^2 <= limit."""
        largest = check.integer(limit=limit, at_least=1, at_most=_LARGEST_CURVATURE) // np.maximum(self.squares, 1)
        kept = np.clip(weights, -largest, largest).astype(np.float64)
        return _sums(self.rows * kept[:, None], self.rows, limit)


def integer_weights(theta: Floats) -> Integers:
    """Returns public weights as integers; what is out of all proportion is brought back."""
    given = np.nan_to_num(np.asarray(theta, dtype=np.float64) * WEIGHT, nan=0.0)
    return np.clip(np.rint(given), -_LARGEST_WEIGHT, _LARGEST_WEIGHT).astype(np.int64)


def link_table(function: Callable[[Floats], Floats], *, unit: int = RESIDUAL) -> Integers:
    """Returns a function of the margin as a public table of integers, in the middle of 4096 bins from -16 to 16.

    Raises:
        InvalidParameter: if the function is not bounded by 2^10 there.
    """
    values = np.asarray(function((np.arange(-_HALF_TABLE, _HALF_TABLE) + 0.5) / BINS), dtype=np.float64)
    if values.shape != (2 * _HALF_TABLE,) or not (np.abs(values) <= 1 << 10).all():
        raise InvalidParameter("function", function, "to be bounded by 1024", "Scale the score by a public number.")
    return np.rint(values * unit).astype(np.int64)


def look_up(table: Integers, margins: Integers) -> Integers:
    """Returns what a table holds for integer margins: entry floor(128 margin), the end entries beyond its reach."""
    bins = np.clip(margins >> 21, -_HALF_TABLE, _HALF_TABLE - 1)
    return np.asarray(table[bins + _HALF_TABLE])


SIGMOID = link_table(special.expit)


def class_residuals(margins: Integers, targets: Integers, table: Integers | None = None) -> Integers:
    """Returns table(margin) - target for targets 0 and 1; any other target gives 0, so that such rows count nowhere."""
    found = look_up(SIGMOID if table is None else table, margins) - RESIDUAL * targets
    return np.where((targets == 0) | (targets == 1), found, 0)


def sign_residuals(margins: Integers, targets: Integers, table: Integers) -> Integers:
    """Returns s table(s margin), s = 2 target - 1: the slope of a loss of s margin, such as a smoothed hinge."""
    signs = np.where((targets == 0) | (targets == 1), 2 * targets - 1, 0)
    return signs * look_up(table, signs * margins)


def softmax_residuals(margins: Integers, targets: Integers) -> Integers:
    """Returns Softmax of a row's margins minus the indicator of its class, a column for each class, by integers alone.

    The table holds exp(-j / 128); p_k = (e_k << 10) // sum(e), and the largest e is 2^20, so nothing is divided by 0.
    """
    bins = margins >> 21
    below = np.minimum(bins.max(axis=1, keepdims=True) - bins, _HALF_TABLE - 1)
    found = _EXPONENTIALS[below]
    shares = (found << 10) // found.sum(axis=1, keepdims=True)
    classes = np.arange(margins.shape[1])
    residuals = shares - RESIDUAL * (targets[:, None] == classes)
    known = (targets >= 0) & (targets < margins.shape[1])
    return np.where(known[:, None], residuals, 0)


def _floor_root(squares: Integers) -> Integers:
    """Returns the largest integers whose squares are at most these numbers."""
    return ceil_root(squares + 1) - 1


def _sums(left: NDArray[Any], right: Floats, largest: int) -> Integers:
    """Returns left^T right: floats sum blocks that stay below 2^52, rows being at most `largest`; ints sum blocks."""
    total = np.zeros((left.shape[1], right.shape[1]), dtype=np.int64)
    count = _LARGEST_SUM // largest
    for start in range(0, len(right), count):
        part = slice(start, start + count)
        total += exact_product(left[part].T.astype(np.float64), right[part], _LARGEST_SUM).astype(np.int64)
    return total


def second_moments(rows: Integers) -> Integers:
    """Returns the sum of x x' over integer rows with ||x||^2 <= 2^32, exactly, however many there are.

    >>> second_moments(np.array([[3, -1], [2, 2], [0, 4]])).tolist()
    [[13, 1], [1, 21]]
    """
    total = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int64)
    for first in range(0, len(rows), _BLOCK):
        block = rows[first : first + _BLOCK].astype(np.float64)
        total += exact_product(block.T, block, _BLOCK << 32).astype(np.int64)
    return total


def moment_sensitivity(squared_norm: int, neighbours: Neighbours) -> Fraction:
    """Returns how far one row with ||x||^2 <= squared_norm moves the sum of x x' in the Frobenius norm, rounded up.

    One row more or less is x x' itself, of norm ||x||^2. A row y in the place of x moves it by x x' - y y', whose
    squared norm is ||x||^4 + ||y||^4 - 2 (x'y)^2, at most 2 squared_norm^2 and as much for orthogonal rows.

    >>> moment_sensitivity(16, Neighbours.ADD_REMOVE), float(moment_sensitivity(16, Neighbours.REPLACE))
    (Fraction(16, 1), 22.627416997969522)
    """
    if neighbours is Neighbours.ADD_REMOVE:
        return Fraction(squared_norm)
    return root_above(Fraction(2 * squared_norm**2))


def release_symmetric(
    sums: NDArray[np.int64] | Floats,
    *,
    noise_multiplier: check.Number,
    sensitivity: check.Number,
    bits: Bits | None = None,
) -> Floats:
    """Releases a symmetric matrix of integers plus normal noise.

    Its variance is sigma^2 on the diagonal, sigma^2 / 2 off it.

    sigma is noise_multiplier times sensitivity. The two halves carry the same noise, so the release is symmetric.

    Formal guarantee: (1 / noise_multiplier)-GDP, the event Gaussian(noise_multiplier), if one unit moves the whole
    matrix by at most `sensitivity` in the Frobenius norm. Proof: a symmetric move D is known by its upper half. In
    units of the standard deviations of the noise its squared length is sum_i D_ii^2 / sigma^2 + sum_(i<j) D_ij^2 /
    tau^2, where tau, the deviation off the diagonal, is sigma / sqrt 2 rounded up. This is at most (sum_i D_ii^2 +
    2 sum_(i<j) D_ij^2) / sigma^2 = ||D||_F^2 / sigma^2, so at most 1 / noise_multiplier^2. Independent normal noise on
    a vector of that length is as private (Dong, Roth, Su 2022, Theorem 2.7), and rounding and mirroring it are
    post-processing. Noise of variance sigma^2 everywhere would pay for the same entries twice.

    Args:
        sums: a symmetric matrix of whole numbers; only its upper half is read.
        noise_multiplier: sigma over the sensitivity.
        sensitivity: in the Frobenius norm of the whole matrix, see `moment_sensitivity`.
        bits: the source of randomness; None is the secure one.

    >>> from discreet.noise import SeededBits
    >>> release_symmetric(np.array([[13, 1], [1, 21]]), noise_multiplier=1, sensitivity=16, bits=SeededBits(1)).round(1)
    array([[-4.3, -2.4],
           [-2.4, 31.3]])
    """
    source = source_of(bits)
    move = check.positive(sensitivity=sensitivity)
    beside = root_above(move * move / 2)
    straight = Gaussian.with_multiplier(noise_multiplier=noise_multiplier, sensitivity=move)
    crossed = Gaussian.with_multiplier(noise_multiplier=noise_multiplier, sensitivity=beside)
    size = len(sums)
    rows, columns = np.triu_indices(size, 1)
    released = np.zeros((size, size))
    released[rows, columns] = crossed.release(sums[rows, columns], bits=source)
    released += released.T
    released[np.arange(size), np.arange(size)] = straight.release(np.diagonal(sums), bits=source)
    return released


def positive_part(matrix: Floats) -> Floats:
    """Returns the nearest positive semidefinite matrix in the Frobenius norm: post-processing of a symmetric one."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricNoise:
    """The release of a sum of w x x^T over units, with |w| ||x||^2 <= limit for each.

    Formal guarantee: all of `part` is used. One unit more or less moves the sum by at most `limit` in the Frobenius
    norm; a replaced one by sqrt(2) limit if no w is negative, because then <w x x^T, v z z^T> >= 0, and by 2 limit
    else. With a pure budget the upper half is released by the K-norm mechanism: its L2 norm is at most Frobenius'.

    Attributes:
        part: the budget of one release.
        limit: of one unit.
        dimension: of the matrix.
        neighbours: the relation to protect.
        signed: whether some w may be negative.
    """

    part: Spending
    limit: int
    dimension: int
    neighbours: Neighbours
    signed: bool = False

    @property
    def sensitivity(self) -> Fraction:
        """Returns how far one unit can move the sum in the Frobenius norm."""
        if self.signed and self.neighbours is Neighbours.REPLACE:
            return Fraction(2 * self.limit)
        return moment_sensitivity(self.limit, self.neighbours)

    @property
    def _pure(self) -> KNorm | None:
        if self.part.epsilon is None:
            return None
        size = self.dimension * (self.dimension + 1) // 2
        return KNorm(epsilon=self.part.epsilon, sensitivity=self.sensitivity, dimension=size)

    @property
    def event(self) -> Event:
        """Returns what one release costs."""
        mechanism = self._pure
        return mechanism.event if mechanism is not None else events.Gaussian(self.part.noise_multiplier)

    @property
    def deviation(self) -> float:
        """Returns the standard deviation of the noise on the diagonal; off it there is no more."""
        mechanism = self._pure
        if mechanism is None:
            return float(self.part.noise_multiplier * self.sensitivity)
        return float(mechanism.sensitivity / mechanism.epsilon) * float(np.sqrt(mechanism.dimension + 1))

    def release(self, sums: NDArray[np.int64], bits: Bits) -> Floats:
        """Releases the sums plus noise, symmetric."""
        mechanism = self._pure
        if mechanism is None:
            multiplier = self.part.noise_multiplier
            return release_symmetric(sums, noise_multiplier=multiplier, sensitivity=self.sensitivity, bits=bits)
        upper = np.triu_indices(self.dimension)
        released = np.zeros((self.dimension, self.dimension))
        released[upper] = mechanism.release(sums[upper], bits=bits)
        return np.asarray(released + np.triu(released, 1).T)
