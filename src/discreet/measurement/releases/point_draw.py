"""Points of a grid drawn by the exponential mechanism from counts of values, looking closely only where it matters.

Counts come coarsely first, by blocks of points. Of a block that was not opened, the ranks at its ends are known: all of
its points have at least the loss that a point with these ranks would have. The draw is by rejection: a point is
proposed with a weight that is its own, or its closed block's largest; in the second case the block is opened, and the
point is accepted with its own weight over the proposed one. Whatever was opened before, the law of the accepted point
is proportional to the points' own weights, exactly.

Blocks that carry all but a negligible part of the proposals are opened together beforehand. That choice, the only place
where floats are used, decides what is read and not what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from discreet.measurement.releases.points import Aim, Pick
from discreet.measurement.releases.value_counts import Histogram, Ints, Key, Look, Rank, Run
from discreet.mechanisms.selection import choose_point
from discreet.noise import Bits, bernoulli_exp


class Draw(Protocol):
    """One point to be drawn, by proposals."""

    key: Key
    block: int | None

    def propose(self, bits: Bits) -> bool:
        """Whether the proposal is accepted at once; if not, its block must be opened first, if it has one."""

    def accept(self, bits: Bits) -> bool:
        """Whether a proposal stays, now that its block is open."""


@dataclass
class _Draw:
    """One point to be drawn from all values."""

    key: Key
    histogram: Histogram
    pick: Pick
    opened: Run
    point: int = 0
    block: int | None = None

    @cached_property
    def rank(self) -> Rank:
        return Rank(self.pick, self.histogram.values)

    @cached_property
    def _proposals(self) -> tuple[Ints, Ints, Ints]:
        is_closed = self.opened[0] == self.opened[1]
        return (self.histogram.coarse if is_closed else self.histogram.cells(self.opened)).proposals(self.rank)

    def propose(self, bits: Bits) -> bool:
        """Whether the proposal is accepted at once; if not, its block must be opened first."""
        self.point = choose_point(*self._proposals, self.rank.rate, bits)
        self.block = self.histogram.index(self.point)
        certain = not self.histogram.shift or self.block is None or self.opened[0] <= self.block < self.opened[1]
        return certain or self._is_end

    @property
    def _is_end(self) -> bool:
        """Whether the point has no loss because it claims a rank beyond all values."""
        ends = (self.rank.is_before_all, 0), (self.rank.is_after_all, self.histogram.last)
        return any(beyond and self.point == end for beyond, end in ends)

    def accept(self, bits: Bits) -> bool:
        """Whether a proposal stays, now that its block is open."""
        own, least = self.histogram.loss(self.point, self.block or 0, self.rank)
        return bernoulli_exp(self.rank.rate * (own - least), bits=bits)


def draw(
    groups: Mapping[Key, Histogram],
    picks: Sequence[Pick],
    look: Look,
    bits: Bits,
    *,
    ahead: bool = True,
    beside: Sequence[Aim] = (),
) -> dict[Key, list[int]]:
    """For each group one point for each pick.

    Formal guarantee: the points are independent, and each has exactly the law of its pick, whatever was opened.

    Args:
        groups: counts by blocks.
        picks: what is drawn in each group.
        look: opens blocks. It is called once if there are blocks at all; again, but for a negligible chance, never.
        bits: the source of randomness.
        ahead: whether blocks that matter are opened beforehand.
        beside: what will be drawn from the same values later, and is opened now.
    """
    draws = [
        _Draw(key, histogram, pick, histogram.worth_opening(pick) if ahead else (0, 0))
        for key, histogram in groups.items()
        for pick in picks
    ]
    if any(histogram.shift for histogram in groups.values()):
        later = [(key, one.worth_opening(aim)) for key, one in groups.items() for aim in beside if ahead]
        _open(groups, [*((made.key, made.opened) for made in draws), *later], look)
    settle(draws, groups, look, bits)
    found: dict[Key, list[int]] = {key: [] for key in groups}
    for made in draws:
        found[made.key].append(made.point)
    return found


def settle(draws: Sequence[Draw], groups: Mapping[Key, Histogram], look: Look, bits: Bits) -> None:
    """Proposes points until all are accepted, opening the blocks of those that are in doubt."""
    pending = draws
    while pending:
        doubtful = [made for made in pending if not made.propose(bits)]
        wanted = [(made.key, (made.block, made.block + 1)) for made in doubtful if made.block is not None]
        if any(groups[key].closed([run]) for key, run in wanted):
            _open(groups, wanted, look)
        pending = [made for made in doubtful if not made.accept(bits)]


def _open(groups: Mapping[Key, Histogram], wanted: Iterable[tuple[Key, Run]], look: Look) -> None:
    """Opens what is still closed, all of it in one look."""
    runs: dict[Key, list[Run]] = {}
    for key, run in wanted:
        runs.setdefault(key, []).append(run)
    closed = {key: groups[key].closed(of_key) for key, of_key in runs.items()}
    seen = look([(key, first, last) for key, pairs in closed.items() for first, last in pairs])
    for key, pairs in closed.items():
        if pairs:
            groups[key].open(pairs, seen.get(key, ()))
