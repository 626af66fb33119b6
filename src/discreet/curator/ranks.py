"""The quantiles of a program at work: values counted coarsely, then closely where it matters, and points drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from discreet.curator.draw import Histogram, Key, Place, draw
from discreet.curator.nonlinear import Integers
from discreet.curator.pick import Ranked
from discreet.curator.program import Program
from discreet.errors import InternalError
from discreet.noise import Bits
from discreet.plan.reading import Groups, Only, Reading

Read = Callable[[Reading], Groups]


def released_points(program: Program, shown: Sequence[Key], read: Read, bits: Bits) -> Integers:
    """A row for each group that is shown and a column for each pick, in steps of the arguments' grids."""
    first = len(program.noise.scales)
    points = np.empty((len(shown), program.width - first), dtype=object)
    for reading in program.splits:
        recipes = [recipe for recipe in program.ranked if reading.split and recipe.argument == reading.split.argument]
        columns = [recipe.place - first + i for recipe in recipes for i in range(len(recipe.picks))]
        points[:, columns] = _of_argument(reading, recipes, shown, read, bits)
    return points


def _of_argument(reading: Reading, recipes: list[Ranked], shown: Sequence[Key], read: Read, bits: Bits) -> Integers:
    """The points of one argument: two reads, or one if the grid is small."""
    split = reading.split
    if split is None:
        raise InternalError("Quantiles need a split.")

    def look(places: Sequence[Place]) -> Groups:
        return read(replace(reading, split=replace(split, shift=0, only=Only(split.shift, tuple(places)))))

    coarse = read(reading)
    groups = {key: Histogram.of(split.high - split.low, split.shift, coarse.get(key, ())) for key in shown}
    drawn = draw(groups, [pick for recipe in recipes for pick in recipe.picks], look, bits)
    steps = [[split.low + point for point in drawn[key]] for key in shown]
    width = sum(len(recipe.picks) for recipe in recipes)
    return _in_order(recipes, np.array(steps, dtype=object).reshape(len(shown), width))


def _in_order(recipes: list[Ranked], points: Integers) -> Integers:
    """Quantiles of one argument sorted as their shares are, group by group: post-processing that brings them nearer."""
    starts = np.cumsum([0, *(len(recipe.picks) for recipe in recipes)])
    order = sorted((recipe.picks[0].target.share, int(at)) for recipe, at in zip(recipes, starts, strict=False))
    places = [at for _, at in order if recipes[list(starts).index(at)].kind == "quantile"]
    points[:, places] = np.sort(points[:, places], axis=1)
    return points
