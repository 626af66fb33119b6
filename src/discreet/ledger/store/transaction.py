"""The tables of a ledger file, version 1, and their rows inside one transaction: entries, states and answers.

`entries` is the book: only its end can be written. `states` is what the entries amount to, so that a charge need not
add them all up; verifying does. `answers` holds the bytes that were sent, whose digests are in the entries. Triggers
keep them append-only. Nothing here changes within a version: a file written by version 1 is read by every later one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from discreet.errors import LedgerTampered
from discreet.ledger.entry import GENESIS, Entry, Head
from discreet.ledger.store.base import Kept, Place, Places, Stored, Transaction, Value, as_text

VERSION = 1
APPLICATION = 0x44495343  # "DISC", in the header of every ledger file

_ENTRIES = """CREATE TABLE entries (
  sequence INTEGER PRIMARY KEY,
  time TEXT NOT NULL,
  kind TEXT NOT NULL,
  account TEXT NOT NULL,
  who TEXT NOT NULL,
  price TEXT NOT NULL,
  key TEXT NOT NULL,
  about INTEGER NOT NULL,
  body TEXT NOT NULL,
  hash TEXT NOT NULL
)"""

_STATES = """CREATE TABLE states (
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  text TEXT NOT NULL,
  seal TEXT NOT NULL,
  PRIMARY KEY (scope, name)
) WITHOUT ROWID"""

_ANSWERS = """CREATE TABLE answers (
  sequence INTEGER PRIMARY KEY,
  charge INTEGER NOT NULL UNIQUE,
  replay_key TEXT NOT NULL,
  payload BLOB NOT NULL
)"""

# INSERT OR REPLACE deletes rows without asking the triggers on DELETE, so what it would replace is refused on INSERT.
_ONLY_AT_THE_END = """CREATE TRIGGER entries_only_at_the_end BEFORE INSERT ON entries
WHEN NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM entries)
  OR (NEW.key <> '' AND EXISTS (SELECT 1 FROM entries WHERE who = NEW.who AND key = NEW.key AND key <> ''))
  OR (NEW.about > 0 AND EXISTS (SELECT 1 FROM entries WHERE about = NEW.about AND about > 0))
BEGIN SELECT RAISE(ABORT, 'entries are added at the end'); END"""

_ANSWERED_ONCE = """CREATE TRIGGER answers_once BEFORE INSERT ON answers
WHEN EXISTS (SELECT 1 FROM answers WHERE sequence = NEW.sequence OR charge = NEW.charge)
BEGIN SELECT RAISE(ABORT, 'a charge has one answer'); END"""


def _never(verb: str, table: str) -> str:
    return (
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} are kept for ever'); END"
    )


STATEMENTS = (
    _ENTRIES,
    _STATES,
    _ANSWERS,
    "CREATE UNIQUE INDEX entries_by_key ON entries (who, key) WHERE key <> ''",
    "CREATE UNIQUE INDEX entries_by_charge ON entries (about) WHERE about > 0",
    "CREATE INDEX answers_by_replay_key ON answers (replay_key)",
    _ONLY_AT_THE_END,
    _ANSWERED_ONCE,
    _never("UPDATE", "entries"),
    _never("DELETE", "entries"),
    _never("UPDATE", "answers"),
    _never("DELETE", "answers"),
    _never("DELETE", "states"),
)


_ENTRY = "SELECT sequence, time, kind, account, who, price, key, about, body, hash FROM entries"
_HEAD = "SELECT sequence, hash FROM entries"
_TAIL = f"{_HEAD} ORDER BY sequence DESC LIMIT 1"
_STATE = "SELECT text, seal FROM states WHERE scope = ? AND name = ?"
_ANSWER = "SELECT sequence, charge, replay_key, payload FROM answers"
_new = tuple.__new__  # makes a named tuple without the function around it
_MOST_FORESEEN = 100  # SQLite has a limit of its own; what is left over is read when it is asked for
_MOST_REMEMBERED = 1000  # states between two transactions

Remembered = tuple[Head, dict[Place, Any]]
"""States as they were kept when some entry was the last; None for one that did not exist."""


class SqliteTransaction(Transaction):
    """The rows of a ledger file, through one connection inside a transaction.

    States are what the entries amount to, and the hash of the last entry stands for all of them. So whoever wrote the
    last entry, as most do who write often, need not read the states again.

    Args:
        connection: in a transaction.
        remembered: states as they were at some head.
        cursor: for statements that are over at once; made anew, it costs as much as a short statement.
    """

    def __init__(
        self, connection: sqlite3.Connection, remembered: Remembered | None = None, cursor: sqlite3.Cursor | None = None
    ) -> None:
        self._connection = connection
        self._remembered = remembered
        self._cursor = cursor or connection.cursor()
        self._tail: Head | None = None  # nobody else writes during a transaction
        self._known: dict[Place, Any] = {}

    @property
    def remembered(self) -> Remembered:
        """What the next transaction may start from if this one is committed."""
        return self._tail or self.tail(), self._known if len(self._known) <= _MOST_REMEMBERED else {}

    def foresee(self, places: Places) -> None:
        """See `Transaction.foresee`; beside remembered states the few that are missing are read when asked for."""
        if self._tail is None:
            self.tail()
        if not self._known:
            self._read(places()[:_MOST_FORESEEN])

    def _read(self, places: Sequence[Place]) -> None:
        if not places:
            return
        values = [value for place in places for value in place]
        found = self._connection.execute(_foreseeing(len(places)), values).fetchall()
        self._known.update(dict.fromkeys(places))
        self._known.update({(scope, name): self._sealed(scope, name, text, seal) for scope, name, text, seal in found})

    def tail(self) -> Head:
        """See `Transaction.tail`."""
        if self._tail is None:
            row = self._cursor.execute(_TAIL).fetchone()
            if self._remembered is not None and self._remembered[0] == row:
                self._tail, self._known = self._remembered
            else:
                self._tail = Head(*row) if row else Head(0, GENESIS)
        return self._tail

    def append(self, entry: Entry) -> None:
        """See `Transaction.append`."""
        self._cursor.execute("INSERT INTO entries VALUES (?,?,?,?,?,?,?,?,?,?)", entry)
        self._tail = _new(Head, (entry[0], entry[9]))

    def entry(self, sequence: int) -> Entry | None:
        """See `Transaction.entry`."""
        return self._one(f"{_ENTRY} WHERE sequence = ?", sequence)

    def hash_at(self, sequence: int) -> str | None:
        """See `Transaction.hash_at`."""
        row = self._connection.execute(f"{_HEAD} WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else Head(*row).hash

    def by_key(self, who: str, key: str) -> Entry | None:
        """See `Transaction.by_key`."""
        return self._one(f"{_ENTRY} WHERE who = ? AND key = ? AND key <> ''", who, key)

    def outcome(self, charge: int) -> Entry | None:
        """See `Transaction.outcome`."""
        return self._one(f"{_ENTRY} WHERE about = ? AND about > 0", charge)

    def entries(self, after: int = 0, account: str | None = None) -> Iterator[Entry]:
        """See `Transaction.entries`."""
        chosen = "" if account is None else " AND account = ?"
        values = (after,) if account is None else (after, account)
        last = after
        try:
            for row in self._connection.execute(f"{_ENTRY} WHERE sequence > ?{chosen} ORDER BY sequence", values):
                last = row[0]
                yield Entry._make(row)
        except sqlite3.DatabaseError:
            raise LedgerTampered(last + 1, "cannot be read") from None

    def get(self, scope: str, name: str) -> str | None:
        """See `Transaction.get`.

        Raises:
            LedgerTampered: if the text does not fit its seal.
        """
        place = scope, name
        kept = self._known[place] if place in self._known else self._fetched(place)
        return kept if kept is None or isinstance(kept, str) else as_text(kept)

    def read(self, place: Place, parse: Callable[[str], Value]) -> Value | None:
        """See `Transaction.read`; raises as `get` does."""
        kept: Value | str | None = self._known.get(place)
        if kept is None and place not in self._known:
            kept = self._fetched(place)
        if isinstance(kept, str):
            kept = self._known[place] = parse(kept)
        return kept

    def _fetched(self, place: Place) -> Any:
        self.tail()  # what is remembered belongs to a tail
        if place not in self._known:
            row = self._connection.execute(_STATE, place).fetchone()
            self._known[place] = None if row is None else self._sealed(*place, *row)
        return self._known[place]

    def _sealed(self, scope: str, name: str, text: object, seal: object) -> str:
        if not isinstance(text, str) or seal != _seal(scope, name, text):
            raise LedgerTampered(self.tail().sequence, f"the stored {scope} does not fit its seal")
        return text

    def put(self, *states: tuple[Place, Kept]) -> None:
        """See `Transaction.put`."""
        values: list[str] = []
        for (scope, name), kept in states:
            text = kept if isinstance(kept, str) else kept.write()
            values += scope, name, text, _seal(scope, name, text)
        self._known.update(states)
        self._cursor.execute(_putting(len(states)), values)

    def states(self) -> Iterator[tuple[str, str, str]]:
        """See `Transaction.states`."""
        rows = self._connection.execute("SELECT scope, name FROM states ORDER BY scope, name").fetchall()
        for scope, name in rows:
            yield scope, name, self.get(scope, name) or ""

    def add_answer(self, sequence: int, charge: int, replay_key: str, payload: bytes) -> None:
        """See `Transaction.add_answer`."""
        self._connection.execute("INSERT INTO answers VALUES (?,?,?,?)", (sequence, charge, replay_key, payload))

    def answers(self, replay_key: str | None = None) -> Iterator[Stored]:
        """See `Transaction.answers`."""
        chosen, values = ("", ()) if replay_key is None else (" WHERE replay_key = ?", (replay_key,))
        for place, charge, key, payload in self._connection.execute(f"{_ANSWER}{chosen} ORDER BY sequence", values):
            yield Stored(place, charge, key, payload if isinstance(payload, bytes) else b"")

    def answers_from(self, start: str, most: int) -> list[Stored]:
        """See `Transaction.answers_from`."""
        chosen = f"{_ANSWER} WHERE replay_key >= ? AND replay_key < ? ORDER BY sequence DESC LIMIT ?"
        return [Stored(*row) for row in self._connection.execute(chosen, (start, start + "\U0010ffff", most))]

    def check(self) -> None:
        """See `Transaction.check`."""
        check_statements(self._connection)
        if self._connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise LedgerTampered(0, "the pages of the file are damaged")

    def _one(self, query: str, *values: int | str) -> Entry | None:
        row = self._connection.execute(query, values).fetchone()
        return Entry._make(row) if row else None


@lru_cache(maxsize=64)
def _foreseeing(count: int) -> str:
    """The statement that reads so many states; for each of them one row or none."""
    state = "SELECT scope, name, text, seal FROM states WHERE scope = ? AND name = ?"
    return " UNION ALL ".join([state] * count)


@lru_cache(maxsize=64)
def _putting(count: int) -> str:
    """The statement that writes so many states."""
    row, changed = "(?,?,?,?)", "ON CONFLICT DO UPDATE SET text = excluded.text, seal = excluded.seal"
    return " ".join(["INSERT INTO states VALUES", ",".join([row] * count), changed])


def _seal(scope: str, name: str, text: str) -> str:
    return sha256(f"{scope}\n{name}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def check_statements(connection: sqlite3.Connection) -> None:
    """Refuses a file whose tables or triggers are not exactly those that were created."""
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    if {sql for (sql,) in rows} != set(STATEMENTS):
        raise LedgerTampered(0, "the tables or triggers of the file were altered")
