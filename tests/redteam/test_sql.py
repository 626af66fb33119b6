"""Class D: hostile questions. What could fail, show, count or reach anything else is refused before it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.audit.queries.recorder import RecordingEngine, ask
from discreet.engines import DuckDB, Engine, Memory
from discreet.engines.memory import engine as memory
from discreet.errors import QueryFailed, UnknownTable, UnsupportedQuery
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.readings import Reading, Statistic
from discreet.plan.model.schema import Limits
from discreet.plan.model.types import Type
from discreet.privacy import PureDP
from tests.cases import every
from tests.open_groups import unsealed
from tests.redteam.attacks import ATTACKS, BOMBS, V
from tests.redteam.clinics import (
    APPROXIMATE,
    CROWD,
    Row,
    Untouchable,
    asking,
    clinic,
    neighbours,
    planned,
    row,
    spent,
)

BOTH: list[Callable[[], Engine]] = [Memory, lambda: DuckDB(threads=1)]
engines = pytest.mark.parametrize("engine", BOTH, ids=["memory", "duckdb"])


@pytest.fixture(scope="module")
def closed() -> Any:
    return clinic(engine=Untouchable(), budget=APPROXIMATE)


@pytest.mark.ci
@every(("name", "sql"), ATTACKS)
def test_refused_before_anything_is_read_or_charged(closed: Any, name: str, sql: str) -> None:
    """RT-038, RT-045 to RT-056, RT-107 to RT-110, and ways to hide them."""
    before = spent(closed)
    with pytest.raises((UnsupportedQuery, UnknownTable)) as refused:
        closed.ask(sql, epsilon=1, delta=1e-6)
    error: Any = refused.value
    assert error.hint, name
    assert error.__cause__ is None
    assert spent(closed) == before


def test_the_list_of_attacks_is_long() -> None:
    assert len(ATTACKS) >= 150
    assert len(set(ATTACKS)) == len(ATTACKS)


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(closed: Any, name: str) -> None:
    """RT-112: nesting and length are judged before anything parses the text."""
    with pytest.raises(UnsupportedQuery):  # a parser that falls over takes minutes, or the process
        closed.ask(BOMBS[name], epsilon=1)


def test_refusals_name_declared_things_only(closed: Any) -> None:
    """RT-092: hints are made of the schema, never of the data."""
    for sql in (
        f"{V} WHERE agee > 1",
        "SELECT COUNT(*) AS n FROM visit",
        f"{V} WHERE ward = 5",
        f"{V} WHERE kid = 'x'",
    ):
        with pytest.raises((UnsupportedQuery, UnknownTable)) as refused:
            closed.ask(sql, epsilon=1)
        said = str(refused.value)
        assert not any(secret in said for secret in ("12.5", "check", "44", "110.0"))


# -------------------------------------------------------------------------------------------- accepted, and total

TOTAL = (
    f"{V} WHERE 1 / (age - 55) > 0",
    f"{V} WHERE age // (age - 55) >= 0 OR age % (age - 55) = 0",
    "SELECT SUM(GREATEST(LEAST(1 / (age - 55), 5), -5)) AS s FROM visits",
    f"{V} WHERE CAST(note AS INT) / CAST(kind AS INT) > 0",
    f"{V} WHERE SUBSTRING(note, -9223372036854775807, 9223372036854775807) = SUBSTRING(note, age, -age)",
    f"{V} WHERE ABS(age * 9223372036854775807) + 9223372036854775807 > 0",
    f"{V} WHERE ROUND(charge * 1e308 * 1e308) > 0 OR FLOOR(1e308 * charge) < 0",
    "SELECT age // (age - 55) AS k, COUNT(*) AS n FROM visits GROUP BY k",
)


@engines
@pytest.mark.parametrize("sql", TOTAL)
def test_a_row_that_divides_by_zero_says_nothing(sql: str, engine: Callable[[], Engine]) -> None:
    """RT-035: the value that only one person has: the same status, charge and shape without them."""
    pair = neighbours([*CROWD, row(99, age=55), row(99, age=55, note="x")], CROWD, engine, budget=APPROXIMATE)
    seen = pair.judge(asking(sql, 1, "1/100", Limits(2, 2), private="GROUP BY" in sql))
    assert seen.status == "answered"


def test_a_person_may_be_asked_for_and_it_costs_as_much() -> None:
    """RT-047: WHERE id = 7, and the question without them: both with full noise, both charged."""
    curator = clinic(budget=APPROXIMATE)
    whole, single, without = V, f"{V} WHERE patient = 7", f"{V} WHERE patient <> 7"
    scales = {planned(curator, sql).measures[0].scales for sql in (whole, single, without)}
    assert len(scales) == 1
    costs = [curator.ask(sql, epsilon=1, delta=0).cost for sql in (whole, single, without)]
    assert [entry.kind for entry in curator.history("visits")].count("charge") == 3
    assert len(set(map(str, costs))) == 1
    pair = neighbours([*CROWD, row(99)], CROWD)
    for sql in (f"{V} WHERE patient = 99", f"{V} WHERE patient <> 99"):
        assert pair.judge(asking(sql)).status == "answered"


AFTER = (
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 5 ORDER BY n DESC LIMIT 1",
    "SELECT ward, SUM(charge) AS s FROM visits GROUP BY ward HAVING AVG(age) > 30 ORDER BY SUM(age), ward DESC",
    "SELECT w FROM (SELECT ward AS w, COUNT(*) AS n FROM visits GROUP BY ward) WHERE n > 4 ORDER BY n LIMIT 2",
    "SELECT ward, CASE WHEN COUNT(*) > 4 THEN 'many' ELSE 'few' END AS size FROM visits GROUP BY ward ORDER BY 2",
)


@pytest.mark.parametrize("sql", AFTER)
def test_what_comes_after_the_noise_sees_nothing_else(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """RT-045: HAVING, ORDER BY and LIMIT on another table, given the same noisy numbers, give the same answer."""

    def fixed(measure: AdditiveNoise, _exact: Any, groups: int, _bits: Any) -> Any:
        rows = [[(7 * i + 3 * j) * 2**20 for j in range(len(measure.scales))] for i in range(groups)]
        return np.array(rows, dtype=object)

    monkeypatch.setattr(AdditiveNoise, "release", fixed)
    tables: list[list[Row]] = [[], CROWD, [row(i, ward="C", age=119) for i in range(50)]]
    answers = [repr(clinic(table).ask(sql, epsilon=1).records) for table in tables]
    assert len(set(answers)) == 1


ACCEPTED_AND_CHARGED = (
    "SELECT SUM(1 / 3.0) AS s FROM visits",
    "SELECT AVG(0.1 * 3) AS m FROM visits",
    "SELECT SUM(charge + 1e17) AS s FROM visits",
    "SELECT SUM(age * 100000000000000000) AS s FROM visits",
)


@pytest.mark.parametrize("sql", ACCEPTED_AND_CHARGED)
def test_what_is_charged_is_answered(sql: str) -> None:
    """A question is refused before it is charged, with a reason and a remedy, or it is answered."""
    watched = RecordingEngine(Memory())
    curator = clinic(engine=watched)
    before = spent(curator)
    seen = ask(curator, watched, asking(sql))
    assert seen.status == "answered" or (seen.status, spent(curator)) == ("refused", before)


@pytest.mark.parametrize("argument", ["COALESCE(charge, 1e308)", "charge * 1e-305"])
def test_bounds_that_no_grid_has_are_refused_in_words(argument: str) -> None:
    """A question that is refused for its numbers says why and what to do."""
    watched = RecordingEngine(Memory())
    seen = ask(clinic(engine=watched), watched, asking(f"SELECT SUM({argument}) AS s FROM visits"))
    assert seen.status in ("answered", "refused")


class Broken(Memory):
    """A table whose read fails with a person's value in the message."""

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        return lambda: self._fail(reading)

    def _fail(self, reading: Reading) -> Any:
        raise ValueError(self._rows[reading.table][0]["note"])


def test_every_failure_of_an_engine_is_the_same() -> None:
    """RT-042: one fixed sentence, nothing of the cause, charged, and after three the account is locked."""
    texts = set()
    for note in ("ZZ-CANARY-7", "other"):
        curator = clinic([row(1, note=note)], engine=Broken())
        with pytest.raises(QueryFailed) as failed:
            curator.ask(V, epsilon=1)
        texts.add((str(failed.value), failed.value.args))
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        assert str(curator.budget("visits").spent) == str(PureDP(1))
    assert len(texts) == 1


# ------------------------------------------------------------------------------------------ known, not yet closed


@pytest.mark.parametrize("call", ["GREATEST(3, age, age)", "LEAST(charge, weight, weight)"])
def test_a_column_twice_in_greatest(call: str) -> None:
    """RT-039: an accepted question fails on DuckDB, is charged, and three of them lock the account."""
    watched = RecordingEngine(DuckDB(threads=1))
    seen = ask(clinic(engine=watched), watched, asking(f"SELECT COUNT({call}) AS n FROM visits"))
    assert seen.status == "answered"


def test_failures_of_the_engine_in_python_are_hidden_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """RT-042: whatever cannot be computed, an engine that has touched rows has one error, and no cause."""

    def broken(_: object, row: dict[str, object]) -> object:
        raise ValueError(row)

    monkeypatch.setattr(memory, "evaluate", broken)
    engine = Memory()
    engine.register("t", [{"x": "ZZ-CANARY-7"}], {"x": Type.TEXT})
    keys = (ColumnRef("x", Type.TEXT),)
    with pytest.raises(QueryFailed) as caught:
        unsealed(engine.read(Reading(table="t", keys=keys, statistics=(Statistic(kind="rows"),))))
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("delta", [0, 0.01])
def test_finishing_is_total(delta: float) -> None:
    """What follows the noise can fail for no one; a stored answer that cannot be finished would fail for ever."""
    curator = clinic(budget=APPROXIMATE)
    curator.ask("SELECT AVG(COALESCE(charge, 1e300)) AS m FROM visits", epsilon=1e-9, delta=delta)


def test_an_interval_holds_its_number() -> None:
    """At a low confidence the interval may be narrow, but its ends stand around the number."""
    for seed in range(20):
        record = clinic(seed=seed).ask(
            "SELECT COUNT(*) AS n, AVG(charge) AS m FROM visits", epsilon=1, confidence=0.001
        )[0]
        assert record["n_low"] <= record["n"] <= record["n_high"]
