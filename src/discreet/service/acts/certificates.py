"""Certificates: what was promised about one charged question, so that a reader can check it."""

from __future__ import annotations

import json

from discreet.ledger import Account, Entry, Head
from discreet.ledger.serialization import read_loss, write_unit
from discreet.presentation.documents.result_documents import write_loss_text
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours
from discreet.service.request_executor import Document

_RELATIONS = {
    Neighbours.ADD_REMOVE: "one has all rows of one more unit than the other",
    Neighbours.REPLACE: "both have the same number of units, and the rows of one unit differ in any way",
}
_RENEWS = " The account renews {}: in each period, as much again may be released about the same people."
_HOW = (
    "Ask a steward for entry {sequence} of the ledger: it must have this hash. "
    "Then run: discreet verify --anchor {head} "
    "This command must report that the ledger is unchanged and contains the anchor."
)


def guarantee(cost: Loss, account: Account) -> str:
    """Returns what a cost promises, in a sentence.

    >>> from discreet.privacy import PureDP, Unit
    >>> clinic = Account(
    ...     name="clinic", unit=Unit("patient", "id"), neighbours=Neighbours.ADD_REMOVE, budget=PureDP(1), salt=b""
    ... )
    >>> print(guarantee(PureDP("0.1"), clinic)[:105])
    For any two databases where one has all rows of one more unit than the other (a unit is one patient (id))
    """
    unit = f"a unit is one {account.unit}" if account.unit.columns else "a unit is one row"
    return f"For any two databases where {_RELATIONS[account.neighbours]} ({unit}), {_promise(cost)}."


def _promise(cost: Loss) -> str:
    if isinstance(cost, ZCDP):
        least = f", up to an event of probability {float(cost.delta):g}" if cost.delta else ""
        return (
            f"the Renyi divergence of every order a > 1 between the laws of the answer is at most {float(cost.rho):g} a"
            f"{least} (zero-concentrated differential privacy, {cost})"
        )
    promise = f"every set of answers is at most e^{float(getattr(cost, 'epsilon', 0)):g} times as likely under one"
    promise += " as under the other"
    if isinstance(cost, ApproxDP) and cost.delta:
        return f"{promise}, plus {float(cost.delta):g} (approximate differential privacy, {cost})"
    return f"{promise} (pure differential privacy, {cost})"


def certificate(entry: Entry, account: Account, outcome: Entry | None, head: Head, renews: str = "") -> Document:
    """Returns the certificate of a charge.

    Args:
        entry: the charge.
        account: the account that was charged.
        outcome: how it ended, if it has; of an answer, the digest of what was kept is shown.
        head: the head of the ledger now, which anchors the charge.
        renews: the calendar by which the account renews; empty if it does not.
    """
    content = entry.content
    cost, ended = read_loss(content["cost"]), None
    if outcome is not None:
        kept = {"digest": outcome.content["digest"]} if outcome.kind == "answer" else {}
        ended = {"entry": outcome.kind, "sequence": outcome.sequence, "hash": outcome.hash, **kept}
    return {
        "kind": "certificate",
        "account": account.name,
        "analyst": entry.who,
        "project": content.get("project", ""),
        "unit": {"text": str(account.unit), **write_unit(account.unit)},
        "relation": account.neighbours.value,
        "event": json.loads(content["event"]),
        "cost": write_loss_text(cost),
        "guarantee": guarantee(cost, account) + (_RENEWS.format(renews.partition(";")[0]) if renews else ""),
        "question": json.loads(content["question"]),
        "sql": content.get("sql"),
        "accounts_charged": content["joined"],
        "sequence": entry.sequence,
        "hash": entry.hash,
        "time": entry.time,
        "outcome": ended,
        "head": {"text": str(head), "sequence": head.sequence, "hash": head.hash},
        "check": _HOW.format(sequence=entry.sequence, head=head),
    }
