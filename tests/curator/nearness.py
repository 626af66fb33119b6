"""Whether the inputs of noise on two neighbouring data sets are as near to each other as was charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from discreet.accounting.composition import compose as basic
from discreet.accounting.composition import terms
from discreet.accounting.zcdp import compose as zcdp
from discreet.audit.queries.neighbour_distance import range_of
from discreet.exact.integer_columns import column_of, round_column
from discreet.measurement.program.program import Program
from discreet.measurement.releases.additive import grains_of
from discreet.measurement.releases.draws import CandidateDraws
from discreet.measurement.selection import Threshold
from discreet.plan.model.readings import Groups
from discreet.privacy import events
from tests.measurement.draws import modes, readings

Statistics = Mapping[Any, tuple[int, ...]]
"""The exact statistics that meet noise, by group; those of a group that is not there are zero."""


def met(program: Program, row: Sequence[int]) -> list[int]:
    """What meets noise of the statistics of one group, on the grids of its noise; the rest as it is."""
    grains = grains_of(program.measures)
    found = [int(round_column(column_of([number]), grain)[0]) for number, grain in zip(row, grains, strict=False)]
    return found + list(row[len(found) :])


def check_moves(program: Program, one: Statistics, other: Statistics) -> None:
    """Every input of noise is as near as its event says, in all groups together."""
    width = len(program.noise.scales)
    nothing = (0,) * width
    pairs = [(one.get(key, nothing)[:width], other.get(key, nothing)[:width]) for key in {**one, **other}]
    rows = [[met(program, row) for row in pair] for pair in pairs]
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


def check_gathered(program: Program, one: Statistics, other: Statistics) -> None:
    """The same with one group more, of all that is not shown: whatever is shown, for nothing is known of that here."""
    keys = list({**one, **other})
    for count in range(len(keys) + 1):
        for shown in combinations(keys, count):
            check_moves(program, *({**groups, "#rest": _together(groups, shown)} for groups in (one, other)))


def _together(groups: Statistics, shown: Sequence[Any]) -> tuple[int, ...]:
    hidden = [numbers for key, numbers in groups.items() if key not in shown]
    return tuple(map(sum, zip(*hidden, strict=True))) or (0,) * max(map(len, groups.values()), default=99)


def check_alone(program: Program, one: Statistics, other: Statistics) -> None:
    """Private groups that one data set has alone are few, and too small to be shown for their own sake."""
    if isinstance(program.selection, Threshold):
        alone = [met(program, values) for key, values in one.items() if key not in other]
        size = program.selection.size
        assert len(alone) <= program.contribution.groups
        assert all(size.linear.value(values) <= size.most < program.selection.smallest for values in alone)


def check_modes(program: Program, one: Sequence[Groups], other: Sequence[Groups]) -> None:
    """The ranges of privacy losses of all modes, over all groups, add up to no more than was charged.

    For each list of candidates, `one` and `other` are how often each stands in each group. A loss is the rate times the
    change of a count plus a constant, so its range is that of the changes; a candidate without rows changes by nothing.
    """
    for reading, before, after in zip(readings(program, CandidateDraws), one, other, strict=True):
        for recipe in (recipe for recipe in modes(program) if recipe.candidates.split == reading.split):
            moves = [range_of(recipe, before.get(key, ()), after.get(key, ())) for key in {**before, **after}]
            ranges = [recipe.rate * move for move in moves]
            rho = sum((each * each for each in ranges), Fraction(0)) / 8
            assert rho <= zcdp(terms(recipe.event)).rho
            if isinstance(recipe.event, events.Concentrated):
                assert rho <= recipe.event.rho
            else:
                assert sum(ranges, Fraction(0)) <= basic(terms(recipe.event)).epsilon
