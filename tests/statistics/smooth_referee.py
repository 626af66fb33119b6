"""Smooth sensitivity by its definition: all databases on a small grid, all neighbours, all distances."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache

Data = tuple[int, ...]
Statistic = Callable[[Data], Fraction]


@cache
def databases(width: int, n: int) -> list[Data]:
    """All sorted tuples of n values from 0 to width."""
    return list(itertools.combinations_with_replacement(range(width + 1), n))


def distance(x: Data, y: Data) -> int:
    """How many values must be replaced."""
    return len(x) - sum((Counter(x) & Counter(y)).values())


def neighbours(x: Data, width: int) -> set[Data]:
    """All databases that differ in one value."""
    return {tuple(sorted((*x[:i], v, *x[i + 1 :]))) for i in range(len(x)) for v in range(width + 1)}


def order(rank: int) -> Statistic:
    """The value of a rank, counted from 1."""
    return lambda x: Fraction(sorted(x)[rank - 1])


def trimmed(m: int) -> Statistic:
    """The mean of all but the m smallest and largest."""
    return lambda x: Fraction(sum(sorted(x)[m : len(x) - m]), len(x) - 2 * m)


def local_sensitivities(statistic: Statistic, width: int, n: int) -> dict[Data, Fraction]:
    """Of every database."""
    values = {x: statistic(x) for x in databases(width, n)}
    return {x: max(abs(values[x] - values[y]) for y in neighbours(x, width)) for x in values}


def envelope(local: dict[Data, Fraction], x: Data) -> list[Fraction]:
    """A^(k) for k = 0 ... n."""
    ways = [(distance(x, y), found) for y, found in local.items()]
    return [max(found for d, found in ways if d <= k) for k in range(len(x) + 1)]


def smooth(envelope: list[Fraction], beta: float) -> float:
    """max_k e^(-beta k) A^(k)."""
    return max(math.exp(-beta * k) * float(a) for k, a in enumerate(envelope))
