"""Rehearsals have the shape of answers and nothing of anybody's data."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from discreet.curator import Answer, Curator
from discreet.curator.asking.rehearsal import NOTE
from discreet.engines import Memory
from discreet.errors import DiscreetError, InvalidParameter, UnknownTable, UnsupportedQuery
from discreet.noise import SeededBits
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget, Loss
from discreet.sql.frame import count
from tests.curator.clinic import visits
from tests.curator.spies import BY_WARD, COUNT, OPTIONS, Spy, clinic

TYPES = {
    "person": "text",
    "age": "int",
    "height": "float",
    "smokes": "bool",
    "town": "text",
    "born": "date",
    "seen": "timestamp",
}
ROWS = [
    {
        "person": f"p{i}",
        "age": i % 90,
        "height": 1.5 + i % 5 / 10,
        "smokes": i % 2 == 0,
        "town": "X" if i % 3 else "Y",
        "born": dt.date(1990, 1 + i % 2, 1),
        "seen": dt.datetime(2026, 1, 1 + i % 2, 8),
    }
    for i in range(400)
]
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(DISTINCT person) AS n, SUM(age) AS s, AVG(height) AS h FROM people WHERE age >= 40",
    "SELECT town, COUNT(*) AS n FROM people GROUP BY town",
    "SELECT smokes, AVG(age) AS a FROM people WHERE seen >= TIMESTAMP '2026-01-01 00:00:00' GROUP BY smokes",
    "SELECT born, seen, COUNT(*) AS n FROM people GROUP BY born, seen ORDER BY n DESC LIMIT 1",
    "SELECT EXTRACT(year FROM born) AS y, COUNT(age) AS n FROM people GROUP BY y HAVING n > 0",
)


def people(rows: list[dict[str, Any]] = ROWS, budget: Loss | None = None, **declared: Any) -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(2))
    options: dict[str, Any] = {"types": TYPES, "bounds": {"age": (0, 120), "height": (0, 3)}, "unit": "person"}
    budget = budget or Budget(epsilon=1000, delta=1e-3)
    curator.protect(rows, name="people", budget=budget, **({"max_rows": 1, **options | declared}))
    return curator


def shape(answer: Answer) -> list[tuple[str, set[type]]]:
    return [(name, {type(row[name]) for row in answer}) for name in answer.columns]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_columns_and_types_are_those_of_an_answer(sql: str) -> None:
    curator = people()
    assert shape(curator.rehearse(sql)) == shape(curator.ask(sql, epsilon=5, delta=1e-6))


def test_nothing_is_read_spent_or_written() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    before = curator.verify()
    made_up = curator.rehearse(BY_WARD, epsilon=0.5)
    assert (spy.reads, curator.verify()) == (0, before)
    assert (str(made_up.cost.details), str(made_up.remaining.loss)) == ("epsilon=0", "epsilon=1")
    assert (made_up.private, made_up.replayed, made_up.notes[0]) == (False, False, NOTE)
    assert not curator.ask(BY_WARD, epsilon=0.5).replayed  # a rehearsal is no release


@pytest.mark.ci
def test_rehearsals_do_not_depend_on_data() -> None:
    other = [{**row, "age": 7, "town": "Z"} for row in ROWS[:3]]
    for sql in QUESTIONS:
        one, two = people().rehearse(sql), people(other).rehearse(sql)
        assert one.records == two.records == people([]).rehearse(sql).records


@pytest.mark.ci
@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", ["1", "0.1", "0.001"])
@pytest.mark.parametrize("limits", [Limits(1, 1), Limits(5, 20)])
def test_private_groups_show_whatever_the_threshold(epsilon: str, limits: Limits) -> None:
    sql = "SELECT town, COUNT(*) AS n FROM people WHERE age < 60 GROUP BY town"
    answer = people().rehearse(sql, epsilon=epsilon, delta="1e-12", limits=limits)
    assert len(answer) > 0
    assert all(isinstance(row["town"], str) and row["n_low"] < row["n"] for row in answer)


def test_filters_keep_what_the_question_names() -> None:
    sql = "SELECT COUNT(*) AS n FROM people WHERE town = 'Nowhere' AND born = DATE '1888-08-08'"
    row = people().rehearse(sql, epsilon=100)[0]
    assert row["n"] > 0


def test_declared_keys_and_bounds_are_kept() -> None:
    curator = people(keys={"town": ["P", "Q"]}, bounds={"age": ("0.2", "0.4"), "height": (-3, -2)})
    assert [row["town"] for row in curator.rehearse("SELECT town, COUNT(*) AS n FROM people GROUP BY town")] == [*"PQ"]
    row = curator.rehearse("SELECT AVG(height) AS h FROM people", epsilon=100)[0]
    assert -3 <= row["h"] <= -2


@pytest.mark.parametrize("kind", ["int", "bool", "date", "timestamp", "text"])
def test_units_of_every_type(kind: str) -> None:
    curator = Curator(engine=Memory())
    curator.protect([], name="folk", unit="who", max_rows=1, types={"who": kind}, budget=Budget(epsilon=1))
    people = 2 if kind == "bool" else 100  # two rows each, one of them counted
    assert curator.rehearse("SELECT COUNT(*) AS n FROM folk", epsilon=10**6, rows=200)[0]["n"] == people


@pytest.mark.parametrize(
    ("sql", "options", "error"),
    [
        ("SELECT patient FROM visits", {}, UnsupportedQuery),
        ("SELECT COUNT(*) FROM nowhere", {}, UnknownTable),
        ("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", {}, UnsupportedQuery),
        (COUNT, {"epsilon": 0}, InvalidParameter),
        (COUNT, {"delta": 1e-9}, InvalidParameter),
        (COUNT, {"confidence": 1}, InvalidParameter),
        (COUNT, {"rows": 0}, InvalidParameter),
    ],
)
def test_what_is_refused_is_refused_in_a_rehearsal(
    sql: str, options: dict[str, Any], error: type[DiscreetError]
) -> None:
    with pytest.raises(error):
        clinic(Budget(epsilon=1)).rehearse(sql, **options)


def test_frames_rehearse() -> None:
    curator = clinic(Budget(epsilon=1))
    frame = curator.table("visits").group_by("ward").agg(n=count())
    assert frame.rehearse().records == curator.rehearse("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").records


def test_a_curator_that_draws_secure_noise_rehearses_with_seeded_noise() -> None:
    curator = Curator(engine=Memory())
    curator.protect(visits(1), name="visits", budget=Budget(epsilon=1), **OPTIONS)
    one, two = curator.rehearse(COUNT), curator.rehearse(COUNT)
    assert one.records == two.records
    assert not one.private
