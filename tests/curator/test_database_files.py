"""Tables of databases in files: answers of one Parquet file, raw cells, writers who come and go, refused views."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from discreet import audit
from discreet.curator import Curator
from discreet.engines import DuckDB
from discreet.engines.duckdb.sources import FileTable, named_table
from discreet.engines.sources.query_view import query_view
from discreet.engines.sources.sqlite_table import SqliteTable
from discreet.errors import InvalidParameter, QueryFailed, UnsupportedQuery
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from tests.curator.clinic import Row
from tests.curator.test_many_files import QUESTIONS, ROWS, clinic, told
from tests.engines.lakes import parquet, scattered, table
from tests.engines.tables import B, D, F, N, S, T, col
from tests.open_groups import unsealed

SQLITE_TYPES = {"patient": "INTEGER", "ward": "TEXT", "age": "INT", "charge": "REAL", "kind": ""}


def in_duckdb(path: Path, rows: Sequence[Row]) -> Path:
    arrow = table(rows)
    with duckdb.connect(str(path), config={"temp_directory": ""}) as connection:
        connection.register("arrow_rows", arrow)
        connection.execute(
            "CREATE SCHEMA care; CREATE TABLE visits AS FROM arrow_rows; CREATE TABLE care.visits AS FROM visits"
        )
        connection.execute("CREATE VIEW shown AS FROM visits")
    return path


def in_sqlite(path: Path, rows: Sequence[Row]) -> Path:
    columns = ", ".join(f"{name} {kind}" for name, kind in SQLITE_TYPES.items())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE visits ({columns})")
        cells = [tuple(row[name] for name in SQLITE_TYPES) for row in rows]
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", cells)
        connection.execute("CREATE VIEW shown AS SELECT * FROM visits")
    return path


KINDS: dict[str, Callable[[Path, Sequence[Row]], Path]] = {"duckdb": in_duckdb, "sqlite": in_sqlite}


@pytest.mark.ci
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", [".db", ""])
def test_answers_are_those_of_one_file(tmp_path: Path, kind: str, ending: str) -> None:
    parquet(ROWS, tmp_path / "visits")
    path = KINDS[kind](tmp_path / f"clinic{ending or '.' + kind}", ROWS)
    assert told(path, QUESTIONS[:2], table="Visits" if ending else "visits") == told(
        tmp_path / "visits.parquet", QUESTIONS[:2]
    )


def test_a_table_may_be_in_a_schema(tmp_path: Path) -> None:
    path = in_duckdb(tmp_path / "clinic.duckdb", ROWS)
    assert clinic(path, table="care.visits", types=None).ask(QUESTIONS[0], epsilon=1)
    assert named_table(path, "care.visits") == FileTable(path=path, table="visits", schema="care")


@pytest.mark.ci
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_differ_in_nothing_but_what_noise_covers(tmp_path: Path, kind: str) -> None:
    made = iter(range(10**6))

    def curator_of(rows: list[Row]) -> Curator:
        return clinic(KINDS[kind](tmp_path / f"{next(made)}.db", rows), table="visits")

    rows = [dict(row) for row in ROWS if row["patient"] < 3]
    found = audit.query(curator_of, [QUESTIONS[3]], rows, neighbours=1, delta=1e-7)
    assert found.passed, found.summary()


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_protected_is_refused(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path / "clinic.db", ROWS)
    with pytest.raises(InvalidParameter, match="Store it as a table, then protect it"):
        clinic(path, table="shown")
    for name in (None, "absent", "absent.visits", "'; DROP TABLE visits; --", ""):
        with pytest.raises(InvalidParameter):
            clinic(path, table=name)
    (tmp_path / "other.db").write_text("no database")
    with pytest.raises(InvalidParameter, match="to be a DuckDB or SQLite database"):
        clinic(tmp_path / "other.db", table="visits")
    for source in (tmp_path, pa.table({"patient": [1]}), "visits.csv"):
        with pytest.raises(InvalidParameter, match="Leave it out"):
            clinic(source, table="visits")


def test_columns_of_sqlite_need_types(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match='"patient": "text", "ward": "text"'):
        clinic(in_sqlite(tmp_path / "clinic.db", ROWS), table="visits", types=None)
    with pytest.raises(InvalidParameter, match="wards"):
        clinic(tmp_path / "clinic.db", table="visits", types={"patient": "int", "wards": "text"}, bounds={}, keys={})


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_a_database_has_one_budget(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path / "clinic.db", ROWS)
    again: dict[str, Any] = {"table": "VISITS", "types": {"patient": "int"}, "max_rows": 1, "max_groups": 1}
    with clinic(path, table="visits") as curator, pytest.raises(InvalidParameter, match="has a budget"):
        curator.protect(path, name="again", unit="patient", **again)


# -------------------------------------------------------------------------------------------------------------- writers

_WRITER = """\
import sys, duckdb
with duckdb.connect(sys.argv[1], config={"temp_directory": ""}) as connection:
    connection.execute("INSERT INTO visits SELECT * FROM visits")
    print("writing", flush=True)
    sys.stdin.readline()
"""


def _writing(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(path)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "writing\n"
    return writer


def test_a_database_that_is_written_to_is_refused_before_the_charge(tmp_path: Path) -> None:
    path = in_duckdb(tmp_path / "CANARY.duckdb", ROWS)
    with clinic(path, table="visits") as curator:
        spent = curator.budget("visits").spent
        with _writing(path) as writer:  # between two queries nothing of ours is open
            with pytest.raises(UnsupportedQuery) as caught:
                curator.ask(QUESTIONS[0], epsilon=1)
            assert "Ask again" in str(caught.value)
            assert not {"CANARY", str(writer.pid), "PID"} & set(str(caught.value).replace("/", " ").split())
            assert caught.value.__context__ is None
            assert curator.budget("visits").spent == spent
            writer.communicate("\n")
        assert curator.ask(QUESTIONS[0], epsilon=1)


def test_a_column_that_changed_since_is_read_as_declared_or_null(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    columns = {"n": N, "s": T, "gone": N}
    with duckdb.connect(str(path), config={"temp_directory": ""}) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS n, 'a' AS s, 3 AS gone")
    with DuckDB(threads=1) as engine:
        engine.register("t", FileTable(path=path, table="t"), columns)
        with duckdb.connect(str(path), config={"temp_directory": ""}) as connection:
            connection.execute(
                "CREATE OR REPLACE TABLE t AS SELECT unnest(['7', 'x']) AS n, [1] AS s, DATE '2024-01-01' AS day"
            )
        seen = {name: set(unsealed(engine.read(_by(name, kind)))) for name, kind in columns.items()}
        assert seen == {"n": {(7,), (None,)}, "s": {(None,)}, "gone": {(None,)}}
        with duckdb.connect(str(path), config={"temp_directory": ""}) as connection:
            connection.execute("DROP TABLE t; CREATE VIEW t AS SELECT 1 AS n")
        with pytest.raises(QueryFailed):
            unsealed(engine.read(_by("n", N)))


# ---------------------------------------------------------------------------------------------------------------- cells


def _by(name: str, kind: Type) -> Reading:
    return Reading(table="t", keys=(col(name, kind),), statistics=(Statistic(kind="rows"),))


CELLS = (
    1,
    -(1 << 63),
    1.5,
    2.0,
    1e308,
    float("inf"),
    "3",
    " 4 ",
    "2024-02-29",
    "x",
    "",
    None,
    b"\x00\xff",
    "true",
    "\0",
    "🤦",
)
READ: dict[Type, set[Any]] = {
    N: {1, -(1 << 63), 2, 3, 4, None},
    T: {"1", str(-(1 << 63)), "3", " 4 ", "2024-02-29", "x", "", None, "true", "\0", "🤦"},
    B: {True, None},
}


@pytest.mark.parametrize("declared", ["", "INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC"])
def test_no_cell_of_sqlite_makes_a_read_fail(tmp_path: Path, declared: str) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f'CREATE TABLE "odd ""name" ("x""y" {declared}, c0 INT, "#rows" INT)')
        connection.executemany('INSERT INTO "odd ""name" ("x""y") VALUES (?)', [(cell,) for cell in CELLS])
        connection.execute('INSERT INTO "odd ""name" ("x""y") VALUES (CAST(x\'ff\' AS TEXT))')
    for kind in (N, F, B, T, D, S):
        with DuckDB(threads=1) as engine:
            engine.register("t", SqliteTable(path=path, table='odd "name'), {'x"y': kind, "c0": N, "#rows": N})
            asked = Reading(
                table="t", statistics=(Statistic(kind="rows"), Statistic(kind="values", argument=col('x"y', kind)))
            )
            assert unsealed(engine.read(asked))[()][0] == len(CELLS) + 1
            if kind in READ and not declared:
                assert {key for (key,) in unsealed(engine.read(_by('x"y', kind)))} == READ[kind] | (
                    {2} if kind is N else set()
                )


def test_generated_columns_and_other_tables_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (n INT, m INT GENERATED ALWAYS AS (n + 1) VIRTUAL)")
        connection.execute("INSERT INTO t VALUES (NULL)")
        connection.execute("INSERT INTO t VALUES (7)")
    assert SqliteTable(path=path, table="t").columns() == ("n",)
    with DuckDB(threads=1) as engine:
        engine.register("t", SqliteTable(path=path, table="t"), {"n": N})
        assert unsealed(engine.read(_by("n", N))) == {(7,): (1,), (None,): (1,)}


def test_stages_of_a_query_read_sqlite_as_it_was(tmp_path: Path) -> None:
    path = in_sqlite(tmp_path / "t.db", ROWS[:5])
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.close()
    rows = Reading(table="t", statistics=(Statistic(kind="rows"),))
    with DuckDB(threads=1) as engine:
        for name in ("t", "s"):
            engine.register(name, SqliteTable(path=path, table="visits"), {"patient": N})
        with query_view():
            assert unsealed(engine.read(rows)) == {(): (5,)}
            with closing(sqlite3.connect(path)) as writer, writer:
                writer.execute("INSERT INTO visits SELECT * FROM visits")
            assert unsealed(engine.read(rows)) == {(): (5,)}
        assert unsealed(engine.read(rows)) == {(): (10,)}


@pytest.mark.ci
def test_a_file_of_declarations_names_folders_and_tables(tmp_path: Path) -> None:
    scattered(ROWS, tmp_path / "lake", "csv")
    in_sqlite(tmp_path / "clinic.db", ROWS)
    in_duckdb(tmp_path / "wards.duckdb", ROWS[:1])
    types = 'types = { patient = "int", ward = "text" }'
    tables = f"""
        ledger = "book.ledger"
        public.wards = {{ source = "wards.duckdb", table = "visits" }}
        budgets.visits.epsilon = 1
        budgets.stays.epsilon = 1
        [tables.visits]
        source = "lake/*.csv"
        unit = "patient"
        max_rows = 1
        {types}
        [tables.stays]
        source = "clinic.db"
        table = "visits"
        unit = "patient"
        max_rows = 1
        {types}
    """
    (tmp_path / "discreet.toml").write_text(tables)
    with Curator.from_config(tmp_path / "discreet.toml", engine=DuckDB(threads=1)) as curator:
        assert curator.ask("SELECT COUNT(*) AS n FROM stays", epsilon=0.5)
        assert set(curator.tables()) == {"visits", "stays"}
    (tmp_path / "discreet.toml").write_text(tables.replace('table = "visits"\n        unit', "unit"))
    with pytest.raises(InvalidParameter, match=r"tables\.stays\.table"):
        Curator.from_config(tmp_path / "discreet.toml", engine=DuckDB(threads=1))
