"""Windows over released groups: a value for each group, from the groups of its partition.

Where the order or the groups of a partition depend on noise, an interval holds everything that any order, and any of
the groups that might be there, could give. Otherwise frames are known, and intervals are those of their groups.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, total_ordering
from typing import Any

from discreet.dataclass import dataclass
from discreet.plan.expressions.interval_arithmetic import EVERYTHING, Span
from discreet.plan.model.nodes import Literal, SortKey
from discreet.plan.post.outputs import Cell, Measured, NoisyNumber, as_noisy, span_of
from discreet.plan.post.released_groups import (
    ZERO,
    GroupMember,
    GroupNoise,
    PrefixSums,
    ReleasedGroup,
    aggregate_members,
    hull_of,
    is_measured,
    of_sum,
    plain,
    present,
    summed_span,
)
from discreet.plan.post.steps import NEIGHBOURS, PLACES, GroupWindow

MOST_PAIRS = 500
"""Groups of a partition that are compared in pairs, where an order by noisy values has several terms."""


def beside(window: GroupWindow, groups: Sequence[ReleasedGroup], law: GroupNoise | None) -> list[Cell]:
    """Computes the value for each group; for a group that is not shown, NULL or anything."""
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for index, group in enumerate(groups):
        partitions.setdefault(tuple(group.value(part) for part in window.partition), []).append(index)
    found: dict[int, Cell] = {}
    for indices in partitions.values():
        shown = _sort_groups(window.order, [index for index in indices if groups[index].shown], groups)
        uncertain = [groups[index] for index in indices if not groups[index].shown]
        partition = _Partition(window, [groups[index] for index in shown], uncertain, law)
        found |= dict(zip(shown, partition.cells(), strict=True))
    nothing = as_noisy(None, Span(ZERO, ZERO)) if window.type.is_number else None
    return [found.get(index, nothing) for index in range(len(groups))]


def _sort_groups(order: Sequence[SortKey], indices: list[int], groups: Sequence[ReleasedGroup]) -> list[int]:
    """Returns groups in an order, NULL last in both directions; equals stay as they are."""
    for term in reversed(order):
        valued = [(groups[index].value(term.expression), index) for index in indices]
        first = [pair for pair in valued if pair[0] is not None]
        first.sort(key=lambda pair: pair[0], reverse=term.descending)
        indices = [index for _, index in first] + [index for value, index in valued if value is None]
    return indices


@dataclass
class _Partition:
    """The groups of one partition in their order, and those that only might be there."""

    window: GroupWindow
    groups: list[ReleasedGroup]
    uncertain: list[ReleasedGroup]
    law: GroupNoise | None

    def cells(self) -> list[Cell]:
        """Returns the value for each group."""
        if self.window.kind in PLACES:
            return list(self._places())
        if self.window.kind in NEIGHBOURS:
            return list(self._neighbours())
        return list(self._aggregates())

    # ------------------------------------------------------------------------------------------------------ the frames

    @cached_property
    def is_known(self) -> bool:
        """Returns whether groups and order do not depend on noise."""
        orders = [term.expression for term in self.window.order]
        return not self.uncertain and all(
            group.sure and all(isinstance(group.resolve_expression(part), Literal) for part in orders)
            for group in self.groups
        )

    @cached_property
    def peers(self) -> list[tuple[int, int]]:
        """Returns for each group the first and the last place of those equal to it in the order."""
        keys = [tuple(group.value(term.expression) for term in self.window.order) for group in self.groups]
        starts = [0] * len(keys)
        for place in range(1, len(keys)):
            starts[place] = starts[place - 1] if keys[place] == keys[place - 1] else place
        stops = [len(keys)] * len(keys)
        for place in range(len(keys) - 2, -1, -1):
            stops[place] = stops[place + 1] if keys[place] == keys[place + 1] else place + 1
        return list(zip(starts, stops, strict=True))

    @cached_property
    def frames(self) -> list[tuple[int, int]]:
        """Returns for each group where its frame begins and ends."""
        count, rows = len(self.groups), self.window.rows
        if rows is None:
            return [(0, stop if self.window.order else count) for _, stop in self.peers]
        before, after = rows
        starts = [0 if before is None else min(max(0, place - before), count) for place in range(count)]
        stops = [count if after is None else min(max(0, place + after + 1), count) for place in range(count)]
        return [(start, max(start, stop)) for start, stop in zip(starts, stops, strict=True)]

    @cached_property
    def members(self) -> list[GroupMember]:
        """Returns the groups that are shown, as members of what is aggregated."""
        return [group.member(self.window.argument) for group in self.groups]

    @cached_property
    def everyone(self) -> list[GroupMember]:
        """Returns the same, with those that might be there, none of them for sure."""
        there = [*self.members, *(group.member(self.window.argument) for group in self.uncertain)]
        return [GroupMember(m.part, m.place, m.shown, sure=False) for m in present(self.window.kind, there)]

    # ------------------------------------------------------------------------------------------------------- neighbours

    def _neighbours(self) -> Iterator[Cell]:
        known = self.is_known or not is_measured(self.window.type, self.everyone)
        around = EVERYTHING if known else hull_of(self.everyone)
        for place in range(len(self.groups)):
            other = self._other(place)
            part = self.members[other].part if 0 <= other < len(self.groups) else None
            yield part if known else as_noisy(_value(part), around, self.window.type)

    def _other(self, place: int) -> int:
        kind, (start, stop) = self.window.kind, self.frames[place]
        if kind in ("lag", "lead"):
            return place + (self.window.offset if kind == "lead" else -self.window.offset)
        if start == stop:
            return -1
        return start if kind == "first" else stop - 1

    # ------------------------------------------------------------------------------------------------------- aggregates

    def _aggregates(self) -> Iterator[Cell]:
        whole = self.window.rows is None and not self.window.order
        if whole:
            there = [*self.members, *(group.member(self.window.argument) for group in self.uncertain)]
            yield from [aggregate_members(self.window.kind, self.window.type, there, self.law)] * len(self.groups)
        elif not self.is_known:
            yield from self._unknown()
        elif self.window.kind in ("sum", "mean"):
            yield from self._sums()
        else:
            known: dict[tuple[int, int], Cell] = {}
            for start, stop in self.frames:
                if (start, stop) not in known:
                    part = aggregate_members(self.window.kind, self.window.type, self.members[start:stop])
                    known[start, stop] = part
                yield known[start, stop]

    def _unknown(self) -> Iterator[Cell]:
        """Frames that depend on noise: anything that some of the groups give."""
        kind, result = self.window.kind, self.window.type
        adds = kind == "sum" or kind.startswith("count")
        around = span_of(aggregate_members(kind, result, self.everyone)) if adds else hull_of(self.everyone)
        for start, stop in self.frames:
            value = _value(aggregate_members(kind, result, self.members[start:stop]))
            yield as_noisy(value, around, result) if is_measured(result, self.everyone) else value

    def _sums(self) -> Iterator[Cell]:
        """Yields sums and means of known frames, each from sums up to its ends."""
        kind, result, noisy = (
            self.window.kind,
            self.window.type,
            any(isinstance(m.part, NoisyNumber) for m in self.members),
        )
        valued = [member.value is not None for member in self.members]
        values = PrefixSums([Fraction(m.value) if m.value is not None else ZERO for m in self.members])
        counts = PrefixSums([Fraction(there) for there in valued])
        nothing = Span(ZERO, ZERO)
        spans = [nothing if member.part is None else member.span for member in self.members]
        lows, highs = PrefixSums([span.low for span in spans]), PrefixSums([span.high for span in spans])
        told = None if self.law is None or not all(valued) else self._noise_ends(self.law)
        for start, stop in self.frames:
            count = int(counts.between(start, stop))
            value = of_sum(kind, result, Fraction(values.between(start, stop)), count)
            if not noisy or value is None:
                yield plain(value)
            elif told is not None and self.law is not None:
                low, high = (Fraction(side.between(start, stop)) for side in told)
                reach = self.law.reach(count)
                yield as_noisy(value, summed_span(kind, result, (low - reach, high + reach), count))
            else:
                over = count if kind == "mean" else 1
                yield as_noisy(value, Span(lows.between(start, stop) / over, highs.between(start, stop) / over))

    def _noise_ends(self, law: GroupNoise) -> tuple[PrefixSums, PrefixSums]:
        """Returns the lower and the upper ends of what noise was added to."""
        ends = [law.ends(member.place) for member in self.members if member.place is not None]
        return PrefixSums([low for low, _ in ends]), PrefixSums([high for _, high in ends])

    # ----------------------------------------------------------------------------------------------------------- places

    def _places(self) -> Iterator[Cell]:
        kind, dense = self.window.kind, 0
        for place, (start, _) in enumerate(self.peers):
            dense += start == place
            value = place + 1 if kind == "row_number" else start + 1 if kind == "rank" else dense
            yield value if self.is_known else as_noisy(value, self._place_span(place))

    def _place_span(self, place: int) -> Span:
        """Bounds a place: before a group are at least those that surely are, and at most those that may be.

        Equals may stand before it for ROW_NUMBER, and DENSE_RANK counts different values only.
        """
        surely, maybe = self._before(place)
        low = min(surely, 1) if self.window.kind == "dense_rank" else surely
        return Span(Fraction(1 + low), Fraction(1 + maybe), nullable=False)

    def _before(self, place: int) -> tuple[int, int]:
        others = len(self.groups) + len(self.uncertain) - 1
        if not self._is_ordered or (len(self.window.order) > 1 and others >= MOST_PAIRS):
            return 0, others
        if len(self.window.order) == 1:
            return self._by_one(place)
        verdicts = [self._precedes(other, self.groups[place]) for other in (*self.groups, *self.uncertain)]
        sure = sum(v is True and g.sure for v, g in zip(verdicts, (*self.groups, *self.uncertain), strict=True))
        return sure, sum(verdict is not False for verdict in verdicts) - 1

    @cached_property
    def _is_ordered(self) -> bool:
        """Returns whether there is an order, and all that noise decides in it are numbers."""
        terms = [term.expression for term in self.window.order]
        return bool(terms) and all(
            part.type.is_number or isinstance(group.resolve_expression(part), Literal)
            for part in terms
            for group in (*self.groups, *self.uncertain)
        )

    def _by_one(self, place: int) -> tuple[int, int]:
        low, high = self._ranges[place]
        surely = bisect_left(self._sure_highs, low)
        maybe = bisect_right(self._lows, high)
        return surely, min(maybe - 1, len(self.groups) + len(self.uncertain) - 1)

    @cached_property
    def _ranges(self) -> list[tuple[Any, Any]]:
        """Returns for each group between which values it is in the order, as they sort."""
        return [_range(group, self.window.order[0]) for group in self.groups]

    @cached_property
    def _lows(self) -> list[Any]:
        uncertain = [_range(group, self.window.order[0])[0] for group in self.uncertain]
        return sorted([*(low for low, _ in self._ranges), *uncertain])

    @cached_property
    def _sure_highs(self) -> list[Any]:
        found = [_range(g, self.window.order[0])[1] for g in (*self.groups, *self.uncertain) if g.sure]
        return sorted(found)

    def _precedes(self, one: ReleasedGroup, other: ReleasedGroup) -> bool | None:
        """Returns whether a group comes before another, None if that depends on noise; of equals, neither does."""
        for term in self.window.order:
            (low, high), (least, most) = _range(one, term), _range(other, term)
            if high < least:
                return True
            if low > most:
                return False
            if low != high or least != most:
                return None
        return None if self.window.kind == "row_number" else False


def _range(group: ReleasedGroup, order: SortKey) -> tuple[Any, Any]:
    """Returns between which values a group is in an order, as pairs that sort: NULL last."""
    part = group.cell(order.expression)
    if isinstance(part, NoisyNumber):
        ends = (part.low, part.high) if part.value is not None else (-float("inf"), float("inf"))
        low, high = (-ends[1], -ends[0]) if order.descending else ends
        return (0, low), (0 if part.value is not None else 1, high)
    if part is None:
        return (1, 0), (1, 0)
    key = part if not order.descending else -part if order.expression.type.is_number else _Reversed(part)  # type: ignore[operator]
    return (0, key), (0, key)


@total_ordering
@dataclass(frozen=True, slots=True)
class _Reversed:
    """A text or a date that sorts the other way round."""

    value: Any

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)


def _value(part: Cell) -> Any:
    return part.value if isinstance(part, Measured) else part
