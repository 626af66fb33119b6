"""A table of a SQLite database, read by Python's own library: its columns, and its cells by their types.

Any cell of SQLite may have any type, whatever its column is declared as. So each cell is handed on with the type that
it has, and read as the declared type later, as a cell of any other source.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import quote

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

CELL_TYPES = ("integer", "real", "text")
"""The types of cells that are read, as SQLite calls them; a blob is NULL."""

_PATIENCE = 1.0  # seconds that a writer may take to finish

Cells = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteTable:
    """A table of a SQLite database, opened read-only for each query."""

    path: Path
    table: str

    def columns(self) -> tuple[str, ...]:
        """Returns the names of the columns that are stored; what the database computes is none.

        Raises:
            InvalidParameter: if there is no such table, or it is a view.
        """
        try:
            with SqliteSnapshot(self) as snapshot:
                return snapshot.columns()
        except sqlite3.Error:
            raise InvalidParameter("source", self.path.name, "to be a SQLite database that can be read") from None


class SqliteSnapshot:
    """A table as it was when a query began to read it, to be closed at its end."""

    def __init__(self, table: SqliteTable) -> None:
        self._table = table
        address = f"file:{quote(bytes(table.path))}?mode=ro"
        self._connection = sqlite3.connect(
            address, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.text_factory = bytes  # a text need not be Unicode
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # from here on it stays as it is
        except BaseException:
            self.close()
            raise

    def columns(self) -> tuple[str, ...]:
        """Returns the names of the columns that are stored.

        Raises:
            InvalidParameter: if there is no such table, or it is a view.
        """
        kinds = "SELECT type, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE lower(name) = lower(?)"
        found = self._connection.execute(f"{kinds} AND type IN ('table', 'view')", [self._table.table]).fetchone()
        if found is None:
            raise InvalidParameter("table", self._table.table, "to be a table of the database")
        if found != (b"table", 0):
            hint = "Store it as a table, then protect it: CREATE TABLE ... AS SELECT * FROM the view."
            raise InvalidParameter("table", self._table.table, "to be a table, not a view", hint)
        rows = self._connection.execute(f"PRAGMA table_xinfo({_quote_name(self._table.table)})").fetchall()
        return tuple(name.decode(errors="replace") for _, name, *_, hidden in rows if not hidden)

    def cells(self, names: Sequence[str], count: int) -> Iterator[list[Cells]]:
        """Yields rows, so many at once, with three cells for each column: an integer, a real, and a text's bytes."""
        shown = (
            f"CASE WHEN typeof({_quote_name(name)}) = '{kind}' THEN {_quote_name(name)} END"
            for name in names
            for kind in CELL_TYPES
        )
        rows = self._connection.execute(f"SELECT {', '.join((*shown, 'NULL'))} FROM {_quote_name(self._table.table)}")
        while some := rows.fetchmany(count):
            yield some

    def close(self) -> None:
        """Closes the database; writers may go on."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
