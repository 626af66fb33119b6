"""Approvals: an analyst asks for one query beyond a cap, and stewards allow it once.

An approval is for the replay key of a query and a price, for seven days, and is used up by one charge. It lifts the
caps of the analyst, the project and the teams, never the account's budget. Nobody approves their own request, and an
account may need several stewards.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import LedgerTampered
from discreet.ledger.entry import Entry, digest
from discreet.ledger.serialization import canonical, parse_canonical
from discreet.ledger.store.ledger_store import Place, StateStore, Transaction
from discreet.ledger.tallies import Tallies
from discreet.privacy.amounts import decimal
from discreet.report.display import Display, DisplayMixin

LASTS = dt.timedelta(days=7)
"""How long an approval may be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest(DisplayMixin):
    """A request for one query beyond a cap.

    Attributes:
        number: the entry that asked for it.
        account: which pays.
        analyst: who asks.
        sql: the query.
        asked: the epsilon that it was asked with, as "p/q".
        reason: why.
        approved_by: the stewards who approved it so far.
        needed: how many must.
        until: when the approval ends, in ISO 8601; empty until all have approved it.
        state: "waiting", "approved", "used" or "expired".
    """

    number: int
    account: str
    analyst: str
    sql: str
    asked: str
    reason: str
    approved_by: tuple[str, ...]
    needed: int
    until: str
    state: str

    def __repr__(self) -> str:
        return f"ApprovalRequest({self.number}, by {self.analyst!r}: {self.state})"

    def _display(self) -> Display:
        told = {
            "request": f"{self.number}, by {self.analyst} on account {self.account}",
            "query": f"{self.sql} (epsilon={decimal(Fraction(self.asked))})" if self.asked else self.sql,
            "reason": self.reason,
            "state": f"{self.state}; {len(self.approved_by)} of {self.needed} approvals",
            **({"until": f"{self.until[:16].replace('T', ' ')} UTC"} if self.until else {}),
        }
        return Display(columns=("", ""), rows=list(told.items()))


def place_of_request(number: int) -> Place:
    """Returns the place of a request."""
    return "approval", str(number)


def place_of_newest(account: str, who: str, replay_key: str) -> Place:
    """Returns the place of the newest request of a person for a query."""
    return "newest approval", f"{account}\n{who}\n{digest(replay_key.encode())}"


def needed(states: StateStore, account: str) -> int:
    """Returns how many stewards must approve a request on an account."""
    text = states.get("approvals", account)
    return 1 if text is None else int(parse_canonical(text))


def read_request(states: StateStore, number: int) -> dict[str, Any] | None:
    """Returns what the ledger says of a request; None if there is none of that number."""
    text = states.get(*place_of_request(number))
    return None if text is None else dict(parse_canonical(text))


def request_view(states: StateStore, number: int, told: dict[str, Any], moment: dt.datetime) -> ApprovalRequest:
    """Returns a request as people see it."""
    state = "used" if told["used"] else "approved" if told["until"] else "waiting"
    if state == "approved" and dt.datetime.fromisoformat(told["until"]) <= moment:
        state = "expired"
    return ApprovalRequest(
        number=number,
        account=told["account"],
        analyst=told["who"],
        sql=told["sql"],
        asked=told["asked"],
        reason=told["reason"],
        approved_by=tuple(told["by"]),
        needed=max(needed(states, told["account"]), len(told["by"])) if not told["until"] else len(told["by"]),
        until=told["until"],
        state=state,
    )


def find_approval(rows: Transaction, account: str, who: str, replay_key: str, price: Tallies) -> int | None:
    """Returns the request by which a charge may exceed caps now; None if nothing was approved for it."""
    text = rows.get(*place_of_newest(account, who, replay_key)) if replay_key else None
    if text is None:
        return None
    number = int(parse_canonical(text))
    told = read_request(rows, number)
    if told is None or told["used"] or not told["until"]:
        return None
    if dt.datetime.fromisoformat(told["until"]) <= rows.clock().moment:
        return None
    return number if price.is_covered_by(Tallies.read(told["price"])) else None


def used_request(states: StateStore, number: int) -> tuple[Place, str]:
    """Returns the state of a request after its charge."""
    told = read_request(states, number)
    if told is None or told["used"] or not told["until"]:
        raise LedgerTampered(0, "a charge exceeds a cap without an approval")
    return place_of_request(number), canonical({**told, "used": True})


def add_request(states: StateStore, entry: Entry) -> None:
    """Notes a request for an approval."""
    content = entry.content
    told = {
        "account": entry.account,
        "asked": content["asked"],
        "by": [],
        "price": parse_canonical(entry.price),
        "reason": content["reason"],
        "sql": content["sql"],
        "until": "",
        "used": False,
        "who": entry.who,
    }
    states.put((place_of_request(entry.sequence), canonical(told)))
    states.put((place_of_newest(entry.account, entry.who, content["replay_key"]), canonical(entry.sequence)))


def add_approval(states: StateStore, entry: Entry) -> None:
    """Notes that a steward approved a request."""
    content = entry.content
    told = read_request(states, content["request"])
    if told is None or told["used"] or told["until"] or entry.who in (told["who"], *told["by"]):
        raise LedgerTampered(entry.sequence, "it approves what cannot be approved")
    by = [*told["by"], entry.who]
    if bool(content["until"]) != (len(by) >= needed(states, told["account"])):
        raise LedgerTampered(entry.sequence, "it ends an approval that needs more stewards, or does not end one")
    changed = {**told, "by": by, "until": content["until"]}
    states.put((place_of_request(content["request"]), canonical(changed)))


def set_needed(states: StateStore, entry: Entry) -> None:
    """Notes how many stewards must approve a request."""
    states.put((("approvals", entry.account), canonical(entry.content["needed"])))
