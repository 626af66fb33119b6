"""Subqueries for each row, LATERAL and DISTINCT ON: equal on all engines and to plain SQL, bounded person by person."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
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
from discreet.plan.canonical import replay
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import try_all
from tests.curator.hospital import data, schemas, without
from tests.curator.test_shapes import SOMEBODY, check, check_plain, check_without, engines, plan, planned, riches
from tests.effort import rounds, some, tried
from tests.open_groups import unsealed

_TEXT = """
SELECT AVG((SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient)) AS m, COUNT(*) AS n FROM visits AS v;
SELECT ward, SUM((SELECT COALESCE(SUM(l.result), 0) FROM labs AS l WHERE l.person = v.patient AND l.test = 'x')) AS s
  FROM visits AS v GROUP BY ward;
SELECT COUNT(*) AS n, SUM(age) AS s FROM visits AS v WHERE v.age > (SELECT 10 * COUNT(l.result) + COUNT(DISTINCT l.test)
  FROM labs AS l WHERE l.person = v.patient AND l.result > 0);
SELECT COUNT(*) AS n FROM visits AS v WHERE (SELECT MAX(result) FROM labs WHERE person = v.patient) IS NULL;
SELECT COUNT(*) AS n, SUM(k) AS s FROM (SELECT v.patient, (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient)
  AS k FROM visits AS v WHERE v.age IS NOT NULL) AS t WHERE k <> 1;
SELECT CASE WHEN (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient) > 2 THEN 2 ELSE 0 END AS floor, COUNT(*)
  AS n FROM visits AS v GROUP BY 1;
SELECT COUNT(*) AS n, SUM((SELECT COUNT(*) FROM visits AS w WHERE w.patient = v.patient AND w.ward = v.ward)) AS s
  FROM visits AS v;
SELECT COUNT(*) AS n, SUM((SELECT COUNT(*) FROM visits AS w WHERE w.patient = v.patient AND w.day < v.day)) AS s
  FROM visits AS v;
SELECT COUNT(*) AS n FROM visits AS v WHERE (SELECT COUNT(*) FROM visits AS w WHERE w.patient = v.patient AND
  (w.age > v.age OR v.age IS NULL AND w.ward = v.ward)) >= 1;
SELECT COUNT(*) AS n FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.patient = v.patient AND
  w.day > v.day AND w.day <= v.day + INTERVAL 60 DAY);
SELECT COUNT(*) AS n, SUM(charge) AS s FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM labs AS l WHERE
  l.person = v.patient AND l.result * 20 > v.age);
SELECT COUNT(*) AS n FROM visits AS v WHERE v.age > 50 OR NOT EXISTS (SELECT 1 FROM visits AS w JOIN labs AS l ON
  l.person = w.patient WHERE w.patient = v.patient AND w.ward = v.ward AND l.result < w.age);
SELECT COUNT(*) AS n FROM visits AS v WHERE v.ward IN (SELECT w.ward FROM visits AS w WHERE w.patient = v.patient AND
  w.age <> v.age AND w.ward IS NOT NULL);
SELECT COUNT(*) AS n, SUM(age) AS s FROM visits AS v WHERE v.ward IS NOT NULL AND v.ward NOT IN (SELECT w.ward FROM
  visits AS w WHERE w.patient = v.patient AND w.age > v.age AND w.ward IS NOT NULL);
SELECT SUM(LEAST(GREATEST((SELECT MAX(w.floor) FROM wards AS w WHERE w.ward = v.ward), 0), 9)) AS s,
  COUNT((SELECT MIN(w.floor) FROM wards AS w WHERE w.ward = v.ward AND w.floor * 20 > v.age)) AS n FROM visits AS v
  WHERE v.age BETWEEN 0 AND 100;
SELECT COUNT(*) AS n, SUM((SELECT l.result FROM labs AS l WHERE l.person = v.patient ORDER BY l.result DESC, l.test
  LIMIT 1)) AS s FROM visits AS v;
SELECT COUNT(*) AS n FROM visits AS v WHERE (SELECT COUNT(*) FROM visits AS w WHERE w.patient = v.patient AND w.age >
  v.age) = (SELECT COUNT(*) FROM visits AS u WHERE u.patient = v.patient AND u.charge > v.charge) AND EXISTS (SELECT 1
  FROM labs AS l WHERE l.person = v.patient AND l.result < v.age);
SELECT COUNT(*) AS n FROM visits AS v WHERE (SELECT COUNT(*) FROM visits AS w WHERE w.patient = v.patient AND w.age >
  (SELECT 9 * COUNT(*) FROM labs AS l WHERE l.person = w.patient)) > 1;
SELECT ward, COUNT(*) AS n, SUM(age) AS s FROM (SELECT DISTINCT ON (patient) patient, ward, age FROM visits
  ORDER BY patient, day DESC, age, ward) AS t GROUP BY ward;
WITH t AS (SELECT DISTINCT ON (v.ward, v.patient) v.patient AS who, v.ward AS place, v.age AS years FROM visits AS v
  ORDER BY years DESC, v.day, v.charge) SELECT COUNT(*) AS n, SUM(years) AS s FROM t;
SELECT v.ward, COUNT(*) AS n, SUM(b.result) AS s FROM visits AS v JOIN LATERAL (SELECT l.result, l.test FROM labs AS l
  WHERE l.person = v.patient ORDER BY l.result, l.test LIMIT 1) AS b ON TRUE GROUP BY v.ward;
SELECT COUNT(*) AS n, COUNT(b.day) AS k, SUM(b.age) AS s FROM visits AS v LEFT JOIN LATERAL (SELECT w.day, w.age FROM
  visits AS w WHERE w.patient = v.patient AND w.day > v.day ORDER BY w.day, w.age, w.charge LIMIT 1) AS b ON TRUE;
SELECT COUNT(*) AS n, SUM(b.k) AS s, SUM(b.t) AS t FROM visits AS v CROSS JOIN LATERAL (SELECT COUNT(*) AS k,
  SUM(result) AS t FROM labs WHERE person = v.patient AND result < v.age) AS b;
SELECT COUNT(*) AS n, SUM(b.r) AS s FROM visits AS v, LATERAL (SELECT l.result AS r FROM labs AS l WHERE l.person =
  v.patient AND l.result < v.age) AS b WHERE b.r > 0;
SELECT COUNT(*) AS n, SUM(l.result) AS s FROM visits AS v JOIN labs AS l ON l.person = v.patient JOIN LATERAL (SELECT
  w.age FROM visits AS w WHERE w.patient = v.patient AND w.age > l.result ORDER BY w.age LIMIT 2) AS b ON b.age > 5
"""
QUESTIONS = tuple(" ".join(text.split()) for text in _TEXT.split(";"))
COUNT = "SELECT COUNT(*) AS n FROM visits AS v WHERE {}"


@pytest.mark.ci
def test_engines_agree() -> None:
    def agree(sql: str) -> None:
        for seed in range(rounds(2, 1)):
            program = planned(sql, Limits(1 + seed, 2 - seed))
            one, other = (unsealed(engine.read(program.reading)) for engine in engines(seed))
            assert one == other, seed

    try_all(some(QUESTIONS, 3), agree)


@pytest.mark.ci
@tried(8)
@SOMEBODY
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    try_all(QUESTIONS, lambda sql: check_without(sql, seed, limits, neighbours, who))


@pytest.fixture(scope="module")
def rich() -> tuple[Curator, duckdb.DuckDBPyConnection]:
    return riches()


@pytest.mark.ci
def test_answers_are_those_of_plain_sql(rich: tuple[Curator, duckdb.DuckDBPyConnection]) -> None:
    try_all(some(QUESTIONS, 3), lambda sql: check_plain(sql, *rich))


@pytest.mark.parametrize(
    "condition",
    [
        "age > 400 OR (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient AND l.test = 'rare') > 0",
        "EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND l.test = 'rare' AND l.result < v.age + 1000)",
    ],
)
def test_mutant_rows_of_other_people_count(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a row had what somebody else's rows give, one person's result would speak for everybody."""
    program, found = plan(COUNT.format(condition), schemas(Limits(1, 1)), "0"), data(4, patients=20)
    for place, row in enumerate(found["visits"]):
        row["age"] = place % 90
    found["visits"] += [{"patient": "p99", "ward": "A", "age": 9, "charge": 1.0, "day": None}]
    found["labs"] += [{"person": "p99", "test": "rare", "result": 1.0}]
    check(program, found, without(found, "p99"))
    monkeypatch.setattr(gather, "_partners", lambda _, __, found: [row for rows in found.values() for row in rows][:50])
    with pytest.raises(AssertionError):
        check(program, found, without(found, "p99"))


def test_mutant_the_latest_row_of_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """If DISTINCT ON chose among everybody's rows, whoever has the latest would take the others out."""
    sql = "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient) patient FROM visits ORDER BY patient, day DESC) AS t"
    program, found = plan(sql, schemas(Limits(1, 1)), "0"), data(3, patients=30)
    late = {"patient": "p99", "ward": "A", "age": 99, "charge": 1.0, "day": dt.date(2030, 1, 1)}
    found["visits"] = [late, late, *found["visits"], late]
    neighbour, right = without(found, "p99"), gather.places
    check(program, found, neighbour)

    def of_all(window: Any, rows: Any, columns: Any) -> Any:
        alike = [{**row, "#unit": "all" if len(rows) % 2 else row["#unit"]} for row in rows]
        return right(window, alike, columns)

    monkeypatch.setattr(gather, "places", of_all)
    with pytest.raises(AssertionError):
        check(program, found, neighbour)


# --------------------------------------------------------------------------------------------------- NULL and no rows

PEOPLE = [{"id": i, "x": x} for i, x in ((1, 5), (1, None), (2, 7), (3, 1), (None, 9))]
THINGS = [{"id": i, "y": y} for i, y in ((1, 4), (1, 6), (1, None), (2, None), (None, 8), (9, 3))]


EXPECTED = {
    "(SELECT COUNT(*) FROM things AS t WHERE t.id = p.id) = 0": 1,  # of no rows a count is 0
    "(SELECT COUNT(t.y) FROM things AS t WHERE t.id = p.id) = 0": 2,
    "(SELECT COUNT(*) + COUNT(DISTINCT y) FROM things WHERE things.id = p.id) = 5": 2,
    "(SELECT SUM(t.y) FROM things AS t WHERE t.id = p.id) IS NULL": 2,  # and a sum is NULL
    "COALESCE((SELECT SUM(y) FROM things AS t WHERE t.id = p.id), 0) = 0": 2,
    "(SELECT MAX(y) FROM things AS t WHERE t.id = p.id) > p.x": 1,
    "(SELECT COUNT(*) FROM things AS t WHERE t.id = p.id AND t.y > p.x) = 0": 3,
    "EXISTS (SELECT 1 FROM things AS t WHERE t.id = p.id AND t.y > p.x)": 1,
    "NOT EXISTS (SELECT 1 FROM things AS t WHERE t.id = p.id AND t.y > p.x)": 3,
    "NOT EXISTS (SELECT 1 FROM things AS t WHERE t.id = p.id AND (t.y > p.x OR p.x IS NULL))": 2,
    "(SELECT t.y FROM things AS t WHERE t.id = p.id ORDER BY t.y DESC LIMIT 1) = 6": 2,  # NULL is last
    "(SELECT t.y FROM things AS t WHERE t.id = p.id ORDER BY t.y LIMIT 1) IS NULL": 2,
}


@pytest.mark.parametrize("engine", [Memory, lambda: DuckDB(threads=1)], ids=["memory", "duckdb"])
def test_missing_ids_values_and_rows(engine: Callable[[], Engine]) -> None:
    """The row whose id is NULL counts nowhere, as in every question; the rest is as SQL says."""
    plain = duckdb.connect()
    plain.register("people", pl.DataFrame(PEOPLE).drop_nulls("id"))
    plain.register("things", pl.DataFrame(THINGS))
    curator = Curator.for_tests(engine=engine(), bits=SeededBits(3))
    for name, rows, value in (("people", PEOPLE, "x"), ("things", THINGS, "y")):
        source = rows if engine is Memory else pl.DataFrame(rows)
        declared: Any = {"unit": "id", "account": "people", "types": {"id": "int", value: "int"}}
        declared |= {"bounds": {value: (0, 9)}, "max_groups": 9, "max_rows": 9}
        curator.protect(source, name=name, budget=Budget(epsilon=10**9), **declared)

    def counted(condition: str) -> None:
        sql = f"SELECT COUNT(*) AS n FROM people AS p WHERE {condition}"
        assert plain.execute(sql).fetchall() == [(EXPECTED[condition],)]
        assert curator.ask(sql, epsilon=10**6)[0]["n"] == EXPECTED[condition]

    try_all(some(EXPECTED, 2), counted)
    curator.close()


# ----------------------------------------------------------------------------------------------------------- the plan


def test_what_is_written_twice_is_read_once() -> None:
    inner = "(SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient{})"
    same = COUNT.format(f"{inner.format('')} > 1 OR {inner.format('')} = 0")
    other = COUNT.format(f"{inner.format('')} > 1 OR {inner.format(' AND l.result > 0')} = 0")
    sources = [str(parse(sql, schemas(Limits(1, 1))).source) for sql in (same, other)]
    assert [text.count("name='labs'") for text in sources] == [1, 2]
    assert len({replay(parse(sql, schemas(Limits(1, 1)))) for sql in (same, other)}) == 2


def test_rows_are_read_a_second_time_and_not_a_fourth() -> None:
    """Each subquery that compares more than equalities reads the rows outside again, as they were at first."""
    inner = "EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND l.result {} v.age + {})"

    def reads(sign: str, count: int) -> int:
        sql = COUNT.format(" AND ".join(inner.format(sign, i) for i in range(count)))
        return str(parse(sql, schemas(Limits(1, 1))).source).count("name='visits'")

    assert [reads("<>", count) for count in (1, 2, 6)] == [2, 3, 7]
    assert {reads(sign, count) for sign in ("<", "<=", ">", ">=") for count in (1, 6)} == {1}  # the least, or most, is


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_whether_a_value_is_beyond_others_is_told_by_the_largest_or_smallest(sign: str) -> None:
    """As pairs of rows tell it, which an OR asks for: NULL is beyond nothing, on both sides of the sign."""
    values: tuple[tuple[int | None, ...], ...] = ((), (None,), (2,), (None, 1, 3))
    rows = {
        "people": [{"id": who, "x": x} for who in range(4) for x in (None, 1, 2, 3)],
        "things": [{"id": who, "y": y} for who, theirs in enumerate(values) for y in theirs],
    }
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(3))
    for name, value in (("people", "x"), ("things", "y")):
        declared: Any = {"unit": "id", "account": "people", "types": {"id": "int", value: "int"}, "max_rows": 9}
        curator.protect(rows[name], name=name, budget=Budget(epsilon=10**9), bounds={value: (0, 9)}, **declared)
    for condition in (f"t.y {sign} p.x", f"p.x {sign} t.y + 0"):
        counts = []
        for written in (condition, f"({condition} OR p.x > 9)"):
            for word in ("", "NOT "):
                exists = f"{word}EXISTS (SELECT 1 FROM things AS t WHERE t.id = p.id AND {written})"
                counts.append(
                    curator.ask(f"SELECT COUNT(*) AS n FROM people AS p WHERE {exists}", epsilon=10**6)[0]["n"]
                )
        assert counts[:2] == counts[2:]
        assert sum(counts[:2]) == 16


def test_selects_that_double_end_soon() -> None:
    """Each level reads the one inside it twice: thirty would be a thousand million tables."""
    text = "visits"
    for _ in range(12):
        exists = "EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND l.result <> v.age)"
        text = f"(SELECT v.patient, v.age FROM {text} AS v WHERE {exists})"
    with pytest.raises(UnsupportedQuery) as refused:
        parse(f"SELECT COUNT(*) AS n FROM {text} AS t", schemas(Limits(1, 1)))
    assert "reads more than" in refused.value.reason


LATERAL = "SELECT COUNT(*) AS n FROM visits AS v {}JOIN LATERAL (SELECT w.age FROM visits AS w {}) AS {} ON {}"
OWN = "WHERE w.patient = v.patient"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (COUNT.format("(SELECT COUNT(*) FROM visits AS w WHERE w.ward = v.ward) > 3"), "same person"),
        (COUNT.format("(SELECT COUNT(*) FROM visits AS w WHERE w.patient > v.patient) > 3"), "same person"),
        (COUNT.format("(SELECT COUNT(*) FROM visits AS w WHERE w.patient = v.patient OR w.age = v.age) > 3"), "same"),
        (COUNT.format("(SELECT COUNT(*) FROM visits AS w WHERE w.patient <> v.patient) > 3"), "same person"),
        (COUNT.format("(SELECT COUNT(*) FROM staff AS s WHERE s.ward = v.ward) > 3"), "same people"),
        (COUNT.format("(SELECT COUNT(*) FROM calls AS c WHERE c.ward = v.ward) > 3"), "same people"),
        (COUNT.format("EXISTS (SELECT 1 FROM visits AS w WHERE w.day > v.day)"), "same person"),
        (COUNT.format("EXISTS (SELECT 1 FROM visits AS w WHERE w.ward = v.ward AND w.day > v.day)"), "same person"),
        (
            COUNT.format("EXISTS (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient AND l.result > v.age)"),
            "one row",
        ),
        (COUNT.format("v.ward IN (SELECT w.ward FROM visits AS w WHERE w.day > v.day)"), "same person"),
        (COUNT.format("(SELECT COUNT(*) FROM wards AS w WHERE w.floor > v.age) > 3"), "public table"),
        (COUNT.format("(SELECT l.result FROM labs AS l WHERE l.person = v.patient) > 3"), "several rows"),
        (COUNT.format("(SELECT l.result FROM labs AS l WHERE l.person = v.patient LIMIT 1) > 3"), "several rows"),
        (
            COUNT.format("(SELECT l.result FROM labs AS l WHERE l.person = v.patient ORDER BY l.test LIMIT 2) > 3"),
            "several rows",
        ),
        (COUNT.format("(SELECT w.floor FROM wards AS w WHERE w.ward = v.ward) > 3"), "several rows"),
        (COUNT.format("(SELECT l.result, l.test FROM labs AS l WHERE l.person = v.patient) > 3"), "one value"),
        (COUNT.format("(SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient GROUP BY l.test) > 3"), "GROUP"),
        (COUNT.format("(SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient HAVING COUNT(*) > 2) > 3"), "HAVING"),
        (COUNT.format("(SELECT SUM(l.result + v.age) FROM labs AS l WHERE l.person = v.patient) > 3"), "outside"),
        (COUNT.format("(SELECT l.result + COUNT(*) FROM labs AS l WHERE l.person = v.patient) > 3"), "aggregate"),
        (COUNT.format("(SELECT MEDIAN(l.result) FROM labs AS l WHERE l.person = v.patient) > 3"), "quantile"),
        (COUNT.format("v.age > (SELECT AVG(age) FROM visits)"), "A subquery is answered only"),
        (
            "SELECT (SELECT COUNT(*) FROM labs AS l WHERE l.person = v.patient) AS k, COUNT(*) AS n FROM visits AS v",
            "neither a key",
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (ward) ward, age FROM visits ORDER BY ward, day) AS t",
            "id column",
        ),
        ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient) ward, age FROM visits) AS t", "ORDER BY"),
        (
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient) patient FROM visits GROUP BY 1) AS t",
            "rows are combined",
        ),
        ("SELECT DISTINCT ON (patient) ward, age FROM visits ORDER BY patient, day", "single rows"),
        ("SELECT COUNT(*) AS n FROM (SELECT patient, age FROM visits ORDER BY day) AS t", "ORDER"),
        (LATERAL.format("", "ORDER BY w.age LIMIT 1", "b", "TRUE"), "same person"),
        (LATERAL.format("", f"{OWN} LIMIT 1", "b", "TRUE"), "order"),
        (LATERAL.format("LEFT ", OWN, "b", "b.age > 3"), "ON TRUE"),
        (LATERAL.format("RIGHT ", OWN, "b", "TRUE"), "RIGHT"),
        (LATERAL.format("", OWN, "v", "TRUE"), "Two tables"),
        (LATERAL.format('JOIN labs AS "b.x" ON "b.x".person = v.patient ', OWN, "b", "TRUE"), "begin in the same way"),
        ("SELECT COUNT(*) AS n FROM visits AS v CROSS JOIN labs AS l", "JOIN or LEFT JOIN"),
    ],
)
def test_what_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse(sql, schemas(Limits(1, 1)))
    assert reason in f"{refused.value.reason} {refused.value.hint}"
