"""Quantiles by the exponential mechanism: points near ranks, what they cost and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Self

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InternalError, UnsupportedQuery
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.grids import CLIPPED, Steps
from discreet.measurement.releases.needs import Need, RankNeed
from discreet.measurement.releases.open_exact import open_exact, opens
from discreet.measurement.releases.releaser import Releaser
from discreet.measurement.releases.time_grids import TimeGrid
from discreet.mechanisms.mechanism import CONFIDENCE, Law
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import FARTHEST, Pick, RankTarget
from discreet.mechanisms.value_counts import Histogram, Key, Look, Span
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.analysis.value_bounds import bounds, is_whole
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import CellSelection, Groups, Reading, Split
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import events

Read = Callable[[Reading], ExactGroups]
"""How an engine is read."""

MOST_POINTS = 4096
"""A grid of at most so many points is read as it is."""

_BLOCKS = 1024

RISK = Fraction(1, 200)
"""How often the ends of a quantile's interval may miss, at most; for less risk than this the ends are the bounds."""

SHARES = Fraction(9, 10), Fraction(1, 20), Fraction(1, 20)
"""Of a quantile's budget: for the quantile itself, and for a fence on either side of it."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The point of one of several quantiles of an argument, which are drawn together."""

    tree: QuantileTree
    number: int

    @property
    def target(self) -> RankTarget:
        """Returns its rank among all values."""
        return RankTarget(self.tree.shares[self.number])

    @property
    def variance(self) -> Fraction:
        """Returns the square of the error's scale, in ranks."""
        return self.tree.variance(self.number)

    def reach(self, points: int, risk: Fraction) -> int:
        """Returns a distance in ranks that is reached with at most this probability."""
        return self.tree.reach(self.number, points, risk)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDraw:
    """The draw for one rank; see `aggregates.quantile` for what it proves.

    Args:
        need: the rank.
        steps: the grid of the argument.
        times: the days or moments that its steps are, if it is no number.
        point: what is released of it: a point alone, or together with those of other quantiles.
        fences: two points that values near the rank surely lie between, unless they are too far away to be made.
        place: of the first of these columns among the released ones.
        certain: whether what is drawn says more than the bounds.
    """

    need: RankNeed
    steps: Steps
    times: TimeGrid | None = None
    point: Pick | Branch
    fences: tuple[Pick, ...]
    place: int
    certain: bool

    @property
    def number(self) -> Expression:
        """Returns the expression whose values are ranked, as a number."""
        return self.need.argument if self.times is None else self.times.number(self.need.argument)

    @property
    def variance(self) -> Fraction:
        """Returns the square of the error's scale, in ranks."""
        return self.point.variance if isinstance(self.point, Branch) else 1 / self.point.rate**2

    @property
    def picks(self) -> tuple[Pick, ...]:
        """Returns what is drawn and paid alone."""
        return self.fences if isinstance(self.point, Branch) else (self.point, *self.fences)

    @property
    def columns(self) -> int:
        """Returns how many numbers are released of each group."""
        return 1 + len(self.fences)

    def example_numbers(self, rows: int) -> list[int]:
        """Returns points as they may come out for so many values spread evenly between the bounds, fences at worst.

        A fence is a reach away from its target, which is as far away from the quantile.
        """
        points = []
        for target in (self.point.target, *(pick.target for pick in self.fences)):
            rank = target.share * rows + (2 if self.fences else 1) * target.offset
            step = self.steps.low + round(min(max(rank / rows, Fraction(0)), Fraction(1)) * self.steps.width)
            points.append(step)
        return points

    def __str__(self) -> str:
        far = self.point.reach(self.steps.width + 1, 1 - CONFIDENCE)
        return f"exponential mechanism, within {far:,} ranks with {float(CONFIDENCE):.0%}"


def trees(draws: Iterable[RankDraw]) -> tuple[QuantileTree, ...]:
    """Returns the quantiles that are drawn together, for each argument that has such."""
    return tuple(dict.fromkeys(draw.point.tree for draw in draws if isinstance(draw.point, Branch)))


@dataclass(frozen=True, slots=True)
class RankDraws:
    """All quantiles of a question, MIN and MAX among them."""

    draws: tuple[RankDraw, ...]

    @property
    def by_need(self) -> Mapping[Need, RankDraw]:
        """Returns what is drawn for each need."""
        return {draw.need: draw for draw in self.draws}

    @property
    def columns(self) -> int:
        """Returns how many numbers are released of each group."""
        return sum(draw.columns for draw in self.draws)

    @property
    def prices(self) -> Sequence[events.Event]:
        """Returns what points cost: each that is drawn alone, and each level of those drawn together."""
        alone = [pick.event for draw in self.draws for pick in draw.picks]
        return [*alone, *(event for tree in trees(self.draws) for event in tree.levels)]

    @property
    def laws(self) -> Sequence[str]:
        """Returns what is drawn, in words."""
        return [str(draw) for draw in self.draws]

    def example_numbers(self, rows: int) -> list[int]:
        """Returns the example numbers of each draw; see `RankDraw.example_numbers`."""
        return [point for draw in self.draws for point in draw.example_numbers(rows)]

    def readings(self, reading: Reading) -> tuple[Reading, ...]:
        """Returns one for each argument, its values counted in blocks."""
        numbers = {draw.number: draw.steps for draw in self.draws}
        return tuple(replace(reading, statistics=(), split=split_into_blocks(x, steps)) for x, steps in numbers.items())

    def release(self, reading: Reading, shown: Sequence[Key], read: Read, releaser: Releaser) -> Integers:
        """Returns a row for each group and a column for each pick, in steps of the arguments' grids."""
        first = self.draws[0].place
        points = np.empty((len(shown), self.columns), dtype=object)
        for part in self.readings(reading):
            draws = [draw for draw in self.draws if part.split and draw.number == part.split.argument]
            columns = [draw.place - first + i for draw in draws for i in range(draw.columns)]
            points[:, columns] = _of_argument(part, draws, shown, read, releaser)
        return points


@opens
def _of_argument(
    reading: Reading, draws: list[RankDraw], shown: Sequence[Key], read: Read, releaser: Releaser
) -> Integers:
    """Returns the points of one argument: two reads, or one if the grid is small."""
    split = reading.split
    if split is None:
        raise InternalError("Quantiles need a split.")

    def look(places: Sequence[Span]) -> Groups:
        closely = replace(split, shift=0, only=CellSelection(split.shift, tuple(places)))
        return open_exact(read(replace(reading, split=closely))).groups

    coarse, last = open_exact(read(reading)).groups, split.high - split.low
    blocks = {key: Histogram.of(last >> split.shift, 0, coarse.get(key, ())) for key in shown}
    points = {key: Histogram.of(last, split.shift, coarse.get(key, ())) for key in shown}
    values = _points(draws, points, look, releaser)
    fences = releaser.points(blocks, [pick for draw in draws for pick in draw.fences], look)
    rows = [_columns(draws, values[key], fences[key], split) for key in shown]
    width = sum(draw.columns for draw in draws)
    return _in_order(draws, np.array(rows, dtype=object).reshape(len(shown), width))


def _points(
    draws: list[RankDraw], groups: dict[Key, Histogram], look: Look, releaser: Releaser
) -> dict[Key, list[int]]:
    """Returns in each group the point of each quantile, drawn alone or with others."""
    together = trees(draws)
    alone = [draw.point for draw in draws if isinstance(draw.point, Pick)]
    foreseen = [tree.foreseen(number) for tree in together for number in range(len(tree.shares))]
    drawn = releaser.points(groups, alone, look, beside=foreseen)
    divided = {tree: releaser.places(groups, tree, look) for tree in together}
    found = {}
    for key, own in drawn.items():
        rest = iter(own)
        found[key] = [
            divided[point.tree][key][point.number] >> point.tree.grain if isinstance(point, Branch) else next(rest)
            for point in (draw.point for draw in draws)
        ]
    return found


def _columns(draws: list[RankDraw], values: list[int], fences: list[int], split: Split) -> list[int]:
    """Returns what was drawn of one group, as steps: fences are the ends of their blocks that lie outside."""
    columns, blocks = [], iter(fences)
    for draw, value in zip(draws, values, strict=True):
        columns.append(split.low + value)
        if draw.fences:
            columns.append(split.low + (next(blocks) << split.shift))
            columns.append(min(split.low + (next(blocks) + 1 << split.shift) - 1, split.high))
    return columns


def _in_order(draws: list[RankDraw], points: Integers) -> Integers:
    """Sorts quantiles of one argument as their shares, group by group: post-processing that brings them nearer."""
    starts = np.cumsum([0, *(draw.columns for draw in draws)]).tolist()
    quantiles = [(d.point.target.share, at) for d, at in zip(draws, starts, strict=False) if not d.need.extreme]
    places = [at for _, at in sorted(quantiles)]
    points[:, places] = np.sort(points[:, places], axis=1)
    return points


def ranked_steps(argument: Expression, schema: TableSchema, *, former: bool = False) -> Steps | TimeGrid:
    """Returns the grid of an argument whose ranks are looked for; earlier versions did not count how it rounds.

    Raises:
        UnsupportedQuery: if it has no public bounds.
    """
    limits = bounds(argument, schema)
    if limits is None:
        raise UnsupportedQuery(
            "A quantile needs public bounds of its argument.",
            f"Declare them, or clip in the question: MEDIAN({CLIPPED}).",
        )
    if argument.type.is_time:
        return TimeGrid.of(limits, argument.type)
    found = Steps.of(limits, argument.type)
    return found if former or argument.type is Type.INT else found.clipping(limits, whole=is_whole(argument))


def shift_of(steps: Steps) -> int:
    """Returns how wide blocks of points are, as a power of two: a function of the public grid alone.

    >>> shift_of(Steps(0, 0, 120)), shift_of(Steps(-10, 0, 1 << 20))
    (0, 11)
    """
    return 0 if steps.width < MOST_POINTS else (steps.width // _BLOCKS).bit_length()


def split_into_blocks(argument: Expression, steps: Steps) -> Split:
    """Returns how the values of an argument are counted first: by blocks."""
    return Split(argument=argument, exponent=steps.exponent, low=steps.low, high=steps.high, shift=shift_of(steps))


@dataclass(frozen=True, slots=True)
class RankDrawRequest:
    """Ranks that are looked for, and the grid of each one's argument."""

    grids: Mapping[RankNeed, Steps | TimeGrid]

    @classmethod
    def of(cls, needs: Iterable[Need], schema: TableSchema, *, former: bool) -> Self:
        """Returns the ranks among needs.

        Raises:
            UnsupportedQuery: if an argument has no public bounds.
        """
        ranks = [need for need in needs if isinstance(need, RankNeed)]
        return cls({rank: ranked_steps(rank.argument, schema, former=former) for rank in ranks})

    def __len__(self) -> int:
        return len(self.grids)

    def plan_draws(self, contribution: QueryContribution, budget: tuple[Law, Fraction], place: int) -> RankDraws:
        """Returns draws for equal shares; quantiles of one argument put theirs together, if they err less so."""
        found: dict[RankNeed, RankDraw] = {}
        for rank, grid in self.grids.items():
            found[rank] = replace(_alone(rank, grid, contribution, budget), place=place)
            place += found[rank].columns
        for argument in dict.fromkeys(rank.argument for rank in self.grids):
            alike = {r: d for r, d in found.items() if r.argument == argument and not r.extreme}
            found |= _together(alike, contribution, budget)
        return RankDraws(tuple(found.values()))


def _together(
    alike: Mapping[RankNeed, RankDraw], contribution: QueryContribution, budget: tuple[Law, Fraction]
) -> dict[RankNeed, RankDraw]:
    """Draws the quantiles of one argument from a tree, for what they cost one by one, if there is a tree."""
    if len(alike) < 2:
        return {}
    law, share = budget
    draws = list(alike.values())
    total = sum((share * (SHARES[0] if draw.fences else 1) for draw in draws), Fraction(0))
    tree = QuantileTree.of(
        draws[0].need.argument, [rank.share for rank in alike], draws[0].steps.width, contribution, (law, total)
    )
    if tree is None:
        return {}
    branches = {share: Branch(tree, number) for number, share in enumerate(tree.shares)}
    return {rank: replace(draw, point=branches[rank.share]) for rank, draw in alike.items()}


def _alone(
    rank: RankNeed, grid: Steps | TimeGrid, contribution: QueryContribution, budget: tuple[Law, Fraction]
) -> RankDraw:
    """Returns the picks of one rank."""
    times = grid if isinstance(grid, TimeGrid) else None
    steps = grid.steps if isinstance(grid, TimeGrid) else grid
    make = _inside if rank.extreme else _pick_with_fences
    (point, *fences), certain = make(rank, steps, contribution, *budget)
    return RankDraw(need=rank, steps=steps, times=times, point=point, fences=tuple(fences), place=0, certain=certain)


def _pick_with_fences(
    rank: RankNeed, steps: Steps, contribution: QueryContribution, law: Law, share: Fraction
) -> tuple[tuple[Pick, ...], bool]:
    target, blocks = RankTarget(rank.share), (steps.width >> shift_of(steps)) + 1
    value, low, high = (Pick.of(law, target, contribution, share * part) for part in SHARES)
    away = low.reach(blocks, RISK / 2) + 1
    if away >= FARTHEST:
        return (Pick.of(law, target, contribution, share),), False
    return (value, low.shift_rank(-away), high.shift_rank(away)), True


def _inside(
    rank: RankNeed, steps: Steps, contribution: QueryContribution, law: Law, share: Fraction
) -> tuple[tuple[Pick, ...], bool]:
    pick = Pick.of(law, RankTarget(rank.share), contribution, share)
    away = min(pick.reach(steps.width + 1, RISK), FARTHEST)
    return (pick.shift_rank(-away if rank.share else away),), away < FARTHEST
