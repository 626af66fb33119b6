"""The public grid of a bounded argument: fine enough for real values, exact for whole ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.exact import Grid
from discreet.plan.bounds import bounds
from discreet.plan.nodes import Expression
from discreet.plan.schema import Bounds, TableSchema
from discreet.plan.types import Type

STEPS = 1 << 20  # between the bounds of a real argument: rounding is a millionth of the width


MOST_SQUARED = 1 << 31  # of an argument that is multiplied: a product then has 60 bits, and 2^33 of them add up to 93
_WIDTHS = Fraction(1, 10**100), Fraction(10**100)  # of bounds whose squares and quotients are doubles

NAMES = {
    "sum": "SUM",
    "mean": "AVG",
    "var_pop": "VAR_POP",
    "var_samp": "VARIANCE",
    "stddev_pop": "STDDEV_POP",
    "stddev_samp": "STDDEV",
    "covar_pop": "COVAR_POP",
    "covar_samp": "COVAR_SAMP",
    "corr": "CORR",
    "regr_slope": "REGR_SLOPE",
    "regr_intercept": "REGR_INTERCEPT",
}
"""Aggregates of numbers that need public bounds, and what SQL calls them."""

SPREADS = {
    "var_pop": (False, False),
    "var_samp": (True, False),
    "stddev_pop": (False, True),
    "stddev_samp": (True, True),
}
"""Aggregates that need squares: whether one value less shares them, and whether the root is meant."""

PAIRS = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept")
"""Aggregates of two arguments."""

SQUARED = {*SPREADS, *PAIRS}
"""Aggregates that multiply values."""


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


def squarable(limits: Bounds, kind: Type) -> bool:
    """Whether values within these limits, on their grid, can be multiplied exactly."""
    least, most = _WIDTHS
    return least <= limits.width <= most and (kind is Type.FLOAT or limits.width <= MOST_SQUARED)


def bounded_steps(kind: str, argument: Expression, schema: TableSchema) -> Steps:
    """The grid of an argument of an aggregate, from its public bounds.

    Raises:
        UnsupportedQuery: if it has none, or none that fit its aggregate.
    """
    limits, name = bounds(argument, schema), NAMES.get(kind, "SUM")
    if limits is None:
        raise UnsupportedQuery(
            f"{name} needs public bounds of its argument.",
            f"Declare them with bounds=..., or clip in the question: {name}(GREATEST(LEAST(x, 100), 0)).",
        )
    if kind in SQUARED and not squarable(limits, argument.type):
        raise UnsupportedQuery(
            f"{name} cannot square numbers of this size.",
            f"Clip them, or convert whole numbers: {name}(CAST(x AS DOUBLE)).",
        )
    return Steps.of(limits, argument.type)
