"""The embedded engine: DuckDB, closed to everything but the registered sources before the first question.

Guarantees: only SQL that `statement` printed reaches it; after the first read no file can be opened but the registered
ones, nothing attached, copied, installed or configured; each question has its own cursor and a deadline, and Ctrl-C
stops it; sums come back as exact integers.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from discreet import check
from discreet.dataclass import dataclass
from discreet.engines.abstract_engine import Engine, check_columns
from discreet.engines.duckdb.composed.declared_columns import declared_columns
from discreet.engines.duckdb.composed.file_parts import describe_files, union_of_files
from discreet.engines.duckdb.composed.lake_parts import union_of_lake
from discreet.engines.duckdb.composed.stored_tables import attached_table, copied_table, is_locked
from discreet.engines.duckdb.dialect import DIALECT, ID_FUNCTION
from discreet.engines.duckdb.python_tables import RowList
from discreet.engines.duckdb.source_tables import (
    FATAL,
    Readable,
    describe_source,
    fetch_rows,
    fetched_table,
    open_database,
    paths_of,
    put,
    reach,
    size_of,
)
from discreet.engines.duckdb.sources import (
    ArrowFrame,
    ComposedTable,
    Csv,
    DuckDBColumn,
    FileTable,
    Parquet,
    RowStream,
    Source,
    freeze_columns,
    source_of,
)
from discreet.engines.folders.folder import Folder
from discreet.engines.lakes.lake_table import LakeTable, SnapshotGone
from discreet.engines.objects.object_address import EVERYWHERE, AllowedPlaces
from discreet.engines.objects.object_set import ObjectSet
from discreet.engines.sources.file_set import PACKINGS, FileSet, Listing
from discreet.engines.sources.query_view import QueryView, query_view
from discreet.engines.sources.sqlite_table import SqliteSnapshot, SqliteTable
from discreet.engines.sql.contribution_bounds import SORTED_ROWS
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.printer import Access
from discreet.engines.sql.relation_printer import StoredTable
from discreet.engines.sql.statement import Fetched, FetchedRows, FetchedTable, Presort, Statement, translate_reading
from discreet.engines.unit_sort import MOST_ROWS, decide_table
from discreet.errors import InternalError, InvalidParameter, UnsupportedQuery
from discreet.lazy import load
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import Expression
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import tables
from discreet.plan.model.types import Type
from discreet.plan.model.unit_ids import id_text
from discreet.progress import stoppable

_FEW, _MANY, _BYTES_A_PLACE = 12, 22, 64
_BYTES_KEPT = 1 << 29  # of a text file, whose cells take eight times as much at most where they are kept
_UNPACKED = 16  # how much longer a packed file may be
_FOUND_BY_QUERY = (FileSet, ObjectSet, FileTable, LakeTable, SqliteTable)
"""Sources that are found after the charge: which files there are, and what a database holds."""
_OPENED_LATE = (FileSet, ObjectSet, LakeTable, SqliteTable)
"""Those that DuckDB does not describe: their columns are as declared."""

_PLACES = 1_000_000  # among which DuckDB looks up a number by its place
_FEW_ROWS = 10_000  # are not worth another statement
_NUMBERED, _SPREAD = 1.1, 4  # at most so many rows for each number up to the largest one, and numbers for each row
_SORTED = 50_000  # so many rows, or
_BYTES_SORTED = 1 << 21  # so many bytes of a text file, are worth another statement and a sort
_BYTES_A_ROW = 256  # more than a row takes while rows are sorted, but for long texts
_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_MOST_BITS = 1 << 27  # of a set of numbers, which every thread has
_UNKNOWN = (1, 0, 0)  # no numbers and no rows
_UNREADABLE = "Its type, or one of its values, cannot be read: convert the column, or see schema_of."


@dataclass(frozen=True)
class _Table:
    source: Source
    columns: Mapping[str, DuckDBColumn]

    @property
    def stored_columns(self) -> dict[str, tuple[Type, str]]:
        """Returns columns as they are in the database, where their expressions have been applied."""
        return {name: (column.type, DIALECT.quote_name(name)) for name, column in self.columns.items()}


@dataclass(frozen=True)
class _Database:
    """An open database, the tables in it, and what it says of their numbers."""

    connection: duckdb.DuckDBPyConnection
    readable: Mapping[str, Readable]
    sizes: dict[tuple[str, str], tuple[int, int, int]]


class DuckDB(Engine):
    """DuckDB inside this process.

    Args:
        threads: at most so many at work; None leaves it to DuckDB.
        memory_limit: what DuckDB may allocate, such as "4GB"; None leaves it to DuckDB. Rows that are sorted outside of
            it may take as much again.
        deadline: seconds after which a question is stopped; None for none.
        spill: a directory for what does not fit into memory; None keeps private rows off the disk, and the
            question fails.

    >>> DuckDB(threads=1).dialect.total("x")
    'SUM(x)'
    """

    dialect: Dialect = DIALECT

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
        self._most_sorted = MOST_ROWS if memory_limit is None else min(MOST_ROWS, _bytes(memory_limit) // _BYTES_A_ROW)
        self._tables: dict[str, _Table] = {}
        self._open: _Database | None = None
        self._snapshots = QueryView()  # what was found of them for the open database
        self._allowed = EVERYWHERE
        self._lock = threading.RLock()

    def schema_of(self, source: Any) -> dict[str, Type]:
        """Returns the columns whose types Parquet, Arrow or the database carries; CSV and object columns carry none."""
        kind = self._checked_source(source)
        if isinstance(kind, Csv | SqliteTable | RowList):
            return {}
        if isinstance(kind, LakeTable):
            return kind.schema()
        if isinstance(kind, FileSet | ObjectSet):
            return {name: told for name, told in describe_files(kind).items() if told is not None}
        untyped = kind.texts if isinstance(kind, ArrowFrame) else ()
        return {name: column.type for name, column in describe_source(kind).items() if name not in untyped}

    def freeze(self, source: Any, columns: Mapping[str, Type]) -> Any:
        """Returns a copy of the columns of what lies in memory; everything else is read where it is."""
        if isinstance(source, Folder):  # whose files each query lists after its charge
            return source
        kind = source_of(source)
        return freeze_columns(source, kind, columns) if isinstance(kind, ArrowFrame | RowList) else source

    def check(self, names: Collection[str], expressions: Collection[Expression]) -> None:
        """Refuses tables of a database that another program writes to, and of snapshots that are gone.

        Reading them would fail after the charge.
        """
        del expressions
        for name in names:
            source = self._tables[name].source if name in self._tables else None
            if isinstance(source, FileTable | SqliteTable) and is_locked(source):
                reason = f"The database of table {name!r} cannot be opened: another program may be writing to it."
                raise UnsupportedQuery(reason, "Ask again when it has closed the database.")
            if isinstance(source, LakeTable) and source.is_gone():
                reason = f"The snapshot of table {name!r} that was protected is no longer there."
                raise UnsupportedQuery(reason, "A steward can protect its newest snapshot as another version.")

    def close(self) -> None:
        """Closes the database; running questions end with `QueryFailed`."""
        with self._lock:
            self._close_shared_database()
            self._tables.clear()
            self._columns.clear()

    def allow_objects(self, places: Sequence[str]) -> None:
        """Refuses, from now on, objects that are not in these places."""
        self._allowed = AllowedPlaces.of(places)

    def _checked_source(self, given: Any) -> Source:
        """Returns the kind of a source, which may be read.

        Raises:
            InvalidParameter: if it is none, or an object in a place that is not listed.
        """
        kind = source_of(given)
        if isinstance(kind, ObjectSet):
            kind.require_allowed(self._allowed)
            load("discreet.engines.duckdb.object_files", "A bucket")  # or say what to install
        return kind

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        kind = self._checked_source(self.freeze(source, columns))
        if isinstance(kind, ObjectSet):
            kind.require_readable()
        known = declared_columns(columns) if isinstance(kind, _OPENED_LATE) else describe_source(kind)
        if isinstance(kind, SqliteTable):  # whose cells are read as whatever they are declared
            known = {column: known[column] for column in columns if column in kind.columns()}
        if isinstance(kind, FileSet) and kind.chosen is not None:
            known = {column: each for column, each in known.items() if column in kind.chosen}
        types = {column: each.type for column, each in known.items()}
        if isinstance(kind, LakeTable):
            with suppress(SnapshotGone):  # then queries are refused, and stored answers are still there
                types = kind.read_snapshot().types
        check_columns(name, types, columns, hint=_UNREADABLE)
        known = declared_columns(columns) if isinstance(kind, _FOUND_BY_QUERY) else known
        with self._lock:
            self._tables[name] = _Table(kind, {column: known[column] for column in columns})
            self._close_shared_database()  # the open database is locked; the next question opens another

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        stored = {
            name: StoredTable(f"t{place}", table.stored_columns, self._columns[name])
            for place, (name, table) in enumerate(self._tables.items())
        }
        translate = partial(translate_reading, reading, self.dialect, stored)
        made = translate()  # which refuses what cannot be asked
        is_chosen = reading.source is None and reading.bounding is not None
        asked = {reading.table, *(() if reading.source is None else tables(reading.source))}
        named = {f"t{place}": table for place, (name, table) in enumerate(self._tables.items()) if name in asked}

        def fetch(cursor: duckdb.DuckDBPyConnection, database: _Database, stopped: threading.Event) -> Fetched:
            readable = {name: database.readable[name] for name in named}
            access = self._access(reading, cursor, database) if is_chosen else Access()
            best = translate(access) if is_chosen else made
            if best.presort is not None and not self._sort_rows(cursor, readable, best.presort, stopped):
                best = translate(replace(access, is_sorted=False))
            if best.is_long:
                return FetchedTable(fetched_table(cursor, readable, best.sql, best.parameters, stopped))
            return FetchedRows(fetch_rows(cursor, readable, best.sql, best.parameters, stopped))

        return lambda: self._groups(made, named, fetch)

    def _access(self, reading: Reading, cursor: duckdb.DuckDBPyConnection, database: _Database | None = None) -> Access:
        """Returns how the table of a reading is read best; to be asked within a read, since files may be gone."""
        database = self._shared_database() if database is None else database
        table, limits = f"t{list(self._tables).index(reading.table)}", reading.bounding
        source = database.readable[table][0]
        if limits is None:
            raise InternalError("Rows are chosen where contributions are bounded.")
        many = _bits(source) > _FEW
        least, most, rows = _UNKNOWN
        if many or isinstance(source, ArrowFrame):
            declared = self._columns[reading.table][limits.unit]
            least, most, rows = _size(database, table, limits.unit, declared, cursor)
        span = most - least + 1
        numbered = _FEW_ROWS < rows < span * _NUMBERED and span < min(rows * _SPREAD, _MOST_BITS)
        return Access(
            is_slow=(isinstance(source, Csv) or (isinstance(source, ComposedTable) and source.is_slow))
            and _is_short(source),
            is_kept=_is_short(source),
            is_dense=many and 0 < span <= _PLACES + 1,
            is_sorted=_is_short(source) and (rows >= _SORTED or _is_long_text(source)),
            ends=(least, most) if numbered else None,
        )

    def _groups(
        self,
        made: Statement,
        asked: Mapping[str, _Table],
        fetch: Callable[[duckdb.DuckDBPyConnection, _Database, threading.Event], Fetched],
    ) -> GroupColumns:
        """Returns the groups of a statement, fetched by the best one that finds the same."""
        with nullcontext() if self._is_shared(asked) else query_view() as view:
            database = self._shared_database() if view is None else self._database(view, asked)
            cursor = self._cursor(database)

            def read(stopped: threading.Event) -> Fetched:
                with cursor:
                    try:
                        found = fetch(cursor, database, stopped)
                        _require_unchanged(database)
                        return found
                    except FATAL:
                        self._forget()
                        raise

            return made.groups(stoppable(read, cursor.interrupt, deadline=self._deadline))

    def _is_shared(self, asked: Mapping[str, _Table]) -> bool:
        """Returns whether tables are read in the database of all queries; to be asked within a read."""
        found = [table.source for table in asked.values() if isinstance(table.source, _FOUND_BY_QUERY)]
        if not all(isinstance(source, LakeTable) for source in found):
            return False
        return not found or asked.keys() <= self._shared_database().readable.keys()

    def _sort_rows(
        self,
        cursor: duckdb.DuckDBPyConnection,
        asked: Mapping[str, Readable],
        presort: Presort,
        stopped: threading.Event,
    ) -> bool:
        """Makes the rows of a query readable, with their states (`unit_sort`), unless there are too many.

        They lie beside what DuckDB holds, so that a limit of memory allows for fewer of them.
        """
        limited = f"{presort.sql} LIMIT {self._most_sorted + 1}"
        rows = fetched_table(cursor, asked, limited, presort.parameters, stopped)
        if rows.num_rows > self._most_sorted:
            return False
        decided = rows.append_column("state", [decide_table(rows, presort.groups, is_numbered=presort.is_numbered)])
        cursor.register(SORTED_ROWS, RowStream(lambda: decided))
        if stopped.is_set():
            raise TimeoutError
        return True

    def _forget(self) -> None:
        with self._lock:
            self._open = None

    def _close_shared_database(self) -> None:
        if self._open is not None:
            self._open.connection.close()
        self._open = None
        self._snapshots.close()

    def _cursor(self, database: _Database | None = None) -> duckdb.DuckDBPyConnection:
        return (self._shared_database() if database is None else database).connection.cursor()

    def _database(self, view: QueryView, asked: Mapping[str, _Table]) -> _Database:
        """Returns a database of one query, with the tables that are asked.

        What a source holds is found once for each query, whatever tables its stages ask.
        """

        def open_found() -> _Database:
            readable = {name: (self._find_source(view, name, table), table.columns) for name, table in asked.items()}
            return self._open_sealed_database(readable, deadline=self._deadline)

        return view.once((id(self), frozenset(asked)), open_found, _close_database)

    def _find_source(self, view: QueryView, name: str, table: _Table) -> Source:
        """Returns a source as this query finds it."""
        source, declared = table.source, {column: each.type for column, each in table.columns.items()}
        if isinstance(source, FileSet):
            listing = view.once((id(self), name), source.list_files, Listing.close)
            return union_of_files(name, listing, declared)
        if isinstance(source, LakeTable):
            listing = view.once((id(self), name), source.list_files, Listing.close)
            return union_of_lake(name, source.read_snapshot(), listing, declared)
        if isinstance(source, ObjectSet):
            listing = view.once((id(self), name), lambda: self._listed_objects(source), Listing.close)
            return union_of_files(name, listing, declared)
        if isinstance(source, SqliteTable):
            snapshot = view.once((id(self), name), lambda: SqliteSnapshot(source), SqliteSnapshot.close)
            return copied_table(name, source, snapshot, declared)
        return attached_table(name, source, declared) if isinstance(source, FileTable) else source

    def _listed_objects(self, source: ObjectSet) -> Listing:
        return stoppable(source.list_files, lambda: None, deadline=self._deadline)

    def _shared_database(self) -> _Database:
        with self._lock:
            if self._open is None:
                named = {f"t{place}": table for place, table in enumerate(self._tables.values())}
                lasting = ((name, table, self._lasting_source(name, table)) for name, table in named.items())
                self._open = self._open_sealed_database(
                    {name: (source, table.columns) for name, table, source in lasting if source is not None}
                )
            return self._open

    def _lasting_source(self, name: str, table: _Table) -> Source | None:
        """Returns a source that stays as it is, so that all queries find it in one database; else None.

        The files of a snapshot never change. One that cannot be read now must not make queries of other tables fail.
        """
        if isinstance(table.source, LakeTable):
            with suppress(InvalidParameter, OSError, SnapshotGone):
                return self._find_source(self._snapshots, name, table)
            return None
        return None if isinstance(table.source, _FOUND_BY_QUERY) else table.source

    def _open_sealed_database(self, readable: Mapping[str, Readable], *, deadline: float | None = None) -> _Database:
        """Returns a database that holds these tables and can reach nothing else."""
        settings = {name: value for name, value in self._settings.items() if value is not None}
        settings["perfect_ht_threshold"] = max((_bits(source) for source, _ in readable.values()), default=_FEW)
        connection = open_database(**settings)
        connection.create_function(ID_FUNCTION, id_text, ["VARCHAR"], "VARCHAR")

        def fill_connection(_stopped: threading.Event) -> _Database:
            try:
                _fill(connection, readable)
            except BaseException:
                connection.close()
                raise
            return _Database(connection, readable, {})

        return stoppable(fill_connection, connection.interrupt, deadline=deadline)


def _fill(connection: duckdb.DuckDBPyConnection, readable: Mapping[str, Readable]) -> None:
    """Makes tables readable, and then everything else unreachable."""
    found = {path for source, _ in readable.values() for path in paths_of(source)}
    paths = sorted(map(str, found))
    reach(connection, found).execute(f"SET allowed_paths = [{', '.join(DIALECT.text_literal(path) for path in paths)}]")
    for name, table in readable.items():
        put(connection, table, name)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _require_unchanged(database: _Database) -> None:
    for source, _ in database.readable.values():
        if isinstance(source, ComposedTable):
            source.require_unchanged()


def _close_database(database: _Database) -> None:
    database.connection.close()


def _size(
    database: _Database, table: str, unit: str, declared: Type, cursor: duckdb.DuckDBPyConnection
) -> tuple[int, int, int]:
    """Returns the least and the largest of a column's numbers, and how many rows there are.

    Files and tables say it without being read. Only time rests on it: numbers close together are found by their
    places, and where there are about as many rows as numbers, they most likely number the rows.
    """
    source, columns = database.readable[table]
    if (columns[unit].type, declared) != (Type.INT, Type.INT) or isinstance(source, Csv):
        return _UNKNOWN
    if isinstance(source, ComposedTable) and not source.is_measured:
        return _UNKNOWN
    if (table, unit) not in database.sizes:
        column = DIALECT.quote_name(unit)
        sql = f"SELECT min({column}), max({column}), count(*) FROM {table}"
        if isinstance(source, ComposedTable) and source.statistics is not None and source.paths:
            sql = source.statistics(unit)
        try:
            found = cursor.execute(sql).fetchall()
        except FATAL:
            raise
        except duckdb.Error:  # at what a file says of another column, such as milliseconds that are no microseconds
            return _UNKNOWN
        ((least, most, rows),) = found
        database.sizes[table, unit] = _UNKNOWN if least is None or most is None else (least, most, rows)
    return database.sizes[table, unit]


def _bytes(amount: str) -> int:
    """Returns an amount such as "4GB" in bytes, at least half of what DuckDB takes it for.

    >>> _bytes("1.5 GB")
    1500000000
    """
    number, sign = amount.rstrip("iB ")[:-1], amount.rstrip("iB ")[-1]
    return int(float(number) * _UNITS[sign])


def _bits(source: Source) -> int:
    """Returns the logarithm of how many numbers may have a place each where rows are counted by a number.

    Places for a million people are ten times faster than a hash table where there are ten million rows, and ten times
    slower where there are a thousand: a place for every so many bytes of a file is little next to reading it.
    """
    size = source.size if isinstance(source, ComposedTable) else sum(size_of(path) for path in paths_of(source))
    return min(max((size // _BYTES_A_PLACE).bit_length(), _FEW), _MANY)


def _is_long_text(source: Source) -> bool:
    """Returns whether a text file has many rows, as far as its length shows."""
    return isinstance(source, Csv) and sum(size_of(path) for path in source.paths) >= _BYTES_SORTED


def _is_short(source: Source) -> bool:
    """Returns whether the rows read of a table are kept and not read again: memory surely holds them.

    What lies in memory can be held there once more.
    """
    if isinstance(source, ComposedTable):
        return source.size * source.unpacked <= _BYTES_KEPT
    factor = 2 if isinstance(source, Parquet) else 1  # numbers may be longer than where they are stored
    sizes = (size_of(path) * (_UNPACKED if path.suffix.lower() in PACKINGS else factor) for path in paths_of(source))
    return sum(sizes) <= _BYTES_KEPT
