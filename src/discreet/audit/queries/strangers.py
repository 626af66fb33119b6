"""People invented to be as troublesome as a schema allows: at the ends of bounds, beyond them, missing, odd, many."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from discreet.audit.queries.units import Row, ids_of
from discreet.noise import Bits, uniform_below
from discreet.plan.expressions.day_functions import LAST
from discreet.plan.model.schema import Bounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type

MANY_GROUPS, IN_EACH, VERY_MANY = 24, 3, 60
_MIDNIGHT = dt.time()
_LARGEST, _SMALLEST = (1 << 63) - 1, -(1 << 63)

ODD: Mapping[Type, Sequence[Any]] = {
    Type.INT: (None, 0, 1, -1, 7, _LARGEST, _SMALLEST),
    Type.FLOAT: (None, 0.0, -0.0, 0.5, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324),
    Type.BOOL: (None, True, False),
    Type.TEXT: (None, "", " ", "12", "-0.5", "2024-02-29", "NULL", "it's", "e\u0301", "\u00e9", "\u202e", "x" * 999),
    Type.DATE: (None, dt.date.min, dt.date.max, dt.date(1582, 10, 10), dt.date(2024, 2, 29)),
    Type.TIMESTAMP: (
        None,
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
    ),
}
"""Values at which carelessness shows, by type."""


def strangers(schema: TableSchema, bits: Bits) -> dict[str, Callable[[], list[Row]]]:
    """Kinds of strangers, in words, and the rows of one of each kind, without an id.

    Args:
        schema: what is declared; nothing else is known of the table.
        bits: of the choices among odd values.
    """
    columns = [column for name, column in schema.stored.items() if name not in ids_of(schema)]
    places = range(MANY_GROUPS * IN_EACH)

    def odd(times: int) -> list[Row]:
        return [{c.name: _one_of(_odd(c), bits) for c in columns} for _ in range(times)]

    return {
        "a stranger at the upper ends of all bounds, in many groups": lambda: _greedy(columns, places, 1),
        "a stranger at the lower ends of all bounds, in many groups": lambda: _greedy(columns, places, 0),
        "a stranger far above all bounds": lambda: _beyond(columns, places, 1),
        "a stranger far below all bounds": lambda: _beyond(columns, places, 0),
        "a stranger of whom nothing is known": lambda: [{c.name: None for c in columns}] * 2,
        "a stranger with odd values": lambda: odd(12),
        "a stranger with very many rows in one place": lambda: _greedy(columns, [0] * VERY_MANY, 1),
        "a stranger with a single odd row": lambda: odd(1),
    }


def fresh_ids(schema: TableSchema, known: Callable[[Row], bool]) -> Iterator[Row]:
    """Ids that nobody has, as the columns that they are; few, where a column has few values."""
    names = ids_of(schema)
    for place in count():
        made = {name: _id(schema.columns[name].type, place) for name in names}
        if None in made.values():
            return
        if not known(made):
            yield made


def fresh_values(kind: Type) -> Iterator[Any]:
    """Values of a type that are hardly ever in a table; few, where there are few."""
    for place in count():
        made = _id(kind, place)
        if made is None:
            return
        yield made


def spelled(who: Row, schema: TableSchema, place: int) -> Row:
    """The same id in another spelling: white space around a text makes no second person."""
    pads = ("{}", " {}", "{}\u3000")
    return {
        name: pads[place % 3].format(value) if schema.columns[name].type is Type.TEXT and value is not None else value
        for name, value in who.items()
    }


def _id(kind: Type, place: int) -> Any:
    start = dt.datetime(1900, 1, 1)
    made: Mapping[Type, Any] = {
        Type.INT: 10**9 + place,
        Type.TEXT: f"stranger {place}",
        Type.BOOL: (True, False, None)[min(place, 2)],
        Type.DATE: (start + dt.timedelta(days=min(place, 10**5))).date(),
        Type.TIMESTAMP: start + dt.timedelta(seconds=place),
    }
    return made[kind]


def _greedy(columns: Sequence[ColumnSchema], places: Sequence[int], end: int) -> list[Row]:
    """Numbers at one end of their bounds, and another group in every few rows."""
    return [_in_groups(columns, place // IN_EACH, end, _at_end) for place in places]


def _beyond(columns: Sequence[ColumnSchema], places: Sequence[int], end: int) -> list[Row]:
    """Numbers beyond one end of their bounds, in groups that were declared, and in one that nobody declared."""
    rows = [_in_groups(columns, place // IN_EACH, end, _outside) for place in places]
    nowhere = {c.name: "nobody declared this" for c in columns if c.type is Type.TEXT}
    return [*rows, *({**row, **nowhere} for row in rows[:IN_EACH])]


def _in_groups(
    columns: Sequence[ColumnSchema], group: int, end: int, other: Callable[[ColumnSchema, int, int], Any]
) -> Row:
    """A row of one of many groups: declared keys take turns, the others are left to a function of end and group."""
    row, stride = Row(), 1
    for column in columns:
        if column.keys is None:
            row[column.name] = other(column, end, group)
        else:
            row[column.name] = column.keys[group // stride % len(column.keys)]
            stride *= min(len(column.keys), 3)
    return row


def _at_end(column: ColumnSchema, end: int, group: int) -> Any:
    if column.bounds is not None:
        return _ends(column.type, column.bounds)[end]
    if column.type is Type.TEXT:
        return f"group {group}"
    if column.type is Type.BOOL:
        return bool((group + end) % 2)
    known = [value for value in ODD[column.type] if value is not None]
    return known[(group + end) % len(known)]


def _outside(column: ColumnSchema, end: int, group: int) -> Any:
    """Just outside the bounds, far outside, or infinite, by turns."""
    turn = group % 3
    if column.type is Type.FLOAT:
        low, high = (0.0, 0.0) if column.bounds is None else _ends(column.type, column.bounds)
        return ((-1e300, low - 1, -math.inf), (1e300, high + 1, math.inf))[end][turn]
    if column.type is Type.INT:
        low, high = (0, 0) if column.bounds is None else _ends(column.type, column.bounds)
        return ((_SMALLEST, max(low - 1, _SMALLEST)), (_LARGEST, min(high + 1, _LARGEST)))[end][turn % 2]
    if column.type in (Type.DATE, Type.TIMESTAMP):
        known = [value for value in ODD[column.type] if value is not None]
        return min(known) if end == 0 else max(known)
    return _at_end(column, end, group)


def _odd(column: ColumnSchema) -> Sequence[Any]:
    ends = () if column.bounds is None else _ends(column.type, column.bounds)
    return *ODD[column.type], *(column.keys or ()), *ends


def _ends(kind: Type, bounds: Bounds) -> tuple[Any, Any]:
    """The smallest and the largest value within bounds."""
    if kind is Type.INT:
        return max(math.ceil(bounds.low), _SMALLEST), min(math.floor(bounds.high), _LARGEST)
    if kind is Type.FLOAT:
        return float(bounds.low), float(bounds.high)
    first, last = (dt.date.fromordinal(min(max(math.floor(end), 1), LAST)) for end in (bounds.low, bounds.high))
    if kind is Type.DATE:
        return first, last
    return dt.datetime.combine(first, _MIDNIGHT), dt.datetime.combine(last, _MIDNIGHT)


def _one_of(options: Sequence[Any], bits: Bits) -> Any:
    return options[uniform_below(len(options), bits=bits)]
