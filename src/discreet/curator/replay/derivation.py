"""Answers that follow from what was released before, for nothing.

A question follows from a release if its groups are unions of the release's: it keeps some of them (its WHERE says one
thing more, about keys alone) or puts several together (it groups by fewer keys, or by what follows from them). Then its
counts and sums are sums of released ones, and means, variances and correlations follow from those. Nothing private is
looked at, neither to find out nor to answer: whether a question is free is a function of released values and
declarations.

What is bounded must be the same, too. Where each row is a unit nothing is bounded. Where people own rows, the release
must have kept all groups of each person, and groups may be left out but not put together: a person counts with a number
of rows in each group.

*Several groupings* that were fitted to each other are answers to the questions with one GROUP BY each, with less noise
than each would have had alone, where they count the same rows. A grouping is a sum over all keys that it leaves out,
and rows with other values of them than the public ones must be in the sum. So questions become groupings of one whose
keys have one value more, for whatever is not declared; its groups are not shown.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.exact import float_above, float_below
from discreet.measurement.aggregates import aggregation
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, sum_over_groups
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.program.program import Program
from discreet.plan.analysis.group_keys import in_order, rest_of
from discreet.plan.canonical import read_back, replay_order
from discreet.plan.expressions.calls import call
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.group_columns import Key
from discreet.plan.model.nodes import (
    Aggregate,
    ColumnRef,
    Expression,
    FunctionCall,
    Literal,
    Question,
    Value,
    fits,
    substitute,
)
from discreet.plan.model.nodes import Key as NamedKey
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import Cell, NoisyNumber
from discreet.privacy import events

Parts = tuple[tuple[int, ...], ...]
"""For each group of a question, the places of the released groups that it is made of."""
Alike = Sequence[tuple[ReleasedStatistics, Parts]]  # releases of the same keys
MOST_PARTS = 10_000  # released groups in one of a question's


class _OutsideTheKeys(Exception):
    """A column was met that is not in the released groups."""


@dataclass(frozen=True, slots=True)
class AggregateSource:
    """One aggregate of a question, from the release `released`.

    Args:
        estimator: how the aggregate follows from the release's statistics, in one of its groups.
        parts: which of its groups make up each group of the question.
    """

    released: ReleasedStatistics
    estimator: Estimator
    parts: Parts

    def variance(self) -> Fraction:
        """Returns the variance of the aggregate's noise in the group of the question that is made of most."""
        noise, estimator = self._combine_groups(max([1, *map(len, self.parts)]))
        return estimator.variance(noise)

    def cells(self, outside: Fraction) -> list[NoisyNumber]:
        """Returns the aggregate of each group, with an interval that misses with at most this probability."""
        return [self._cell(places, outside) for places in self.parts]

    def _cell(self, places: Sequence[int], outside: Fraction) -> NoisyNumber:
        if not places and self.estimator.total is not None:  # no row can be in this group
            return NoisyNumber(0, 0, 0)
        nothing = np.zeros((1, self._width), dtype=object)
        noisy = [self.released.noisy[[place], : self._width] for place in places] or [nothing]
        noise, estimator = self._combine_groups(len(noisy))
        (cell,) = estimator.cells(noise, np.concatenate(noisy, axis=1), outside)
        if not isinstance(cell, NoisyNumber):
            raise InternalError("Drawn values cannot be added up.")
        return cell

    @property
    def _width(self) -> int:
        return len(self.released.program.noise.scales)

    def _combine_groups(self, count: int) -> tuple[Noise, Estimator]:
        """Returns the noise of so many groups side by side, and the estimator that adds them up."""
        noise, width = self.released.program.noise, self._width
        return noise.repeat_for_groups(count), sum_over_groups(self.estimator, range(0, count * width, width))


@dataclass(frozen=True, slots=True)
class Quotient:
    """A mean as the quotient of a released sum and a released count, held to the bounds of its values."""

    top: AggregateSource
    bottom: AggregateSource
    low: Fraction
    high: Fraction

    def variance(self) -> Fraction:
        """Returns the variance of the residual sum - m count, at the end m that makes it largest."""
        return self.top.variance() + max(abs(self.low), abs(self.high)) ** 2 * self.bottom.variance()

    def cells(self, outside: Fraction) -> list[NoisyNumber]:
        """Returns the mean of each group; each of the two may miss with half of the probability."""
        pairs = zip(self.top.cells(outside / 2), self.bottom.cells(outside / 2), strict=True)
        return [self._quotient(top, bottom) for top, bottom in pairs]

    def _quotient(self, top: NoisyNumber, bottom: NoisyNumber) -> NoisyNumber:
        ends = [Fraction(end) for end in (top.low, top.high)]
        counts = [Fraction(max(end, 1)) for end in (bottom.low, bottom.high)]  # a mean has one value at least
        quotients = [end / count for end in ends for count in counts]
        low, high = (self._clamp_mean(end) for end in (min(quotients), max(quotients)))
        value = self._clamp_mean(Fraction(top.value or 0) / max(Fraction(bottom.value or 1), Fraction(1)))
        return NoisyNumber(float(min(max(value, low), high)), float_below(low), float_above(high))

    def _clamp_mean(self, mean: Fraction) -> Fraction:
        return min(max(mean, self.low), self.high)


class DerivedStatistics(ReleasedStatistics):
    """The answer to a question that follows from releases; it is finished like any other.

    Args:
        program: what the question would have read and spent.
        keys: of its groups.
        sources: where each of its aggregates comes from, by name.
    """

    def __init__(self, program: Program, keys: Sequence[Key], sources: dict[str, AggregateSource | Quotient]) -> None:
        super().__init__(program, keys, np.empty((len(keys), 0), dtype=object))
        self.sources = sources

    def _estimate_cells(self, outside: Fraction) -> dict[str, list[NoisyNumber]]:
        return {name: source.cells(outside) for name, source in self.sources.items()}

    @property
    def own_statistics(self) -> None:
        """Returns None, because the noise is that of other releases, and several groups may share it."""

    @property
    def without_salt(self) -> ReleasedStatistics:
        """Returns the answer itself: it was made of programs without secrets."""
        return self

    @property
    def event(self) -> events.Event:
        """Returns everything that was released for it."""
        releases = {id(source.released): source.released for source in self._plain()}.values()
        return events.Composed([released.program.event for released in releases])

    @property
    def excess(self) -> Fraction:
        """Returns how many times larger the variance of its noise is than was asked for, at most; 1 or less serves."""
        noises = {name: self.program.estimators[name].variance(self.program.noise) for name in self.sources}
        return max((source.variance() / noises[name] for name, source in self.sources.items()), default=Fraction(0))

    @property
    def is_of_single_groups(self) -> bool:
        """Returns whether no groups were put together, so that rows with other keys are missing nowhere."""
        return all(len(places) <= 1 for source in self._plain() for places in source.parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns where the numbers come from, and whom they leave out."""
        said = ["The numbers follow from earlier answers, and cost nothing."]
        if not self.is_of_single_groups:
            said.append("Rows that have none of the public keys of those answers are not counted.")
        return tuple(said)

    def _plain(self) -> Iterator[AggregateSource]:
        for source in self.sources.values():
            yield from (source.top, source.bottom) if isinstance(source, Quotient) else (source,)


def derive(wanted: Program, releases: Sequence[ReleasedStatistics]) -> DerivedStatistics | None:
    """Returns the answer to a question from releases about the same rows, if it follows, with however much noise.

    Args:
        wanted: the program that would answer it otherwise.
        releases: the ones to look at, the best first.
    """
    grouped = [(release, found) for release in releases if (found := _match_groups(wanted, release)) is not None]
    for keys in dict.fromkeys(keys for _, (keys, _) in grouped):
        alike = [(release, parts) for release, (others, parts) in grouped if others == keys]
        sources = {aggregate.name: _source(aggregate, wanted, alike) for aggregate in wanted.question.aggregates}
        complete = {name: source for name, source in sources.items() if source is not None}
        if len(complete) == len(sources):
            return DerivedStatistics(wanted, keys, complete)
    return None


def may_follow(wanted: Question, given: Question) -> bool:
    """Returns whether the groups of a question may be unions of another's, by the two alone, before any is rebuilt."""
    try:
        _assign_groups(wanted, given, ())
    except _OutsideTheKeys:
        return False
    return True


def may_serve(wanted: Program, given: Question, header: Mapping[str, Any], *, as_precise: bool) -> bool:
    """Returns whether the numbers of a release may answer a question that follows from it, before they are read.

    Args:
        wanted: the program that would answer it otherwise.
        given: what was asked then.
        header: of the release.
        as_precise: whether the answer may have no more noise than the program would add.
    """
    asked, added = wanted.question, 1
    if not asked.keys and conditions(asked.where) == conditions(given.where):
        added = max(header.get("groups", 1), 1)  # all groups make up the one
    variances = header.get("variances")
    if added > MOST_PARTS or not as_precise or not variances:
        return added <= MOST_PARTS
    if any(aggregation(aggregate.kind).quotient is not None for aggregate in asked.aggregates):
        return True  # a mean may follow from two releases, each with other noise
    known = zip(replay_order(given), map(Fraction, variances), strict=True)
    return any(
        replace(one, name=aggregate.name) == aggregate
        and added * variance <= wanted.estimators[aggregate.name].variance(wanted.noise)
        for one, variance in known
        for aggregate in asked.aggregates
    )


def _source(aggregate: Aggregate, wanted: Program, alike: Alike) -> AggregateSource | Quotient | None:
    """Returns the source with the most precise estimate of an aggregate, if there is one."""
    told: list[AggregateSource | Quotient] = [*_telling(aggregate, alike)]
    mean, parts = wanted.estimators[aggregate.name], aggregation(aggregate.kind).quotient
    if parts is not None and isinstance(mean, RatioEstimator):
        tops, bottoms = ([*_telling(replace(aggregate, kind=kind), alike)] for kind in parts)
        told += [Quotient(top, bottom, mean.low, mean.high) for top in tops for bottom in bottoms]
    return min(told, key=lambda source: source.variance(), default=None)


def _telling(aggregate: Aggregate, alike: Alike) -> Iterator[AggregateSource]:
    """Yields an aggregate from each release that has it."""
    for release, parts in alike:
        for given in release.program.question.aggregates:
            if replace(given, name=aggregate.name) == aggregate:
                yield AggregateSource(release, release.program.estimators[given.name], parts)


def _match_groups(wanted: Program, release: ReleasedStatistics) -> tuple[tuple[Key, ...], Parts] | None:
    """Returns the groups of a question as unions of released ones; None if they are not."""
    given = release.program
    if given.groupings or wanted.groupings:
        return None
    if given.selection is not None or given.contribution.neighbours is not wanted.contribution.neighbours:
        return None
    try:
        assigned = _assign_groups(wanted.question, given.question, release.keys)
    except _OutsideTheKeys:
        return None
    keys = wanted.reading.public_keys
    if keys is None:
        keys = tuple(in_order(assigned)) if wanted.question.keys else ((),)
    if not all(key in assigned and len(assigned[key]) <= MOST_PARTS for key in keys):
        return None
    parts = tuple(tuple(assigned[key]) for key in keys)
    return (tuple(keys), parts) if _alike(wanted, release, parts) else None


def _alike(wanted: Program, release: ReleasedStatistics, parts: Parts) -> bool:
    """Returns whether contributions are bounded alike, each group by itself, and aggregates of unions are sums."""
    alone = all(len(places) <= 1 for places in parts)
    asked_for = [aggregation(aggregate.kind) for aggregate in wanted.question.aggregates]
    if any(each.drawn or not (alone or each.adds_up(1)) for each in asked_for):
        return False
    if release.program.reading.bounding is None:
        return True
    given, asked = release.program.contribution, wanted.contribution
    complete = given.groups >= len(release.keys) and asked.groups >= len(parts)
    return alone and complete and given.limits.rows == asked.limits.rows and not (given.total or asked.total)


def _assign_groups(wanted: Question, given: Question, keys: Sequence[Key]) -> dict[Key, list[int]]:
    """Returns for each group of a question the places of released groups in it; none if its WHERE leaves all out.

    Raises:
        _OutsideTheKeys: if that depends on more than the released keys.
    """
    here, there = conditions(wanted.where), conditions(given.where)
    if not there <= here:
        raise _OutsideTheKeys
    known: dict[Expression, Expression] = {
        key.expression: ColumnRef(f"#key{place}", key.expression.type) for place, key in enumerate(given.keys)
    }
    further = [substitute(condition, known, _unknown) for condition in here - there]
    made = [substitute(key.expression, known, _unknown) for key in wanted.keys]
    found: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        values = {f"#key{i}": value for i, value in enumerate(key)}
        places = found.setdefault(tuple(evaluate(part, values) for part in made), [])
        if all(evaluate(condition, values) is True for condition in further):
            places.append(place)
    return found


def _unknown(column: ColumnRef) -> Expression:
    raise _OutsideTheKeys(column.name)


def conditions(where: Expression | None) -> frozenset[Expression]:
    """Returns what WHERE demands, one by one."""
    if where is None:
        return frozenset()
    if isinstance(where, FunctionCall) and where.function == "and":
        return frozenset().union(*(conditions(part) for part in where.arguments))
    return frozenset({where})


@lru_cache(maxsize=4096)
def stored_conditions(question: str) -> frozenset[Expression] | None:
    """Returns what the WHERE of a stored question demands; None if it cannot be read."""
    read = read_back(question)
    return None if read is None else conditions(read[1])


# ---------------------------------------------------------------------------------------------------- several groupings

TOGETHER = "Released together with other groupings and fitted to them by least squares. Counts need not be whole."


@dataclass(frozen=True, slots=True)
class PlaceInCube:
    """The place of a question among several groupings.

    Args:
        place: of its grouping.
        names: of its aggregates there, by their own.
        gathered: the places of its keys that have a value more there than it asks for, each with that value.
    """

    place: int
    names: Mapping[str, str]
    gathered: tuple[tuple[int, Value], ...]


def place_in(asked: Question, several: Question, schema: TableSchema) -> PlaceInCube | None:
    """Returns the place of a question of one grouping in one of several, about the same rows; None if it has none."""
    if asked.where != several.where or asked.sets or asked.beside or asked.rest or asked.bands:
        return None
    keys = [key.expression for key in asked.keys]
    names = {own.name: _matching_name(own, several) for own in asked.aggregates}
    known = {own: name for own, name in names.items() if name is not None}
    if not known or len(known) < len(names):
        return None
    for place, one in enumerate(several.sets):
        grouped = [several.keys[key].expression for key in one]
        left = [key.expression for number, key in enumerate(several.keys) if number not in one]
        alike = len(grouped) == len(keys) and all(
            there in (here, complete_key(here, schema)) for here, there in zip(keys, grouped, strict=True)
        )
        if alike and all(map(_is_complete, left)):
            return PlaceInCube(place, known, _extra_values(keys, grouped))
    return None


def _extra_values(keys: Sequence[Expression], grouped: Sequence[Expression]) -> tuple[tuple[int, Value], ...]:
    rests = [None if here == there else rest_of(there) for here, there in zip(keys, grouped, strict=True)]
    return tuple((number, rest.value) for number, rest in enumerate(rests) if rest is not None)


def _is_complete(key: Expression) -> bool:
    """Returns whether every row has one of its public values."""
    return key.type is Type.BOOL or rest_of(key) is not None


def complete_key(key: Expression, schema: TableSchema) -> Expression | None:
    """Returns a key with a public value in every row: one more value, if no declared one fits; None if it has none.

    >>> from discreet.plan.model.schema import ColumnSchema
    >>> visits = TableSchema(name="visits", columns={"ward": ColumnSchema(name="ward", type=Type.TEXT, keys=("A",))})
    >>> rest_of(complete_key(ColumnRef("ward", Type.TEXT), visits)).value
    'elsewhere'
    """
    if _is_complete(key):
        return key
    column = schema.columns.get(key.name) if isinstance(key, ColumnRef) else None
    if column is None or column.keys is None or key.type not in _LABELS:
        return None
    label = next(label for label in _LABELS[key.type]() if label not in column.keys)
    listed = call("in", key, *(Literal(value, key.type) for value in column.keys if value is not None))
    gathered = call("if", listed, key, Literal(label, key.type))
    return gathered if None not in column.keys and fits(gathered) else None


_LABELS: dict[Type, Callable[[], Iterator[Value]]] = {
    Type.TEXT: lambda: ("elsewhere" + "#" * more for more in count()),
    Type.INT: count,
    Type.DATE: lambda: map(dt.date.fromordinal, count(1)),
}
"""What may stand for all that is not declared: the first that is."""


def _matching_name(own: Aggregate, several: Question) -> str | None:
    alike = (other.name for other in several.aggregates if replace(other, name=own.name) == own)
    return next(alike, None)


class CubePart(ReleasedStatistics):
    """The groups of one grouping, finished as those of a separate question.

    Args:
        asked: the question.
        whole: all groupings, fitted to each other.
        found: the place of the question among them.
    """

    def __init__(self, asked: Question, whole: ReleasedStatistics, found: PlaceInCube) -> None:
        part = whole.program.groupings[found.place]
        counts = [len(one.reading.public_keys or ((),)) for one in whole.program.groupings]
        start, keys = sum(counts[: found.place]), part.reading.public_keys or ((),)
        shown = [i for i, key in enumerate(keys) if all(key[place] != rest for place, rest in found.gathered)]
        program = part_program(asked, whole.program, found)
        places = [start + i for i in shown]
        super().__init__(program, [keys[i] for i in shown], whole.noisy[places])
        self._whole, self._names, self._places = whole, found.names, places

    def _estimate_cells(self, outside: Fraction) -> Mapping[str, Sequence[Cell]]:
        cells = self._whole._estimate_cells(outside)
        return {own: [cells[name][place] for place in self._places] for own, name in self._names.items()}

    @property
    def own_statistics(self) -> None:
        """Returns None, because groups share their noise."""

    @property
    def without_salt(self) -> ReleasedStatistics:
        """Returns the answer itself: its program has no secrets."""
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns the note that it was released together with others."""
        return (TOGETHER,)


def stands_alone(whole: Program) -> bool:
    """Returns whether a grouping of several is what it would be alone: no rows were limited by other keys."""
    return whole.tables is not None and whole.reading.bounding is None


def part_program(asked: Question, whole: Program, found: PlaceInCube) -> Program:
    """Returns the program of one grouping of several, as that of a separate question."""
    part = whole.groupings[found.place]
    estimators = {own: part.estimators[name] for own, name in found.names.items()}
    return replace(part, question=asked, estimators=estimators, event=whole.event).without_salt


def cube_of(questions: Sequence[Question], schema: TableSchema) -> Question | None:
    """Returns several questions about the same rows as the groupings of one; None if they are not.

    All of them ask for the same aggregates, by keys in one order, whose values are known of every row.
    """
    first, *others = questions
    plain = list(dict.fromkeys(key.expression for one in questions for key in one.keys))
    complete = [complete_key(key, schema) for key in plain]
    named = tuple(NamedKey(f"key {place}", key) for place, key in enumerate(complete) if key is not None)
    sets = [tuple(plain.index(key.expression) for key in one.keys) for one in questions]
    ordered = all(list(one) == sorted(set(one)) for one in sets)
    alike = {tuple(sorted(repr(replace(each, name="")) for each in one.aggregates)) for one in questions}
    same = len(alike) == 1 and all(one.where == first.where for one in others)
    if not others or not same or not ordered or len(named) < len(plain) or len(set(sets)) < len(sets):
        return None
    return Question(
        table=first.table,
        source=first.source,
        where=first.where,
        keys=named,
        aggregates=first.aggregates,
        outputs=(),
        sets=tuple(sets),
    )
