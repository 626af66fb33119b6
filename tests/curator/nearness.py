"""Whether the inputs of noise on two neighbouring data sets are as near to each other as was charged."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.curator.program import Program
from discreet.curator.selection import Threshold
from discreet.privacy import events

Statistics = Mapping[Any, tuple[int, ...]]
"""The exact statistics that meet noise, by group; those of a group that is not there are zero."""


def check_moves(program: Program, one: Statistics, other: Statistics) -> None:
    """Every input of noise is as near as its event says, in all groups together."""
    width = len(program.noise.scales)
    nothing = (0,) * width
    rows = [(one.get(key, nothing)[:width], other.get(key, nothing)[:width]) for key in {**one, **other}]
    moved = [[x - y for x, y in zip(*pair, strict=True)] for pair in rows]
    start = 0
    for measure in program.measures:
        stop = start + len(measure.scales)
        ratios = [Fraction(x) / s for move in moved for x, s in zip(move[start:stop], measure.scales, strict=True)]
        if isinstance(measure.event, events.DiscreteLaplace):
            assert sum(map(abs, ratios)) <= measure.event.sensitivity / measure.event.scale
        else:
            assert isinstance(measure.event, events.Concentrated)
            assert sum(r * r for r in ratios) / 2 <= measure.event.rho
        start = stop


def check_alone(program: Program, one: Statistics, other: Statistics) -> None:
    """Private groups that one data set has alone are few, and too small to be shown for their own sake."""
    if isinstance(program.selection, Threshold):
        alone = [list(values) for key, values in one.items() if key not in other]
        size = program.selection.size
        assert len(alone) <= program.contribution.groups
        assert all(size.linear.value(values) <= size.most < program.selection.smallest for values in alone)
