"""A book read once from its beginning, page by page, and what a report keeps of it: sums, curves, the newest of each.

Entries are read as they are written and nothing is added to them. Lists keep the newest so many; counts and sums are
of all.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from discreet.ledger import Book, Entry
from discreet.ledger.changes import makes_anchor_again
from discreet.ledger.serialization import parsed, read_loss
from discreet.ledger.tallies import Price, Tallies
from discreet.presentation.documents.query_text import asked_text
from discreet.presentation.ledger_report.entry_words import entry_details
from discreet.presentation.ledger_report.released_numbers import Declared
from discreet.presentation.ledger_report.used_shares import Spending
from discreet.privacy import Loss, Neighbours

PAGE = 5_000
"""Entries that are read at once."""

MOST_LISTED = 100
"""Lines of a list: the newest."""

MOST_WORDINGS = 2_000
"""Different questions of an account that are counted, by their words."""

MOST_RUNNING = 10_000
"""Charges without an outcome that are remembered while the book is read."""

_ON_ACCOUNTS = ("open", "attach", "amend", "renew", "appoint", "allot", "unlock")
_ON_THE_LEDGER = ("service", "freeze", "resume", "recover", "anchor")
ACTS = frozenset(_ON_ACCOUNTS + _ON_THE_LEDGER)
"""What stewards do: everything else follows from questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A charged question and how it ended, or what was released on the way to its answer.

    Attributes:
        sequence: of its charge.
        question: as the charge has it.
        cost: what it cost.
        outcome: "answered", "failed" or "not ended".
        replay_key: under which its answer is kept, if it has one.
        paid_by: the charge that has paid, if it is not this one.
    """

    sequence: int
    time: str
    account: str
    who: str
    project: str
    words: str
    question: str
    cost: str
    outcome: str = "not ended"
    replay_key: str = ""
    paid_by: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """An entry that is no question."""

    sequence: int
    time: str
    kind: str
    account: str
    who: str
    words: str


@dataclass(slots=True, kw_only=True)
class AccountHistory:
    """One account, filled while the book is read."""

    name: str
    unit: str
    neighbours: Neighbours
    budget: Loss
    own: Spending
    people: dict[str, Spending] = field(default_factory=dict)
    projects: dict[str, Spending] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    wordings: Counter[str] = field(default_factory=Counter)

    def person(self, name: str) -> Spending:
        """Returns somebody's spending."""
        return self.people.setdefault(name, Spending(budget=self.budget))

    def project(self, name: str) -> Spending:
        """Returns a project's spending."""
        return self.projects.setdefault(name, Spending(budget=self.budget))

    @property
    def spenders(self) -> tuple[Spending, ...]:
        """The account itself, its people and its projects."""
        return self.own, *self.people.values(), *self.projects.values()


@dataclass(slots=True, kw_only=True)
class BookHistory:
    """What a report keeps of a book, filled while it is read."""

    accounts: dict[str, AccountHistory] = field(default_factory=dict)
    asked: dict[int, Asked] = field(default_factory=dict)
    acts: deque[Act] = field(default_factory=lambda: deque(maxlen=MOST_LISTED))
    declared: dict[tuple[str, int], Declared] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    running: dict[int, tuple[str, bool]] = field(default_factory=dict)
    """Charges that have not ended: their projects, and whether another one has paid."""
    anchor_acts: deque[Act] = field(default_factory=lambda: deque(maxlen=MOST_LISTED))
    """Where the anchor was missing, and somebody accepted that or joined another machine's."""
    entries: int = 0
    last: int = 0
    """The entry that was read last."""

    def declared_at(self, sequence: int) -> dict[str, Declared]:
        """Returns the tables as they were declared before an entry."""
        return {table: told for (table, place), told in self.declared.items() if place < sequence}

    def keep(self, asked: Asked) -> None:
        """Keeps a question, and lets go of the oldest."""
        self.asked[asked.sequence] = asked
        if len(self.asked) > MOST_LISTED:
            del self.asked[next(iter(self.asked))]


def read_history(book: Book, history: BookHistory | None = None) -> BookHistory:
    """Reads all entries of a book, a page at a time, or those that were made since an earlier reading of it."""
    history = BookHistory() if history is None else history
    for entry in _entries(book, history.last):
        history.entries += 1
        history.last = entry.sequence
        history.counts[entry.kind] += 1
        read = _READERS.get(entry.kind)
        if read is not None:
            read(history, entry, entry.content)
        if entry.kind in ACTS:
            history.acts.append(_act(entry))
    return history


def _entries(book: Book, last: int) -> Iterator[Entry]:
    while found := book.history(after=last, limit=PAGE):
        yield from found
        last = found[-1].sequence


def _act(entry: Entry) -> Act:
    return Act(
        sequence=entry.sequence,
        time=entry.time,
        kind=entry.kind,
        account=entry.account,
        who=entry.who,
        words=entry_details(entry),
    )


def anchor_note(act: Act) -> str:
    """Returns a warning about an entry by which a missing anchor was accepted, or another machine's was joined."""
    return (
        f"Entry {act.sequence}, {act.time[:16].replace('T', ' ')}, by {act.who}: the anchor of the ledger was "
        f"{act.words}. An older copy may have taken the ledger's place then."
    )


def _time(entry: Entry) -> dt.datetime:
    return dt.datetime.fromisoformat(entry.time)


def _open(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    told = content["account"]
    budget = read_loss(told["budget"])
    own = Spending(budget=budget)
    own.begin(_time(entry), budget)
    history.accounts[told["name"]] = AccountHistory(
        name=told["name"],
        unit=told["unit"]["name"],
        neighbours=Neighbours(told["neighbours"]),
        budget=budget,
        own=own,
    )


def _attach(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    account = history.accounts[entry.account]
    account.tables[content["table"]] = content["version"]
    history.declared[content["table"], entry.sequence] = Declared(
        declaration=content["declaration"],
        version=content["version"],
        account=entry.account,
        neighbours=account.neighbours,
    )


def _amend(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    account = history.accounts[entry.account]
    account.budget = read_loss(content["budget"])
    for spender in account.spenders:
        spender.amend(_time(entry), account.budget)


def _renew(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    account, time = history.accounts[entry.account], _time(entry)
    account.budget = read_loss(content["budget"])
    for spender in account.spenders:
        spender.begin(time, account.budget)


def _appoint(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    if entry.account:  # else it is a role on the whole book
        account, cap = history.accounts[entry.account], content["cap"]
        account.person(content["name"]).limit(_time(entry), None if cap is None else read_loss(cap))


def _allot(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    account = history.accounts[entry.account]
    account.project(content["project"]).limit(_time(entry), read_loss(content["cap"]))


def _run(history: BookHistory, entry: Entry, project: str, *, paid: bool) -> None:
    """Remembers a charge until it ends; of those that never do, the oldest are forgotten."""
    history.running[entry.sequence] = project, paid
    if len(history.running) > MOST_RUNNING:
        del history.running[next(iter(history.running))]


def _ended(history: BookHistory, entry: Entry) -> list[Spending]:
    """Whose question has ended: nobody's, if it was on the way to another's answer."""
    project, paid = history.running.pop(entry.about, ("", True))
    account = history.accounts[entry.account]
    more = [account.project(project)] if project else []
    return [account.own, account.person(entry.who), *more] if paid else []


def _charge(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    """A charge that stands beside another is free: it is for what was released on the way to an answer."""
    account, time, project = history.accounts[entry.account], _time(entry), content.get("project", "")
    words = asked_text(content)
    _run(history, entry, project, paid="beside" not in content)
    if "beside" not in content:
        price = Price(Tallies.read(parsed(entry.price)))
        spenders = [account.own, account.person(entry.who), *([account.project(project)] if project else [])]
        for spender in spenders:
            spender.charge(time, price)
        if words in account.wordings or len(account.wordings) < MOST_WORDINGS:
            account.wordings[words] += 1
    history.keep(
        Asked(
            sequence=entry.sequence,
            time=entry.time,
            account=entry.account,
            who=entry.who,
            project=project,
            words=words,
            question=content["question"],
            cost=str(read_loss(content["cost"])),
            paid_by=content.get("beside", 0),
        )
    )


def _recover(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    """Counts what was lost with a ledger, which counts as spent by those who had spent it."""
    account, time = history.accounts[entry.account], _time(entry)
    lost = [(account.own, content["account"])]
    lost += [(account.person(name), spent) for name, spent in content["people"].items()]
    lost += [(account.project(name), spent) for name, spent in content["projects"].items()]
    for spender, spent in lost:
        spender.lose(time, Price(Tallies.read(spent)))


def _anchor(history: BookHistory, entry: Entry, _: dict[str, Any]) -> None:
    if makes_anchor_again(entry):
        history.anchor_acts.append(_act(entry))


def _answer(history: BookHistory, entry: Entry, content: dict[str, Any]) -> None:
    asked = history.asked.get(entry.about)
    if asked is not None:
        history.asked[entry.about] = replace(asked, outcome="answered", replay_key=content["replay_key"])
    for spender in _ended(history, entry):
        spender.answered += 1


def _fail(history: BookHistory, entry: Entry, _: dict[str, Any]) -> None:
    if entry.about in history.asked:
        history.asked[entry.about] = replace(history.asked[entry.about], outcome="failed")
    for spender in _ended(history, entry):
        spender.failed += 1


_READERS: dict[str, Callable[[BookHistory, Entry, dict[str, Any]], None]] = {
    "open": _open,
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
}
