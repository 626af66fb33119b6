"""How far apart neighbours are where numbers meet noise, in the currency that was paid, beside what was paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet.accounting.terms import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.audit.queries.points import ranges_of_parts, ranges_of_points, ranges_of_votes
from discreet.audit.queries.recorder import Noise
from discreet.audit.queries.releases import Divided, Drawn, DrawnCandidate, allowance, law_of
from discreet.measurement.releases.additive import Measure
from discreet.mechanisms import PartitionSelection
from discreet.privacy import events

Currency = Literal["epsilon", "rho", "groups", "people in a group"]


@dataclass(frozen=True, slots=True)
class Move:
    """How far the inputs of one release are apart, and how far they may be.

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
        """Whether it is no farther than what was paid for."""
        return self.found <= self.allowed


def moves(one: Noise, other: Noise) -> tuple[Move, ...]:
    """The distances of two recorded inputs of the same release; a group that is not there is zero.

    Laplace noise: the sum of |a - b| / scale, which is the epsilon of the pair, exactly. Gaussian noise: half the sum
    of ((a - b) / sigma)^2, the rho of the pair. Drawn points and candidates: the ranges of their privacy losses, added
    up, or their squares over 8 added up where they were paid as a rho (Cesar, Rogers 2021), which must not exceed the
    rho of the event in any case. A selection: the number of groups in which the number of people differs, none by more
    than one.
    """
    release, a, b = one.release, one.inputs(), other.inputs()
    if isinstance(release, Drawn):
        return by_ranges(release.event, ranges_of_points(release, a, b))
    if isinstance(release, Divided):
        places = {**other.outputs(), **one.outputs()}
        return by_ranges(release.event, ranges_of_parts(release, a, b, places))
    if isinstance(release, DrawnCandidate):
        return by_ranges(release.event, ranges_of_votes(release.recipe, a, b))
    ratios = shifts(one, other)
    if isinstance(release, PartitionSelection):
        changed = sum(ratios, Fraction(0))
        return (
            Move(changed, Fraction(release.max_groups), "groups"),
            Move(max(ratios, default=Fraction(0)), Fraction(1), "people in a group"),
        )
    allowed = allowance(release.event)
    if release.law == "gaussian":
        return (Move(sum((ratio * ratio for ratio in ratios), Fraction(0)) / 2, allowed, "rho"),)
    return (Move(sum(ratios, Fraction(0)), allowed, "epsilon"),)


def paid_moves(
    one: Sequence[Noise], other: Sequence[Noise], paid: Sequence[events.Event]
) -> tuple[tuple[Move, ...], ...]:
    """The distances of all releases, those that share a payment together.

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
    """Releases of one event, paid so often: each by itself if all are paid, else as one."""
    if len(listed) <= times:
        return listed
    return [tuple(_sum(same, times) for same in zip(*listed, strict=True))]


def _sum(listed: Sequence[Move], times: int) -> Move:
    first = listed[0]
    if first.currency == "people in a group":  # of each group by itself
        return Move(max(move.found for move in listed), first.allowed, first.currency)
    return Move(sum((move.found for move in listed), Fraction(0)), times * first.allowed, first.currency)


def moved(one: Noise, other: Noise) -> Fraction:
    """The distance of two inputs in the currency of their release."""
    return moves(one, other)[0].found


def shifts(one: Noise, other: Noise) -> list[Fraction]:
    """How far each number moved, in units of its noise; people, for a selection."""
    a, b = one.inputs(), other.inputs()
    scales = one.release.scales if isinstance(one.release, Measure) else (Fraction(1),)
    zero = (0,) * len(scales)
    return [
        abs(Fraction(x - y) / scale)
        for key in {**a, **b}
        for x, y, scale in zip(a.get(key, zero), b.get(key, zero), scales, strict=True)
    ]


def by_ranges(event: events.Event, ranges: Sequence[Fraction]) -> tuple[Move, Move]:
    """What draws cost whose privacy losses have these ranges, as they were paid; and as a rho in any case."""
    rho = sum((each * each for each in ranges), Fraction(0)) / 8
    concentrated = Move(rho, Fraction(zcdp(terms(event)).rho), "rho")
    if law_of(event) == "gaussian":
        return Move(rho, allowance(event), "rho"), concentrated
    return Move(sum(ranges, Fraction(0)), allowance(event), "epsilon"), concentrated
