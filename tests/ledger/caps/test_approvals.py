"""Approvals: one query beyond a cap, once, for seven days, never beyond the account, and never by who asks."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from discreet.errors import InsufficientBudget, InvalidParameter, LedgerTampered, NotPermitted
from discreet.ledger import Ledger
from discreet.ledger.caps import approvals
from discreet.ledger.caps.approvals import ApprovalRequest
from discreet.privacy import Budget, PureDP, events
from tests.ledger.ledgers import TENTH, opened
from tests.ledger.renewal.machines import Machine


def capped(path: str | Path = ":memory:") -> Ledger:
    ledger = opened(path)
    for steward in ("sue", "tom"):
        ledger.stewardship.appoint(steward, "steward")
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.05"))
    ledger.caps.set_team("emea", account="patients", cap=Budget(epsilon="0.05"), members=["ana"])
    return ledger


def ask(ledger: Ledger, event: events.Event = TENTH, key: str = "query 1", analyst: str = "ana") -> ApprovalRequest:
    told = {"replay_key": key, "sql": "SELECT 1", "asked": "1/10", "reason": "for the board"}
    return ledger.caps.request_approval("patients", event, analyst=analyst, **told)


def charge(ledger: Ledger, event: events.Event = TENTH, key: str = "query 1") -> None:
    ledger.charge("patients", event, analyst="ana", replay_key=key)


def test_an_approval_lifts_all_caps_once() -> None:
    ledger = capped()
    with pytest.raises(InsufficientBudget, match="request an approval"):
        charge(ledger)
    asked = ask(ledger)
    assert (asked.state, asked.needed, asked.approved_by) == ("waiting", 1, ())
    with pytest.raises(InsufficientBudget):
        charge(ledger)
    approved = ledger.caps.approve(asked.number, by="sue", note="agreed")
    assert (approved.state, approved.approved_by) == ("approved", ("sue",))
    charge(ledger)
    *_, last = ledger.history()
    assert last.content["approved"] == asked.number
    assert last.content["caps"] == [["analyst", "ana", ""], ["team", "emea", ""]]
    assert ledger.balance("patients", analyst="ana").spent == PureDP("0.1")
    (used,) = ledger.caps.requests("patients")
    assert used.state == "used"
    with pytest.raises(InsufficientBudget):
        charge(ledger)
    ledger.verify()


def test_an_approval_is_for_one_query_and_its_price() -> None:
    ledger = capped()
    ledger.caps.approve(ask(ledger).number, by="sue")
    for event, key in ((events.Pure("0.11"), "query 1"), (TENTH, "query 2")):
        with pytest.raises(InsufficientBudget):
            charge(ledger, event, key)
    ledger.stewardship.appoint("ben", "analyst", account="patients", cap=Budget(epsilon="0.05"))
    with pytest.raises(InsufficientBudget):
        ledger.charge("patients", TENTH, analyst="ben", replay_key="query 1")
    charge(ledger, events.Pure("0.09"))
    ledger.verify()


def test_an_approval_never_lifts_the_account() -> None:
    ledger = capped()
    ledger.charge("patients", events.Pure("0.95"))
    ledger.caps.approve(ask(ledger).number, by="sue")
    with pytest.raises(InsufficientBudget, match="Nothing was spent"):
        charge(ledger)


def test_an_approval_that_is_not_needed_is_kept() -> None:
    ledger = capped()
    ledger.caps.approve(ask(ledger).number, by="sue")
    charge(ledger, events.Pure("0.05"))
    assert [one.state for one in ledger.caps.requests()] == ["approved"]
    charge(ledger)
    ledger.verify()


def test_nobody_approves_their_own() -> None:
    ledger = capped()
    own = ask(ledger, analyst="sue")
    with pytest.raises(NotPermitted, match="approve their own request"):
        ledger.caps.approve(own.number, by="sue")
    with pytest.raises(NotPermitted):
        ledger.caps.approve(own.number, by="ana")
    ledger.caps.approve(own.number, by="tom")
    with pytest.raises(InvalidParameter):
        ledger.caps.approve(own.number, by="tom")
    with pytest.raises(InvalidParameter, match="to be the number of a request"):
        ledger.caps.approve(1, by="tom")
    with pytest.raises(InvalidParameter, match="reason"):
        ledger.caps.request_approval(
            "patients", TENTH, analyst="ana", replay_key="k", sql="", asked="1/10", reason="  "
        )


def test_two_stewards_where_two_are_wanted() -> None:
    ledger = capped()
    ledger.caps.require_approvals("patients", count=2, by="sue")
    asked = ask(ledger)
    first = ledger.caps.approve(asked.number, by="sue")
    assert (first.state, first.needed, first.until) == ("waiting", 2, "")
    with pytest.raises(InvalidParameter):
        ledger.caps.approve(asked.number, by="sue")
    with pytest.raises(InsufficientBudget):
        charge(ledger)
    assert ledger.caps.approve(asked.number, by="tom").state == "approved"
    charge(ledger)
    ledger.verify()


def test_an_approval_holds_for_seven_days(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, dt.datetime(2026, 11, 19, tzinfo=dt.UTC))
    ledger = capped()
    ledger.caps.approve(ask(ledger).number, by="sue")
    machine.pass_days(7)
    assert [one.state for one in ledger.caps.requests()] == ["expired"]
    with pytest.raises(InsufficientBudget):
        charge(ledger)
    ledger.caps.approve(ask(ledger).number, by="sue")
    charge(ledger)
    assert [one.state for one in ledger.caps.requests(analyst="ana")] == ["used", "expired"]
    assert ledger.caps.requests(analyst="ben") == ()
    ledger.verify()


def test_charges_beyond_a_cap_without_an_approval_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant that takes an approval for one that may be used again."""
    ledger = capped(tmp_path / "book")
    ledger.caps.approve(ask(ledger).number, by="sue")
    charge(ledger)
    honest = approvals.read_request

    def forgets(*told: object) -> dict[str, object] | None:
        found = honest(*told)  # type: ignore[arg-type]
        return found and {**found, "used": False}

    monkeypatch.setattr(approvals, "read_request", forgets)
    charge(ledger)
    monkeypatch.undo()
    with pytest.raises(LedgerTampered):
        ledger.verify()
