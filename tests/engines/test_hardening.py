"""One message for every failure (RT-042, RT-089), a deadline (RT-086), an engine that reaches nothing (RT-107 ff.)."""

from __future__ import annotations

import threading
import traceback
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines import DuckDB
from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.model.readings import Reading, Statistic
from tests.engines.tables import B, N, T, bounding, call, col, lit
from tests.open_groups import unsealed

CANARY = "ZZ-CANARY-7"
ROWS = Reading(table="t", statistics=(Statistic(kind="rows"),))


def failure(engine: DuckDB, reading: Reading) -> str:
    with pytest.raises(QueryFailed) as caught:
        unsealed(engine.read(reading))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value.__dict__)


def test_forced_failures_say_one_thing_and_keep_no_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"{CANARY}.parquet"
    pq.write_table(pa.table({"s": [CANARY, "12345"]}), path)
    asked = Reading(table="t", where=call("equal", B, col("s", T), lit(CANARY, T)), statistics=ROWS.statistics)
    texts = set()
    with DuckDB(threads=1) as engine:
        engine.register("t", path, {"s": T})
        assert unsealed(engine.read(asked)) == {(): (1,)}
        path.write_bytes(b"PAR1" + CANARY.encode() * 100)
        texts.add(failure(engine, asked))
        path.unlink()
        texts.add(failure(engine, asked))
        for error in (
            duckdb.ConversionException(f"Could not convert {CANARY}"),
            MemoryError(CANARY),
            ValueError(CANARY),
        ):
            monkeypatch.setattr(engine, "_cursor", lambda error=error: (_ for _ in ()).throw(error))
            texts.add(failure(engine, asked))
    assert not any(CANARY in text.replace(str(path), "") or "12345" in text for text in texts)
    assert len({text.splitlines()[-1] for text in texts}) == 1


def slow() -> pa.Table:
    return pa.table({"u": pa.array(range(400_000), pa.int64()), "g": [str(i % 7) for i in range(400_000)]})


@pytest.mark.ci
def test_a_deadline_stops_a_question_and_the_next_one_works() -> None:
    limits = bounding(1, 1)
    heavy = Reading(
        table="t", keys=(col("g", T),), bounding=limits, statistics=(Statistic(kind="values", argument=col("u", N)),)
    )
    with DuckDB(threads=1, deadline=0.001) as engine:
        engine.register("t", slow(), {"u": N, "g": T})
        engine._cursor().close()  # opening the database is no part of a question
        failure(engine, heavy)
        engine._deadline = None
        assert sum(numbers[0] for numbers in unsealed(engine.read(heavy)).values()) == 400_000


def test_a_memory_limit_ends_in_the_same_message() -> None:
    with DuckDB(threads=1, memory_limit="24MB") as engine:
        engine.register("t", slow(), {"u": N, "g": T})
        keys = (col("u", N), call("to_text", T, col("u", N)), col("g", T))
        failure(engine, Reading(table="t", keys=keys, statistics=ROWS.statistics))


FORBIDDEN = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('https://169.254.169.254/x.parquet')",
    "ATTACH '{folder}/other.duckdb' AS other",
    "COPY t0 TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{table}'",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET memory_limit = '1TB'",
    "SET python_enable_replacements = true",
    "RESET lock_configuration",
    "SELECT * FROM python_object",
    "PRAGMA enable_profiling",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sql", FORBIDDEN)
def test_the_connection_reaches_nothing_else(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"n": [1]}), path)
    python_object = pa.table({"n": [1]})
    with DuckDB(threads=1) as engine:
        engine.register("t", path, {"n": N})
        with engine._cursor() as cursor, pytest.raises(duckdb.Error):
            cursor.execute(sql.format(folder=tmp_path, table=path)).fetchall()
        assert unsealed(engine.read(ROWS)) == {(): (1,)}
    assert python_object.num_rows == 1
    assert [file.name for file in tmp_path.iterdir()] == ["table.parquet"]


def test_questions_do_not_see_each_others_temporary_things() -> None:
    with DuckDB(threads=1) as engine:
        engine.register("t", pa.table({"n": [1]}), {"n": N})
        with engine._cursor() as one, engine._cursor() as other:
            one.execute("CREATE TEMP TABLE left_over AS SELECT 1")
            with pytest.raises(duckdb.Error):
                other.execute("SELECT * FROM left_over")


def test_threads_may_ask_at_once() -> None:
    answers: list[Any] = []
    with DuckDB(threads=2) as engine:
        engine.register("t", pa.table({"n": list(range(1000))}), {"n": N})
        askers = [threading.Thread(target=lambda: answers.append(unsealed(engine.read(ROWS)))) for _ in range(8)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
    assert answers == [{(): (1000,)}] * 8


def test_a_closed_engine_knows_no_table() -> None:
    engine = DuckDB(threads=1)
    engine.register("t", pa.table({"n": [1]}), {"n": N})
    engine.close()
    with pytest.raises(InvalidParameter):
        unsealed(engine.read(ROWS))


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"memory_limit": "4GB'; --"}, {"deadline": 0}])
def test_settings_without_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        DuckDB(**wrong)
