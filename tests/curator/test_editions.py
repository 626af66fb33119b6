"""Releases from before noise was for the groups that are shown: they stay what they were, and cost nothing again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet import Budget, Curator, Limits
from discreet.curator.replay import replay
from discreet.engines import Memory
from discreet.errors import QueryFailed
from discreet.measurement.program.program import ReleaseFormat
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.readings import Reading
from discreet.privacy import Loss
from tests.curator.editions import as_of

ROWS = [{"id": n // 3, "g": "fm"[n % 2], "age": 20 + n % 60, "x": n % 9} for n in range(300)]


class Stopping(Memory):
    """Stops a question the first time it reads."""

    stopped = False

    def read(self, reading: Reading) -> ExactGroups:
        if not self.stopped:
            self.stopped = True
            raise KeyboardInterrupt
        return super().read(reading)


@contextmanager
def as_before() -> Iterator[None]:
    """Curators as they were when limits alone decided."""
    with pytest.MonkeyPatch.context() as patch:
        as_of(patch, ReleaseFormat.BY_LIMITS)
        yield


def curator(path: Path, *, engine: Memory | None = None, budget: Loss | None = None) -> Curator:
    made = Curator.for_tests(path / "book", engine=engine or Memory(), bits=SeededBits(3))
    declared: dict[str, Any] = {"keys": {"g": ["f", "m"]}, "bounds": {"age": (0, 120), "x": (0, 9)}, "unit": "id"}
    types = {"id": "int", "g": "text", "age": "int", "x": "int"}
    given = budget or Budget(epsilon=1000, delta="1e-2")
    made.protect(ROWS, name="t", types=types, budget=given, max_groups=9, max_rows=2, neighbours="replace", **declared)
    return made


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SELECT g, COUNT(*) AS n FROM t GROUP BY g", {"epsilon": 1}),
    ("SELECT g, COUNT(*) AS n, AVG(x) AS m, MEDIAN(age) AS h FROM t GROUP BY g", {"epsilon": 2}),
    ("SELECT g, QUANTILE(x, 0.9) AS q, MODE(age // 10) AS z FROM t GROUP BY g", {"epsilon": 1}),
    ("SELECT g, STDDEV(x) AS d FROM t GROUP BY g", {"epsilon": 1, "delta": "1e-6"}),
    ("SELECT g, COUNT(*) AS n FROM t WHERE g = 'f' AND x > 2 GROUP BY g", {"epsilon": 1}),
    ("SELECT age // 10 AS b, COUNT(*) AS n FROM t WHERE age < 40 GROUP BY b", {"epsilon": 1}),
    ("SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP (g)", {"epsilon": 1}),
    ("SELECT g, COUNT(*) AS n FROM t WHERE x > 1 GROUP BY g", {"within": 100, "max_epsilon": 5}),
    ("SELECT g, SUM(x) AS s FROM t GROUP BY g", {"epsilon": 9, "limits": Limits(4, 1)}),
]


@pytest.mark.ci
def test_a_release_stays_what_it_was(tmp_path: Path) -> None:
    """Its groups, numbers and intervals, for nothing; a larger budget buys a release with less noise."""
    with as_before():
        old = curator(tmp_path)
        first = [old.ask(sql, key=f"k{i}", **options) for i, (sql, options) in enumerate(QUESTIONS)]
        old.close()
    now = curator(tmp_path)
    spent = now.budget("t").spent
    for answer, (place, (sql, options)) in zip(first, enumerate(QUESTIONS), strict=True):
        again = now.ask(sql, **options)
        assert (again.replayed, again.records) == (True, answer.records), sql
        if "epsilon" in options:  # an error that is asked for needs a smaller epsilon now: another request
            assert now.ask(sql, key=f"k{place}", **options).records == answer.records
    assert str(now.budget("t").spent) == str(spent)
    sql, options = QUESTIONS[0]
    fresh = now.ask(sql, epsilon=2)
    assert not fresh.replayed
    for one, other in zip(fresh.records, first[0].records, strict=True):
        assert 8 * (one["n_high"] - one["n_low"]) < other["n_high"] - other["n_low"]


def test_what_follows_from_an_old_release_is_as_noisy_as_it_is(tmp_path: Path) -> None:
    with as_before():
        old = curator(tmp_path)
        first = old.ask(QUESTIONS[0][0], epsilon=1)
        old.close()
    now = curator(tmp_path)
    one = now.ask("SELECT g, COUNT(*) AS n FROM t WHERE g = 'm' GROUP BY g", epsilon="1/20")
    assert (one.replayed, [record["n"] for record in one.records]) == (True, [first.records[1]["n"]])
    assert not now.ask("SELECT g, COUNT(*) AS n FROM t WHERE g = 'm' GROUP BY g", epsilon=1).replayed


def stopped_before(path: Path, budget: Loss) -> str:
    """Has a question of before be stopped after its charge, and returns what was spent."""
    with as_before():
        old = curator(path, engine=Stopping(), budget=budget)
        with pytest.raises(KeyboardInterrupt):
            old.ask(QUANTILE, epsilon=1, key="once")
        spent = old.budget("t").spent
        old.close()
    return str(spent)


QUANTILE = "SELECT g, QUANTILE(x, 0.9) AS q FROM t GROUP BY g"


def test_a_charge_of_before_is_run_by_the_rules_of_today(tmp_path: Path) -> None:
    spent = stopped_before(tmp_path, Budget(epsilon=1000))
    now = curator(tmp_path, budget=Budget(epsilon=1000))
    answer = now.ask(QUANTILE, epsilon=1, key="once")
    assert not answer.replayed
    assert now.ask(QUANTILE, epsilon=1, key="once").records == answer.records
    assert now.ask(QUANTILE, epsilon=1).replayed
    (last,) = now._ledger.read_answers(now.entries()[-1].content["replay_key"])
    assert json.loads(last.payload)["version"] == ReleaseFormat.NOW
    assert str(now.budget("t").spent) == spent


def test_a_charge_of_before_that_pays_for_less_is_not_run(tmp_path: Path) -> None:
    """In rho, points in few groups cost more than in many, for the same epsilon; nothing is read for the charge."""
    spent = stopped_before(tmp_path, Budget(rho=100))
    engine = Stopping()
    now = curator(tmp_path, engine=engine, budget=Budget(rho=100))
    with pytest.raises(QueryFailed):
        now.ask(QUANTILE, epsilon=1, key="once")
    assert (engine.stopped, str(now.budget("t").spent)) == (False, spent)


def test_mutant_every_release_is_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be shown with intervals that are too short, or not found and charged again."""
    monkeypatch.setattr(replay, "edition_of", lambda _: ReleaseFormat.NOW)
    with pytest.raises((AssertionError, QueryFailed)):
        test_a_release_stays_what_it_was(tmp_path)
