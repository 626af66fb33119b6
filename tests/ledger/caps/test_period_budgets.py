"""Budgets of rows by the periods of their dates: each period has one amount, whenever it is asked about."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import (
    InsufficientBudget,
    InternalError,
    InvalidParameter,
    LedgerTampered,
)
from discreet.ledger import AnchoredLedger, Ledger
from discreet.ledger.anchor.recovery import restore_anchored
from discreet.ledger.caps import period_budgets
from discreet.ledger.tallies import Tallies, prices, share_used
from discreet.privacy import ApproxDP, Budget, Loss, Neighbours, PureDP, RenewingBudget, Unit, events
from tests.ledger.crowds import entries_of, run
from tests.ledger.dice import Dice
from tests.ledger.ledgers import tamper
from tests.ledger.nursery import month

UNIT = Unit("patients", ["id", "month of day"])
JANUARY, FEBRUARY, MARCH = (f"2026-0{month}-01" for month in (1, 2, 3))
MONTHLY = Budget(epsilon=1, per="month", of="day")
ONE = PureDP(1)
HALF, TENTH = events.Pure("0.5"), events.Pure("0.1")


def opened(path: str | Path = ":memory:", budget: RenewingBudget = MONTHLY) -> Ledger:
    ledger = Ledger(str(path))
    ledger.stewardship.open_account("patients", unit=UNIT, budget=budget)
    return ledger


def test_each_period_has_the_whole_amount() -> None:
    ledger = opened()
    ledger.charge("patients", HALF, periods=[JANUARY, FEBRUARY])
    first = ledger.charge("patients", HALF, periods=[JANUARY])
    assert (str(first.account_remaining), first.cost.share) == ("0 %", Fraction(1, 2))
    with pytest.raises(InsufficientBudget, match="Remaining: 0 %"):
        ledger.charge("patients", TENTH, periods=[JANUARY, MARCH])
    ledger.charge("patients", events.Pure(1), periods=[MARCH])
    balance = ledger.balance("patients")
    assert balance.periods == ((JANUARY, "100 %"), (FEBRUARY, "50 %"), (MARCH, "100 %"))
    assert balance.facts["total"] == "epsilon=1 for the rows of each month of day"
    assert balance.lifetime == PureDP("2.5")  # of one person with rows in all three: 2 * 0.5 + 0.5 + 1
    assert ledger.refusal("patients", HALF, analyst="owner", periods=[FEBRUARY]) is None
    assert ledger.refusal("patients", HALF, analyst="owner", periods=[JANUARY, FEBRUARY]) is not None
    assert share_used(ledger.admit("patients", "owner", "", [FEBRUARY]).spent, PureDP(1)) == Fraction(1, 2)
    ledger.verify()


def test_the_periods_must_be_named() -> None:
    ledger = opened()
    with pytest.raises(InvalidParameter, match="to name the periods of day"):
        ledger.charge("patients", TENTH)
    for wrong in ("2026-01-02", "January", "2026-13-01", ""):
        with pytest.raises(InternalError):
            ledger.charge("patients", TENTH, periods=[wrong])
    with pytest.raises(InternalError):
        ledger.charge("patients", TENTH, periods=[f"{year}-01-01" for year in range(1000, 2001 + 1)])
    assert [entry.kind for entry in ledger.history()] == ["open"]
    ledger.stewardship.open_account("others", unit=Unit("other"), budget=Budget(epsilon=1))
    ledger.charge("others", TENTH, periods=[JANUARY])  # whose rows share one budget
    assert ledger.balance("others").spent == PureDP("0.1")
    both = {"patients": TENTH, "others": TENTH}
    ledger.charge_all(both, periods=[JANUARY])
    with pytest.raises(InvalidParameter, match="to name the periods"):
        ledger.charge_all(both)
    assert ledger.balance("patients").periods == ((JANUARY, "10 %"),)
    ledger.verify()


def test_which_rows_share_a_budget_is_fixed() -> None:
    ledger = opened()
    opened_again = ledger.stewardship.open_account("patients", unit=UNIT, budget=MONTHLY)
    assert opened_again.rows == MONTHLY.schedule
    for other in (Budget(epsilon=1), Budget(epsilon=1, per="month"), Budget(epsilon=1, per="year", of="day")):
        if other != Budget(epsilon=1):
            with pytest.raises(InvalidParameter):
                ledger.stewardship.open_account("patients", unit=UNIT, budget=other)
            with pytest.raises(InvalidParameter, match="Which rows share a budget is fixed"):
                ledger.stewardship.amend("patients", budget=other)
    ledger.charge("patients", events.Pure(1), periods=[JANUARY])
    for more in (Budget(epsilon=2), Budget(epsilon=2, per="month", of="day")):
        ledger.stewardship.amend("patients", budget=more)
    ledger.charge("patients", events.Pure(1), periods=[JANUARY])
    ledger.stewardship.renew("patients", note="other patients")
    ledger.charge("patients", events.Pure(2), periods=[JANUARY])
    ledger.stewardship.open_account("plain", unit=Unit("other"), budget=Budget(epsilon=1))
    with pytest.raises(InvalidParameter, match="Which rows share a budget is fixed"):
        ledger.stewardship.amend("plain", budget=MONTHLY)
    with pytest.raises(InvalidParameter, match="A cap counts queries"):
        ledger.stewardship.appoint("ana", "analyst", account="plain", cap=MONTHLY)
    ledger.verify()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"zone": "Europe/Berlin"}, "zone"), ({"start": "2026-07-01"}, "start"), ({"per": "never"}, "per")],
)
def test_dates_of_rows_have_the_calendars_own_periods(arguments: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Budget(**{"epsilon": 1, "per": "month", "of": "day", **arguments})  # type: ignore[call-overload]
    assert refused.value.name == name


def test_periods_do_not_come_without_a_length() -> None:
    with pytest.raises(InvalidParameter, match="to come with per"):
        Budget(epsilon=1, of="day")  # type: ignore[call-overload]


def test_caps_count_a_query_once() -> None:
    ledger = opened()
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.6"))
    ledger.charge("patients", HALF, analyst="ana", periods=[JANUARY, FEBRUARY, MARCH])
    with pytest.raises(InsufficientBudget, match="the cap of 'ana'"):
        ledger.charge("patients", HALF, analyst="ana", periods=["2026-04-01"])
    ledger.verify()


def test_what_is_set_aside_counts_in_every_period() -> None:
    ledger = opened()
    ledger.charge("patients", events.Pure("0.8"), periods=[JANUARY])
    with pytest.raises(InsufficientBudget, match="Nothing was set aside"):
        ledger.caps.reserve("weekly", account="patients", budget=Budget(epsilon="0.3"))
    ledger.caps.reserve("weekly", account="patients", budget=Budget(epsilon="0.2"))
    with pytest.raises(InsufficientBudget):
        ledger.charge("patients", TENTH, periods=[JANUARY])
    with pytest.raises(InsufficientBudget):
        ledger.charge("patients", events.Pure("0.9"), periods=[FEBRUARY])
    ledger.charge("patients", events.Pure("0.2"), periods=[JANUARY, MARCH], reserve="weekly")
    ledger.charge("patients", events.Pure("0.8"), periods=[FEBRUARY])
    assert ledger.balance("patients").periods == ((JANUARY, "100 %"), (FEBRUARY, "100 %"), (MARCH, "20 %"))
    ledger.verify()


def test_what_a_lost_ledger_had_spent_counts_in_every_period(tmp_path: Path) -> None:
    ledger, copy, anchor = (str(tmp_path / name) for name in ("ledger", "copy", "anchor"))
    with AnchoredLedger(ledger, anchor_file=anchor) as lost:
        lost.stewardship.open_account("patients", unit=UNIT, budget=MONTHLY)
        lost.charge("patients", TENTH, periods=[JANUARY])
        lost.backup(copy)
        lost.charge("patients", events.Pure("0.2"), periods=[JANUARY, FEBRUARY])
    restore_anchored(copy, f"{ledger}.new", anchor_file=anchor, accept_loss=True)
    with AnchoredLedger(f"{ledger}.new", anchor_file=anchor) as again:
        again.verify()
        with pytest.raises(InsufficientBudget):
            again.charge("patients", events.Pure("0.8"), periods=[JANUARY])
        with pytest.raises(InsufficientBudget):
            again.charge("patients", events.Pure("0.7"), periods=[MARCH])
        again.charge("patients", events.Pure("0.4"), periods=[JANUARY])  # both ways since the last common head count


def test_an_entry_that_hides_a_period_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(path) as ledger:
        ledger.charge("patients", HALF, periods=[JANUARY, FEBRUARY])
    tamper(path, "DELETE FROM states WHERE scope = 'rows' AND name LIKE '%2026-02-01'")
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered):
        ledger.verify()


# ------------------------------------------------------------------------------------------- the arithmetic, by itself


class Book:
    """What was charged for the rows of each period, added up by itself."""

    def __init__(self, budget: Loss) -> None:
        self.budget, self.spent, self.life = budget, dict[str, Tallies](), Fraction(0)

    def add(self, event: events.Event, days: list[str]) -> None:
        price = prices(event, self.budget, Neighbours.ADD_REMOVE)
        for day in days:
            self.spent[day] = self.spent.get(day, Tallies.zero(self.budget)) + price
        if isinstance(event, events.Pure):
            self.life += event.epsilon * len(days)

    def check(self) -> None:
        assert all(sums.holding(self.budget) is not None for sums in self.spent.values())


def play(path: str, charges: int, seed: int, budget: Loss = ONE) -> tuple[Book, int]:
    """Charges at random for three years of rows through two open ledgers, which are reopened now and then."""
    draw, book, passed = Dice(seed), Book(budget), 0
    schedule = RenewingBudget(budget, MONTHLY.schedule)
    ledgers = [opened(path, schedule), Ledger(path)]
    months = [f"{year}-{month:02}-01" for year in (2024, 2025, 2026) for month in range(1, 13)]
    for number in range(charges):
        first = draw.below(len(months))
        days = months[first : first + 1 + draw.below(3)]
        event: events.Event = events.Pure(Fraction(1 + draw.below(20), 100))
        if isinstance(budget, ApproxDP) and draw.random() < 0.5:
            event = events.Calibrated(events.Concentrated("0.001"), "0.1", "1e-8")
        place = draw.below(2)
        if draw.random() < 0.01:
            ledgers[place].close()
            ledgers[place] = Ledger(path)
        try:
            ledgers[place].charge("patients", event, periods=days, question=f'{{"number":{number}}}')
        except InsufficientBudget:
            continue
        book.add(event, days)
        book.check()
        passed += 1
    for one in ledgers:
        one.verify()
        one.close()
    return book, passed


def check_play(path: str, charges: int, seed: int, budget: Loss = ONE) -> None:
    book, passed = play(path, charges, seed, budget)
    assert 0 < passed < charges
    with Ledger(path, read_only=True) as ledger:
        balance = ledger.balance("patients")
        shares = {day: share_used(sums, budget) for day, sums in book.spent.items()}
        assert [day for day, _ in balance.periods] == sorted(shares)
        assert balance.spent_share == max(share for share in shares.values() if share is not None)
        if isinstance(budget, PureDP):
            assert balance.lifetime == PureDP(book.life)
            assert min(share or 0 for share in shares.values()) > Fraction(9, 10)  # nearly exactly one amount each


@pytest.mark.ci
@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6")], ids=str)
def test_each_month_of_rows_spends_one_amount(tmp_path: Path, budget: Loss) -> None:
    check_play(str(tmp_path / "ledger"), 1000, 1, budget)


@pytest.mark.slow
def test_each_month_of_rows_spends_one_amount_in_ten_thousand_charges(tmp_path: Path) -> None:
    check_play(str(tmp_path / "ledger"), 10_000, 2)


# ------------------------------------------------------------------------------------------------------ real processes


def check_killed(path: Path, runs: int, seed: int, mutant: str = "") -> None:
    """Pairs of processes charge for months, both are killed: no month spends more, nothing acknowledged is lost."""
    opened(path).close()
    lines = run("months", path, runs, seed, mutant=mutant)
    assert {line[0] for line in lines} == {"charged"}
    entries = [entry for entry in entries_of(path) if entry.kind == "charge"]
    written = {(entry.content["question"], str(entry.sequence), entry.hash) for entry in entries}
    assert {tuple(line[1:]) for line in lines} <= written
    assert len({question for question, _, _ in written}) == len(entries)
    spent, life = dict[str, Fraction](), Fraction(0)
    for question, _, _ in written:
        where, amount, _ = question.split("/")
        first, length = map(int, where.split("+"))
        for day in map(month, range(first, first + length)):
            spent[day] = spent.get(day, Fraction(0)) + Fraction(int(amount), 1000)
            life += Fraction(int(amount), 1000)
    assert max(spent.values()) <= 1
    with Ledger(str(path)) as ledger:
        balance = ledger.balance("patients")
        assert [day for day, _ in balance.periods] == sorted(spent)
        assert (balance.spent_share, balance.lifetime) == (max(spent.values()), PureDP(life))
        ledger.verify()
    if runs >= 400:
        assert sum(spent.values()) > Fraction(9, 10) * 36  # nearly exactly one amount each


@pytest.mark.ci
def test_killed_processes_spend_one_amount_on_each_month_of_rows(tmp_path: Path) -> None:
    check_killed(tmp_path / "ledger", 30, 1)


@pytest.mark.slow
def test_hundreds_of_killed_processes_spend_one_amount_on_each_month_of_rows(tmp_path: Path) -> None:
    check_killed(tmp_path / "ledger", 400, 2)


@pytest.mark.slow
def test_a_charge_that_is_acknowledged_too_early_is_caught(tmp_path: Path) -> None:
    """A mutant that acknowledges first and commits with the next charge but two."""
    with pytest.raises(AssertionError):
        check_killed(tmp_path / "ledger", 30, 1, mutant="late")


def test_a_ledger_that_forgets_periods_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that charges the first period alone."""
    honest = period_budgets.find_periods
    monkeypatch.setattr(period_budgets, "find_periods", lambda *told: honest(*told)[:1])
    with pytest.raises(AssertionError):
        check_play(str(tmp_path / "ledger"), 150, 1)


def test_a_ledger_that_forgets_what_is_set_aside_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant in which an amount that is set aside counts in no period."""
    monkeypatch.setattr(period_budgets, "as_seen_by", lambda now, period: now._replace(spent=period.state.spent))
    with pytest.raises(pytest.fail.Exception):
        test_what_is_set_aside_counts_in_every_period()


def test_sums_of_periods_are_sealed(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with opened(path) as ledger:
        ledger.charge("patients", HALF, periods=[JANUARY])
    with closing(sqlite3.connect(path)) as rows:
        ((name, text),) = rows.execute("SELECT name, text FROM states WHERE scope = 'rows'").fetchall()
    assert (name, '"pure":"1/2"' in text) == (f"patients\n{JANUARY}", True)
