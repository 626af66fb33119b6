"""Points of several quantiles drawn level by level, each from the values between two that were drawn before.

Values at a point of the grid are thought of as spread evenly over its 2^grain places, so that a part may end between
values that are equal: a part then holds the share of values that it was meant to, however many are equal. The mass
below a place is counted in units of 2^-grain. A place claims the masses from its beginning to its end, so that every
mass is claimed; the last one of a part that another begins with claims the mass at its beginning alone.

The draw is by rejection, as in `draw`: a place is proposed with the largest weight of its cell and accepted with its
own over that. Points with many values are cut into cells near the target, so that few proposals are rejected; how they
are cut is decided with floats, which decides how long it takes and not what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InternalError
from discreet.measurement.releases.point_draw import settle
from discreet.measurement.releases.points import FARTHEST
from discreet.measurement.releases.quantile_tree import Tree
from discreet.measurement.releases.value_counts import Histogram, Ints, Key, Look
from discreet.noise import Bits, bernoulli_exp, choose_exponential, uniform_below

_STEPS = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64])
_CUTS = np.concatenate([-_STEPS[::-1], [0.0], _STEPS])
"""Where a point with many values is cut, counted from the target, in units of a loss of 1 / rate."""

_MANY = 2.0  # the loss times the rate between the ends of a point from which on it is cut
_FAR = 60.0  # the loss times the rate from which on next to nothing is proposed


@dataclass(frozen=True, slots=True)
class Cells:
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
    def of(cls, histogram: Histogram, grain: int) -> Cells:
        """All places of the grid."""
        found, (_, sizes, counts) = histogram.finest, histogram.known
        slopes = np.concatenate([np.zeros(counts.size + 1, dtype=np.int64), np.where(sizes == 1, counts, 0)])
        return cls(found.starts << grain, found.sizes << grain, found.below << grain, found.upto << grain, slopes)

    def within(self, low: int, high: int) -> Cells:
        """From one place to another, neither of which is inside a closed block."""
        begin, end = np.maximum(self.starts, low), np.minimum(self.starts + self.sizes - 1, high)
        below = self.below + self.slopes * (begin - self.starts)
        upto = np.where(self.slopes > 0, self.below + self.slopes * (end + 1 - self.starts), self.upto)
        kept = begin <= end
        return Cells(*(part[kept] for part in (begin, end - begin + 1, below, upto, self.slopes)))

    def cut(self, many: NDArray[np.bool_], mass: float, scale: float) -> Cells:
        """Some cells of one point each cut around a mass, each cut about a `scale` of mass from the next."""
        slopes, sizes = self.slopes[many][:, None], self.sizes[many][:, None]
        middle = (mass - self.below[many][:, None]) / slopes
        cuts = np.clip(np.floor(middle + np.maximum(scale / slopes, 1.0) * _CUTS), 0, sizes).astype(np.int64)
        ends = np.concatenate([np.zeros_like(sizes), cuts, sizes], axis=1)
        first, size = ends[:, :-1], np.diff(ends, axis=1)
        below = self.below[many][:, None] + slopes * first
        made = (self.starts[many][:, None] + first, size, below, below + slopes * size, slopes + 0 * first)
        real = size > 0
        old = (self.starts, self.sizes, self.below, self.upto, self.slopes)
        return Cells(*(np.concatenate([one[~many], other[real]]) for one, other in zip(old, made, strict=True)))


@dataclass
class Part:
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
    def _wanted(self) -> int:
        start, end = self.masses
        return self._unit * start + self.share.numerator * (end - start)

    @cached_property
    def _rate(self) -> Fraction:
        """In units of losses."""
        return self.rate / (self._unit << self.grain)

    def _losses(self, cells: Cells) -> Ints:
        """The smallest in each cell."""
        upto: Ints = np.minimum(cells.upto, self.masses[1])
        return np.maximum(np.maximum(self._unit * cells.below - self._wanted, self._wanted - self._unit * upto), 0)

    @cached_property
    def proposals(self) -> tuple[Cells, Ints]:
        """Cells, and the smallest loss in each."""
        cells = Cells.of(self.histogram, self.grain).within(self.low, self.high)
        losses, rate = self._losses(cells), float(self._rate)
        many = (cells.slopes * (rate * self._unit) * cells.sizes > _MANY) & (losses * rate < _FAR)
        if many.any():
            cells = cells.cut(many, self._wanted / self._unit, 1 / (rate * self._unit))
            losses = self._losses(cells)
        return cells, losses

    def propose(self, bits: Bits) -> bool:
        """False: whether a proposal stays is always asked."""
        cells, losses = self.proposals
        cell = choose_exponential(losses - losses.min(), self._rate, bits, weights=cells.sizes)
        self.place = int(cells.starts[cell]) + uniform_below(int(cells.sizes[cell]), bits=bits)
        self.least, point = int(losses[cell]), self.place >> self.grain
        self.block = self.histogram.index(point) if self.histogram.is_closed(point) else None
        return False

    def loss(self, place: int) -> int:
        """Of a place that is not in a closed block."""
        below, upto = claimed(self.histogram, place, self.grain)
        return max(0, self._unit * below - self._wanted, self._wanted - self._unit * min(upto, self.masses[1]))

    def accept(self, bits: Bits) -> bool:
        """Whether a proposal stays, now that its block is open."""
        return bernoulli_exp(self._rate * (self.loss(self.place) - self.least), bits=bits)


def claimed(histogram: Histogram, place: int, grain: int) -> tuple[int, int]:
    """The masses at the beginning and at the end of a place that is not in a closed block."""
    point, inside = place >> grain, place & (1 << grain) - 1
    below, here = histogram.at(point)
    start = (below << grain) + here * inside
    return start, start + here


def divide(groups: Mapping[Key, Histogram], tree: Tree, look: Look, bits: Bits) -> dict[Key, list[int]]:
    """For each group one place for each quantile of a tree, in ascending order.

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


def part_of(key: Key, histogram: Histogram, tree: Tree, number: int, before: Mapping[int, int]) -> Part:
    """Where a quantile is looked for, given the places that were drawn before it.

    Raises:
        InternalError: if a group has more values than losses can be counted for.
    """
    if histogram.values > FARTHEST:
        raise InternalError(f"A group has more than {FARTHEST:,} values.")
    place, grain = tree.places[number], tree.grain
    low, start = 0, 0
    high, end = (histogram.last + 1 << grain) - 1, histogram.values << grain
    if place.lower is not None:
        low = before[place.lower]
        start, _ = claimed(histogram, low, grain)
    if place.upper is not None:
        high = before[place.upper]
        end, _ = claimed(histogram, high, grain)
    return Part(key, histogram, grain, place.own, tree.rates[number], low, high, (start, end))
