"""What a refusal proposes in Python is passed as it stands, and accepted; and what a steward sees stays short."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from discreet import Limits
from discreet.curator import Curator
from discreet.curator.asking.answer import Answer
from discreet.errors import AccountLocked, DeclarationChanged, InsufficientBudget, InvalidParameter, UnknownTable
from discreet.learn import LogisticRegression
from discreet.ledger import FAILURE_CREDITS, Ledger, Role
from discreet.noise import SeededBits
from discreet.privacy import Budget, events

ROWS = pa.Table.from_pylist([{"patient": f"p{i}", "ward": "AB"[i % 2], "age": 20 + i % 50} for i in range(60)])
COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
PRICES = {"epsilon", "delta", "within", "max_epsilon"}


def clinic(ledger: Any = ":memory:", **declared: Any) -> Curator:
    curator = Curator.for_tests(ledger, bits=SeededBits(5))
    budget = Budget(epsilon=2, delta="1e-6")
    given: dict[str, Any] = {"limits": Limits(rows=1), "bounds": {"age": (0, 120)}, "budget": budget, **declared}
    curator.protect(ROWS, name="visits", unit="patient", account="patients", **given)
    return curator


def proposed(hint: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with those that a hint proposes, which are another price."""
    told, _, without = re.split(", or repeat", hint.partition("Ask with ")[2])[0].partition(" without ")
    prices = dict(re.findall(r"([a-z_]+)=([0-9.e-]+)", told))
    assert "epsilon" in prices, hint
    kept = {name: value for name, value in given.items() if name not in PRICES and f"{name}=" != without}
    return {**kept, **prices}


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ask": (Curator.ask, {"sql": COUNT, "epsilon": 5}),
    "ask with an error": (Curator.ask, {"sql": COUNT, "within": "0.1", "max_epsilon": 9}),
    "ask with a profile": (Curator.ask, {"sql": COUNT, "epsilon": "1.9", "profile": "0.3"}),
    "private groups": (Curator.ask, {"sql": BY_WARD, "epsilon": 5}),
    "ask_many": (Curator.ask_many, {"questions": [COUNT, f"{COUNT} WHERE age > 30"], "epsilon": 5}),
    "profile": (Curator.profile, {"table": "visits", "epsilon": 5}),
    "fit": (
        Curator.fit,
        {
            "estimator": LogisticRegression(classes=["A", "B"], delta="1e-9"),
            "sql": "SELECT age, ward FROM visits",
            "target": "ward",
        }
        | {"epsilon": 5},
    ),
    "synthesize": (
        Curator.synthesize,
        {
            "table": "visits",
            "epsilon": 5,
            "generator": "mst",
            "domain": {"ward": ["A", "B"], "age": {"bins": [0, 30, 60, 120]}},
        },
    ),
}
"""A call that costs too much for each way to pay."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("spent", ["0", "0.75"])
def test_the_budget_that_is_proposed_is_enough(name: str, spent: str) -> None:
    call, given = CALLS[name]
    with clinic() as curator:
        if spent != "0":
            curator.ask(f"{COUNT} WHERE age > 21", epsilon=spent)
        with pytest.raises(InsufficientBudget) as refused:
            call(curator, **given)
        assert refused.value.hint in str(refused.value)
        call(curator, **proposed(refused.value.hint, given))


def test_a_plan_proposes_what_the_call_would_take() -> None:
    with clinic() as curator:
        _, fit = CALLS["fit"]
        _, made = CALLS["synthesize"]
        for planned in (curator.plan_fit(**fit), curator.plan_synthesize(**made)):
            assert "delta=0" not in str(planned.refusal)
            again = proposed(str(planned.refusal), {})
            assert curator.plan_fit(**{**fit, **again}).refusal is None
        explained = curator.explain(COUNT, epsilon=5)
        assert proposed(str(explained.refusal), {})["delta"] == "0"


def test_a_learner_whose_delta_is_too_large_is_given_a_smaller_one() -> None:
    with clinic() as curator:
        curator.ask(f"{COUNT} WHERE age > 21", epsilon="0.75", delta=0)
        sql, learner = "SELECT age, ward FROM visits", LogisticRegression(classes=["A", "B"], delta="1e-6")
        with pytest.raises(InsufficientBudget, match="Give the learner a smaller delta"):
            curator.fit(learner, sql, target="ward", epsilon=1)
        curator.fit(learner.set_params(delta="1e-9"), sql, target="ward", epsilon=1)


def test_a_table_that_was_meant_and_an_account_that_is_named() -> None:
    with clinic() as curator:
        with pytest.raises(UnknownTable) as meant:
            curator.ask(COUNT.replace("visits", "vists"), epsilon=1)
        (name,) = re.findall(r"Did you mean '(.*)'\?", meant.value.hint)
        curator.ask(COUNT.replace("visits", name), epsilon=1)
        with pytest.raises(InvalidParameter, match=re.escape("Pass account=patients.")):
            curator.unlock("visits")
        curator.protect(pa.table({"x": [1]}), name="more", unit=None, budget=Budget(epsilon=1))
        with pytest.raises(InvalidParameter, match=re.escape("Pass account=more or account=patients.")):
            curator.renew()
        assert curator.renew("more").period == 2


def test_limits_that_are_missing_are_declared_as_the_refusal_says() -> None:
    with pytest.raises(InvalidParameter) as refused:
        clinic(limits=None)
    numbers = {name: int(value) for name, value in re.findall(r"(max_[a-z]+)=(\d+)", refused.value.hint)}
    assert set(numbers) == {"max_rows", "max_groups"}
    clinic(limits=None, **numbers).close()
    (limits,) = re.findall('limits="([a-z]+)"', refused.value.hint)
    clinic(limits=limits).close()


def test_a_changed_declaration_is_entered_as_the_refusal_says() -> None:
    with Ledger() as ledger, clinic(ledger) as curator:
        curator.ask(COUNT, epsilon="0.1")
        with pytest.raises(DeclarationChanged) as refused:
            clinic(ledger, bounds={"age": (0, 110)})
        assert "change=True" in refused.value.hint
        clinic(ledger, bounds={"age": (0, 110)}, change=True)


def test_a_locked_account_is_unlocked_by_the_call_that_the_refusal_prints() -> None:
    with Ledger() as ledger, clinic(ledger) as curator:
        for _ in range(FAILURE_CREDITS):
            ledger.fail(ledger.charge("patients", events.Pure("0.01")))
        with pytest.raises(AccountLocked) as refused:
            curator.ask(COUNT, epsilon="0.1")
        (call,) = re.findall(r"curator\.unlock\('[a-z]+'\)", refused.value.hint)
        eval(call, {"curator": curator})
        curator.ask(COUNT, epsilon="0.1")


def test_people_and_projects_get_their_part_alike() -> None:
    with clinic() as curator:
        cap = Budget(epsilon="0.5")
        ana, flu = curator.appoint("ana", cap=cap), curator.allot("flu", cap=cap)
        assert (ana.role, ana.cap, flu.cap) == (Role.ANALYST, Budget(epsilon="0.5", delta="2.5e-7"), ana.cap)
        named = curator.appoint("ben", account="patients", cap=cap), curator.allot("tb", account="patients", cap=cap)
        assert [one.cap for one in named] == [ana.cap, ana.cap]


def test_the_first_amount_is_accepted_again_and_changes_nothing(tmp_path: Path) -> None:
    """What was amended stays amended: the declaration has the first amount, and analysts go on."""
    with clinic(str(tmp_path / "one.ledger")) as curator:
        curator.amend(budget=Budget(epsilon=3, delta="1e-6"))
    with clinic(str(tmp_path / "one.ledger")) as curator:
        assert curator.balance("patients").total == Budget(epsilon=3, delta="1e-6")
        assert isinstance(curator.ask(COUNT, epsilon="2.5", delta=0), Answer)


def test_what_is_shown_in_a_session_is_short() -> None:
    with clinic() as curator:
        answer = curator.ask(COUNT, epsilon="0.5")
        shown = [answer, curator.balance("patients"), curator.budget("visits"), curator.history(), *curator.history()]
        assert [text for text in map(repr, shown) if len(text) > 100 or "\n" in text] == []
        page = curator.history()._repr_html_()
        assert page.startswith("<div><table>")
        assert COUNT in page
        assert "epsilon=0.5, 25 %" in page
