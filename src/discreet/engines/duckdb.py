"""The embedded engine: DuckDB, closed to everything but the registered sources before the first question.

Guarantees: only SQL that `statement` printed reaches it; after the first read no file can be opened but the registered
ones, nothing attached, copied, installed or configured; each question has its own cursor and a deadline; sums come
back as exact integers.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from discreet import check
from discreet.engines.base import Engine, read_as
from discreet.engines.census import heavy
from discreet.engines.rows import Rows, Stand
from discreet.engines.sources import Csv, FileTable, Frame, Parquet, Source, source_of
from discreet.engines.sql import Dialect, Printer, quoted, text_literal
from discreet.engines.statement import statement
from discreet.errors import InvalidParameter
from discreet.plan.reading import Reading
from discreet.plan.types import Type

_HARDENED = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "enable_external_file_cache": False,  # a file that changes under a view is read as it is
    "preserve_insertion_order": False,
}
_FEW, _MANY, _BYTES_A_PLACE = 12, 22, 64
_AGAIN = 0.01  # seconds between interrupts

_MOMENT = "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN {0} END"
_DAY = "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END"

STORED: Mapping[str, tuple[Type, str]] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"), (Type.INT, "CAST({0} AS BIGINT)")
    ),
    "BIGINT": (Type.INT, "{0}"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), (Type.INT, "TRY_CAST({0} AS BIGINT)")),
    **dict.fromkeys(("FLOAT", "DECIMAL"), (Type.FLOAT, "CAST({0} AS DOUBLE)")),
    "DOUBLE": (Type.FLOAT, "{0}"),
    "BOOLEAN": (Type.BOOL, "{0}"),
    "VARCHAR": (Type.TEXT, "{0}"),
    **dict.fromkeys(("ENUM", "UUID"), (Type.TEXT, "CAST({0} AS VARCHAR)")),
    "DATE": (Type.DATE, _DAY),
    "TIMESTAMP": (Type.TIMESTAMP, _MOMENT),
    **dict.fromkeys(
        ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        (Type.TIMESTAMP, _MOMENT.replace("{0}", "CAST({0} AS TIMESTAMP)")),
    ),
    # A moment with a zone is read in UTC.
    "TIMESTAMP WITH TIME ZONE": (Type.TIMESTAMP, _MOMENT.replace("{0}", "make_timestamp(epoch_us({0}))")),
}
"""DuckDB's types as ours, and how they are read; columns of other types cannot be declared."""


@dataclass(frozen=True)
class DuckDBDialect(Dialect):
    """What DuckDB does better than the general forms."""

    def total(self, sql: str) -> str:
        """SUM of BIGINT is a HUGEINT already."""
        return f"SUM({sql})"


@dataclass(frozen=True)
class _Table:
    source: Source
    stored: Mapping[str, tuple[Type, str]]


class _Deadline:
    """Interrupts what runs inside, again and again once the time is up: one that comes too early is forgotten.

    Without a deadline nothing watches.
    """

    def __init__(self, seconds: float | None, interrupt: Callable[[], None]) -> None:
        self._seconds, self._interrupt = seconds, interrupt
        self._watch: threading.Thread | None = None

    def _run(self) -> None:
        late = not self._done.wait(self._seconds)
        while late and not self._done.wait(_AGAIN):
            self._interrupt()

    def __enter__(self) -> None:
        if self._seconds is not None:
            self._done = threading.Event()
            self._watch = threading.Thread(target=self._run, daemon=True)
            self._watch.start()

    def __exit__(self, *_: object) -> None:
        if self._watch is not None:
            self._done.set()
            self._watch.join()


class DuckDB(Engine):
    """DuckDB inside this process.

    Args:
        threads: at most so many at work; None leaves it to DuckDB.
        memory_limit: what DuckDB may allocate, such as "4GB"; None leaves it to DuckDB.
        deadline: seconds after which a question is stopped; None for none.
        spill: a directory for what does not fit into memory; None keeps private rows off the disk, and the
            question fails.

    >>> from discreet.plan.reading import Reading, Statistic
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
        return {name: stored for name, (stored, _) in self._described(kind).items() if name not in untyped}

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
        described = self._described(kind)
        for column, declared in columns.items():
            if column not in described:
                raise InvalidParameter("column", column, f"to be a readable column of {name!r}", "See schema_of.")
            read_as(column, described[column][0], declared)
        with self._lock:
            self._tables[name] = _Table(kind, {column: described[column] for column in columns})
            if self._open is not None:  # the open database is locked; the next question opens another
                self._open.close()
            self._open = None

    def _described(self, source: Source) -> dict[str, tuple[Type, str]]:
        """The readable columns of a source, from its format."""
        with hardened() as connection:
            try:
                text = _PREPARE[type(source)](connection, source, "t0")
                rows = connection.execute(f"DESCRIBE SELECT * FROM {text}").fetchall()
            except duckdb.Error:
                rows = None
        if rows is None:
            raise InvalidParameter("source", type(source).__name__, "to be a readable file or frame")
        kinds = ((name, re.split(r"[(]", kind)[0]) for name, kind, *_ in rows)
        return {n: (STORED[k][0], STORED[k][1].replace("{0}", quoted(n))) for n, k in kinds if k in STORED}

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
        return self._results(made.sql, made.parameters, made.results)

    def _results(
        self, sql: str, parameters: Mapping[str, Any], results: Callable[[Iterable[tuple[Any, ...]]], Iterator[Any]]
    ) -> Iterator[Any]:
        with self._cursor() as cursor, _Deadline(self._deadline, cursor.interrupt):
            rows = cursor.execute(sql, dict(parameters)).fetchall()
        yield from results(rows)

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
        paths = sorted({str(path) for table in self._tables.values() for path in _paths(table.source)})
        connection.execute(f"SET allowed_paths = [{', '.join(text_literal(path) for path in paths)}]")
        for place, table in enumerate(self._tables.values()):
            text = _PREPARE[type(table.source)](connection, table.source, f"t{place}")
            kind = "TABLE" if isinstance(table.source, Frame) else "VIEW"
            connection.execute(f"CREATE {kind} t{place} AS SELECT * FROM {text}")
            if isinstance(table.source, Frame):
                connection.unregister(f"t{place}_frame")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection


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


def _list(paths: Iterable[Path]) -> str:
    return f"[{', '.join(text_literal(str(path)) for path in paths)}]"


def _parquet(connection: duckdb.DuckDBPyConnection, source: Parquet, name: str) -> str:
    del connection, name
    return f"read_parquet({_list(source.paths)}, hive_partitioning = false)"


def _csv(connection: duckdb.DuckDBPyConnection, source: Csv, name: str) -> str:
    del connection, name
    columns = ", ".join(f"{text_literal(column)}: 'VARCHAR'" for column in source.header)
    return (
        f"read_csv({_list(source.paths)}, auto_detect = false, header = true, "
        f"delim = {text_literal(source.delimiter)}, "
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


def loaded(connection: duckdb.DuckDBPyConnection, source: Source, name: str) -> str:
    """What stands after FROM to read a source from a database, as a curator's questions read it."""
    return _PREPARE[type(source)](connection, source, name)
