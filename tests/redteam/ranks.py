"""How far neighbours move the losses that points are drawn by: brute force over the points beside all values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.terms import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.curator.measure import Law
from discreet.curator.pick import Pick
from discreet.plan.aggregates import Target
from discreet.privacy import events


@dataclass(frozen=True)
class Drawn:
    """One point in every group, on a grid that ends at `last` and is read in blocks of 2^shift points.

    Points that are drawn in one go share a read, whose number is `read`.
    """

    pick: Pick
    last: int
    shift: int
    read: int = 0

    @property
    def event(self) -> events.Event:
        return self.pick.event

    @property
    def law(self) -> Law:
        return "gaussian" if isinstance(self.event, events.Concentrated) else "laplace"


def cost_of_moves(drawn: Drawn, one: Mapping[Any, Sequence[int]], other: Mapping[Any, Sequence[int]]) -> Fraction:
    """The epsilon of points drawn in all groups, or the rho if they were paid as such.

    Ranges of privacy losses add up; the sum of their squares over 8 is a rho, and never more than the event's.
    """
    pick = drawn.pick
    moves = [moved(pick, one.get(key, ()), other.get(key, ()), drawn.last) for key in {**one, **other}]
    ranges = [2 * pick.rate * move for move in moves]
    rho = sum((r * r for r in ranges), Fraction(0)) / 8
    assert rho <= zcdp(terms(pick.event)).rho
    return rho if drawn.law == "gaussian" else sum(ranges, Fraction(0))


def moved(pick: Pick, one: Sequence[int], other: Sequence[int], last: int) -> Fraction:
    """The largest change of a loss: losses are constant between values, so a point beside each value is enough."""
    near = [*one[: len(one) // 2], *other[: len(other) // 2]]
    where = {0, last, *(p for cell in near for p in (cell - 1, cell, cell + 1) if 0 <= p <= last)}
    a, b = (at_points(pick.target, numbers, last, where) for numbers in (one, other))
    return max(abs(a[p] - b[p]) for p in where)


def at_points(target: Target, numbers: Sequence[int], last: int, where: set[int]) -> dict[int, Fraction]:
    """The losses of some points; numbers are the points that have values, then how many each has."""
    half = len(numbers) // 2
    counts = dict(zip(numbers[:half], numbers[half:], strict=True))
    rank = target.share * sum(counts.values()) + target.offset
    found = {}
    for point in where:
        below = sum(count for cell, count in counts.items() if cell < point)
        upto = below + counts.get(point, 0)
        too_high, too_low = below - rank if point else Fraction(0), rank - upto if point < last else Fraction(0)
        found[point] = max(Fraction(0), too_high, too_low)
    return found
