"""One grouping of several that were released together, as the answer to a question of its own.

Groupings that were fitted to each other are answers to the questions with one GROUP BY each, with less noise than each
would have had alone, where they count the same rows. A grouping is a sum over all keys that it leaves out, and rows
with other values of them than the public ones must be in the sum. So questions become groupings of one whose keys have
one value more, for whatever is not declared; its groups are not shown.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count

from discreet.measurement.program.execution import Released
from discreet.measurement.program.program import Program
from discreet.plan.analysis.group_keys import rest_of
from discreet.plan.expressions.calls import call
from discreet.plan.model.nodes import Aggregate, Column, Expression, Key, Literal, Question, Value, fits
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.plan.post.outputs import Cell

TOGETHER = "Released together with other groupings, and fitted to them by least squares; counts need not be whole."


@dataclass(frozen=True, slots=True)
class PlaceInCube:
    """Where a question stands among several groupings.

    Args:
        place: of its grouping.
        names: of its aggregates there, by their own.
        gathered: the places of its keys that have a value more there than it asks for, each with that value.
    """

    place: int
    names: Mapping[str, str]
    gathered: tuple[tuple[int, Value], ...]


def place_in(asked: Question, several: Question, schema: TableSchema) -> PlaceInCube | None:
    """Returns where a question of one grouping stands in one of several, about the same rows; None if nowhere."""
    if asked.where != several.where or asked.sets or asked.beside or asked.rest or asked.bands:
        return None
    keys = [key.expression for key in asked.keys]
    names = {own.name: _named(own, several) for own in asked.aggregates}
    known = {own: name for own, name in names.items() if name is not None}
    if not known or len(known) < len(names):
        return None
    for place, one in enumerate(several.sets):
        grouped = [several.keys[key].expression for key in one]
        left = [key.expression for number, key in enumerate(several.keys) if number not in one]
        alike = len(grouped) == len(keys) and all(
            there in (here, completed(here, schema)) for here, there in zip(keys, grouped, strict=True)
        )
        if alike and all(map(_is_complete, left)):
            return PlaceInCube(place, known, _gathered(keys, grouped))
    return None


def _gathered(keys: Sequence[Expression], grouped: Sequence[Expression]) -> tuple[tuple[int, Value], ...]:
    rests = [None if here == there else rest_of(there) for here, there in zip(keys, grouped, strict=True)]
    return tuple((number, rest.value) for number, rest in enumerate(rests) if rest is not None)


def _is_complete(key: Expression) -> bool:
    """Whether every row has one of its public values."""
    return key.type is Type.BOOL or rest_of(key) is not None


def completed(key: Expression, schema: TableSchema) -> Expression | None:
    """Returns a key of which every row has a public value: one more, if none that is declared; None if there is none.

    >>> from discreet.plan.model.schema import ColumnSchema
    >>> visits = TableSchema(name="visits", columns={"ward": ColumnSchema(name="ward", type=Type.TEXT, keys=("A",))})
    >>> rest_of(completed(Column("ward", Type.TEXT), visits)).value
    'elsewhere'
    """
    if _is_complete(key):
        return key
    column = schema.columns.get(key.name) if isinstance(key, Column) else None
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


def _named(own: Aggregate, several: Question) -> str | None:
    alike = (other.name for other in several.aggregates if replace(other, name=own.name) == own)
    return next(alike, None)


class CubePart(Released):
    """The groups of one grouping, finished as those of a question by itself.

    Args:
        asked: the question.
        whole: all groupings, fitted to each other.
        found: where the question stands among them.
    """

    def __init__(self, asked: Question, whole: Released, found: PlaceInCube) -> None:
        part = whole.program.groupings[found.place]
        counts = [len(one.reading.public_keys or ((),)) for one in whole.program.groupings]
        start, keys = sum(counts[: found.place]), part.reading.public_keys or ((),)
        shown = [i for i, key in enumerate(keys) if all(key[place] != rest for place, rest in found.gathered)]
        program = _alone(part, asked, found, whole.program)
        places = [start + i for i in shown]
        super().__init__(program.unsalted, [keys[i] for i in shown], whole.noisy[places])
        self._whole, self._names, self._places = whole, found.names, places

    def _finished(self, outside: Fraction) -> Mapping[str, Sequence[Cell]]:
        cells = self._whole._finished(outside)
        return {own: [cells[name][place] for place in self._places] for own, name in self._names.items()}

    @property
    def drawn(self) -> None:
        """None, because groups share their noise."""

    @property
    def unsalted(self) -> Released:
        """The answer itself: its program has no secrets."""
        return self

    @property
    def notes(self) -> tuple[str, ...]:
        """With what it was released."""
        return (TOGETHER,)


def _alone(part: Program, asked: Question, found: PlaceInCube, whole: Program) -> Program:
    estimators = {own: part.estimators[name] for own, name in found.names.items()}
    return replace(part, question=asked, estimators=estimators, event=whole.event)


def cube_of(questions: Sequence[Question], schema: TableSchema) -> Question | None:
    """Returns several questions about the same rows as the groupings of one; None if they are not.

    All of them ask for the same aggregates, by keys in one order, whose values are known of every row.
    """
    first, *others = questions
    plain = list(dict.fromkeys(key.expression for one in questions for key in one.keys))
    complete = [completed(key, schema) for key in plain]
    named = tuple(Key(f"key {place}", key) for place, key in enumerate(complete) if key is not None)
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
