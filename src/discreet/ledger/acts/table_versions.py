"""The versions of a table's data: named when it is attached, and moved on by a steward, which is an entry.

A version is a label of the steward's own. No function of the data, of its files or of a table's own history of commits
decides it, so that a file that is rewritten, or one person's rows that are erased, make nothing to be paid again.

Each curator is opened with the label of its own declarations, which a file may have for years. After an advance, all
curators whose label comes before it ask at the label of the advance, with their next question; a label that is attached
later is newer again, for the curators that were opened with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, UnknownTable
from discreet.hint_text import Hint
from discreet.ledger import changes, policy
from discreet.ledger.entry import Entry
from discreet.ledger.journal import Journal
from discreet.ledger.redeclaration import differences
from discreet.ledger.serialization import LONGEST_NAME, name, text
from discreet.ledger.stewardship import TableRecord, replace_declaration, tables
from discreet.ledger.store.ledger_store import VERSIONS


@dataclass(frozen=True, slots=True)
class TableVersion:
    """The version of a table's data that an answer is about.

    Attributes:
        table: its name.
        version: as a steward declared it.
        since: when that became an entry of the ledger, in ISO 8601.

    >>> print(TableVersion("visits", "2026-12", "2026-12-01T08:15:00.123+00:00"))
    visits 2026-12, since 2026-12-01 08:15:00 UTC
    """

    table: str
    version: str
    since: str

    def __str__(self) -> str:
        moment = f", since {self.since[:19].replace('T', ' ')} UTC" if self.since else ""
        return f"{self.table} {self.version}{moment}"


def _no_files(_: Mapping[str, str]) -> Mapping[str, str]:
    return {}


class TableVersions:
    """Reads and moves on the versions of the tables of a ledger.

    Args:
        journal: the ledger's.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def advance(
        self,
        table: str,
        *,
        version: str,
        declaration: str | None = None,
        replacing: str | None = None,
        files: Callable[[Mapping[str, str]], Mapping[str, str]] = _no_files,
        by: str = policy.OWNER,
        note: str = "",
    ) -> Entry:
        """Moves a table on to a version of its data, and returns the entry.

        Args:
            table: its name.
            version: a label that the table never had.
            declaration: another declaration that comes with the version, such as one that names another snapshot.
            replacing: the declaration in the ledger that it takes the place of, as the steward has seen it.
            files: returns, of the files of the table that the ledger has, what more it keeps with the version, such as
                a snapshot; it is called when all else is checked.
            by: the steward.
            note: why.

        Raises:
            UnknownTable: if it is not in the ledger.
            NotPermitted: if the caller is no steward.
            InvalidParameter: if the version is not new, or the table lies in memory.
            DeclarationChanged: if a declaration is given, and another one than `replacing` is in the ledger.
        """
        called, steward, why = name(table=table), name(by=by), text(note=note)
        with self._journal.acting() as rows:
            known = tables(rows)
            if called not in known:
                raise UnknownTable(called, known)
            told, account = known[called], known[called]["account"]
            policy.require_steward(rows, account, steward, f"advance table {called!r}")
            _check_label(called, told, version)
            _check_stored(called, told)
            body: dict[str, Any] = {"from": told["versions"][-1], "note": why, "table": called, "version": version}
            if declaration is not None and declaration != told["declaration"]:
                body |= replace_declaration(known, called, declaration, replacing)
                body |= {"declaration": text(declaration=declaration)}
            more = dict(files(told["files"]))
            body |= {"files": more} if more else {}
            rows.require_version(VERSIONS["advance"])
            entry = rows.add("advance", body, who=steward, account=account)
            changes.apply(rows, entry)
        return entry


def describe_advance(content: Mapping[str, Any]) -> str:
    """Returns what an entry says that moves a table on.

    >>> describe_advance({"table": "visits", "from": "", "version": "2026-12", "note": "the files of December"})
    'visits to 2026-12: the files of December'
    """
    before = f", from {content['from']}" if content["from"] else ""
    told = "; ".join(differences(content["before"], content["declaration"])) if "before" in content else ""
    said = f"{content['table']} to {content['version']}{before}{', new declaration: ' + told if told else ''}"
    return ": ".join(filter(None, (said, content.get("note"))))


# ---------------------------------------------------------------------------------------------------- what is refused


def _check_label(table: str, told: TableRecord, version: str) -> None:
    """Refuses a label that the table has or had, and one that people would take for it.

    Stored answers belong to the label of their version: at an old one, answers about other data would come back.
    """
    labels = told["versions"]
    label, hint = check.label(version=version), _propose(labels)
    if not 0 < len(label) <= LONGEST_NAME or not label.isprintable() or label != label.strip():
        condition = f"to be 1 to {LONGEST_NAME} printable characters without spaces around them"
        raise InvalidParameter("version", label[:LONGEST_NAME], condition, hint)
    if label == labels[-1]:
        raise InvalidParameter("version", label, f"to be a new one: table {table!r} is at it already", hint)
    if _fold_case(label) in map(_fold_case, labels):
        raise InvalidParameter("version", label, f"to be a new one: table {table!r} had it before", hint)


def _propose(labels: list[str]) -> Hint:
    """Returns the hint to choose another label, with one that is free."""
    stem = re.sub(r"[^A-Za-z0-9.]+", "-", labels[-1]).strip("-")[:100] or "version"
    taken, number = set(map(_fold_case, labels)), 2
    while _fold_case(f"{stem}-{number}") in taken:
        number += 1
    return Hint(f"Choose a label that it never had, e.g. {{version:{stem}-{number}}}.")


def _fold_case(label: str) -> str:
    return unicodedata.normalize("NFKC", label).strip().casefold()


def _check_stored(table: str, told: TableRecord) -> None:
    if not told.get("files"):
        condition = "to be in files or on a server, so that its rows can change where they are"
        hint = "A table in memory stays as it is. Protect the new data under the same name, at this version."
        raise InvalidParameter("table", table, condition, hint)
