"""Tables of databases in files, opened for one query: a DuckDB file is attached, a SQLite table is copied."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import duckdb

from discreet.engines.abstract_engine import READS
from discreet.engines.duckdb.arrow import ROWS, PlainBatchStream
from discreet.engines.duckdb.composed.declared_columns import select_declared
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.source_tables import describe_source, describer
from discreet.engines.duckdb.sources import UNCHECKED_TEXT, ArrowFrame, ComposedTable, DuckDBColumn, FileTable
from discreet.engines.sources.sqlite_table import CELL_TYPES, SqliteSnapshot, SqliteTable
from discreet.engines.sql.printer import Printer
from discreet.lazy import pa
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.types import Type

_TRIALS = count()
_AT_ONCE = 10_000  # rows of a batch
_TYPES = dict(zip(CELL_TYPES, (Type.INT, Type.FLOAT, Type.TEXT), strict=True))


def is_locked(source: FileTable | SqliteTable) -> bool:
    """Returns whether a database cannot be opened now; what DuckDB says of it names the path and the other process."""
    if isinstance(source, SqliteTable):
        with suppress(sqlite3.Error):
            SqliteSnapshot(source).close()
            return False
        return True
    tried = f"tried{next(_TRIALS)}"  # other threads may try at the same time
    with describer() as connection:
        try:
            connection.execute(f"ATTACH {DIALECT.text_literal(str(source.path))} AS {tried} (READ_ONLY)")
            connection.execute(f"DETACH {tried}")
        except duckdb.Error:
            return True
    return False


def attached_table(name: str, source: FileTable, columns: Mapping[str, Type]) -> ComposedTable:
    """Returns a table of a DuckDB file as it is now.

    Raises:
        InvalidParameter: if it cannot be read, or is a view by now.
    """
    found = {n: column for n, column in describe_source(source).items() if n in columns}
    part = f"{name}_stored"
    return ComposedTable(
        sql=select_declared(part, {n: (c.type, DIALECT.quote_name(n)) for n, c in found.items()}, columns),
        parts={part: (source, found)},
        careful=None,
        paths=(source.path,),
        size=source.path.stat().st_size,
        unpacked=2,  # how much longer numbers may be than where they are stored
        is_measured=True,
    )


def copied_table(
    name: str, source: SqliteTable, snapshot: SqliteSnapshot, columns: Mapping[str, Type]
) -> ComposedTable:
    """Returns a table of a SQLite database as it was when the query began.

    Raises:
        InvalidParameter: if it is a view by now, or gone.
    """
    there = snapshot.columns()
    found = [n for n in columns if n in there]
    part, stream = f"{name}_stored", _stream(snapshot, found)
    read = {n: DuckDBColumn("", Type.TEXT, _read(n)) for n in stream.schema.names if n != ROWS}
    return ComposedTable(
        sql=_select_cells(part, found, columns),
        parts={part: (ArrowFrame(stream), read)},
        careful=None,
        paths=(),
        size=source.path.stat().st_size,
        unpacked=2,
    )


def _read(name: str) -> str:
    quoted = DIALECT.quote_name(name)
    return UNCHECKED_TEXT.format(quoted) if name.endswith(CELL_TYPES[-1]) else quoted


def _select_cells(part: str, found: Sequence[str], columns: Mapping[str, Type]) -> str:
    """Writes a query in which each cell is read from the type that it has: of the three at most one is not NULL."""
    stored, declared = dict[str, tuple[Type, str]](), dict[str, Type]()
    for place, name in enumerate(found):
        for cell_type, kind in _TYPES.items():
            way, cell = f"{place}{cell_type}", DIALECT.quote_name(f"{place}{cell_type}")
            is_truth = columns[name] is Type.BOOL and kind is Type.INT  # SQLite has no truth values: it stores 0 and 1
            read = (Type.TEXT, f"CAST({cell} AS VARCHAR)") if is_truth else (kind, cell)
            if (read[0], columns[name]) in READS:
                stored[way], declared[way] = read, columns[name]
    printer = Printer(dialect=DIALECT, source=part, columns=stored, declared=declared)
    cells = dict[str, str]()
    for name, kind in columns.items():
        ways = [f"{found.index(name)}{cell_type}" for cell_type in CELL_TYPES] if name in found else []
        values = [printer.print(ColumnRef(way, kind)).sql for way in ways if way in stored]
        cells[name] = f"coalesce({', '.join(values)})" if values else DIALECT.cast("NULL", kind)
    shown = ", ".join(f"{cell} AS {DIALECT.quote_name(name)}" for name, cell in cells.items())
    return f"SELECT {shown} FROM {printer.rows(cells.values())}"


def _stream(snapshot: SqliteSnapshot, names: Sequence[str]) -> PlainBatchStream:
    kinds = (pa.int64(), pa.float64(), pa.large_string())
    fields = [
        (f"{place}{kind}", of) for place, _ in enumerate(names) for kind, of in zip(CELL_TYPES, kinds, strict=True)
    ]
    schema = pa.schema([*fields, (ROWS, pa.bool_())])

    def batches() -> Iterator[Any]:
        for rows in snapshot.cells(names, _AT_ONCE):
            *cells, nothing = zip(*rows, strict=True)
            arrays = [_array(column, of) for column, (_, of) in zip(cells, fields, strict=True)]
            yield pa.RecordBatch.from_arrays([*arrays, pa.array(nothing, pa.bool_())], schema=schema)

    return PlainBatchStream(schema, batches)


def _array(cells: Sequence[object], kind: Any) -> Any:
    """Returns cells as an array; texts are not checked here, since any bytes may be in them."""
    if kind != pa.large_string():
        return pa.array(cells, kind)
    return pa.array(cells, pa.large_binary()).view(kind)
