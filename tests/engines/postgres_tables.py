"""Tables of tests on a PostgreSQL server: made by its superuser, read by a role that can do nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from discreet.engines.postgres import Postgres
from discreet.plan.model.types import Type
from tests.postgres_server import PostgresServer, server_programs

READER = "discreet_reader"
NATIVE = {
    Type.INT: "bigint",
    Type.FLOAT: "double precision",
    Type.BOOL: "boolean",
    Type.TEXT: "text",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}

Rows = Sequence[Mapping[str, Any]]


class PostgresTables:
    """A database of a server of tests, in which tables are made."""

    def __init__(self, server: PostgresServer) -> None:
        self._count = 0
        self.database = server.make_database()
        self._connection = server.superuser(self.database)
        self.url = server.url(READER, self.database)
        self.run(f"DO $$ BEGIN CREATE ROLE {READER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        self.run("SET synchronous_commit = off")

    def run(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(statement)

    def engine(self, **settings: Any) -> Postgres:
        return Postgres(self.url, **settings)

    def give(self, rows: Rows, columns: Mapping[str, Type]) -> str:
        """A new table with these rows; what PostgreSQL cannot store was taken out of them before."""
        return self.table({name: NATIVE[kind] for name, kind in columns.items()}, rows)

    def table(self, columns: Mapping[str, str], rows: Rows) -> str:
        """A new table of native types."""
        self._count += 1
        table = f"t{self._count}"
        listed = ", ".join(f'"{name}" {native}' for name, native in columns.items())
        self.run(f"CREATE UNLOGGED TABLE {table} ({listed})", f"GRANT SELECT ON {table} TO {READER}")
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows:
                copy.write_row([row.get(name) for name in columns])
        return f"public.{table}"

    def close(self) -> None:
        self._connection.close()


class PostgresOfRows(Postgres):
    """An engine that is given lists of rows, as `Memory` is, and makes tables of them."""

    def __init__(self, tables: PostgresTables) -> None:
        super().__init__(tables.url)
        self._give = tables.give

    def schema_of(self, source: Any) -> dict[str, Type]:
        del source
        return {}

    def origins(self, source: Any) -> dict[str, str]:
        del source
        return {}

    def _attach(self, name: str, source: Any, columns: Mapping[str, Type]) -> None:
        rows = [{column: storable(value) for column, value in row.items()} for row in source]
        super()._attach(name, self._give(rows, columns), columns)


def register(tables: PostgresTables, source: Any, columns: Mapping[str, Type], **settings: Any) -> Postgres:
    """An engine with one table, t."""
    made = tables.engine(**settings)
    made.register("t", source, columns)
    return made


def storable(value: Any) -> Any:
    """The value, or NULL of a text with U+0000, which PostgreSQL has not."""
    return None if isinstance(value, str) and "\0" in value else value


@pytest.fixture(scope="session")
def postgres_tables(postgres_server: PostgresServer) -> Iterator[PostgresTables]:
    """The database of this process of tests; without a server, whoever asks is skipped."""
    tables = PostgresTables(postgres_server)
    yield tables
    tables.close()


@pytest.fixture(scope="session")
def postgres_if_any(request: pytest.FixtureRequest) -> PostgresTables | None:
    """The same, for tests of several engines; None where there is no server, unless all engines must be there."""
    if os.environ.get("DISCREET_ENGINES") != "all" and not _is_installed():
        return None
    tables: PostgresTables = request.getfixturevalue("postgres_tables")
    return tables


def _is_installed() -> bool:
    try:
        server_programs()
    except FileNotFoundError:
        return False
    return find_spec("psycopg") is not None
