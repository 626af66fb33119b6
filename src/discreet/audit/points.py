"""How far neighbours move the losses that points are drawn by: brute force over the points beside all values.

A point is drawn with a probability proportional to e^(-rate loss), so that a change of losses by at most m keeps its
privacy loss in a range of 2 rate m.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.audit.releases import Divided, Drawn
from discreet.curator.modes import Modal
from discreet.curator.pick import Pick
from discreet.plan.aggregates import Target

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
    changes = [after.get(place, 0) - before.get(place, 0) for place in range(len(recipe.ballot.values))]
    return max(changes) - min(changes)


def _counts(numbers: Sequence[int]) -> dict[int, int]:
    half = len(numbers) // 2
    return dict(zip(numbers[:half], numbers[half:], strict=True))


def _moved(pick: Pick, one: Sequence[int], other: Sequence[int], last: int) -> Fraction:
    """The largest change of a loss: losses are constant between values, so a point beside each value is enough."""
    near = [*_counts(one), *_counts(other)]
    where = {0, last, *(p for cell in near for p in (cell - 1, cell, cell + 1) if 0 <= p <= last)}
    a, b = (_at_points(pick.target, numbers, last, where) for numbers in (one, other))
    return max(abs(a[p] - b[p]) for p in where)


def _at_points(target: Target, numbers: Sequence[int], last: int, where: set[int]) -> dict[int, Fraction]:
    """The losses of some points."""
    counts = _counts(numbers)
    rank = target.share * sum(counts.values()) + target.offset
    found = {}
    for point in where:
        below = sum(count for cell, count in counts.items() if cell < point)
        upto = below + counts.get(point, 0)
        too_high, too_low = below - rank if point else Fraction(0), rank - upto if point < last else Fraction(0)
        found[point] = max(Fraction(0), too_high, too_low)
    return found


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
    cells = {*_counts(one), *_counts(other)}
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
    counts = _counts(numbers)

    def below(z: int) -> Fraction:
        shares = (c * Fraction(min(max(z - cell * size, 0), size), size) for cell, c in counts.items())
        return sum(shares, Fraction(0))

    return below
