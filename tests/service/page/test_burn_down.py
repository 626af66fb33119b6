"""The page and the report draw one burn-down: every charge counts, under the budget that was in force at the time."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from discreet.ledger import AnchoredLedger, Ledger
from discreet.ledger.anchor.recovery import restore_anchored
from discreet.presentation.ledger_view import budget_use, ledger_history
from discreet.presentation.ledger_view.account_view import burn_down_chart, view_account
from discreet.presentation.ledger_view.ledger_history import read_history
from discreet.privacy import Budget, Loss, Unit, events
from tests.service.page.fakes import Clinic

PURE, ROUNDED, GAUSSIAN = events.Pure("1/8"), events.Approx("1/8", "1e-8"), events.Gaussian(8)
MIXED: dict[str, tuple[Loss, Loss, Sequence[Any]]] = {
    "pure": (Budget(epsilon=2), Budget(epsilon=3), [PURE, events.Laplace(4), PURE]),
    "approximate": (
        Budget(epsilon=2, delta="1e-6"),
        Budget(epsilon=4, delta="1e-6"),
        [PURE, ROUNDED, GAUSSIAN, events.Concentrated("1/200"), PURE],
    ),
    "concentrated": (Budget(rho="1/2"), Budget(rho=1), [PURE, GAUSSIAN, events.Concentrated("1/50"), PURE]),
}
"""By currency: a budget, one to amend it to, and charges of every kind that it has a price for."""


def spec_of(page: str) -> Any:
    found = re.search(r'data-spec="([^"]*)"', page)
    return None if found is None else json.loads(unescape(found[1]))


def values(spec: Any) -> list[tuple[str, float]]:
    """The steps of a chart; the last of its values only draws the line on to the present."""
    return [(row["time"], row["left"]) for row in spec["data"]["values"][:-1]]


def reported(ledger: Ledger, account: str) -> Any:
    """The chart of `discreet report`, of the account alone."""
    history = read_history(ledger).accounts[account]
    now = history.own.curve[-1].time
    return burn_down_chart([view_account(ledger.standing(account), history, now).whole], now=now)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("currency", MIXED)
def test_page_and_report_draw_the_same_and_end_with_the_balance(clinic: Clinic, currency: str) -> None:
    budget, amended, charged = MIXED[currency]
    ledger, sue = clinic.curator._ledger, clinic.browser("sue")
    ledger.stewardship.open_account("people", unit=Unit("person"), budget=budget)

    def drawn() -> list[float]:
        """Checks the page against the report and the balance, and returns what it draws."""
        page, report = spec_of(sue.get("/accounts/people").text), reported(ledger, "people")
        assert values(page) == values(report)
        last = read_history(ledger).accounts["people"].own.curve[-1]
        assert last.remaining == clinic.curator.budget("people").remaining
        assert last.total == clinic.curator.budget("people").total
        return [left for _, left in values(page)]

    seen = list[float]()
    for event in charged:
        ledger.charge("people", event)
        now = drawn()
        assert now[-1] < (seen or [1.0])[-1]  # every kind of charge counts
        assert now[:-1] == (seen or [1.0])  # and what was drawn before stays as it was
        seen = now
    for act, changed in ((ledger.stewardship.amend, amended), (ledger.stewardship.renew, amended)):
        act("people", budget=changed)
        now = drawn()
        assert now[:-1] == seen
        assert now[-1] > seen[-1]
        seen = now
    assert seen[-1] == 1.0
    ledger.charge("people", charged[-1])
    assert drawn()[-1] < 1.0


def test_what_an_analyst_sees_is_their_own_part(clinic: Clinic) -> None:
    """Others spend, too, which is not drawn; without a cap the account's budget is theirs."""
    ledger, ana = clinic.curator._ledger, clinic.browser("ana")

    def drawn() -> list[float]:
        return [left for _, left in values(spec_of(ana.get("/budget").text))]

    assert spec_of(ana.get("/budget").text) is None
    for analyst, spent in (("ana", "0.5"), ("owner", "0.25"), ("ana", "0.25")):
        ledger.charge("patients", events.Pure(spent), analyst=analyst)
    assert drawn() == pytest.approx([1, 0.75, 0.625])  # of a cap of 2
    ledger.stewardship.appoint("ana", "analyst", account="patients")
    assert drawn() == pytest.approx([1, 0.75, 0.625, 0.75])  # of the account's 3
    ledger.stewardship.amend("patients", budget=Budget(epsilon=6, delta="1e-6"))
    assert drawn() == pytest.approx([1, 0.75, 0.625, 0.75, 0.875])
    own = read_history(ledger).accounts["patients"].people["ana"]
    assert own.curve[-1].remaining == ledger.balance("patients", analyst="ana").remaining


def test_what_was_lost_with_a_ledger_counts(tmp_path: Path) -> None:
    """A restored ledger has spent what its anchor knows: the account, ana and the project all draw it."""
    file, copy, anchor = (str(tmp_path / name) for name in ("book.db", "monday.db", "anchor"))
    with AnchoredLedger(file, anchor_file=anchor) as lost:
        acts = lost.stewardship
        acts.open_account("people", unit=Unit("person"), budget=Budget(epsilon=2, delta="1e-6"))
        acts.appoint("ana", "analyst", account="people", cap=Budget(epsilon=1, delta="1e-6"))
        acts.allot("flu", account="people", cap=Budget(epsilon=1, delta="1e-6"))
        lost.backup(copy)
        for event in (PURE, GAUSSIAN):
            lost.charge("people", event, analyst="ana", project="flu")
    restore_anchored(copy, f"{file}.new", anchor_file=anchor, accept_loss=True)
    with Ledger(f"{file}.new", read_only=True) as ledger:
        found = read_history(ledger).accounts["people"]
        for spender, balance in (
            (found.own, ledger.balance("people")),
            (found.people["ana"], ledger.balance("people", analyst="ana")),
            (found.projects["flu"], ledger.balance("people", project="flu")),
        ):
            assert spender.curve[-1].remaining == balance.remaining
            assert spender.remaining_share < 1
            assert spender.questions == 0


def test_the_meter_of_an_account_that_is_counted_in_rho_is_not_empty(clinic: Clinic) -> None:
    ledger = clinic.curator._ledger
    ledger.stewardship.open_account("people", unit=Unit("person"), budget=Budget(epsilon=2, delta="1e-6"))
    for _ in range(3):
        ledger.charge("people", GAUSSIAN)
    shown = re.findall(r'<meter [^>]*value="([^"]*)"', clinic.browser("sue").get("/overview").text)
    assert max(map(float, shown)) == pytest.approx(1 - read_history(ledger).accounts["people"].own.remaining_share)
    assert max(map(float, shown)) > 0.2


def test_steps_are_left_out_but_no_change_of_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_use, "MOST_STEPS", 20)
    with Ledger() as ledger:
        ledger.stewardship.open_account("people", unit=Unit("person"), budget=Budget(epsilon=2))
        for place in range(100):
            ledger.charge("people", events.Pure("0.01"))
            if place == 49:
                ledger.stewardship.renew("people", budget=Budget(epsilon=1))
        own = read_history(ledger).accounts["people"].own
        assert len(own.curve) <= 2 * 20 + 2
        drawn = [left for _, left in budget_use.steps_left(own).steps]
        assert len(drawn) <= 20 + 3
        assert drawn.count(1.0) == 2
        assert drawn[-1] == pytest.approx(0.5)
        assert own.curve[-1].remaining == ledger.balance("people").remaining


def test_a_ledger_that_is_read_on_is_one_that_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_history, "PAGE", 3)
    with Ledger() as ledger:
        ledger.stewardship.open_account("people", unit=Unit("person"), budget=Budget(epsilon=2))
        read = read_history(ledger)
        for _ in range(10):
            ledger.charge("people", events.Pure("0.1"))
            read_history(ledger, read)
        assert read == read_history(ledger)
