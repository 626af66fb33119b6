"""Where the data of a table come from, so that the same data do not get two budgets.

The book keeps, beside what was declared about a table, the paths of its files, what file was found there last (a device
and an inode, as the curator writes them), and perhaps an identity, a name that a steward gives to the data. It never
holds anything that was read from the data. Tables of one account may share data, since they share a budget. A table is
compared with those of other accounts by its identity if it has one, else by its files: a steward who declares an
identity answers for it, and the entry says who did. Books of earlier versions tell no files, and nothing is compared
until a table of theirs is protected again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidParameter
from discreet.ledger.serialization import name, parsed, text
from discreet.ledger.store.base import Rows

Told = Mapping[str, Any]
"""What the book says of a table."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Files by their paths, and an identity or none."""

    files: Mapping[str, str]
    identity: str

    @classmethod
    def of(cls, files: Mapping[str, str] | None, identity: str | None) -> Origin:
        """The origin that a steward's words and a source's files tell.

        Raises:
            InvalidParameter: if the identity is no name.
        """
        told = {text(path=path): text(file=file) for path, file in (files or {}).items()}
        return cls(told, "" if identity is None else name(identity=identity))

    @property
    def fields(self) -> dict[str, Any]:
        """What an entry says of it: nothing of what is not told."""
        return {
            **({"files": dict(self.files)} if self.files else {}),
            **({"identity": self.identity} if self.identity else {}),
        }

    def is_told(self, told: Told) -> bool:
        """Whether the book says all of it already."""
        return self.files.items() <= told.get("files", {}).items() and self.identity in ("", told.get("identity"))

    def found(self, told: Told) -> bool:
        """Whether a table was read from one of these paths, or from one of these files wherever they were then."""
        theirs: Mapping[str, str] = told.get("files", {})
        return bool(self.files.keys() & theirs.keys() or set(self.files.values()) & set(theirs.values()))


NOWHERE = Origin({}, "")
"""Of data that were never in a file, and have no name."""


def require_one_budget(known: Mapping[str, Told], table: str, account: str, origin: Origin) -> None:
    """Refuses a table whose data have a budget already, in another account.

    Args:
        known: what the book says of every table.
        table: the one to be attached.
        account: the account it is for.
        origin: where its data come from.

    Raises:
        InvalidParameter: naming the other account; or if the table has another identity.
    """
    own = known.get(table, {})
    identity = origin.identity or own.get("identity", "")
    if own.get("identity", identity) != identity:
        raise InvalidParameter("identity", identity, f"to be {own['identity']!r}, as declared before")
    for other, told in known.items():
        if other == table or told["account"] == account:
            continue
        hint = f"Pass account={told['account']!r} to share its budget, or"
        if identity and told.get("identity") == identity:
            raise InvalidParameter("identity", identity, f"not to be that of table {other!r}", f"{hint} use another.")
        before = own.get("files", {}).keys() & told.get("files", {}).keys()  # then an identity was declared
        if not identity and origin.found(told) and not before:
            condition = f"not to be the data of table {other!r}, which have a budget"
            hint += " declare with identity=... which other data it holds."
            raise InvalidParameter("source", next(iter(origin.files)), condition, hint)


def tables(rows: Rows) -> dict[str, Told]:
    """What the book says of every table."""
    return {place: parsed(content) for scope, place, content in rows.states() if scope == "table"}
