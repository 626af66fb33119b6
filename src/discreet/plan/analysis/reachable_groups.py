"""Which of a question's public groups some row can be in: by its WHERE, by the shape of its keys, and by nothing else.

A group stays unless no row can be in it, whatever the row holds: declarations are no facts here. A group that is left
out would have been nothing but noise. Privacy rests on none of this: rows whose key is not in the list are dropped
before contributions are bounded, and the noise is for as many groups as the list has.

Two ways lead to it. A condition is tried with the values of the keys put in, all else being unknown: `WHERE ward = 'A'`
is not TRUE where the key `ward` is 'B'. And the columns of a key are taken apart at the numbers, days and texts that
the question names: between two of them conditions are decided, and the key has few values. So `WHERE age BETWEEN 20 AND
39` leaves 2 and 3 of `age // 10`, and a key is NULL only where its columns may be.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

from discreet.dataclass import dataclass
from discreet.plan.analysis.value_sets import Sets, ValueSet, possible
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.interval_arithmetic import INT_HIGH, INT_LOW
from discreet.plan.model.nodes import (
    ColumnRef,
    Expression,
    FunctionCall,
    Literal,
    Question,
    Relation,
    Value,
    columns,
    substitute,
)
from discreet.plan.model.relations import Cut, Join, MarkJoin, Select, SemiJoin, UnitAggregation, WindowedRelation
from discreet.plan.model.schema import MANY, IdentityKey
from discreet.plan.model.types import Type

MOST_POINTS, MOST_CELLS = 100, 2_000
"""A key whose columns would be taken into more pieces keeps all its values."""

MOST_TRIED, MOST_COMPUTED = 10_000, 100_000
"""Of combinations of keys that one condition is tried with; of those that decide it by themselves."""

Keys = tuple[tuple[Value, ...], ...]


def reachable(question: Question, listed: Keys) -> Keys:
    """Returns the groups of a list that some row can be in; all of them if there is none.

    Args:
        question: with one grouping.
        listed: combinations of its keys' values.
    """
    keys = tuple(key.expression for key in question.keys)
    if len(listed) > MANY:
        return _reachable_of_many(question.source, question.where, keys, IdentityKey(listed))
    return _reachable(question.source, question.where, keys, listed)


@lru_cache(maxsize=256)
def _reachable(source: Relation | None, where: Expression | None, keys: tuple[Expression, ...], listed: Keys) -> Keys:
    """Returns the groups that a row can be in, worked out once for the many programs of a question."""
    rows = _Rows.of(source, where, keys)
    tests = [*rows.conditions_on_keys(listed), *rows.values_of_keys(listed)]
    if not tests:
        return listed
    found = tuple(key for key in listed if all(test(key) for test in tests))
    return found or listed


@lru_cache(maxsize=16)
def _reachable_of_many(
    source: Relation | None, where: Expression | None, keys: tuple[Expression, ...], listed: IdentityKey[Keys]
) -> Keys:
    return _reachable.__wrapped__(source, where, keys, listed.value)


Test = Callable[[tuple[Value, ...]], bool]


@dataclass(frozen=True, slots=True)
class _Rows:
    """The keys of a question and all that holds for its rows, as expressions of the same columns.

    Args:
        keys: what rows are grouped by.
        conditions: TRUE for every row that counts.
        present: columns that are never NULL.
    """

    keys: tuple[Expression, ...]
    conditions: tuple[Expression, ...]
    present: frozenset[str]

    @classmethod
    def of(cls, relation: Relation | None, where: Expression | None, keys: tuple[Expression, ...]) -> _Rows:
        """Looks through filters and computed columns, down to a relation that makes rows of its own."""
        conditions: tuple[Expression, ...] = () if where is None else (where,)
        while isinstance(relation, Select | SemiJoin):
            if isinstance(relation, Select):
                inside = _looked_through(relation)
                keys, conditions = tuple(map(inside, keys)), tuple(map(inside, conditions))
                conditions += () if relation.where is None else (relation.where,)
            relation = relation.source
        parts = tuple(part for condition in conditions for part in _parts(condition))
        return cls(keys, parts, _present(relation))

    def conditions_on_keys(self, listed: Keys) -> Iterator[Test]:
        """Yields for each condition that names keys whether it may be TRUE, given their values."""
        for condition in self.conditions:
            places = [place for place, key in enumerate(self.keys) if _names(condition, key)]
            keys = [self.keys[place] for place in places]
            most = MOST_COMPUTED if _decide(keys, condition) else MOST_TRIED
            if places and _count(listed, places) <= most:
                yield _make_cached_test(condition, keys, places)

    def values_of_keys(self, listed: Keys) -> Iterator[Test]:
        """Yields for each key that is computed whether it may have a value, by all pieces of its columns."""
        for place, key in enumerate(self.keys):
            cells = None if isinstance(key, ColumnRef) and key.name not in self.present else self._cells(key)
            if cells is None:
                continue
            sets = [possible(key, cell) for cell in cells if self._may_hold(cell)]
            wanted = dict.fromkeys(values[place] for values in listed)
            kept = {value for value in wanted if any(found.holds(value) for found in sets)}
            yield lambda values, place=place, kept=kept: values[place] in kept  # type: ignore[misc]

    def _may_hold(self, cell: Sets) -> bool:
        return all(possible(condition, cell).holds(True) for condition in self.conditions)

    def _cells(self, key: Expression) -> list[Sets] | None:
        """Returns the pieces of a key's columns; None if they are too many."""
        named = list(dict.fromkeys(columns(key)))
        pieces = [self._pieces(column, key) for column in named]
        known = [found for found in pieces if found is not None]
        if len(known) < len(pieces) or math.prod(map(len, known)) > MOST_CELLS:
            return None
        return [dict(zip((column.name for column in named), cell, strict=True)) for cell in product(*known)]

    def _pieces(self, column: ColumnRef, key: Expression) -> list[ValueSet] | None:
        literals = [literal for expression in (key, *self.conditions) for literal in _literals(expression)]
        points = {point for literal in literals for point in _POINTS[column.type](literal.value)}
        if len(points) > MOST_POINTS:
            return None
        found = list(_divide_values(column.type, points))
        return found if column.name in self.present else [*found, ValueSet.of([None])]


def _count(listed: Keys, places: Sequence[int]) -> int:
    """Counts the different combinations of some keys in a list of groups; all keys together have each once."""
    if listed and len(places) == len(listed[0]):
        return len(listed)
    return len({tuple(key[place] for place in places) for key in listed})


def _looked_through(relation: Select) -> Callable[[Expression], Expression]:
    """Expressions of a relation's columns as those of its source's; a column that it does not compute stays unknown."""
    known: dict[Expression, Expression] = {
        ColumnRef(column.name, column.expression.type): column.expression for column in relation.columns
    }
    return lambda expression: substitute(expression, known, lambda column: replace(column, name=f"#of {column.name}"))


def _parts(condition: Expression) -> list[Expression]:
    """Returns what a condition demands, one by one."""
    if isinstance(condition, FunctionCall) and condition.function == "and":
        return [part for argument in condition.arguments for part in _parts(argument)]
    return [condition]


def _present(relation: Relation | None) -> frozenset[str]:
    """Returns the columns of a relation that are never NULL: numbers of rows, and places of rows among others."""
    if isinstance(relation, UnitAggregation):
        return frozenset(fold.name for fold in relation.folds if fold.kind.startswith("count"))
    if isinstance(relation, WindowedRelation):
        counted = (window.name for window in relation.windows if window.kind in _COUNTED)
        return _present(relation.source).union(counted)
    if isinstance(relation, Join):
        return _present(relation.left) | (frozenset() if relation.outer else _present(relation.right))
    return _present(relation.source) if isinstance(relation, SemiJoin | MarkJoin | Cut) else frozenset()


_COUNTED = ("row_number", "rank", "dense_rank", "count", "count_values")


def _names(expression: Expression, key: Expression) -> bool:
    if expression == key:
        return True
    return isinstance(expression, FunctionCall) and any(_names(part, key) for part in expression.arguments)


def _literals(expression: Expression) -> Iterator[Literal]:
    if isinstance(expression, Literal):
        yield expression
    elif isinstance(expression, FunctionCall):
        for part in expression.arguments:
            yield from _literals(part)


def _decide(keys: Sequence[Expression], condition: Expression) -> bool:
    """Returns whether a condition depends on the values of keys alone, which are columns."""
    return all(isinstance(key, ColumnRef) for key in keys) and set(columns(condition)) <= set(keys)


def _make_cached_test(condition: Expression, keys: Sequence[Expression], places: Sequence[int]) -> Test:
    """Returns whether a condition may be TRUE, worked out once for each combination of the values of keys."""
    known: dict[tuple[Value, ...], bool] = {}
    names = [key.name for key in keys if isinstance(key, ColumnRef)] if _decide(keys, condition) else None

    def can_be_true(own: tuple[Value, ...]) -> bool:
        if names is not None:
            return evaluate(condition, dict(zip(names, own, strict=True))) is True
        literals: dict[Expression, Expression] = {
            key: Literal(value, key.type) for key, value in zip(keys, own, strict=True)
        }
        return possible(substitute(condition, literals, lambda column: column), {}).holds(True)

    def test(values: tuple[Value, ...]) -> bool:
        own = tuple(values[place] for place in places)
        if own not in known:
            known[own] = can_be_true(own)
        return known[own]

    return test


# --------------------------------------------------------------------------------------------------------------- pieces


def _divide_values(kind: Type, points: set[Any]) -> Iterator[ValueSet]:
    """Yields all values of a type but NULL: each point alone, and what lies between them, or is none of them."""
    if kind is Type.BOOL:
        yield from (ValueSet.of([value]) for value in (False, True))
        return
    yield from (ValueSet.of([point]) for point in points)
    if kind is Type.TEXT:
        everything = ValueSet.any_of(kind)
        yield ValueSet(None, everything.span, nullable=False, never=frozenset(points))
        return
    first, last, before, after = _LINES[kind]
    start = first
    for point in sorted(points):
        if start < point:
            yield ValueSet.between(start, before(point))
        if point == last:
            return
        start = after(point)
    yield ValueSet.between(start, last)


_LARGEST = math.nextafter(math.inf, 0)
_DAY, _TICK = dt.timedelta(days=1), dt.timedelta(microseconds=1)
_LINES: Mapping[Type, tuple[Any, Any, Callable[[Any], Any], Callable[[Any], Any]]] = {
    Type.INT: (int(INT_LOW), int(INT_HIGH), lambda n: n - 1, lambda n: n + 1),
    Type.FLOAT: (-_LARGEST, _LARGEST, lambda x: math.nextafter(x, -math.inf), lambda x: math.nextafter(x, math.inf)),
    Type.DATE: (dt.date.min, dt.date.max, lambda day: day - _DAY, lambda day: day + _DAY),
    Type.TIMESTAMP: (dt.datetime.min, dt.datetime.max, lambda t: t - _TICK, lambda t: t + _TICK),
}
"""The first and the last value of a type, and what comes before and after another one."""


def _numbers(value: Value) -> list[int]:
    """Returns the whole numbers at which a comparison with a number may change."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return []
    return [n for n in {math.floor(value), math.ceil(value)} if INT_LOW <= n <= INT_HIGH]


def _doubles(value: Value) -> list[float]:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LARGEST:
        return []
    return [float(value)] if math.isfinite(value) else []


def _days(value: Value) -> list[dt.date]:
    """Days that are named, and those that begin the year of a number and the next one."""
    if isinstance(value, dt.datetime):
        return [value.date()]
    if isinstance(value, dt.date):
        return [value]
    is_year = isinstance(value, int) and not isinstance(value, bool) and dt.MINYEAR <= value < dt.MAXYEAR
    return [dt.date(year, 1, 1) for year in (value, value + 1)] if is_year else []  # type: ignore[operator, arg-type]


def _moments(value: Value) -> list[dt.datetime]:
    """Moments that are named, and where days begin and end."""
    if isinstance(value, dt.datetime):
        return [value]
    days = [day for first in _days(value) for day in (first, first + _DAY if first < dt.date.max else first)]
    return [dt.datetime.combine(day, dt.time()) for day in days]


_POINTS: Mapping[Type, Callable[[Value], Sequence[Value]]] = {
    Type.INT: _numbers,
    Type.FLOAT: _doubles,
    Type.DATE: _days,
    Type.TIMESTAMP: _moments,
    Type.TEXT: lambda value: [value] if isinstance(value, str) else [],
    Type.BOOL: lambda _: [],
}
"""For each type of columns the values at which a literal may change a condition."""
