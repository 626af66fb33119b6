"""The order of things: parse, choose, charge, read, noise, finish; and nothing is read, spent or shown besides."""

from __future__ import annotations

import datetime as dt
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
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
from discreet.ledger import Ledger, Role
from discreet.noise import SecureBits, SeededBits
from discreet.plan.model.nodes import Value
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget, Loss
from discreet.sql.frame import count, mean
from tests.curator.clinic import DECLARED, visits
from tests.curator.spies import BY_WARD, COUNT, Broken, Spy, clinic, filtered


def test_an_answer_has_intervals_cost_and_rest() -> None:
    answer = clinic(Budget(epsilon=1)).ask(BY_WARD, epsilon=0.25)
    assert answer.columns == ("ward", "n", "n_low", "n_high", "cost", "cost_low", "cost_high")
    assert [row["ward"] for row in answer] == ["A", "B", "C"]
    assert all(row["n_low"] <= row["n"] <= row["n_high"] for row in answer)
    assert all(0 <= row["cost_low"] <= row["cost"] <= row["cost_high"] <= 1000 for row in answer)
    assert (str(answer.cost.details), str(answer.remaining.loss)) == ("epsilon=0.25", "epsilon=0.75")
    assert not answer.replayed
    assert not answer.private  # seeded, and it says so
    assert "<table>" in answer._repr_html_()


def test_the_charge_is_in_the_ledger_before_a_row_is_read() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    seen: list[str] = []
    spy.before = lambda: seen.append(str(curator.budget("visits").remaining.loss))
    curator.ask(COUNT, epsilon=0.25)
    assert seen == ["epsilon=0.75"]


def test_explaining_and_refusing_read_nothing_and_cost_nothing() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    curator.explain(BY_WARD, epsilon=0.1)
    refused: list[tuple[str, dict[str, Any], type[Exception]]] = [
        ("SELECT patient FROM visits", {"epsilon": 1}, UnsupportedQuery),
        ("SELECT ANY_VALUE(age) FROM visits", {"epsilon": 1}, UnsupportedQuery),
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
    assert str(curator.budget("visits").remaining.loss) == "epsilon=1"


def test_the_same_question_again_is_free() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), engine=spy)
    first = curator.ask(BY_WARD, epsilon=0.25)
    again = curator.ask(BY_WARD.lower().replace("visits", "  visits"), epsilon=0.25)
    assert again.replayed
    assert again.records == first.records
    assert spy.reads == 1
    assert str(again.remaining.loss) == "epsilon=0.75"
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
    assert str(curator.budget("visits").remaining.loss) == "epsilon=0.5"


def test_a_stored_answer_is_not_for_everybody(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    curator = clinic(Budget(epsilon=1), ledger=ledger)
    curator.ask(COUNT, epsilon=0.25)
    with Ledger(ledger) as book:
        book.stewardship.appoint("ana", "analyst", account="visits")
        book.stewardship.appoint("otto", "auditor", account="visits")
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
        curator.ask(filtered(age), epsilon=0.1)
    with pytest.raises(InsufficientBudget):
        curator.ask(filtered(10), epsilon=0.1)
    assert curator.verify().sequence == len(curator.history("visits"))


def test_a_failed_read_stays_charged_and_locks_after_three() -> None:
    curator = clinic(Budget(epsilon=1), engine=Broken())
    for age in range(3):
        with pytest.raises(QueryFailed):
            curator.ask(filtered(age), epsilon=0.1)
    assert str(curator.budget("visits").remaining.loss) == "epsilon=0.7"
    with pytest.raises(AccountLocked):
        curator.ask(COUNT, epsilon=0.1)


def test_the_fluent_front_asks_the_same_question() -> None:
    curator = clinic(Budget(epsilon=1))
    frame = curator.table("visits").where("age >= 40").group_by("ward").agg(n=count(), cost=mean("charge"))
    answer = frame.ask(epsilon=0.25, analyst="ana", limits=Limits(2, 1), confidence=0.9, key="k")
    sql = "SELECT ward, COUNT(*) AS n, AVG(charge) AS cost FROM visits WHERE age >= 40 GROUP BY ward"
    again = curator.ask(sql, epsilon=0.25, limits=Limits(2, 1), confidence=0.9)
    assert again.replayed
    assert again.records == answer.records
    assert curator.ask(frame.question, epsilon=0.25, limits=Limits(2, 1)).replayed
    assert frame.explain(epsilon=0.25) == curator.explain(sql, epsilon=0.25)
    assert curator.history("visits")[-2].who == "ana"


def test_every_step_of_a_frame_can_be_asked() -> None:
    curator = clinic(Budget(epsilon=1))
    frame = curator.table("visits").group_by("ward").agg(n=count())
    first = frame.ask(epsilon=0.5)
    assert frame.having("n > -1000").order_by("n DESC").limit(2).ask(epsilon=0.5).replayed
    assert len(first) == 3
    assert "Curator" not in repr(frame)
    with pytest.raises(InvalidParameter):
        curator.table("visits").ask(epsilon=0.5)


def test_private_groups_are_those_with_many_people() -> None:
    rows = [{"patient": i, "ward": "A", "age": 1, "charge": 1.0, "kind": "common"} for i in range(300)]
    rows += [{"patient": 999, "ward": "A", "age": 1, "charge": 1.0, "kind": "rare"}]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    curator.protect(
        rows, name="visits", unit="patient", budget=Budget(epsilon=3, delta=1e-6), **{"max_rows": 1, **DECLARED}
    )
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
    curator.protect(visits(1), name="visits", budget=Budget(epsilon=1), unit="patient", **{"max_rows": 1, **DECLARED})
    assert curator.ask(COUNT, epsilon=0.1).private
    assert isinstance(curator._releaser.bits, SecureBits)


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ({"bounds": {"nothing": (0, 1)}}, "bounds"),
        ({"bounds": {"age": (5, 5)}}, "bounds"),
        ({"bounds": {"ward": (0, 1)}}, "bounds['ward']"),
        ({"bounds": {"age": 120}}, "bounds['age']"),
        ({"bounds": {"age": "09"}}, "bounds['age']"),
        ({"bounds": (0, 120)}, "bounds"),
        ({"keys": ["ward"]}, "keys"),
        ({"types": ["int"]}, "types"),
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


@pytest.mark.parametrize("budget", [2, "2", {"epsilon": 2}, [2]])
def test_a_budget_that_is_none_is_refused(budget: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"Budget\(epsilon=1\)") as refused:
        clinic(budget)
    assert refused.value.name == "budget"


@pytest.mark.parametrize("sql", [COUNT, BY_WARD])
def test_a_forgotten_unit_is_seen_in_every_answer(sql: str) -> None:
    told = "Each row is protected as one person, since no column of ids is declared (unit)."
    assert told in clinic(Budget(epsilon=1), unit=None).ask(sql, epsilon=0.1).notes
    assert told not in clinic(Budget(epsilon=1)).ask(sql, epsilon=0.1).notes


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
    curator.protect(
        visits(1), name="visits", unit="patient", account="patients", budget=budget, **{"max_rows": 1, **DECLARED}
    )
    labs = [{"person": 1, "result": 3}]
    types = {"person": "int", "result": "int"}
    curator.protect(labs, name="labs", unit="person", max_rows=1, account="patients", types=types)
    curator.ask(COUNT, epsilon=0.5)
    assert str(curator.budget("labs").remaining.loss) == "epsilon=0.5"
    with pytest.raises(InvalidParameter) as refused:
        curator.protect(labs, name="rows", account="patients", types=types)
    assert refused.value.name == "unit"


RUNS = 200


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), pytest.param(Fraction(3), marks=pytest.mark.slow)])
def test_count_intervals_cover_as_often_as_their_law_says(epsilon: Fraction) -> None:
    """Discrete Laplace: P(|Z| <= t) = 1 - 2 a^(t + 1) / (1 + a); four standard errors on 200 fixed draws."""
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


def test_stewards_act_and_each_act_is_an_entry() -> None:
    curator = clinic(Budget(epsilon=1), account="patients")
    curator.ask(COUNT, epsilon=0.5)
    amended = curator.amend("patients", budget=Budget(epsilon=3), by="owner", note="agreed by the board")
    assert (amended.total, str(amended.remaining.loss)) == (Budget(epsilon=3), "epsilon=2.5")
    renewed = curator.renew("patients", note="a new year")
    assert (str(renewed.remaining.loss), str(renewed.lifetime), renewed.period) == ("epsilon=3", "epsilon=0.5", 2)
    assert (curator.amend(budget=Budget(epsilon=3)).total, curator.unlock()) == (Budget(epsilon=3), renewed)
    curator.appoint("ana", "analyst", cap=Budget(epsilon="0.25"))
    with pytest.raises(InsufficientBudget):
        curator.ask(filtered(1), epsilon=0.5, analyst="ana")
    with pytest.raises(NotPermitted):
        curator.amend("patients", budget=Budget(epsilon=9), by="ana")
    kinds = [entry.kind for entry in curator.history("patients")]
    assert kinds[-5:] == ["amend", "renew", "amend", "unlock", "appoint"]
    assert curator.history("visits") == curator.history("patients") == curator.entries("patients")
    assert (curator.role("patients", "ana"), curator.accounts()) == (Role.ANALYST, ("patients",))
    curator.verify()


def test_budgets_by_table_and_by_account() -> None:
    curator = clinic(Budget(epsilon=1), account="patients")
    assert curator.budget("visits") == curator.budget("patients")
    assert curator.budget("visits").facts == curator.balance("patients").facts
    for look in (curator.budget, curator.history):
        with pytest.raises(UnknownTable) as refused:
            look("patient")
        assert "patients" in refused.value.hint
    with pytest.raises(InvalidParameter):
        curator.amend("visits", budget=Budget(epsilon=3))


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=0.1)])
def test_the_largest_pure_question_is_told_and_can_be_asked(budget: Loss) -> None:
    curator = clinic(budget)
    curator.ask(COUNT, epsilon=0.1)
    curator.ask(BY_WARD, epsilon=0.2)
    answer = curator.ask(filtered(0), epsilon=0.05, delta=0)
    remaining = curator.budget("visits").remaining
    assert answer.remaining == remaining
    with pytest.raises(InsufficientBudget):
        curator.ask(filtered(1), epsilon=remaining.epsilon * Fraction(101, 100), delta=0)
    curator.ask(filtered(1), epsilon=remaining.epsilon, delta=0)
    assert curator.budget("visits").remaining.epsilon < remaining.epsilon / 10**6


@pytest.mark.parametrize("budget", [Budget(epsilon=1, delta=1e-6), Budget(rho="1/3", delta="1e-6")])
@pytest.mark.parametrize("delta", [None, "1e-8"])
def test_what_a_refusal_proposes_for_private_groups_keeps_their_delta(budget: Loss, delta: Any) -> None:
    curator = clinic(budget)
    curator.ask(COUNT, epsilon="1/3")
    private = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
    with pytest.raises(InsufficientBudget) as refused:
        curator.ask(private, epsilon=5, delta=delta)
    proposed = re.search(r"Ask with epsilon=([0-9.e-]+), or repeat", refused.value.hint)
    assert proposed is not None
    assert curator.ask(private, epsilon=proposed[1], delta=delta).cost.epsilon == Fraction(proposed[1])


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho="1/3")])
def test_a_refusal_says_what_can_be_asked_instead(budget: Loss) -> None:
    curator = clinic(budget)
    curator.ask(COUNT, epsilon="1/3")
    with pytest.raises(InsufficientBudget) as refused:
        curator.ask(filtered(1), epsilon=5)
    advice = r"Ask with epsilon=([0-9.e-]+)( and delta=0)?, or repeat an earlier question for free: see history"
    proposed = re.search(advice, refused.value.hint)
    assert proposed is not None
    curator.ask(filtered(1), epsilon=proposed[1], delta=0)
    with pytest.raises(InsufficientBudget):
        curator.ask(filtered(2), epsilon=5)
    assert curator.ask(COUNT, epsilon="1/3").replayed


def test_a_refusal_with_nothing_left_points_to_what_was_released() -> None:
    curator = clinic(Budget(epsilon=1))
    curator.ask(COUNT, epsilon=1)
    with pytest.raises(InsufficientBudget) as refused:
        curator.ask(filtered(1), epsilon=1)
    assert refused.value.hint.startswith("Nothing was spent on account 'visits'. No budget remains for new questions")


def test_a_refusal_heeds_the_analysts_own_cap() -> None:
    curator = clinic(Budget(epsilon=1))
    curator.appoint("ana", "analyst", account="visits", cap=Budget(epsilon="0.25"))
    for epsilon in ("0.5", "5"):  # the cap alone, and the account too
        with pytest.raises(InsufficientBudget) as refused:
            curator.ask(COUNT, epsilon=epsilon, analyst="ana")
        assert "Ask with epsilon=0.25," in refused.value.hint


@pytest.mark.parametrize("delta", [1, 2, "1e6"])
def test_a_delta_is_below_one(delta: Any) -> None:
    curator = clinic()
    with pytest.raises(InvalidParameter) as refused:
        curator.ask(COUNT, epsilon=0.1, delta=delta)
    assert (refused.value.name, str(curator.budget("visits").spent)) == ("delta", "epsilon=0")


@pytest.mark.parametrize("argument", ["1 / 3.0", "charge + 1e17", "COALESCE(charge, 1e308)", "charge * 1e-305"])
def test_what_no_engine_can_add_up_is_refused_before_it_is_charged(argument: str) -> None:
    curator = clinic()
    for act in (curator.ask, curator.explain, curator.rehearse):
        with pytest.raises(UnsupportedQuery):
            act(f"SELECT SUM({argument}) AS s FROM visits", epsilon=0.1)
    balance = curator.budget("visits")
    assert (str(balance.spent), balance.failures) == ("epsilon=0", 0)


def test_an_amended_delta_is_the_one_that_questions_share() -> None:
    curator = clinic(Budget(epsilon=1, delta=1e-6))
    curator.amend("visits", budget=Budget(epsilon=1, delta=1e-10))
    sql = "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind"
    for epsilon in ("0.1", "0.2"):
        curator.ask(sql, epsilon=epsilon)


def test_paths_of_ledgers(tmp_path: Path) -> None:
    with Curator(tmp_path / "book", engine=Memory()) as curator:
        curator.protect(
            visits(1), name="visits", budget=Budget(epsilon=1), unit="patient", **{"max_rows": 1, **DECLARED}
        )
    assert (tmp_path / "book").exists()


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("int", np.arange(2), (0, 1)),
        ("text", np.array(["A", "B"]), ("A", "B")),
        ("timestamp", pd.to_datetime(["2026-01-01"]), (dt.datetime(2026, 1, 1),)),
        ("date", [dt.date(2026, 1, 1)], (dt.date(2026, 1, 1),)),
    ],
)
def test_keys_become_plain_values(kind: str, given: Any, kept: tuple[Value, ...]) -> None:
    curator = Curator(engine=Memory())
    curator.protect([], name="folk", types={"x": kind}, keys={"x": given}, budget=Budget(epsilon=1))
    keys = curator.table("folk").schema.columns["x"].keys
    assert keys == kept
    assert [type(key) for key in keys or ()] == [type(key) for key in kept]
    assert len(curator.ask("SELECT x, COUNT(*) AS n FROM folk GROUP BY x", epsilon=1)) == len(kept)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("int", 2**63),
        ("int", True),
        ("int", 1.0),
        ("text", "\ud800"),
        ("date", dt.datetime(2026, 1, 1)),
        ("timestamp", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        ("bool", 1),
        ("text", None),
    ],
)
def test_keys_that_no_column_can_hold_are_refused(kind: str, key: Value) -> None:
    curator = Curator(engine=Memory())
    with pytest.raises(InvalidParameter) as refused:
        curator.protect([], name="folk", types={"x": kind}, keys={"x": [key]}, budget=Budget(epsilon=1))
    assert refused.value.name == "keys['x']"


def test_an_answer_without_groups_still_has_its_columns() -> None:
    curator = clinic()
    answer = curator.ask("SELECT kind, COUNT(*) AS n, AVG(age) > 50 AS old FROM visits GROUP BY kind", epsilon="0.01")
    assert len(answer) == 0
    assert answer.columns == ("kind", "n", "n_low", "n_high", "old")
    assert list(answer.to_pandas().columns) == list(answer.columns)


def test_an_explanation_prints_errors_facts_and_notes() -> None:
    told = clinic().explain(BY_WARD, epsilon=0.1)
    lines = str(told).splitlines()
    assert lines[0].split("  ")[0] == "column"
    assert [line.split()[0] for line in lines[2:4]] == ["n", "cost"]
    assert [line.split(":")[0] for line in lines[4 : 4 + len(told.facts)]] == list(told.facts)
    assert lines[-1] == "- Nothing was read and nothing was spent."
    assert "<script" not in told._repr_html_()
    assert told._repr_html_().count("<table>") == 2
