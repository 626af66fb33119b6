"""Copies of a table with a few rows less or more: what an audit compares a curator's behaviour on.

A list of rows stays a list of rows. Everything else that DuckDB reads is copied once into a database in memory, whose
parts are handed out as streams of Arrow, so that a curator reads them as it reads a frame.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import duckdb

from discreet.engines.duckdb.composed.declared_columns import declared_columns
from discreet.engines.duckdb.composed.file_parts import steward_table
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.source_tables import describe_source, fetch_rows, open_database, put
from discreet.engines.duckdb.sources import RowStream, source_of
from discreet.engines.sources.file_set import FileSet

Row = dict[str, Any]

_PLACE = "#place"


class Copy(Protocol):
    """A table whose rows have places."""

    def column(self, names: Sequence[str]) -> list[Row]:
        """Returns some columns of all rows, in order of their places."""

    def rows(self, places: Iterable[int]) -> list[Row]:
        """Returns all columns of the rows in these places."""

    def keep(self, places: Collection[int]) -> Copy:
        """Copies some rows only; their places are other ones."""

    def with_changes(self, without: Collection[int] = (), more: Sequence[Row] = ()) -> Any:
        """Returns the table without some rows and with others, as something that a curator can protect."""


def copy_of(table: Any, columns: Collection[str] | None = None) -> Copy:
    """Copies a list of rows, a frame, or a file; some columns only, if they are named.

    Raises:
        InvalidParameter: if it is no table.
    """
    if isinstance(table, Sequence) and not isinstance(table, str) and all(isinstance(row, Mapping) for row in table):
        return _Listed([{name: row[name] for name in row if columns is None or name in columns} for row in table])
    return _Stored.of(table, columns)


class _Listed:
    """Rows in a list."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def column(self, names: Sequence[str]) -> list[Row]:
        return [{name: row.get(name) for name in names} for row in self._rows]

    def rows(self, places: Iterable[int]) -> list[Row]:
        return [self._rows[place] for place in places]

    def keep(self, places: Collection[int]) -> _Listed:
        kept = set(places)
        return _Listed([row for place, row in enumerate(self._rows) if place in kept])

    def with_changes(self, without: Collection[int] = (), more: Sequence[Row] = ()) -> list[Row]:
        left = set(without)
        return [*(row for place, row in enumerate(self._rows) if place not in left), *more]


class _Stored:
    """Rows in a database in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, names: Sequence[str], table: str) -> None:
        self._connection, self._names, self._table, self._made = connection, list(names), table, 0

    @classmethod
    def of(cls, table: Any, columns: Collection[str] | None) -> _Stored:
        connection, source = open_database(), source_of(table)
        connection.execute("SET preserve_insertion_order = true")  # so that a seed tries the same again
        with ExitStack() as files:
            if isinstance(source, FileSet):
                listing, source, types = steward_table("given", source)
                files.callback(listing.close)
                described = declared_columns(types)
            else:
                described = describe_source(source)
            known = {n: column for n, column in described.items() if columns is None or n in columns}
            put(connection, (source, known), "given")
            sql = f"CREATE TABLE whole AS SELECT row_number() OVER () - 1 AS {DIALECT.quote_name(_PLACE)}, * FROM given"
            fetch_rows(connection, {"given": (source, known)}, sql, {})
        return cls(connection, list(known), "whole")

    def column(self, names: Sequence[str]) -> list[Row]:
        return self._fetch_rows(names, "")

    def rows(self, places: Iterable[int]) -> list[Row]:
        listed = ", ".join(str(int(place)) for place in places)
        return self._fetch_rows(self._names, f"WHERE {DIALECT.quote_name(_PLACE)} IN ({listed})") if listed else []

    def keep(self, places: Collection[int]) -> _Stored:
        listed = ", ".join(str(int(place)) for place in places) or "-1"
        place, name = DIALECT.quote_name(_PLACE), f"{self._table}_kept"
        self._connection.execute(
            f"CREATE TABLE {name} AS SELECT * REPLACE (row_number() OVER (ORDER BY {place}) - 1 AS {place}) "
            f"FROM {self._table} WHERE {place} IN ({listed})"
        )
        return _Stored(self._connection, self._names, name)

    def with_changes(self, without: Collection[int] = (), more: Sequence[Row] = ()) -> RowStream:
        self._made += 1
        extra, shown = f"{self._table}_{self._made}", ", ".join(map(DIALECT.quote_name, self._names))
        self._connection.execute(f"CREATE TABLE {extra} AS SELECT {shown} FROM {self._table} LIMIT 0")
        kinds = [kind for _, kind, *_ in self._connection.execute(f"DESCRIBE {extra}").fetchall()]
        cells = "(" + ", ".join(f"TRY_CAST(? AS {kind})" for kind in kinds) + ")"
        if more:
            values = [row.get(name) for row in more for name in self._names]
            self._connection.execute(f"INSERT INTO {extra} VALUES {', '.join([cells] * len(more))}", values)
        listed = ", ".join(str(int(place)) for place in without) or "-1"
        sql = (
            f"SELECT {shown} FROM {self._table} WHERE {DIALECT.quote_name(_PLACE)} NOT IN ({listed}) "
            f"UNION ALL SELECT {shown} FROM {extra}"
        )
        return RowStream(lambda: self._connection.sql(sql))

    def _fetch_rows(self, names: Sequence[str], where: str) -> list[Row]:
        shown = ", ".join(map(DIALECT.quote_name, names))
        sql = f"SELECT {shown or '1'} FROM {self._table} {where} ORDER BY {DIALECT.quote_name(_PLACE)}"
        return [dict(zip(names, row, strict=False)) for row in self._connection.execute(sql).fetchall()]
