"""What a marginal adds to smaller ones, as whole numbers with independent noise: the residual basis in integers.

The residual of a marginal of n_1 x ... x n_k cells is (P_1 x ... x P_k) counts, P = I - 11^T / n (Xiao, He, Zhang,
Kifer 2023). Normal noise of covariance sigma^2 P has no independent whole coordinates in cells, but it has in Helmert's
contrasts: the lines h_j = (1, ..., 1, -j, 0, ..., 0), j ones, for j = 1, ..., n - 1, are whole, orthogonal to each
other and to 1, and |h_j|^2 = j (j + 1), so that P is the sum of h_j h_j^T / |h_j|^2. A contrast with independent noise
of deviation sigma |h_j| is then exactly a residual with noise of covariance sigma^2 P.

To be released as one array with one deviation, contrasts are multiplied by whole numbers c <= w / |h|, rounded down.
Since c^2 h h^T <= w^2 h h^T / |h|^2 as matrices, a vector u moves what is released by at most w |P u|. With p the
product of 1 - 1 / n, and for a unit of at most k rows:

- ADD_REMOVE: |P u| is convex, so that it is largest where all rows share one cell: |P u|^2 = k^2 p.
- REPLACE: it is largest for two cells with k rows each. Of cells that differ in all columns the inner product of P e
  and P f is the product of -1 / n, of cells that share some it has factors 1 - 1 / n there. For one column
  |P (e - f)|^2 = 2. For two columns it is 2 (p - 1 / (n_1 n_2)) < 2 p or, where only the first or the second differs,
  2 (1 - 1 / n_2) or 2 (1 - 1 / n_1): at most 2 (1 - 1 / max n).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.privacy import Neighbours
from discreet.synthetic.coded_rows import Integers
from discreet.synthetic.inference.factors import Table

LARGEST = 1 << 52
"""Of a scaled contrast; larger ones are clipped, which moves no two of them further apart."""


def residual_move(shape: tuple[int, int], neighbours: Neighbours) -> Fraction:
    """Returns the square of how far one row moves the residual of a pair of columns, each of at least 2 values.

    >>> residual_move((2, 3), Neighbours.ADD_REMOVE), residual_move((2, 3), Neighbours.REPLACE)
    (Fraction(1, 3), Fraction(4, 3))
    """
    if neighbours is Neighbours.REPLACE:
        return 2 * (1 - Fraction(1, max(shape)))
    return math.prod((1 - Fraction(1, size) for size in shape), start=Fraction(1))


def contrasts(counts: Integers) -> Integers:
    """Returns Helmert's contrasts of a table along each axis, in whole numbers.

    >>> contrasts(np.array([[5, 1], [2, 2]]))
    array([[4]])
    """
    found: Integers = counts
    for axis, size in enumerate(counts.shape):
        lines = np.moveaxis(found, axis, -1)
        places = np.arange(1, size, dtype=np.int64)
        made = np.asarray(np.cumsum(lines, axis=-1)[..., :-1] - places * lines[..., 1:], dtype=np.int64)
        found = np.moveaxis(made, -1, axis)
    return found


def contrast_factors(shape: tuple[int, ...], weight: Fraction) -> Integers:
    """Returns for each contrast of a table the whole number that it is multiplied by: sqrt(weight) / |h|, rounded down.

    Args:
        shape: of the table.
        weight: the square of what a contrast of length 1 would be multiplied by.
    """
    products = np.ones((), dtype=np.int64)
    for size in shape:
        places = np.arange(1, size, dtype=np.int64)
        products = np.multiply.outer(products, places * (places + 1))
    whole = {value: math.isqrt(weight.numerator // (weight.denominator * value)) for value in _distinct(products)}
    return np.array([whole[value] for value in products.reshape(-1).tolist()], dtype=np.int64).reshape(products.shape)


def scaled_contrasts(counts: Integers, factors: Integers) -> Integers:
    """Returns the contrasts of a table times their factors."""
    most = LARGEST // np.maximum(factors, 1)
    return np.clip(contrasts(counts), -most, most) * factors


def residual_of(scaled: Table, factors: Integers) -> Table:
    """Returns the residual of a table, cell by cell, from scaled contrasts: sum of h (h . x) / |h|^2.

    >>> shape = (2, 2)
    >>> factors = contrast_factors(shape, Fraction(2**40))
    >>> residual_of(scaled_contrasts(np.array([[5, 1], [2, 2]]), factors).astype(float), factors)
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    found: Table = scaled / np.maximum(factors, 1)
    for axis in range(scaled.ndim):
        size = scaled.shape[axis] + 1
        places = np.arange(1, size)
        lines = np.moveaxis(found, axis, -1) / (places * (places + 1))
        made = np.zeros((*lines.shape[:-1], size))
        made[..., :-1] = np.cumsum(lines[..., ::-1], axis=-1)[..., ::-1]  # each value is in all later contrasts
        made[..., 1:] -= places * lines
        found = np.moveaxis(made, -1, axis)
    return found


def _distinct(products: Integers) -> list[int]:
    return [int(value) for value in np.unique(products)]
