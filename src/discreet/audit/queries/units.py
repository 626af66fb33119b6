"""The units of one account: whose row is whose, and invented units that are as troublesome as a schema allows.

A row belongs to a unit by the id in its own columns, or on a way over keys of other tables. Invented units have values
at the ends of bounds, beyond them, missing, odd, and many of them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from discreet.engines.duckdb.copies import Copy
from discreet.engines.memory.engine import cell
from discreet.engines.row_choice import normalize_id, put_together
from discreet.errors import InvalidParameter
from discreet.noise import Bits, uniform_below
from discreet.noise.experiment import shuffle_indices
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.functions import LAST_DAY
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema, UnitLink
from discreet.plan.model.types import Type

Row = dict[str, Any]
Places = dict[str, list[int]]
"""Rows, as places in tables by name."""


def ids_of(schema: TableSchema) -> tuple[str, ...]:
    """Returns the own columns of a table that make a row's unit; none if each row is one, or on a way.

    Rows of one person and day are of one unit where units are people in periods, too.
    """
    if schema.unit is None or schema.reach is not None:
        return ()
    if schema.period is not None:
        return schema.person, schema.period.column
    return schema.parts or (schema.unit,)


class UnitRows:
    """Finds the people of one account, and their rows in all of its tables.

    A row on a way belongs to all people who have a row with its key in the table that the way leads to, as every engine
    reads it: to several people, if they share the key, and to no one, if no one has it.

    Args:
        copies: the tables of the account, by name.
        schemas: what is declared about them.

    Raises:
        InvalidParameter: if a way leads to a table that is not given.
    """

    def __init__(self, copies: Mapping[str, Copy], schemas: Mapping[str, TableSchema]) -> None:
        self.copies, self.schemas = copies, schemas
        self.owners: dict[str, list[frozenset[Any]]] = {}
        for name in schemas:
            self._find(name)
        self.rows: dict[Any, Places] = {}
        for name, owners in self.owners.items():
            for place, own in enumerate(owners):
                if len(own) == 1:  # a row that others share stays when a person goes
                    self.rows.setdefault(next(iter(own)), {}).setdefault(name, []).append(place)

    def unit_of(self, row: Row, name: str) -> Any:
        """Returns whose row of a table with ids it is, as every engine reads it; None if it has no owner."""
        schema = self.schemas[name]
        parts = [cell(row, part, schema.columns[part].type) for part in ids_of(schema)]
        if schema.period is not None:
            parts[1] = evaluate(schema.period.first_day, {schema.period.column: parts[1]})
        return put_together(parts) if len(parts) > 1 else normalize_id(parts[0])

    def values(self, name: str, column: str) -> list[Any]:
        """Returns a column as engines read it."""
        kind = self.schemas[name].columns[column].type
        return [cell(row, column, kind) for row in self.copies[name].column([column])]

    def sample(self, most: int, bits: Bits) -> Places:
        """Returns the rows of so many people as have at most so many rows together, and of at least one."""
        touched: dict[Any, list[tuple[str, int]]] = {}
        for name, owners in self.owners.items():
            for place, own in enumerate(owners):
                for who in own:
                    touched.setdefault(who, []).append((name, place))
        everybody = list(touched.values())
        kept: set[tuple[str, int]] = set()
        for index in shuffle_indices(len(everybody), bits=bits):
            own_rows = set(everybody[index])
            if kept and len(kept | own_rows) > most:
                break
            kept |= own_rows
        return {name: sorted(place for table, place in kept if table == name) for name in self.schemas}

    def _find(self, name: str) -> None:
        """Finds the owners of a table's rows, those of the table that it leads to first."""
        if name in self.owners:
            return
        schema = self.schemas[name]
        if schema.reach is not None:
            self.owners[name] = self._find_owners(name, schema.reach)
        elif schema.unit is None:
            self.owners[name] = [frozenset([(name, place)]) for place, _ in enumerate(self.copies[name].column([]))]
        else:
            rows = self.copies[name].column(ids_of(schema))
            self.owners[name] = [_alone(self.unit_of(row, name)) for row in rows]

    def _find_owners(self, name: str, reach: UnitLink) -> list[frozenset[Any]]:
        if reach.table not in self.schemas:
            hint = f"Pass a mapping of tables that has {reach.table!r} as well: it says whose rows {name!r} has."
            raise InvalidParameter("table", name, f"to come with {reach.table!r}", hint)
        self._find(reach.table)
        keys = self.values(reach.table, reach.key)
        found: dict[Any, set[Any]] = {}
        for key, own in zip(keys, self.owners[reach.table], strict=True):
            if key is not None:
                found.setdefault(key, set()).update(own)
        return [frozenset(found.get(key, ())) for key in self.values(name, reach.column)]


def _alone(who: Any) -> frozenset[Any]:
    return frozenset() if who is None else frozenset([who])


def by_account(schemas: Iterable[TableSchema]) -> dict[str, dict[str, TableSchema]]:
    """Returns tables by their accounts."""
    found: dict[str, dict[str, TableSchema]] = {}
    for schema in schemas:
        found.setdefault(schema.account, {})[schema.name] = schema
    return found


def unit_name(schemas: Sequence[TableSchema]) -> str:
    """Returns what the people of an account are called, by the first table that has ids."""
    for schema in schemas:
        if ids_of(schema):
            return " and ".join(ids_of(schema))
    return "row"


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


def invented_units(schema: TableSchema, bits: Bits) -> dict[str, Callable[[], list[Row]]]:
    """Returns kinds of invented units, in words, and the rows of one of each kind, without an id.

    Args:
        schema: what is declared; nothing else is known of the table.
        bits: of the choices among odd values.
    """
    columns = [column for name, column in schema.stored_columns.items() if name not in ids_of(schema)]
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
    """Yields unused ids, as the columns that they are; few, where a column has few values."""
    names = ids_of(schema)
    for place in count():
        made = {name: _id(schema.columns[name].type, place) for name in names}
        if None in made.values():
            return
        if not known(made):
            yield made


def fresh_values(kind: Type) -> Iterator[Any]:
    """Yields values of a type that are hardly ever in a table; few, where there are few."""
    for place in count():
        made = _id(kind, place)
        if made is None:
            return
        yield made


def respell_id(who: Row, schema: TableSchema, place: int) -> Row:
    """Returns the same id in another spelling: white space around a text makes no second person."""
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
    """Returns numbers at one end of their bounds, and another group in every few rows."""
    return [_in_groups(columns, place // IN_EACH, end, _at_end) for place in places]


def _beyond(columns: Sequence[ColumnSchema], places: Sequence[int], end: int) -> list[Row]:
    """Returns numbers beyond one end of their bounds, in groups that were declared, and in one that was not."""
    rows = [_in_groups(columns, place // IN_EACH, end, _outside) for place in places]
    nowhere = {c.name: "an undeclared group" for c in columns if c.type is Type.TEXT}
    return [*rows, *({**row, **nowhere} for row in rows[:IN_EACH])]


def _in_groups(
    columns: Sequence[ColumnSchema], group: int, end: int, other: Callable[[ColumnSchema, int, int], Any]
) -> Row:
    """Returns a row of one of many groups.

    Declared keys take turns, the others are left to a function of end and group.
    """
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
    """Returns a value just outside the bounds, far outside, or infinite, by turns."""
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


def _ends(kind: Type, bounds: ColumnBounds) -> tuple[Any, Any]:
    """Returns the smallest and the largest value within bounds."""
    if kind is Type.INT:
        return max(math.ceil(bounds.low), _SMALLEST), min(math.floor(bounds.high), _LARGEST)
    if kind is Type.FLOAT:
        return float(bounds.low), float(bounds.high)
    first, last = (dt.date.fromordinal(min(max(math.floor(end), 1), LAST_DAY)) for end in (bounds.low, bounds.high))
    if kind is Type.DATE:
        return first, last
    return dt.datetime.combine(first, _MIDNIGHT), dt.datetime.combine(last, _MIDNIGHT)


def _one_of(options: Sequence[Any], bits: Bits) -> Any:
    return options[uniform_below(len(options), bits=bits)]
