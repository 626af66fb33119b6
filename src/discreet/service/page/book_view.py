"""What the book says, for people: accounts as figures, entries as lines, the newest first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.ledger import Account, Balance, Entry
from discreet.ledger.serialization import NAMES, read_loss
from discreet.privacy import Loss
from discreet.report.charts import Spec
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
    tables: tuple[str, ...] = ()
    unit: str = ""
    neighbours: str = ""


def account_view(
    name: str, balance: Balance, tables: Iterable[str] = (), account: Account | None = None
) -> AccountView:
    """Returns what is shown of a balance."""
    return AccountView(
        name=name,
        total=str(balance.total),
        spent="not bounded" if balance.spent is None else str(balance.spent),
        remaining=str(balance.remaining),
        share=spent_share(balance),
        facts={label.capitalize(): text for label, text in balance.facts.items()},
        stopped=tuple(who or "names without a role" for who in balance.stopped),
        tables=tuple(sorted(tables)),
        unit="" if account is None else str(account.unit),
        neighbours="" if account is None else account.neighbours.value,
    )


def main_amount(loss: Loss) -> tuple[str, Fraction]:
    """Returns the amount by which a budget is mainly counted: its epsilon or rho."""
    name = NAMES[type(loss)][0]
    return name, getattr(loss, name)


def spent_share(balance: Balance) -> float:
    """Returns which part of a budget is gone, from 0 to 1."""
    name, total = main_amount(balance.total)
    left = getattr(balance.remaining.loss, name, None)
    return min(1.0, max(0.0, 1 - float(left / total))) if left is not None else 0.0


def burned(entries: Iterable[Entry], balance: Balance) -> Spec | None:
    """Returns the burn-down of a balance, from the entries that made it."""
    name, total = main_amount(balance.total)
    return burn_down(amount_left(entries, total, name), total, name)


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
        details=_details(entry, content)[:MOST_DETAILS],
        certified=charged,
    )


def _details(entry: Entry, content: dict[str, Any]) -> str:
    if entry.kind == "charge":
        return _question(content.get("question"))
    if entry.about:
        return f"of entry {entry.about}"
    told = {name: value for name, value in content.items() if value not in (None, "") and name != "declaration"}
    return "; ".join(f"{name}: {_short(value)}" for name, value in told.items())


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _question(question: Any) -> str:
    """What was asked, in a few words: the book has a question as a plan, without the text it was written as."""
    try:
        told = json.loads(question) if isinstance(question, str) else question
        kinds = [str(one.get("kind", "")) for one in told.get("aggregates", ())]
        keys = [str(key[0]) for key in told.get("keys", ())]
        about = told.get("table")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return str(question)
    if not kinds or not isinstance(about, str):
        return _short(told)
    numbers = ", ".join(kind if count == 1 else f"{kind} x {count}" for kind, count in Counter(kinds).items())
    return f"{numbers} of {about}" + (f" by {', '.join(keys)}" if keys else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """Somebody, or a project, on an account."""

    name: str
    role: str
    cap: str
    spent: str
    remaining: str
    questions: int = 0


def member_view(name: str, role: str, cap: Loss | None, balance: Balance, questions: int = 0) -> MemberView:
    """Returns what is shown of somebody's part of an account."""
    return MemberView(
        name=name,
        role=role,
        cap="none of their own" if cap is None else str(cap),
        spent="nothing" if balance.spent is None or balance.spent.is_zero else str(balance.spent),
        remaining=str(balance.remaining),
        questions=questions,
    )


def appointed(entries: Iterable[Entry]) -> dict[str, tuple[str, Loss | None]]:
    """Returns who has which role and cap on an account, by the last appointment of each."""
    acts = [entry.content for entry in entries if entry.kind == "appoint"]
    return {act["name"]: (act["role"], None if act["cap"] is None else read_loss(act["cap"])) for act in acts}


def allotted(entries: Iterable[Entry]) -> dict[str, Loss]:
    """Returns the caps of projects on an account."""
    acts = [entry.content for entry in entries if entry.kind == "allot"]
    return {act["project"]: read_loss(act["cap"]) for act in acts}


def questions_by_person(entries: Sequence[Entry]) -> Counter[str]:
    """Returns how many charged questions everybody has asked."""
    return Counter(entry.who for entry in entries if entry.kind == "charge")
