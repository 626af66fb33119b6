"""Joins, nested SELECTs, people: equal on all engines, equal to plain SQL, and bounded person by person."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeVar

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.engines import DuckDB, Engine, Memory
from discreet.errors import UnsupportedQuery
from discreet.measurement.program import program as program_module
from discreet.measurement.program.program import Program, choose
from discreet.noise import SeededBits
from discreet.plan.analysis.relation_schema import describe
from discreet.plan.model.nodes import ColumnRef, Relation
from discreet.plan.model.readings import Groups
from discreet.plan.model.relations import BaseTable, Join, RelationUnion, Select, SemiJoin, UnitAggregation
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.hospital import TYPES, Data, add_patient, data, schemas, without
from tests.curator.nearness import check_alone, check_moves
from tests.effort import tried
from tests.open_groups import unsealed

_TEXT = """
SELECT AVG(n) AS m, COUNT(*) AS people FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient);
WITH p AS (SELECT patient, SUM(charge) AS total, MAX(age) AS oldest FROM visits WHERE age > 3 GROUP BY patient
  HAVING COUNT(*) > 1) SELECT COUNT(*) AS n, AVG(total) AS m FROM p WHERE oldest > 30;
SELECT v.ward, COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.ward WHERE w.floor > 1 GROUP BY
  v.ward;
SELECT w.floor, COUNT(*) AS n, SUM(v.charge) AS s FROM visits AS v LEFT JOIN wards AS w USING (ward) GROUP BY
  w.floor;
SELECT v.ward, COUNT(*) AS n, AVG(l.result) AS r FROM visits AS v JOIN labs AS l ON v.patient = l.person AND
  l.test = 'x' GROUP BY v.ward;
SELECT COUNT(*) AS n FROM visits WHERE patient IN (SELECT person FROM labs WHERE result > 0);
SELECT ward, COUNT(*) AS n FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM labs AS l WHERE l.person = v.patient
  AND l.result > 2) GROUP BY ward;
SELECT COUNT(*) AS n, SUM(charge) AS s FROM visits WHERE ward NOT IN (SELECT ward FROM wards WHERE floor = 2);
SELECT COUNT(*) AS n, SUM(v) AS s FROM (SELECT patient AS id, charge AS v FROM visits UNION ALL SELECT person,
  result FROM labs) AS u;
SELECT ward, COUNT(*) AS n, COUNT(DISTINCT id) AS p FROM (SELECT DISTINCT patient AS id, ward FROM visits) AS d
  GROUP BY ward;
SELECT AVG(k) AS m, AVG(a) AS b FROM (SELECT patient, COUNT(DISTINCT ward) AS k, MIN(charge) AS lo, AVG(age) AS
  a, COUNT(age) AS c FROM visits GROUP BY patient) AS t WHERE lo < 500 AND c > 0;
SELECT month, AVG(n) AS m FROM (SELECT patient, MONTH(day) AS month, COUNT(*) AS n FROM visits GROUP BY patient,
  MONTH(day)) AS t GROUP BY month;
SELECT ward, COUNT(*) AS n, SUM(minutes) AS s FROM calls WHERE ward IN (SELECT ward FROM wards) GROUP BY ward;
SELECT COUNT(*) AS n FROM (SELECT ward, minutes * 2 AS twice FROM calls WHERE minutes > 1) AS t WHERE twice < 50;
SELECT COUNT(*) AS n FROM wards AS w JOIN visits AS v ON v.ward = w.ward AND v.age > w.floor;
SELECT w.floor, COUNT(*) AS n FROM labs AS l, wards AS w, visits AS v WHERE v.patient = l.person AND w.ward =
  v.ward AND l.result > 0 GROUP BY ALL ORDER BY ALL;
SELECT ward, COUNT(*) AS n FROM (SELECT patient, ward, charge FROM visits QUALIFY RANK() OVER (PARTITION BY
  patient ORDER BY charge, day) = 1) AS first GROUP BY ward;
SELECT COUNT(*) AS n, SUM(rank) AS s FROM (SELECT DISTINCT patient, ward, RANK() OVER (PARTITION BY patient ORDER BY
  charge) AS rank FROM visits QUALIFY rank < 3) AS few;
SELECT COUNT(*) AS n FROM (SELECT patient FROM visits WHERE age > 3 INTERSECT SELECT person FROM labs) AS t;
SELECT COUNT(*) AS n FROM (SELECT patient FROM visits EXCEPT SELECT person FROM labs WHERE result > 0) AS t;
SELECT ward, AVG(n) AS m FROM (SELECT patient AS who, LOWER(ward) AS ward, COUNT(*) AS n FROM visits GROUP BY who, 2)
  AS t GROUP BY 1;
SELECT AVG(GREATEST(LEAST(gap, 30), 0)) AS m FROM (SELECT patient, day - LAG(day) OVER (PARTITION BY patient ORDER BY
  day) AS gap FROM visits) AS t
"""
QUESTIONS = tuple(" ".join(text.split()) for text in _TEXT.split(";"))
KEYS = {"ward", "floor", "month"}
IDS = [f"{i}" for i in range(len(QUESTIONS))]


def plan(sql: str, declared: dict[str, TableSchema], delta: str = "1e-3") -> Program:
    asked = parse(sql, declared)
    assert asked.source is not None
    return choose(asked, describe(asked.source, declared), epsilon=Fraction(1), delta=Fraction(delta), salt="pepper")


AnyEngine = TypeVar("AnyEngine", bound=Engine)


def loaded(engine: AnyEngine, found: Data) -> AnyEngine:
    for table, types in TYPES.items():
        engine.register(table, found[table] if isinstance(engine, Memory) else frame(found[table], types), dict(types))
    return engine


POLARS = {Type.TEXT: pl.String, Type.INT: pl.Int64, Type.FLOAT: pl.Float64, Type.DATE: pl.Date}


def frame(rows: list[dict[str, Any]], types: Any) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={name: POLARS[kind] for name, kind in types.items()})


def exact(program: Program, found: Data) -> Groups:
    return unsealed(loaded(Memory(), found).read(program.reading))


@cache
def engines(seed: int) -> tuple[Engine, Engine]:
    """The referee and DuckDB over the same rows, for everybody who only reads."""
    return loaded(Memory(), data(seed)), loaded(DuckDB(threads=1), data(seed))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sql", QUESTIONS, ids=IDS)
def test_engines_agree(sql: str) -> None:
    for seed in range(4):
        program = planned(sql, Limits(1 + seed % 3, 1 + seed % 2))
        one, other = (unsealed(engine.read(program.reading)) for engine in engines(seed))
        assert one == other, seed


@cache
def planned(sql: str, limits: Limits, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Program:
    """The plan, once for each declaration. For honest code only."""
    return plan(sql, schemas(limits, neighbours))


def check(program: Program, one: Data, other: Data) -> None:
    """Inputs of noise are as near as was charged, and groups of one person alone are few and small."""
    check_read(program, exact(program, one), exact(program, other))


def check_read(program: Program, one: Groups, other: Groups) -> None:
    """The same of what was read."""
    check_moves(program, one, other)
    check_alone(program, one, other)


SOMEBODY = given(
    seed=st.integers(0, 10**6),
    limits=st.builds(Limits, st.integers(1, 3), st.integers(1, 2)),
    neighbours=st.sampled_from(list(Neighbours)),
    who=st.integers(0, 5),
)


@lru_cache(maxsize=512)
def memory(seed: int) -> Memory:
    return loaded(Memory(), data(seed))


@lru_cache(maxsize=512)
def neighbour(seed: int, neighbours: Neighbours, who: int, of_calls: bool) -> Memory:
    """Without somebody, or with the same person's other rows; a call is a unit of its own."""
    found = data(seed)
    other = {**found, "calls": found["calls"][1:]} if of_calls else without(found, f"p{who}")
    if neighbours is Neighbours.REPLACE:
        add_patient(other, f"p{who}", SeededBits(seed + 1))
        other["calls"] += [{"ward": "B", "minutes": 60}] if of_calls else []
    return loaded(Memory(), other)


def check_without(sql: str, seed: int, limits: Limits, neighbours: Neighbours, who: int) -> None:
    """With and without somebody. For honest code only: tables and plans are made once for all questions."""
    program = planned(sql, limits, neighbours)
    pair = (memory(seed), neighbour(seed, neighbours, who, "calls" in sql))
    one, other = (unsealed(engine.read(program.reading)) for engine in pair)
    check_read(program, one, other)
    check_read(program, other, one)


@pytest.mark.ci
@tried(40)
@SOMEBODY
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    try_all(QUESTIONS, lambda sql: check_without(sql, seed, limits, neighbours, who))


@pytest.fixture(scope="module")
def rich() -> tuple[Curator, duckdb.DuckDBPyConnection]:
    return riches()


def riches() -> tuple[Curator, duckdb.DuckDBPyConnection]:
    """A curator whom no question here makes poorer, and the same tables as they are.

    Without values that are clipped or ids that are trimmed; noise of a scale of 10^-6 moves no whole number.
    """
    found = data(3, patients=40)
    for row in found["visits"]:
        row["patient"] = row["patient"].strip()
        row["charge"] = None if row["charge"] is None or not 0 <= row["charge"] <= 1000 else row["charge"]
        row["age"] = None if row["age"] == 300 else row["age"]
    for row in found["labs"]:
        row["result"] = None if row["result"] is None or not -5 <= row["result"] <= 10 else row["result"]
    for row in found["calls"]:
        row["minutes"] = None if row["minutes"] == 99 else row["minutes"]
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    budget = Budget(epsilon=10**15, delta="0.5")
    curator.public(frame(found["wards"], TYPES["wards"]), name="wards")
    for table, schema in schemas(Limits(40, 40)).items():
        if not schema.public:
            bounds = {n: (c.bounds.low, c.bounds.high) for n, c in schema.columns.items() if c.bounds}
            curator.protect(
                frame(found[table], TYPES[table]),
                name=table,
                unit=schema.unit,
                account=schema.account,
                budget=budget,
                bounds=bounds,
                max_groups=40,
                max_rows=40,
            )
    plain = duckdb.connect()
    for table in TYPES:
        plain.register(table, frame(found[table], TYPES[table]))
    return curator, plain


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", QUESTIONS, ids=IDS)
def test_with_much_budget_and_wide_limits_answers_are_those_of_plain_sql(
    sql: str, rich: tuple[Curator, duckdb.DuckDBPyConnection]
) -> None:
    check_plain(sql, *rich)


def check_plain(sql: str, curator: Curator, plain: duckdb.DuckDBPyConnection) -> None:
    """The answer is that of plain SQL but for the grid."""
    answer = curator.ask(sql, epsilon=10**12, delta="1e-3")
    assert not answer.replayed
    names = [column for column in answer.columns if not column.endswith(("_low", "_high"))]
    ours = {tuple(row[name] for name in names if name in KEYS): row for row in answer}
    theirs = [dict(zip(names, row, strict=True)) for row in plain.execute(sql).fetchall()]
    assert len(ours) == (13 if "month" in names else len(theirs))  # all months and NULL are public keys
    for row in theirs:
        found_row = ours[tuple(value for name, value in row.items() if name in KEYS)]
        for name in set(names) - KEYS:
            assert found_row[name] == pytest.approx(
                row[name] or 0, rel=1e-3, abs=1e-3
            )  # a grid of a millionth of the bounds


@every(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN labs AS l ON v.ward = l.test", "same person"),
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN staff AS s ON v.ward = s.ward", "same people"),
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN calls AS c ON v.ward = c.ward", "same people"),
        ("SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM staff)", "same people"),
        ("SELECT COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM visits WHERE age > 3)", "same person"),
        ("SELECT COUNT(*) AS n FROM wards AS w LEFT JOIN visits AS v ON v.ward = w.ward", "LEFT JOIN must begin"),
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.age > w.floor", "which columns are equal"),
        ("SELECT COUNT(*) AS n FROM visits, wards", "which columns are equal"),
        ("SELECT COUNT(*) AS n FROM calls AS c JOIN wards AS w ON c.ward = w.ward", "repeat rows"),
        ("SELECT COUNT(*) AS n FROM (SELECT ward FROM calls UNION ALL SELECT ward FROM calls) AS t", "same people"),
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.floor", ""),
        ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM calls) AS t", "several people"),
        ("SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM visits) AS t", "several people"),
        ("SELECT COUNT(*) AS n FROM (SELECT patient FROM visits UNION SELECT person FROM labs) AS t", "UNION ALL"),
        ("SELECT COUNT(*) AS n FROM (SELECT patient FROM visits UNION ALL SELECT ward FROM staff) AS t", "same people"),
        ("SELECT id, COUNT(*) AS n FROM (SELECT patient AS id FROM visits) AS t GROUP BY id", "whose row"),
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN visits AS v ON v.patient = v.patient", "Two tables"),
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN labs AS l ON v.patient = l.person WHERE day > 3", ""),
        ("SELECT COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.ward WHERE ward = 'A'", "Several tables"),
    ],
)
def test_what_is_not_local_is_refused(sql: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse(sql, schemas(Limits(1, 1)))
    assert reason in f"{refused.value.reason} {refused.value.hint}"


def test_names_that_double_end_soon() -> None:
    """Forty names, each of which reads the one before it twice, would be a million million tables."""
    doubled = ", ".join(f"t{i} AS (SELECT * FROM t{i - 1} UNION ALL SELECT * FROM t{i - 1})" for i in range(1, 41))
    with pytest.raises(UnsupportedQuery) as refused:
        parse(f"WITH t0 AS (SELECT * FROM visits), {doubled} SELECT COUNT(*) AS n FROM t40", schemas(Limits(1, 1)))
    assert "reads more than" in refused.value.reason


def test_the_right_side_of_a_left_join_may_be_nobody() -> None:
    """Its id is NULL where there is no pair, so that counting it is not counting people of the left side."""
    asked = parse(
        "SELECT COUNT(DISTINCT v.patient) AS n FROM visits AS v LEFT JOIN labs AS l ON v.patient = l.person",
        schemas(Limits(1, 1)),
    )
    assert [aggregate.kind for aggregate in asked.aggregates] == ["count_units"]
    assert asked.source is not None
    assert describe(asked.source, schemas(Limits(1, 1))).ids == {"v.patient", "#unit"}


def test_mutant_contributions_are_bounded_before_the_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """A patient with one visit to a ward of two floors counts twice unless rows are bounded after the join."""
    monkeypatch.setattr(program_module, "_bounding", lambda *_: None)
    sql = "SELECT COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.ward"
    program, found = plan(sql, schemas(Limits(1, 1)), "0"), data(1)
    found["visits"] += [{"patient": "p9", "ward": "B", "age": 1, "charge": 1.0, "day": None}]
    with pytest.raises(AssertionError):
        check(program, found, without(found, "p9"))


def test_a_join_in_a_question_is_charged_once_and_replayed() -> None:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(2))
    found = data(5, patients=30)
    for table in ("visits", "labs"):
        unit, types = schemas(Limits(1, 1))[table].unit, {name: kind.value for name, kind in TYPES[table].items()}
        curator.protect(
            found[table], name=table, unit=unit, max_rows=1, account="patients", budget=Budget(epsilon=1), types=types
        )
    sql = "SELECT COUNT(*) AS n FROM visits AS v JOIN labs AS l ON v.patient = l.person"
    assert str(curator.ask(sql, epsilon="0.25").remaining.loss) == "epsilon=0.75"
    again = curator.ask(sql.replace(" AS v", " v").replace(" AS l", " l"), epsilon="0.25")
    assert again.replayed
    assert curator.rehearse(sql).columns == ("n", "n_low", "n_high")
    assert "At most 1 row per patient" in again.notes[0]


VISITS, LABS, CALLS, WARDS = (
    BaseTable("visits", "patient"),
    BaseTable("labs", "person"),
    BaseTable("calls", None),
    BaseTable("wards", None),
)
ON = ((ColumnRef("ward", Type.TEXT), ColumnRef("ward", Type.TEXT)),)


@pytest.mark.parametrize(
    "relation",
    [
        Join(left=CALLS, right=WARDS, on=ON),
        Join(left=VISITS, right=BaseTable("labs", None), on=ON),
        Join(left=VISITS, right=BaseTable("staff", "id"), on=ON),
        Join(left=WARDS, right=VISITS, on=ON),
        SemiJoin(source=CALLS, other=VISITS, on=ON),
        SemiJoin(source=VISITS, other=CALLS, on=ON),
        RelationUnion((CALLS, CALLS)),
        RelationUnion((VISITS, WARDS)),
        UnitAggregation(CALLS, (), ()),
        Select(BaseTable("visits", "ward"), ()),
    ],
)
def test_a_plan_made_by_hand_is_held_to_the_same_rules(relation: Relation) -> None:
    """The text is not the only way in: what is not local is refused before anything is charged."""
    with pytest.raises(UnsupportedQuery):
        describe(relation, schemas(Limits(1, 1)))
