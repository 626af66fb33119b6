"""Tables of tests on a MariaDB server: made by its superuser, read by a user that can do nothing else."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from discreet.engines.mariadb import MariaDB
from discreet.plan.model.types import Type
from tests.mariadb_server import MariaDBServer, execute, is_installed

READER = "discreet_reader"
NATIVE = {
    Type.INT: "BIGINT",
    Type.FLOAT: "DOUBLE",
    Type.BOOL: "TINYINT(1)",
    Type.TEXT: "TEXT CHARACTER SET utf8mb4",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "DATETIME(6)",
}

Rows = Sequence[Mapping[str, Any]]


class MariaDBTables:
    """A database of a server of tests, in which tables are made."""

    def __init__(self, server: MariaDBServer) -> None:
        self._count = 0
        self.server = server
        self.database = f"database_{os.getpid()}"
        self._connection = server.superuser()
        self.url = server.url(READER, self.database)
        self.run(
            f"CREATE DATABASE {self.database}",
            f"USE {self.database}",
            f"CREATE USER IF NOT EXISTS {READER}@'127.0.0.1'",
            "SET innodb_strict_mode = 0",
        )

    def run(self, *statements: str | tuple[str, Sequence[Any]]) -> None:
        execute(self._connection, *statements)

    def rows(self, query: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def engine(self, **settings: Any) -> MariaDB:
        return MariaDB(self.url, **settings)

    def give(self, rows: Rows, columns: Mapping[str, Type]) -> str:
        """A new table with these rows; numbers that are none are NULL there."""
        return self.table({name: NATIVE[kind] for name, kind in columns.items()}, rows)

    def table(self, columns: Mapping[str, str], rows: Rows, options: str = "") -> str:
        """A new table of native types."""
        self._count += 1
        table = f"t{self._count}"
        listed = ", ".join(f"{_quoted(name)} {native}" for name, native in columns.items())
        self.run(f"CREATE TABLE {table} ({listed}) {options}", f"GRANT SELECT ON {table} TO {READER}@'127.0.0.1'")
        values = [tuple(storable(row.get(name)) for name in columns) for row in rows]
        if values:
            self.run((f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(columns))})", values))
        return table

    def close(self) -> None:
        self._connection.close()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def register(tables: MariaDBTables, source: Any, columns: Mapping[str, Type], **settings: Any) -> MariaDB:
    """An engine with one table, t."""
    made = tables.engine(**settings)
    made.register("t", source, columns)
    return made


def storable(value: Any) -> Any:
    """The value, or NULL of a number that is none or infinite, which MariaDB has not."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@pytest.fixture(scope="session")
def mariadb_tables(mariadb_server: MariaDBServer) -> Iterator[MariaDBTables]:
    """The database of this process of tests; without a server, whoever asks is skipped."""
    tables = MariaDBTables(mariadb_server)
    yield tables
    tables.close()


@pytest.fixture(scope="session")
def mariadb_if_any(request: pytest.FixtureRequest) -> MariaDBTables | None:
    """The same, for tests of several engines; None where there is no server, unless all engines must be there."""
    if os.environ.get("DISCREET_ENGINES") != "all" and not is_installed():
        return None
    tables: MariaDBTables = request.getfixturevalue("mariadb_tables")
    return tables
