"""The public grids of a bounded argument: fine enough for real values, exact for whole ones.

Real values are added up on a fine grid, as integers of 64 bits; their total meets its noise on a coarser one, whose
steps need not be as small, since it is rounded once however many values there are. How far both can move a result is
public, and counted in its interval.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.exact import Grid
from discreet.plan.analysis.value_bounds import bounds, is_whole
from discreet.plan.model.nodes import Expression
from discreet.plan.model.schema import ColumnBounds, TableSchema
from discreet.plan.model.types import Type

STEPS = 1 << 20  # between the bounds of a real argument: what its total is rounded to is a millionth of the width

MOST_ROWS = 1 << 36
"""In a table, for sums whose number of values is not released: their roundings add up to no more than this many."""

CLIPPED = "CASE WHEN x IS NOT NULL THEN GREATEST(LEAST(x, 100), 0) END"
"""How a question clips x to public limits; GREATEST and LEAST pass over NULL, and would alone make a limit of it."""

_TERM = 1 << 59  # fine steps of the largest value; up to twice as many
_FACTORS = {2: 1 << 30, 3: 1 << 20}  # fine steps between the bounds of a factor, by how many there are; up to twice
_FOLDED = 1 << 36  # the same of what one person's values are added up in
_FINEST = Fraction(1, 1 << 1000)  # the smallest step of a grid
_ULP = Fraction(1, 1 << 53)  # at most so much of it a number may lose when it is read as a double

_MOST_WIDE = {2: 1 << 31, 3: 1 << 21}  # whole numbers between the bounds: a product has 60 bits, 2^33 of them 93
_WIDTHS = Fraction(1, 10**100), Fraction(10**100)  # of bounds whose squares and quotients are doubles


@dataclass(frozen=True, slots=True)
class Steps:
    """Bounds in whole steps of a power of two, and how values become such steps.

    Args:
        exponent: of the step.
        low: the smallest value, or below it.
        high: the largest, or above it.
        finer: a value is rounded to the nearest of steps that are 2^finer times as small; only the total is rounded to
            whole ones.
        clip: the bounds to which values are clipped, unless they are `low` and `high`.
        error: how far rounding can move one value from what it is between these bounds.
    """

    exponent: int
    low: int
    high: int
    finer: int = 0
    clip: ColumnBounds | None = None
    error: Fraction = Fraction(0)

    @classmethod
    def of(cls, bounds: ColumnBounds, kind: Type) -> Steps:
        """Returns one grid, of points between the bounds: whole numbers as they are; real ones get a million steps."""
        exponent = 0 if kind is Type.INT else Grid.finer_than(bounds.width / STEPS).exponent
        step = Grid(exponent).step
        low, high = math.ceil(bounds.low / step), math.floor(bounds.high / step)
        if low >= high:
            shown = f"({float(bounds.low):g}, {float(bounds.high):g})"
            raise InvalidParameter("bounds", shown, "to have two whole numbers between them", "Widen them.")
        return cls(exponent, low, high)

    @classmethod
    def for_power_sums(cls, bounds: ColumnBounds, *, power: int = 1, whole: bool = False) -> Steps:
        """Returns the two grids of real values whose powers are added up, chosen from their bounds alone.

        The fine one is as fine as integers of 64 bits allow; values that are `whole` need none finer than that of whole
        numbers. That of cubes is the coarse one.
        """
        exponent = Grid.finer_than(bounds.width / STEPS).exponent
        fine = Grid.finer_than(max(bounds.largest / _TERM, _FINEST)).exponent
        if power > 1:
            fine = max(fine, Grid.finer_than(bounds.width / _FACTORS[power]).exponent)
        fine = min(exponent, max(fine, 0) if whole else fine)
        return cls._around(bounds, exponent, fine).clipping(bounds, whole=whole)

    @classmethod
    def for_person_sums(cls, bounds: ColumnBounds) -> Steps:
        """Returns the grids of real values of one person: sums of 2^26 of them have 64 bits."""
        exponent = Grid.finer_than(bounds.width / STEPS).exponent
        fine = Grid.finer_than(max(bounds.largest / _FOLDED, _FINEST)).exponent
        return replace(cls._around(bounds, exponent, min(exponent, fine)), clip=bounds)

    @classmethod
    def _around(cls, bounds: ColumnBounds, exponent: int, fine: int) -> Steps:
        """Returns whole steps that hold the bounds."""
        step = Fraction(2) ** exponent
        return cls(exponent, math.floor(bounds.low / step), math.ceil(bounds.high / step), finer=exponent - fine)

    def clipping(self, bounds: ColumnBounds, *, whole: bool) -> Steps:
        """Returns the same for values that are clipped to bounds which need not lie on the grid, with their error.

        A value is read as a double. One that was written in decimals has moved already, by up to 2^-53 of its size:
        that counts as rounding, too. Nothing is rounded of values that are `whole` where bounds are on the grid.
        """
        found, small = replace(self, clip=bounds), self.step / (1 << self.finer)
        moved = max(abs(end * small - bound) for end, bound in zip(found.ends, (bounds.low, bounds.high), strict=True))
        exact = whole and small <= 1 and not moved
        return found if exact else replace(found, error=max(small / 2, moved) + bounds.largest * _ULP)

    @property
    def bounds(self) -> ColumnBounds:
        """Returns what values are clipped to."""
        return self.clip or ColumnBounds(self.low * self.step, self.high * self.step)

    @property
    def ends(self) -> tuple[int, int]:
        """Returns the same on the fine grid, as near as it has them with doubles: a database compares doubles."""
        if self.clip is None:
            return self.low << self.finer, self.high << self.finer
        small = self.step / (1 << self.finer)
        low, high = (_short(math.floor(end / small + Fraction(1, 2))) for end in (self.clip.low, self.clip.high))
        return max(low, self.low << self.finer), min(high, self.high << self.finer)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Returns the fine grid as parameters for a database: its exponent, the smallest and the largest value."""
        return self.exponent - self.finer, *self.ends

    @property
    def step(self) -> Fraction:
        """Returns the size of one step."""
        return Fraction(2) ** self.exponent

    @property
    def whole(self) -> bool:
        """Returns whether multiples of a step are whole numbers, and values, too."""
        return self.exponent >= 0 and not self.error

    @property
    def width(self) -> int:
        """Returns the number of steps between the bounds."""
        return self.high - self.low

    @property
    def middle(self) -> int:
        """Returns a step half way."""
        return (self.low + self.high) // 2


def _short(number: int) -> int:
    """Returns the nearest number of 53 binary digits; one that no engine takes stays as it is, and is refused later."""
    return int(float(number)) if abs(number) < 1 << 62 else number


def multipliable(limits: ColumnBounds, kind: Type, power: int = 2) -> bool:
    """Returns whether so many values within these limits, on their grid, can be multiplied exactly."""
    least, most = _WIDTHS
    return least <= limits.width <= most and (kind is Type.FLOAT or limits.width <= _MOST_WIDE[power])


def bounded_steps(
    argument: Expression, schema: TableSchema, *, name: str, power: int = 1, former: bool = False
) -> Steps:
    """Returns the grids of what aggregates add up, from its public bounds.

    Args:
        argument: what they add up.
        schema: of its rows.
        name: what SQL calls one of the aggregates, for messages.
        power: the highest power of values that is added up.
        former: whether the single grid is meant on which releases were made before there were two.

    Raises:
        UnsupportedQuery: if it has no bounds, or none that fit its aggregates.
    """
    limits = bounds(argument, schema)
    if limits is None:
        raise UnsupportedQuery(
            f"{name} needs public bounds of its argument.",
            f"Declare them, or clip in the question: {name}({CLIPPED}).",
        )
    if power > 1 and not multipliable(limits, argument.type, power):
        raise UnsupportedQuery(
            f"{name} cannot square numbers of this size.",
            f"Clip them, or convert whole numbers: {name}(CAST(x AS DOUBLE)).",
        )
    if former or argument.type is Type.INT:
        return Steps.of(limits, argument.type)
    return Steps.for_power_sums(limits, power=power, whole=is_whole(argument))
