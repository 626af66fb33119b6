"""Projects have caps of their own under the account's, and the ledger can be read by project and by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import InsufficientBudget, InvalidParameter, LedgerTampered, NotPermitted
from discreet.ledger import Ledger, changes, charges, policy
from discreet.privacy import Budget, PureDP, events
from tests.ledger.ledgers import PATIENTS, TENTH, opened, tamper


def allotted(path: str | Path = ":memory:", cap: str = "0.25") -> Ledger:
    ledger = opened(path)
    ledger.stewardship.allot("asthma", account="patients", cap=Budget(epsilon=cap), note="agreed by the board")
    return ledger


def test_a_charge_counts_against_the_account_the_person_and_the_project() -> None:
    ledger = allotted()
    ledger.charge("patients", TENTH, analyst="ana", project="asthma")
    ledger.charge("patients", TENTH, analyst="ana")
    ledger.charge("patients", TENTH, analyst="ben", project="asthma")
    assert ledger.balance("patients").spent == PureDP("0.3")
    assert ledger.balance("patients", analyst="ana").spent == PureDP("0.2")
    asthma = ledger.balance("patients", project="asthma")
    assert (asthma.spent, asthma.remaining.loss, asthma.total) == (PureDP("0.2"), PureDP("0.05"), PureDP("0.25"))
    ledger.verify()


def test_each_cap_holds_by_itself() -> None:
    ledger = allotted()
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.1"))
    ledger.stewardship.appoint("ben", "analyst", account="patients")
    ledger.charge("patients", TENTH, analyst="ana", project="asthma")
    with pytest.raises(InsufficientBudget, match="the cap of 'ana'"):
        ledger.charge("patients", TENTH, analyst="ana", project="asthma")
    with pytest.raises(InsufficientBudget, match="the cap of 'project asthma'") as caught:
        ledger.charge("patients", events.Pure("0.2"), analyst="ben", project="asthma")
    assert caught.value.remaining == PureDP("0.15")
    assert "epsilon=0.15" in str(caught.value)
    ledger.charge("patients", events.Pure("0.2"), analyst="ben")
    assert ledger.balance("patients").spent == PureDP("0.3")
    ledger.stewardship.allot("asthma", account="patients", cap=Budget(epsilon=9))  # no cap widens the account's
    with pytest.raises(InsufficientBudget, match="Nothing was spent"):
        ledger.charge("patients", events.Pure("0.8"), analyst="ben", project="asthma")
    ledger.verify()


def test_only_stewards_allot_and_only_what_they_allotted_is_spent() -> None:
    ledger = allotted()
    with pytest.raises(NotPermitted, match="project malaria"):
        ledger.charge("patients", TENTH, project="malaria")
    with pytest.raises(NotPermitted):
        ledger.stewardship.allot("malaria", account="patients", cap=Budget(epsilon=1), by="ana")
    with pytest.raises(InvalidParameter):
        ledger.stewardship.allot("malaria", account="patients", cap=Budget(rho=1))
    with pytest.raises(InvalidParameter):
        ledger.stewardship.allot("malaria", account="nobody", cap=Budget(epsilon=1))
    with pytest.raises(InvalidParameter):
        ledger.charge("patients", TENTH, project=" asthma")
    assert ledger.balance("patients").spent == PureDP(0)


def test_a_renewal_renews_projects_and_their_life_goes_on() -> None:
    ledger = allotted()
    ledger.charge("patients", TENTH, project="asthma")
    ledger.stewardship.renew("patients")
    assert ledger.balance("patients", project="asthma").spent == PureDP(0)
    ledger.charge("patients", TENTH, project="asthma")
    assert ledger.balance("patients", project="asthma").lifetime == PureDP("0.2")
    ledger.verify()


def test_joint_charges_count_in_the_project_of_each_account() -> None:
    ledger = allotted()
    ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=1))
    with pytest.raises(NotPermitted):
        ledger.charge_all({"patients": TENTH, "staff": TENTH}, project="asthma")
    assert ledger.balance("patients", project="asthma").spent == PureDP(0)
    ledger.stewardship.allot("asthma", account="staff", cap=Budget(epsilon=1))
    ledger.charge_all({"patients": TENTH, "staff": TENTH}, project="asthma")
    assert ledger.balance("staff", project="asthma").spent == PureDP("0.1")
    ledger.verify()


def test_history_by_name_and_by_project() -> None:
    ledger = allotted()
    ledger.stewardship.appoint("ana", "analyst", account="patients")
    first = ledger.charge("patients", TENTH, analyst="ana", project="asthma", question='{"x":"\\"project\\":"}')
    ledger.charge("patients", TENTH, question='{"project":"asthma"}')
    assert [entry.kind for entry in ledger.history(project="asthma")] == ["allot", "charge"]
    assert [entry.kind for entry in ledger.history("patients", analyst="ana")] == ["appoint", "charge"]
    (only,) = ledger.history(analyst="ana", project="asthma")
    assert only.sequence == first.sequence
    assert ledger.history(project="malaria") == ()
    ledger.verify()


def test_a_project_that_forgets_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with allotted(tmp_path / "book") as ledger:
        ledger.charge("patients", TENTH, project="asthma")
    tamper(tmp_path / "book", "UPDATE states SET text = replace(text, '1/10', '1/11') WHERE scope = 'project'")
    with Ledger(str(tmp_path / "book")) as ledger, pytest.raises(LedgerTampered):
        ledger.verify()
    honest = policy.capped_spenders  # a mutant that does not charge projects
    monkeypatch.setattr(charges, "capped_spenders", lambda *told, project: honest(*told, project=project)[:1])
    with allotted(tmp_path / "mutant") as ledger:
        ledger.charge("patients", TENTH, project="asthma")
        with pytest.raises(LedgerTampered):
            ledger.verify()


def test_the_project_is_told_without_parsing_where_there_is_none() -> None:
    assert changes.counted_caps('{"cost":{},"question":"{\\"project\\":1}"}') == ("", "")
    assert changes.counted_caps('{"cost":{},"project":"a","question":"{}"}') == ("a", "")
    assert changes.counted_caps('{"asked":"1/2","caps":[["team","a]",""]],"cost":{}}') == ("", '[["team","a]",""]]')
    assert changes.counted_caps('{"cost":{},"sql":"{\\"caps\\":[[1]]}"}') == ("", "")
