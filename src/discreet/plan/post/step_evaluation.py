"""Steps over released groups at work: values as SQL has them, and intervals that hold them to the noise.

Formal guarantee: a function of released values. If the true values of all aggregates lie in their intervals, then those
of everything that is computed from them do, where the true value of a filter, a place or a total is the one that the
same steps give on the true aggregates of the same groups. A group that a filter drops, but might have kept, stays as an
uncertain group: it is not shown and widens intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import singledispatch
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.plan.model.nodes import ColumnRef, Expression, PostProcessingStep
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import Cell, spread
from discreet.plan.post.released_groups import GroupNoise, ReleasedGroup, aggregate_members
from discreet.plan.post.steps import (
    AttachQuestion,
    FilterGroups,
    GroupAggregate,
    GroupWindows,
    Regroup,
    UnionAll,
    summed_aggregate,
)
from discreet.plan.post.windows import beside


@dataclass(frozen=True, slots=True)
class StepContext:
    """What steps know in addition to the groups.

    Args:
        laws: for aggregates by name the noise of their sums over groups, if those have a joint interval.
        blocks: the rows of the side questions, each output by its name.
    """

    laws: Mapping[str, GroupNoise] = field(default_factory=dict)
    blocks: Sequence[Sequence[Mapping[str, Cell]]] = ()


@singledispatch
def apply_step(step: PostProcessingStep, groups: Sequence[ReleasedGroup], setting: StepContext) -> list[ReleasedGroup]:
    """Applies a step to the groups."""
    del groups, setting
    raise InternalError(f"A {type(step).__name__} is no step.")


@apply_step.register
def _(step: FilterGroups, groups: Sequence[ReleasedGroup], setting: StepContext) -> list[ReleasedGroup]:
    del setting
    kept = []
    for group in groups:
        known = group.certain(step.condition)
        if known is not False:
            shown = group.shown and group.value(step.condition) is True
            kept.append(replace(group, shown=shown, sure=group.sure and known is True))
    return kept


@apply_step.register
def _(step: AttachQuestion, groups: Sequence[ReleasedGroup], setting: StepContext) -> list[ReleasedGroup]:
    names = {column.name: column.expression.name for column in step.columns if isinstance(column.expression, ColumnRef)}
    rows = {tuple(row[name] for _, name in step.on): row for row in setting.blocks[step.place]}
    found = []
    for group in groups:
        key = tuple(group.value(part) for part, _ in step.on)
        row = None if None in key else rows.get(key)
        if row is not None or step.outer or not step.on:
            more = {name: None if row is None else row[given] for name, given in names.items()}
            found.append(replace(group, cells={**group.cells, **more}))
    return found


@apply_step.register
def _(step: GroupWindows, groups: Sequence[ReleasedGroup], setting: StepContext) -> list[ReleasedGroup]:
    columns = {window.name: beside(window, groups, _law(window.argument, setting)) for window in step.windows}
    made = []
    for index, group in enumerate(groups):
        more = {name: cells[index] for name, cells in columns.items()}
        made.append(replace(group, cells={**group.cells, **more}))
    return made


@apply_step.register
def _(step: Regroup, groups: Sequence[ReleasedGroup], setting: StepContext) -> list[ReleasedGroup]:
    found: dict[tuple[Any, ...], list[ReleasedGroup]] = {} if step.keys else {(): []}
    for group in groups:
        found.setdefault(tuple(group.value(key.expression) for key in step.keys), []).append(group)
    return [_regroup_members(step, key, members, setting) for key, members in found.items()]


@apply_step.register
def _(step: UnionAll, groups: Sequence[ReleasedGroup], setting: StepContext) -> list[ReleasedGroup]:
    found = [replace(group, cells={c.name: group.cell(c.expression) for c in step.columns}) for group in groups]
    for place, names in step.others:
        called = {column.name: name for column, name in zip(step.columns, names, strict=True)}
        found += [
            ReleasedGroup({new: row[name] for new, name in called.items()}, None) for row in setting.blocks[place]
        ]
    return found


def _regroup_members(
    step: Regroup, key: tuple[Any, ...], members: Sequence[ReleasedGroup], setting: StepContext
) -> ReleasedGroup:
    cells: dict[str, Cell] = {output.name: value for output, value in zip(step.keys, key, strict=True)}
    cells |= {fold.name: _fold_members(fold, members, _law(fold.argument, setting)) for fold in step.folds}
    alone = not step.keys
    shown, sure = (alone or any(getattr(member, name) for member in members) for name in ("shown", "sure"))
    return ReleasedGroup(cells, None, shown, sure)


def _fold_members(fold: GroupAggregate, members: Sequence[ReleasedGroup], law: GroupNoise | None) -> Cell:
    return aggregate_members(fold.kind, fold.type, [group.member(fold.argument) for group in members], law)


def _law(argument: Expression | None, setting: StepContext) -> GroupNoise | None:
    name = summed_aggregate(argument)
    return None if name is None else setting.laws.get(name)


def apply_steps(
    steps: Iterable[PostProcessingStep],
    rows: Sequence[Mapping[str, Cell]],
    setting: StepContext,
    measured: Mapping[str, Type],
) -> list[dict[str, Cell]]:
    """Applies all steps and returns the rows that are shown, the columns that are `measured` with their intervals."""
    groups = [ReleasedGroup(row, place) for place, row in enumerate(rows)]
    for step in steps:
        groups = apply_step(step, groups, setting)
    return [{name: spread(part, measured.get(name)) for name, part in g.cells.items()} for g in groups if g.shown]
