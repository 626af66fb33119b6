"""Balances and entries of the book as documents, and back."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from discreet.ledger import Balance, Entry, Role, Share, Standing
from discreet.presentation.documents.json_values import (
    Document,
    Given,
    read_any_loss,
    read_remaining,
    read_some_loss,
    reader,
    write_amount,
    write_loss_text,
    write_remaining,
)


def balance_document(balance: Balance) -> Document:
    """Returns the figures of an account, or of somebody on it."""
    return {
        "kind": "balance",
        "total": write_loss_text(balance.total),
        "spent": write_loss_text(balance.spent),
        "remaining": write_remaining(balance.remaining),
        "lifetime": write_loss_text(balance.lifetime),
        "period": balance.period,
        "failures": balance.failures,
        "stopped": list(balance.stopped),
        "locked": balance.locked,
        "facts": dict(balance.facts),
    }


def standing_document(standing: Standing) -> Document:
    """Returns the figures of an account as "balance", and everybody's on it as "people" and "projects"."""
    return {
        "listed": standing.listed,
        "balance": balance_document(standing),
        "people": [share_document(one) for one in standing.people],
        "projects": [share_document(one) for one in standing.projects],
    }


def share_document(share: Share) -> Document:
    """Returns the figures of a person, or of a project, on an account."""
    return {
        **balance_document(share.balance),
        "name": share.name,
        "role": None if share.role is None else share.role.value,
        "cap": write_loss_text(share.cap),
        "spendable": write_amount(share.spendable),
    }


@reader("account's balance")
def read_balance(document: Given) -> Balance:
    """Returns the balance of a document.

    Raises:
        InvalidParameter: if it is the document of nothing of the kind.
    """
    return Balance(
        total=read_some_loss(document["total"]),
        spent=read_any_loss(document["spent"]),
        remaining=read_remaining(document["remaining"]),
        lifetime=read_any_loss(document["lifetime"]),
        period=int(document["period"]),
        failures=int(document["failures"]),
        stopped=tuple(map(str, document["stopped"])),
    )


@reader("account's standing")
def read_standing(document: Given) -> Standing:
    """Returns where everybody stands on the account of a document.

    Raises:
        InvalidParameter: if it is the document of nothing of the kind.
    """
    whole = read_balance(document["balance"])
    return Standing(
        **{field.name: getattr(whole, field.name) for field in fields(Balance)},
        account=str(document["account"]),
        listed=bool(document["listed"]),
        people=tuple(_read_share(one) for one in document["people"]),
        projects=tuple(_read_share(one) for one in document["projects"]),
    )


def _read_share(document: Given) -> Share:
    role, cap = document["role"], document["cap"]
    return Share(
        name=str(document["name"]),
        role=None if role is None else Role(role),
        cap=None if cap is None else read_some_loss(cap),
        balance=read_balance(document),
        spendable=Fraction(document["spendable"]),
    )


def entry_document(entry: Entry) -> Document:
    """Returns an entry of the book for those who may see it: never with the salt of an account.

    Its "body" is the text that is hashed, or of an "open" entry that text without the salt.
    """
    return {"entry": entry.kind, **{name: part for name, part in entry.shown._asdict().items() if name != "kind"}}


@reader("entry")
def read_entry(document: Given) -> Entry:
    """Returns the entry of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    return Entry(**{name: document["entry" if name == "kind" else name] for name in Entry._fields})
