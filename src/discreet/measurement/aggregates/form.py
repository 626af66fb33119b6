"""What an aggregation says of itself: which integers to compute, how far a row can move them, how to finish them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.measurement.aggregates.linear import Linear
from discreet.measurement.aggregates.steps import MOST_ROWS
from discreet.plan.analysis.stability import Corner
from discreet.plan.model.nodes import AggregateKind
from discreet.plan.model.readings import Statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Exact integers that meet their noise together.

    Formal guarantee. Totals are read in fine steps, and each is rounded half up to multiples of 2^grain of them before
    it meets its noise. What lies between two whole multiples is rounded to what lies between them, and one multiple
    more is one more when it is rounded. So rows that move a total by something between two whole multiples move the
    rounded one by something between the same two: as far as values that were rounded one by one could. That is all
    there is to say where corners bound each statistic by itself, or where all but one of them count rows. Corners of
    other shapes leave room for less than one multiple in every direction.

    Args:
        statistics: exact integers per group.
        corners: the extreme contributions of one row to them, in multiples, beside nothing at all.
        once: whether a unit counts once per group, however many rows it has.
        grains: what each is rounded to, as a power of two; nothing is rounded unless they are given.
    """

    statistics: tuple[Statistic, ...]
    corners: tuple[Corner, ...]
    once: bool = False
    grains: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate that is a weighted sum of statistics.

    Args:
        linear: the sum.
        whole: whether the exact one is a whole number.
        error: how far the rounding of a value has moved it at most.
        values: how many there are, where something counts them.
        positive: whether nothing negative is added.
    """

    linear: Linear
    whole: bool
    error: Fraction = Fraction(0)
    values: Linear | None = None
    positive: bool = False

    @property
    def most_rounding(self) -> Fraction:
        """How far the rounding of all values has moved it, however many there are."""
        return self.error * MOST_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """An aggregate that is centre + top / bottom and lies between two public ends; bottom counts values.

    Args:
        top: a sum of values, counted from the centre.
        bottom: their number.
        centre: where the top counts from.
        low: the smallest value.
        high: the largest.
        error: how far the rounding of a value has moved it at most.
    """

    top: Linear
    bottom: Linear
    centre: Fraction
    low: Fraction
    high: Fraction
    error: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """The mean of (x - origin)^2 less the square of the mean of x - origin.

    Args:
        mean: of x, over its number.
        squares: the mean of (x - origin)^2, over the same number.
        origin: where squares count from.
        sample: whether the squares are shared among one value less.
        root: whether the standard deviation is meant.
    """

    mean: Ratio
    squares: Ratio
    origin: Fraction
    sample: bool
    root: bool

    @property
    def parts(self) -> tuple[tuple[Fraction, Ratio], ...]:
        """The means it is made of, and how strongly it depends on each, where the mean lies half way to the ends."""
        return (Fraction(1), self.squares), ((self.mean.high - self.mean.low) / 2, self.mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """How two arguments go together: their covariance, or what is made of it and of variances.

    Args:
        kind: which aggregate.
        first: the mean of the first argument, over the number of pairs; y of a regression.
        second: the mean of the second; x of a regression.
        product: the mean of (first - centre) (second - centre), over the same number.
        first_spread: the variance of the first, where it is needed.
        second_spread: that of the second.
    """

    kind: AggregateKind
    first: Ratio
    second: Ratio
    product: Ratio
    first_spread: Variance | None = None
    second_spread: Variance | None = None

    @property
    def sample(self) -> bool:
        """Whether the products are shared among one pair less."""
        return self.kind == "covar_samp"

    @property
    def parts(self) -> tuple[tuple[Fraction, Ratio], ...]:
        """The means it is made of, and how strongly it depends on each, in units of the bounds' widths."""
        one, other = (1 / (mean.high - mean.low) for mean in (self.first, self.second))
        spreads = [(1 / (s.mean.high - s.mean.low) ** 2, s.squares) for s in self.spreads]
        return (one / 4, self.first), (other / 4, self.second), (one * other, self.product), *spreads

    @property
    def spreads(self) -> tuple[Variance, ...]:
        """The variances it is made of."""
        return tuple(spread for spread in (self.first_spread, self.second_spread) if spread is not None)


Recipe = Total | Ratio | Variance | Joint
"""How an aggregate follows from statistics: post-processing, defined for all integers."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a group is, for a selection of private keys; a unit alone makes it at most `most`."""

    linear: Linear
    most: int
