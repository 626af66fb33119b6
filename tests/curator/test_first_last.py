"""FIRST, LAST, ARG_MIN and ARG_MAX of one person's rows: one value of those rows alone, with what is declared of it."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.engines.memory import relation_rows as gather
from discreet.errors import UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.analysis.relation_schema import describe
from discreet.plan.canonical import replay
from discreet.plan.model.schema import ColumnBounds, Limits
from discreet.privacy import Budget, Neighbours
from discreet.sql.select import parse
from tests.cases import try_all
from tests.curator.hospital import TYPES, Data, data, schemas, without
from tests.curator.nearness import Statistics, check_moves
from tests.curator.test_shapes import SOMEBODY, check, check_without, engines, exact, frame, loaded, plan, planned
from tests.effort import tried
from tests.open_groups import unsealed

FOLDS = {
    "first": "FIRST(charge ORDER BY day) AS x, FIRST(age ORDER BY charge) AS w",
    "last": "LAST(charge ORDER BY day) AS x, LAST(age ORDER BY ward) AS w",
    "downwards": "FIRST(charge ORDER BY day DESC) AS x, LAST(age ORDER BY charge DESC) AS w",
    "of some": "LAST(charge ORDER BY day) FILTER (WHERE ward <> 'A') AS x, FIRST(age ORDER BY day) AS w",
    "computed": "FIRST(charge / 2 + 1 ORDER BY MONTH(day)) AS x, LAST(age - 1 ORDER BY LENGTH(ward)) AS w",
    "arg": "ARG_MIN(charge, day) AS x, MAX_BY(age, ward) FILTER (WHERE day IS NOT NULL) AS w",
    "of texts": "LENGTH(LAST(ward ORDER BY age)) AS x, MONTH(FIRST(day ORDER BY charge)) AS w",
}
QUESTIONS = {
    name: "SELECT COUNT(*) AS n, COUNT(x) AS k, SUM(GREATEST(LEAST(x, 1000), -9)) AS s, SUM(GREATEST(LEAST(w, 99), 0))"
    f" AS t FROM (SELECT patient, {folds} FROM visits GROUP BY patient) AS q"
    for name, folds in FOLDS.items()
}
GROUPED = {
    "by first ward": "SELECT w, COUNT(*) AS n, AVG(x) AS m FROM (SELECT patient, FIRST(ward ORDER BY day) AS w,"
    " LAST(charge ORDER BY day) AS x FROM visits GROUP BY patient) AS q GROUP BY w",
    "by ward and last age": "SELECT ward, a, COUNT(*) AS n FROM (SELECT patient, ward, LAST(age ORDER BY charge) AS a"
    " FROM visits GROUP BY patient, ward) AS q GROUP BY ward, a",
}
ALL = QUESTIONS | GROUPED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ALL)
def test_engines_agree(name: str) -> None:
    """The data are full of ties, missing values and rows that are the same."""
    for seed in range(5):
        program = planned(ALL[name], Limits(1 + seed % 3, 1 + seed % 2))
        one, other = (unsealed(engine.read(program.reading)) for engine in engines(seed))
        assert one == other, seed


def test_the_order_of_rows_tells_nothing() -> None:
    found = data(2, patients=12)
    turned = {**found, "visits": found["visits"][::-1]}
    referee, memory = loaded(Memory(), found), loaded(Memory(), turned)
    with DuckDB(threads=2) as engine:
        loaded(engine, turned)
        for name, sql in ALL.items():
            reading = planned(sql, Limits(2, 2)).reading
            assert (
                unsealed(memory.read(reading)) == unsealed(engine.read(reading)) == unsealed(referee.read(reading))
            ), name


@pytest.mark.ci
@tried(12)
@SOMEBODY
def test_one_person_moves_no_input_farther_than_charged(
    seed: int, limits: Limits, neighbours: Neighbours, who: int
) -> None:
    try_all(ALL.values(), lambda sql: check_without(sql, seed, limits, neighbours, who))


def test_mutant_the_last_row_of_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last row were sought among all people's, the person who has it would move everybody's value."""
    sql = "SELECT SUM(w) AS s FROM (SELECT patient, LAST(age ORDER BY day) AS w FROM visits GROUP BY patient) AS q"
    program, found = plan(sql, schemas(Limits(1, 1)), "0"), data(3, patients=30)
    found["visits"] += [{"patient": "p99", "ward": "A", "age": 99, "charge": 1.0, "day": dt.date(2030, 1, 1)}]
    neighbour, right = without(found, "p99"), gather.fold_rows
    check(program, found, neighbour)
    read: list[Statistics] = []
    for state in (found, neighbour):
        monkeypatch.setattr(gather, "fold_rows", lambda fold, _, rows=state["visits"]: right(fold, rows))
        read.append(exact(program, state))
    with pytest.raises(AssertionError):
        check_moves(program, *read)


def rows_of(found: Data) -> Data:
    """Days are all different, values within their bounds, ids as they are: plain SQL has one answer then."""
    first = dt.date(2026, 1, 1)
    for place, row in enumerate(found["visits"]):
        row["patient"] = row["patient"].strip()
        row["day"] = first + dt.timedelta(days=(place * 37) % 331)
        row["charge"] = None if row["charge"] is None or not 0 <= row["charge"] <= 1000 else row["charge"]
        row["age"] = None if row["age"] == 300 else row["age"]
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "folds",
    [
        "FIRST(charge ORDER BY day) AS x, LAST(age ORDER BY day) AS w",
        "LAST(charge ORDER BY day DESC) AS x, FIRST(age ORDER BY day DESC) AS w",
        "ARG_MIN(charge, day) AS x, ARG_MAX(age, day) AS w",
        "FIRST(charge ORDER BY day) FILTER (WHERE age > 9) AS x, LAST(age ORDER BY day) FILTER (WHERE age > 5) AS w",
        "MIN_BY(charge, day) FILTER (WHERE age > 5) AS x, LENGTH(LAST(ward ORDER BY day)) AS w",
    ],
)
def test_values_are_those_of_plain_sql(folds: str) -> None:
    """Missing values among them, which FIRST and LAST keep and ARG_MIN and ARG_MAX pass over."""
    visits = frame(rows_of(data(3, patients=40))["visits"], TYPES["visits"])
    curator = Curator.for_tests(engine=DuckDB(threads=1), bits=SeededBits(4))
    bounds: dict[str, Any] = {"age": (0, 120), "charge": (0, 1000)}
    budget = Budget(epsilon=10**15)
    curator.protect(visits, name="visits", unit="patient", bounds=bounds, max_rows=40, budget=budget)
    sql = (
        "SELECT COUNT(*) AS n, COUNT(x) AS k, COUNT(w) AS l, SUM(x) AS s, SUM(GREATEST(LEAST(w, 200), 0)) AS t"
        f" FROM (SELECT patient, {folds} FROM visits GROUP BY patient) AS q"
    )
    answer = curator.ask(sql, epsilon=10**12)[0]
    plain = duckdb.connect()
    plain.register("visits", visits)
    for ours, theirs in zip("nklst", plain.execute(sql).fetchall()[0], strict=True):
        assert answer[ours] == pytest.approx(float(theirs), rel=1e-5, abs=1e-2)


ROWS = [(1, None), (2, 30), (2, 10), (None, 5), (3, 40), (3, None), (4, None)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("fold", "value"),
    [
        ("FIRST(age ORDER BY charge)", None),  # the first row has no value
        ("ARG_MIN(age, charge)", 10),  # passed over; the smaller one of two
        ("FIRST(age ORDER BY charge) FILTER (WHERE charge > 1)", 10),
        ("LAST(age ORDER BY charge)", None),
        ("LAST(age ORDER BY charge) FILTER (WHERE charge < 4)", 40),  # a value goes before none in the same place
        ("ARG_MAX(age, charge)", 40),
        ("LAST(age ORDER BY charge) FILTER (WHERE charge < 3)", 30),  # the larger one of two
        ("FIRST(age ORDER BY charge) FILTER (WHERE charge > 9)", None),
    ],
)
def test_ties_and_missing_values(fold: str, value: int | None) -> None:
    is_value = "x IS NULL" if value is None else f"x = {value}"
    people = f"SELECT patient, {fold} AS x FROM visits GROUP BY patient"
    program = plan(f"SELECT COUNT(*) AS n FROM ({people}) AS q WHERE {is_value}", schemas(Limits(1, 1)), "0")
    found = data(1, patients=0)
    visits = [
        {"patient": "p", "ward": "A", "age": age, "charge": None if at is None else float(at), "day": None}
        for at, age in ROWS
    ]
    for order in (visits, visits[::-1]):
        assert exact(program, {**found, "visits": order}) == {(): (1,)}
        with DuckDB(threads=1) as engine:
            assert unsealed(loaded(engine, {**found, "visits": order}).read(program.reading)) == {(): (1,)}


def test_bounds_and_keys_of_the_value_are_those_of_its_column() -> None:
    declared = schemas(Limits(1, 3))
    folds = "FIRST(ward ORDER BY day) AS w, LAST(age ORDER BY day) AS a, ARG_MAX(charge * 2, day) AS c, MAX(ward) AS m"
    asked = parse(
        f"SELECT w, m, SUM(a) AS s, SUM(c) AS t FROM (SELECT patient, {folds} FROM visits GROUP BY patient) AS q"
        " GROUP BY w, m",
        declared,
    )
    assert asked.source is not None
    columns = describe(asked.source, declared).columns
    assert columns["w"].keys == columns["m"].keys == ("A", "B", "C")
    assert columns["a"].bounds == ColumnBounds(Fraction(0), Fraction(120))
    assert columns["c"].bounds == ColumnBounds(Fraction(0), Fraction(2000))


def test_groups_of_the_first_ward_need_no_delta() -> None:
    found = data(5, patients=30)
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(2))
    types = {name: kind.value for name, kind in TYPES["visits"].items()}
    keys = {"ward": ["A", "B", "C"]}
    curator.protect(
        found["visits"], name="visits", unit="patient", max_rows=1, types=types, keys=keys, budget=Budget(epsilon=9)
    )
    answer = curator.ask(GROUPED["by first ward"].replace(", AVG(x) AS m", ""), epsilon=1)
    assert [row["w"] for row in answer] == ["A", "B", "C"]


def test_other_folds_are_other_questions() -> None:
    folds = ["FIRST(age ORDER BY day)", "LAST(age ORDER BY day)", "ARG_MIN(age, day)", "FIRST(age ORDER BY charge)"]
    sql = "SELECT SUM(x) AS s FROM (SELECT patient, {0} AS x FROM visits GROUP BY patient) AS q"
    forms = {replay(parse(sql.format(fold), schemas(Limits(1, 1)))) for fold in folds}
    assert len(forms) == len(folds)
    same = [replay(parse(sql.format(f"{one}(age ORDER BY day{two})"), schemas(Limits(1, 1)))) for one, two in _SAME]
    assert len(set(same)) == 1


_SAME = (("FIRST", ""), ("FIRST", " ASC"), ("LAST", " DESC"), ("first", " NULLS LAST"))


@pytest.mark.parametrize(
    ("fold", "reason"),
    [
        ("FIRST(age)", "depends on an order"),
        ("LAST(age ORDER BY day, charge)", "depends on an order"),
        ("FIRST(age ORDER BY day NULLS FIRST)", ""),
        ("FIRST(DISTINCT age ORDER BY day)", ""),
        ("FIRST(age IGNORE NULLS ORDER BY day)", ""),
        ("FIRST(age ORDER BY NULL)", "NULL"),
        ("FIRST(NULL ORDER BY day)", "NULL"),
        ("FIRST(COUNT(*) ORDER BY day)", "inside"),
    ],
)
def test_what_is_refused_of_one_person(fold: str, reason: str) -> None:
    with pytest.raises(UnsupportedQuery) as refused:
        parse(f"SELECT COUNT(*) AS n FROM (SELECT patient, {fold} AS x FROM visits GROUP BY patient) AS q", _DECLARED)
    assert reason in refused.value.reason


_DECLARED = schemas(Limits(1, 1))


@pytest.mark.parametrize(
    "sql", ["SELECT FIRST(age ORDER BY day) AS x FROM visits", "SELECT ward, LAST(age) FROM visits"]
)
def test_of_several_people_nothing_is_first(sql: str) -> None:
    with pytest.raises(UnsupportedQuery, match="publish people's values"):
        parse(sql, _DECLARED)
