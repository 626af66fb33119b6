"""The quantiles of a program at work: values counted coarsely, then closely where it matters, and points drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from discreet.errors import InternalError
from discreet.measurement.aggregates.ranked import Branch, Ranked, trees
from discreet.measurement.intervals.variances import Integers
from discreet.measurement.program.program import Program
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms.ranks import Pick
from discreet.mechanisms.value_counts import Histogram, Key, Look, Span
from discreet.plan.model.readings import Groups, Only, Reading, Split

Read = Callable[[Reading], Groups]


def released_points(program: Program, shown: Sequence[Key], read: Read, releaser: Releaser) -> Integers:
    """A row for each group that is shown and a column for each pick, in steps of the arguments' grids."""
    first = len(program.noise.scales)
    points = np.empty((len(shown), program.width - first), dtype=object)
    for reading in program.splits:
        recipes = [recipe for recipe in program.ranked if reading.split and recipe.argument == reading.split.argument]
        columns = [recipe.place - first + i for recipe in recipes for i in range(recipe.columns)]
        points[:, columns] = _of_argument(reading, recipes, shown, read, releaser)
    return points


def _of_argument(
    reading: Reading, recipes: list[Ranked], shown: Sequence[Key], read: Read, releaser: Releaser
) -> Integers:
    """The points of one argument: two reads, or one if the grid is small."""
    split = reading.split
    if split is None:
        raise InternalError("Quantiles need a split.")

    def look(places: Sequence[Span]) -> Groups:
        return read(replace(reading, split=replace(split, shift=0, only=Only(split.shift, tuple(places)))))

    coarse, last = read(reading), split.high - split.low
    blocks = {key: Histogram.of(last >> split.shift, 0, coarse.get(key, ())) for key in shown}
    points = {key: Histogram.of(last, split.shift, coarse.get(key, ())) for key in shown}
    values = _points(recipes, points, look, releaser)
    fences = releaser.points(blocks, [pick for recipe in recipes for pick in recipe.fences], look)
    rows = [_columns(recipes, values[key], fences[key], split) for key in shown]
    width = sum(recipe.columns for recipe in recipes)
    return _in_order(recipes, np.array(rows, dtype=object).reshape(len(shown), width))


def _points(
    recipes: list[Ranked], groups: dict[Key, Histogram], look: Look, releaser: Releaser
) -> dict[Key, list[int]]:
    """In each group the point of each quantile, by itself or with those that it is drawn with."""
    together = trees(recipes)
    alone = [recipe.point for recipe in recipes if isinstance(recipe.point, Pick)]
    foreseen = [tree.foreseen(number) for tree in together for number in range(len(tree.shares))]
    drawn = releaser.points(groups, alone, look, beside=foreseen)
    divided = {tree: releaser.places(groups, tree, look) for tree in together}
    found = {}
    for key, own in drawn.items():
        rest = iter(own)
        found[key] = [
            divided[point.tree][key][point.number] >> point.tree.grain if isinstance(point, Branch) else next(rest)
            for point in (recipe.point for recipe in recipes)
        ]
    return found


def _columns(recipes: list[Ranked], values: list[int], fences: list[int], split: Split) -> list[int]:
    """What was drawn of one group, as steps: fences are the ends of their blocks that lie outside."""
    columns, blocks = [], iter(fences)
    for recipe, value in zip(recipes, values, strict=True):
        columns.append(split.low + value)
        if recipe.fences:
            columns.append(split.low + (next(blocks) << split.shift))
            columns.append(min(split.low + (next(blocks) + 1 << split.shift) - 1, split.high))
    return columns


def _in_order(recipes: list[Ranked], points: Integers) -> Integers:
    """Quantiles of one argument sorted as their shares are, group by group: post-processing that brings them nearer."""
    starts = np.cumsum([0, *(recipe.columns for recipe in recipes)]).tolist()
    quantiles = [(r.point.target.share, at) for r, at in zip(recipes, starts, strict=False) if r.kind == "quantile"]
    places = [at for _, at in sorted(quantiles)]
    points[:, places] = np.sort(points[:, places], axis=1)
    return points
