"""Private values on their way into a statistic, as integers: numbers on a public grid, rows within a public norm.

Numbers are clipped to public bounds and become whole steps; rows become integer vectors, so that sums over them are
exact and their moves are known. Every value and every row is worked on alone with exact integers: no float sum or
product, whose bits could depend on other rows, ever decides what a row contributes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InternalError, InvalidParameter, InvalidValue
from discreet.exact import Grid
from discreet.privacy import Neighbours

Integers = NDArray[np.int64]

FINE = 1 << 20  # steps between the bounds, at least
_VECTOR = "to be a vector of numbers"

RADIUS = 1 << 12  # of integer rows: ||row||^2 <= 2^24, so that products with small integers stay exact in floats
_FURTHEST = 1 << 26  # an entry further out is clipped to here first; a row that long keeps its direction nearly
MOST_FEATURES = 1 << 10  # squares of so many entries add up below 2^63


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericColumn:
    """Values of units, one each: value i is low + step * steps[i], and steps lie from 0 to `width`.

    Each entry is a function of its own value alone, so neighbours differ in one entry. Missing values (NaN) are left
    out under ADD_REMOVE; under REPLACE, where their number is public, they count as the middle of the bounds.
    Infinities are clipped like all others.

    Attributes:
        steps: the private values; sums of them are exact integers.
        width: the largest of them, public.
        low: the value of step 0.
        step: the size of a step, a power of two.
        neighbours: the relation to protect.
        top: the upper bound, to which values were clipped before they were rounded: by less than a step each.
    """

    steps: NDArray[np.int64]
    width: int
    low: Fraction
    step: Fraction
    neighbours: Neighbours
    top: Fraction

    @property
    def size(self) -> int:
        """Returns how many values there are.

        It is private under ADD_REMOVE, where nothing but paid releases may depend on it.
        """
        return int(self.steps.size)

    @property
    def public_size(self) -> int:
        """Returns how many values there are, under REPLACE."""
        if self.neighbours is not Neighbours.REPLACE:
            raise InternalError("The number of values is private when units may be added or removed.")
        return self.size

    @property
    def high(self) -> Fraction:
        """Returns the value of step `width`: the upper bound, but for less than a step."""
        return self.low + self.width * self.step

    def value(self, steps: Any) -> Any:
        """Returns the values of steps, in the units of the data; fractions of steps are welcome."""
        return float(self.low) + float(self.step) * np.asarray(steps, dtype=float)

    def from_centred(self, centred: Any, bounds: Any) -> list[float]:
        """Returns the values of numbers on the scale from -1 to 1, held to the bounds."""
        middle, half = float(self.low + self.high) / 2, float(self.high - self.low) / 2
        lowest, highest = (float(end) for end in check.limits(bounds=bounds))
        found: list[float] = np.clip(middle + half * np.asarray(centred), lowest, highest).tolist()
        return found


def column(
    values: Any, *, bounds: Any, neighbours: Neighbours | str = Neighbours.ADD_REMOVE, fine: int = FINE
) -> NumericColumn:
    """Returns numbers as a `NumericColumn`.

    Args:
        values: a vector of numbers; NaN, None and infinities are allowed.
        bounds: public limits (low, high).
        neighbours: the relation to protect.
        fine: how many steps there are between the bounds, at least.

    Raises:
        InvalidParameter: if the bounds are missing or wrong.
        InvalidValue: if the values are no vector of numbers.
    """
    low, high = check.limits(bounds=bounds)
    relation = Neighbours(neighbours)
    grid = Grid.finer_than((high - low) / fine)
    width = int((high - low) / grid.step)
    given = vector(values)
    missing = np.isnan(given)
    if relation is Neighbours.ADD_REMOVE:
        given = given[~missing]
    else:
        given = np.where(missing, float((low + high) / 2), given)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.ldexp(np.clip(given, float(low), float(high)) - float(low), -grid.exponent)
    steps = np.clip(np.floor(scaled + 0.5), 0, width).astype(np.int64)
    return NumericColumn(steps=steps, width=width, low=low, step=grid.step, neighbours=relation, top=high)


def vector(values: Any) -> NDArray[np.float64]:
    """Returns numbers of any kind as a vector of floats; what is missing is NaN.

    Raises:
        InvalidValue: if they are no vector of numbers.
    """
    given = np.asarray(values)
    if given.ndim != 1 or given.dtype.kind not in "biufO":
        raise InvalidValue(_VECTOR, "Pass one number for each unit.")
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValue(_VECTOR, "Pass one number for each unit.") from None


def within(steps: Integers, radius: int | Integers = RADIUS) -> Integers:
    """Returns integer rows, those longer than the radius (of all, or of each) shrunk.

    Then ||row||^2 <= radius^2 holds exactly.

    A row k with s = ||k||^2 > radius^2 becomes trunc(k radius / r), r = ceil(sqrt(s)), whose squares add up to at most
    k^2 radius^2 / s, that is radius^2: nothing is added to the sensitivity for rounding.

    >>> within(np.array([[3, 4], [30, 40]]), 5).tolist()
    [[3, 4], [3, 4]]
    """
    near = np.clip(steps, -_FURTHEST, _FURTHEST).astype(np.int64)
    squares = np.einsum("ij,ij->i", near, near)
    radii = np.broadcast_to(np.asarray(radius, dtype=np.int64), squares.shape)
    far = np.flatnonzero(squares > radii * radii)
    if len(far):
        long, lengths = near[far], ceil_root(squares[far])
        near[far] = np.sign(long) * (np.abs(long) * radii[far, None] // lengths[:, None])
    return near


def ceil_root(squares: Integers) -> Integers:
    """Returns the smallest integers whose squares are at least these numbers below 2^63."""
    root = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)  # off by one at most
    root = np.where(root * root > squares, root - 1, root)
    root = np.where((root + 1) * (root + 1) <= squares, root + 1, root)
    short = root * root < squares
    return np.asarray(root + short, dtype=np.int64)


def rounded_within(values: NDArray[np.float64], radius: int) -> Integers:
    """Returns real vectors as integer ones with ||k||^2 <= radius^2 exactly, for gradients that were clipped in floats.

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
    """Returns entries times a public scale, rounded half up.

    NaN is 0, and what is far away stays at a public distance.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.floor(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf) * scale + 0.5)
    near = np.clip(np.nan_to_num(scaled, nan=0.0), -_FURTHEST, _FURTHEST)
    return np.asarray(near, dtype=np.int64)


def matrix(values: Any) -> NDArray[np.float64]:
    """Returns a table of numbers as floats, a row for each unit; what is missing is NaN.

    Raises:
        InvalidValue: if it is no table of numbers.
        InvalidParameter: if it has too many columns.
    """
    given = np.asarray(values)
    if given.ndim != 2 or given.dtype.kind not in "biufO":
        raise InvalidValue("to be a table of numbers", "Pass a row for each unit and a column for each feature.")
    if given.shape[1] > MOST_FEATURES:
        hint = "Choose fewer features, or project them."
        raise InvalidParameter("features", given.shape[1], f"<= {MOST_FEATURES}", hint)
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidValue("to be a table of numbers", "Encode texts by a public rule first.") from None


def exact_product(left: NDArray[np.float64], right: NDArray[np.float64], largest: int) -> NDArray[np.float64]:
    """Returns a product of matrices whose entries are integers, exact because no sum in it exceeds `largest` < 2^53.

    The order in which a library adds does not matter then: every partial sum is an integer that a float holds.
    """
    if largest >= 1 << 53:
        raise InvalidParameter("rows", "their number", "to be small enough for exact sums", "Fit on fewer rows.")
    return np.asarray(left @ right)
