"""How far neighbours move the losses that points are drawn by: brute force over the points beside all values.

A point is drawn with a probability proportional to e^(-rate loss), so that a change of losses by at most m keeps its
privacy loss in a range of 2 rate m.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from discreet.audit.queries.releases import Divided, Drawn
from discreet.measurement.aggregates import Target
from discreet.measurement.releases.mode import Modal
from discreet.measurement.releases.points import Pick

Numbers = Mapping[Any, Sequence[int]]
"""By group: the cells that have values, then how many each has."""


def ranges_of_points(drawn: Drawn, one: Numbers, other: Numbers) -> list[Fraction]:
    """The range of the privacy loss in each group."""
    pick = drawn.pick
    moves = [_moved(pick, one.get(key, ()), other.get(key, ()), drawn.last) for key in {**one, **other}]
    return [2 * pick.rate * move for move in moves]


def ranges_of_parts(divided: Divided, one: Numbers, other: Numbers, places: Numbers) -> list[Fraction]:
    """The range of the privacy loss of a level's points, in all parts of all groups, given all places."""
    return [
        2 * divided.tree.rates[number] * _moved_in_part(divided, number, one.get(key, ()), other.get(key, ()), where)
        for key, where in places.items()
        for number, place in enumerate(divided.tree.places)
        if place.level == divided.level
    ]


def ranges_of_votes(recipe: Modal, one: Numbers, other: Numbers) -> list[Fraction]:
    """The range of the privacy loss in each group."""
    return [recipe.rate * range_of(recipe, one.get(key, ()), other.get(key, ())) for key in {**one, **other}]


def range_of(recipe: Modal, one: Sequence[int], other: Sequence[int]) -> int:
    """The largest change of a candidate's count less the smallest."""
    before, after = _counts(one), _counts(other)
    changes = [after.get(place, 0) - before.get(place, 0) for place in range(len(recipe.candidates.values))]
    return max(changes) - min(changes)


def _counts(numbers: Sequence[int]) -> dict[int, int]:
    half = len(numbers) // 2
    return dict(zip(numbers[:half], numbers[half:], strict=True))


def _moved(pick: Pick, one: Sequence[int], other: Sequence[int], last: int) -> Fraction:
    """The largest change of a loss: losses are constant between values, so a point beside each value is enough."""
    near = [*_counts(one), *_counts(other)]
    where = {0, last, *(p for cell in near for p in (cell - 1, cell, cell + 1) if 0 <= p <= last)}
    a, b = (_losses(pick.target, numbers, last) for numbers in (one, other))
    return Fraction(max(abs(a(p) - b(p)) for p in where), _whole(pick.target))


def _whole(target: Target) -> int:
    """By which losses are multiplied to be whole."""
    return math.lcm(target.share.denominator, Fraction(target.offset).denominator)


def _losses(target: Target, numbers: Sequence[int], last: int) -> Callable[[int], int]:
    """How far the rank of a point is from what is wanted, multiplied by a whole number."""
    below, times = _mass(numbers, 1), _whole(target)
    total = sum(_counts(numbers).values())
    rank = int(times * (target.share * total + target.offset))

    def loss(point: int) -> int:
        too_high = times * below(point) - rank if point else 0
        too_low = rank - times * below(point + 1) if point < last else 0
        return max(0, too_high, too_low)

    return loss


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
    times, wanted = place.own.denominator, place.own.numerator
    tables = [_mass(numbers, size) for numbers in (one, other)]
    targets = [times * below(low) + wanted * (below(high) - below(low)) for below in tables]
    cells = {*_counts(one), *_counts(other)}
    near = {low, last, *(edge * size + d for cell in cells for edge in (cell, cell + 1) for d in (-1, 0))}
    for below, target in zip(tables, targets, strict=True):
        zero = bisect_left(range(low, last + 1), -(-target // times), key=below) + low
        near |= {zero - 2, zero - 1, zero, zero + 1}

    def loss(table: int, z: int) -> int:
        below, target = tables[table], targets[table]
        return max(0, times * below(z) - target, target - times * below(min(z + 1, high)))

    return Fraction(max(abs(loss(0, z) - loss(1, z)) for z in near if low <= z <= last), times * size)


def _mass(numbers: Sequence[int], size: int) -> Callable[[int], int]:
    """The mass below a place, times the size of a cell: a value in a cell is spread evenly over its places."""
    counts = _counts(numbers)
    cells = sorted(counts)
    sums = [0, *accumulate(counts[cell] for cell in cells)]

    def below(z: int) -> int:
        cell, inside = divmod(z, size)
        at = bisect_left(cells, cell)
        return sums[at] * size + (counts.get(cell, 0) * inside)

    return below
