"""Budgets that renew: each period has one amount, whatever happens to clocks and processes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import InsufficientBudget, InvalidParameter, LedgerError
from discreet.ledger import Ledger
from discreet.ledger.renewal.open_period import OpenPeriod
from discreet.privacy import AnyBudget, Budget, PureDP, events
from tests.ledger.dice import Dice
from tests.ledger.ledgers import PATIENTS, TENTH
from tests.ledger.renewal.machines import DAY, Machine

MONTHLY = Budget(epsilon=1, per="month")
START = dt.datetime(2026, 11, 19, 9, tzinfo=dt.UTC)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch, START)


def renewing(path: str | Path = ":memory:", budget: AnyBudget = MONTHLY) -> Ledger:
    ledger = Ledger(str(path))
    ledger.stewardship.open_account("patients", unit=PATIENTS, budget=budget)
    return ledger


def charge(ledger: Ledger, epsilon: str = "0.6", **told: str) -> None:
    ledger.charge("patients", events.Pure(epsilon), **told)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.history("patients")]


def test_a_period_has_one_amount_and_carries_nothing_over(machine: Machine) -> None:
    ledger = renewing()
    charge(ledger)
    with pytest.raises(InsufficientBudget, match=r"The budget renews per month; next on 2026-12-01\.$"):
        charge(ledger)
    machine.pass_days(12)
    balance = ledger.balance("patients")  # the period is over, and no entry has opened the next one yet
    assert (balance.period, balance.spent, kinds(ledger)) == (2, PureDP(0), ["open", "charge"])
    charge(ledger)
    machine.pass_days(300)  # months without questions are not saved up
    with pytest.raises(InsufficientBudget):
        charge(ledger, "1.1")
    charge(ledger, "1")
    assert kinds(ledger) == ["open", "charge", "renew", "charge", "renew", "charge"]
    balance = ledger.balance("patients")
    assert (balance.period, balance.spent, balance.lifetime) == (3, PureDP(1), PureDP("2.2"))
    assert (balance.lifetime_share, balance.renews) == (Fraction(22, 10), "per month; next on 2027-10-01")
    ledger.verify()


def test_a_refused_charge_opens_no_period(machine: Machine) -> None:
    ledger = renewing()
    machine.pass_days(12)
    with pytest.raises(InsufficientBudget):
        charge(ledger, "2")
    assert kinds(ledger) == ["open"]


def test_caps_of_people_renew_with_the_account(machine: Machine) -> None:
    ledger = renewing()
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.6"))
    charge(ledger, analyst="ana")
    with pytest.raises(InsufficientBudget, match="the cap of 'ana'"):
        charge(ledger, "0.1", analyst="ana")
    machine.pass_days(12)
    charge(ledger, analyst="ana")
    ledger.verify()


def test_a_cap_may_have_a_calendar_of_its_own(machine: Machine) -> None:
    ledger = renewing(budget=Budget(epsilon=3))
    daily = Budget(epsilon="0.2", per="day")
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=daily)
    ledger.stewardship.allot("asthma", account="patients", cap=Budget(epsilon=1, per="week"))
    assert ledger.analyst_cap("ana", account="patients") == daily
    for _ in range(3):
        charge(ledger, "0.2", analyst="ana", project="asthma")
        with pytest.raises(InsufficientBudget, match=r"The cap renews per day; next on 2026-11-\d\d\. "):
            charge(ledger, "0.1", analyst="ana")
        machine.pass_days(1)
    assert ledger.balance("patients", analyst="ana").spent == PureDP(0)
    assert ledger.balance("patients", project="asthma").spent == PureDP("0.6")
    assert ledger.balance("patients", analyst="ana").renews == "per day; next on 2026-11-23"
    *_, last = ledger.history("patients")
    assert last.content["caps"] == [["analyst", "ana", "2026-11-21"], ["project", "asthma", "2026-11-16"]]
    machine.pass_days(1)  # a Monday
    ledger.verify()
    assert ledger.balance("patients", project="asthma").spent == PureDP(0)
    assert ledger.balance("patients").spent == PureDP("0.6")
    with pytest.raises(InsufficientBudget):  # no cap widens the account's
        charge(ledger, "2.5", project="asthma")


def test_the_renewal_of_an_account_leaves_other_calendars_alone(machine: Machine) -> None:
    ledger = renewing()
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.9", per="year"))
    charge(ledger, analyst="ana")
    machine.pass_days(12)
    with pytest.raises(InsufficientBudget, match="the cap of 'ana'"):
        charge(ledger, analyst="ana")
    charge(ledger, "0.3", analyst="ana")
    machine.pass_days(31)
    charge(ledger, "0.9", analyst="ana")
    ledger.verify()


def test_a_steward_sets_and_ends_a_calendar(machine: Machine) -> None:
    ledger = renewing(budget=Budget(epsilon=1))
    charge(ledger)
    ledger.stewardship.amend("patients", budget=MONTHLY)  # what was spent stays spent
    assert ledger.balance("patients").spent == PureDP("0.6")
    machine.pass_days(12)
    charge(ledger)
    ledger.stewardship.amend("patients", budget=Budget(epsilon=2))  # the calendar stays
    assert ledger.balance("patients").renews == "per month; next on 2027-01-01"
    ledger.stewardship.amend("patients", budget=Budget(epsilon=2, per="never"))
    machine.pass_days(100)
    assert (ledger.balance("patients").renews, ledger.balance("patients").spent) == ("", PureDP("0.6"))
    ledger.verify()


def test_an_amendment_counts_in_the_period_that_the_clock_is_in(machine: Machine) -> None:
    ledger = renewing()
    charge(ledger)
    machine.pass_days(12)
    ledger.stewardship.amend("patients", budget=Budget(epsilon=2))
    assert kinds(ledger)[-2:] == ["renew", "amend"]
    assert ledger.balance("patients").spent == PureDP(0)
    ledger.verify()


def test_declared_again_it_must_be_the_same_calendar(machine: Machine) -> None:
    del machine
    ledger = renewing()
    renewing_again = Budget(epsilon=1, per="year")
    ledger.stewardship.open_account("patients", unit=PATIENTS, budget=MONTHLY)
    ledger.stewardship.open_account("patients", unit=PATIENTS, budget=MONTHLY.amount)
    with pytest.raises(InvalidParameter, match="to renew per month"):
        ledger.stewardship.open_account("patients", unit=PATIENTS, budget=renewing_again)


# ------------------------------------------------------------------------------------------------------------- clocks


def test_nothing_renews_by_a_clock_that_was_set_forward(machine: Machine, tmp_path: Path) -> None:
    with renewing(tmp_path / "ledger") as ledger:
        charge(ledger)
        machine.ahead = 40 * DAY
        with pytest.raises(InsufficientBudget, match="the clock of this machine was changed"):
            charge(ledger)
    ledger, _ = machine.open(tmp_path / "ledger")  # a process that began afterwards
    with ledger:
        with pytest.raises(InsufficientBudget, match="the clock of this machine was changed"):
            charge(ledger)
        machine.ahead = 0
        machine.process = machine.lead
        machine.pass_days(12)
        charge(ledger)  # nothing was charged by the wrong clock
        assert kinds(ledger) == ["open", "charge", "renew", "charge"]
        ledger.verify()


def test_what_was_charged_by_a_clock_in_doubt_stops_renewals_until_a_steward_decides(machine: Machine) -> None:
    ledger = renewing()
    machine.ahead = -40 * DAY
    charge(ledger)
    machine.ahead = 0
    machine.pass_days(12)
    told = "per month; nothing renews until a steward renews it, because the clock of this machine was changed"
    assert (ledger.balance("patients").renews, kinds(ledger)) == (told, ["open", "doubt", "charge"])
    with pytest.raises(InsufficientBudget):
        charge(ledger)
    ledger.stewardship.amend("patients", budget=MONTHLY)  # goes on, without another amount
    with pytest.raises(InsufficientBudget):
        charge(ledger)
    machine.pass_days(31)
    charge(ledger)
    machine.ahead = DAY
    charge(ledger, "0.1")
    machine.ahead = 0
    ledger.stewardship.renew("patients")  # or with one
    charge(ledger, "1")
    assert kinds(ledger) == [
        "open",
        "doubt",
        "charge",
        "amend",
        "renew",
        "charge",
        "doubt",
        "charge",
        "renew",
        "charge",
    ]
    ledger.verify()


def test_nothing_renews_while_entries_are_ahead_of_the_clock(machine: Machine) -> None:
    ledger = renewing()
    machine.ahead = 20 * DAY
    ledger.stewardship.unlock("patients")  # an entry in December
    machine.ahead, machine.process = 0, machine.lead - 20 * DAY
    machine.start_anew()
    machine.process = machine.lead
    machine.pass_days(12)  # December, but before the entry
    assert "entries of the ledger are ahead of the clock" in ledger.balance("patients").renews
    machine.pass_days(9)
    assert ledger.balance("patients").renews == "per month; next on 2027-01-01"


def test_small_corrections_of_a_clock_are_no_reason_for_doubt(machine: Machine) -> None:
    ledger = renewing()
    machine.pass_days(12)
    machine.ahead = 50 * 10**9
    charge(ledger)
    assert kinds(ledger) == ["open", "renew", "charge"]


def test_a_charge_of_the_period_before_is_not_run_again(machine: Machine) -> None:
    ledger = renewing()
    ledger.charge("patients", TENTH, key="k")
    again = ledger.charge("patients", TENTH, key="k")
    machine.pass_days(12)
    charge(ledger)
    with pytest.raises(LedgerError, match="before its account was renewed"):
        ledger.claim(again)


# --------------------------------------------------------------------------------------------------------- three years


def in_any_stretch(charges: list[tuple[int, Fraction]], length: int) -> Fraction:
    """The most that was charged within a stretch of real time."""
    most, total, first = Fraction(0), Fraction(0), 0
    for time, amount in charges:
        total += amount
        while charges[first][0] <= time - length:
            total -= charges[first][1]
            first += 1
        most = max(most, total)
    return most


def jumps(draw: Dice) -> Iterator[int]:
    """How far the clock is ahead from now on: mostly right, sometimes wrong by minutes to months."""
    while True:
        yield 0
        yield draw.choice((-1, 1)) * draw.choice((DAY // 100, DAY, 10 * DAY, 35 * DAY, 100 * DAY))


def play(machine: Machine, path: Path, number: int, seed: int) -> list[tuple[int, Fraction]]:
    """Charges for three years, by two processes that are killed, on a machine whose clock is set both ways."""
    draw, charged, last = Dice(seed), [], machine.time + 3 * 365 * DAY
    wrong = jumps(draw)
    renewing(path).close()
    processes = [machine.open(path), machine.open(path)]
    step = 3 * 365 / number
    while machine.time < last:
        machine.pass_days(draw.exponential(step))
        if draw.random() < 0.01:
            machine.ahead = next(wrong)
        which = draw.below(2)
        if draw.random() < 0.01:
            processes[which][0].close()
            processes[which] = machine.open(path)
        ledger, machine.process = processes[which]
        amount = draw.choice(("0.02", "0.05", "0.3"))
        try:
            charge(ledger, amount)
        except InsufficientBudget:
            right = not (machine.ahead or machine.read().doubt)
            if right and "until a steward" in ledger.balance("patients").renews and draw.random() < 0.2:
                ledger.stewardship.amend("patients", budget=MONTHLY, note="the clock is right")
        else:
            charged.append((machine.time, Fraction(amount)))
    for ledger, _ in processes:
        ledger.close()
    return charged


def judge(machine: Machine, path: Path, number: int, seed: int) -> None:
    charged = play(machine, path, number, seed)
    month = 28 * DAY
    assert in_any_stretch(charged, month) <= 2
    assert in_any_stretch(charged, month) > Fraction(3, 2)  # around a boundary, as the manual says
    with Ledger(str(path)) as ledger:
        assert ledger.balance("patients").lifetime == PureDP(sum(amount for _, amount in charged))
        found = kinds(ledger)
        assert found.count("charge") == len(charged)
        assert found.count("renew") >= 12
        assert found.count("doubt") >= 1
        ledger.verify()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_three_years_of_wrong_clocks_and_kills(machine: Machine, tmp_path: Path, seed: int) -> None:
    judge(machine, tmp_path / "ledger", 10_000, seed)


@pytest.mark.ci
def test_fewer_charges_in_three_years(machine: Machine, tmp_path: Path) -> None:
    judge(machine, tmp_path / "ledger", 1_500, 3)


@pytest.mark.slow
def test_a_renewal_that_believes_any_clock_is_seen(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenPeriod, "doubts", lambda *_: "")
    with pytest.raises(AssertionError):
        judge(machine, tmp_path / "ledger", 10_000, 1)
