"""Projects have caps of their own under the account's, and the book can be read by project and by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.errors import InsufficientBudget, InvalidParameter, LedgerTampered, NotPermitted
from discreet.ledger import Ledger, changes, charges
from discreet.privacy import Budget, PureDP, events
from tests.ledger.books import PATIENTS, TENTH, opened, tamper


def allotted(path: str | Path = ":memory:", cap: str = "0.25") -> Ledger:
    book = opened(path)
    book.stewardship.allot("asthma", account="patients", cap=Budget(epsilon=cap), note="agreed by the board")
    return book


def test_a_charge_counts_against_the_account_the_person_and_the_project() -> None:
    book = allotted()
    book.charge("patients", TENTH, analyst="ana", project="asthma")
    book.charge("patients", TENTH, analyst="ana")
    book.charge("patients", TENTH, analyst="ben", project="asthma")
    assert book.balance("patients").spent == PureDP("0.3")
    assert book.balance("patients", analyst="ana").spent == PureDP("0.2")
    asthma = book.balance("patients", project="asthma")
    assert (asthma.spent, asthma.remaining.loss, asthma.total) == (PureDP("0.2"), PureDP("0.05"), PureDP("0.25"))
    book.verify()


def test_each_cap_holds_by_itself() -> None:
    book = allotted()
    book.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.1"))
    book.stewardship.appoint("ben", "analyst", account="patients")
    book.charge("patients", TENTH, analyst="ana", project="asthma")
    with pytest.raises(InsufficientBudget, match="the cap of 'ana'"):
        book.charge("patients", TENTH, analyst="ana", project="asthma")
    with pytest.raises(InsufficientBudget, match="the cap of 'project asthma'") as caught:
        book.charge("patients", events.Pure("0.2"), analyst="ben", project="asthma")
    assert caught.value.remaining == PureDP("0.15")
    assert "epsilon=0.15" in str(caught.value)
    book.charge("patients", events.Pure("0.2"), analyst="ben")
    assert book.balance("patients").spent == PureDP("0.3")
    book.stewardship.allot("asthma", account="patients", cap=Budget(epsilon=9))  # no cap widens the account's
    with pytest.raises(InsufficientBudget, match="Nothing was spent"):
        book.charge("patients", events.Pure("0.8"), analyst="ben", project="asthma")
    book.verify()


def test_only_stewards_allot_and_only_what_they_allotted_is_spent() -> None:
    book = allotted()
    with pytest.raises(NotPermitted, match="project malaria"):
        book.charge("patients", TENTH, project="malaria")
    with pytest.raises(NotPermitted):
        book.stewardship.allot("malaria", account="patients", cap=Budget(epsilon=1), by="ana")
    with pytest.raises(InvalidParameter):
        book.stewardship.allot("malaria", account="patients", cap=Budget(rho=1))
    with pytest.raises(InvalidParameter):
        book.stewardship.allot("malaria", account="nobody", cap=Budget(epsilon=1))
    with pytest.raises(InvalidParameter):
        book.charge("patients", TENTH, project=" asthma")
    assert book.balance("patients").spent == PureDP(0)


def test_a_renewal_renews_projects_and_their_life_goes_on() -> None:
    book = allotted()
    book.charge("patients", TENTH, project="asthma")
    book.stewardship.renew("patients")
    assert book.balance("patients", project="asthma").spent == PureDP(0)
    book.charge("patients", TENTH, project="asthma")
    assert book.balance("patients", project="asthma").lifetime == PureDP("0.2")
    book.verify()


def test_joint_charges_count_in_the_project_of_each_account() -> None:
    book = allotted()
    book.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=1))
    with pytest.raises(NotPermitted):
        book.charge_all({"patients": TENTH, "staff": TENTH}, project="asthma")
    assert book.balance("patients", project="asthma").spent == PureDP(0)
    book.stewardship.allot("asthma", account="staff", cap=Budget(epsilon=1))
    book.charge_all({"patients": TENTH, "staff": TENTH}, project="asthma")
    assert book.balance("staff", project="asthma").spent == PureDP("0.1")
    book.verify()


def test_history_by_name_and_by_project() -> None:
    book = allotted()
    book.stewardship.appoint("ana", "analyst", account="patients")
    first = book.charge("patients", TENTH, analyst="ana", project="asthma", question='{"x":"\\"project\\":"}')
    book.charge("patients", TENTH, question='{"project":"asthma"}')
    assert [entry.kind for entry in book.history(project="asthma")] == ["allot", "charge"]
    assert [entry.kind for entry in book.history("patients", analyst="ana")] == ["appoint", "charge"]
    (only,) = book.history(analyst="ana", project="asthma")
    assert only.sequence == first.sequence
    assert book.history(project="malaria") == ()
    book.verify()


def test_a_project_that_forgets_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with allotted(tmp_path / "book") as book:
        book.charge("patients", TENTH, project="asthma")
    tamper(tmp_path / "book", "UPDATE states SET text = replace(text, '1/10', '1/11') WHERE scope = 'project'")
    with Ledger(str(tmp_path / "book")) as book, pytest.raises(LedgerTampered):
        book.verify()
    monkeypatch.setattr(charges, "_find_project", lambda *_: ())  # a mutant that does not charge projects
    with allotted(tmp_path / "mutant") as book:
        book.charge("patients", TENTH, project="asthma")
        with pytest.raises(LedgerTampered):
            book.verify()


def test_the_project_is_told_without_parsing_where_there_is_none() -> None:
    assert changes.project_of('{"cost":{},"question":"{\\"project\\":1}"}') == ""
    assert changes.project_of('{"cost":{},"project":"a","question":"{}"}') == "a"
