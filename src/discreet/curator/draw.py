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

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.curator.pick import Pick
from discreet.errors import InternalError
from discreet.mechanisms.selection import choose_point
from discreet.noise import Bits, bernoulli_exp
from discreet.plan.aggregates import Steps
from discreet.plan.nodes import Value

Key = tuple[Value, ...]
Ints = NDArray[np.int64]
Place = tuple[Key, int]
Look = Callable[[Sequence[Place]], Mapping[Key, Sequence[int]]]
"""Opens blocks of groups: the points in them that have values, then how many each has, in steps above the lowest."""

MOST_POINTS = 4096
"""A grid of at most so many points is read as it is."""

_BLOCKS = 1024
_NEGLIGIBLE = 2.0**-30  # of all proposals, how many may need another look


def shift_of(steps: Steps) -> int:
    """How wide blocks are, as a power of two: a function of the public grid alone."""
    return 0 if steps.width < MOST_POINTS else max(0, (steps.width // _BLOCKS).bit_length())


@dataclass(frozen=True, slots=True)
class Cells:
    """Runs of points of equal ranks, or closed blocks with the ranks at their ends; all points, in no order."""

    starts: Ints
    sizes: Ints
    below: Ints
    upto: Ints

    @property
    def values(self) -> int:
        """How many values there are."""
        return int(self.upto.max())

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
        opened: points and counts of the blocks that were opened.
    """

    last: int
    shift: int
    blocks: Ints
    counts: Ints
    opened: dict[int, tuple[Ints, Ints]] = field(default_factory=dict)

    @classmethod
    def of(cls, last: int, shift: int, numbers: Sequence[int]) -> Histogram:
        """What an engine counted."""
        blocks, counts = _halves(numbers)
        return cls(last, shift, blocks, counts)

    def open(self, wanted: Collection[int], numbers: Sequence[int]) -> None:
        """Takes in the points of blocks that were asked for.

        Raises:
            InternalError: if a block has not as many values as it had: the data changed between two looks.
        """
        points, counts = _halves(numbers)
        edges = {block: np.searchsorted(points, (block << self.shift, (block + 1) << self.shift)) for block in wanted}
        known = dict(zip(self.blocks.tolist(), self.counts.tolist(), strict=True))
        for block, (begin, end) in edges.items():
            if int(counts[begin:end].sum()) != known[block]:
                raise InternalError("The data changed while they were read.")
            self.opened[block] = points[begin:end], counts[begin:end]

    @cached_property
    def coarse(self) -> Cells:
        """All points, with all blocks closed."""
        return self.cells()

    def seen(self, opened: Collection[int]) -> Cells:
        """All points, with these blocks opened."""
        return self.cells(opened) if opened else self.coarse

    def cells(self, opened: Collection[int] = ()) -> Cells:
        """The same, worked out anew."""
        inside = [self.opened[block] for block in opened]
        closed = np.isin(self.blocks, list(opened), invert=True) if opened else np.ones(self.blocks.size, dtype=bool)
        first = self.blocks[closed] << self.shift
        starts = np.concatenate([first, *(points for points, _ in inside)])
        wide = np.minimum(1 << self.shift, self.last + 1 - first)
        sizes = np.concatenate([wide, np.ones(starts.size - first.size, dtype=np.int64)])
        counts = np.concatenate([self.counts[closed], *(numbers for _, numbers in inside)])
        order = np.argsort(starts)
        starts, sizes = starts[order], sizes[order]
        upto = np.concatenate([[0], np.cumsum(counts[order], dtype=np.int64)]).astype(np.int64)
        gaps = np.concatenate([[0], starts + sizes]).astype(np.int64)
        between = np.append(starts, self.last + 1) - gaps
        return Cells(
            np.concatenate([gaps, starts]),
            np.concatenate([between, sizes]),
            np.concatenate([upto, upto[:-1]]),
            np.concatenate([upto, upto[1:]]),
        )

    def worth_opening(self, pick: Pick) -> list[int]:
        """The closed blocks whose proposals are not negligible together, the nearest in rank first."""
        if not self.shift or not self.blocks.size:
            return []
        cells = self.coarse
        rank, gaps = _Rank(pick, cells.values), self.blocks.size + 1
        rate = float(rank.rate)
        with np.errstate(under="ignore"):
            proposed = cells.sizes * np.exp(-rate * cells.least(rank))
            certain = cells.sizes * np.exp(-rate * rank.losses(cells.upto, cells.below))  # the largest possible losses
        nearest = np.argsort(cells.least(rank)[gaps:], kind="stable")
        rest = np.cumsum(proposed[gaps:][nearest][::-1])[::-1]  # of all blocks from this one on
        wanted = rest > _NEGLIGIBLE * max(1.0, float(certain.sum()))
        return [int(block) for block in self.blocks[nearest[wanted]]]

    def loss(self, point: int, rank: _Rank) -> tuple[int, int]:
        """The loss of a point in an opened block, and the smallest that it could have had before."""
        block = point >> self.shift
        at = int(np.searchsorted(self.blocks, block))
        before, inside = int(self.counts[:at].sum()), int(self.counts[at])
        points, counts = self.opened[block]
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
    opened: list[int]
    point: int | None = None
    proposed: tuple[Ints, Ints, Ints] | None = None

    @cached_property
    def rank(self) -> _Rank:
        return _Rank(self.pick, int(self.histogram.counts.sum()))

    def propose(self, bits: Bits) -> int | None:
        """A block that must be opened before the proposal can be accepted; None if it was accepted at once."""
        if self.proposed is None:
            self.proposed = self.histogram.seen(self.opened).proposals(self.rank)
        self.point = choose_point(*self.proposed, self.rank.rate, bits)
        block = self.point >> self.histogram.shift
        certain = not self.histogram.shift or block in self.opened or block not in self.histogram.blocks
        return None if certain or self._is_end else block

    @property
    def _is_end(self) -> bool:
        """Whether the point has no loss because it claims a rank beyond all values."""
        ends = (self.rank.is_before_all, 0), (self.rank.is_after_all, self.histogram.last)
        return any(beyond and self.point == end for beyond, end in ends)

    def accept(self, bits: Bits) -> bool:
        """Whether a proposal stays, now that its block is open."""
        own, least = self.histogram.loss(self.point or 0, self.rank)
        return bernoulli_exp(self.rank.rate * (own - least), bits=bits)


def draw(
    groups: Mapping[Key, Histogram], picks: Sequence[Pick], look: Look, bits: Bits, *, ahead: bool = True
) -> dict[Key, list[int]]:
    """For each group one point for each pick.

    Formal guarantee: the points are independent, and each has exactly the law of its pick, whatever was opened.

    Args:
        groups: counts by blocks.
        picks: what is drawn in each group.
        look: opens blocks. It is called once; again, beside a negligible probability, never.
        bits: the source of randomness.
        ahead: whether blocks that matter are opened beforehand.
    """
    wanted = {key: [counts.worth_opening(pick) if ahead else [] for pick in picks] for key, counts in groups.items()}
    if any(histogram.shift for histogram in groups.values()):
        _open(groups, [(key, block) for key, lists in wanted.items() for blocks in lists for block in blocks], look)
    draws = [
        _Draw(key, histogram, pick, opened)
        for key, histogram in groups.items()
        for pick, opened in zip(picks, wanted[key], strict=True)
    ]
    pending = draws
    while pending:
        doubtful = [(made, block) for made in pending if (block := made.propose(bits)) is not None]
        if doubtful:
            _open(groups, [(made.key, block) for made, block in doubtful], look)
        pending = [made for made, _ in doubtful if not made.accept(bits)]
    found: dict[Key, list[int]] = {key: [] for key in groups}
    for made in draws:
        found[made.key].append(made.point or 0)
    return found


def _open(groups: Mapping[Key, Histogram], places: Sequence[Place], look: Look) -> None:
    """Opens what is still closed, all of it in one look."""
    missing = [(key, block) for key, block in dict.fromkeys(places) if block not in groups[key].opened]
    if missing or not any(histogram.opened for histogram in groups.values()):
        seen, by_key = look(missing), dict[Key, list[int]]()
        for key, block in missing:
            by_key.setdefault(key, []).append(block)
        for key, blocks in by_key.items():
            groups[key].open(blocks, seen.get(key, ()))


def _halves(numbers: Sequence[int]) -> tuple[Ints, Ints]:
    both = np.array(numbers, dtype=np.int64)
    half = both.size // 2
    return both[:half], both[half:]
