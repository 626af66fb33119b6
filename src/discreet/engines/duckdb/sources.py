"""What an embedded engine can be given, and which types its format carries; contents are never looked at for types.

A path ending in .parquet, .csv, .tsv or .csv.gz, many files (a folder, a pattern or a list, see
`FileSet`; or addresses of objects, see `ObjectSet`), a frame
(pandas, polars, Arrow: whatever narwhals or the Arrow PyCapsule interface can read), or `FileTable`, a table of a
.duckdb file.

What a source is depends on its kind and on the types of its columns, never on a value in it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.abstract_engine import text_of
from discreet.engines.duckdb import arrow
from discreet.engines.duckdb.csv_header import first_record, read_header, split_header
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.python_tables import RowList, column_stream, columns_in, is_row_list, row_stream
from discreet.engines.folders.folder import Folder
from discreet.engines.lakes.lake_table import LakeTable, SnapshotGone, newest_snapshot
from discreet.engines.objects.object_set import ObjectSet
from discreet.engines.sources.file_set import FileSet, ReadableFile, format_of
from discreet.engines.sources.sqlite_table import SqliteTable
from discreet.engines.sources.stored_frames import StoredFrame
from discreet.errors import InternalError, InvalidParameter
from discreet.lazy import nw, pa
from discreet.plan.model.types import Type
from discreet.server_address import check_is_file

PARQUET = (".parquet", ".pq")
_GLOB = set("*?[]{}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTable:
    """A table of a .duckdb file, opened read-only."""

    path: Path
    table: str
    schema: str = "main"


@dataclass(frozen=True, slots=True)
class Parquet:
    """Parquet files with the same columns."""

    paths: tuple[ReadableFile, ...]


@dataclass(frozen=True, slots=True)
class Csv:
    """Text files with a header; every column is text until its declared type is read from it, an empty cell is NULL.

    The table is what the parser finds: a line with bytes that are not UTF-8, or of over two million bytes, is left out
    where the column that has them is read; cells beyond the header are left out, missing cells are NULL.
    """

    paths: tuple[ReadableFile, ...]
    header: tuple[str, ...]
    delimiter: str
    packing: str = ""
    """How the files are packed, where their names do not say it."""


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Text files with a JSON object on each line, whose values are texts until their declared types are read.

    A line that is not one object is a row of NULLs, and an empty one is none. A line with bytes that are not UTF-8, or
    of over two million bytes, is left out. Of a name that an object has twice, the first value counts.
    """

    paths: tuple[ReadableFile, ...]
    names: tuple[str, ...]
    packing: str


@dataclass(frozen=True, slots=True)
class ArrowFrame:
    """A frame in memory, as an object with the Arrow PyCapsule interface; `texts` are columns of Python objects."""

    stream: Any
    texts: tuple[str, ...] = ()


class RowStream:
    """Rows of a database of ours, of types that need no care, read anew whenever they are asked for."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._read().__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True)
class ComposedTable:
    """What one query reads as one table, as it is found after the charge.

    Args:
        sql: the query that puts it together; it uses the tables in `parts`.
        parts: what is copied or attached first, by the names of the tables that it becomes.
        careful: returns what takes the place of both where reading fails on a value; None if it cannot.
        paths: what DuckDB opens.
        size: the bytes of all files.
        unpacked: how much longer rows may be in memory.
        is_slow: whether cells are texts.
        is_measured: whether it says how many rows there are without being read.
        statistics: writes the query for what files say of a column: its least and its largest number, and how many rows
            there are; None if the table itself is asked.
        require_unchanged: refuses what was read of something that has changed since it was found.
    """

    sql: str
    parts: Mapping[str, tuple[Any, Mapping[str, DuckDBColumn]]]
    careful: Callable[[], ComposedTable] | None
    paths: tuple[ReadableFile, ...]
    size: int
    unpacked: int
    is_slow: bool = False
    is_measured: bool = False
    statistics: Callable[[str], str] | None = None
    require_unchanged: Callable[[], None] = lambda: None


Source = (
    Parquet
    | Csv
    | JsonLines
    | ArrowFrame
    | RowList
    | FileTable
    | SqliteTable
    | FileSet
    | ObjectSet
    | LakeTable
    | ComposedTable
)


def source_of(given: Any) -> Source:
    """Returns the kind of source that something is.

    Raises:
        InvalidParameter: if it is none, or a file that is not there.
    """
    if isinstance(given, FileTable):
        return FileTable(path=existing(given.path), table=given.table, schema=given.schema)
    known = given if isinstance(given, FileSet | ObjectSet | LakeTable | ArrowFrame) else ObjectSet.of(given)
    if known is not None:
        return known
    if isinstance(given, SqliteTable):
        return SqliteTable(path=existing(given.path), table=given.table)
    if isinstance(given, str | Path) and is_database(given):
        hint = 'It has tables. Name one: table="visits", or table="schema.visits" in DuckDB.'
        raise InvalidParameter("table", None, "to be given for a database", hint)
    if isinstance(given, str | Path):
        return newest_snapshot(given) or FileSet.of_place(given) or _file(existing(given))
    if isinstance(given, Sequence) and given and all(isinstance(path, str | Path) for path in given):
        return FileSet.of_paths(given) if len(given) > 1 else _file(existing(given[0]))
    return RowList(given) if is_row_list(given) else _frame(given)


_DATABASES: Mapping[str, str] = {
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
    **dict.fromkeys((".sqlite", ".sqlite3"), "sqlite"),
    ".db": "",  # of either kind
}
"""Kinds of databases, by the ends of their names."""

_BEGINNING = b"SQLite format 3\0"


def is_database(path: str | Path) -> bool:
    """Returns whether a file is called as databases are."""
    return Path(path).suffix.lower() in _DATABASES


def named_table(source: Any, table: str | None) -> Any:
    """Returns the table of a database in a file; a source of another kind stays as it is.

    Args:
        source: what a steward gives; a path if a table is named.
        table: its name, perhaps after the name of a schema and a point.

    Raises:
        InvalidParameter: if a table is named and there is no such file, or it is no database.
    """
    if table is None:
        return source
    if not isinstance(source, str | Path) or not is_database(source):
        hint = "Leave it out: only a database in a file (.duckdb, .sqlite or .db) has tables to choose from."
        raise InvalidParameter("table", table, "to come with a database in a file", hint)
    path = existing(source)
    if (_DATABASES[path.suffix.lower()] or _kind_by_content(path)) == "sqlite":
        return SqliteTable(path=path, table=table)
    schema, point, name = table.rpartition(".")
    return FileTable(path=path, table=name, schema=schema) if point else FileTable(path=path, table=table)


def _kind_by_content(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(32)
    if start.startswith(_BEGINNING):
        return "sqlite"
    if start[8:12] != b"DUCK":
        raise InvalidParameter("source", path.name, "to be a DuckDB or SQLite database", "Name another file.")
    return "duckdb"


def existing(path: str | Path) -> Path:
    """Returns the file itself: links followed, no pattern, no address."""
    check_is_file(path)
    resolved = Path(str(path).replace("\0", "*")).resolve()
    if _GLOB & set(str(resolved)) or not resolved.is_file():
        raise InvalidParameter("source", str(path), "to be an existing file", "Name one file, without patterns.")
    return resolved


def _file(path: Path) -> Parquet | Csv | FileSet:
    known = format_of(path.name)
    if known is None:
        condition = "to end in .parquet, .csv, .tsv or .csv.gz"
        raise InvalidParameter("source", path.name, condition, "Convert the file.")
    one = _ALONE.get(known[0])
    return FileSet.of_paths((path,)) if one is None else one(path)


def _csv(path: Path) -> Csv:
    """Reads only the first record here: a header is public, as a table's columns are."""
    record = first_record(path)
    look = f"discreet check {shlex.quote(str(path))}"
    if "\0" in record:
        hint = f"To see what it is, and to convert it, run: {look}"
        raise InvalidParameter("source", path.name, "to be a text in UTF-8", hint)
    header = split_header(record)
    if header.troubles:
        copy = shlex.quote(f"{path.name.split('.')[0]}-mended.csv")
        hint = f"{' '.join(header.troubles)} To write a copy with other names, run: {look} --mend {copy}"
        raise InvalidParameter("source", path.name, "to begin with a header", hint)
    return Csv((path,), header.names, header.delimiter)


_ALONE: Mapping[str, Callable[[Path], Parquet | Csv]] = {"parquet": lambda path: Parquet((path,)), "csv": _csv}
"""Formats whose single files are read in their own way; a file of any other format is a list of one."""


def rename_columns(path: Path, names: Sequence[str]) -> Csv:
    """Returns a text file whose columns are called otherwise than in its header."""
    header = read_header(path)
    if len(names) != len(header.names):
        raise InternalError("A file has another number of columns than names.")
    return Csv((path,), tuple(names), header.delimiter)


def _frame(given: Any) -> ArrowFrame:
    if isinstance(given, RowStream):
        return ArrowFrame(given)
    if isinstance(given, StoredFrame):
        return ArrowFrame(arrow.PlainBatchStream(given.schema, given.batches))
    columns = columns_in(given)
    if columns is not None:
        return ArrowFrame(*column_stream(columns))
    native = nw.from_native(given, pass_through=True, allow_series=False)
    if isinstance(native, nw.LazyFrame):
        raise InvalidParameter("source", type(given).__name__, "not to be lazy", "Collect it first.")
    if not isinstance(native, nw.DataFrame) or native.implementation.is_pyarrow():
        return _make_frame(given)
    objects = tuple(name for name, kind in native.schema.items() if kind == nw.Object)
    if native.implementation.is_pandas_like():
        return ArrowFrame(arrow.pandas(nw.to_native(native), text_of), objects)
    return _make_frame(nw.to_native(native.drop(*objects)))


def _make_frame(given: Any) -> ArrowFrame:
    """Frames can be read as often as they are asked; a reader of batches only once."""
    if isinstance(given, Iterator) or hasattr(given, "read_next_batch"):
        raise _read_once(given)
    if hasattr(given, "__arrow_c_array__") and not hasattr(given, "__arrow_c_stream__"):
        given = _one_batch(given)
    if not hasattr(given, "__arrow_c_stream__"):
        raise _source_error(given)
    try:
        return ArrowFrame(arrow.stream_of(given))
    except ValueError:  # a type that Arrow has not
        hint = "Pass a table, and leave out columns of types that Arrow does not have, such as 128-bit numbers."
        raise _source_error(given, hint) from None
    except TypeError:  # one column, and no table
        raise _source_error(given) from None
    except Exception:  # noqa: BLE001 - of another library, whose stream has been read
        raise _read_once(given) from None


def _one_batch(given: Any) -> Any:
    try:
        return pa.record_batch(given)
    except Exception:  # noqa: BLE001 - the code of any library, which may raise anything
        raise _source_error(given) from None


def _unreadable(given: Any) -> InvalidParameter:
    hint = "Store it, e.g. as a Parquet file, then protect that."
    return InvalidParameter("source", type(given).__name__, "to be a table that can be read to its end", hint)


def freeze_columns(given: Any, kind: ArrowFrame | RowList, declared: Mapping[str, Type]) -> ArrowFrame:
    """Returns columns of what lies in memory as it is now: later changes do not change what queries read.

    Raises:
        InvalidParameter: if it can be read only once, or a row is no dictionary.
    """
    columns = columns_in(given)
    if isinstance(kind, RowList):
        stream = row_stream(kind, declared)
    elif not isinstance(kind.stream, arrow.PlainBatchStream):
        return kind
    else:  # Python objects are read as their declared types now
        stream = kind.stream if columns is None else column_stream(columns, declared)[0]
    try:
        table = stream.select(declared).freeze()
        is_whole = type(given).__module__.partition(".")[0] in _READ_AGAIN or stream.count_rows() == len(table)
    except Exception:  # noqa: BLE001 - what is read only once says so in many ways
        raise (_unreadable if isinstance(given, StoredFrame) else _read_once)(given) from None
    if not is_whole:
        raise _read_once(given)
    return ArrowFrame(RowStream(lambda: table))


_READ_AGAIN = ("builtins", "discreet", "numpy", "pandas", "polars", "pyarrow")
"""Libraries whose tables can be read as often as they are asked."""


def _read_once(given: Any) -> InvalidParameter:
    hint = "Store it, e.g. as a Parquet file, then protect that."
    if hasattr(given, "__arrow_c_stream__"):
        hint = "Make it anew, read it into a table, and pass that: pyarrow.table(source)."
    elif isinstance(given, Iterator):
        hint = "Read it into a list, and pass that: list(source)."
    return InvalidParameter("source", type(given).__name__, "to be a table that can be read more than once", hint)


def _source_error(given: Any, hint: str = "") -> InvalidParameter:
    usual = "Pass a path to files, a folder, a pandas, polars or Arrow frame, a list of dictionaries, or a FileTable."
    return InvalidParameter("source", type(given).__name__, "to be a table", hint or usual)


_SAY_WHERE = (Folder, FileSet, ObjectSet, LakeTable, StoredFrame)
"""Sources that know where their rows are."""


def files_of(source: Any) -> dict[str, str]:
    """Returns for each file of a source its path, links followed, and what is there now, as device and inode.

    Two paths to one file, by a link of either kind or because it was moved, have the same device and inode. A table of
    a database is named with its file. What lies in memory has no files.

    >>> files_of([{"age": 40}])
    {}

    Raises:
        InvalidParameter: if a file is not there.
    """
    known = source if isinstance(source, _SAY_WHERE) else ObjectSet.of(source)
    known = newest_snapshot(source) if known is None else known
    if known is not None:
        return known.origins
    if isinstance(source, FileTable | SqliteTable):
        schema = f"{source.schema}." if isinstance(source, FileTable) else ""
        table = f"#{schema}{source.table}".casefold()  # neither tells letter cases apart
        return {f"{path}{table}": f"{file}{table}" for path, file in _identify_files([source.path]).items()}
    if isinstance(source, str | Path):
        many = FileSet.of_place(source)
        return many.origins if many is not None else _identify_files([source])
    if isinstance(source, Sequence) and source and all(isinstance(path, str | Path) for path in source):
        return _identify_files(source)
    return {}


def present_files(source: Any) -> dict[str, str]:
    """Returns the files that a folder, a pattern, a list or a snapshot has, as `files_of` does; {} of other sources.

    For a comparison while a steward protects something. It is never kept: which files there are is private.
    """
    try:
        kind = source_of(source)
        if not isinstance(kind, FileSet | LakeTable):
            return {}
        root = kind.root if isinstance(kind, FileSet) else kind.place
        with kind.list_files() as listing:
            found = kind.paths if isinstance(kind, FileSet) else ()
            places = found or [f"{root}/#{place}" for place, _ in enumerate(listing.files)]
            return {str(place): file.inode for place, file in zip(places, listing.files, strict=True)}
    except (InvalidParameter, OSError, SnapshotGone):  # what cannot be listed is refused elsewhere, or another engine's
        return {}


def _identify_files(paths: Sequence[str | Path]) -> dict[str, str]:
    found = {}
    for path in map(existing, paths):
        state = path.stat()
        found[str(path)] = f"{state.st_dev}:{state.st_ino}"
    return found


_MOMENT = "CASE WHEN {0} BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN {0} END"
_DAY = "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END"
# A moment with a zone is read in UTC. Microseconds are compared first: the moment of others does not exist.
_ZONED = (
    "CASE WHEN epoch_us({0}) BETWEEN -62135596800000000 AND 253402300799999999 THEN make_timestamp(epoch_us({0})) END"
)
_EXACT_DIGITS, _EXACT_POWER = 15, 22  # so many digits, and ten to this power, are doubles; quotients are rounded once

STORED: Mapping[str, tuple[Type, str]] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"), (Type.INT, "CAST({0} AS BIGINT)")
    ),
    "BIGINT": (Type.INT, "{0}"),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), (Type.INT, "TRY_CAST({0} AS BIGINT)")),
    "FLOAT": (Type.FLOAT, "CAST({0} AS DOUBLE)"),
    "DOUBLE": (Type.FLOAT, "{0}"),
    "BOOLEAN": (Type.BOOL, "{0}"),
    "VARCHAR": (Type.TEXT, "{0}"),
    "UUID": (Type.TEXT, "CAST({0} AS VARCHAR)"),
    "DATE": (Type.DATE, _DAY),
    "TIMESTAMP": (Type.TIMESTAMP, _MOMENT),
    **dict.fromkeys(
        ("TIMESTAMP_S", "TIMESTAMP_MS"), (Type.TIMESTAMP, _MOMENT.replace("{0}", "TRY_CAST({0} AS TIMESTAMP)"))
    ),
    # All that are finite are within our years; DuckDB's statistics take the infinite ones for finite.
    "TIMESTAMP_NS": (Type.TIMESTAMP, "CASE WHEN isfinite({0}) THEN CAST({0} AS TIMESTAMP) END"),
    "TIMESTAMP WITH TIME ZONE": (Type.TIMESTAMP, _ZONED),
    "TIMESTAMPTZ_NS": (Type.TIMESTAMP, _ZONED.replace("{0}", "CAST({0} AS TIMESTAMPTZ)")),
}

UNCHECKED_TEXT = "TRY(decode(encode({0})))"
"""A text that was not checked to be UTF-8; NULL if it is not."""


@dataclass(frozen=True, slots=True)
class DuckDBColumn:
    """A column of a source: its type in DuckDB, ours, and the expression that reads it."""

    native: str
    type: Type
    sql: str


def columns_of(relation: Any, *, checked: bool = True) -> dict[str, DuckDBColumn]:
    """Returns the readable columns of a relation, from its types alone.

    Args:
        relation: DuckDB's.
        checked: whether DuckDB makes sure that texts are UTF-8 before it hands them on.
    """
    found = {}
    for name, kind in zip(relation.columns, relation.types, strict=True):
        read = _PARAMETRIC[kind.id](kind) if kind.id in _PARAMETRIC else STORED.get(str(kind))
        if read is not None:
            text = UNCHECKED_TEXT if str(kind) == "VARCHAR" and not checked else read[1]
            found[name] = DuckDBColumn(str(kind), read[0], text.replace("{0}", DIALECT.quote_name(name)))
    return found


def csv_columns(source: Csv) -> dict[str, DuckDBColumn]:
    """Returns the columns of text files, as `columns_of` does: all are texts, which DuckDB checks."""
    kind, sql = STORED["VARCHAR"]
    return {name: DuckDBColumn("VARCHAR", kind, sql.replace("{0}", DIALECT.quote_name(name))) for name in source.header}


def _decimal(kind: Any) -> tuple[Type, str]:
    """Writes a correct rounding, as a decimal's text would have; a column may hold more digits than it declares."""
    width, scale = (size for _, size in kind.children)
    value = "CAST(CAST({0} AS VARCHAR) AS DOUBLE)"
    if scale <= _EXACT_POWER:
        few = _largest(min(width, _EXACT_DIGITS), width, scale)
        value = f"CASE WHEN {{0}} BETWEEN -{few} AND {few} THEN CAST({{0}} AS DOUBLE) ELSE {value} END"
    most = _largest(width, width, scale)
    return Type.FLOAT, f"CASE WHEN {{0}} BETWEEN -{most} AND {most} THEN {value} END"


def _largest(digits: int, width: int, scale: int) -> str:
    """Returns the largest decimal of so many digits."""
    written = ("9" * digits).zfill(scale + 1)
    point = len(written) - scale
    return f"CAST('{written[:point]}.{written[point:]}' AS DECIMAL({width},{scale}))"


_PARAMETRIC: Mapping[str, Callable[[Any], tuple[Type, str]]] = {
    "decimal": _decimal,
    "enum": lambda _: (Type.TEXT, "CAST({0} AS VARCHAR)"),
}
