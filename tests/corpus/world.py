"""What a world is: tables about the same people and public ones beside them, under a curator or as plain SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from discreet.curator import Curator
from discreet.engines import DuckDB, Engine
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import Budget, Loss

Row = dict[str, Any]
T = TypeVar("T")

LARGE = Budget(epsilon=10**30, delta="0.9")
"""Thousands of questions at an epsilon that leaves no noise to see."""

_ARROW = {
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


class Chance:
    """Choices from seeded bits: the same seed, the same people."""

    def __init__(self, seed: int) -> None:
        self._bits = SeededBits(seed)

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1."""
        return int(uniform_below(count, bits=self._bits))

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + self.below(high - low + 1)

    def one(self, options: Sequence[T]) -> T:
        """One of them, all alike."""
        return options[self.below(len(options))]

    def weighted(self, shares: Mapping[T, int]) -> T:
        """One of them, in proportion to its share."""
        place = self.below(sum(shares.values()))
        for option, share in shares.items():
            place -= share
            if place < 0:
                return option
        raise AssertionError(place)

    def happens(self, percent: int) -> bool:
        """True so often in a hundred."""
        return self.below(100) < percent

    def around(self, middle: int, spread: int) -> int:
        """The sum of four dice around a middle: most of it within the spread."""
        return middle + sum(self.between(-spread, spread) for _ in range(4)) // 2

    def day(self, first: dt.date, last: dt.date) -> dt.date:
        """A day, both ends included."""
        return first + dt.timedelta(days=self.below((last - first).days + 1))

    def moment(self, day: dt.date) -> dt.datetime:
        """A minute of a day."""
        return dt.datetime.combine(day, dt.time()) + dt.timedelta(minutes=self.below(24 * 60))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table and what its steward declares; without a unit it is public."""

    name: str
    types: Mapping[str, str]
    rows: Sequence[Row]
    unit: str | None = None
    account: str | None = None
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)

    def arrow(self) -> pa.Table:
        """The rows as a frame that carries its types."""
        schema = pa.schema([(name, _ARROW[kind]) for name, kind in self.types.items()])
        return pa.Table.from_pylist(list(self.rows), schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Several tables, and how much one person may count in an answer about them.

    The limits are wider than anybody's rows, so that a question without noise has the answer of plain SQL.
    """

    name: str
    tables: Sequence[Table]
    max_groups: int
    max_rows: int

    def curator(
        self, engine: Engine | None = None, *, budget: Loss = LARGE, today: dt.date | None = None, **declared: Any
    ) -> Curator:
        """A curator of all tables, over DuckDB unless another engine is given, with seeded noise."""
        made = engine if engine is not None else DuckDB(threads=1)
        curator = Curator.for_tests(engine=made, bits=SeededBits(17), today=today)
        for table in self.tables:
            source: Any = table.arrow() if isinstance(made, DuckDB) else list(table.rows)
            if table.unit is None:
                curator.public(source, name=table.name, types=table.types)
                continue
            options: dict[str, Any] = {
                "types": table.types,
                "unit": table.unit,
                "account": table.account,
                "bounds": table.bounds,
                "keys": table.keys,
                "max_groups": self.max_groups,
                "max_rows": self.max_rows,
                "budget": budget,
            }
            curator.protect(source, name=table.name, **(options | declared))
        return curator

    def plain(self) -> duckdb.DuckDBPyConnection:
        """The same tables for everybody to read: the truth that answers are compared with."""
        connection = duckdb.connect()
        for table in self.tables:
            connection.register(table.name, table.arrow())
        return connection

    def table(self, name: str) -> Table:
        """A table by name."""
        return next(table for table in self.tables if table.name == name)

    def without(self, person: Any) -> World:
        """The world without one person: a neighbour."""
        return replace(self, tables=[replace(table, rows=self._others(table, person)) for table in self.tables])

    def _others(self, table: Table, person: Any) -> list[Row]:
        """The rows of a table that are not one person's, by its own column of ids or by another table's."""
        column, _, owner = (table.unit or "").partition(" -> ")
        gone = {person}
        if owner:
            name, _, key = owner.partition(".")
            kept = self._others(self.table(name), person)
            gone = {row[key] for row in self.table(name).rows} - {row[key] for row in kept}
        return [row for row in table.rows if not column or row[column] not in gone]
