"""The embedded engine: DuckDB, closed to everything but the registered sources before the first question.

Guarantees: only SQL that `statement` printed reaches it; after the first read no file can be opened but the registered
ones, nothing attached, copied, installed or configured; each question has its own cursor and a deadline, and Ctrl-C
stops it; sums come back as exact integers.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from discreet import check
from discreet.engines import ids
from discreet.engines.base import Engine, read_as
from discreet.engines.duckdb import parquet
from discreet.engines.duckdb.sources import Csv, FileTable, Frame, Parquet, Source, source_of
from discreet.engines.duckdb.stoppable import stoppable
from discreet.engines.duckdb.stored_types import Column, listed
from discreet.engines.duckdb.stored_types import columns as columns_of
from discreet.engines.sql.expressions import Dialect, Printer, quoted, text_literal
from discreet.engines.sql.join_census import heavy
from discreet.engines.sql.relations import Rows, Stand
from discreet.engines.sql.statement import Statement, statement
from discreet.errors import InvalidParameter
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import tables
from discreet.plan.model.types import Type

_HARDENED = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "enable_external_file_cache": False,  # a file that changes under a view is read as it is
    "preserve_insertion_order": False,
}
_FEW, _MANY, _BYTES_A_PLACE = 12, 22, 64
_DESCRIBERS: dict[int, duckdb.DuckDBPyConnection] = {}  # by process
_ROWS_AT_ONCE = 10_000  # handed over between two moments at which a read can be stopped
_UNREADABLE = "Its type cannot be read, or not whatever is stored in it: convert the column, or see schema_of."
_OF_RESOURCES = (duckdb.InterruptException, duckdb.OutOfMemoryException)


Readable = tuple[Source, Mapping[str, Column]]
"""A source, and its columns that questions see."""


@dataclass(frozen=True)
class DuckDBDialect(Dialect):
    """What DuckDB does better than the general forms."""

    def total(self, sql: str) -> str:
        """SUM of BIGINT is a HUGEINT already."""
        return f"SUM({sql})"


@dataclass(frozen=True)
class _Table:
    source: Source
    columns: Mapping[str, Column]

    @property
    def stored(self) -> dict[str, tuple[Type, str]]:
        """Columns as they are in the database, where their expressions have been applied."""
        return {name: (column.type, quoted(name)) for name, column in self.columns.items()}


class DuckDB(Engine):
    """DuckDB inside this process.

    Args:
        threads: at most so many at work; None leaves it to DuckDB.
        memory_limit: what DuckDB may allocate, such as "4GB"; None leaves it to DuckDB.
        deadline: seconds after which a question is stopped; None for none.
        spill: a directory for what does not fit into memory; None keeps private rows off the disk, and the
            question fails.

    >>> from discreet.plan.model.readings import Reading, Statistic
    >>> DuckDB(threads=1).dialect.total("x")
    'SUM(x)'
    """

    dialect = DuckDBDialect()

    def __init__(
        self,
        *,
        threads: int | None = None,
        memory_limit: str | None = None,
        deadline: float | None = None,
        spill: Path | None = None,
    ) -> None:
        super().__init__()
        if threads is not None:
            check.integer(threads=threads, at_least=1, at_most=1024)
        if memory_limit is not None and not re.fullmatch(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", memory_limit):
            raise InvalidParameter("memory_limit", memory_limit, "to be an amount", "Pass e.g. memory_limit='4GB'.")
        if deadline is not None:
            check.positive(deadline=deadline)
        self._settings = {"threads": threads, "memory_limit": memory_limit, "temp_directory": str(spill or "")}
        self._deadline = deadline
        self._tables: dict[str, _Table] = {}
        self._open: duckdb.DuckDBPyConnection | None = None
        self._lock = threading.RLock()

    def schema_of(self, source: Any) -> dict[str, Type]:
        """The columns whose types Parquet, Arrow or the database carries; CSV and object columns carry none."""
        kind = source_of(source)
        if isinstance(kind, Csv):
            return {}
        untyped = kind.texts if isinstance(kind, Frame) else ()
        return {name: column.type for name, column in described(kind).items() if name not in untyped}

    def close(self) -> None:
        """Closes the database; running questions end with `QueryFailed`."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None
            self._tables.clear()
            self._columns.clear()

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        kind = source_of(source)
        known = described(kind)
        for column, declared in columns.items():
            if column not in known:
                raise InvalidParameter("column", column, f"to be a readable column of {name!r}", _UNREADABLE)
            read_as(column, known[column].type, declared)
        with self._lock:
            self._tables[name] = _Table(kind, {column: known[column] for column in columns})
            if self._open is not None:  # the open database is locked; the next question opens another
                self._open.close()
            self._open = None

    def _prepare(self, reading: Reading) -> Iterator[tuple[Any, Any]]:
        stands = {
            name: Stand(f"t{place}", table.stored, self._columns[name])
            for place, (name, table) in enumerate(self._tables.items())
        }
        if reading.source is None:
            own = stands[reading.table]
            printer, likely = Printer(self.dialect, own.sql, own.stored, own.declared), None
        else:
            rows = Rows(self.dialect, stands)
            printer, likely = rows.printer(reading.source), heavy(rows, reading)
        made = statement(reading, printer, likely)
        asked = {reading.table, *(() if reading.source is None else tables(reading.source))}
        named = {f"t{place}": table for place, (name, table) in enumerate(self._tables.items()) if name in asked}
        return self._results(made, {name: (table.source, table.columns) for name, table in named.items()})

    def _results(self, made: Statement, asked: Mapping[str, Readable]) -> Iterator[Any]:
        cursor = self._cursor()

        def read(stopped: threading.Event) -> list[tuple[Any, ...]]:
            with cursor:
                try:
                    return fetched(cursor, asked, made.sql, made.parameters, stopped)
                except (duckdb.InternalException, duckdb.FatalException):  # after which DuckDB answers nobody
                    self._forget()
                    raise

        yield from made.results(stoppable(read, cursor.interrupt, deadline=self._deadline))

    def _forget(self) -> None:
        with self._lock:
            self._open = None

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._open is None:
                self._open = self._sealed()
            return self._open.cursor()

    def _sealed(self) -> duckdb.DuckDBPyConnection:
        """A database that holds the registered tables and can reach nothing else."""
        settings = {name: value for name, value in self._settings.items() if value is not None}
        settings["perfect_ht_threshold"] = max((_bits(table.source) for table in self._tables.values()), default=_FEW)
        connection = duckdb.connect(config={**_HARDENED, **settings})
        connection.create_function(ids.FUNCTION, ids.text_of, ["VARCHAR"], "VARCHAR")

        def filled(_stopped: threading.Event) -> duckdb.DuckDBPyConnection:
            try:
                self._fill(connection)
            except BaseException:
                connection.close()
                raise
            return connection

        return stoppable(filled, connection.interrupt)

    def _fill(self, connection: duckdb.DuckDBPyConnection) -> None:
        paths = sorted({str(path) for table in self._tables.values() for path in _paths(table.source)})
        connection.execute(f"SET allowed_paths = [{', '.join(text_literal(path) for path in paths)}]")
        for place, table in enumerate(self._tables.values()):
            put(connection, (table.source, table.columns), f"t{place}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")


def _bits(source: Source) -> int:
    """The logarithm of how many numbers may have a place each where rows are counted by a number.

    Places for a million people are ten times faster than a hash table where there are ten million rows, and ten times
    slower where there are a thousand: a place for every so many bytes of a file is little beside reading it.
    """
    size = sum(path.stat().st_size for path in _paths(source))
    return min(max((size // _BYTES_A_PLACE).bit_length(), _FEW), _MANY)


def _paths(source: Source) -> tuple[Path, ...]:
    if isinstance(source, Parquet | Csv):
        return source.paths
    return (source.path,) if isinstance(source, FileTable) else ()


def _parquet(connection: duckdb.DuckDBPyConnection, source: Parquet, name: str) -> str:
    del connection, name
    return parquet.scan(source.paths)


def _csv(connection: duckdb.DuckDBPyConnection, source: Csv, name: str) -> str:
    del connection, name
    columns = ", ".join(f"{text_literal(column)}: 'VARCHAR'" for column in source.header)
    return (
        f"read_csv([{', '.join(text_literal(str(path)) for path in source.paths)}], "
        f"auto_detect = false, header = true, delim = {text_literal(source.delimiter)}, "
        f"quote = '\"', escape = '\"', columns = {{{columns}}}, nullstr = '', allow_quoted_nulls = true, "
        "ignore_errors = true, null_padding = true, parallel = false, strict_mode = false)"
    )


def _frame(connection: duckdb.DuckDBPyConnection, source: Frame, name: str) -> str:
    connection.register(f"{name}_frame", source.stream)
    return f"{name}_frame"


def _file_table(connection: duckdb.DuckDBPyConnection, source: FileTable, name: str) -> str:
    connection.execute(f"ATTACH {text_literal(str(source.path))} AS {name}_file (READ_ONLY)")
    return f"{name}_file.{quoted(source.schema)}.{quoted(source.table)}"


_PREPARE: Mapping[type, Callable[[duckdb.DuckDBPyConnection, Any, str], str]] = {
    Parquet: _parquet,
    Csv: _csv,
    Frame: _frame,
    FileTable: _file_table,
}
"""What stands after FROM, and what must be done before."""


def hardened() -> duckdb.DuckDBPyConnection:
    """An empty database in memory that loads nothing by itself."""
    return duckdb.connect(config=dict(_HARDENED))


def _describer() -> duckdb.DuckDBPyConnection:
    """A place where frames are described: one database of each process, because opening one costs more than all else.

    What is registered there is seen by nobody else, and nothing is read from it. It is never closed: after a fork it
    would wait for threads that only the parent has.
    """
    process = os.getpid()
    if process not in _DESCRIBERS:
        _DESCRIBERS[process] = hardened()
    return _DESCRIBERS[process].cursor()


def described(source: Source) -> dict[str, Column]:
    """The columns of a source that can be read whatever is in them, from its format.

    Raises:
        InvalidParameter: if it cannot be opened.
    """
    with _describer() if isinstance(source, Frame) else hardened() as connection:
        try:
            if isinstance(source, Parquet):
                return parquet.described(connection, source)
            text = _PREPARE[type(source)](connection, source, "t0")
            if isinstance(source, FileTable):
                _check_is_table(connection, source)
            return columns_of(connection.sql(f"SELECT * FROM {text}"), checked=not isinstance(source, Frame))
        except duckdb.Error:
            pass
    raise InvalidParameter("source", type(source).__name__, "to be a readable file or frame")


def _check_is_table(connection: duckdb.DuckDBPyConnection, source: FileTable) -> None:
    """A view computes, and nobody knows on which values its expressions fail."""
    sql = "SELECT count(*) FROM duckdb_views() WHERE lower(schema_name) = lower(?) AND lower(view_name) = lower(?)"
    row = connection.execute(f"{sql} AND database_name = 't0_file'", [source.schema, source.table]).fetchone()
    if row != (0,):
        hint = "Store what it computes: CREATE TABLE ... AS SELECT * FROM the view."
        raise InvalidParameter("source", source.table, "to be a table, not a view", hint)


def put(connection: duckdb.DuckDBPyConnection, readable: Readable, name: str) -> None:
    """Makes columns readable under a name: a frame is copied, everything else stays where it is."""
    source, columns = readable
    text = _PREPARE[type(source)](connection, source, name)
    kind = "TABLE" if isinstance(source, Frame) else "VIEW"
    connection.execute(f"CREATE {kind} {name} AS SELECT {listed(columns.items())} FROM {text}")
    if isinstance(source, Frame):
        connection.unregister(text)


def fetched(
    connection: duckdb.DuckDBPyConnection,
    asked: Mapping[str, Readable],
    sql: str,
    parameters: Mapping[str, Any],
    stopped: threading.Event | None = None,
) -> list[tuple[Any, ...]]:
    """The rows of a statement over tables; where DuckDB fails, those of the same over files that are read with care.

    No value of a row makes the second one fail. The first may have failed for one, so nothing of its cause is kept.

    Raises:
        TimeoutError: if the event was set before all rows were there.
    """
    try:
        return _all(connection, sql, parameters, stopped)
    except _OF_RESOURCES:
        raise
    except duckdb.Error:
        pass
    for name, (source, columns) in asked.items():
        if isinstance(source, Parquet):
            parquet.take_care(connection, source, columns, name)
    return _all(connection, sql, parameters, stopped)


def _all(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any], stopped: threading.Event | None
) -> list[tuple[Any, ...]]:
    connection.execute(sql, dict(parameters))
    rows: list[tuple[Any, ...]] = []
    while some := connection.fetchmany(_ROWS_AT_ONCE):
        if stopped is not None and stopped.is_set():  # what was fetched so far is not all
            raise TimeoutError
        rows += some
    return rows
