"""How far apart neighbours are where numbers meet noise, in the currency that was paid, next to what was paid.

A point is drawn with a probability proportional to e^(-rate loss), so that a change of losses by at most m keeps its
privacy loss in a range of 2 rate m. How far neighbours move losses is found by brute force over the points next to all
values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal

from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.audit.queries.recorder import RecordedRelease
from discreet.audit.queries.releases import (
    CandidateRelease,
    PointRelease,
    QuantileLevelRelease,
    SelectionRound,
    allowance,
    law_of,
)
from discreet.dataclass import dataclass
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.candidates import CandidateDraw
from discreet.mechanisms import PartitionSelection
from discreet.mechanisms.ranks import Pick, RankTarget
from discreet.privacy import events

Numbers = Mapping[Any, Sequence[int]]
"""By group: the cells that have values, then how many each has."""


def ranges_of_points(drawn: PointRelease, one: Numbers, other: Numbers) -> list[Fraction]:
    """Returns the range of the privacy loss in each group."""
    pick = drawn.pick
    moves = [_measure_loss_change(pick, one.get(key, ()), other.get(key, ()), drawn.last) for key in {**one, **other}]
    return [2 * pick.rate * move for move in moves]


def ranges_of_parts(divided: QuantileLevelRelease, one: Numbers, other: Numbers, places: Numbers) -> list[Fraction]:
    """Returns the range of the privacy loss of a level's points, in all parts of all groups, given all places."""
    return [
        2 * divided.tree.rates[number] * _moved_in_part(divided, number, one.get(key, ()), other.get(key, ()), where)
        for key, where in places.items()
        for number, node in enumerate(divided.tree.nodes)
        if node.level == divided.level
    ]


def ranges_of_votes(recipe: CandidateDraw, one: Numbers, other: Numbers) -> list[Fraction]:
    """Returns the range of the privacy loss in each group."""
    return [recipe.rate * range_of(recipe, one.get(key, ()), other.get(key, ())) for key in {**one, **other}]


def range_of(recipe: CandidateDraw, one: Sequence[int], other: Sequence[int]) -> int:
    """Returns the largest change of a candidate's count less the smallest."""
    before, after = _counts(one), _counts(other)
    changes = [after.get(place, 0) - before.get(place, 0) for place in range(len(recipe.candidates.values))]
    return max(changes) - min(changes)


def _counts(numbers: Sequence[int]) -> dict[int, int]:
    half = len(numbers) // 2
    return dict(zip(numbers[:half], numbers[half:], strict=True))


def _measure_loss_change(pick: Pick, one: Sequence[int], other: Sequence[int], last: int) -> Fraction:
    """Returns the largest change of a loss; losses are constant between values: a point next to each is enough."""
    near = [*_counts(one), *_counts(other)]
    where = {0, last, *(p for cell in near for p in (cell - 1, cell, cell + 1) if 0 <= p <= last)}
    a, b = (_losses(pick.target, numbers, last) for numbers in (one, other))
    return Fraction(max(abs(a(p) - b(p)) for p in where), _whole(pick.target))


def _whole(target: RankTarget) -> int:
    """Returns the factor that makes losses whole."""
    return math.lcm(target.share.denominator, Fraction(target.offset).denominator)


def _losses(target: RankTarget, numbers: Sequence[int], last: int) -> Callable[[int], int]:
    """Returns how far the rank of a point is from what is wanted, multiplied by a whole number."""
    below, times = _mass(numbers, 1), _whole(target)
    total = sum(_counts(numbers).values())
    rank = int(times * (target.share * total + target.offset))

    def loss(point: int) -> int:
        too_high = times * below(point) - rank if point else 0
        too_low = rank - times * below(point + 1) if point < last else 0
        return max(0, too_high, too_low)

    return loss


def _moved_in_part(
    divided: QuantileLevelRelease, number: int, one: Sequence[int], other: Sequence[int], places: Sequence[int]
) -> Fraction:
    """Returns the largest change of a loss between the ends of a part.

    A loss is linear in the place where no value begins or ends, but where it becomes zero.
    """
    node, size = divided.tree.nodes[number], 1 << divided.tree.grain
    low = 0 if node.lower is None else places[node.lower]
    high = (divided.last + 1) * size if node.upper is None else places[node.upper]
    last = min(high, (divided.last + 1) * size - 1)
    times, wanted = node.own.denominator, node.own.numerator
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
    """Returns the mass below a place, times the size of a cell: a value in a cell is spread evenly over its places."""
    counts = _counts(numbers)
    cells = sorted(counts)
    sums = [0, *accumulate(counts[cell] for cell in cells)]

    def below(z: int) -> int:
        cell, inside = divmod(z, size)
        at = bisect_left(cells, cell)
        return sums[at] * size + (counts.get(cell, 0) * inside)

    return below


Currency = Literal["epsilon", "rho", "groups", "people in a group"]


@dataclass(frozen=True, slots=True)
class Move:
    """Holds how far the inputs of one release are apart, and how far they may be.

    Attributes:
        found: the distance.
        allowed: what the event that was charged allows.
        currency: epsilon and rho are privacy; groups and people are what a selection of groups is built for.
    """

    found: Fraction
    allowed: Fraction
    currency: Currency

    @property
    def is_covered(self) -> bool:
        """Returns whether it is no farther than what was paid for."""
        return self.found <= self.allowed


def moves(one: RecordedRelease, other: RecordedRelease) -> tuple[Move, ...]:
    """Returns the distances of two recorded inputs of the same release; a group that is not there is zero.

    Laplace noise: the sum of |a - b| / scale, which is the epsilon of the pair, exactly. Gaussian noise: half the sum
    of ((a - b) / sigma)^2, the rho of the pair. Drawn points and candidates: the ranges of their privacy losses, added
    up, or their squares over 8 added up where they were paid as a rho (Cesar, Rogers 2021), which must not exceed the
    rho of the event in any case. A selection: the number of groups in which the number of people differs, none by more
    than one. A round by weights: as Gaussian noise, and the number of groups that one of the two has alone.
    """
    release, a, b = one.release, one.inputs(), other.inputs()
    if isinstance(release, PointRelease):
        return by_ranges(release.event, ranges_of_points(release, a, b))
    if isinstance(release, QuantileLevelRelease):
        places = {**other.outputs(), **one.outputs()}
        return by_ranges(release.event, ranges_of_parts(release, a, b, places))
    if isinstance(release, CandidateRelease):
        return by_ranges(release.event, ranges_of_votes(release.recipe, a, b))
    ratios = shifts(one, other)
    if isinstance(release, SelectionRound):
        return _of_weights(release, ratios, (len(set(a) - set(b)), len(set(b) - set(a))))
    if isinstance(release, PartitionSelection):
        changed = sum(ratios, Fraction(0))
        return (
            Move(changed, Fraction(release.max_groups), "groups"),
            Move(max(ratios, default=Fraction(0)), Fraction(1), "people in a group"),
        )
    allowed = allowance(release.event)
    paid_in_rho = release.law == "gaussian"
    found = sum((ratio * ratio for ratio in ratios), Fraction(0)) / 2 if paid_in_rho else sum(ratios, Fraction(0))
    return (Move(found, allowed, "rho" if paid_in_rho else "epsilon"),)


def _of_weights(release: SelectionRound, steps: Sequence[Fraction], alone: tuple[int, int]) -> tuple[Move, ...]:
    """Returns the rho of the noise of a round, and how many groups one of the two tables has alone."""
    square = sum((step * step for step in steps), Fraction(0)) / release.selection.sigmas[release.turn] ** 2
    groups = Move(Fraction(max(alone)), Fraction(release.selection.max_groups), "groups")
    return Move(square / 2, allowance(release.event), "rho"), groups


def paid_moves(
    one: Sequence[RecordedRelease], other: Sequence[RecordedRelease], paid: Sequence[events.Event]
) -> tuple[tuple[Move, ...], ...]:
    """Returns the distances of all releases, those that share a payment together.

    Groupings of one question, and the group of all that it does not show, meet noise one after the other and are paid
    once: the noise is made for all that a unit moves in all of them. So what it moves in them is added up, and must not
    exceed the payment, or as many payments as there are for such releases. In each currency this is what independent
    releases cost together.

    Args:
        one: all releases of a question.
        other: the same on a neighbour.
        paid: the events that were charged.
    """
    alike: list[tuple[events.Event, list[tuple[Move, ...]]]] = []
    for a, b in zip(one, other, strict=True):
        event, found = a.release.event, moves(a, b)
        own = next((listed for known, listed in alike if known == event), None)
        if own is None:
            alike.append((event, [found]))
        else:
            own.append(found)
    return tuple(joint for event, listed in alike for joint in _joint(listed, max(1, list(paid).count(event))))


def _joint(listed: Sequence[tuple[Move, ...]], times: int) -> Sequence[tuple[Move, ...]]:
    """Returns the moves of one event's releases: each alone if all were paid, else their sum.

    Noise and draws may be paid with the same event. Noise has one currency; draws have that in which they were paid,
    and a rho: what all have in the first place is added up over all of them, the rest over those that have it.
    """
    if len(listed) <= times:
        return listed
    places = range(max(map(len, listed)))
    columns = [[found[place] for found in listed if place < len(found)] for place in places]
    return [tuple(_sum(same, times) for column in columns for same in _by_currency(column))]


def _by_currency(column: Sequence[Move]) -> list[list[Move]]:
    kinds = dict.fromkeys(move.currency for move in column)
    return [[move for move in column if move.currency == kind] for kind in kinds]


def _sum(listed: Sequence[Move], times: int) -> Move:
    first = listed[0]
    if first.currency == "people in a group":  # of each group alone
        return Move(max(move.found for move in listed), first.allowed, first.currency)
    return Move(sum((move.found for move in listed), Fraction(0)), times * first.allowed, first.currency)


def measure_distance(one: RecordedRelease, other: RecordedRelease) -> Fraction:
    """Returns the distance of two inputs in the currency of their release."""
    return moves(one, other)[0].found


def shifts(one: RecordedRelease, other: RecordedRelease) -> list[Fraction]:
    """Returns how far each number moved, in units of its noise; people, for a selection."""
    a, b = one.inputs(), other.inputs()
    scales = one.release.scales if isinstance(one.release, AdditiveNoise) else (Fraction(1),)
    zero = (0,) * len(scales)
    return [
        abs(Fraction(x - y) / scale)
        for key in {**a, **b}
        for x, y, scale in zip(a.get(key, zero), b.get(key, zero), scales, strict=True)
    ]


def by_ranges(event: events.Event, ranges: Sequence[Fraction]) -> tuple[Move, Move]:
    """Returns what draws cost whose privacy losses have these ranges, as they were paid; and as a rho in any case."""
    rho = sum((each * each for each in ranges), Fraction(0)) / 8
    concentrated = Move(rho, Fraction(zcdp(terms(event)).rho), "rho")
    if law_of(event) == "gaussian":
        return Move(rho, allowance(event), "rho"), concentrated
    return Move(sum(ranges, Fraction(0)), allowance(event), "epsilon"), concentrated
