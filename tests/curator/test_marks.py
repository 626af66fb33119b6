"""IN and EXISTS inside expressions: equal on all engines, equal to plain SQL, and bounded person by person."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.engines.memory import relation_rows as gather
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.analysis.relation_schema import describe
from discreet.plan.canonical import replay
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.relations import BaseTable, MarkJoin
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import try_all
from tests.curator.hospital import TYPES, data, schemas, without
from tests.curator.test_shapes import SOMEBODY, check, check_without, engines, frame, loaded, plan, planned
from tests.effort import some, tried
from tests.open_groups import unsealed

_TEXT = """
SELECT CASE WHEN patient IN (SELECT person FROM labs WHERE result > 0) THEN 'tested' ELSE 'not' END AS g, COUNT(*) AS n,
  SUM(charge) AS s FROM visits GROUP BY 1;
SELECT COUNT(*) AS n FROM visits AS v WHERE v.age > 50 OR EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient AND
  l.test = 'x');
SELECT COUNT(*) AS n FROM visits WHERE NOT (ward IN (SELECT ward FROM wards WHERE floor > 1 AND ward IS NOT NULL) AND
  patient IN (SELECT person FROM labs));
SELECT COUNT(*) FILTER (WHERE v.patient NOT IN (SELECT person FROM labs WHERE test = 'y')) AS n, SUM(CASE WHEN NOT
  EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = v.ward) THEN v.charge END) AS s FROM visits AS v;
SELECT k, COUNT(*) AS n FROM (SELECT patient, COUNT(*) FILTER (WHERE ward IN (SELECT ward FROM wards WHERE floor < 3 AND
  ward IS NOT NULL)) AS k FROM visits GROUP BY patient HAVING COUNT(*) > 0) AS t GROUP BY k;
SELECT g, COUNT(*) AS n FROM (SELECT patient, ward IN (SELECT ward FROM wards WHERE ward IS NOT NULL) AS g FROM visits
  QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY patient IN (SELECT person FROM labs), day, ward, age, charge)
  = 1) AS t GROUP BY g;
SELECT ward IN (SELECT ward FROM wards WHERE ward IS NOT NULL) AS g, COUNT(*) AS n, SUM(minutes) AS s FROM calls
  GROUP BY ALL;
SELECT l.test IN (SELECT ward FROM wards WHERE ward IS NOT NULL) AS g, COUNT(*) AS n FROM visits AS v JOIN labs AS l ON
  l.person = v.patient WHERE v.patient IN (SELECT patient FROM visits WHERE age > 4) OR v.charge > 5 GROUP BY g
"""
QUESTIONS = tuple(" ".join(text.split()) for text in _TEXT.split(";"))
IDS = [f"{i}" for i in range(len(QUESTIONS))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", QUESTIONS, ids=IDS)
def test_engines_agree(sql: str) -> None:
    for seed in range(5):
        program = planned(sql, Limits(1 + seed % 3, 1 + seed % 2))
        one, other = (unsealed(engine.read(program.reading)) for engine in engines(seed))
        assert one == other, seed


@tried(15)
@SOMEBODY
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    try_all(QUESTIONS, lambda sql: check_without(sql, seed, limits, neighbours, who))


def test_mutant_rows_of_other_people_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a row were marked for what somebody else has, one person's result would mark everybody."""
    sql = "SELECT COUNT(*) AS n FROM visits WHERE age > 400 OR patient IN (SELECT person FROM labs WHERE test = 'rare')"
    program, found = plan(sql, schemas(Limits(1, 1)), "0"), data(4, patients=20)
    found["visits"] += [{"patient": "p99", "ward": "A", "age": 9, "charge": 1.0, "day": None}]
    found["labs"] += [{"person": "p99", "test": "rare", "result": 1.0}]
    check(program, found, without(found, "p99"))
    monkeypatch.setattr(gather, "_partners", lambda _, __, found: [row for rows in found.values() for row in rows])
    with pytest.raises(AssertionError):
        check(program, found, without(found, "p99"))


def test_with_much_budget_and_wide_limits_answers_are_those_of_plain_sql() -> None:
    found = data(3, patients=40)
    for row in found["visits"]:
        row["patient"] = row["patient"].strip()
        row["charge"] = None if row["charge"] is None or not 0 <= row["charge"] <= 1000 else row["charge"]
    for row in found["calls"]:
        row["minutes"] = None if row["minutes"] == 99 else row["minutes"]
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    plain = duckdb.connect()
    for table, schema in schemas(Limits(1, 1)).items():
        rows = frame(found[table], TYPES[table])
        plain.register(table, rows)
        if schema.public:
            curator.public(rows, name=table)
            continue
        bounds: Any = {n: (c.bounds.low, c.bounds.high) for n, c in schema.columns.items() if c.bounds}
        declared: Any = {"unit": schema.unit, "account": schema.account, "bounds": bounds}
        budget = Budget(epsilon=10**15, delta="0.1")
        curator.protect(rows, name=table, max_groups=40, max_rows=40, budget=budget, **declared)

    def check_values(sql: str) -> None:
        answer = curator.ask(sql, epsilon=10**12, delta="1e-3")
        assert not answer.replayed
        names = [column for column in answer.columns if not column.endswith(("_low", "_high"))]
        keys = [name for name in names if name in "gk"]
        ours = {tuple(row[name] for name in keys): row for row in answer}
        for values in plain.execute(sql).fetchall():
            row = dict(zip(names, values, strict=True))
            for name in set(names) - set(keys):
                got = ours[tuple(row[key] for key in keys)][name]
                assert got == pytest.approx(row[name] or 0, rel=1e-3, abs=1e-3)

    try_all(some(QUESTIONS, 3), check_values)


def test_ids_that_are_numbers() -> None:
    """Where what is compared is the unit itself, nothing else is."""
    rows = [{"id": i, "x": 1} for i in (1, 1, 2, 3, None)]
    others = [{"id": i} for i in (1, 3, 3, 9, None)]
    key = "CASE WHEN id IN (SELECT id FROM others) THEN 'in' ELSE 'out' END"
    sql = f"SELECT {key} AS g, COUNT(*) AS n FROM rows GROUP BY 1"
    for engine in (Memory(), DuckDB(threads=1)):
        with Curator.for_tests(engine=engine, bits=SeededBits(3)) as curator:
            for name, found, types in (("rows", rows, {"id": "int", "x": "int"}), ("others", others, {"id": "int"})):
                source = found if isinstance(engine, Memory) else pl.DataFrame(found)
                declared: Any = {"unit": "id", "account": "people", "types": types, "max_groups": 9, "max_rows": 9}
                curator.protect(source, name=name, budget=Budget(epsilon=10**9), **declared)
            assert {row["g"]: row["n"] for row in curator.ask(sql, epsilon=10**6)} == {"in": 3, "out": 1}


def test_what_is_written_twice_is_looked_up_once() -> None:
    sql = "SELECT COUNT(*) AS n FROM visits WHERE patient IN (SELECT person FROM labs) OR age > 3 AND {0}"
    same = "patient IN (SELECT person FROM labs)"
    other = "patient IN (SELECT person FROM labs WHERE test = 'x')"
    sources = [parse(sql.format(text), schemas(Limits(1, 1))).source for text in (same, other)]
    assert [isinstance(source, MarkJoin) and isinstance(source.source, MarkJoin) for source in sources] == [False, True]
    forms = {replay(parse(sql.format(text), schemas(Limits(1, 1)))) for text in (same, other, f"NOT {same}")}
    assert len(forms) == 3


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) AS n FROM visits WHERE age > 5 OR ward IN (SELECT ward FROM staff)", "same people"),
        ("SELECT COUNT(*) AS n FROM visits WHERE age > 5 OR ward IN (SELECT ward FROM visits)", "same person"),
        ("SELECT COUNT(*) AS n FROM calls WHERE minutes > 5 OR ward IN (SELECT ward FROM calls)", "same people"),
        ("SELECT patient IN (SELECT person FROM labs) AS x, COUNT(*) AS n FROM visits", "neither a key"),
        ("SELECT COUNT(*) AS n FROM visits ORDER BY patient IN (SELECT person FROM labs)", "neither a key"),
        ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) IN (SELECT floor FROM wards)", "aggregate"),
        ('SELECT "is in" AS x, COUNT(*) AS n FROM visits WHERE NOT (ward IN (SELECT ward FROM wards))', "declared"),
        (
            'SELECT "is in", COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM wards) OR age > 2 GROUP BY 1',
            "declared",
        ),
    ],
)
def test_what_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse(sql, schemas(Limits(1, 1)))
    assert reason in f"{refused.value.reason} {refused.value.hint}"


WARD = ((ColumnRef("ward", Type.TEXT), ColumnRef("ward", Type.TEXT)),)


def test_a_plan_made_by_hand_is_held_to_the_same_rules() -> None:
    visits, calls, staff = BaseTable("visits", "patient"), BaseTable("calls", None), BaseTable("staff", "id")
    for other in (calls, staff):
        with pytest.raises(UnsupportedQuery):
            describe(MarkJoin(source=visits, other=other, on=WARD, name="m"), schemas(Limits(1, 1)))
    taken = MarkJoin(source=visits, other=BaseTable("wards", None), on=WARD, name="ward")
    with pytest.raises(InvalidParameter):
        loaded(Memory(), data(1)).read(Reading(table="visits", source=taken, statistics=(Statistic(kind="rows"),)))
