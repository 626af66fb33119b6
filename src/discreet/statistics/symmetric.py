"""Second moments: exact sums of x x' over integer rows, and their release with the noise that symmetry allows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.exact import root_above
from discreet.mechanisms import Gaussian
from discreet.noise import Bits, source_of
from discreet.privacy import Neighbours
from discreet.statistics.rows import Integers, exact_product

Floats = NDArray[np.float64]

_BLOCK = 1 << 20  # rows of squared length 2^32 or less add up below 2^53 in a block


def second_moments(rows: Integers) -> Integers:
    """The sum of x x' over integer rows with ||x||^2 <= 2^32, exactly, however many there are.

    >>> second_moments(np.array([[3, -1], [2, 2], [0, 4]])).tolist()
    [[13, 1], [1, 21]]
    """
    total = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int64)
    for first in range(0, len(rows), _BLOCK):
        block = rows[first : first + _BLOCK].astype(np.float64)
        total += exact_product(block.T, block, _BLOCK << 32).astype(np.int64)
    return total


def moment_sensitivity(squared_norm: int, neighbours: Neighbours) -> Fraction:
    """How far one row with ||x||^2 <= squared_norm moves the sum of x x' in the Frobenius norm, rounded up.

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
    """A symmetric matrix of integers plus normal noise: variance sigma^2 on the diagonal, sigma^2 / 2 beside it.

    sigma is noise_multiplier times sensitivity. The two halves carry the same noise, so the release is symmetric.

    Formal guarantee: (1 / noise_multiplier)-GDP, the event Gaussian(noise_multiplier), if one unit moves the whole
    matrix by at most `sensitivity` in the Frobenius norm. Proof: a symmetric move D is known by its upper half. In
    units of the standard deviations of the noise its squared length is sum_i D_ii^2 / sigma^2 + sum_(i<j) D_ij^2 /
    tau^2, where tau, the deviation beside the diagonal, is sigma / sqrt 2 rounded up. This is at most (sum_i D_ii^2 +
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
    """The nearest positive semidefinite matrix in the Frobenius norm: post-processing of a symmetric one."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
