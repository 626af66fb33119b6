"""Needs: what aggregates ask of releases. Equal needs of one question are served once, and paid for once."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.plan.model.nodes import Expression


class Need:
    """A need: what an aggregate must know of a group."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RowCountNeed(Need):
    """The number of rows."""


@dataclass(frozen=True, slots=True)
class UnitCountNeed(Need):
    """The number of units, however many rows each has."""


@dataclass(frozen=True, slots=True)
class DistinctCountNeed(Need):
    """The number of different values of an argument."""

    argument: Expression


@dataclass(frozen=True, slots=True)
class MomentNeed(Need):
    """Sums of powers of an argument's values: the power 0 is their number, 1 their sum, 2 the sum of their squares.

    Args:
        argument: whose values they are; it needs public bounds, unless they are only counted.
        powers: which.
        name: what SQL calls the aggregate, for messages.
    """

    argument: Expression
    powers: frozenset[int]
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class DistinctMomentNeed(Need):
    """Moments of values that differ, clipped to bounds and on their grid: equal ones are one value.

    Args:
        argument: whose values they are; it needs public bounds.
        powers: which; 1 at most.
        name: what SQL calls the aggregate, for messages.
    """

    argument: Expression
    powers: frozenset[int]
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ProductNeed(Need):
    """Over rows where two arguments have values: their number, sums of both and of their products.

    Args:
        first: one argument.
        second: the other.
        squared: those of the two whose squares are needed as well.
        name: what SQL calls the aggregate, for messages.
    """

    first: Expression
    second: Expression
    squared: frozenset[Expression] = frozenset()
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class RankNeed(Need):
    """A value near a rank.

    Args:
        argument: whose values are ranked.
        share: of the values that lie below it.
        extreme: whether the smallest (of the share 0) or the largest value (1) is meant, which must not be passed;
            otherwise values that surely lie below and above are needed, too.
    """

    argument: Expression
    share: Fraction
    extreme: bool = False


@dataclass(frozen=True, slots=True)
class ModeNeed(Need):
    """The most frequent of an argument's public values."""

    argument: Expression
