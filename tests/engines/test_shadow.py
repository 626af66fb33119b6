"""What the referee reads, another engine reads, too, and a difference is noticed."""

from __future__ import annotations

import pytest

from discreet.engines import DuckDB, Memory
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.readings import Reading, Statistic
from tests.engines.tables import N, T, arrow, col
from tests.open_groups import sealed, unsealed
from tests.shadow import shadowed

READING = Reading(table="t", keys=(col("ward", T),), statistics=(Statistic(kind="rows"),))
ROWS = [{"ward": "a"}, {"ward": "a"}, {"ward": None}]


def memory() -> Memory:
    made = Memory()
    made.register("t", ROWS, {"ward": T, "age": N})
    return made


def test_both_are_asked() -> None:
    with DuckDB(threads=1) as engine, shadowed(engine, arrow) as shadow:
        assert unsealed(memory().read(READING)) == {("a",): (2,), (None,): (1,)}
    assert shadow.read == 1
    unsealed(memory().read(READING))
    assert shadow.read == 1


def test_a_table_that_changes_is_seen() -> None:
    with DuckDB(threads=1) as engine, shadowed(engine, arrow):
        referee = memory()
        unsealed(referee.read(READING))
        referee.register("t", ROWS[:1], {"ward": T})
        assert unsealed(referee.read(READING)) == {("a",): (1,)}


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_engine: DuckDB, reading: Reading) -> ExactGroups:
        return sealed({("a",): (3,)}, reading)

    monkeypatch.setattr(DuckDB, "read", wrong)
    with (
        DuckDB(threads=1) as engine,
        shadowed(engine, arrow),
        pytest.raises(AssertionError, match="in another way"),
    ):
        unsealed(memory().read(READING))


def test_a_costly_engine_is_asked_for_the_first_readings_of_a_test() -> None:
    with DuckDB(threads=1) as engine, shadowed(engine, arrow, most=2) as shadow:
        referee = memory()
        for _ in range(3):
            unsealed(referee.read(READING))
    assert shadow.read == 2
