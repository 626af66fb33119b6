"""What the referee reads, another engine reads, too, and a difference is noticed."""

from __future__ import annotations

import pytest

from discreet.engines import DuckDB, Memory
from discreet.plan.model.readings import Groups, Reading, Statistic
from tests.engines.tables import N, T, arrow, col
from tests.shadow import shadowed

READING = Reading(table="t", keys=(col("ward", T),), statistics=(Statistic(kind="rows"),))
ROWS = [{"ward": "a"}, {"ward": "a"}, {"ward": None}]


def memory() -> Memory:
    made = Memory()
    made.register("t", ROWS, {"ward": T, "age": N})
    return made


def test_both_are_asked() -> None:
    with DuckDB(threads=1) as engine, shadowed(engine, arrow) as shadow:
        assert memory().read(READING) == {("a",): (2,), (None,): (1,)}
    assert shadow.read == 1
    memory().read(READING)
    assert shadow.read == 1


def test_a_table_that_changes_is_seen() -> None:
    with DuckDB(threads=1) as engine, shadowed(engine, arrow):
        referee = memory()
        referee.read(READING)
        referee.register("t", ROWS[:1], {"ward": T})
        assert referee.read(READING) == {("a",): (1,)}


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_engine: DuckDB, _reading: Reading) -> Groups:
        return {("a",): (3,)}

    monkeypatch.setattr(DuckDB, "read", wrong)
    with (
        DuckDB(threads=1) as engine,
        shadowed(engine, arrow),
        pytest.raises(AssertionError, match="in another way"),
    ):
        memory().read(READING)


def test_a_costly_engine_is_asked_for_the_first_readings_of_a_test() -> None:
    with DuckDB(threads=1) as engine, shadowed(engine, arrow, most=2) as shadow:
        referee = memory()
        for _ in range(3):
            referee.read(READING)
    assert shadow.read == 2
