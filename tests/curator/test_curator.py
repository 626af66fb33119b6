"""The order of things: parse, choose, charge, read, noise, finish; and nothing is read, spent or shown besides."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from discreet.curator import Curator
from discreet.engines import DuckDB, Memory
from discreet.errors import (
    AccountLocked,
    InsufficientBudget,
    InvalidParameter,
    LedgerError,
    NotPermitted,
    QueryFailed,
    UnknownTable,
    UnsupportedQuery,
)
from discreet.ledger import Book
from discreet.noise import SecureBits, SeededBits
from discreet.plan.frame import count, mean
from discreet.plan.reading import Groups, Reading
from discreet.plan.schema import Limits
from discreet.privacy import Budget, Loss
from tests.curator.clinic import DECLARED, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits GROUP BY ward"


class Spy(Memory):
    """Counts reads, and asks a question before each."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.before: Any = lambda: None

    def read(self, reading: Reading) -> Groups:
        self.reads += 1
        self.before()
        return super().read(reading)


def clinic(
    budget: Loss | None = None, *, ledger: str = ":memory:", engine: Memory | None = None, **declared: Any
) -> Curator:
    curator = Curator.for_tests(ledger, engine=engine or Memory(), bits=SeededBits(11))
    options: dict[str, Any] = {"unit": "patient", "max_groups": 3, "max_rows": 2, "version": "1"}
    options |= DECLARED | declared
    curator.protect(visits(3, patients=200), name="visits", budget=budget or Budget(epsilon=2, delta=1e-6), **options)
    return curator


def test_an_answer_has_intervals_cost_and_rest() -> None:
    answer = clinic(Budget(epsilon=1)).ask(BY_WARD, epsilon=0.25)
    assert answer.columns == ("ward", "n", "n_low", "n_high", "cost", "cost_low", "cost_high")
    assert [row["ward"] for row in answer] == ["A", "B", "C"]
    assert all(row["n_low"] <= row["n"] <= row["n_high"] for row in answer)
    assert all(0 <= row["cost_low"] <= row["cost"] <= row["cost_high"] <= 1000 for row in answer)
    assert (str(answer.cost), str(answer.remaining)) == ("epsilon=0.25", "epsilon=0.75")
    assert not answer.replayed
    assert not answer.private  # seeded, and it says so
    assert "<table>" in answer._repr_html_()


def test_the_charge_is_in_the_book_before_a_row_is_read() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    seen: list[str] = []
    spy.before = lambda: seen.append(str(curator.budget("visits").remaining))
    curator.ask(COUNT, epsilon=0.25)
    assert seen == ["epsilon=0.75"]


def test_explaining_and_refusing_read_nothing_and_cost_nothing() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    curator.explain(BY_WARD, epsilon=0.1)
    refused: list[tuple[str, dict[str, Any], type[Exception]]] = [
        ("SELECT patient FROM visits", {"epsilon": 1}, UnsupportedQuery),
        ("SELECT MAX(age) FROM visits", {"epsilon": 1}, UnsupportedQuery),
        ("SELECT COUNT(*) FROM nowhere", {"epsilon": 1}, UnknownTable),
        ("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", {"epsilon": 1}, UnsupportedQuery),
        (COUNT, {"epsilon": 5}, InsufficientBudget),
        (COUNT, {"epsilon": -1}, InvalidParameter),
        (COUNT, {"epsilon": math.nan}, InvalidParameter),
        (COUNT, {"within": 5}, InvalidParameter),
        (COUNT, {"epsilon": 0.1, "delta": 1e-9}, InvalidParameter),
        (COUNT, {"epsilon": 0.1, "confidence": 1}, InvalidParameter),
    ]
    for sql, options, error in refused:
        with pytest.raises(error):
            curator.ask(sql, **options)
    assert spy.reads == 0
    assert str(curator.budget("visits").remaining) == "epsilon=1"


def test_the_same_question_again_is_free() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    first = curator.ask(BY_WARD, epsilon=0.25)
    again = curator.ask(BY_WARD.lower().replace("visits", "  visits"), epsilon=0.25)
    assert again.replayed
    assert again.records == first.records
    assert spy.reads == 1
    assert str(again.remaining) == "epsilon=0.75"
    better = curator.ask(BY_WARD, epsilon=0.5)
    assert not better.replayed
    assert better.records != first.records


def test_whatever_follows_from_a_release_is_free() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    first = curator.ask(BY_WARD, epsilon=0.5)
    sorted_ = "SELECT AVG(charge) AS c, COUNT(*) AS k, ward AS w FROM visits GROUP BY ward HAVING COUNT(*) > 0"
    for sql in (BY_WARD, f"{sorted_} ORDER BY k DESC LIMIT 2", sorted_):
        answer = curator.ask(sql, epsilon=0.25, confidence=0.5)  # a worse one would do: the stored one is given
        assert answer.replayed
        assert {row.get("n", row.get("k")) for row in answer} <= {row["n"] for row in first}
    assert spy.reads == 1
    narrower = curator.ask(BY_WARD, epsilon=0.5, confidence=0.5)
    assert all(a["n_high"] - a["n_low"] < b["n_high"] - b["n_low"] for a, b in zip(narrower, first, strict=True))
    assert str(curator.budget("visits").remaining) == "epsilon=0.5"


def test_a_stored_answer_is_not_for_everybody(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    curator = clinic(Budget(epsilon=1), ledger=ledger)
    curator.ask(COUNT, epsilon=0.25)
    with Book(ledger) as book:
        book.appoint("ana", "analyst", account="visits")
        book.appoint("otto", "auditor", account="visits")
    assert curator.ask(COUNT, epsilon=0.25, analyst="ana").replayed
    for stranger in ("otto", "eve"):
        with pytest.raises(NotPermitted):
            curator.ask(COUNT, epsilon=0.25, analyst=stranger)


def test_what_a_test_released_never_comes_back_as_private(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    assert not clinic(Budget(epsilon=1), ledger=ledger).ask(COUNT, epsilon=0.25).private
    curator = Curator(ledger, engine=Memory())
    options: dict[str, Any] = {"unit": "patient", "max_groups": 3, "max_rows": 2, "version": "1"} | DECLARED
    curator.protect(visits(3, patients=200), name="visits", budget=Budget(epsilon=1), **options)
    answer = curator.ask(COUNT, epsilon=0.25)
    assert answer.private
    assert not answer.replayed


def test_a_closed_curator_answers_nothing() -> None:
    with clinic(Budget(epsilon=1)) as curator:
        curator.ask(COUNT, epsilon=0.25)
    with pytest.raises(LedgerError):
        curator.ask(COUNT, epsilon=0.25)


def test_other_limits_are_another_release() -> None:
    curator = clinic(Budget(epsilon=1))
    curator.ask(COUNT, epsilon=0.25)
    assert not curator.ask(COUNT, epsilon=0.25, limits=Limits(1, 1)).replayed


def test_a_new_version_is_another_question(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    clinic(Budget(epsilon=1), ledger=ledger).ask(COUNT, epsilon=0.25)
    assert clinic(Budget(epsilon=1), ledger=ledger).ask(COUNT, epsilon=0.25).replayed
    assert not clinic(Budget(epsilon=1), ledger=ledger, version="2").ask(COUNT, epsilon=0.25).replayed


def test_ten_tenths_and_no_more() -> None:
    curator = clinic(Budget(epsilon=1))
    for age in range(10):
        curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}", epsilon=0.1)
    with pytest.raises(InsufficientBudget):
        curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age > 10", epsilon=0.1)
    assert curator.verify().sequence == len(curator.history("visits"))


class Broken(Spy):
    def _prepare(self, reading: Reading) -> Any:
        return (1 / 0 for _ in reading.statistics)


def test_a_failed_read_stays_charged_and_locks_after_three() -> None:
    curator = clinic(Budget(epsilon=1), engine=Broken())
    for age in range(3):
        with pytest.raises(QueryFailed):
            curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}", epsilon=0.1)
    assert str(curator.budget("visits").remaining) == "epsilon=0.7"
    with pytest.raises(AccountLocked):
        curator.ask(COUNT, epsilon=0.1)


def test_the_fluent_front_asks_the_same_question() -> None:
    curator = clinic(Budget(epsilon=1))
    frame = curator.table("visits").where("age >= 40").group_by("ward").agg(n=count(), cost=mean("charge"))
    curator.ask(frame.question, epsilon=0.25)
    sql = "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits WHERE age >= 40 GROUP BY ward"
    assert curator.ask(sql, epsilon=0.25).replayed


def test_private_groups_are_those_with_many_people() -> None:
    rows = [{"patient": i, "ward": "A", "age": 1, "charge": 1.0, "kind": "common"} for i in range(300)]
    rows += [{"patient": 999, "ward": "A", "age": 1, "charge": 1.0, "kind": "rare"}]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    curator.protect(rows, name="visits", unit="patient", budget=Budget(epsilon=3, delta=1e-6), **DECLARED)
    answer = curator.ask("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind", epsilon=1, delta=1e-8)
    assert [row["kind"] for row in answer] == ["common"]
    assert any("only if their noisy count" in note for note in answer.notes)


def test_limits_are_arguments_of_a_question() -> None:
    curator = clinic(Budget(epsilon=100))
    one = curator.ask(COUNT, epsilon=20, limits=Limits(1, 1))[0]["n"]
    two = curator.ask(COUNT, epsilon=20, limits=Limits(1, 2))[0]["n"]
    assert 190 <= one <= 210  # 200 patients, one row each
    assert two > one + 50


def test_answers_agree_on_both_engines_at_a_large_budget() -> None:
    frame = pd.DataFrame(visits(3, patients=200))
    answers = []
    for engine, source in ((Memory(), visits(3, patients=200)), (DuckDB(), frame)):
        curator = Curator.for_tests(engine=engine, bits=SeededBits(1))
        curator.protect(
            source, name="visits", budget=Budget(epsilon=10**9), unit="patient", max_groups=3, max_rows=2, **DECLARED
        )
        answers.append(curator.ask(BY_WARD, epsilon=10**6))
    salted = [{k: row[k] for k in ("ward", "n")} for row in answers[0]]
    assert salted[0]["ward"] == answers[1][0]["ward"]
    assert all(abs(a["n"] - b["n"]) <= 40 for a, b in zip(*answers, strict=True))  # salts differ, and so do kept rows


def test_a_curator_outside_tests_draws_secure_noise() -> None:
    curator = Curator(engine=Memory())
    curator.protect(visits(1), name="visits", budget=Budget(epsilon=1), unit="patient", **DECLARED)
    assert curator.ask(COUNT, epsilon=0.1).private
    assert isinstance(curator._bits, SecureBits)


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ({"bounds": {"nothing": (0, 1)}}, "bounds"),
        ({"bounds": {"age": (5, 5)}}, "bounds"),
        ({"bounds": {"ward": (0, 1)}}, "bounds['ward']"),
        ({"keys": {"charge": [1.0]}}, "keys['charge']"),
        ({"keys": {"ward": ["A", "A"]}}, "keys['ward']"),
        ({"keys": {"ward": [1]}}, "keys['ward']"),
        ({"unit": "charge"}, "unit"),
        ({"unit": "nobody"}, "unit"),
        ({"max_groups": 0}, "groups"),
        ({"types": {"age": "integer"}}, "type"),
        ({"neighbours": "both"}, "neighbours"),
    ],
)
def test_wrong_declarations_are_refused(declared: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        clinic(Budget(epsilon=1), **declared)
    assert refused.value.name == name


def test_declaring_again_is_a_no_op_and_otherwise_refused(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    clinic(Budget(epsilon=1), ledger=ledger)
    clinic(Budget(epsilon=1), ledger=ledger)
    with pytest.raises(InvalidParameter):
        clinic(Budget(epsilon=1), ledger=ledger, max_rows=5)
    with pytest.raises(InvalidParameter):
        clinic(Budget(epsilon=9), ledger=ledger)


def test_tables_about_the_same_people_share_a_budget() -> None:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    budget = Budget(epsilon=1)
    curator.protect(visits(1), name="visits", unit="patient", account="patients", budget=budget, **DECLARED)
    labs = [{"person": 1, "result": 3}]
    types = {"person": "int", "result": "int"}
    curator.protect(labs, name="labs", unit="person", account="patients", types=types)
    curator.ask(COUNT, epsilon=0.5)
    assert str(curator.budget("labs").remaining) == "epsilon=0.5"
    with pytest.raises(InvalidParameter) as refused:
        curator.protect(labs, name="rows", account="patients", types=types)
    assert refused.value.name == "unit"


RUNS = 400


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_count_intervals_cover_as_often_as_their_law_says(epsilon: Fraction) -> None:
    """Discrete Laplace: P(|Z| <= t) = 1 - 2 a^(t + 1) / (1 + a); four standard errors on 400 fixed draws."""
    rows = [{"patient": i, "ward": "A", "age": 1, "charge": 1.0, "kind": "x"} for i in range(50)]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(17))
    curator.protect(rows, name="visits", budget=Budget(epsilon=10**6), **DECLARED)
    hits = 0
    for i in range(RUNS):
        row = curator.ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > -{i + 1}", epsilon=epsilon)[0]
        hits += row["n_low"] <= 50 <= row["n_high"]
        half = row["n_high"] - row["n"]
    a = math.exp(-float(epsilon))
    truth = 1 - 2 * a ** (half + 1) / (1 + a)
    assert truth >= 0.95
    assert abs(hits / RUNS - truth) <= 4 * math.sqrt(truth * (1 - truth) / RUNS)
