"""How far neighbours move the losses that points are drawn by: brute force over the points beside all values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.terms import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.curator.measure import Law
from discreet.curator.pick import Pick
from discreet.curator.tree import Tree
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


@dataclass(frozen=True)
class Divided:
    """One level of several quantiles, in every group; the outputs of a recorded one are the places of all levels."""

    tree: Tree
    level: int
    last: int
    shift: int
    read: int = 0

    @property
    def event(self) -> events.Event:
        return self.tree.levels[self.level]

    @property
    def law(self) -> Law:
        return "gaussian" if isinstance(self.event, events.Concentrated) else "laplace"


def cost_of_parts(
    divided: Divided,
    one: Mapping[Any, Sequence[int]],
    other: Mapping[Any, Sequence[int]],
    places: Mapping[Any, Sequence[int]],
) -> Fraction:
    """The epsilon of the level of points in all parts of all groups, given all places, or the rho if paid as such."""
    ranges = [
        2 * divided.tree.rates[number] * _moved_in_part(divided, number, one.get(key, ()), other.get(key, ()), where)
        for key, where in places.items()
        for number, place in enumerate(divided.tree.places)
        if place.level == divided.level
    ]
    rho = sum((r * r for r in ranges), Fraction(0)) / 8
    assert rho <= zcdp(terms(divided.event)).rho
    return rho if divided.law == "gaussian" else sum(ranges, Fraction(0))


def _moved_in_part(
    divided: Divided, number: int, one: Sequence[int], other: Sequence[int], places: Sequence[int]
) -> Fraction:
    """The largest change of a loss between the ends of a part.

    A loss is linear in the place where no value begins or ends, but where it becomes zero.
    """
    place, size = divided.tree.places[number], 1 << divided.tree.grain
    low = 0 if place.lower is None else places[place.lower]
    high = (divided.last + 1) * size if place.upper is None else places[place.upper]
    last = min(high, (divided.last + 1) * size - 1)
    tables = [_spread(numbers, size) for numbers in (one, other)]
    targets = [below(low) + place.own * (below(high) - below(low)) for below in tables]
    cells = {*one[: len(one) // 2], *other[: len(other) // 2]}
    near = {low, last, *(edge * size + d for cell in cells for edge in (cell, cell + 1) for d in (-1, 0))}
    for below, target in zip(tables, targets, strict=True):
        zero = bisect_left(range(low, last + 1), target, key=below) + low
        near |= {zero - 2, zero - 1, zero, zero + 1}

    def loss(table: int, z: int) -> Fraction:
        below, target = tables[table], targets[table]
        return max(Fraction(0), below(z) - target, target - below(min(z + 1, high)))

    return max(abs(loss(0, z) - loss(1, z)) for z in near if low <= z <= last)


def _spread(numbers: Sequence[int], size: int) -> Callable[[int], Fraction]:
    """The mass below a place: a value at a point is spread evenly over its places."""
    half = len(numbers) // 2
    counts = dict(zip(numbers[:half], numbers[half:], strict=True))

    def below(z: int) -> Fraction:
        shares = (c * Fraction(min(max(z - cell * size, 0), size), size) for cell, c in counts.items())
        return sum(shares, Fraction(0))

    return below


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
