"""Quantiles drawn from counts of values that are looked at closely only where it matters.

*One point alone* (`draw`). Counts come coarsely first, by blocks of points. Of a block that was not opened, the
ranks at its ends are known: all of its points have at least the loss that a point with these ranks would have. The draw
is by rejection: a point is proposed with a weight that is its own, or its closed block's largest; in the second case
the block is opened, and the point is accepted with its own weight over the proposed one. Whatever was opened before,
the law of the accepted point is proportional to the points' own weights, exactly. Blocks that carry all but a
negligible part of the proposals are opened together beforehand. That choice is made with floats: it decides what is
read and not what is drawn.

*Several points* (`divide`), level by level, each from the values between two that were drawn before. Values at a point
of the grid are thought of as spread evenly over its 2^grain places, so that a part may end between values that are
equal: a part then holds the share of values that it was meant to, however many are equal. The mass below a place is
counted in units of 2^-grain. A place claims the masses from its beginning to its end, so that every mass is claimed;
the last one of a part that another begins with claims the mass at its beginning alone. Again a place is proposed with
the largest weight of its run and accepted with its own over that. Points with many values are cut into runs near the
target, so that few proposals are rejected; floats decide how they are cut, which is how long it takes and not what is
drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.mechanisms.private_selection import choose_point
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import FARTHEST, Pick, RankAim
from discreet.mechanisms.value_counts import Histogram, Ints, Key, Look, RankLoss, Run
from discreet.noise import Bits, bernoulli_exp, choose_exponential, uniform_below

_STEPS = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64])
_CUTS = np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
"""Where a point with many values is cut, counted from the target, in units of a loss of 1 / rate."""

_MANY = 2.0  # the loss times the rate between the ends of a point from which on it is cut
_FAR = 60.0  # the loss times the rate from which on next to nothing is proposed


class PointDraw(Protocol):
    """One point to be drawn, by proposals."""

    key: Key
    block: int | None

    def propose(self, bits: Bits) -> bool:
        """Proposes a point; returns whether it is accepted at once, or its block, if any, must be opened first."""

    def accept(self, bits: Bits) -> bool:
        """Returns whether a proposal stays, now that its block is open."""


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
    def rank(self) -> RankLoss:
        return RankLoss(self.pick, self.histogram.values)

    @cached_property
    def _proposals(self) -> tuple[Ints, Ints, Ints]:
        is_closed = self.opened[0] == self.opened[1]
        return (self.histogram.coarse if is_closed else self.histogram.cells(self.opened)).proposals(self.rank)

    def propose(self, bits: Bits) -> bool:
        """Proposes a point; returns whether it is accepted at once, or its block must be opened first."""
        self.point = choose_point(*self._proposals, self.rank.rate, bits)
        self.block = self.histogram.index(self.point)
        certain = not self.histogram.shift or self.block is None or self.opened[0] <= self.block < self.opened[1]
        return certain or self._is_end

    @property
    def _is_end(self) -> bool:
        """Returns whether the point has no loss because it claims a rank beyond all values."""
        ends = (self.rank.is_before_all, 0), (self.rank.is_after_all, self.histogram.last)
        return any(beyond and self.point == end for beyond, end in ends)

    def accept(self, bits: Bits) -> bool:
        """Returns whether a proposal stays, now that its block is open."""
        own, least = self.histogram.loss(self.point, self.block or 0, self.rank)
        return bernoulli_exp(self.rank.rate * (own - least), bits=bits)


def draw(
    groups: Mapping[Key, Histogram],
    picks: Sequence[Pick],
    look: Look,
    bits: Bits,
    *,
    ahead: bool = True,
    beside: Sequence[RankAim] = (),
) -> dict[Key, list[int]]:
    """Draws in each group one point for each pick.

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


def settle(draws: Sequence[PointDraw], groups: Mapping[Key, Histogram], look: Look, bits: Bits) -> None:
    """Proposes points until all are accepted, opening the blocks of those that are in doubt."""
    pending = draws
    while pending:
        doubtful = [made for made in pending if not made.propose(bits)]
        wanted = [(made.key, (made.block, made.block + 1)) for made in doubtful if made.block is not None]
        if any(groups[key].find_closed_blocks([run]) for key, run in wanted):
            _open(groups, wanted, look)
        pending = [made for made in doubtful if not made.accept(bits)]


def _open(groups: Mapping[Key, Histogram], wanted: Iterable[tuple[Key, Run]], look: Look) -> None:
    """Opens what is still closed, all of it in one look."""
    runs: dict[Key, list[Run]] = {}
    for key, run in wanted:
        runs.setdefault(key, []).append(run)
    closed = {key: groups[key].find_closed_blocks(of_key) for key, of_key in runs.items()}
    seen = look([(key, first, last) for key, pairs in closed.items() for first, last in pairs])
    for key, pairs in closed.items():
        if pairs:
            groups[key].open(pairs, seen.get(key, ()))


@dataclass(frozen=True, slots=True)
class PlaceRuns:
    """Runs of places.

    Args:
        starts: the first place of each.
        sizes: how many they are.
        below: the mass below them.
        upto: with theirs.
        slopes: the values at the point that the places are of; 0 for a closed block, whose values lie anywhere in it.
    """

    starts: Ints
    sizes: Ints
    below: Ints
    upto: Ints
    slopes: Ints

    @classmethod
    def between(cls, low: int, high: int, histogram: Histogram, grain: int) -> PlaceRuns:
        """Returns the places from one to another; neither end is inside a closed block."""
        found, slopes = histogram.near(low >> grain, high >> grain)
        starts, ends = found.starts << grain, (found.starts + found.sizes << grain) - 1
        below = found.below << grain
        begin, end = np.maximum(starts, low), np.minimum(ends, high)
        upto = np.where(slopes > 0, below + slopes * (end + 1 - starts), found.upto << grain)
        kept = begin <= end
        parts = (begin, end - begin + 1, below + slopes * (begin - starts), upto, slopes)
        return cls(*(part[kept] for part in parts))

    def cut(self, many: NDArray[np.bool_], mass: float, scale: float) -> PlaceRuns:
        """Cuts some runs of one point each around a mass, each cut about a `scale` of mass from the next."""
        slopes, sizes = self.slopes[many][:, None], self.sizes[many][:, None]
        middle = (mass - self.below[many][:, None]) / slopes
        cuts = np.clip(np.floor(middle + np.maximum(scale / slopes, 1.0) * _CUTS), 0, sizes).astype(np.int64)
        ends = np.concatenate([np.zeros_like(sizes), cuts, sizes], axis=1)
        first, size = ends[:, :-1], np.diff(ends, axis=1)
        below = self.below[many][:, None] + slopes * first
        made = (self.starts[many][:, None] + first, size, below, below + slopes * size, slopes + 0 * first)
        real = size > 0
        old = (self.starts, self.sizes, self.below, self.upto, self.slopes)
        return PlaceRuns(*(np.concatenate([one[~many], other[real]]) for one, other in zip(old, made, strict=True)))


@dataclass
class IntervalDraw:
    """One place to be drawn between two others, these included.

    Args:
        key: of the group.
        histogram: its values.
        grain: how finely a point is divided.
        share: of the mass between the two ends, which is looked for.
        rate: in units of ranks.
        low: the first place.
        high: the last place.
        masses: at both ends.
    """

    key: Key
    histogram: Histogram
    grain: int
    share: Fraction
    rate: Fraction
    low: int
    high: int
    masses: tuple[int, int]
    place: int = 0
    block: int | None = None
    least: int = 0

    @property
    def _unit(self) -> int:
        return self.share.denominator

    @cached_property
    def _wanted_rank(self) -> int:
        start, end = self.masses
        return self._unit * start + self.share.numerator * (end - start)

    @cached_property
    def _rate(self) -> Fraction:
        """Returns the rate in units of losses."""
        return self.rate / (self._unit << self.grain)

    def _losses(self, cells: PlaceRuns) -> Ints:
        """Returns the smallest loss in each cell."""
        upto: Ints = np.minimum(cells.upto, self.masses[1])
        return np.maximum(
            np.maximum(self._unit * cells.below - self._wanted_rank, self._wanted_rank - self._unit * upto), 0
        )

    @cached_property
    def proposals(self) -> tuple[PlaceRuns, Ints]:
        """Returns runs of places, and the smallest loss in each."""
        cells = PlaceRuns.between(self.low, self.high, self.histogram, self.grain)
        losses, rate = self._losses(cells), float(self._rate)
        many = (cells.slopes * (rate * self._unit) * cells.sizes > _MANY) & (losses * rate < _FAR)
        if many.any():
            cells = cells.cut(many, self._wanted_rank / self._unit, 1 / (rate * self._unit))
            losses = self._losses(cells)
        return cells, losses

    def propose(self, bits: Bits) -> bool:
        """Proposes a place; returns False, because whether it stays is always asked."""
        cells, losses = self.proposals
        cell = choose_exponential(losses - losses.min(), self._rate, bits, weights=cells.sizes)
        self.place = int(cells.starts[cell]) + uniform_below(int(cells.sizes[cell]), bits=bits)
        self.least, point = int(losses[cell]), self.place >> self.grain
        self.block = self.histogram.index(point) if self.histogram.is_closed(point) else None
        return False

    def loss(self, place: int) -> int:
        """Returns the loss of a place that is not in a closed block."""
        below, upto = find_mass_range(self.histogram, place, self.grain)
        return max(
            0, self._unit * below - self._wanted_rank, self._wanted_rank - self._unit * min(upto, self.masses[1])
        )

    def accept(self, bits: Bits) -> bool:
        """Returns whether a proposal stays, now that its block is open."""
        return bernoulli_exp(self._rate * (self.loss(self.place) - self.least), bits=bits)


def find_mass_range(histogram: Histogram, place: int, grain: int) -> tuple[int, int]:
    """Returns the masses at the beginning and at the end of a place that is not in a closed block."""
    point, inside = place >> grain, place & (1 << grain) - 1
    below, here = histogram.at(point)
    start = (below << grain) + here * inside
    return start, start + here


def divide(groups: Mapping[Key, Histogram], tree: QuantileTree, look: Look, bits: Bits) -> dict[Key, list[int]]:
    """Draws in each group one place for each quantile of a tree, in ascending order.

    Formal guarantee: given the places drawn before it, each has exactly the law of the tree, whatever was opened, and
    those of one level are independent.

    Args:
        groups: counts by blocks.
        tree: what is drawn in each group.
        look: opens blocks; what matters should be open already.
        bits: the source of randomness.
    """
    found: dict[Key, dict[int, int]] = {key: {} for key in groups}
    for level in range(len(tree.levels)):
        numbers = tree.of_level(level)
        parts = {(key, k): part_of(key, groups[key], tree, k, found[key]) for key in groups for k in numbers}
        settle(list(parts.values()), groups, look, bits)
        for (key, number), part in parts.items():
            found[key][number] = part.place
    return {key: [places[number] for number in sorted(places)] for key, places in found.items()}


def part_of(key: Key, histogram: Histogram, tree: QuantileTree, number: int, before: Mapping[int, int]) -> IntervalDraw:
    """Returns where a quantile is looked for, given the places that were drawn before it.

    Raises:
        InternalError: if a group has more values than losses can be counted for.
    """
    if histogram.values > FARTHEST:
        raise InternalError(f"A group has more than {FARTHEST:,} values.")
    node, grain = tree.nodes[number], tree.grain
    low, start = 0, 0
    high, end = (histogram.last + 1 << grain) - 1, histogram.values << grain
    if node.lower is not None:
        low = before[node.lower]
        start, _ = find_mass_range(histogram, low, grain)
    if node.upper is not None:
        high = before[node.upper]
        end, _ = find_mass_range(histogram, high, grain)
    return IntervalDraw(key, histogram, grain, node.own, tree.rates[number], low, high, (start, end))
