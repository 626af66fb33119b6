"""OVER and ARG_MAX inside one person's rows: equal on all engines, equal to plain SQL, and bounded person by person."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.engines.memory import relation_rows as places_module
from discreet.errors import InvalidParameter, UnsupportedQuery
from discreet.measurement.program.program import Program
from discreet.noise import SeededBits
from discreet.plan.analysis.relation_schema import describe
from discreet.plan.canonical import replay
from discreet.plan.model.nodes import UNIT, ColumnRef, SortKey
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.relations import BaseTable, Window, WindowedRelation
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import every, try_all
from tests.curator.hospital import TYPES, Data, data, schemas, without
from tests.curator.shop import schemas as shop
from tests.curator.test_shapes import SOMEBODY, check, check_without, engines, exact, frame, loaded, plan, planned
from tests.effort import tried
from tests.open_groups import unsealed

OVER = "OVER (PARTITION BY patient ORDER BY day DESC, charge)"
ALL = "OVER (PARTITION BY patient ORDER BY charge, age ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
_INNER = {
    "row_number": f"SELECT patient, charge AS x, ROW_NUMBER() {OVER} AS w FROM visits",
    "rank": f"SELECT patient, charge AS x, RANK() {OVER} AS w FROM visits",
    "dense_rank": f"SELECT patient, charge AS x, DENSE_RANK() {OVER} AS w FROM visits",
    "lag": f"SELECT patient, charge - LAG(charge) {OVER} AS x, LAG(age, 2) {OVER} AS w FROM visits",
    "lead": f"SELECT patient, LEAD(charge) {OVER} AS x, age AS w FROM visits WHERE age > 3",
    "first": f"SELECT patient, FIRST_VALUE(charge) {OVER} AS x, FIRST_VALUE(age + 1) {OVER} AS w FROM visits",
    "last": f"SELECT patient, charge AS x, LAST_VALUE(age) {ALL} AS w FROM visits",
    "count": f"SELECT patient, charge AS x, COUNT(*) {OVER} AS w FROM visits",
    "count_values": "SELECT patient, charge AS x, COUNT(age) OVER (PARTITION BY ward, patient) AS w FROM visits",
    "sum": f"SELECT patient, SUM(charge) {OVER} AS x, SUM(age) OVER (PARTITION BY patient) AS w FROM visits",
    "mean": f"SELECT patient, AVG(charge) {OVER} AS x, age AS w FROM visits",
    "min": f"SELECT patient, MIN(charge) {OVER} AS x, MAX(age) {OVER} AS w FROM visits",
    "case": f"SELECT patient, CASE WHEN ROW_NUMBER() {OVER} > 1 THEN charge END AS x, 1 AS w FROM visits",
    "joined": "SELECT v.patient, v.charge AS x, RANK() OVER (PARTITION BY l.person, v.ward ORDER BY l.result) AS w FROM"
    " visits AS v JOIN labs AS l ON v.patient = l.person",
    "distinct": f"SELECT DISTINCT patient, ward, RANK() {OVER} AS w, NULLIF(1.0, 2) AS x FROM visits",
    "arg_max": "SELECT patient, ARG_MAX(charge, day) AS x, ARG_MIN(age, charge) AS w FROM visits GROUP BY patient",
    "max_by": "SELECT patient, MAX_BY(charge, ward) AS x, MIN_BY(age, age) AS w FROM visits GROUP BY patient, ward",
}
QUESTIONS = {
    name: f"SELECT COUNT(*) AS n, SUM(GREATEST(LEAST(x, 1000), -1000)) AS s, SUM(GREATEST(LEAST(w, 99), 0)) AS t"
    f" FROM ({inner}) AS q WHERE w < 90 OR w IS NULL"
    for name, inner in _INNER.items()
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", QUESTIONS)
def test_engines_agree(name: str) -> None:
    """The data are full of ties and of rows that are the same."""
    for seed in range(6):
        program = planned(QUESTIONS[name], Limits(1 + seed % 3, 1 + 3 * (seed % 3)))
        one, other = (unsealed(engine.read(program.reading)) for engine in engines(seed))
        assert one == other, seed


@tried(15)
@SOMEBODY
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    try_all(QUESTIONS.values(), lambda sql: check_without(sql, seed, limits, neighbours, who))


def test_mutant_a_window_over_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """If rows were ranked among all people's, one person would move everybody's ranks."""
    right = places_module.places

    def everybody(window: Window, rows: Any, *rest: Any) -> Any:
        return right(window, [{**row, UNIT: 0} for row in rows], *rest)

    monkeypatch.setattr("discreet.engines.memory.relation_rows.places", everybody)
    program, found = plan(QUESTIONS["row_number"], schemas(Limits(1, 1))), data(3, patients=60)
    with pytest.raises(AssertionError):
        check_all(program, found)


def check_all(program: Program, found: Data) -> None:
    for who in range(60):
        check(program, found, without(found, f"p{who}"))


def test_values_are_those_of_plain_sql() -> None:
    """Where ties leave no choice. Values within bounds and ids without spaces; noise far below one step."""
    found = data(3, patients=40)
    for row in found["visits"]:
        row["patient"] = row["patient"].strip()
        row["charge"] = None if row["charge"] is None or not 0 <= row["charge"] <= 1000 else row["charge"]
        row["age"] = None if row["age"] == 300 else row["age"]
    visits = frame(found["visits"], TYPES["visits"])
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    curator.protect(
        visits,
        name="visits",
        unit="patient",
        bounds={"age": (0, 120), "charge": (0, 1000)},
        max_rows=40,
        budget=Budget(epsilon=10**15),
    )
    plain = duckdb.connect()
    plain.register("visits", visits)

    def check_values(name: str) -> None:
        answer = curator.ask(QUESTIONS[name], epsilon=10**12)[0]
        for ours, theirs in zip("nst", plain.execute(QUESTIONS[name]).fetchall()[0], strict=True):
            assert answer[ours] == pytest.approx(float(theirs), rel=1e-5, abs=1e-2)

    try_all(["rank", "dense_rank", "count", "count_values", "sum", "mean", "min"], check_values)


def test_the_last_visit_of_each_patient() -> None:
    sql = f"SELECT COUNT(*) AS n FROM ({_INNER['row_number']}) AS t WHERE w = 1"
    found = data(5)
    people = {row["patient"].strip() for row in found["visits"]}
    assert exact(plan(sql, schemas(Limits(1, 9)), "0"), found) == {(): (len(people),)}


W = "(SELECT patient, {0} AS w FROM visits) AS t"


@every(
    ("window", "reason"),
    [
        ("ROW_NUMBER() OVER (ORDER BY day)", "in another's row"),
        ("COUNT(*) OVER ()", "in another's row"),
        ("SUM(charge) OVER (PARTITION BY ward)", "in another's row"),
        ("RANK() OVER (PARTITION BY ward, UPPER(patient) ORDER BY day)", "in another's row"),
        ("ROW_NUMBER() OVER (PARTITION BY patient)", "depends on an order"),
        ("LAG(age) OVER (PARTITION BY patient)", "depends on an order"),
        ("LAG(age, 0) OVER (PARTITION BY patient ORDER BY day)", "rows away"),
        ("LAG(age, 99999) OVER (PARTITION BY patient ORDER BY day)", "rows away"),
        ("LAG(age, age) OVER (PARTITION BY patient ORDER BY day)", "rows away"),
        ("LAG(age, 1, 0) OVER (PARTITION BY patient ORDER BY day)", ""),
        ("LAST_VALUE(age) OVER (PARTITION BY patient ORDER BY day)", "ROWS BETWEEN UNBOUNDED PRECEDING AND"),
        ("NTILE(4) OVER (PARTITION BY patient ORDER BY day)", ""),
        ("SUM(age) OVER (PARTITION BY patient ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "frame"),
        ("SUM(age) OVER (PARTITION BY patient ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)", "frame"),
        ("SUM(age) OVER (PARTITION BY patient ORDER BY day NULLS FIRST)", "NULL"),
        ("SUM(SUM(age) OVER (PARTITION BY patient)) OVER (PARTITION BY patient)", "single rows"),
        ("SUM(LENGTH(ward)) OVER (PARTITION BY patient)", "public bounds"),
        ("RANK() OVER w", ""),
        ("COUNT(DISTINCT age) OVER (PARTITION BY patient)", ""),
        ("COUNT(*) FILTER (WHERE age > 3) OVER (PARTITION BY patient)", ""),
        ("FIRST_VALUE(age IGNORE NULLS) OVER (PARTITION BY patient ORDER BY day)", ""),
        ("ROW_NUMBER() OVER (PARTITION BY patient ORDER BY NULL)", "NULL"),
    ],
)
def test_windows_that_are_refused(window: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse(f"SELECT COUNT(*) AS n FROM {W.format(window)}", schemas(Limits(1, 1)))
    assert reason in f"{refused.value.reason} {refused.value.hint}"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) AS w, COUNT(*) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) = 1",
        "SELECT COUNT(*) AS n FROM visits GROUP BY RANK() OVER (PARTITION BY patient ORDER BY day)",
        "SELECT COUNT(*) AS n FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) = 1",
        "SELECT SUM(age) OVER (PARTITION BY patient) AS w FROM visits",
        "SELECT ARG_MAX(age, day) AS w FROM visits",
        "SELECT ward, ARG_MIN(age, day) AS w FROM visits GROUP BY ward",
        "SELECT COUNT(*) AS n FROM (SELECT RANK() OVER (PARTITION BY ward ORDER BY minutes) AS w FROM calls) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT patient, ARG_MAX(age, day, 3) AS w FROM visits GROUP BY patient) AS t",
        "SELECT COUNT(*) AS n FROM (SELECT patient, ARG_MAX(age, NULL) AS w FROM visits GROUP BY patient) AS t",
    ],
)
def test_places_where_no_window_stands(sql: str) -> None:
    with pytest.raises(UnsupportedQuery):
        parse(sql, schemas(Limits(1, 1)))


def test_an_id_of_several_columns_stands_in_the_partition_as_a_whole() -> None:
    sql = (
        "SELECT COUNT(*) AS n FROM (SELECT person, RANK() OVER (PARTITION BY {0} ORDER BY count) AS w FROM steps) AS t"
    )
    assert parse(sql.format("day, person"), shop(Limits(1, 1))).source is not None
    for partition in ("person", "day"):
        with pytest.raises(UnsupportedQuery):
            parse(sql.format(partition), shop(Limits(1, 1)))


def test_a_plan_made_by_hand_is_held_to_the_same_rules() -> None:
    window = Window(name="#w0", kind="rank", type=Type.INT, order=(SortKey(ColumnRef("minutes", Type.INT)),))
    with pytest.raises(UnsupportedQuery):
        describe(WindowedRelation(BaseTable("calls", None), (window,)), schemas(Limits(1, 1)))
    engine = loaded(Memory(), data(1))
    for relation in (
        WindowedRelation(BaseTable("calls", None), (window,)),
        WindowedRelation(BaseTable("visits", "patient"), (window,)),
        WindowedRelation(BaseTable("labs", "person"), (Window(name="test", kind="count", type=Type.INT),)),
    ):
        with pytest.raises(InvalidParameter):
            unsealed(engine.read(Reading(table="calls", source=relation, statistics=(Statistic(kind="rows"),))))


def test_other_windows_are_other_questions() -> None:
    declared = schemas(Limits(1, 1))
    texts = [f"RANK() OVER (PARTITION BY patient{more})" for more in (" ORDER BY day", ", ward ORDER BY day")]
    texts += ["RANK() OVER (PARTITION BY patient ORDER BY day DESC)", "RANK() OVER (PARTITION BY patient ORDER BY age)"]
    texts += [f"LAG(age, {n}) OVER (PARTITION BY patient ORDER BY day)" for n in (1, 2)]
    forms = {replay(parse(f"SELECT COUNT(*) AS n FROM {W.format(text)} WHERE w > 1", declared)) for text in texts}
    folds = ("ARG_MAX(age, day)", "ARG_MAX(age, charge)", "ARG_MIN(age, day)", "MAX(age)")
    inner = [f"SELECT patient, {fold} AS w FROM visits GROUP BY patient" for fold in folds]
    forms |= {replay(parse(f"SELECT COUNT(*) AS n FROM ({text}) AS t WHERE w > 1", declared)) for text in inner}
    assert len(forms) == len(texts) + len(folds)
