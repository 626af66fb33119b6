"""Accounts keep what they were opened with; stewards act in entries; caps never widen the account's own."""

from __future__ import annotations

import contextlib
import pickle
import re
from collections.abc import Callable
from fractions import Fraction

import pytest

from discreet.errors import InsufficientBudget, InvalidParameter, NotPermitted, UnsupportedEvent
from discreet.ledger import Ledger, RemainingBudget, Role
from discreet.privacy import GDP, ZCDP, ApproxDP, Budget, Loss, Neighbours, PureDP, Unit, events
from tests.ledger.ledgers import PATIENTS, TENTH, opened, spend


def test_opening_again_with_the_same_declarations_changes_nothing() -> None:
    ledger = opened()
    before, account = ledger.head(), ledger.account("patients")
    again = ledger.stewardship.open_account(
        "patients", unit=PATIENTS, neighbours="add_remove", budget=Budget(epsilon=1)
    )
    assert again == account
    assert ledger.stewardship.open_account("patients", unit=PATIENTS) == account
    assert ledger.head() == before
    assert len(account.salt) == 32
    assert account.salt.hex() not in repr(account)


@pytest.mark.parametrize(
    ("unit", "neighbours", "budget", "field"),
    [
        (Unit("visit"), "add_remove", Budget(epsilon=1), "unit"),
        (PATIENTS, "replace", Budget(epsilon=1), "neighbours"),
        (PATIENTS, "add_remove", Budget(epsilon=2), "budget"),
        (PATIENTS, "add_remove", Budget(rho=1), "budget"),
    ],
)
def test_opening_again_otherwise_is_refused(unit: Unit, neighbours: str, budget: Loss, field: str) -> None:
    ledger = opened()
    before = ledger.head()
    with pytest.raises(InvalidParameter) as caught:
        ledger.stewardship.open_account("patients", unit=unit, neighbours=neighbours, budget=budget)
    assert caught.value.name == field
    assert ledger.head() == before


def test_an_amended_account_opens_with_either_budget() -> None:
    ledger = opened()
    ledger.stewardship.amend("patients", budget=Budget(epsilon=3))
    for budget in (None, Budget(epsilon=1), Budget(epsilon=3)):
        ledger.stewardship.open_account("patients", unit=PATIENTS, budget=budget)


@pytest.mark.parametrize("budget", [None, GDP(1), PureDP(0), ApproxDP(1, 0), ApproxDP(0, "1e-6"), ZCDP(0), 1])
def test_budgets_of_other_currencies_or_nothing_are_refused(budget: Loss) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Ledger().stewardship.open_account("patients", unit=PATIENTS, budget=budget)
    assert caught.value.name == "budget"


@pytest.mark.parametrize("bad", ["", " ", "a\nb", "x" * 201, "\ud800", None, 7])
def test_names_are_short_and_on_one_line(bad: str) -> None:
    ledger = opened()
    with pytest.raises(InvalidParameter):
        ledger.stewardship.open_account(bad, unit=PATIENTS, budget=Budget(epsilon=1))
    with pytest.raises(InvalidParameter):
        ledger.charge("patients", TENTH, analyst=bad)
    with pytest.raises(InvalidParameter):
        ledger.charge(bad, TENTH)


def test_tables_stay_as_declared_in_their_account() -> None:
    ledger = opened()
    ledger.stewardship.open_account("staff", unit=Unit("nurse", "id"), budget=Budget(epsilon=1))
    ledger.stewardship.attach("visits", account="patients", declaration='{"a":1}', version="2026-11")
    before = ledger.head()
    ledger.stewardship.attach("visits", account="patients", declaration='{"a":1}', version="2026-11")
    assert ledger.head() == before
    ledger.stewardship.attach("visits", account="patients", declaration='{"a":1}', version="2026-12")
    ledger.stewardship.attach("visits", account="patients", declaration='{"a":1}', version="2026-11")
    assert ledger.head().sequence == before.sequence + 1
    for account, declaration, field in (("staff", '{"a":1}', "account"), ("patients", '{"a":2}', "declaration")):
        with pytest.raises(InvalidParameter) as caught:
            ledger.stewardship.attach("visits", account=account, declaration=declaration, version="2027-01")
        assert caught.value.name == field
    with pytest.raises(InvalidParameter):
        ledger.stewardship.attach("other", account="nobody", declaration="{}")
    assert ledger.tables() == {"visits": "patients"}
    assert ledger.declaration("visits") == '{"a":1}'
    assert ledger.declaration("nothing") is None
    assert ledger.accounts() == ("patients", "staff")


def test_amendment_keeps_what_was_spent() -> None:
    ledger = opened()
    assert spend(ledger) == 10
    balance = ledger.stewardship.amend("patients", budget=Budget(epsilon="1.5"), note="board")
    assert (balance.spent, balance.remaining.loss, balance.total) == (PureDP(1), PureDP("0.5"), PureDP("1.5"))
    assert spend(ledger) == 5
    balance = ledger.stewardship.amend("patients", budget=Budget(epsilon="0.2"))
    assert (balance.spent, balance.remaining) == (PureDP("1.5"), RemainingBudget(PureDP(0), Fraction(0), Fraction(0)))
    assert spend(ledger) == 0
    with pytest.raises(InvalidParameter):
        ledger.stewardship.amend("patients", budget=Budget(rho=1))
    ledger.verify()


def test_what_remained_after_a_charge_is_looked_at_later_and_stays_what_it_was() -> None:
    """Whatever is charged, amended or renewed before somebody looks."""
    ledger = opened()
    charged = ledger.charge("patients", TENTH).account_remaining
    same = ledger.balance("patients").remaining
    spend(ledger)
    ledger.stewardship.amend("patients", budget=Budget(epsilon=5))
    ledger.stewardship.renew("patients")
    assert charged == same == RemainingBudget(PureDP("0.9"), Fraction(9, 10), Fraction(9, 10))
    assert hash(charged) == hash(same)
    assert (str(charged), charged.epsilon, charged.delta) == ("90 %", Fraction(9, 10), Fraction(0))
    assert charged != ledger.balance("patients").remaining


def test_a_remaining_budget_takes_no_sums_to_another_process() -> None:
    remaining = opened().balance("patients").remaining
    sent = pickle.dumps(remaining)
    assert b"Tallies" not in sent
    assert pickle.loads(sent) == remaining


def test_renewal_starts_a_period_and_the_lifetime_goes_on() -> None:
    ledger = opened()
    ledger.stewardship.appoint("ana", Role.ANALYST, account="patients", cap=Budget(epsilon="0.3"))
    for _ in range(3):
        ledger.charge("patients", TENTH, analyst="ana")
    assert spend(ledger) == 7
    balance = ledger.stewardship.renew("patients", note="a new year")
    assert (balance.spent, balance.remaining.loss, balance.period) == (PureDP(0), PureDP(1), 2)
    assert balance.lifetime == PureDP(1)
    for _ in range(3):
        ledger.charge("patients", TENTH, analyst="ana")
    with pytest.raises(InsufficientBudget):
        ledger.charge("patients", TENTH, analyst="ana")
    person = ledger.balance("patients", analyst="ana")
    assert (person.spent, person.lifetime, person.total) == (PureDP("0.3"), PureDP("0.6"), PureDP("0.3"))
    assert ledger.balance("patients").lifetime == PureDP("1.3")
    ledger.verify()


def test_the_account_wins_over_generous_caps() -> None:  # RT-072
    ledger = opened()
    names = [f"analyst {i}" for i in range(10)]
    for who in names:
        ledger.stewardship.appoint(who, "analyst", account="patients", cap=Budget(epsilon=5))
    passed = 0
    for _ in range(3):
        for who in names:
            with contextlib.suppress(InsufficientBudget):
                ledger.charge("patients", TENTH, analyst=who)
                passed += 1
    assert passed == 10
    with pytest.raises(InsufficientBudget) as caught:
        ledger.charge("patients", TENTH, analyst=names[0])
    assert (caught.value.requested, caught.value.remaining) == (PureDP("0.1"), PureDP(0))


def test_a_cap_counts_what_was_spent_before_it() -> None:
    ledger = opened()
    for _ in range(3):
        ledger.charge("patients", TENTH, analyst="ana")
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.35"))
    with pytest.raises(InsufficientBudget) as caught:
        ledger.charge("patients", TENTH, analyst="ana")
    assert caught.value.remaining == PureDP("0.05")
    assert "the cap of" in str(caught.value)
    assert ledger.balance("patients").spent == PureDP("0.3")


def test_roles() -> None:
    ledger = opened()
    ledger.charge("patients", TENTH, analyst="anybody")
    ledger.stewardship.appoint("ana", "analyst", account="patients")
    ledger.stewardship.appoint("otto", "auditor", account="patients")
    ledger.stewardship.appoint("sue", "steward", account="patients")
    ledger.stewardship.appoint("bob", "steward")
    for who in ("ana", "sue", "bob", "owner"):
        ledger.charge("patients", events.Pure("0.01"), analyst=who)
    for who in ("otto", "anybody"):
        with pytest.raises(NotPermitted) as caught:
            ledger.charge("patients", TENTH, analyst=who)
        assert caught.value.who == who
    acts: tuple[Callable[[str], object], ...] = (
        lambda who: ledger.stewardship.amend("patients", budget=Budget(epsilon=9), by=who),
        lambda who: ledger.stewardship.renew("patients", by=who),
        lambda who: ledger.stewardship.unlock("patients", by=who),
        lambda who: ledger.stewardship.appoint(who, "steward", account="patients", by=who),
        lambda who: ledger.stewardship.attach("new", account="patients", declaration="{}", by=who),
        lambda who: ledger.stewardship.open_account("mine", unit=PATIENTS, budget=Budget(epsilon=9), by=who),
        lambda who: ledger.resume(by=who),
    )
    for who in ("ana", "otto", "anybody"):
        for act in acts:
            with pytest.raises(NotPermitted):
                act(who)
    with pytest.raises(NotPermitted):  # a steward of one account is no steward of the ledger
        ledger.stewardship.open_account("mine", unit=PATIENTS, budget=Budget(epsilon=9), by="sue")
    ledger.stewardship.renew("patients", by="sue")
    ledger.stewardship.open_account("more", unit=PATIENTS, budget=Budget(epsilon=9), by="bob")
    assert [ledger.role("patients", who) for who in ("ana", "bob", "anybody")] == [Role.ANALYST, Role.STEWARD, None]
    with pytest.raises(NotPermitted):
        ledger.stewardship.appoint("owner", "auditor", account="patients")
    with pytest.raises(InvalidParameter):
        ledger.stewardship.appoint("ana", "king", account="patients")
    with pytest.raises(InvalidParameter):
        ledger.stewardship.appoint("ana", "analyst", cap=Budget(epsilon=1))
    with pytest.raises(InvalidParameter):
        ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(rho=1))
    ledger.verify()


def test_a_joint_charge_is_all_or_nothing() -> None:
    ledger = opened()
    ledger.stewardship.open_account("staff", unit=Unit("nurse", "id"), budget=Budget(epsilon="0.25"))
    both = {"patients": TENTH, "staff": TENTH}
    receipts = ledger.charge_all(both, analyst="ana", key="one")
    assert [(r.account, r.remaining) for r in receipts] == [("patients", PureDP("0.9")), ("staff", PureDP("0.15"))]
    repeated = ledger.charge_all(both, analyst="ana", key="one")
    assert [r.sequence for r in repeated] == [r.sequence for r in receipts]
    assert all(r.repeated for r in repeated)
    ledger.charge_all(both)
    before = ledger.head()
    with pytest.raises(InsufficientBudget):
        ledger.charge_all(both)
    assert ledger.head() == before
    assert ledger.balance("patients").spent == PureDP("0.2")
    with pytest.raises(InvalidParameter):
        ledger.charge_all({})
    ledger.verify()


def test_very_many_accounts_are_charged_at_once() -> None:
    ledger = opened()
    names = [f"account {place}" for place in range(200)]
    for name in names:
        ledger.stewardship.open_account(name, unit=PATIENTS, budget=Budget(epsilon=1))
    receipts = ledger.charge_all(dict.fromkeys(names, TENTH), analyst="ana")
    assert {receipt.remaining for receipt in receipts} == {PureDP("0.9")}
    ledger.verify()


def test_relations_and_prices_belong_to_the_account() -> None:
    ledger = Ledger()
    ledger.stewardship.open_account("people", unit=PATIENTS, neighbours=Neighbours.REPLACE, budget=Budget(epsilon=1))
    with pytest.raises(UnsupportedEvent):
        ledger.charge("people", events.PoissonSampled("0.1", events.Pure(1)))
    with pytest.raises(UnsupportedEvent):
        ledger.charge("people", events.Gaussian(noise_multiplier=1))
    with pytest.raises(InvalidParameter):
        ledger.charge("people", "an event")  # type: ignore[arg-type]
    assert len(ledger.history()) == 1
    assert ledger.balance("people").remaining.epsilon == Fraction(1)


def test_a_balance_prints_its_figures() -> None:
    balance = opened().balance("patients")
    lines = [re.split("  +", line) for line in str(balance).splitlines()]
    assert dict(lines) == balance.facts
    assert balance.facts["state"] == "open, period 1"
    assert balance._repr_html_().count("<tr>") == len(balance.facts)
