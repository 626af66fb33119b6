"""Percents: what each entry adds, and what people are told when a budget does not suffice."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import InsufficientBudget
from discreet.ledger import AccountState, Ledger, LedgerEntries
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import Budget, Loss, Unit, events
from discreet.privacy.events import Event
from tests.ledger.shares import check_sums

BUDGETS = {
    "sums": Budget(epsilon=40),
    "both": Budget(epsilon=40, delta="1e-4"),
    "squares": Budget(rho=2, delta="1e-5"),
    "mostly delta": Budget(epsilon=100, delta="1e-6"),
}


def released(number: int, bits: SeededBits) -> Event:
    """Noise of every kind that queries are paid with."""
    epsilon = Fraction(1 + uniform_below(40, bits=bits), 100)
    gaussian = events.Calibrated(events.Concentrated(epsilon**2 / 20), epsilon, "1e-9")
    kinds = [events.Pure(epsilon), gaussian, events.Approx(epsilon, "1e-8"), events.Repeated(events.Pure(epsilon), 3)]
    kinds.append(events.Composed([gaussian, events.Pure(epsilon / 3)]))
    return kinds[number % len(kinds)]


def play(budget: Loss, charges: int) -> Ledger:
    """A ledger with so many charges on one account, which is amended twice and renewed once."""
    ledger, bits = Ledger(), SeededBits(charges)
    ledger.stewardship.open_account("a", unit=Unit("person"), budget=budget)
    pure = not hasattr(budget, "delta")
    for number in range(charges):
        event = events.Pure(Fraction(1 + number, 200)) if pure else released(number, bits)
        ledger.charge("a", event, question="{}", asked="1/10")
        if number % 10 == 3:
            ledger.stewardship.amend("a", budget=budget * (2 if number == 3 else 1))
        if number == charges // 2:
            ledger.stewardship.renew("a")
        check_sums(ledger, "a")
    return ledger


@pytest.mark.parametrize("name", BUDGETS)
def test_shares_of_entries_add_up_to_what_is_spent(name: str) -> None:
    ledger = play(BUDGETS[name], 20)
    assert ledger.balance("a").spent_share
    ledger.verify()


_added_share = AccountState.added_share
MUTANTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a charge tells its share of an unspent budget": (
        AccountState,
        "added_share",
        lambda before, after: _added_share(before.with_new_period(before.budget), after),
    ),
    "an amendment moves nothing": (
        AccountState,
        "added_share",
        lambda before, after: _added_share(before, after) if before.budget == after.budget else Fraction(0),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, mistake = MUTANTS[name]
    monkeypatch.setattr(module, function, mistake)
    with pytest.raises(AssertionError):
        play(BUDGETS["both"], 8)


def refused(budget: Loss, spent: Event, wanted: Event, cap: Loss | None = None) -> str:
    """What is said of a charge that a budget, or a cap on it, does not allow after another one."""
    ledger = Ledger()
    ledger.stewardship.open_account("a", unit=Unit("person"), budget=budget)
    ledger.stewardship.appoint("ana", "analyst", account="a", cap=cap)
    ledger.charge("a", spent, analyst="ana", question="{}", asked="1/1")
    with pytest.raises(InsufficientBudget) as caught:
        ledger.charge("a", wanted, analyst="ana", question="{}", asked="1/1")
    return str(caught.value).partition(" Nothing")[0].partition(" This")[0]


GAUSSIAN = events.Calibrated(events.Concentrated("0.03"), 1, "1e-7")


def test_a_refusal_tells_what_is_needed_and_left_in_percent_of_the_budget() -> None:
    told = refused(Budget(epsilon="1.5"), events.Pure(1), events.Pure(1))
    assert told == "The charge needs epsilon=1, 66.67 % of the budget. Remaining: 33.33 %."
    told = refused(Budget(rho="0.05", delta="1e-6"), GAUSSIAN, GAUSSIAN)
    assert told == "The charge needs epsilon=1, 60 % of the budget. Remaining: 40 %."


def test_a_refusal_by_a_cap_tells_percent_of_the_cap() -> None:
    told = refused(Budget(epsilon=10, delta="1e-6"), events.Pure(1), events.Pure(1), Budget(epsilon="1.5"))
    assert told == "The charge needs epsilon=1, 66.67 % of the cap. Remaining: 33.33 %."


def test_a_cap_of_epsilon_alone_has_the_same_share_of_the_delta() -> None:
    """Noise with a delta is allowed up to that share, under the same rules as the account's."""
    budget = Budget(epsilon=10, delta="1e-6")
    ledger = Ledger()
    ledger.stewardship.open_account("a", unit=Unit("person"), budget=budget)
    ledger.stewardship.appoint("ana", "analyst", account="a", cap=Budget(epsilon=5))
    ledger.stewardship.allot("asthma", account="a", cap=Budget(epsilon=20))
    assert ledger.analyst_cap("ana", account="a") == Budget(epsilon=5, delta="5e-7")
    assert ledger.project_cap("asthma", account="a") == Budget(epsilon=20, delta="1e-6")
    ledger.charge("a", events.Approx(1, "2e-7"), analyst="ana", question="{}")
    with pytest.raises(InsufficientBudget, match="of the cap"):
        ledger.charge("a", events.Approx(1, "2e-7"), analyst="ana", question="{}")


def test_a_long_history_shows_its_newest_entries() -> None:
    ledger = Ledger()
    ledger.stewardship.open_account("a", unit=Unit("person"), budget=Budget(epsilon=10))
    for number in range(510):
        ledger.charge("a", events.Pure("0.01"), question="{}", sql=f"SELECT {number} < 1", asked="1/100")
    shown = LedgerEntries(ledger.history())
    assert repr(shown) == "LedgerEntries(511)"
    assert "charge SELECT 509 < 1  epsilon=0.01, 0.1 %" in str(shown)
    assert str(shown).splitlines()[2].split()[0] == "12"
    assert "The newest 500 of 511 entries are shown." in str(shown)
    assert "SELECT 509 &lt; 1" in shown._repr_html_()
