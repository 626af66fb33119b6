"""One line of the ledger, and the chain of hashes that ties each line to all before it.

The hash of an entry is SHA-256 over the hash of the entry before it and every field of its own, one to a line. Only
the last field, the body, could hold a line break, and canonical JSON holds none: two different entries never have the
same text.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import Any, NamedTuple

from discreet.errors import InvalidParameter, LedgerTampered
from discreet.ledger.serialization import canonical

GENESIS = "0" * 64
"""The hash before the first entry."""

_new = tuple.__new__  # makes a named tuple without the function around it
_ABOUT = {"appoint": "name", "service": "about"}  # the field that names the person an act is about
_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class Entry(NamedTuple):
    """One entry of the ledger. Its order is the sequence, never the clock: `time` is for people only."""

    sequence: int
    time: str
    kind: str
    account: str
    """Empty for an act on the ledger as a whole."""
    who: str
    price: str
    """The sums of a charge under each rule, as canonical JSON."""
    key: str
    """The idempotency key of a charge, or empty."""
    about: int
    """The sequence of the charge whose outcome this is, or 0."""
    body: str
    hash: str

    @property
    def content(self) -> dict[str, Any]:
        """The body, parsed.

        Raises:
            LedgerTampered: if it is no JSON object any more.
        """
        try:
            return dict(json.loads(self.body))
        except (TypeError, ValueError):
            raise LedgerTampered(self.sequence, "it cannot be read") from None

    @property
    def without_salt(self) -> Entry:
        """The entry as readers of the ledger see it: without the salt of a new account, which stays secret.

        The hash is that of the entry as it is written, with the salt: `Ledger.verify` checks it.
        """
        if self.kind != "open":
            return self
        content = self.content
        account = {key: value for key, value in content["account"].items() if key != "salt"}
        return self._replace(body=canonical({**content, "account": account}))

    def concerns(self, analyst: str | None = None, project: str | None = None) -> bool:
        """Returns whether it is an act of this person or on them, and about this project; None means all."""
        if (
            analyst is not None
            and analyst != self.who
            and not (self.kind in _ABOUT and self.content[_ABOUT[self.kind]] == analyst)
        ):
            return False
        return project is None or self.content.get("project") == project

    def __repr__(self) -> str:
        """Leaves out the body and the key, which may hold sensitive literals."""
        return f"Entry(sequence={self.sequence}, kind={self.kind!r}, account={self.account!r}, who={self.who!r})"


class Head(NamedTuple):
    """The last entry's place and hash: exported elsewhere, it anchors everything before it.

    >>> Head.parse(str(Head(0, GENESIS))) == Head(0, GENESIS)
    True
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Returns the head that was printed as "sequence:hash".

        Raises:
            InvalidParameter: if the text is nothing of the kind.
        """
        match = _HEAD.fullmatch(text.strip())
        if match is None:
            raise InvalidParameter("head", text, "to be 'sequence:hash'", "Pass what str(ledger.head()) returned.")
        return cls(int(match[1]), match[2])


def seal(previous: str, sequence: int, fields: tuple[str, str, str, str, str, str, int, str]) -> Entry:
    """Returns the entry that follows another: its fields (time to body) with their hash."""
    return _new(Entry, (sequence, *fields, compute_entry_hash(previous, (sequence, *fields, ""))))


def compute_entry_hash(previous: str, entry: Entry | tuple[int, str, str, str, str, str, str, int, str, str]) -> str:
    """Returns the hash that an entry, or its fields, must have after another."""
    sequence, time, kind, account, who, price, key, about, body, _ = entry
    lines = f"{previous}\n{sequence}\n{time}\n{kind}\n{account}\n{who}\n{price}\n{key}\n{about}\n{body}"
    return sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def digest(data: bytes) -> str:
    """Returns SHA-256 as text."""
    return sha256(data).hexdigest()
