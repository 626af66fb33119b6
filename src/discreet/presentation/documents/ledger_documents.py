"""Balances and entries of the ledger as documents, and back."""

from __future__ import annotations

from collections.abc import Iterable

from discreet.ledger import Account, Balance, Entry, Share, Standing
from discreet.presentation.documents.json_values import Document, Given, reader, write_loss_text
from discreet.presentation.documents.plain_results import read_fields, write_fields
from discreet.presentation.ledger_view.entry_view import view_entry


def balance_document(balance: Balance) -> Document:
    """Returns the figures of an account, or of somebody on it."""
    told = write_fields(balance, of=Balance)
    return {"kind": "balance", **told, "locked": balance.locked, "facts": dict(balance.facts)}


def standing_document(standing: Standing) -> Document:
    """Returns the figures of an account as "balance", and everybody's on it as "people" and "projects"."""
    return {
        "account": standing.account,
        "listed": standing.listed,
        "balance": balance_document(standing),
        "people": [share_document(one) for one in standing.people],
        "projects": [share_document(one) for one in standing.projects],
    }


def share_document(share: Share) -> Document:
    """Returns the figures of a person, or of a project, on an account."""
    return {**balance_document(share.balance), **write_fields(share, without=("balance",))}


@reader("account's balance")
def read_balance(document: Given) -> Balance:
    """Returns the balance of a document.

    Raises:
        InvalidParameter: if it is the document of nothing of the kind.
    """
    return read_fields(Balance, document)


@reader("account's standing")
def read_standing(document: Given) -> Standing:
    """Returns where everybody stands on the account of a document.

    Raises:
        InvalidParameter: if it is the document of nothing of the kind.
    """
    people, projects = (tuple(_read_share(one) for one in document[name]) for name in ("people", "projects"))
    whole = {**document["balance"], **document}
    return read_fields(Standing, whole, people=people, projects=projects)


def _read_share(document: Given) -> Share:
    return read_fields(Share, document, balance=read_balance(document))


def account_document(
    account: Account, tables: Iterable[str], *, own: Share | None, standing: Standing | None
) -> Document:
    """Returns an account for those who may see it.

    Args:
        account: its declaration.
        tables: those of its tables that the reader may see.
        own: the reader's own part; None for those who may not ask.
        standing: everybody's figures, for those who see all.
    """
    return {
        "account": account.name,
        "unit": str(account.unit),
        "neighbours": account.neighbours.value,
        "tables": sorted(tables),
        "own": None if own is None else share_document(own),
        **({} if standing is None else standing_document(standing)),
    }


def entry_document(entry: Entry) -> Document:
    """Returns an entry of the ledger for those who may see it: never with an account's salt or an idempotency key.

    Its "body" is the text that is hashed, or of an "open" entry that text without the salt; "what", "sql", "question",
    "project" and "cost" are read from it for people and programs.
    """
    shown, view = entry.shown._replace(key=""), view_entry(entry)
    return {
        "entry": entry.kind,
        **{name: part for name, part in shown._asdict().items() if name != "kind"},
        "what": view.what,
        "project": view.project,
        "sql": view.sql,
        "question": view.plan,
        "cost": write_loss_text(view.cost),
    }


def history_document(entries: Iterable[Entry], following: int | None = None) -> Document:
    """Returns a page of entries, and where the next one begins; None at the end of the ledger."""
    return {"entries": [entry_document(entry) for entry in entries], "next": following}


@reader("entry")
def read_entry(document: Given) -> Entry:
    """Returns the entry of a document.

    Raises:
        InvalidParameter: if it is the document of none.
    """
    return Entry(**{name: document["entry" if name == "kind" else name] for name in Entry._fields})
