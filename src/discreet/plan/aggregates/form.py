"""What an aggregation says of itself: which integers to compute, how far a row can move them, how to finish them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.plan.aggregates.linear import Linear
from discreet.plan.reading import Statistic
from discreet.plan.stability import Corner


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Exact integers that meet their noise together.

    Args:
        statistics: exact integers per group.
        corners: the extreme contributions of one row to them, beside nothing at all.
        once: whether a unit counts once per group, however many rows it has.
    """

    statistics: tuple[Statistic, ...]
    corners: tuple[Corner, ...]
    once: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate that is a weighted sum of statistics; `whole` if the exact one is a whole number."""

    linear: Linear
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """An aggregate that is centre + top / bottom and lies between two public ends; bottom counts values.

    Args:
        top: a sum of values, counted from the centre.
        bottom: their number.
        centre: where the top counts from.
        low: the smallest value.
        high: the largest.
    """

    top: Linear
    bottom: Linear
    centre: Fraction
    low: Fraction
    high: Fraction


Recipe = Total | Ratio
"""How an aggregate follows from statistics: post-processing, defined for all integers."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a group is, for a selection of private keys; a unit alone makes it at most `most`."""

    linear: Linear
    most: int
