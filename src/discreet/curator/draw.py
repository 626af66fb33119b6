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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.curator.pick import Pick
from discreet.errors import InternalError
from discreet.mechanisms.selection import choose_point
from discreet.noise import Bits, bernoulli_exp
from discreet.plan.nodes import Value

Key = tuple[Value, ...]
Ints = NDArray[np.int64]
Run = tuple[int, int]
"""Some of a group's blocks that are not empty, one after the other: from one to before another, by their number."""

Place = tuple[Key, int, int]
Look = Callable[[Sequence[Place]], Mapping[Key, Sequence[int]]]
"""Opens blocks of groups, from a first to a last one: the points in them that have values, then how many each has."""

_NEGLIGIBLE = 2.0**-30  # of all proposals, how many may need another look


@dataclass(frozen=True, slots=True)
class Cells:
    """Runs of points of equal ranks, or closed blocks with the ranks at their ends; all points, in no order."""

    starts: Ints
    sizes: Ints
    below: Ints
    upto: Ints

    def least(self, rank: _Rank) -> Ints:
        """The loss of each run's points; of a closed block, the smallest possible."""
        return rank.losses(self.below, self.upto)

    def proposals(self, rank: _Rank) -> tuple[Ints, Ints, Ints]:
        """Starts, sizes and losses, with the first or last point by itself where it claims a rank beyond all values."""
        if not (rank.is_before_all or rank.is_after_all):
            return self.starts, self.sizes, self.least(rank)
        starts, sizes, losses = self.starts.copy(), self.sizes.copy(), self.least(rank)
        ends = []
        if rank.is_before_all:
            at = np.flatnonzero((starts == 0) & (sizes > 0))
            starts[at] += 1
            sizes[at] -= 1
            ends.append(0)
        if rank.is_after_all:
            last = int((starts + sizes).max()) - 1
            at = np.flatnonzero((starts + sizes == last + 1) & (sizes > 0))
            sizes[at] -= 1
            ends.append(last)
        more = np.array(ends, dtype=np.int64)
        parts = (starts, more), (sizes, np.ones_like(more)), (losses, np.zeros_like(more))
        one, two, three = (np.concatenate(pair) for pair in parts)
        return one, two, three


@dataclass(frozen=True, slots=True)
class _Rank:
    """A target among so many values; losses are in units of 1 / denominator of its share."""

    pick: Pick
    values: int

    @property
    def unit(self) -> int:
        return self.pick.target.share.denominator

    @property
    def wanted(self) -> int:
        target = self.pick.target
        return target.share.numerator * self.values + target.offset * self.unit

    @property
    def rate(self) -> Fraction:
        return self.pick.rate / self.unit

    @property
    def is_before_all(self) -> bool:
        return self.wanted < 0

    @property
    def is_after_all(self) -> bool:
        return self.wanted > self.values * self.unit

    def losses(self, below: Ints, upto: Ints) -> Ints:
        return np.maximum(np.maximum(self.unit * below - self.wanted, self.wanted - self.unit * upto), 0)


@dataclass
class Histogram:
    """The values of one group: how many are in each block, and at which points where it was opened.

    Args:
        last: the largest point; the smallest is 0.
        shift: blocks are 2^shift points wide.
        blocks: those that are not empty, in ascending order.
        counts: of their values.
    """

    last: int
    shift: int
    blocks: Ints
    counts: Ints

    def __post_init__(self) -> None:
        self._open = np.zeros(self.blocks.size, dtype=bool)
        self._points = self._numbers = np.zeros(0, dtype=np.int64)

    @classmethod
    def of(cls, last: int, shift: int, numbers: Sequence[int]) -> Histogram:
        """What an engine counted."""
        return cls(last, shift, *_halves(numbers))

    @property
    def values(self) -> int:
        """How many there are."""
        return int(self.counts.sum())

    def closed(self, runs: Iterable[Run]) -> list[tuple[int, int]]:
        """Of runs of blocks, the first and the last of those that are still closed and beside each other."""
        wanted = np.zeros(self.blocks.size + 2, dtype=np.int8)
        for begin, end in runs:
            wanted[begin + 1 : end + 1] = 1
        wanted[1:-1][self._open] = 0
        edges = np.diff(wanted)
        pairs = zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True)
        return [(int(self.blocks[begin]), int(self.blocks[end - 1])) for begin, end in pairs]

    def open(self, first_and_last: Sequence[tuple[int, int]], numbers: Sequence[int]) -> None:
        """Takes in the points of blocks that were asked for.

        Raises:
            InternalError: if a block has not as many values as it had: the data changed between two looks.
        """
        points, counts = _halves(numbers)
        for first, last in first_and_last:
            self._open[np.searchsorted(self.blocks, first) : np.searchsorted(self.blocks, last, "right")] = True
        merged = np.concatenate([self._points, points])
        order = np.argsort(merged, kind="stable")
        self._points, self._numbers = merged[order], np.concatenate([self._numbers, counts])[order]
        found = np.zeros_like(self.counts)
        place = np.searchsorted(self.blocks, self._points >> self.shift)
        if place.size and place[-1] >= self.blocks.size:
            raise InternalError("The data changed while they were read.")
        np.add.at(found, place, self._numbers)
        if not np.array_equal(found[self._open], self.counts[self._open]):
            raise InternalError("The data changed while they were read.")

    @cached_property
    def coarse(self) -> Cells:
        """All points, with all blocks closed."""
        return self.cells((0, 0))

    def cells(self, opened: Run) -> Cells:
        """All points, with the blocks of this run opened."""
        begin, end = opened
        first = self.blocks << self.shift
        wide = np.minimum(1 << self.shift, self.last + 1 - first)
        points, numbers = self._inside(opened)
        starts = np.concatenate([first[:begin], points, first[end:]])
        sizes = np.concatenate([wide[:begin], np.ones_like(points), wide[end:]])
        counts = np.concatenate([self.counts[:begin], numbers, self.counts[end:]])
        upto = np.zeros(counts.size + 1, dtype=np.int64)
        np.cumsum(counts, out=upto[1:])
        gaps = np.zeros(counts.size + 1, dtype=np.int64)
        np.add(starts, sizes, out=gaps[1:])
        between = np.append(starts, self.last + 1) - gaps
        return Cells(
            np.concatenate([gaps, starts]),
            np.concatenate([between, sizes]),
            np.concatenate([upto, upto[:-1]]),
            np.concatenate([upto, upto[1:]]),
        )

    def _inside(self, run: Run) -> tuple[Ints, Ints]:
        begin, end = run
        if begin == end:
            return self._points[:0], self._numbers[:0]
        ends = (self.blocks[begin] << self.shift, (self.blocks[end - 1] + 1) << self.shift)
        a, b = np.searchsorted(self._points, ends)
        return self._points[a:b], self._numbers[a:b]

    def worth_opening(self, pick: Pick) -> Run:
        """The run of blocks, nearest in rank, beside which all closed blocks have negligible proposals together."""
        if not self.shift or not self.blocks.size:
            return 0, 0
        cells, gaps = self.coarse, self.blocks.size + 1
        rank = _Rank(pick, self.values)
        rate, least = float(rank.rate), cells.least(rank)
        with np.errstate(under="ignore"):
            proposed = cells.sizes[gaps:] * np.exp(-rate * least[gaps:])
            certain = cells.sizes * np.exp(-rate * rank.losses(cells.upto, cells.below))  # the largest possible losses
        nearest = np.argsort(least[gaps:], kind="stable")
        rest = np.cumsum(proposed[nearest][::-1])[::-1]  # of all blocks from this one on
        wanted = nearest[rest > _NEGLIGIBLE * max(1.0, float(certain.sum()))]
        return (int(wanted.min()), int(wanted.max()) + 1) if wanted.size else (0, 0)

    def index(self, point: int) -> int | None:
        """Which of the blocks a point is in; None if its block is empty."""
        block = point >> self.shift
        at = int(np.searchsorted(self.blocks, block))
        return at if at < self.blocks.size and self.blocks[at] == block else None

    def loss(self, point: int, at: int, rank: _Rank) -> tuple[int, int]:
        """The loss of a point in an opened block, and the smallest that it could have had before."""
        before, inside = int(self.counts[:at].sum()), int(self.counts[at])
        points, counts = self._inside((at, at + 1))
        below, upto = int(counts[points < point].sum()), int(counts[points <= point].sum())
        ranks = np.array([[before + below, before], [before + upto, before + inside]], dtype=np.int64)
        own, least = rank.losses(*ranks).tolist()
        return own, least


@dataclass
class _Draw:
    """One point to be drawn."""

    key: Key
    histogram: Histogram
    pick: Pick
    opened: Run
    point: int = 0
    block: int | None = None

    @cached_property
    def rank(self) -> _Rank:
        return _Rank(self.pick, self.histogram.values)

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
    groups: Mapping[Key, Histogram], picks: Sequence[Pick], look: Look, bits: Bits, *, ahead: bool = True
) -> dict[Key, list[int]]:
    """For each group one point for each pick.

    Formal guarantee: the points are independent, and each has exactly the law of its pick, whatever was opened.

    Args:
        groups: counts by blocks.
        picks: what is drawn in each group.
        look: opens blocks. It is called once if there are blocks at all; again, but for a negligible chance, never.
        bits: the source of randomness.
        ahead: whether blocks that matter are opened beforehand.
    """
    draws = [
        _Draw(key, histogram, pick, histogram.worth_opening(pick) if ahead else (0, 0))
        for key, histogram in groups.items()
        for pick in picks
    ]
    if any(histogram.shift for histogram in groups.values()):
        _open(groups, [(made.key, made.opened) for made in draws], look)
    pending = draws
    while pending:
        doubtful = [made for made in pending if not made.propose(bits)]
        wanted = [(made.key, (made.block, made.block + 1)) for made in doubtful if made.block is not None]
        if any(groups[key].closed([run]) for key, run in wanted):
            _open(groups, wanted, look)
        pending = [made for made in doubtful if not made.accept(bits)]
    found: dict[Key, list[int]] = {key: [] for key in groups}
    for made in draws:
        found[made.key].append(made.point)
    return found


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


def _halves(numbers: Sequence[int]) -> tuple[Ints, Ints]:
    both = np.array(numbers, dtype=np.int64)
    half = both.size // 2
    return both[:half], both[half:]
