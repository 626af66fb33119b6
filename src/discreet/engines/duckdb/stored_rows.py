"""Tables that a connection of DuckDB's Python library holds: some of their columns, by a query that we write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from discreet.engines.duckdb.dialect import DIALECT
from discreet.engines.sources.stored_frames import StoredFrame

_VIEW = "discreet_relation"


def stored_rows(relation: Any, table: Sequence[str], columns: Mapping[str, str] | None) -> StoredFrame | None:
    """Returns columns of a stored table.

    Args:
        relation: any one of the connection.
        table: the parts of the table's name.
        columns: for each column the name that it has in the table; None for all.

    Returns:
        None if there is no such table, a view may be meant, or it computes a column, which may fail on a value.
    """
    name = DIALECT.text_literal(table[-1])
    views = f"SELECT count(*) FROM duckdb_views() WHERE lower(view_name) = lower({name})"
    tables = f"SELECT count(*) FROM duckdb_tables() WHERE lower(table_name) = lower({name})"
    computed = f"{tables} AND contains(lower(sql), 'generated always')"
    found = tuple(relation.query(_VIEW, sql).fetchall()[0][0] > 0 for sql in (tables, views, computed))
    if found != (True, False, False):
        return None
    source = ".".join(map(DIALECT.quote_name, table))
    chosen = relation.query(_VIEW, f"SELECT * FROM {source}")
    if columns is not None:
        stored = {one.casefold() for one in chosen.columns}
        if not all(one.casefold() in stored for one in columns.values()):  # the number of a row is no column
            return None
        shown = (f"{DIALECT.quote_name(one)} AS {DIALECT.quote_name(new)}" for new, one in columns.items())
        chosen = relation.query(_VIEW, f"SELECT {', '.join(shown)} FROM {source}")
    return StoredFrame(chosen.limit(0).to_arrow_table().schema, partial(_rows, chosen))


def database_files(relation: Any, table: Sequence[str]) -> list[tuple[str, str, str]]:
    """Returns the databases in files that have a table of such a name: of each the path, the schema and the table."""
    named = f"lower(table_name) = lower({DIALECT.text_literal(table[-1])})"
    shown = "path, schema_name, table_name FROM duckdb_tables() JOIN duckdb_databases() USING (database_name)"
    found: list[tuple[str, str, str]] = relation.query(
        _VIEW, f"SELECT {shown} WHERE {named} AND path IS NOT NULL"
    ).fetchall()
    return found


def _rows(chosen: Any) -> Any:
    return chosen.to_arrow_table()
