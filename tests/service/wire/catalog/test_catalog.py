"""The catalog answers what real clients ask, as a real PostgreSQL does, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.errors import ServiceUnavailable, TooManyRequests, UnknownTable, UnsupportedQuery
from discreet.service.wire.catalog import catalog_tables
from discreet.service.wire.catalog.catalog_executor import CatalogExecutor, CatalogQuery
from discreet.service.wire.catalog.catalog_process import Catalogs
from tests.postgres_server import PostgresServer

TRANSCRIPTS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "transcripts.json").read_text())
"""What psql 15, SQLAlchemy 2.1 on psycopg 3 and the JDBC driver 42.7 send; names of tables stand for their numbers."""

_COLUMNS = (
    *(("patient", "int"), ("ward", "text"), ("age", "int"), ("charge", "float")),
    *(("day", "date"), ("at", "timestamp"), ("ok", "bool")),
)
FACTS = [
    {"name": "visits", "columns": [{"name": name, "type": kind} for name, kind in _COLUMNS]},
    {"name": "wards", "columns": [{"name": "ward", "type": "text"}, {"name": "beds", "type": "int"}]},
]
OIDS = {"visits": catalog_tables.FIRST_OID, "wards": catalog_tables.FIRST_OID + 1}
SETTINGS = {
    "version": "PostgreSQL 15.0",
    "max_index_keys": "32",
    "default_table_access_method": "heap",
    "server_version_num": "150000",
}


def _filled(text: str | None, oids: dict[str, int]) -> str | None:
    for name, oid in oids.items():
        text = None if text is None else text.replace("{" + name + "}", str(oid))
    return text


def _request(sql: str, *parameters: object, **more: Any) -> dict[str, Any]:
    known = {"facts": FACTS, "settings": SETTINGS, "user": "ann", "database": "clinic"}
    return {"sql": sql, "parameters": list(parameters), **known, **more}


@pytest.fixture(scope="module")
def catalogs() -> Catalogs:
    """Engines of this process."""
    return Catalogs()


def _reply(catalogs: Catalogs, entry: dict[str, Any]) -> dict[str, Any]:
    parameters = [_filled(value, OIDS) for value in entry["parameters"]]
    return catalogs.reply(_request(str(_filled(entry["sql"], OIDS)), *parameters))


@pytest.mark.sampled(3)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("entry", TRANSCRIPTS, ids=lambda entry: entry["client"])
def test_what_clients_ask_is_answered(catalogs: Catalogs, entry: dict[str, Any]) -> None:
    reply = _reply(catalogs, entry)
    assert "error" not in reply, reply


@pytest.fixture(scope="module")
def referee(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A real PostgreSQL with the same tables."""
    with postgres_server.superuser(postgres_server.make_database()) as connection:
        kinds = {"int": "bigint", "float": "double precision"}
        for fact in FACTS:
            columns = ", ".join(f"{each['name']} {kinds.get(each['type'], each['type'])}" for each in fact["columns"])  # type: ignore[index]
            connection.execute(f"CREATE TABLE {fact['name']} ({columns})")
        yield connection


def _oids(referee: psycopg.Connection[Any]) -> dict[str, int]:
    found = referee.execute("SELECT relname, oid::int FROM pg_class WHERE relname IN ('visits', 'wards')")
    return dict(found.fetchall())


@pytest.mark.slow
@pytest.mark.parametrize("entry", TRANSCRIPTS, ids=lambda entry: entry["client"])
def test_columns_are_those_of_postgresql(
    catalogs: Catalogs, referee: psycopg.Connection[Any], entry: dict[str, Any]
) -> None:
    oids = _oids(referee)
    values = [_filled(value, oids) for value in entry["parameters"]]
    raw = [None if value is None else value.encode() for value in values]
    result = referee.pgconn.exec_params(str(_filled(entry["sql"], oids)).encode(), raw)
    assert not result.error_message
    reply = _reply(catalogs, entry)
    names = [str(result.fname(place), "utf-8") for place in range(result.nfields)]  # type: ignore[arg-type]
    shown = [name for name, _ in reply["columns"]]
    assert shown == names
    if entry["client"] == "rows":
        theirs = [[result.get_value(i, j) for j in range(result.nfields)] for i in range(result.ntuples)]
        assert [[None if v is None else _text(v) for v in row] for row in reply["rows"]] == [
            [None if v is None else v.decode() for v in row] for row in theirs
        ]


def _text(value: object) -> str:
    return "t" if value is True else "f" if value is False else str(value)


@pytest.mark.slow
def test_shapes_are_those_of_postgresql_15(referee: psycopg.Connection[Any]) -> None:
    if referee.info.server_version // 10000 != 15:
        pytest.skip("the shapes are those of version 15")
    found = referee.execute(
        "SELECT n.nspname, c.relname, string_agg(a.attname || ':' || t.typname, ' ' ORDER BY a.attnum) "
        "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_type t ON t.oid = a.atttypid WHERE a.attnum > 0 AND n.nspname IN ('pg_catalog', 'information_schema') "
        "GROUP BY 1, 2"
    ).fetchall()
    theirs = {(schema, table): columns for schema, table, columns in found}
    for schema, tables in catalog_tables.tables().items():
        for table in tables:
            assert catalog_tables.shapes()[schema][table]["columns"] == theirs[schema, table]


def test_sizes_are_never_told(catalogs: Catalogs) -> None:
    text = "SELECT pg_table_size(oid), pg_relation_size(oid), reltuples, relpages FROM pg_class WHERE oid >= 16384"
    assert catalogs.reply(_request(text))["rows"] == [[None, None, -1.0, 0]] * 2


def test_nobody_else_is_named(catalogs: Catalogs) -> None:
    assert catalogs.reply(_request("SELECT rolname FROM pg_roles ORDER BY 1"))["rows"] == [["ann"], ["discreet"]]


def test_each_view_of_the_tables_has_its_own_engine(catalogs: Catalogs) -> None:
    query = "SELECT relname FROM pg_class WHERE oid >= 16384 ORDER BY 1"
    assert catalogs.reply(_request(query))["rows"] == [["visits"], ["wards"]]
    assert catalogs.reply(_request(query, facts=FACTS[1:]))["rows"] == [["wards"]]
    assert catalogs.reply(_request(query))["rows"] == [["visits"], ["wards"]]


# ---------------------------------------------------------------------------------------------------------------- lane


def _query(sql: str) -> CatalogQuery:
    return CatalogQuery(sql=sql, parameters=(), facts=FACTS, settings=SETTINGS, user="ann", database="clinic")


@pytest.mark.ci
def test_a_query_that_takes_too_long_is_killed_and_the_next_is_answered() -> None:
    many = ", ".join(f"pg_class c{place}" for place in range(6))
    bomb = f"SELECT count(*) FROM {many} WHERE c0.oid % 7 + c1.oid % 5 + c5.oid % 3 = 2"

    async def act() -> None:
        lane = CatalogExecutor(deadline=60.0)
        try:
            await lane.answer(_query("SELECT 1"))
            lane._deadline = 0.2  # the bomb would take hours
            with pytest.raises(UnsupportedQuery, match="too long"):
                await lane.answer(_query(bomb))
            lane._deadline = 60.0
            assert (await lane.answer(_query("SELECT 1 AS a"))).rows == ((1,),)
            with pytest.raises(UnknownTable):
                await lane.answer(_query("SELECT * FROM pg_authid"))
            task = asyncio.create_task(lane.answer(_query("SELECT 2")))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert (await lane.answer(_query("SELECT 3"))).rows == ((3,),)  # and not 2
        finally:
            await lane.close()

    asyncio.run(act())


class _HeldLane(CatalogExecutor):
    """A lane whose queries take as long as the test says, and leave their order behind."""

    def __init__(self, **limits: int) -> None:
        super().__init__(deadline=60.0, **limits)
        self.begun: list[str] = []
        self.step = asyncio.Semaphore(0)

    async def _exchange(self, query: CatalogQuery) -> dict[str, Any]:
        self.begun.append(query.user)
        await self.step.acquire()
        return {"columns": [], "rows": []}


def _of(user: str) -> CatalogQuery:
    return replace(_query("SELECT 1"), user=user)


def test_callers_of_the_catalog_take_turns() -> None:
    async def act() -> None:
        lane = _HeldLane()
        heavy = [asyncio.create_task(lane.answer(_of("eve"))) for _ in range(8)]
        await asyncio.sleep(0)
        light = [asyncio.create_task(lane.answer(_of(name))) for name in ("ann", "bob")]
        await asyncio.sleep(0)
        for _ in range(10):
            lane.step.release()
        await asyncio.gather(*heavy, *light)
        assert sorted(lane.begun[:4]) == ["ann", "bob", "eve", "eve"]  # the first was at work before the others came

    asyncio.run(act())


def test_too_many_waiting_queries_are_refused() -> None:
    async def act() -> None:
        lane = _HeldLane(waiting=3, per_caller=2)
        sent = [asyncio.create_task(lane.answer(_of("eve"))) for _ in range(3)]  # one is at work
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):
            await lane.answer(_of("eve"))
        sent.append(asyncio.create_task(lane.answer(_of("ann"))))
        await asyncio.sleep(0)
        with pytest.raises(ServiceUnavailable):
            await lane.answer(_of("bob"))
        for _ in sent:
            lane.step.release()
        await asyncio.gather(*sent)

    asyncio.run(act())


def test_a_query_that_needs_more_memory_than_there_is_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB would spill into .tmp where the service was started, whatever tables the query names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(catalog_tables.LIMITS, "memory_limit", "12MB")
    many = ", ".join(f"pg_type t{place}" for place in range(3))
    told = Catalogs().reply(_request(f"SELECT t0.typname || t1.typname || t2.typname AS x FROM {many} ORDER BY x"))
    assert told["reason"] == "The catalog cannot answer this query."
    assert list(tmp_path.iterdir()) == []
