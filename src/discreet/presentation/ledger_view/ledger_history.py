"""Reads a ledger once from its beginning, page by page, and keeps sums, curves and the newest entries of each kind.

Entries are read as they are written and nothing is added to them. Lists keep the newest so many; counts and sums are
of all. What is kept grows while a ledger is read on; `ledger_view.account_view` makes frozen views of it.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any

from discreet.dataclass import dataclass
from discreet.ledger import Entry, Ledger
from discreet.ledger.caps.period_budgets import KIND as ROWS
from discreet.ledger.changes import makes_anchor_again
from discreet.ledger.serialization import parse_canonical, read_loss, read_unit
from discreet.ledger.tallies import ChargePrice, Tallies
from discreet.presentation.ledger_view.budget_use import SpenderHistory
from discreet.presentation.ledger_view.entry_view import EntryView, view_entry
from discreet.privacy import Loss, Neighbours

PAGE = 5_000
"""Entries that are read at once."""

MOST_LISTED = 100
"""Lines of a list: the newest."""

MOST_WORDINGS = 2_000
"""Different queries of an account that are counted, by their words."""

MOST_RUNNING = 10_000
"""Charges without an outcome that are remembered while the ledger is read."""

_ON_ACCOUNTS = ("open", "attach", "advance", "amend", "renew", "appoint", "allot", "unlock")
_ON_CAPS = ("team", "reserve", "give back", "approve", "approvals", "doubt")
_ON_THE_LEDGER = ("service", "freeze", "resume", "recover", "anchor")
ACTIONS = frozenset(_ON_ACCOUNTS + _ON_CAPS + _ON_THE_LEDGER)
"""Kinds of entries that stewards make: all others follow from queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeView:
    """A charge and how it ended.

    Attributes:
        entry: the charge itself.
        outcome: "answered", "failed" or "not ended".
        replay_key: under which its answer is stored, if it has one.
    """

    entry: EntryView
    outcome: str = "not ended"
    replay_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDeclaration:
    """A table as it was declared when something was released from it.

    Attributes:
        declaration: the text of the entry.
        version: of its data.
        account: whose people it is about.
        neighbours: the account's relation.
    """

    declaration: str
    version: str
    account: str
    neighbours: Neighbours


@dataclass(slots=True, kw_only=True)
class AccountHistory:
    """One account, filled while the ledger is read."""

    name: str
    unit: str
    neighbours: Neighbours
    budget: Loss
    own: SpenderHistory
    people: dict[str, SpenderHistory] = field(default_factory=dict)
    projects: dict[str, SpenderHistory] = field(default_factory=dict)
    teams: dict[str, SpenderHistory] = field(default_factory=dict)
    reserves: dict[str, tuple[Tallies, Tallies]] = field(default_factory=dict)
    """Amounts that are set aside, by purpose: each as a whole, and what was spent of it."""
    tables: dict[str, str] = field(default_factory=dict)
    wordings: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def person(self, name: str) -> SpenderHistory:
        """Returns a person's spending."""
        return self.people.setdefault(name, SpenderHistory(budget=self.budget))

    def project(self, name: str) -> SpenderHistory:
        """Returns a project's spending."""
        return self.projects.setdefault(name, SpenderHistory(budget=self.budget))

    def team(self, name: str) -> SpenderHistory:
        """Returns a team's spending."""
        return self.teams.setdefault(name, SpenderHistory(budget=self.budget))

    @property
    def spenders(self) -> tuple[SpenderHistory, ...]:
        """Returns the account itself, its people, its projects and its teams."""
        return self.own, *self.people.values(), *self.projects.values(), *self.teams.values()

    def capped(self, kind: str, name: str) -> SpenderHistory:
        """Returns the spending of a person, project or team."""
        return {"analyst": self.person, "project": self.project, "team": self.team}[kind](name)


@dataclass(slots=True, kw_only=True)
class LedgerHistory:
    """The parts of a ledger that views need, filled while it is read."""

    accounts: dict[str, AccountHistory] = field(default_factory=dict)
    charges: dict[int, ChargeView] = field(default_factory=dict)
    actions: deque[EntryView] = field(default_factory=lambda: deque(maxlen=MOST_LISTED))
    declared: dict[tuple[str, int], TableDeclaration] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    running: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """Charges that have not ended: the project of each, and whether it paid for itself."""
    missing_anchors: deque[EntryView] = field(default_factory=lambda: deque(maxlen=MOST_LISTED))
    """Where the anchor was missing, and a steward accepted that or joined another machine's."""
    entries: int = 0
    last: int = 0
    """The entry that was read last."""

    def declared_at(self, sequence: int) -> dict[str, TableDeclaration]:
        """Returns the tables as they were declared before an entry."""
        return {table: told for (table, place), told in self.declared.items() if place < sequence}

    def add_charge(self, entry: EntryView) -> None:
        """Adds a charge, and drops the oldest where there are too many to list."""
        self.charges[entry.sequence] = ChargeView(entry=entry)
        if len(self.charges) > MOST_LISTED:
            del self.charges[next(iter(self.charges))]


def read_history(ledger: Ledger, history: LedgerHistory | None = None) -> LedgerHistory:
    """Reads all entries of a ledger, a page at a time, or those that were made since an earlier reading of it."""
    history = LedgerHistory() if history is None else history
    for entry in _entries(ledger, history.last):
        history.entries += 1
        history.last = entry.sequence
        history.counts[entry.kind] += 1
        read = _READERS.get(entry.kind)
        if read is not None:
            read(history, entry, entry.content)
        if entry.account in history.accounts:
            history.accounts[entry.account].kinds[entry.kind] += 1
        if entry.kind in ACTIONS:
            history.actions.append(view_entry(entry))
    return history


def _entries(ledger: Ledger, last: int) -> Iterator[Entry]:
    while found := ledger.history(after=last, limit=PAGE):
        yield from found
        last = found[-1].sequence


def anchor_note(action: EntryView) -> str:
    """Returns a warning about an entry by which a missing anchor was accepted, or another machine's was joined."""
    return (
        f"Entry {action.sequence}, {action.moment[:16]}, by {action.who}: anchor {action.words}. An older copy may "
        "have replaced the ledger at that time."
    )


def _time(entry: Entry) -> dt.datetime:
    return dt.datetime.fromisoformat(entry.time)


def _open(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    told = content["account"]
    budget = read_loss(told["budget"])
    own = SpenderHistory(budget=budget)
    own.begin(_time(entry), budget)
    history.accounts[told["name"]] = AccountHistory(
        name=told["name"],
        unit=str(read_unit(told["unit"])),
        neighbours=Neighbours(told["neighbours"]),
        budget=budget,
        own=own,
    )


def _attach(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    account = history.accounts[entry.account]
    account.tables[content["table"]] = content["version"]
    history.declared[content["table"], entry.sequence] = TableDeclaration(
        declaration=content["declaration"],
        version=content["version"],
        account=entry.account,
        neighbours=account.neighbours,
    )


def _advance(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    """Notes another version of a table, which is declared as it was unless the entry says otherwise."""
    table, version = content["table"], content["version"]
    known = next(told for (name, _), told in reversed(history.declared.items()) if name == table)
    declared = content.get("declaration", known.declaration)
    history.accounts[entry.account].tables[table] = version
    history.declared[table, entry.sequence] = replace(known, declaration=declared, version=version)


def _amend(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    account = history.accounts[entry.account]
    account.budget = read_loss(content["budget"])
    for spender in account.spenders:
        spender.amend(_time(entry), account.budget)


def _renew(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    account, time = history.accounts[entry.account], _time(entry)
    account.budget = read_loss(content["budget"])
    for spender in account.spenders:
        spender.begin(time, account.budget)
    for promise, _ in account.reserves.values():
        account.own.lose(time, ChargePrice(promise))


def _appoint(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    if entry.account:  # else it is a role on the whole ledger
        _limit(history.accounts[entry.account].person(content["name"]), entry, content)


def _allot(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    _limit(history.accounts[entry.account].project(content["project"]), entry, content)


def _team(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    _limit(history.accounts[entry.account].team(content["team"]), entry, content)


def _limit(spender: SpenderHistory, entry: Entry, content: dict[str, Any]) -> None:
    cap = content["cap"]
    spender.limit(_time(entry), None if cap is None else read_loss(cap), content.get("renews"))


def _reserve(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    account, promise = history.accounts[entry.account], Tallies.read(parse_canonical(entry.price))
    account.reserves[content["reserve"]] = promise, promise * 0
    account.own.lose(_time(entry), ChargePrice(promise))


def _give_back(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    account = history.accounts[entry.account]
    account.own.replace_spending(_time(entry), *account.reserves.pop(content["reserve"]))


def _run(history: LedgerHistory, entry: Entry, project: str, *, paid: bool) -> None:
    """Remembers a charge until it ends; of those that never do, the oldest are forgotten."""
    history.running[entry.sequence] = project, paid
    if len(history.running) > MOST_RUNNING:
        del history.running[next(iter(history.running))]


def _spenders(account: AccountHistory, who: str, project: str) -> list[SpenderHistory]:
    return [account.own, account.person(who), *([account.project(project)] if project else [])]


def _end_query(history: LedgerHistory, entry: Entry) -> list[SpenderHistory]:
    """Returns the spenders whose query has ended; none if another charge paid for it."""
    project, paid = history.running.pop(entry.about, ("", True))
    return _spenders(history.accounts[entry.account], entry.who, project) if paid else []


def _charge(history: LedgerHistory, entry: Entry, _: dict[str, Any]) -> None:
    """Counts a charge; one that another charge paid for is free, and was released on the way to an answer."""
    account, view = history.accounts[entry.account], view_entry(entry)
    _run(history, entry, view.project, paid=not view.paid_by)
    if not view.paid_by:
        _count_charge(account, entry, view.project)
        if view.words in account.wordings or len(account.wordings) < MOST_WORDINGS:
            account.wordings[view.words] += 1
    history.add_charge(view)


def _count_charge(account: AccountHistory, entry: Entry, project: str) -> None:
    """Adds a charge to all that it counts against; one from a reserve is part of what the account has spent."""
    time, price = _time(entry), Tallies.read(parse_canonical(entry.price))
    once, caps, reserve = ChargePrice(price), entry.content.get("caps", ()), ""
    days = [name for kind, name, _ in caps if kind == ROWS]
    spenders = _spenders(account, entry.who, project)
    for kind, name, opened in caps:
        if kind == "reserve":
            reserve = name
        if kind in ("reserve", ROWS):
            continue
        account.capped(kind, name).open_period(time, opened)
        if kind == "team":
            spenders.append(account.team(name))
    for spender in spenders:
        if spender is account.own and reserve:
            promise, spent = account.reserves[reserve]
            account.reserves[reserve] = promise, spent + price
            spender.questions += 1
        elif spender is account.own and days:
            spender.charge_periods(time, once, days)
        else:
            spender.charge(time, once)


def _recover(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    """Counts what was lost with a ledger, which counts as spent by those who had spent it."""
    account, time = history.accounts[entry.account], _time(entry)
    lost = [(account.own, content["account"])]
    lost += [(account.person(name), spent) for name, spent in content["people"].items()]
    lost += [(account.project(name), spent) for name, spent in content["projects"].items()]
    for spender, spent in lost:
        spender.lose(time, ChargePrice(Tallies.read(spent)))


def _anchor(history: LedgerHistory, entry: Entry, _: dict[str, Any]) -> None:
    if makes_anchor_again(entry):
        history.missing_anchors.append(view_entry(entry))


def _answer(history: LedgerHistory, entry: Entry, content: dict[str, Any]) -> None:
    charge = history.charges.get(entry.about)
    if charge is not None:
        history.charges[entry.about] = replace(charge, outcome="answered", replay_key=content["replay_key"])
    for spender in _end_query(history, entry):
        spender.answered += 1


def _fail(history: LedgerHistory, entry: Entry, _: dict[str, Any]) -> None:
    if entry.about in history.charges:
        history.charges[entry.about] = replace(history.charges[entry.about], outcome="failed")
    for spender in _end_query(history, entry):
        spender.failed += 1


_READERS: dict[str, Callable[[LedgerHistory, Entry, dict[str, Any]], None]] = {
    "open": _open,
    "advance": _advance,
    "attach": _attach,
    "amend": _amend,
    "renew": _renew,
    "appoint": _appoint,
    "allot": _allot,
    "charge": _charge,
    "recover": _recover,
    "anchor": _anchor,
    "answer": _answer,
    "fail": _fail,
    "give back": _give_back,
    "reserve": _reserve,
    "team": _team,
}
