"""Weighted sums of statistics: what every aggregate is made of, before noise and after it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of weight times statistic, the statistics named by their places in a reading.

    >>> count = Linear.of({0: Fraction(1, 2), 1: Fraction(1, 2)})
    >>> (count * 3 + Linear.at(1)).weights
    ((0, Fraction(3, 2)), (1, Fraction(5, 2)))
    >>> count.value([3, 5])
    Fraction(4, 1)
    """

    weights: tuple[tuple[int, Fraction], ...]

    @classmethod
    def of(cls, weights: Mapping[int, Fraction]) -> Linear:
        """The sum with these weights by place."""
        return cls(tuple(sorted((place, weight) for place, weight in weights.items() if weight)))

    @classmethod
    def at(cls, place: int) -> Linear:
        """One statistic."""
        return cls(((place, Fraction(1)),))

    def __add__(self, other: Linear) -> Linear:
        added = dict(self.weights)
        for place, weight in other.weights:
            added[place] = added.get(place, Fraction(0)) + weight
        return Linear.of(added)

    def __mul__(self, factor: Fraction | int) -> Linear:
        return Linear.of({place: weight * factor for place, weight in self.weights})

    def value(self, statistics: Sequence[int]) -> Fraction:
        """The sum for these statistics, exactly."""
        return sum((weight * statistics[place] for place, weight in self.weights), Fraction(0))

    def values(self, rows: Iterable[Sequence[int]]) -> tuple[list[int], int]:
        """Numerators for many rows of statistics, and their common denominator."""
        bottom = math.lcm(*(weight.denominator for _, weight in self.weights))
        whole = [(place, int(weight * bottom)) for place, weight in self.weights]
        return [sum(weight * row[place] for place, weight in whole) for row in rows], bottom
