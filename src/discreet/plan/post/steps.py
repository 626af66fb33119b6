"""What is done to released groups, step by step: filters, windows over groups, and aggregates of aggregates.

All of it is post-processing. The columns that a step sees are keys, aggregates by their numbers, and columns that
earlier steps made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import singledispatch
from typing import Literal as Choice

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.plan.model.nodes import (
    Aggregate,
    ColumnRef,
    Expression,
    FunctionCall,
    Output,
    PostProcessingStep,
    Question,
    SortKey,
    WindowKind,
    columns,
)
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import has_interval

GatherKind = Choice["count", "count_values", "sum", "mean", "min", "max", "any"]

PLACES = ("row_number", "rank", "dense_rank")
"""Windows that tell a place among the groups."""

NEIGHBOURS = ("lag", "lead", "first", "last")
"""Windows that tell the value of another group."""


@dataclass(frozen=True, slots=True)
class FilterGroups(PostProcessingStep):
    """The groups for which a condition is true."""

    condition: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWindow:
    """A value for each group, from the groups of its partition.

    Args:
        name: of its column.
        kind: what is asked.
        type: of the value.
        argument: the expression it is computed from, None for COUNT(*) and places.
        partition: groups that agree on these, which follow from keys, are taken together.
        order: of the groups; equals stay in the order of the answer.
        offset: of LAG and LEAD.
        rows: how many groups before and after belong to the frame, None for all of them. Without it the frame is the
            partition; or, in an order, everything up to the group and its equals.
    """

    name: str
    kind: WindowKind
    type: Type
    argument: Expression | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[SortKey, ...] = ()
    offset: int = 1
    rows: tuple[int | None, int | None] | None = None


@dataclass(frozen=True, slots=True)
class GroupWindows(PostProcessingStep):
    """The same groups, with a value of each window for each."""

    windows: tuple[GroupWindow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAggregate:
    """An aggregate of released values; any of them is that of the first group that has one."""

    name: str
    kind: GatherKind
    type: Type
    argument: Expression | None = None


@dataclass(frozen=True, slots=True)
class Regroup(PostProcessingStep):
    """Groups put together by what follows from their keys; without keys, all in one."""

    keys: tuple[Output, ...]
    folds: tuple[GroupAggregate, ...]


@dataclass(frozen=True, slots=True)
class AttachQuestion(PostProcessingStep):
    """The groups with the outputs of a side question, from its only row, or from the one of equal keys.

    Args:
        place: of the question among the side questions.
        columns: for each column that is made, which output it is, by name and type.
        on: what is equal: of the group, and the name of an output; nothing for the only row.
        outer: whether groups without such a row stay, with NULL.
    """

    place: int
    columns: tuple[Output, ...]
    on: tuple[tuple[Expression, str], ...] = ()
    outer: bool = False


@dataclass(frozen=True, slots=True)
class UnionAll(PostProcessingStep):
    """The groups with the columns that several questions share, and after them the rows of side questions.

    Args:
        columns: each column, and what it is of the groups.
        others: for each further question its place among the side questions, and the names of its outputs, in this
            order.
    """

    columns: tuple[Output, ...]
    others: tuple[tuple[int, tuple[str, ...]], ...]


# ---------------------------------------------------------------------------------------------------------- expressions


@singledispatch
def map_expressions(step: PostProcessingStep, function: Callable[[Expression], Expression]) -> PostProcessingStep:
    """Applies a function to all expressions of a step."""
    del function
    raise InternalError(f"A {type(step).__name__} has no expressions.")


@map_expressions.register
def _(step: FilterGroups, function: Callable[[Expression], Expression]) -> PostProcessingStep:
    return FilterGroups(function(step.condition))


@map_expressions.register
def _(step: GroupWindows, function: Callable[[Expression], Expression]) -> PostProcessingStep:
    return GroupWindows(tuple(with_parts(window, function) for window in step.windows))


@map_expressions.register
def _(step: Regroup, function: Callable[[Expression], Expression]) -> PostProcessingStep:
    keys = tuple(replace(key, expression=function(key.expression)) for key in step.keys)
    folds = tuple(
        replace(fold, argument=None if fold.argument is None else function(fold.argument)) for fold in step.folds
    )
    return Regroup(keys, folds)


@map_expressions.register
def _(step: AttachQuestion, function: Callable[[Expression], Expression]) -> PostProcessingStep:
    return replace(step, on=tuple((function(part), name) for part, name in step.on))


@map_expressions.register
def _(step: UnionAll, function: Callable[[Expression], Expression]) -> PostProcessingStep:
    return replace(step, columns=tuple(replace(c, expression=function(c.expression)) for c in step.columns))


def with_parts(window: GroupWindow, function: Callable[[Expression], Expression]) -> GroupWindow:
    """Applies a function to all expressions of a window."""
    return replace(
        window,
        argument=None if window.argument is None else function(window.argument),
        partition=tuple(function(part) for part in window.partition),
        order=tuple(replace(order, expression=function(order.expression)) for order in window.order),
    )


def parts(step: PostProcessingStep) -> list[Expression]:
    """Returns all expressions of a step."""
    found: list[Expression] = []

    def collect_expression(expression: Expression) -> Expression:
        found.append(expression)
        return expression

    map_expressions(step, collect_expression)
    return found


def parts_of(window: GroupWindow) -> list[Expression]:
    """Returns all expressions of a window."""
    return parts(GroupWindows((window,)))


def made_columns(steps: Sequence[PostProcessingStep]) -> Iterator[GroupWindow | GroupAggregate]:
    """Yields the columns that steps make, but for keys."""
    for step in steps:
        if isinstance(step, GroupWindows):
            yield from step.windows
        elif isinstance(step, Regroup):
            yield from step.folds


def columns_as_aggregates(steps: Sequence[PostProcessingStep]) -> list[Aggregate]:
    """Returns the columns that steps make, as if they were aggregates: for the names of outputs."""
    return [Aggregate(name=each.name, kind=each.kind, argument=each.argument) for each in made_columns(steps)]


def find_needed_steps(question: Question) -> tuple[PostProcessingStep, ...]:
    """Returns the steps without the columns that nothing reads."""
    read = {c.name for part in _last(question) for c in columns(part)}
    kept: list[PostProcessingStep] = []
    for step in reversed(question.steps):
        left = _keep_read_columns(step, read)
        if left is not None:
            kept.append(left)
            read |= {column.name for part in parts(left) for column in columns(part)}
    return tuple(reversed(kept))


def _last(question: Question) -> list[Expression]:
    return [output.expression for output in question.outputs] + [order.expression for order in question.order]


def of_several_groups(question: Question) -> tuple[str, ...]:
    """Returns the outputs that are computed from several groups: aggregates and windows of released numbers."""
    found: set[str] = set()
    for step in question.steps:
        found |= {each.name for each in made_columns((step,))}
        if isinstance(step, UnionAll):
            found |= {column.name for column in step.columns if _reads(column.expression, found)}
    return tuple(output.name for output in question.outputs if _reads(output.expression, found))


def adds_up_groups(question: Question) -> bool:
    """Returns whether groups are counted, added up or compared, so that the result is about all of them."""
    folds = [fold for step in question.steps if isinstance(step, Regroup) for fold in step.folds]
    return any(fold.kind != "any" for fold in folds)


def _keep_read_columns(step: PostProcessingStep, read: set[str]) -> PostProcessingStep | None:
    if isinstance(step, GroupWindows):
        windows = tuple(window for window in step.windows if window.name in read)
        return GroupWindows(windows) if windows else None
    if isinstance(step, Regroup):
        return Regroup(step.keys, tuple(fold for fold in step.folds if fold.name in read))
    if isinstance(step, AttachQuestion):
        return replace(step, columns=tuple(column for column in step.columns if column.name in read))
    return step


# ---------------------------------------------------------------------------------------------------------------- noise


def answer_columns(question: Question) -> tuple[str, ...]:
    """Returns the names that the rows of an answer will have, whether or not there are any."""
    noisy, measured = noisy_columns(question), find_measured_columns(question)
    times = {name for name, kind in measured.items() if kind.is_time}
    return tuple(name for output in question.outputs for name in _names(output, noisy, times))


def _names(output: Output, noisy: AbstractSet[str], times: AbstractSet[str]) -> tuple[str, ...]:
    read = {column.name for column in columns(output.expression)}
    kind, name = output.expression.type, output.name
    spread = (kind.is_number and read & noisy) or (kind.is_time and read & times)
    return (name, f"{name}_low", f"{name}_high") if spread else (name,)


def noisy_columns(question: Question) -> frozenset[str]:
    """Returns the columns whose values depend on noise: aggregates, and what steps make of them.

    A count of groups does if groups were kept for their noisy values. A mode counts as the value that was released.
    """
    found = {aggregate.name for aggregate in question.aggregates if aggregate.is_measured}
    unsure = _reads(question.having, found)
    for step in question.steps:
        if isinstance(step, AttachQuestion):
            found |= set(_count_attached_noise(step, question))
        elif isinstance(step, UnionAll):
            found |= {c.name for c in step.columns if _reads(c.expression, found)} | set(
                _count_appended_noise(step, question)
            )
        elif isinstance(step, FilterGroups):
            unsure |= _reads(step.condition, found)
        elif isinstance(step, GroupWindows):
            found |= {window.name for window in step.windows if unsure or _any(parts_of(window), found)}
        elif isinstance(step, Regroup):
            found |= {fold.name for fold in step.folds if unsure or _reads(fold.argument, found)}
    return frozenset(found)


def _count_attached_noise(step: AttachQuestion, question: Question) -> dict[str, int]:
    """Returns the columns of a side question that depend on noise, and on how many aggregates."""
    block = question.beside[step.place]
    outputs = {output.name: output.expression for output in block.outputs}
    own = {aggregate.name: 1 for aggregate in block.aggregates if aggregate.is_measured}
    made_of = {c.name: rests(outputs[_name(c)], own, frozenset(own)) for c in step.columns}
    return {name: count for name, count in made_of.items() if count}


def _count_appended_noise(step: UnionAll, question: Question) -> dict[str, int | None]:
    """Returns the columns that depend on noise in side questions, and on at most how many aggregates; None if many."""
    found: dict[str, int | None] = {}
    for place, names in step.others:
        block = question.beside[place]
        noisy, known = noisy_columns(block), single(block, frozenset())
        outputs = {output.name: output.expression for output in block.outputs}
        for column, name in zip(step.columns, names, strict=True):
            if _reads(outputs[name], noisy):
                count, before = rests(outputs[name], known, noisy), found.get(column.name, 0)
                found[column.name] = None if count is None or before is None else max(count, before)
    return found


def _name(column: Output) -> str:
    """Returns the output of a side question that a column is."""
    return column.expression.name if isinstance(column.expression, ColumnRef) else ""


def find_measured_columns(question: Question) -> dict[str, Type]:
    """Returns the columns that have an interval, and their types: numbers that depend on noise, and drawn days."""
    noisy = noisy_columns(question)
    found = {each.name: each.time or Type.FLOAT for each in question.aggregates if each.is_measured}
    for step in question.steps:
        if isinstance(step, AttachQuestion):
            known = _measured_outputs(question.beside[step.place])
            found |= {column.name: known[_name(column)] for column in step.columns if _name(column) in known}
        if isinstance(step, UnionAll):
            found |= _measured_together(step, question, found)
        for each in made_columns((step,)):
            parts = [] if each.argument is None else [found[c.name] for c in columns(each.argument) if c.name in found]
            if each.name in noisy and (each.type.is_number or has_interval(each.type, parts)):
                found[each.name] = each.type
    return found


def _measured_together(step: UnionAll, question: Question, found: Mapping[str, Type]) -> dict[str, Type]:
    """Returns the columns that have an interval in one of the questions."""
    own = _with_interval(step.columns, found)
    for place, names in step.others:
        known = _measured_outputs(question.beside[place])
        own |= {c.name: known[name] for c, name in zip(step.columns, names, strict=True) if name in known}
    return own


def _measured_outputs(question: Question) -> dict[str, Type]:
    return _with_interval(question.outputs, find_measured_columns(question))


def _with_interval(outputs: Sequence[Output], known: Mapping[str, Type]) -> dict[str, Type]:
    """Returns the outputs whose values have an interval since the columns do that they are made of, and their types."""
    found = {}
    for output in outputs:
        made_of = [known[column.name] for column in columns(output.expression) if column.name in known]
        if has_interval(output.expression.type, made_of):
            found[output.name] = output.expression.type
    return found


def _reads(expression: Expression | None, found: AbstractSet[str]) -> bool:
    return expression is not None and any(column.name in found for column in columns(expression))


def _any(expressions: Sequence[Expression], found: AbstractSet[str]) -> bool:
    return any(_reads(expression, found) for expression in expressions)


def single(question: Question, summable: frozenset[str]) -> dict[str, int]:
    """Counts the intervals that columns rest on, if they are few: one for each aggregate of its own group or another.

    A sum over groups of one aggregate rests on one, that of the summed noise, if the aggregate is `summable`. Columns
    that are not here rest on the intervals of all groups at once.
    """
    noisy = noisy_columns(question)
    known = {aggregate.name: 1 for aggregate in question.aggregates}
    unsure, gathered = _reads(question.having, noisy), False
    for step in question.steps:
        if isinstance(step, AttachQuestion):
            known |= _count_attached_noise(step, question)
        if isinstance(step, UnionAll):
            known |= _together(step, question, known, noisy)
        unsure |= isinstance(step, FilterGroups) and _reads(step.condition, noisy)
        for each in made_columns((step,)):
            count = None if unsure else _rests(each, known, noisy, frozenset() if gathered else summable)
            if each.name in noisy and count is not None:
                known[each.name] = count
        gathered |= isinstance(step, Regroup)
    return known


def _together(step: UnionAll, question: Question, known: Mapping[str, int], noisy: frozenset[str]) -> dict[str, int]:
    """Counts the intervals that columns of several questions rest on: those of the question with most."""
    own = {column.name: rests(column.expression, known, noisy) for column in step.columns}
    others = _count_appended_noise(step, question)
    counts = {name: (count, others.get(name, 0)) for name, count in own.items()}
    return {name: max(one, other) for name, (one, other) in counts.items() if one is not None and other is not None}


def _rests(
    each: GroupWindow | GroupAggregate, known: Mapping[str, int], noisy: frozenset[str], summable: frozenset[str]
) -> int | None:
    if isinstance(each, GroupWindow) and _any([order.expression for order in each.order], noisy):
        return None
    if each.kind in ("sum", "mean") and summed_aggregate(each.argument) in summable:
        return 1
    if each.kind not in (*NEIGHBOURS, "any") or each.argument is None:
        return None
    return rests(each.argument, known, noisy)


def rests(expression: Expression, known: Mapping[str, int], noisy: frozenset[str]) -> int | None:
    """Counts the intervals that an expression rests on; None if on those of all groups."""
    names = {column.name for column in columns(expression)} & noisy
    return sum(known[name] for name in names) if all(name in known for name in names) else None


def summed_aggregate(argument: Expression | None) -> str | None:
    """Returns the aggregate that is added up, if it is one."""
    while isinstance(argument, FunctionCall) and argument.function == "to_float":
        argument = argument.arguments[0]
    return argument.name if isinstance(argument, ColumnRef) else None
