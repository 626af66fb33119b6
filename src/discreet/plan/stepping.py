"""Steps over released groups at work: values as SQL has them, and intervals that hold them to the noise.

Formal guarantee: a function of released values. If the true values of all aggregates lie in their intervals, then those
of everything that is computed from them do, where the true value of a filter, a place or a total is the one that the
same steps give on the true aggregates of the same groups. A group that a filter drops, but might have kept, stays as a
ghost: it is not shown and widens intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

from discreet.errors import InternalError
from discreet.plan.after import Attach, Frames, Gather, Gathered, Keep, summed
from discreet.plan.certain import certain, settled
from discreet.plan.evaluate import evaluate
from discreet.plan.finish import Cell, Noisy, cell, span_of, spread, values_of
from discreet.plan.nodes import Column, Expression, Step
from discreet.plan.panes import beside
from discreet.plan.sets import Law, Member, aggregated
from discreet.plan.spans import Span


@dataclass(frozen=True, slots=True)
class Setting:
    """What steps know beside the groups.

    Args:
        laws: for aggregates by name the noise of their sums over groups, if they are told together.
        blocks: the rows of the questions beside, each output by its name.
    """

    laws: Mapping[str, Law] = field(default_factory=dict)
    blocks: Sequence[Sequence[Mapping[str, Cell]]] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """A released group on its way.

    Args:
        cells: keys, aggregates and what steps made.
        place: among the released groups; None once groups are put together.
        shown: whether it is there by the released values.
        sure: whether it is there whatever the noise.
    """

    cells: Mapping[str, Cell]
    place: int | None
    shown: bool = True
    sure: bool = True
    values: dict[str, Any] = field(init=False)
    spans: dict[str, Span] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", values_of(self.cells))
        object.__setattr__(self, "spans", {name: span_of(part) for name, part in self.cells.items()})

    def value(self, expression: Expression) -> Any:
        """An expression by the released values."""
        return evaluate(expression, self.values)

    def settled(self, expression: Expression) -> Expression:
        """An expression with everything written out that no noise decides."""
        return settled(expression, self.values, lambda name: isinstance(self.cells[name], Noisy))

    def cell(self, expression: Expression) -> Cell:
        """An expression with its interval; plain if no noise decides it."""
        return cell(self.settled(expression), self.cells)

    def member(self, argument: Expression | None) -> Member:
        """The group as a member of what is aggregated."""
        return Member(1 if argument is None else self.cell(argument), self.place, self.shown, self.sure)

    def certain(self, condition: Expression) -> bool | None:
        """Whether a condition is true whatever the noise; None if that depends on it."""
        return certain(self.settled(condition), self.spans)


@singledispatch
def stepped(step: Step, groups: Sequence[Group], setting: Setting) -> list[Group]:
    """The groups after a step."""
    del groups, setting
    raise InternalError(f"A {type(step).__name__} is no step.")


@stepped.register
def _(step: Keep, groups: Sequence[Group], setting: Setting) -> list[Group]:
    del setting
    kept = []
    for group in groups:
        known = group.certain(step.condition)
        if known is not False:
            shown = group.shown and group.value(step.condition) is True
            kept.append(replace(group, shown=shown, sure=group.sure and known is True))
    return kept


@stepped.register
def _(step: Attach, groups: Sequence[Group], setting: Setting) -> list[Group]:
    names = {column.name: column.expression.name for column in step.columns if isinstance(column.expression, Column)}
    rows = {tuple(row[name] for _, name in step.on): row for row in setting.blocks[step.place]}
    found = []
    for group in groups:
        key = tuple(group.value(part) for part, _ in step.on)
        row = None if None in key else rows.get(key)
        if row is not None or step.outer or not step.on:
            more = {name: None if row is None else row[given] for name, given in names.items()}
            found.append(replace(group, cells={**group.cells, **more}))
    return found


@stepped.register
def _(step: Frames, groups: Sequence[Group], setting: Setting) -> list[Group]:
    columns = {window.name: beside(window, groups, _law(window.argument, setting)) for window in step.windows}
    made = []
    for index, group in enumerate(groups):
        more = {name: cells[index] for name, cells in columns.items()}
        made.append(replace(group, cells={**group.cells, **more}))
    return made


@stepped.register
def _(step: Gather, groups: Sequence[Group], setting: Setting) -> list[Group]:
    found: dict[tuple[Any, ...], list[Group]] = {} if step.keys else {(): []}
    for group in groups:
        found.setdefault(tuple(group.value(key.expression) for key in step.keys), []).append(group)
    return [_gathered(step, key, members, setting) for key, members in found.items()]


def _gathered(step: Gather, key: tuple[Any, ...], members: Sequence[Group], setting: Setting) -> Group:
    cells: dict[str, Cell] = {output.name: value for output, value in zip(step.keys, key, strict=True)}
    cells |= {fold.name: _folded(fold, members, _law(fold.argument, setting)) for fold in step.folds}
    alone = not step.keys
    shown, sure = (alone or any(getattr(member, name) for member in members) for name in ("shown", "sure"))
    return Group(cells, None, shown, sure)


def _folded(fold: Gathered, members: Sequence[Group], law: Law | None) -> Cell:
    return aggregated(fold.kind, fold.type, [group.member(fold.argument) for group in members], law)


def _law(argument: Expression | None, setting: Setting) -> Law | None:
    name = summed(argument)
    return None if name is None else setting.laws.get(name)


def walked(
    steps: Iterable[Step], rows: Sequence[Mapping[str, Cell]], setting: Setting, noisy: frozenset[str]
) -> list[dict[str, Cell]]:
    """The rows that are shown after all steps, columns that depend on noise as `Noisy`."""
    groups = [Group(row, place) for place, row in enumerate(rows)]
    for step in steps:
        groups = stepped(step, groups, setting)
    return [{name: spread(part, name in noisy) for name, part in g.cells.items()} for g in groups if g.shown]
