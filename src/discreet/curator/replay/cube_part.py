"""Answers from several groupings: each that was fitted to the others answers the question with its GROUP BY alone.

It has less noise than it would have had alone, where both count the same rows. A grouping is a sum over all keys that
it leaves out, and rows with other values of them than the public ones must be in the sum. So questions become groupings
of one whose keys have one value more, for whatever is not declared; its groups are not shown.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count

from discreet.dataclass import dataclass
from discreet.measurement.program.execution import Change, ReleasedStatistics
from discreet.measurement.program.program import Program
from discreet.plan.analysis.group_keys import rest_of
from discreet.plan.expressions.calls import call
from discreet.plan.model.group_columns import KeyRows
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, Literal, Question, Value, fits
from discreet.plan.model.nodes import Key as NamedKey
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import Cell

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
        super().__init__(program, KeyRows.of([keys[i] for i in shown]), whole.noisy[places])
        self._whole, self._found, self._places = whole, found, places

    def adapt(self, change: Change) -> CubePart:
        """Returns the same groups with other estimators of their aggregates."""
        return CubePart(self.program.question, self._whole.adapt(change), self._found)

    def _estimate_cells(self, outside: Fraction) -> Mapping[str, Sequence[Cell]]:
        cells = self._whole._estimate_cells(outside)
        return {own: [cells[name][place] for place in self._places] for own, name in self._found.names.items()}

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
