"""Balances and entries of the ledger as documents, and back."""

from __future__ import annotations

from collections.abc import Iterable

from discreet.ledger import Account, Appointment, Balance, Entry, Head, LedgerEntries, Share, Standing
from discreet.ledger.caps.approvals import ApprovalRequest
from discreet.ledger.cost import Cost
from discreet.presentation.documents.result_documents import (
    Document,
    DocumentForm,
    Given,
    InlinePart,
    read_plain,
    types_of,
    write_amount,
    write_plain,
)
from discreet.presentation.ledger_view.entry_view import view_entry

BALANCE = DocumentForm(
    kind="balance",
    about="The figures of an account, or of a person or project on it.",
    make=Balance,
    parts={**types_of(Balance), "locked": bool, "facts": dict[str, str]},
).declare()
SHARE = DocumentForm(
    kind="share",
    says_kind=False,
    about="The figures of a person, or of a project, on an account.",
    make=Share,
    parts={"balance": InlinePart(Balance), **types_of(Share, without=("balance",))},
).declare()
APPOINTMENT: DocumentForm[Appointment] = DocumentForm(
    kind="appointment",
    says_kind=False,
    about="The role of a person; on an account, with their figures there.",
    make=lambda appointment: appointment,
    parts={"appointment": InlinePart(Appointment)},
    writes=lambda made: {"appointment": write_plain(made)},
    reads=lambda document: {"appointment": read_plain(Share if "total" in document else Appointment, document)},
)


def _read_balance(document: Given) -> Document:
    """Returns the account's own figures, which a standing has as attributes."""
    balance = BALANCE.read(document["balance"])
    return {name: getattr(balance, name) for name in types_of(Balance)}


STANDING = DocumentForm(
    kind="standing",
    says_kind=False,
    about='The figures of an account as "balance"; those of its people, projects and teams under these words.',
    make=Standing,
    parts={
        "account": str,
        "listed": bool,
        "balance": Balance,
        "people": tuple[Share, ...],
        "projects": tuple[Share, ...],
        "teams": tuple[Share, ...],
    },
    writes=lambda standing: {"balance": BALANCE.write(standing)},
    reads=_read_balance,
).declare()


def account_document(
    account: Account, tables: Iterable[str], *, own: Share | None, standing: Standing | None
) -> Document:
    """Returns an account for those who may see it.

    Args:
        account: its declaration.
        tables: those of its tables that the reader may see.
        own: the reader's own part; None for those who may not ask.
        standing: the figures of all people, for readers who may see them.
    """
    return {
        "account": account.name,
        "unit": str(account.unit),
        "neighbours": account.neighbours.value,
        "tables": sorted(tables),
        "own": write_plain(own),
        **({} if standing is None else STANDING.write(standing)),
    }


def _entry_document(entry: Entry) -> Document:
    """Returns an entry without an account's salt and without an idempotency key, and what is read from it."""
    view = view_entry(entry)
    return {
        "entry": entry.kind,
        "key": "",
        "body": entry.without_salt.body,
        "what": view.what,
        "question": view.plan,
        "project": view.project,
        "sql": view.sql,
        "cost": write_plain(view.cost),
        "share": None if view.share is None else write_amount(view.share),
    }


ENTRY = DocumentForm(
    kind="entry",
    says_kind=False,
    about=(
        'An entry of the ledger. "body" is the text that is hashed; for an "open" entry it is that text without the '
        'salt. "what", "sql", "question", "project", "cost" and "share" are read from it.'
    ),
    make=Entry,
    parts={
        "entry": str,
        **types_of(Entry, without=("kind",)),
        "what": str,
        "project": str,
        "sql": str | None,
        "question": str | None,
        "cost": Cost | None,
        "share": str | None,
    },
    writes=_entry_document,
    reads=lambda document: {"kind": document["entry"]},
).declare()


def history_document(entries: Iterable[Entry], following: int | None = None) -> Document:
    """Returns a page of entries, and where the next one begins; None at the end of the ledger."""
    return {"entries": [ENTRY.write(entry) for entry in entries], "next": following}


ENTRIES: DocumentForm[LedgerEntries] = DocumentForm(
    kind="entries",
    says_kind=False,
    about="A page of entries of the ledger, and where the next one begins.",
    make=lambda entries: LedgerEntries(entries),  # noqa: PLW0108 - its argument names the part
    parts={"entries": tuple[Entry, ...], "next": int | None},
    writes=history_document,
)
APPROVAL = DocumentForm(
    kind="approval",
    about="A request for one query beyond a cap, and who approved it.",
    make=ApprovalRequest,
    parts=types_of(ApprovalRequest),
).declare()
APPROVALS: DocumentForm[list[ApprovalRequest]] = DocumentForm(
    kind="approvals",
    about="Requests for queries beyond a cap, the newest first.",
    make=lambda approvals: approvals,
    parts={"approvals": list[ApprovalRequest]},
    writes=lambda approvals: {"approvals": [APPROVAL.write(each) for each in approvals]},
)
HEAD = DocumentForm(
    kind="head",
    says_kind=False,
    about="The head of the ledger. Stored elsewhere, it anchors all entries before it.",
    make=Head.parse,
    parts={"head": str},
    writes=lambda head: {"head": str(head)},
    reads=lambda document: {"text": document["head"]},
)
