"""What Spark can be given, and which types its format carries; contents are never looked at for types.

A path or address of Parquet files (`visits.parquet`, `/data/visits`, `hdfs://.../visits`), a table of the catalog that
is stored as Parquet (`clinic.visits`, `spark://host:7077/clinic.visits` or a `CatalogTable`), or a DataFrame of
PySpark. A DataFrame is a plan, which may fail on a value or compute other rows each time: its rows are kept when it is
registered (`localCheckpoint`), and these are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.dataclass import dataclass
from discreet.engines.spark.dialect import DIALECT
from discreet.engines.spark.session import new_name
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type

_LEAF = re.compile(
    r"  (?:optional|required) (?P<physical>[a-z0-9_]+)(?:\((?P<length>[0-9]+)\))? (?P<name>.+?)"
    r"(?: \((?P<annotation>[A-Z][A-Z0-9_]*(?:\([^()]*\))?)\))?(?: = [0-9]+)?;"
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column without parts: its physical type, the bytes of one of fixed length, and what these are to mean."""

    physical: str
    length: int
    annotation: str


def leaves_of(session: Any, files: Sequence[str]) -> dict[str, Leaf] | None:
    """Returns how Parquet files store their columns, from their footers; None in a process that uses Spark Connect.

    It decides whether reading them can fail on a value. The driver's own reader is asked, which reads wherever Spark
    does.

    Raises:
        InvalidParameter: if files do not store a column of the first one in the same way.
    """
    if not hasattr(session, "_jvm"):
        return None
    texts = dict.fromkeys(_footer(session, file) for file in files)
    first, *others = map(parse_schema, texts)
    if any(other.get(name) != leaf for other in others for name, leaf in first.items()):
        hint = "Write all files with the same columns and types."
        raise InvalidParameter("source", "Parquet files", "to store columns in the same way", hint)
    return first


def _footer(session: Any, file: str) -> str:
    hadoop, parquet = session._jvm.org.apache.hadoop, session._jvm.org.apache.parquet.hadoop
    path, settings = hadoop.fs.Path(file), session._jsc.hadoopConfiguration()
    reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, settings))
    try:
        return str(reader.getFooter().getFileMetaData().getSchema().toString())
    finally:
        reader.close()


def parse_schema(text: str) -> dict[str, Leaf]:
    r"""Reads columns from a schema as Parquet's library writes it.

    >>> parse_schema("message m {\n  optional int64 at (TIMESTAMP(MILLIS,false));\n}\n")
    {'at': Leaf(physical='int64', length=0, annotation='TIMESTAMP(MILLIS,false)')}
    """
    found = {}
    for match in filter(None, map(_LEAF.fullmatch, text.splitlines())):
        found[match["name"]] = Leaf(match["physical"], int(match["length"] or 0), match["annotation"] or "")
    return found


_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_IN_CLUSTER = re.compile(r"(?:(?:spark|sc)://[^/]+/)?((?:\w+\.){0,2}\w+)")
_PARQUET = (".parquet", ".pq")
_LOCAL = "file://"
_GLOB = set("*?[]{}\\")
_STORED_AS = ("parquet",)
_TABLES = ("MANAGED", "EXTERNAL")
_TEXT_FILES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table of Spark's catalog, such as CatalogTable("clinic.visits")."""

    name: str


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """Parquet files, or folders of them, with the same columns."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SparkFrame:
    """A DataFrame of PySpark."""

    frame: Any


Source = CatalogTable | ParquetFiles | SparkFrame


def source_of(given: Any) -> Source:
    """Returns the kind of source that something is.

    Raises:
        InvalidParameter: if it is none, or a local file that is not there.
    """
    if isinstance(given, CatalogTable):
        return given
    named = _IN_CLUSTER.fullmatch(given) if isinstance(given, str) else None
    if named and not named[1].lower().endswith((*_PARQUET, *_TEXT_FILES)):
        return CatalogTable(named[1])
    if isinstance(given, str | Path):
        return ParquetFiles((_address(given),))
    if isinstance(given, Sequence) and given and all(isinstance(path, str | Path) for path in given):
        return ParquetFiles(tuple(map(_address, given)))
    if callable(getattr(given, "localCheckpoint", None)) and hasattr(given, "sparkSession"):
        return SparkFrame(given)
    hint = "Pass a path of Parquet files, a DataFrame of PySpark, or CatalogTable('schema.table')."
    raise InvalidParameter("source", type(given).__name__, "to be a table that Spark reads", hint)


def _address(path: str | Path) -> str:
    """Returns the address of a file: links followed, no pattern; a scheme such as hdfs:// is left to Spark."""
    text = str(path)
    if text.lower().endswith(_TEXT_FILES):
        hint = "Convert it first, with the types you declare: duckdb.sql(\"COPY (FROM 'x.csv') TO 'x.parquet'\")."
        raise InvalidParameter("source", Path(text).name, "to be Parquet, which carries its types", hint)
    if _GLOB & set(text) or "\0" in text:
        raise InvalidParameter("source", text, "to be one file or folder", "Name it without patterns.")
    if _ADDRESS.match(text):
        return text
    found = Path(text).resolve()
    if not found.exists():
        raise InvalidParameter("source", text, "to be an existing file or folder")
    return f"{_LOCAL}{found}"


def origins_of(source: Source) -> dict[str, str]:
    """Returns where a source is, and what is there now: of local files the device and inode, as for every engine."""
    if isinstance(source, CatalogTable):
        return {source.name: f"spark table {source.name}"}
    return dict(map(_origin, source.paths)) if isinstance(source, ParquetFiles) else {}


def _origin(address: str) -> tuple[str, str]:
    if not address.startswith(_LOCAL):
        return address, address
    path = address.removeprefix(_LOCAL)
    state = Path(path).stat()
    return path, f"{state.st_dev}:{state.st_ino}"


# ---------------------------------------------------------------------------------------------------------------- types

_MOMENT = (
    "CASE WHEN {0} BETWEEN TIMESTAMP_NTZ '0001-01-01 00:00:00' AND TIMESTAMP_NTZ '9999-12-31 23:59:59.999999' "
    "THEN {0} END"
)
_FROM_MICROSECONDS = (
    "CAST(timestamp_micros(CASE WHEN {0} BETWEEN -62135596800000000 AND 253402300799999999 "
    "THEN CAST({0} AS BIGINT) END) AS TIMESTAMP_NTZ)"
)
_WIDE = "CAST({0} AS DECIMAL(38,0))"
_MILLISECONDS = _FROM_MICROSECONDS.replace("{0}", f"{_WIDE} * 1000")
_NANOSECONDS = (  # rounded, halves away from 1970; the two largest numbers mean no end
    "CASE WHEN abs(CAST({0} AS DECIMAL(38,0))) <> 9223372036854775807 THEN "
    + _FROM_MICROSECONDS.replace("{0}", f"(sign({_WIDE}) * ((abs({_WIDE}) + 500) DIV 1000))")
    + " END"
)
_UNSIGNED = {  # the lowest bits count
    "INTEGER(8,false)": "CAST({0} AS BIGINT) & 255",
    "INTEGER(16,false)": "CAST({0} AS BIGINT) & 65535",
    "INTEGER(64,false)": "try_cast({0} AS BIGINT)",
}
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_DIGITS_OF_LONG, _BYTES_OF_DECIMAL = 18, 15  # so many bytes hold no number that Spark has no decimal for

STORED: Mapping[str, tuple[Type, str]] = {
    **dict.fromkeys(("tinyint", "smallint", "int"), (Type.INT, "CAST({0} AS BIGINT)")),
    "bigint": (Type.INT, "{0}"),
    "float": (Type.FLOAT, "CAST({0} AS DOUBLE)"),
    "double": (Type.FLOAT, "{0}"),
    "boolean": (Type.BOOL, "{0}"),
    "string": (Type.TEXT, "try_validate_utf8({0})"),
    "date": (Type.DATE, "CASE WHEN {0} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {0} END"),
    "timestamp_ntz": (Type.TIMESTAMP, _MOMENT),
    "timestamp": (Type.TIMESTAMP, _MOMENT.replace("{0}", "CAST({0} AS TIMESTAMP_NTZ)")),  # in UTC
}


@dataclass(frozen=True, slots=True)
class SparkColumn:
    """A column of a source: the type that Spark reads it as, ours, and the expression that makes it ours."""

    native: str
    type: Type
    sql: str


def columns_of(schema: Any, stored: Callable[[str, str], SparkColumn | None]) -> dict[str, SparkColumn]:
    """Returns the readable columns of a schema, from their names and types in Spark."""
    fields = ((field.name, field.dataType.simpleString()) for field in schema.fields if "\0" not in field.name)
    found = {name: stored(name, native) for name, native in fields}
    return {
        name: SparkColumn(column.native, column.type, column.sql.replace("{0}", DIALECT.quote_name(name)))
        for name, column in found.items()
        if column is not None
    }


def in_memory(_name: str, native: str) -> SparkColumn | None:
    """Returns how a column of rows that Spark has is read."""
    digits = _DECIMAL.fullmatch(native)
    if digits:
        return SparkColumn(native, Type.FLOAT, _decimal(int(digits[1]), int(digits[2])))
    return SparkColumn(native, *STORED[native]) if native in STORED else None


def _decimal(width: int, scale: int) -> str:
    """Writes a decimal as a double, correctly rounded; a column may hold more digits than it declares."""
    written = ("9" * width).zfill(scale + 1)
    point = len(written) - scale
    most = f"CAST('{written[:point]}.{written[point:]}' AS DECIMAL({width},{scale}))"
    return f"CASE WHEN {{0}} BETWEEN -{most} AND {most} THEN CAST({{0}} AS DOUBLE) END"


def in_files(leaves: Mapping[str, Leaf] | None) -> Callable[[str, str], SparkColumn | None]:
    """Returns how a column of files is read: moments as numbers where Spark's reader could fail on them."""

    def file_column(name: str, native: str) -> SparkColumn | None:
        leaf = None if leaves is None else leaves.get(name)
        digits = _DECIMAL.fullmatch(native)
        if leaf is not None and leaf.annotation in _UNSIGNED:
            return SparkColumn(native, Type.INT, _UNSIGNED[leaf.annotation])
        if digits and int(digits[1]) > _DIGITS_OF_LONG:
            fits = leaf is not None and 0 < leaf.length <= _BYTES_OF_DECIMAL
            return in_memory(name, native) if fits else None
        if native.startswith("timestamp") and leaf is None:
            return None
        for unit, sql in (("MILLIS", _MILLISECONDS), ("NANOS", _NANOSECONDS)):
            if leaf is not None and leaf.annotation.startswith(f"TIMESTAMP({unit}"):
                return SparkColumn("bigint", Type.TIMESTAMP, sql)
        return in_memory(name, native)

    return file_column


# --------------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class SourceDescription:
    """A source as it was found: its readable columns, and how a DataFrame of some of them is made.

    With the DataFrame comes the name of the global view under which its rows are kept, "" if they are not.
    """

    columns: Mapping[str, SparkColumn]
    frame: Callable[[Mapping[str, SparkColumn]], tuple[Any, str]]


def describe_source(session: Any, source: Source) -> SourceDescription:
    """Returns the columns of a source, from its format alone, in a session of ours.

    Raises:
        InvalidParameter: if it is nothing that is read; Spark raises what it likes if it cannot be opened.
    """
    return _DESCRIBED[type(source)](session, source)


def _files(session: Any, source: ParquetFiles) -> SourceDescription:
    found = session.read.parquet(*source.paths)
    columns = columns_of(found.schema, in_files(leaves_of(session, found.inputFiles())))

    def frame(chosen: Mapping[str, SparkColumn]) -> tuple[Any, str]:
        schema = ", ".join(f"{DIALECT.quote_name(name)} {column.native}" for name, column in chosen.items())
        return session.read.schema(schema).parquet(*source.paths), ""

    return SourceDescription(columns, frame)


def _catalog_table(session: Any, source: CatalogTable) -> SourceDescription:
    """Describes a table of Parquet files; columns whose type is not the catalog's are left out."""
    name = ".".join(map(DIALECT.quote_name, source.name.split(".")))
    hint = "Store what it computes as a table in Parquet, or pass a DataFrame, whose rows are kept."
    if session.catalog.getTable(name).tableType not in _TABLES:
        raise InvalidParameter("source", source.name, "to be a table, not a view", hint)
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    if {row.col_name: row.data_type for row in rows}.get("Provider", "").lower() not in _STORED_AS:
        raise InvalidParameter("source", source.name, f"to be stored as {' or '.join(_STORED_AS)}", hint)
    table = session.table(name)
    files = table.inputFiles()
    found = columns_of(table.schema, in_files(leaves_of(session, files) if files else {}))
    natives = {field.name: field.dataType.simpleString() for field in table.schema.fields}
    columns = {name: column for name, column in found.items() if column.native == natives[name]}
    return SourceDescription(columns, lambda _: (table, ""))


def _frame(session: Any, source: SparkFrame) -> SourceDescription:
    """Returns a DataFrame; its rows are kept when it is registered, in a view that sessions of a cluster share."""

    def checkpoint_rows(chosen: Mapping[str, SparkColumn]) -> tuple[Any, str]:
        view = new_name()
        rows = source.frame.select(*map(DIALECT.quote_name, chosen)).localCheckpoint(eager=True)
        rows.createGlobalTempView(view)
        return session.table(f"global_temp.{view}"), view

    return SourceDescription(columns_of(source.frame.schema, in_memory), checkpoint_rows)


_DESCRIBED: Mapping[type, Callable[[Any, Any], SourceDescription]] = {
    ParquetFiles: _files,
    CatalogTable: _catalog_table,
    SparkFrame: _frame,
}
