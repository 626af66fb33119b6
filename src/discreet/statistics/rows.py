"""Private rows as integer vectors within a public norm, so that sums over them are exact and their moves are known.

Every row is worked on by itself with exact integers: no float sum or product, whose bits could depend on other rows,
ever decides what a row contributes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, InvalidValue

Integers = NDArray[np.int64]

RADIUS = 1 << 12  # of integer rows: ||row||^2 <= 2^24, so that products with small integers stay exact in floats
_FURTHEST = 1 << 26  # an entry further out is clipped to here first; a row that long keeps its direction nearly
MOST_FEATURES = 1 << 10  # squares of so many entries add up below 2^63


def within(steps: Integers, radius: int | Integers = RADIUS) -> Integers:
    """Integer rows, those longer than the radius (of all, or of each) shrunk: ||row||^2 <= radius^2 holds exactly.

    A row k with s = ||k||^2 > radius^2 becomes trunc(k radius / r), r = ceil(sqrt(s)), whose squares add up to at most
    k^2 radius^2 / s, that is radius^2: nothing is added to the sensitivity for rounding.

    >>> within(np.array([[3, 4], [30, 40]]), 5).tolist()
    [[3, 4], [3, 4]]
    """
    near = np.clip(steps, -_FURTHEST, _FURTHEST).astype(np.int64)
    squares = np.sum(near * near, axis=1)
    lengths = ceil_root(squares)
    radii = np.broadcast_to(np.asarray(radius, dtype=np.int64), squares.shape)
    far = squares > radii * radii
    shrunk = np.sign(near) * (np.abs(near) * radii[:, None] // np.maximum(lengths, 1)[:, None])
    return np.where(far[:, None], shrunk, near)


def ceil_root(squares: Integers) -> Integers:
    """The smallest integers whose squares are at least these numbers below 2^63."""
    root = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)  # off by one at most
    root = np.where(root * root > squares, root - 1, root)
    root = np.where((root + 1) * (root + 1) <= squares, root + 1, root)
    short = root * root < squares
    return np.asarray(root + short, dtype=np.int64)


def rounded_within(values: NDArray[np.float64], radius: int) -> Integers:
    """Real vectors as integer ones with ||k||^2 <= radius^2 exactly, for gradients that were clipped in floats.

    The nearest integers if they fit; else those toward zero, which are no longer than the vector; and should its float
    clip have left it a little too long, the ones that `within` makes of them. Nothing is added to the sensitivity.

    >>> rounded_within(np.array([[4.8, -4.4, 4.64], [1.6, 0.2, -0.7]]), 8).tolist()
    [[4, -4, 4], [2, 0, -1]]
    """
    given = np.clip(np.nan_to_num(values, nan=0.0), -_FURTHEST, _FURTHEST)
    nearest = np.floor(given + 0.5).astype(np.int64)
    fits = np.sum(nearest * nearest, axis=1) <= radius * radius
    return np.where(fits[:, None], nearest, within(np.trunc(given).astype(np.int64), radius))


def whole(values: NDArray[np.float64], scale: NDArray[np.float64] | float) -> Integers:
    """Entries times a public scale, rounded half up; NaN is 0, and what is far away stays at a public distance."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.floor(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf) * scale + 0.5)
    near = np.clip(np.nan_to_num(scaled, nan=0.0), -_FURTHEST, _FURTHEST)
    return np.asarray(near, dtype=np.int64)


def matrix(values: Any) -> NDArray[np.float64]:
    """A table of numbers as floats, a row for each unit; what is missing is NaN.

    Raises:
        InvalidValue: if it is no table of numbers.
        InvalidParameter: if it has too many columns.
    """
    given = np.asarray(values)
    if given.ndim != 2 or given.dtype.kind not in "biufO":
        raise InvalidValue("to be a table of numbers", "Pass a row for each unit and a column for each feature.")
    if given.shape[1] > MOST_FEATURES:
        raise InvalidParameter("features", given.shape[1], f"<= {MOST_FEATURES}", "Choose features, or project them.")
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("to be a table of numbers", "Encode texts by a public rule first.") from None


def exact_product(left: NDArray[np.float64], right: NDArray[np.float64], largest: int) -> NDArray[np.float64]:
    """A product of matrices whose entries are integers, exact because no sum in it exceeds `largest` < 2^53.

    The order in which a library adds does not matter then: every partial sum is an integer that a float holds.
    """
    if largest >= 1 << 53:
        raise InvalidParameter("rows", "their number", "small enough for exact sums", "Fit on fewer rows.")
    return np.asarray(left @ right)


def bits_for(dimension: int) -> int:
    """How fine a grid should be for vectors of a dimension: 2^bits >= 32 sqrt(dimension)."""
    return math.ceil(math.log2(32 * math.sqrt(dimension)))
