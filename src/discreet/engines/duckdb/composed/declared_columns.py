"""Declared columns over whatever a source has when a query reads it: matched by name, read as declared, or NULL.

A source that is opened for each query may have other columns than when it was protected. That changes no answer's
status: a column that is gone is NULL, and one of another type is read by the functions that read any other source.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.engines.abstract_engine import READS
from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.duckdb.sources import DuckDBColumn
from discreet.engines.sql.printer import Printer
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.types import Type

Stored = Mapping[str, tuple[Type, str]]
"""Of each column of a source its type, and the SQL that yields it."""


def declared_columns(columns: Mapping[str, Type]) -> dict[str, DuckDBColumn]:
    """Returns the declared columns, of the declared types, whatever columns there are."""
    return {name: DuckDBColumn(DIALECT.types[kind], kind, DIALECT.quote_name(name)) for name, kind in columns.items()}


def select_declared(source: str, stored: Stored, columns: Mapping[str, Type]) -> str:
    """Writes a query for the declared columns.

    Args:
        source: what comes after FROM.
        stored: the columns that are there.
        columns: the declared ones.
    """
    printer = Printer(dialect=DIALECT, source=source, columns=stored, declared=columns)
    cells = {
        name: printer.print(ColumnRef(name, kind)).sql
        if name in stored and (stored[name][0], kind) in READS
        else DIALECT.cast("NULL", kind)
        for name, kind in columns.items()
    }
    shown = ", ".join(f"{cell} AS {DIALECT.quote_name(name)}" for name, cell in cells.items())
    return f"SELECT {shown} FROM {printer.rows(cells.values())}"
