"""Relations of DuckDB's Python library: stored tables and Parquet files with chosen and renamed columns.

A relation is a query, which runs in a connection of the steward's. Its text is parsed, and only what names columns of
a table or of files passes; the query that is run then is written anew from those names. A table is copied when it is
protected, as a frame is: its connection may be closed later, or change the table.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb.sources import FileTable, files_of
from discreet.engines.duckdb.stored_rows import database_files, stored_rows
from discreet.engines.sources.file_set import FileSet, format_of
from discreet.engines.sources.stored_frames import computes
from discreet.errors import InvalidParameter
from discreet.lazy import Module
from discreet.sql.plain_projection import PlainProjection, plain_projection

if TYPE_CHECKING:
    from discreet.engines.duckdb.composed import file_parts
else:  # DuckDB, which is loaded with the first curator that reads files
    file_parts = Module("discreet.engines.duckdb.composed.file_parts")

_PLAIN = "to be a table or Parquet files with chosen and renamed columns"


def table_of(given: Any) -> Any:
    """Returns the files of a relation, or its rows; what is no relation is returned as it is.

    Raises:
        InvalidParameter: if it computes anything, or reads a view or files of texts.
    """
    if type(given).__name__ != "DuckDBPyRelation":
        return given
    try:
        plain = plain_projection(given.sql_query())
        if plain is None:
            raise computes(given, _PLAIN)
        if plain.paths:
            return _files(plain)
        found = stored_rows(given, plain.table, plain.columns)
        if found is None and len(plain.table) == 1 and format_of(plain.table[0]) is not None:
            return _files(replace(plain, table=(), paths=plain.table))
        if found is not None:
            for path, schema, table in database_files(given, plain.table):
                found.origins |= files_of(FileTable(path=Path(path), table=table, schema=schema))
    except InvalidParameter:
        raise
    except Exception:  # noqa: BLE001 - of DuckDB, whose messages may hold what is in the table
        raise computes(given, _PLAIN) from None
    if found is None:
        raise computes(given, _PLAIN)
    return found


def _files(plain: PlainProjection) -> FileSet:
    for path in plain.paths:
        known = format_of(path)
        if known is not None and known[0] != "parquet":
            hint = 'Pass the path of the file, with its types: types={"age": "int"}.'
            raise InvalidParameter("source", "DuckDBPyRelation", "to be of a format with types", hint)
    files = FileSet.of_places(plain.paths)
    files = replace(files, partitions={}) if plain.is_partitioned is False else files
    if plain.columns is None:
        return files
    known_names = {name.casefold(): name for name in file_parts.describe_files(files)}
    chosen = {name: known_names[stored.casefold()] for name, stored in plain.columns.items()}
    return replace(files, chosen=chosen)
