"""Ranks of whole numbers: the same whether an engine holds them in 32 bits or in 64, and never an overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest

from discreet.engines.duckdb.dialect import DIALECT as DUCKDB
from discreet.engines.postgres.dialect import DIALECT as POSTGRES
from discreet.engines.row_choice import P, Salt
from discreet.engines.spark.dialect import DIALECT as SPARK
from discreet.engines.sql.dialect import Dialect
from discreet.engines.sql.group_ranks import print_rank_number
from discreet.plan.model.types import Type
from tests.postgres_server import PostgresServer

VALUES = (0, 1, -1, 2**31 - 1, -(2**31), None)
SALT = Salt("of ranks")


def check(dialect: Dialect, ask: Callable[[str], list[tuple[Any, ...]]]) -> None:
    """A literal is of 32 bits on each engine, and so are places that some give rows."""
    number = dialect.rank_numbers[Type.INT].format("u")
    z = print_rank_number(dialect, SALT, number, [("k", Type.INT), ("l", Type.INT)])
    rows = " UNION ALL ".join(
        f"SELECT CAST({unit} AS INTEGER) AS u, CAST({'NULL' if key is None else key} AS INTEGER) AS k, "
        f"CAST({'NULL' if key is None else -1 - key} AS INTEGER) AS l"
        for unit in VALUES[:-1]
        for key in VALUES
    )
    found = ask(f"SELECT u, k, l, z * z % {P} FROM (SELECT u, k, l, {z} AS z FROM ({rows}) AS a) AS b")
    assert len(found) == len(VALUES) * (len(VALUES) - 1)
    for unit, first, second, square in found:
        assert square * square % P == SALT.rank(unit, (first, second))


def test_duckdb() -> None:
    with duckdb.connect() as connection:
        check(DUCKDB, lambda sql: connection.execute(sql).fetchall())


def test_mutant_products_of_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(DUCKDB), "cast", lambda _, sql, _kind: sql)
    with pytest.raises(duckdb.OutOfRangeException):
        test_duckdb()


def test_postgres(postgres_server: PostgresServer) -> None:
    with postgres_server.superuser() as connection:
        check(POSTGRES, lambda sql: connection.execute(sql).fetchall())


@pytest.mark.slow
def test_spark(spark_session: Any) -> None:
    check(SPARK, lambda sql: [tuple(row) for row in spark_session.sql(sql).collect()])
