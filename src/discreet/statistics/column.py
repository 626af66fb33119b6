"""Private numbers on their way into a statistic: clipped to public bounds, on a public grid, as whole steps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InternalError, InvalidValue
from discreet.exact import Grid
from discreet.privacy import Neighbours

FINE = 1 << 20  # steps between the bounds, at least
_VECTOR = "to be a vector of numbers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Values of units, one each: value i is low + step * steps[i], and steps lie from 0 to `width`.

    Each entry is a function of its own value alone, so neighbours differ in one entry. Missing values (NaN) are left
    out under ADD_REMOVE; under REPLACE, where their number is public, they count as the middle of the bounds.
    Infinities are clipped like all others.

    Attributes:
        steps: the private values; sums of them are exact integers.
        width: the largest of them, public.
        low: what 0 stands for.
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
        """How many values there are: private under ADD_REMOVE, where nothing but paid releases may depend on it."""
        return int(self.steps.size)

    @property
    def public_size(self) -> int:
        """How many values there are, under REPLACE."""
        if self.neighbours is not Neighbours.REPLACE:
            raise InternalError("The number of values is private when units may be added or removed.")
        return self.size

    @property
    def high(self) -> Fraction:
        """What `width` stands for: the upper bound, but for less than a step."""
        return self.low + self.width * self.step

    def value(self, steps: Any) -> Any:
        """What steps stand for, in the units of the data; fractions of steps are welcome."""
        return float(self.low) + float(self.step) * np.asarray(steps, dtype=float)

    def from_centred(self, centred: Any, bounds: Any) -> list[float]:
        """What numbers on the scale from -1 to 1 stand for, held to the bounds."""
        middle, half = float(self.low + self.high) / 2, float(self.high - self.low) / 2
        lowest, highest = (float(end) for end in check.limits(bounds=bounds))
        found: list[float] = np.clip(middle + half * np.asarray(centred), lowest, highest).tolist()
        return found


def column(
    values: Any,
    *,
    bounds: Any,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    fine: int = FINE,
) -> Column:
    """Numbers as a `Column`.

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
    return Column(steps=steps, width=width, low=low, step=grid.step, neighbours=relation, top=high)


def vector(values: Any) -> NDArray[np.float64]:
    """Numbers of any kind as a vector of floats; what is missing is NaN.

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
