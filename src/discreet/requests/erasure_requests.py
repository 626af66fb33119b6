"""The request that says where a person may still be, for a steward who erases them, with its handler.

It is answered from the ledger and from the names of files next to it. No row is read, and the person's id goes nowhere:
no entry, log, error or result has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, NotPermitted, UnknownTable
from discreet.ledger import OWNER, Caller, Entry, Ledger, Role
from discreet.ledger.redeclaration import ARROW
from discreet.ledger.stewardship import TableRecord
from discreet.plan.model.nodes import Value
from discreet.plan.model.unit_ids import id_text
from discreet.postgres_url import is_postgres
from discreet.report.display import Display, DisplayMixin
from discreet.requests.request import Arg, ArgumentKind, Request

_TEXT, _WHOLE = "text", "int"
STREAM = "stream:"
"""How the idempotency key of a stream's charge begins."""


@dataclass(frozen=True, slots=True)
class PersonPlace:
    """A place where a person's data may be.

    Attributes:
        kind: what it is, in a word or two.
        place: where, as the ledger or the steward's declaration names it.
        holds: what of the person it may hold, and what to look for.
        remedy: how to erase it.
    """

    kind: str
    place: str
    holds: str
    remedy: str


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """What may stay when a person is erased.

    Attributes:
        kind: what it is.
        count: how much of it there is.
        reason: why it may stay.
    """

    kind: str
    count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureReport(DisplayMixin):
    """The places where a person may still be, and what may stay.

    Attributes:
        account: whose people it is about: all its tables are looked at.
        places: where the person's data may be.
        kept: what may stay, and why.
    """

    account: str
    places: tuple[PersonPlace, ...]
    kept: tuple[KeptRecord, ...]

    def _display(self) -> Display:
        found = [f"{each.kind}, {each.place}: {each.holds}. {each.remedy}" for each in self.places]
        stays = [f"May stay: {each.kind} ({each.count:,}). {each.reason}" for each in self.kept]
        title = f"Where a person of account {self.account} may still be. No row was read."
        return Display(title=title, notes=(*found, *stays))


@dataclass(frozen=True, kw_only=True)
class EraseCheck(Request[ErasureReport]):
    """Say where a person may still be, for their erasure, and what may stay. The id is not kept, and no row is read."""

    verb: ClassVar[str] = "erase_check"
    table: Annotated[str, Arg(ArgumentKind.NAME, "A protected table; all of its account are listed.", example="visits")]
    person: Annotated[Value, Arg(ArgumentKind.VALUE, "The person's id, in one column.", example="1042", option="id")]


def erase_check(ledger: Ledger, request: EraseCheck, caller: Caller) -> ErasureReport:
    """Returns where a person may still be, and what may stay.

    Raises:
        NotPermitted: if the caller is no steward.
        UnknownTable: if the table is not in the ledger.
        InvalidParameter: if the id is empty; it is not repeated.
    """
    known = ledger.origins()
    if request.table not in known:
        raise UnknownTable(request.table, known)
    account = str(known[request.table]["account"])
    _require_steward(ledger, account, caller.analyst)
    person = id_text(str(request.person))
    if not person:
        raise InvalidParameter("person", "an empty id", "to be the id of a person", "Pass the id as the column has it.")
    tables = {name: told for name, told in known.items() if told["account"] == account}
    entries = ledger.history(account)
    return ErasureReport(
        account=account,
        places=(
            *(place for name, told in sorted(tables.items()) for place in _sources(name, told, person)),
            *_stream_states(ledger, entries),
            _entries_with(person, ledger, entries),
            *_COPIES,
        ),
        kept=tuple(_kept_records(entries)),
    )


def _require_steward(ledger: Ledger, account: str, who: str) -> None:
    if who != OWNER and Role.STEWARD not in (ledger.role(account, who), ledger.role("", who)):
        raise NotPermitted(who, "look for a person", "Only a steward may.")


# ------------------------------------------------------------------------------------------------------------- sources


def _sources(table: str, told: TableRecord, person: str) -> Iterator[PersonPlace]:
    """Yields the places of a table's rows: each that was ever declared, since nothing else says that it is gone."""
    holds, remedy = _rows_of(table, json.loads(told["declaration"]), person)
    for path in told.get("files", {}):
        kind = _kind(path)
        more = " Snapshots and backups of the server keep former rows." if kind == "table of a server" else ""
        yield PersonPlace(kind, path, holds, f"{remedy}{more}")
    if not told.get("files"):
        what = "Protect a frame without the rows, and end processes that have the old one."
        yield PersonPlace("frame in memory", table, holds, what)


def _kind(path: str) -> str:
    if "://" in path:
        return "table of a server"
    if path.endswith("/"):
        return "folder, and all below it"
    return "table of a database file" if "#" in path else "file"


def _rows_of(table: str, declared: Mapping[str, Any], person: str) -> tuple[str, str]:
    """Returns what a table may hold of a person, and how it is erased, by what the declaration says of ids."""
    unit = declared.get("unit")
    columns = [unit] if isinstance(unit, str) else list(unit or ())
    if not columns:
        holds = f"{table}: each row is one person, and no column has their id"
        return holds, "Find the row by what else you know of the person, and delete it."
    if len(columns) == 1 and ARROW in columns[0]:
        start, _, end = (part.strip() for part in columns[0].partition(ARROW))
        holds = f"{table}: rows whose {start} is {end} of one of the person's rows"
        return holds, "Delete these rows before those that they lead to."
    kind = declared.get("columns", {}).get(columns[0], {}).get("type")
    if kind == _WHOLE and not _is_whole(person):
        holds = f"{table}: no row, because {columns[0]} holds whole numbers and the id is none"
        return holds, "Nothing, unless the id is mistyped."
    named = " or ".join(columns)
    spaces = ", compared without spaces around them" if kind == _TEXT else ""
    return f"{table}: rows with the id in {named}{spaces}", "Delete these rows. The table needs no advance for it."


def _is_whole(person: str) -> bool:
    return person.removeprefix("-").isdecimal()


# -------------------------------------------------------------------------------------------------- the ledger and more


def _stream_states(ledger: Ledger, entries: Iterable[Entry]) -> Iterator[PersonPlace]:
    """Yields where the states of streams are: a stream's charge is known by its key."""
    started = sum(entry.kind == "charge" and entry.key.startswith(STREAM) for entry in entries)
    if not started:
        return
    holds = f"{started:,} streams: sums over people, and keyed digests of ids where the stream remembers people"
    remedy = "Keep a state while its stream runs, which cannot go on without it. Delete it when the stream has ended."
    if not (ledger.in_memory or is_postgres(ledger.path)):
        yield PersonPlace("stream states", str(Path(f"{ledger.path}.streams").absolute()), holds, remedy)
    yield PersonPlace("stream states", "other files that streams were given for their states, if any", holds, remedy)


def _entries_with(person: str, ledger: Ledger, entries: Iterable[Entry]) -> PersonPlace:
    """Returns which entries have the id as a value: it was written into a query, or declared as a key."""
    found = [entry.sequence for entry in entries if person in set(map(id_text, _values_in(ledger, entry)))]
    if not found:
        holds = "no rows, no ids of people, and no entry with this id as a value of a query or a declared key"
        return PersonPlace("ledger", "all entries of the account", holds, "Nothing.")
    holds = "no rows; a query or a list of keys has the id as a value, which may mean the person or something else"
    listed = ", ".join(map(str, found[:_MOST_LISTED])) + (", ..." if len(found) > _MOST_LISTED else "")
    remedy = "Entries cannot be changed. Decide whether the value identifies the person; ask without ids from now on."
    return PersonPlace("ledger", f"{len(found):,} entries: {listed}", holds, remedy)


_MOST_LISTED = 20


def _values_in(ledger: Ledger, entry: Entry) -> Iterator[str]:
    """Yields the literals of a query, and the keys that a declaration lists, also those of a long list."""
    content = entry.content
    texts: list[Any] = [content.get("question"), content.get("declaration")]
    if entry.kind == "keys":
        texts += [stored.payload for stored in ledger.read_answers(content["replay_key"])]
    for text in texts:
        try:
            yield from _plain_values(json.loads(text or "null"))
        except (ValueError, TypeError, RecursionError):  # a program that writes the ledger by itself may write any text
            continue


def _plain_values(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for inner in part.values():
            yield from _plain_values(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _plain_values(inner)
    elif isinstance(part, str | int | float) and not isinstance(part, bool):
        yield str(part)


_COPIES = (
    PersonPlace(
        "backups of the sources",
        "where you keep them; the ledger knows none",
        "the same rows as the sources",
        "Delete the rows there as well, or let the backups expire, and erase again after you restore one.",
    ),
    PersonPlace(
        "backups of the ledger",
        "where `discreet backup` wrote them",
        "what the ledger holds",
        "Nothing more than for the ledger itself.",
    ),
    PersonPlace(
        "copies outside",
        "exports, notebooks, uploads that were never protected, files of an engine that was killed",
        "whatever was copied by hand",
        "Look where people work. Discreet writes no rows to disk unless an engine was given a folder to spill to.",
    ),
)


def _kept_records(entries: Iterable[Entry]) -> Iterator[KeptRecord]:
    """Yields what may stay: what was released under the budget, and what was spent."""
    listed = list(entries)
    released = sum(entry.kind == "answer" for entry in listed)
    charges = sum(entry.kind == "charge" and "beside" not in entry.content for entry in listed)
    yield KeptRecord(
        "stored releases",
        released,
        "They are differentially private: within what was spent they would be as likely without the person, and so is "
        "all that is computed from them. Answers, models and synthetic tables stay, and are given again for free.",
    )
    yield KeptRecord(
        "charges",
        charges,
        "They say what was asked and what it cost, for all people together. What was spent stays spent, because the "
        "answers are known.",
    )
