"""PostgreSQL as an engine: what it can read, whatever is stored; who may read; and what it never tells anybody."""

from __future__ import annotations

import datetime as dt
import os
import re
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from discreet.engines import Memory
from discreet.engines.by_source import by_source
from discreet.engines.postgres import Postgres, engine, sessions
from discreet.engines.postgres.roles import role_statements
from discreet.errors import InvalidParameter, QueryFailed
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.types import Type
from discreet.server_address import ServerAddress, ServerTable
from tests.engines.postgres_tables import READER, PostgresTables, register
from tests.engines.tables import B, D, F, N, S, T, call, col, lit, value_of
from tests.open_groups import unsealed
from tests.postgres_server import PostgresServer, absent

ROWS = Reading(table="t", statistics=(Statistic(kind="rows"),))
CANARY = "ZZ-CANARY-7"


# ------------------------------------------------------------------------------------------------------- what is stored

STORED: dict[str, tuple[Type, list[tuple[str, Any]]]] = {
    "smallint": (N, [("-32768", -32768), ("7", 7)]),
    "integer": (N, [("2147483647", 2147483647)]),
    "bigint": (N, [("-9223372036854775808", -(1 << 63))]),
    "real": (
        F,
        [("'NaN'", None), ("'-Infinity'", None), ("1.5", 1.5), ("1e-45", 1.401298464324817e-45), ("'-0'", 0.0)],
    ),
    "double precision": (
        F,
        [("'Infinity'", None), ("5e-324", 5e-324), ("1.7976931348623157e308", 1.7976931348623157e308)],
    ),
    "numeric": (
        F,
        [
            *(
                ("'NaN'", None),
                ("'Infinity'", None),
                ("'-Infinity'", None),
                ("0.1", 0.1),
                ("1e400", None),
                ("-1e400", None),
            ),
            *(("1e-400", 0.0), ("-1e-16000", 0.0), ("1e131000", None), ("2.4703282292062328e-324", 5e-324)),
            ("1.7976931348623158e308", 1.7976931348623157e308),
            ("1.7976931348623159e308", None),
            (f"{'9' * 1000}", None),
            ("9007199254740993", 9007199254740992.0),
        ],
    ),
    "numeric(20,4)": (F, [("'NaN'", None), ("1234567890123456.7891", 1234567890123456.7891), ("-0.0001", -0.0001)]),
    "boolean": (B, [("true", True), ("false", False)]),
    "text": (T, [("'naïve'", "naïve"), ("''", ""), (r"'\'", "\\")]),
    "varchar(5)": (T, [("'a  '", "a  ")]),
    "char(5)": (T, [("'a  '", "a")]),
    "name": (T, [("'who'", "who")]),
    "uuid": (T, [("'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]),
    "mood": (T, [("'sad'", "sad")]),
    "small": (N, [("3", 3)]),
    "cents": (F, [("0.25", 0.25), ("'NaN'", None)]),
    "date": (
        D,
        [
            *(("'infinity'", None), ("'-infinity'", None), ("'0044-03-15 BC'", None), ("'10000-01-01'", None)),
            *(("'0001-01-01'", dt.date(1, 1, 1)), ("'9999-12-31'", dt.date(9999, 12, 31))),
        ],
    ),
    "timestamp": (
        S,
        [
            *(("'infinity'", None), ("'294276-12-31 23:59:59.999999'", None), ("'4713-01-01 BC'", None)),
            ("'9999-12-31 23:59:59.999999'", dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
        ],
    ),
    "timestamptz": (
        S,
        [
            *(("'infinity'", None), ("'294276-12-31 23:59:59.999999+00'", None), ("'4713-01-02 00:00+00 BC'", None)),
            ("'2024-02-29 23:30:00-02'", dt.datetime(2024, 3, 1, 1, 30)),
            ("'0001-01-01 00:00+01'", None),
        ],
    ),
}
"""For each type values as SQL writes them, and what they are read as."""


def test_whatever_is_stored_is_read(postgres_tables: PostgresTables) -> None:
    postgres_tables.run(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN small AS int CHECK (VALUE < 10)",
        "CREATE DOMAIN cents AS numeric(10, 2)",
    )
    for native, (kind, cells) in STORED.items():
        source = postgres_tables.table({"id": "int", "x": native}, [])
        table = source.removeprefix("public.")
        for place, (cell, _) in enumerate(cells):
            postgres_tables.run(f"INSERT INTO {table} VALUES ({place}, {cell})")
        postgres_tables.run(f"INSERT INTO {table} VALUES (-1, NULL)")
        with postgres_tables.engine() as made:
            assert made.schema_of(source) == {"id": N, "x": kind}, native
            made.register("t", source, {"id": N, "x": kind})
            memory = Memory()
            memory.register(
                "t", [{"id": -1}, *({"id": i, "x": v} for i, (_, v) in enumerate(cells))], {"id": N, "x": kind}
            )
            assert unsealed(made.read(value_of(col("x", kind)))) == unsealed(memory.read(value_of(col("x", kind)))), (
                native
            )


def test_columns_of_other_types_are_left_out(postgres_tables: PostgresTables) -> None:
    others = ["json", "jsonb", "bytea", "int[]", "interval", "time", "inet", "money", "xml", "bit(3)", "point", "oid"]
    source = postgres_tables.table({"id": "int", **{f"x{i}": native for i, native in enumerate(others)}}, [])
    table = source.removeprefix("public.")
    postgres_tables.run(
        f"ALTER TABLE {table} ADD gone int, ADD made int GENERATED ALWAYS AS (id + 1) STORED",
        f"ALTER TABLE {table} DROP COLUMN gone",
    )
    with postgres_tables.engine() as made:
        assert made.schema_of(source) == {"id": N, "made": N}
        for column in ("x0", "gone", "absent"):
            with pytest.raises(InvalidParameter):
                made.register("t", source, {column: T})


def test_tables_of_every_form(postgres_tables: PostgresTables) -> None:
    """Partitions and stored views are read; what computes, lies elsewhere, or hides rows is refused for what it is."""
    postgres_tables.run(
        "CREATE TABLE parts (id int, day date) PARTITION BY RANGE (day)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "CREATE TABLE parts_2 PARTITION OF parts DEFAULT",
        "INSERT INTO parts SELECT i, date '2026-01-20' + i FROM generate_series(1, 30) AS i",
        "CREATE MATERIALIZED VIEW kept AS SELECT id, 1 / id AS x FROM parts",
        "CREATE VIEW computed AS SELECT id, 1 / id AS x FROM parts",
        "CREATE TABLE hidden (id int)",
        "ALTER TABLE hidden ENABLE ROW LEVEL SECURITY",
        'CREATE SCHEMA "Odd ""name"; CREATE TABLE "Odd ""name"."t.x" ("a ""b" int)',
        f'GRANT USAGE ON SCHEMA "Odd ""name" TO {READER}; GRANT SELECT ON "Odd ""name"."t.x" TO {READER}',
        f"GRANT SELECT ON parts, kept, computed, hidden TO {READER}",
        "CREATE TABLE closed (id int)",
        "CREATE TABLE partly (id int, secret text)",
        f"GRANT SELECT (id) ON partly TO {READER}",
        f"CREATE TABLE open (id int); GRANT SELECT, UPDATE ON open TO {READER}",
    )
    for source in ("public.parts", "kept"):
        with register(postgres_tables, source, {"id": N}) as made:
            assert unsealed(made.read(ROWS)) == {(): (30,)}
    with postgres_tables.engine() as made:
        server = ServerAddress.of(postgres_tables.url)
        odd = ServerTable(server=server, schema='Odd "name', table="t.x")
        assert made.schema_of(odd) == {'a "b': N}
        made.register("t", odd, {'a "b': N})
        assert unsealed(made.read(ROWS)) == {}
        assert made.schema_of("partly") == {"id": N}
        for source, condition in (
            ("computed", "not a view"),
            ("hidden", "policy"),
            ("closed", "can read"),
            ("absent", "can read"),
            ("open", "changes by this role"),
            ("pg_catalog.pg_stat_activity", "not a view"),
        ):
            with pytest.raises(InvalidParameter, match=condition):
                made.schema_of(source)


def test_no_superuser_reads(postgres_tables: PostgresTables, postgres_server: PostgresServer) -> None:
    source = postgres_tables.table({"id": "int"}, [])
    powerful = Postgres(postgres_server.url(database=postgres_tables.database))
    with powerful, pytest.raises(InvalidParameter, match="changes by this role"):
        powerful.schema_of(source)


# ----------------------------------------------------------------------------------------------------- the role and log

LOUD = {"log_statement": "all", "log_min_duration_statement": "0", "log_duration": "on"}
USUAL = {"log_statement": "none", "log_min_duration_statement": "-1", "log_duration": "off"}
TABLE = {"patient": "text", "ward": "text", "charge": "float8", "note": "text"}
PEOPLE = [{"patient": f"p{i % 9}", "ward": CANARY if i == 7 else "A", "charge": i, "note": CANARY} for i in range(40)]


@pytest.mark.ci
def test_the_role_reads_its_columns_and_nothing_is_logged() -> None:
    """Servers that log everything, and what failed: neither questions nor data are in the log."""
    try:
        server = PostgresServer(LOUD)
    except FileNotFoundError as error:
        absent(str(error))
        raise
    try:
        _check_role_and_log(server)
    finally:
        server.close()


def _check_role_and_log(server: PostgresServer) -> None:
    tables = PostgresTables(server)
    source = tables.table(TABLE, PEOPLE)
    tables.run(f"REVOKE ALL ON {source} FROM {READER}")
    named = ServerTable(server=ServerAddress.of(tables.url), table=source.removeprefix("public."))
    tables.run(*role_statements(named, ["patient", "ward", "charge"], role="asker"))
    columns = {"patient": T, "ward": T, "charge": F}
    for who in ("asker", "bare"):  # the second with the settings that servers usually have
        if who == "bare":
            tables.run("CREATE ROLE bare LOGIN", f"GRANT SELECT (patient, ward, charge) ON {source} TO bare")
            tables.run(*(f"ALTER ROLE bare SET {name} = '{value}'" for name, value in USUAL.items()))
        with Postgres(server.url(who, tables.database), deadline=0.2) as made:
            assert made.schema_of(source) == columns
            made.register("t", source, columns)
            where = call("equal", B, col("ward", T), lit(CANARY, T))
            asked = Reading(table="t", where=where, statistics=(Statistic(kind="rows"),))
            assert unsealed(made.read(asked)) == {(): (1,)}
            _fail(made, asked)
    tables.close()
    log = server.log()
    assert CANARY not in log
    parts = re.split(r"(?m)^(?=\S*@)", log)
    assert not [part for part in parts if part.startswith("asker@") and " ERROR: " not in part]
    told = "".join(part for part in parts if part.startswith("bare@"))
    assert "FETCH" in told, "failures were logged"
    assert "SELECT" not in told


def _fail(made: Postgres, asked: Reading) -> None:
    """Every way in which a read fails on the server: too slow, stopped, and an error of a value."""
    fetch = sessions.fetch_rows
    for wrong in ("(SELECT pg_sleep(9)) IS NULL", "1 / (charge - 7)::int > 0"):

        def failing(session: Any, sql: str, *rest: Any, wrong: str = wrong) -> Any:
            return fetch(session, f"SELECT x.* FROM ({sql}) AS x, {made._tables['t'].sql} AS y WHERE {wrong}", *rest)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "fetch_rows", failing)
            with pytest.raises(QueryFailed) as failure:
                unsealed(made.read(asked))
        assert failure.value.__cause__ is None
        assert failure.value.__context__ is None


def test_a_locked_or_closed_table_tells_the_log_no_question(
    postgres_tables: PostgresTables, postgres_server: PostgresServer
) -> None:
    source = postgres_tables.table({"ward": "text"}, [{"ward": "A"}])
    where = call("equal", B, call("length", N, col("ward", T)), lit(717_171, N))
    asked = Reading(table="t", where=where, statistics=(Statistic(kind="rows"),))
    with register(postgres_tables, source, {"ward": T}, lock_timeout=0.05) as made:
        with postgres_server.superuser(postgres_tables.database) as other:
            other.execute("BEGIN")
            other.execute(f"LOCK TABLE {source} IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(QueryFailed):
                unsealed(made.read(asked))
        assert unsealed(made.read(asked)) == {}
        for change in (f"REVOKE SELECT ON {source} FROM {READER}", f"DROP TABLE {source}"):
            postgres_tables.run(change)
            with pytest.raises(QueryFailed):
                unsealed(made.read(asked))
    log = postgres_server.log()
    assert f"FROM {source.replace('public.', chr(34) + 'public' + chr(34) + '.' + chr(34))}" in log
    assert "717171" not in log


def test_what_the_role_cannot_do(postgres_tables: PostgresTables) -> None:
    source = postgres_tables.table({"id": "int"}, [{"id": 1}])
    with register(postgres_tables, source, {"id": N}) as made, made._sessions.transaction() as session:
        settings = dict(session.execute("SELECT name, setting FROM pg_settings").fetchall())
        assert settings["transaction_read_only"] == "on"
        assert settings["transaction_isolation"] == "repeatable read"
        assert settings["search_path"] == "pg_catalog"
    for hostile in (
        f"INSERT INTO {source} VALUES (2)",
        "CREATE TEMP TABLE mine (x int)",
        "SELECT pg_read_file('/etc/passwd')",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT lo_import('/etc/passwd')",
        "ALTER SYSTEM SET log_statement = 'all'",
        "SET log_min_error_statement = error",
    ):
        with register(postgres_tables, source, {"id": N}) as made:
            with pytest.raises(sessions.driver().Error), made._sessions.transaction() as session:
                session.execute(hostile)
            assert unsealed(made.read(ROWS)) == {(): (1,)}


# ------------------------------------------------------------------------------------------------------------ addresses


def test_no_password_is_taken_from_an_address_or_shown() -> None:
    for url in (
        f"postgresql://ana:{CANARY}@db.example/clinic",
        f"postgresql://db.example/clinic?password={CANARY}",
        f"postgres://db.example/clinic?sslpassword={CANARY}&sslmode=require",
    ):
        for take in (Postgres, ServerAddress.of, ServerTable.of, by_source().schema_of):
            with pytest.raises(InvalidParameter) as refused:
                take(url)
            assert CANARY not in repr(refused.value) + str(vars(refused.value))
    address = ServerAddress.of("postgresql://ana@db.example:5433/clinic%20a?sslmode=require&service=x")
    assert "ana" not in f"{address!r} {address}"
    assert ServerAddress.of(address.conninfo) == address


def test_a_server_that_is_not_there_is_named_without_its_user() -> None:
    with Postgres("postgresql://ana@127.0.0.1:1/clinic") as made, pytest.raises(InvalidParameter) as refused:
        made.schema_of("visits")
    assert "ana" not in str(refused.value).replace("want", "")
    assert "127.0.0.1:1/clinic" in str(refused.value)


def test_addresses_of_tables() -> None:
    assert ServerTable.of("postgresql://h/d/s.t").schema == "s"
    assert ServerTable.of("postgresql:///d/t?service=x").schema == "public"
    for wrong in ("postgresql://h/d", "postgresql://h/d/", "postgresql://h/d/s/t", "mysql://h/d/t"):
        with pytest.raises(InvalidParameter):
            ServerTable.of(wrong)


# ---------------------------------------------------------------------------------------------------------- connections


def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read takes a minute."""
    fetch = sessions.fetch_rows
    monkeypatch.setattr(
        engine, "fetch_rows", lambda s, sql, *rest: fetch(s, f"SELECT x.* FROM ({sql}) AS x, pg_sleep(60)", *rest)
    )


@pytest.fixture
def made(postgres_tables: PostgresTables) -> Iterator[Postgres]:
    with register(postgres_tables, postgres_tables.table({"id": "int"}, [{"id": 1}]), {"id": N}) as one:
        yield one


def test_a_deadline_stops_a_read(postgres_tables: PostgresTables, monkeypatch: pytest.MonkeyPatch) -> None:
    source = postgres_tables.table({"id": "int"}, [{"id": 1}])
    with register(postgres_tables, source, {"id": N}, deadline=0.1) as made:
        with monkeypatch.context() as patch:
            slow(patch)
            with pytest.raises(QueryFailed):
                unsealed(made.read(ROWS))
        assert unsealed(made.read(ROWS)) == {(): (1,)}


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_stops_a_read(made: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        slow(patch)
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            unsealed(made.read(ROWS))
    assert unsealed(made.read(ROWS)) == {(): (1,)}


def test_some_rows_are_not_taken_for_all(made: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(threading.Event):
        def is_set(self) -> bool:
            return True

    monkeypatch.setattr(engine, "stoppable", lambda work, *_, **__: work(Stopped()))
    with pytest.raises(QueryFailed):
        unsealed(made.read(ROWS))


def test_a_lost_connection_is_replaced_before_a_read_and_fails_inside_one(
    made: Postgres, postgres_tables: PostgresTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut() -> None:
        postgres_tables.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{READER}'")

    assert unsealed(made.read(ROWS)) == {(): (1,)}
    cut()
    assert unsealed(made.read(ROWS)) == {(): (1,)}
    fetch = sessions.fetch_rows

    def cut_first(*given: Any) -> Any:
        cut()
        return fetch(*given)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "fetch_rows", cut_first)
        with pytest.raises(QueryFailed):
            unsealed(made.read(ROWS))
    assert unsealed(made.read(ROWS)) == {(): (1,)}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_reads_with_a_session_of_its_own(made: Postgres) -> None:
    assert unsealed(made.read(ROWS)) == {(): (1,)}
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if unsealed(made.read(ROWS)) == {(): (1,)} else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert unsealed(made.read(ROWS)) == {(): (1,)}


def test_threads_read_side_by_side(made: Postgres) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(unsealed(made.read(ROWS)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{(): (1,)}] * 8
