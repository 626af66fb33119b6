"""Sources as tables of DuckDB: what comes after FROM, which columns can be read, and reads that no value makes fail.

DuckDB's reader of Parquet is fast, and gives up at a text that is not UTF-8 and at milliseconds that are no
microseconds. Where it does, the question is asked again over a view that takes the place of the table and reads slowly
what can be read: the same values in all other cells, NULL in those. Whether that was needed shows in the time alone.
Columns without this promise are left out by their type.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import duckdb

from discreet.engines.duckdb import arrow
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.parquet_footers import ParquetColumn, stored_columns_of
from discreet.engines.duckdb.sources import (
    ArrowFrame,
    ComposedTable,
    Csv,
    DuckDBColumn,
    FileTable,
    JsonLines,
    Parquet,
    Source,
    columns_of,
    csv_columns,
)
from discreet.engines.sources.file_set import ReadableFile
from discreet.engines.sources.open_object import OpenObject
from discreet.errors import InvalidParameter
from discreet.lazy import load

_HARDENED: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
    "enable_external_file_cache": False,  # a file that changes under a view is read as it is
    "preserve_insertion_order": False,
    "disabled_optimizers": "cte_filter_pusher",  # what one of our tables is split by would be asked of all rows before
}
_DESCRIBERS: dict[int, duckdb.DuckDBPyConnection] = {}  # by process
_ROWS_AT_ONCE = 10_000  # handed over between two moments at which a read can be stopped
FATAL = (duckdb.InternalException, duckdb.FatalException)  # after which DuckDB answers nothing
_OF_RESOURCES = (duckdb.InterruptException, duckdb.OutOfMemoryException)

T = TypeVar("T")

Readable = tuple[Source, Mapping[str, DuckDBColumn]]
"""A source, and its columns that questions see."""


def open_database(**settings: Any) -> duckdb.DuckDBPyConnection:
    """Opens an empty database in memory that loads nothing on its own, prints nothing, and writes no file unasked."""
    # DuckDB's default is .tmp where the process runs: private rows would stay there in a file
    connection = duckdb.connect(config={"temp_directory": "", **_HARDENED, **settings})
    with suppress(duckdb.InvalidInputException):  # of a notebook that could not draw it anyway
        connection.execute("SET enable_progress_bar = false")  # its percentages would tell sizes
    return connection


def describer(paths: Iterable[ReadableFile] = ()) -> duckdb.DuckDBPyConnection:
    """Returns the database that describes frames and files: one for each process, since opening it costs most.

    What is registered there is seen by no other caller, and nothing is read from it. It is never closed: after a fork
    it would wait for threads that only the parent has. Objects have one of their own: opening it costs little next to
    what is asked over a network.
    """
    if any(isinstance(path, OpenObject) for path in paths):
        return reach(open_database(), paths)
    process = os.getpid()
    if process not in _DESCRIBERS:
        _DESCRIBERS[process] = open_database()
    return _DESCRIBERS[process].cursor()


def reach(connection: duckdb.DuckDBPyConnection, paths: Iterable[ReadableFile]) -> duckdb.DuckDBPyConnection:
    """Returns a database that can read the objects among some paths.

    Raises:
        MissingExtra: if what it needs for that is not installed.
    """
    if any(isinstance(path, OpenObject) for path in paths):
        load("discreet.engines.duckdb.object_files", "A bucket").register(connection)
    return connection


def describe_source(source: Source) -> dict[str, DuckDBColumn]:
    """Returns the columns of a source that can be read whatever is in them, from its format.

    Raises:
        InvalidParameter: if it cannot be opened.
    """
    if isinstance(source, Csv):  # which was found readable with its header; to open a database takes much longer
        return csv_columns(source)
    with open_database() if isinstance(source, FileTable) else describer(paths_of(source)) as connection:
        try:
            if isinstance(source, Parquet):
                return _described_parquet(connection, source)
            text = _PREPARE[type(source)](connection, source, "t0")
            if isinstance(source, FileTable):
                _check_is_table(connection, source)
            return columns_of(connection.sql(f"SELECT * FROM {text}"), checked=not isinstance(source, ArrowFrame))
        except FATAL:
            _DESCRIBERS.pop(os.getpid(), None)
        except duckdb.Error:
            pass
    raise InvalidParameter("source", type(source).__name__, "to be a readable file or frame")


def _check_is_table(connection: duckdb.DuckDBPyConnection, source: FileTable) -> None:
    """Refuses a view: it computes, and its expressions may fail on unknown values."""
    sql = "SELECT count(*) FROM duckdb_views() WHERE lower(schema_name) = lower(?) AND lower(view_name) = lower(?)"
    row = connection.execute(f"{sql} AND database_name = 't0_file'", [source.schema, source.table]).fetchone()
    if row != (0,):
        hint = "Store it as a table, then protect it: CREATE TABLE ... AS SELECT * FROM the view."
        raise InvalidParameter("source", source.table, "to be a table, not a view", hint)


def paths_of(source: Source) -> tuple[ReadableFile, ...]:
    """Returns the files that a source is read from; what lies in memory has none."""
    if isinstance(source, Parquet | Csv | ComposedTable):
        return source.paths
    return (source.path,) if isinstance(source, FileTable) else ()


def size_of(path: ReadableFile) -> int:
    """Returns the bytes of a file."""
    return path.size if isinstance(path, OpenObject) else path.stat().st_size


def write_select_list(chosen: Iterable[tuple[str, DuckDBColumn]]) -> str:
    """Writes what comes after SELECT to read columns under their names; rows count also where none is read."""
    return ", ".join(f"{column.sql} AS {DIALECT.quote_name(name)}" for name, column in chosen) or "NULL"


def put(connection: duckdb.DuckDBPyConnection, readable: Readable, name: str, *, kind: str = "") -> None:
    """Makes columns readable under a name: a frame is copied, everything else stays where it is."""
    source, columns = readable
    if isinstance(source, ComposedTable):
        for part, readable_part in source.parts.items():
            put(connection, readable_part, part)
        connection.execute(f"CREATE VIEW {name} AS {source.sql}")
        return
    text = _PREPARE[type(source)](connection, source, name)
    kind = kind or ("TABLE" if isinstance(source, ArrowFrame) else "VIEW")
    connection.execute(f"CREATE {kind} {name} AS SELECT {write_select_list(columns.items())} FROM {text}")
    if isinstance(source, ArrowFrame):
        connection.unregister(text)


def fetch_rows(
    connection: duckdb.DuckDBPyConnection,
    asked: Mapping[str, Readable],
    sql: str,
    parameters: Mapping[str, Any],
    stopped: threading.Event | None = None,
) -> list[tuple[Any, ...]]:
    """Fetches the rows of a statement, as `twice` runs it.

    Raises:
        TimeoutError: if the event was set before all rows were there.
    """
    return twice(connection, asked, lambda: _all(connection, sql, parameters, stopped))


def fetched_table(
    connection: duckdb.DuckDBPyConnection,
    asked: Mapping[str, Readable],
    sql: str,
    parameters: Mapping[str, Any],
    stopped: threading.Event,
) -> Any:
    """Fetches the result of a statement as an Arrow table, as `twice` runs it.

    Raises:
        TimeoutError: if the event was set before the table was there.
    """
    table = twice(connection, asked, lambda: connection.sql(sql, params=dict(parameters)).to_arrow_table())
    if stopped.is_set():
        raise TimeoutError
    return table


def twice(connection: duckdb.DuckDBPyConnection, asked: Mapping[str, Readable], read: Callable[[], T]) -> T:
    """Returns what is read; where DuckDB fails, the same over files that are read with care.

    No value of a row makes the second reading fail. The first may have failed for one, so nothing of its cause is kept.
    """
    try:
        return read()
    except _OF_RESOURCES:
        raise
    except duckdb.Error:
        pass
    for name, (source, columns) in asked.items():
        if isinstance(source, Parquet):
            take_care(connection, source, columns, name)
        elif isinstance(source, ComposedTable) and source.careful is not None:
            _take_care_of_files(connection, source.careful(), name, source.parts)
    return read()


def _take_care_of_files(
    connection: duckdb.DuckDBPyConnection, careful: ComposedTable, name: str, known: Collection[str]
) -> None:
    """Puts temporary views in the place of a table of many files, and of each of its parts; copies new parts."""
    for part, (source, columns) in careful.parts.items():
        if isinstance(source, ArrowFrame) and part not in known:
            put(connection, (source, columns), part, kind="TEMP TABLE")
        if isinstance(source, Parquet) and not take_care(connection, source, columns, part):
            shown = write_select_list(columns.items())
            connection.execute(f"CREATE TEMP VIEW {part} AS SELECT {shown} FROM {from_text(source)}")
    connection.execute(f"CREATE TEMP VIEW {name} AS {careful.sql}")


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


def from_text(source: Parquet | Csv | JsonLines) -> str:
    """Writes what comes after FROM to read files."""
    if isinstance(source, Parquet):
        return scan(source.paths)
    return csv_scan(source) if isinstance(source, Csv) else _json_scan(source)


def _files(connection: duckdb.DuckDBPyConnection, source: Parquet | Csv | JsonLines, name: str) -> str:
    del connection, name
    return from_text(source)


_TOLERANT = "ignore_errors = true, null_padding = true, parallel = false, strict_mode = false"


def csv_scan(source: Csv, options: str = _TOLERANT) -> str:
    """Writes what comes after FROM to read text files; the options say what becomes of faulty lines."""
    columns = ", ".join(f"{DIALECT.text_literal(column)}: 'VARCHAR'" for column in source.header)
    return (
        f"read_csv({_write_list(source.paths)}, "
        f"auto_detect = false, header = true, delim = {DIALECT.text_literal(source.delimiter)}, "
        f"quote = '\"', escape = '\"', columns = {{{columns}}}, nullstr = '', allow_quoted_nulls = true, "
        f"{_write_packing(source.packing)}{options})"
    )


def _write_list(paths: Iterable[ReadableFile]) -> str:
    return f"[{', '.join(DIALECT.text_literal(str(path)) for path in paths)}]"


def _write_packing(packing: str) -> str:
    return f"compression = '{packing}', " if packing else ""


def _line_scan(paths: Iterable[ReadableFile], packing: str) -> str:
    return (
        f"read_csv({_write_list(paths)}, "
        "auto_detect = false, header = false, delim = '\x01', quote = '', escape = '', "
        f"columns = {{'line': 'VARCHAR'}}, {_write_packing(packing)}{_TOLERANT})"
    )


def json_names(paths: Sequence[ReadableFile], packing: str) -> list[str]:
    """Returns the names that objects in lines of JSON have, for a steward: no query looks at content for names.

    Raises:
        InvalidParameter: if a file cannot be read.
    """
    objects = f"SELECT line FROM {_line_scan(paths, packing)} WHERE json_valid(line)"
    keys = f"SELECT unnest(CASE WHEN json_type(line) = 'OBJECT' THEN json_keys(line) END) AS name FROM ({objects})"
    with describer(paths) as connection, suppress(duckdb.Error):
        found = connection.execute(f"SELECT DISTINCT name FROM ({keys}) ORDER BY name").fetchall()
        return [name for (name,) in found]
    raise InvalidParameter("source", "an NDJSON file", "to be readable to its end", "Write it again.")


def _json_scan(source: JsonLines) -> str:
    """Writes what comes after FROM to read lines of JSON as texts, one column for each name that is asked for.

    DuckDB's own reader of JSON fails at long lines, leaves out the first row after a byte order mark, and rounds 1.5
    where a whole number is declared. So lines are read as a text with one column, which has no quotes and a delimiter
    that is in no valid JSON.
    """
    lines = _line_scan(source.paths, source.packing)
    pointers = (DIALECT.text_literal("/" + name.replace("~", "~0").replace("/", "~1")) for name in source.names)
    found = f"json_extract_string(line, [{', '.join(pointers)}]::VARCHAR[])"
    # an array has no names: its first element is not the column "0"
    guarded = f"CASE WHEN json_valid(line) THEN CASE WHEN json_type(line) = 'OBJECT' THEN {found} END END"
    cells = "".join(f', cells[{place + 1}] AS "#{place}"' for place, _ in enumerate(source.names))
    written = f"SELECT file_index, {guarded} AS cells FROM {lines} WHERE trim(line, ' \t') <> ''"
    return f"(SELECT file_index{cells} FROM ({written}))"


def _frame(connection: duckdb.DuckDBPyConnection, source: ArrowFrame, name: str) -> str:
    connection.register(f"{name}_frame", source.stream)
    return f"{name}_frame"


def _file_table(connection: duckdb.DuckDBPyConnection, source: FileTable, name: str) -> str:
    connection.execute(f"ATTACH {DIALECT.text_literal(str(source.path))} AS {name}_file (READ_ONLY)")
    return f"{name}_file.{DIALECT.quote_name(source.schema)}.{DIALECT.quote_name(source.table)}"


_PREPARE: Mapping[type, Callable[[duckdb.DuckDBPyConnection, Any, str], str]] = {
    Parquet: _files,
    Csv: _files,
    JsonLines: _files,
    ArrowFrame: _frame,
    FileTable: _file_table,
}
"""What comes after FROM, and what must be done before."""


# -------------------------------------------------------------------------------------------------------------- parquet

PLACE = ("file_index", "file_row_number")
"""DuckDB's own columns, which tell rows apart."""

_ONE, _OTHER = '"#a"', '"#b"'  # no table of a question is called so
_ALIKE = {
    ("TIMESTAMP", "TIMESTAMP_MS"),
    ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP_MS"),
    ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP"),
    ("TIMESTAMPTZ_NS", "TIMESTAMP_NS"),
}
"""Types of DuckDB's reader and of plain Arrow that hold the same moments."""


def write_statistics(paths: Sequence[ReadableFile], names: Mapping[str, str], column: str) -> str:
    """Writes a query for the ends of a column of whole numbers, and its rows, as footers say; NULL if one does not."""
    least, most = (f"TRY_CAST(coalesce(stats_{end}_value, stats_{end}) AS BIGINT)" for end in ("min", "max"))
    known = f"CASE WHEN count({least}) = count(*) THEN min({least}) END"
    chosen = f"WHERE path_in_schema = {DIALECT.text_literal(names[column])}"
    return f"SELECT {known}, max({most}), sum(num_values) FROM parquet_metadata({_write_list(paths)}) {chosen}"


def scan(paths: Iterable[ReadableFile], utf8: str = "strict") -> str:
    """Writes what comes after FROM to read files."""
    return f"read_parquet({_write_list(paths)}, hive_partitioning = false, utf8_validation = '{utf8}')"


def _described_parquet(connection: duckdb.DuckDBPyConnection, source: Parquet) -> dict[str, DuckDBColumn]:
    """Returns the columns that can be read whatever is in them.

    Raises:
        InvalidParameter: if files do not store a column in the same way.
    """
    leaves = stored_columns_of(connection, source.paths[0])
    for path in source.paths[1:]:
        other = stored_columns_of(connection, path)
        if any(other.get(name) != leaf for name, leaf in leaves.items()):
            hint = "Write all files with the same columns and types."
            raise InvalidParameter("source", path.name, f"to store columns as {source.paths[0].name} does", hint)
    relation = connection.sql(f"SELECT * FROM {scan(source.paths)}")
    found = {n: column for n, column in columns_of(relation).items() if n in leaves and leaves[n].is_total}
    if any(name.lower() in PLACE for name in relation.columns):
        found = {name: column for name, column in found.items() if column.native != "VARCHAR"}
    return _with_milliseconds(connection, source, leaves, found)


def _with_milliseconds(
    connection: duckdb.DuckDBPyConnection,
    source: Parquet,
    leaves: Mapping[str, ParquetColumn],
    found: dict[str, DuckDBColumn],
) -> dict[str, DuckDBColumn]:
    """Keeps milliseconds, which may need Arrow, and those other columns in which Arrow finds the same."""
    if not any(leaves[name].in_milliseconds for name in found):
        return found
    plain = _plain(connection, source, list(found), "plain")
    return {n: column for n, column in found.items() if n in plain and _is_same(leaves[n], column, plain[n])}


def _is_same(leaf: ParquetColumn, column: DuckDBColumn, plain: DuckDBColumn) -> bool:
    """Returns whether both readers find the same in a column, also where there are values that it should not hold."""
    if leaf.native.startswith("DECIMAL"):
        return plain.native.startswith("DECIMAL") and leaf.bytes <= leaf.kept_in
    return column.native == plain.native or (column.native, plain.native) in _ALIKE


def take_care(
    connection: duckdb.DuckDBPyConnection, source: Parquet, chosen: Mapping[str, DuckDBColumn], name: str
) -> bool:
    """Puts a temporary view in the place of a table, in which nothing fails, unless nothing can fail in it anyway."""
    leaves = stored_columns_of(connection, source.paths[0])
    if any(leaves[column].in_milliseconds for column in chosen):
        plain = _plain(connection, source, list(chosen), f"{name}_plain")
        read = ((n, c if c.native.startswith("DECIMAL") else plain[n]) for n, c in chosen.items())
        connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {write_select_list(read)} FROM {name}_plain")
    elif any(column.native == "VARCHAR" for column in chosen.values()):
        _without_broken_texts(connection, source, chosen, name)
    else:
        return False
    return True


def _plain(
    connection: duckdb.DuckDBPyConnection, source: Parquet, names: Sequence[str], view: str
) -> dict[str, DuckDBColumn]:
    """Registers columns as a stream of plain Arrow batches."""
    connection.register(view, arrow.parquet(source.paths, names))
    return columns_of(connection.sql(f"SELECT * FROM {view}"), checked=False)


def _without_broken_texts(
    connection: duckdb.DuckDBPyConnection, source: Parquet, chosen: Mapping[str, DuckDBColumn], name: str
) -> None:
    """Bytes that are not UTF-8 are question marks in one scan and left out in another: a text that differs has some."""
    texts = [DIALECT.quote_name(n) for n, column in chosen.items() if column.native == "VARCHAR"]
    marked, dropped = scan(source.paths, "replace"), scan(source.paths, "ignore")
    place, shown = ", ".join(PLACE), ", ".join(texts)
    suspects = " OR ".join(f"contains({text}, '?')" for text in texts)
    differ = [f"{_ONE}.{text} <> {_OTHER}.{text}" for text in texts]
    flags = ", ".join(f"{test} AS b{i}" for i, test in enumerate(differ))
    connection.execute(
        f"CREATE TEMP TABLE {name}_broken AS SELECT {', '.join(f'{_ONE}.{part}' for part in PLACE)}, {flags} "
        f"FROM (SELECT {place}, {shown} FROM {marked} WHERE {suspects}) AS {_ONE} "
        f"JOIN (SELECT {place}, {shown} FROM {dropped}) AS {_OTHER} USING ({place}) WHERE {' OR '.join(differ)}"
    )
    cells = [f"{_ONE}.{DIALECT.quote_name(n)}" for n, column in chosen.items() if column.native != "VARCHAR"]
    cells += [f"CASE WHEN {_OTHER}.b{i} THEN NULL ELSE {_ONE}.{t} END AS {t}" for i, t in enumerate(texts)]
    connection.execute(
        f"CREATE TEMP VIEW {name} AS SELECT {write_select_list(chosen.items())} FROM (SELECT {', '.join(cells)} "
        f"FROM (SELECT *, {place} FROM {marked}) AS {_ONE} LEFT JOIN {name}_broken AS {_OTHER} USING ({place}))"
    )


def footers(paths: Sequence[ReadableFile], *, ids: bool = False) -> dict[str, tuple[tuple[Any, ...], ...]]:
    """Returns how each file stores its columns, by its path; files that say the same are read by one scan.

    Each row is about a column or a part of one: its name, the number of its parts, its types; at the end the id of its
    field, if ids are asked for.

    Raises:
        InvalidParameter: if one of them cannot be read.
    """
    described = "name, num_children, duckdb_type, type, type_length, precision, scale, converted_type, logical_type"
    described += ", field_id" if ids else ""
    found: dict[str, list[tuple[Any, ...]]] = {str(path): [] for path in paths}
    try:
        with describer(paths) as connection:
            sql = f"SELECT file_name, {described} FROM parquet_schema({_write_list(dict.fromkeys(paths))})"
            for path, *facts in connection.execute(sql).fetchall():
                found[path].append(tuple(facts))
    except duckdb.Error:
        raise InvalidParameter("source", "a Parquet file", "to be readable", "Write it again.") from None
    return {path: tuple(facts) for path, facts in found.items()}
