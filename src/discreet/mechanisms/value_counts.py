"""The values of a group as counts, coarsely by blocks of points and closely where blocks were opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.mechanisms.ranks import RankAim

Key = tuple[Any, ...]
"""Which group, by the values of its keys."""

Ints = NDArray[np.int64]
Run = tuple[int, int]
"""Some of a group's blocks that are not empty, one after the other: from one to before another, by their number."""

Span = tuple[Key, int, int]
"""Blocks of a group, by the number of the first and of the last."""

Look = Callable[[Sequence[Span]], Mapping[Key, Sequence[int]]]
"""Opens blocks of groups: the points in them that have values, then how many each has."""

_NEGLIGIBLE = 2.0**-30  # of all proposals, how many may need another look


@dataclass(frozen=True, slots=True)
class RankRuns:
    """Runs of points of equal ranks, or closed blocks with the ranks at their ends; all points, in no order."""

    starts: Ints
    sizes: Ints
    below: Ints
    upto: Ints

    def least(self, rank: RankLoss) -> Ints:
        """Returns the loss of each run's points; of a closed block, the smallest possible."""
        return rank.losses(self.below, self.upto)

    def proposals(self, rank: RankLoss) -> tuple[Ints, Ints, Ints]:
        """Returns starts, sizes, losses, with the first or last point alone if it claims a rank beyond all values."""
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
class RankLoss:
    """A target among so many values; losses are in units of 1 / denominator of its share."""

    aim: RankAim
    values: int

    @property
    def unit(self) -> int:
        """Returns what losses are counted in: so many of them are one rank."""
        return self.aim.target.share.denominator

    @property
    def wanted_rank(self) -> int:
        """Returns the rank that is looked for."""
        target = self.aim.target
        return target.share.numerator * self.values + target.offset * self.unit

    @property
    def rate(self) -> Fraction:
        """Returns the rate in units of losses."""
        return self.aim.rate / self.unit

    @property
    def is_before_all(self) -> bool:
        """Returns whether the rank is below all values."""
        return self.wanted_rank < 0

    @property
    def is_after_all(self) -> bool:
        """Returns whether the rank is above all values."""
        return self.wanted_rank > self.values * self.unit

    def losses(self, below: Ints, upto: Ints) -> Ints:
        """Returns the losses of points that claim ranks from one number to another."""
        return np.maximum(np.maximum(self.unit * below - self.wanted_rank, self.wanted_rank - self.unit * upto), 0)


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
        """Returns what an engine counted."""
        return cls(last, shift, *_halves(numbers))

    @classmethod
    def of_values(cls, last: int, values: Ints) -> Histogram:
        """Returns the counts of whole numbers from 0 to `last`, all of them known."""
        return cls(last, 0, *np.unique(values, return_counts=True))

    @property
    def values(self) -> int:
        """Returns how many there are."""
        return int(self.counts.sum())

    def find_closed_blocks(self, runs: Iterable[Run]) -> list[tuple[int, int]]:
        """Returns the first and the last of blocks in some runs that are still closed and adjacent."""
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
        with suppress(AttributeError):  # neither need be known yet
            del self.known_cells
        with suppress(AttributeError):
            del self.finest
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
    def coarse(self) -> RankRuns:
        """Returns all points, with all blocks closed."""
        return self.cells((0, 0))

    def cells(self, opened: Run) -> RankRuns:
        """Returns all points, with the blocks of this run opened."""
        begin, end = opened
        first = self.blocks << self.shift
        wide = np.minimum(1 << self.shift, self.last + 1 - first)
        points, numbers = self._inside(opened)
        starts = np.concatenate([first[:begin], points, first[end:]])
        sizes = np.concatenate([wide[:begin], np.ones_like(points), wide[end:]])
        counts = np.concatenate([self.counts[:begin], numbers, self.counts[end:]])
        return self._cells(starts, sizes, counts)

    def _cells(self, starts: Ints, sizes: Ints, counts: Ints) -> RankRuns:
        """Returns the gaps before, between and after some cells in ascending order, then these."""
        upto = np.zeros(counts.size + 1, dtype=np.int64)
        np.cumsum(counts, out=upto[1:])
        gaps = np.zeros(counts.size + 1, dtype=np.int64)
        np.add(starts, sizes, out=gaps[1:])
        between = np.append(starts, self.last + 1) - gaps
        return RankRuns(
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

    def worth_opening(self, aim: RankAim) -> Run:
        """Returns the run of blocks, nearest in rank; once it is open, closed blocks are hardly ever proposed."""
        if not self.shift or not self.blocks.size:
            return 0, 0
        cells, gaps = self.coarse, self.blocks.size + 1
        rank = RankLoss(aim, self.values)
        rate, least = float(rank.rate), cells.least(rank)
        with np.errstate(under="ignore"):
            proposed = cells.sizes[gaps:] * np.exp(-rate * least[gaps:])
            certain = cells.sizes * np.exp(-rate * rank.losses(cells.upto, cells.below))  # the largest possible losses
        nearest = np.argsort(least[gaps:], kind="stable")
        rest = np.cumsum(proposed[nearest][::-1])[::-1]  # of all blocks from this one on
        wanted = nearest[rest > _NEGLIGIBLE * max(1.0, float(certain.sum()))]
        return (int(wanted.min()), int(wanted.max()) + 1) if wanted.size else (0, 0)

    @cached_property
    def known_cells(self) -> tuple[Ints, Ints, Ints]:
        """Returns the points that have values where blocks are open, and the closed blocks.

        They come as starts, sizes and counts, in order.

        The values of a cell of size one all are at its point.
        """
        closed = ~self._open
        first = self.blocks[closed] << self.shift
        wide = np.minimum(1 << self.shift, self.last + 1 - first)
        starts = np.concatenate([first, self._points])
        order = np.argsort(starts, kind="stable")
        sizes = np.concatenate([wide, np.ones_like(self._points)])[order]
        return starts[order], sizes, np.concatenate([self.counts[closed], self._numbers])[order]

    @cached_property
    def finest(self) -> RankRuns:
        """Returns all points, as closely as they are known.

        First come the gaps, one more than there are cells, then the cells.
        """
        return self._cells(*self.known_cells)

    def near(self, first: int, last: int) -> tuple[RankRuns, Ints]:
        """Returns all cells from one point to another, and for each how many values are at its only point.

        There may be a few cells more, which are beyond these points. What is known of a closed block is no number of
        values at a point: it has none.
        """
        (starts, sizes, counts), cells = self.known_cells, self.finest
        gaps = starts.size + 1
        begin = max(int(np.searchsorted(cells.starts[:gaps], first)) - 2, 0)
        end = int(np.searchsorted(cells.starts[:gaps], last, side="right")) + 1
        parts = (
            np.concatenate([one[:gaps][begin:end], one[gaps:][begin:end]])
            for one in (cells.starts, cells.sizes, cells.below, cells.upto)
        )
        at_points = np.where(sizes[begin:end] == 1, counts[begin:end], 0)
        return RankRuns(*parts), np.concatenate([np.zeros_like(cells.starts[:gaps][begin:end]), at_points])

    def at(self, point: int) -> tuple[int, int]:
        """Returns how many values are below a point that is not in a closed block, and how many are at it."""
        starts, _, counts = self.known_cells
        place = int(np.searchsorted(starts, point))
        here = place < starts.size and starts[place] == point
        return int(self.finest.below[place]), int(counts[place]) if here else 0

    def is_closed(self, point: int) -> bool:
        """Returns whether the point is in a closed block, whose values may lie anywhere in it."""
        at = self.index(point) if self.shift else None
        return at is not None and not self._open[at]

    def index(self, point: int) -> int | None:
        """Returns which of the blocks a point is in; None if its block is empty."""
        block = point >> self.shift
        at = int(np.searchsorted(self.blocks, block))
        return at if at < self.blocks.size and self.blocks[at] == block else None

    def loss(self, point: int, at: int, rank: RankLoss) -> tuple[int, int]:
        """Returns the loss of a point in an opened block, and the smallest that it could have had before."""
        before, inside = int(self.counts[:at].sum()), int(self.counts[at])
        points, counts = self._inside((at, at + 1))
        below, upto = int(counts[points < point].sum()), int(counts[points <= point].sum())
        ranks = np.array([[before + below, before], [before + upto, before + inside]], dtype=np.int64)
        own, least = rank.losses(*ranks).tolist()
        return own, least


def _halves(numbers: Sequence[int]) -> tuple[Ints, Ints]:
    both = np.array(numbers, dtype=np.int64)
    half = both.size // 2
    return both[:half], both[half:]
