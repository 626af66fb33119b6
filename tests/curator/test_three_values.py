"""IN, EXISTS and their opposites over NULL: TRUE, FALSE and NULL where plain SQL says so, bounded person by person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.engines.abstract_engine import Engine
from discreet.engines.memory import relation_rows as gather
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.model.relations import MarkJoin, SemiJoin
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget, Neighbours
from discreet.sql.clauses import subqueries
from discreet.sql.clauses.from_clause import FromClause
from discreet.sql.select import parse
from tests.cases import try_all
from tests.curator.hospital import data, schemas, without
from tests.curator.test_shapes import SOMEBODY, check, check_plain, check_without, engines, plan, planned, riches
from tests.effort import some, tried
from tests.open_groups import unsealed

SMALL = (None, 1, 2)
PEOPLE = [{"id": i, "x": x, "z": z} for i in (1, 2, 3, 4, None) for x in SMALL for z in SMALL]
_THINGS = ((1, None, 1), (1, 1, 1), (1, 2, None), (2, None, None), (2, 1, 2), (None, 1, 1), (3, 1, 1), (3, 2, 2))
THINGS = [{"id": i, "y": y, "z": z} for i, y, z in _THINGS]
LISTS = {"few": (None, 1), "known": (1, 5), "blank": (None,)}
INSIDE = [
    "SELECT t.y FROM things AS t WHERE t.id = p.id",
    "SELECT t.y FROM things AS t WHERE t.id = p.id AND t.z = p.z",
    "SELECT t.y FROM things AS t WHERE t.id = p.id AND t.z = p.z AND t.y = p.x",
    "SELECT t.y FROM things AS t WHERE t.id = p.id AND t.z >= p.z",
    "SELECT t.y FROM things AS t WHERE t.id = p.id AND t.y > 5",
    *(f"SELECT v FROM {name}" for name in LISTS),
    "SELECT v FROM few WHERE v > 5",
    "SELECT l.v FROM few AS l WHERE l.v = p.z",
]
USES = ["NOT {}", "NOT ({} AND p.z = 1)", "p.z = 1 OR {}", "({}) IS NULL", "CASE p.z = 1 WHEN {} THEN TRUE END"]


def _questions() -> Iterator[str]:
    """Each test alone after WHERE, which filters rows, and in all its uses, which read columns beside them."""
    for inside in INSIDE:
        for test in (f"p.x IN ({inside})", f"EXISTS ({inside})")[: 1 + ("p." in inside)]:
            uses = (f"COUNT(CASE WHEN {use.format(test)} THEN 1 END) AS n{i}" for i, use in enumerate(USES))
            yield f"SELECT {', '.join(uses)} FROM people AS p"
            yield f"SELECT COUNT(*) AS n FROM people AS p WHERE {test}"
            yield f"SELECT COUNT(*) AS n FROM people AS p WHERE NOT {test}"
    for name in LISTS:
        for column in ("p.x", "p.id"):
            yield f"SELECT COUNT(*) AS n FROM people AS p WHERE {column} NOT IN (SELECT v FROM {name})"
            inside = f"SELECT 1 FROM {name} AS l WHERE l.v = {column}"
            yield f"SELECT COUNT(*) AS n FROM people AS p WHERE NOT EXISTS ({inside})"
    for where in ("", " WHERE t.y = 1"):
        yield f"SELECT COUNT(*) AS n FROM people AS p WHERE p.id NOT IN (SELECT t.id FROM things AS t{where})"
    for word in ("IN", "NOT IN"):
        inside = "SELECT MAX(t.y) FROM things AS t WHERE t.id = p.id"
        yield f"SELECT COUNT(*) AS n FROM people AS p WHERE p.x {word} ({inside})"


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.Int64))


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    """The same tables, without the rows that are nobody's."""
    connection = duckdb.connect()
    for name, rows in (("people", PEOPLE), ("things", THINGS)):
        connection.register(name, _frame(rows).drop_nulls("id"))
    for name, values in LISTS.items():
        connection.register(name, _frame([{"v": value} for value in values]))
    return connection


def _curator(engine: Engine) -> Curator:
    curator = Curator.for_tests(engine=engine, bits=SeededBits(3))
    for name, rows in (("people", PEOPLE), ("things", THINGS)):
        bounds = {column: (0, 9) for column in rows[0] if column != "id"}
        declared: Any = {"types": dict.fromkeys(rows[0], "int"), "bounds": bounds, "max_groups": 9, "max_rows": 9}
        source = rows if isinstance(engine, Memory) else _frame(rows)
        curator.protect(source, name=name, unit="id", account="all", budget=Budget(epsilon=10**12), **declared)
    for name, values in LISTS.items():
        listed = [{"v": value} for value in values]
        types: Any = {"types": {"v": "int"}} if isinstance(engine, Memory) else {}
        curator.public(listed if isinstance(engine, Memory) else _frame(listed), name=name, **types)
    return curator


def _compare(sql: str, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    found = plain.execute(sql)
    names = [column[0] for column in found.description or ()]
    (row,) = curator.ask(sql, epsilon=10**7)
    assert tuple(row[name] for name in names) == found.fetchone()


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_answers_are_those_of_plain_sql_where_anything_is_null(engine: str, plain: duckdb.DuckDBPyConnection) -> None:
    with _curator(Memory() if engine == "memory" else DuckDB(threads=1)) as curator:
        try_all(some(_questions(), 3), lambda sql: _compare(sql, curator, plain))


def test_mutants_that_take_null_for_false(plain: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """If rows with NULL fell out of NOT EXISTS, or stayed in NOT IN, the comparison above would see it."""
    count = "SELECT COUNT(*) AS n FROM people AS p WHERE NOT {}"
    with _curator(Memory()) as curator:
        monkeypatch.setattr(FromClause, "_is_known", lambda *_: True)
        with pytest.raises(AssertionError):
            _compare(count.format(f"EXISTS ({INSIDE[2]})"), curator, plain)
        monkeypatch.setattr(subqueries, "_is_tested", lambda *_: True)
        with pytest.raises(AssertionError):
            _compare(count.format(f"p.x IN ({INSIDE[1]})"), curator, plain)


# ----------------------------------------------------------------------------------------------------------- neighbours

_TEXT = """
SELECT ward, COUNT(*) AS n, SUM(charge) AS s FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM visits AS w WHERE
  w.patient = v.patient AND w.ward = v.ward AND w.age = 44) GROUP BY ward;
SELECT COUNT(*) AS n, SUM(age) AS s FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = v.ward);
SELECT COUNT(*) AS n, SUM(age) AS s FROM visits WHERE ward NOT IN (SELECT ward FROM wards WHERE ward IS NOT NULL);
SELECT COUNT(*) AS n FROM visits WHERE ward NOT IN (SELECT ward FROM wards);
SELECT COUNT(*) AS n FROM calls AS c WHERE NOT EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = c.ward AND w.floor > 1);
SELECT COUNT(*) AS n, SUM(minutes) AS s FROM calls WHERE ward NOT IN (SELECT ward FROM wards WHERE floor > 1);
SELECT COUNT(*) AS n, SUM(age) AS s FROM visits AS v WHERE v.ward NOT IN (SELECT w.ward FROM visits AS w WHERE
  w.patient = v.patient AND w.day > v.day);
SELECT COUNT(*) AS n FROM visits AS v WHERE (v.age IN (SELECT w.age FROM visits AS w WHERE w.patient = v.patient AND
  w.ward = 'B')) IS NULL OR v.age IN (SELECT MAX(w.age) FROM visits AS w WHERE w.patient = v.patient);
SELECT v.ward IN (SELECT w.ward FROM visits AS w WHERE w.patient = v.patient AND w.age = 5) AS floor, COUNT(*) AS n
  FROM visits AS v GROUP BY 1
"""
QUESTIONS = tuple(" ".join(text.split()) for text in _TEXT.split(";"))


def test_engines_agree() -> None:
    def agree(sql: str) -> None:
        for seed in range(2):
            program = planned(sql, Limits(1 + seed, 2 - seed))
            one, other = (unsealed(engine.read(program.reading)) for engine in engines(seed))
            assert one == other, seed

    try_all(some(QUESTIONS, 3), agree)


@tried(12)
@SOMEBODY
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    try_all(QUESTIONS, lambda sql: check_without(sql, seed, limits, neighbours, who))


@pytest.mark.ci
def test_groups_are_those_of_plain_sql() -> None:
    curator, plain = riches()
    try_all(some(QUESTIONS, 4), lambda sql: check_plain(sql, curator, plain))
    curator.close()


def test_mutant_a_null_of_somebody_else_makes_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """If NOT IN looked at everybody's rows, one person's NULL would take all rows out."""
    sql = (
        "SELECT COUNT(*) AS n FROM visits AS v WHERE v.age NOT IN (SELECT l.result FROM labs AS l WHERE "
        "l.person = v.patient AND l.test = 'rare')"
    )
    program, found = plan(sql, schemas(Limits(1, 1)), "0"), data(4, patients=20)
    found["visits"] = [{**row, "age": 7} for row in found["visits"]]
    found["labs"] += [{"person": "p99", "test": "rare", "result": None}]
    check(program, found, without(found, "p99"))
    monkeypatch.setattr(gather, "_partners", lambda _, __, found: [row for rows in found.values() for row in rows][:50])
    with pytest.raises(AssertionError):
        check(program, found, without(found, "p99"))


# ------------------------------------------------------------------------------------------------------------- the plan

COUNT = "SELECT COUNT(*) AS n FROM visits AS v WHERE {}"
NEVER_NULL = [
    "v.patient NOT IN (SELECT person FROM labs)",
    "NOT EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND l.result > 2)",
    "NOT EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = v.patient)",
    "EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = v.ward)",
    "v.ward IN (SELECT ward FROM wards)",
    "NOT (NOT EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = v.ward))",
]
TESTED = [
    "v.age > 5 OR v.ward IN (SELECT ward FROM wards)",
    "(v.age > 5 AND v.ward IN (SELECT ward FROM wards)) OR v.age IS NULL",
    "CASE WHEN v.ward IN (SELECT ward FROM wards) THEN v.age > 5 ELSE v.age < 5 END",
    "v.age > 5 OR v.patient NOT IN (SELECT person FROM labs)",
]


def test_where_null_makes_no_difference_rows_are_read_as_before() -> None:
    """Their texts are those of answers that are kept."""
    declared = schemas(Limits(1, 1))
    for condition in NEVER_NULL:
        assert isinstance(parse(COUNT.format(condition), declared).source, SemiJoin), condition
    for condition in TESTED:
        source = parse(COUNT.format(condition), declared).source
        assert isinstance(source, MarkJoin), condition
        assert not isinstance(source.source, MarkJoin), condition
    filtered = "SELECT COUNT(*) FILTER (WHERE ward IN (SELECT ward FROM wards)) AS n FROM visits"
    assert isinstance(parse(filtered, declared).source, MarkJoin)


def test_selects_that_triple_end_soon() -> None:
    """Each level reads the one inside it three times: thirty would be millions of millions of tables."""
    text = "SELECT ward FROM wards"
    for _ in range(6):
        text = f"SELECT ward FROM wards WHERE ward NOT IN ({text})"
    with pytest.raises(UnsupportedQuery) as refused:
        parse(COUNT.format(f"v.ward IN ({text})"), schemas(Limits(1, 1)))
    assert "reads more than" in refused.value.reason


@pytest.mark.parametrize("word", ["EXISTS", "NOT EXISTS", "v.age > 5 OR EXISTS"])
@pytest.mark.parametrize("value", ["MAX(l.result)", "COUNT(*)", "1 + COUNT(l.test)"])
@pytest.mark.parametrize("more", ["", " AND l.result > v.age"])
def test_an_aggregate_always_exists(word: str, value: str, more: str) -> None:
    """Plain SQL counts every row, or none; nobody means that. The remedy is followed."""
    condition = f"{word} (SELECT {value} FROM labs AS l WHERE l.person = v.patient{more})"
    with pytest.raises(UnsupportedQuery) as refused:
        parse(COUNT.format(condition), schemas(Limits(1, 1)))
    assert "always TRUE" in refused.value.reason
    assert "SELECT 1 in its place" in refused.value.hint
    parse(COUNT.format(condition.replace(value, "1")), schemas(Limits(1, 1)))
