"""What the book says, for people: accounts as figures, entries as lines, the newest first."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.ledger import Entry
from discreet.ledger.serialization import read_loss
from discreet.presentation.ledger_report.entry_words import entry_details
from discreet.presentation.ledger_report.used_shares import Spending, steps_left
from discreet.report.charts import Spec
from discreet.report.display import rate
from discreet.report.time_charts import burn_down
from discreet.service.desk import Document

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


def account_view(told: Document, balance: Document, spending: Spending | None) -> AccountView:
    """Returns what is shown of an account: its facts, and its own balance or somebody's, with how it came to it."""
    return AccountView(
        name=told["account"],
        total=balance["total"]["text"],
        spent=_text(balance["spent"], "not bounded"),
        remaining=balance["remaining"]["text"],
        share=0.0 if spending is None else 1.0 - spending.left,
        facts={label.capitalize(): text for label, text in balance["facts"].items()},
        stopped=tuple(who or "names without a role" for who in balance["stopped"]),
        listed=bool(told.get("listed", True)),
        tables=tuple(told["tables"]),
        unit=told["unit"],
        neighbours=told["neighbours"],
    )


def burned(spending: Spending | None) -> Spec | None:
    """Returns the burn-down of an account, or of somebody's part of it; None if nothing was charged to it.

    Each step is a share of the budget that was in force at the time. It is a function of the ledger alone, and ends
    with the last step: a page is the same at any time.
    """
    if spending is None or not any(step.is_charge for step in spending.curve):
        return None
    headline = f"{rate(spending.left)} is left"
    return burn_down({"left": steps_left(spending)}, now=spending.curve[-1].time, headline=headline)


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
