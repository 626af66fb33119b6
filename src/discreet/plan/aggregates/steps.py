"""The public grid of a bounded argument: fine enough for real values, exact for whole ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.exact import Grid
from discreet.plan.schema import Bounds
from discreet.plan.types import Type

STEPS = 1 << 20  # between the bounds of a real argument: rounding is a millionth of the width


@dataclass(frozen=True, slots=True)
class Steps:
    """Bounds in whole steps of a power of two; values are rounded to the nearest step, then clipped to these."""

    exponent: int
    low: int
    high: int

    @classmethod
    def of(cls, bounds: Bounds, kind: Type) -> Steps:
        """Whole numbers stay as they are; real ones get a million steps, chosen from the bounds alone."""
        exponent = 0 if kind is Type.INT else Grid.finer_than(bounds.width / STEPS).exponent
        step = Grid(exponent).step
        low, high = math.ceil(bounds.low / step), math.floor(bounds.high / step)
        if low >= high:
            shown = f"({float(bounds.low):g}, {float(bounds.high):g})"
            raise InvalidParameter("bounds", shown, "to have two whole numbers between them", "Widen them.")
        return cls(exponent, low, high)

    @property
    def step(self) -> Fraction:
        """The size of one step."""
        return Fraction(2) ** self.exponent

    @property
    def whole(self) -> bool:
        """Whether multiples of a step are whole numbers."""
        return self.exponent >= 0

    @property
    def width(self) -> int:
        """Steps between the bounds."""
        return self.high - self.low

    @property
    def middle(self) -> int:
        """A step half way."""
        return (self.low + self.high) // 2
