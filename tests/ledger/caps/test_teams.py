"""Teams share a cap: every charge of a member counts against it, and it must fit as well."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from discreet.errors import InsufficientBudget, InvalidParameter, LedgerTampered, NotPermitted
from discreet.ledger import Ledger, charges
from discreet.privacy import Budget, PureDP, events
from tests.ledger.ledgers import TENTH, opened, tamper
from tests.ledger.renewal.machines import Machine


def with_team(path: str | Path = ":memory:", cap: str = "0.25") -> Ledger:
    ledger = opened(path)
    ledger.caps.set_team("emea", account="patients", cap=Budget(epsilon=cap), members=["ana", "ben"])
    return ledger


def test_members_share_the_cap_of_their_team() -> None:
    ledger = with_team()
    ledger.charge("patients", TENTH, analyst="ana")
    ledger.charge("patients", TENTH, analyst="ben")
    with pytest.raises(InsufficientBudget, match="the cap of 'team emea'") as caught:
        ledger.charge("patients", TENTH, analyst="ana")
    assert "epsilon=0.05" in str(caught.value)
    ledger.charge("patients", TENTH, analyst="cid")
    *_, third, fourth = ledger.history("patients")
    assert third.content["caps"] == [["team", "emea", ""]]
    assert "caps" not in fourth.content
    assert ledger.balance("patients", team="emea").spent == PureDP("0.2")
    (share,) = ledger.standing("patients").teams
    assert (share.name, share.cap, share.balance.spent) == ("emea", PureDP("0.25"), PureDP("0.2"))
    ledger.verify()


def test_a_query_must_fit_all_caps() -> None:
    ledger = with_team(cap="0.5")
    ledger.caps.set_team("heart", account="patients", cap=Budget(epsilon="0.3"), members=["ana"])
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.4"))
    ledger.stewardship.allot("asthma", account="patients", cap=Budget(epsilon="0.1"))
    with pytest.raises(InsufficientBudget, match="'project asthma'"):
        ledger.charge("patients", events.Pure("0.2"), analyst="ana", project="asthma")
    ledger.charge("patients", TENTH, analyst="ana", project="asthma")
    with pytest.raises(InsufficientBudget, match="'team heart'"):
        ledger.charge("patients", events.Pure("0.25"), analyst="ana")
    ledger.charge("patients", events.Pure("0.2"), analyst="ana")
    with pytest.raises(InsufficientBudget, match="'ana'"):
        ledger.charge("patients", events.Pure("0.15"), analyst="ana")
    kept = [["analyst", "ana", ""], ["project", "asthma", ""], ["team", "emea", ""], ["team", "heart", ""]]
    assert next(entry.content["caps"] for entry in ledger.history() if entry.kind == "charge") == kept
    ledger.verify()


def test_members_come_and_go_and_what_was_spent_stays() -> None:
    ledger = with_team()
    ledger.charge("patients", events.Pure("0.2"), analyst="ana")
    ledger.caps.set_team("emea", account="patients", cap=Budget(epsilon="0.25"), members=["ben"])
    ledger.charge("patients", TENTH, analyst="ana")
    with pytest.raises(InsufficientBudget, match="'team emea'"):
        ledger.charge("patients", TENTH, analyst="ben")
    ledger.verify()


def test_only_stewards_set_teams() -> None:
    ledger = opened()
    ledger.stewardship.appoint("ana", "analyst")
    with pytest.raises(NotPermitted):
        ledger.caps.set_team("emea", account="patients", cap=Budget(epsilon=1), by="ana")
    with pytest.raises(InvalidParameter):
        ledger.caps.set_team("emea", account="patients", cap=Budget(rho=1))
    with pytest.raises(InvalidParameter):
        ledger.caps.set_team("emea", account="people", cap=Budget(epsilon=1))


def test_groups_of_a_sign_in_provider_hold_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, dt.datetime(2026, 11, 19, 9, tzinfo=dt.UTC))
    ledger = with_team()
    ledger.caps.claim_teams("cid", ["emea", "unknown"], account="patients")
    ledger.charge("patients", TENTH, analyst="cid")
    assert ledger.balance("patients", team="emea").spent == PureDP("0.1")
    machine.pass_days(1)
    with pytest.raises(NotPermitted, match="Sign in again"):
        ledger.charge("patients", TENTH, analyst="cid")
    ledger.caps.claim_teams("cid", [], account="patients")  # they have left
    ledger.charge("patients", TENTH, analyst="cid")
    ledger.caps.claim_teams("dan", [], account="patients")
    assert [entry.kind for entry in ledger.history("patients")].count("claim teams") == 2
    assert ledger.balance("patients", team="emea").spent == PureDP("0.1")
    ledger.verify()


def test_a_team_that_forgets_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with with_team(tmp_path / "book") as ledger:
        ledger.charge("patients", TENTH, analyst="ana")
    tamper(tmp_path / "book", "UPDATE states SET text = replace(text, '1/10', '1/11') WHERE scope = 'team'")
    with Ledger(str(tmp_path / "book")) as ledger, pytest.raises(LedgerTampered):
        ledger.verify()
    tamper(tmp_path / "book", "UPDATE states SET text = replace(text, '1/11', '1/10') WHERE scope = 'team'")
    tamper(tmp_path / "book", "UPDATE states SET text = replace(text, 'emea', 'apac') WHERE scope = 'teams'")
    with Ledger(str(tmp_path / "book")) as ledger, pytest.raises(LedgerTampered):
        ledger.verify()
    honest = charges._weigh_charge  # a mutant that says the team and does not charge it

    def forgets(*told: object) -> charges.WeighedCharge:
        found = honest(*told)  # type: ignore[arg-type]
        return found._replace(written=[one for one in found.written if one[0][0] != "team"])

    monkeypatch.setattr(charges, "_weigh_charge", forgets)
    with with_team(tmp_path / "mutant") as ledger:
        ledger.charge("patients", TENTH, analyst="ana")
        with pytest.raises(LedgerTampered):
            ledger.verify()
