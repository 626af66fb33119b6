"""What the book says, for people: accounts as figures, entries as lines, the newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.curator.book_report.entry_words import entry_details
from discreet.ledger import Entry
from discreet.ledger.serialization import read_loss
from discreet.report.charts import Spec
from discreet.service.desk import Document
from discreet.service.page.burn_down import amount_left, burn_down

MOST_DETAILS = 400
"""Characters of a line; the certificate and the export have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountView:
    """An account, or somebody's part of it, as a template shows it."""

    name: str
    total: str
    spent: str
    remaining: str
    share: float
    facts: dict[str, str]
    stopped: tuple[str, ...]
    listed: bool
    tables: tuple[str, ...]
    unit: str
    neighbours: str


def account_view(told: Document, balance: Document) -> AccountView:
    """Returns what is shown of an account: its facts, and its own balance or somebody's."""
    return AccountView(
        name=told["account"],
        total=balance["total"]["text"],
        spent=_text(balance["spent"], "not bounded"),
        remaining=balance["remaining"]["text"],
        share=spent_share(balance),
        facts={label.capitalize(): text for label, text in balance["facts"].items()},
        stopped=tuple(who or "names without a role" for who in balance["stopped"]),
        listed=bool(told.get("listed", True)),
        tables=tuple(told["tables"]),
        unit=told["unit"],
        neighbours=told["neighbours"],
    )


def main_amount(loss: Document) -> tuple[str, Fraction]:
    """Returns the amount by which a budget is mainly counted: its epsilon or rho."""
    name = "rho" if "rho" in loss else "epsilon"
    return name, Fraction(loss[name])


def spent_share(balance: Document) -> float:
    """Returns which part of a budget is gone, from 0 to 1."""
    name, total = main_amount(balance["total"])
    left = balance["remaining"].get(name)
    return min(1.0, max(0.0, 1 - float(Fraction(left) / total))) if left is not None and total else 0.0


def burned(entries: Iterable[Entry], balance: Document) -> Spec | None:
    """Returns the burn-down of a balance, from the entries that made it."""
    name, total = main_amount(balance["total"])
    return burn_down(amount_left(entries, total, name), total, name)


def _text(loss: Document | None, none: str) -> str:
    return none if loss is None else str(loss["text"])


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLine:
    """One line of the history."""

    sequence: int
    time: str
    kind: str
    who: str
    account: str
    cost: str
    details: str
    certified: bool


def entry_line(entry: Entry) -> EntryLine:
    """Returns an entry as a line."""
    content = entry.content
    charged = entry.kind == "charge"
    return EntryLine(
        sequence=entry.sequence,
        time=entry.time,
        kind=entry.kind,
        who=entry.who,
        account=entry.account,
        cost=str(read_loss(content["cost"])) if charged and "cost" in content else "",
        details=entry_details(entry)[:MOST_DETAILS],
        certified=charged,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """Somebody, or a project, on an account."""

    name: str
    role: str
    cap: str
    spent: str
    remaining: str
    questions: int


def member_view(told: Document, questions: int = 0) -> MemberView:
    """Returns what is shown of somebody's part of an account."""
    return MemberView(
        name=told["name"],
        role=told.get("role") or "none",
        cap=_text(told["cap"], "none"),
        spent=_text(told["spent"], "not bounded"),
        remaining=told["remaining"]["text"],
        questions=questions,
    )


def questions_by_person(entries: Sequence[Entry]) -> Counter[str]:
    """Returns how many charged questions everybody has asked."""
    return Counter(entry.who for entry in entries if entry.kind == "charge")
