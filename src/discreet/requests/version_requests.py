"""The request that moves a table on to new data, with its handler: it needs nothing but the ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from discreet.dataclass import dataclass
from discreet.engines.lakes.lake_table import newest_pins
from discreet.ledger import Caller, Entry, Ledger
from discreet.ledger.account import describe_share
from discreet.ledger.acts.table_versions import TableVersion
from discreet.privacy import Loss
from discreet.report.display import Display, DisplayMixin
from discreet.requests.ledger_requests import Note, account_of
from discreet.requests.request import Arg, ArgumentKind, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAdvance(DisplayMixin):
    """What an advance has changed, as the ledger tells.

    Attributes:
        table: that has moved on.
        account: whose people it is about.
        before: the version that it was at; empty if a steward had declared none.
        version: the one that it is at now.
        since: when that became an entry, in ISO 8601.
        asked_anew: how many stored answers are about the version before, and are not given again for new queries.
        free: how many stored answers of the account are about other tables, and stay free.
        spent: what the account has spent over all versions, which bounds the loss of every person in it; None if no
            rule can bound it any more.
        spent_share: the same as a share of the present budget, which may be above 1.
    """

    table: str
    account: str
    before: str
    version: str
    since: str
    asked_anew: int
    free: int
    spent: Loss | None
    spent_share: Fraction | None

    def _display(self) -> Display:
        facts = {
            "now": str(TableVersion(self.table, self.version, self.since)),
            "before": self.before or "no version",
            "stored answers that are asked anew": f"{self.asked_anew:,}",
            "stored answers that stay free": f"{self.free:,} of account {self.account}",
            "spent over all versions": _amount(self.spent, self.spent_share),
        }
        return Display(columns=("", ""), rows=list(facts.items()))


def _amount(spent: Loss | None, share: Fraction | None) -> str:
    return describe_share(share) if spent is None else f"{spent}, {describe_share(share)} of the budget"


@dataclass(frozen=True, kw_only=True)
class Advance(Request[TableAdvance]):
    """Say that a table has new data, under a label of yours. Queries about it are asked anew; others stay free."""

    verb: ClassVar[str] = "advance"
    table: Annotated[str, Arg(ArgumentKind.NAME, "A protected table.", example="visits")]
    version: Annotated[
        str, Arg(ArgumentKind.TEXT, "What the data are called from now on: a label that is new.", example="2026-12")
    ]
    note: Note = ""


def advance(ledger: Ledger, request: Advance, caller: Caller) -> TableAdvance:
    """Moves a table on, and returns what that changes.

    Raises:
        UnknownTable: if it is not in the ledger.
        NotPermitted: if the caller is no steward.
        InvalidParameter: if the label is not new, or the table lies in memory, or its newest snapshot cannot be read.
    """
    entry = ledger.versions.advance(
        request.table,
        version=request.version,
        files=lambda recorded: newest_pins(recorded, request.version),
        by=caller.analyst,
        note=request.note,
    )
    account = account_of(ledger, request.table)
    anew, free = count_answers(ledger.history(), account, entry)
    whole = ledger.balance(account)
    return TableAdvance(
        table=request.table,
        account=account,
        before=entry.content["from"],
        version=request.version,
        since=entry.time,
        asked_anew=anew,
        free=free,
        spent=whole.lifetime,
        spent_share=whole.lifetime_share,
    )


def count_answers(entries: Iterable[Entry], account: str, advance: Entry) -> tuple[int, int]:
    """Returns how many stored answers an advance makes to be asked anew, and how many of the account stay free.

    An answer is given again while none of its tables was declared anew, attached at another version or advanced since
    it was charged. Releases on the way to an answer, such as bounds, are not counted.
    """
    charges, answered, changed = dict[int, tuple[int, frozenset[str]]](), set[int](), dict[str, int]()
    declared, first, more = dict[str, tuple[str, set[str]]](), 0, 0
    for entry in entries:
        if entry.sequence >= advance.sequence:
            break
        if entry.kind in ("attach", "advance") and _is_change(entry.content, declared):
            changed[entry.content["table"]] = entry.sequence
        elif entry.kind == "answer":
            answered.add(entry.about)
        elif entry.kind == "charge":
            content = entry.content
            first, more = (first, more - 1) if more else (entry.sequence, content.get("joined", 1) - 1)
            if entry.account == account and "beside" not in content:
                charges[entry.sequence] = first, tables_of(str(content.get("question")))
    present = [
        tables
        for sequence, (first, tables) in charges.items()
        if first in answered and all(sequence > changed.get(table, 0) for table in tables)
    ]
    anew = sum(advance.content["table"] in tables for tables in present)
    return anew, len(present) - anew


def _is_change(content: Mapping[str, Any], declared: dict[str, tuple[str, set[str]]]) -> bool:
    """Returns whether an entry says that a table is at another version or declared otherwise, and remembers it.

    A table that is attached again, from another file, stays what it was.
    """
    table = content["table"]
    before, versions = declared.get(table, ("", set[str]()))
    declaration = content.get("declaration", before)
    declared[table] = declaration, versions | {content["version"]}
    return declaration != before or content["version"] not in versions


def tables_of(question: str) -> frozenset[str]:
    """Returns the tables that a charge read, from the canonical JSON of what was asked.

    >>> sorted(tables_of('{"table":"visits","source":["join",["table","visits","id"],["table","wards",null]]}'))
    ['visits', 'wards']
    """
    try:
        return frozenset(_table_names(json.loads(question)))
    except (ValueError, RecursionError):  # a program that charges the ledger by itself may write any text
        return frozenset()


def _table_names(part: Any) -> Iterator[str]:
    """Yields the names that follow the words by which `plan.canonical` writes a table."""
    if isinstance(part, dict):
        if isinstance(part.get("table"), str):
            yield part["table"]
        for inner in part.values():
            yield from _table_names(inner)
    elif isinstance(part, list):
        if len(part) > 2 and part[0] in ("table", "reached") and isinstance(part[1], str):
            yield part[1]
        for inner in part:
            yield from _table_names(inner)
