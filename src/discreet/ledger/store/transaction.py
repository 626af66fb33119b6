"""The rows of a book in SQLite, inside one transaction: entries, states and answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from discreet.errors import LedgerTampered
from discreet.ledger import schema
from discreet.ledger.entry import GENESIS, Entry, Head
from discreet.ledger.store.base import Kept, Place, Places, Rows, Stored, Value, as_text

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


class SqliteRows(Rows):
    """The rows of a ledger file, through one connection inside a transaction.

    States are what the entries amount to, and the hash of the last entry stands for all of them. So whoever wrote the
    last entry, as most do who write often, need not read the states again.

    Args:
        connection: in a transaction.
        remembered: states as they were at some head.
        cursor: for statements that are over at once; made anew, it costs as much as a short statement.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        remembered: Remembered | None = None,
        cursor: sqlite3.Cursor | None = None,
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
        """See `Rows.foresee`; beside remembered states the few that are missing are read when they are asked for."""
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
        """See `Rows.tail`."""
        if self._tail is None:
            row = self._cursor.execute(_TAIL).fetchone()
            if self._remembered is not None and self._remembered[0] == row:
                self._tail, self._known = self._remembered
            else:
                self._tail = Head(*row) if row else Head(0, GENESIS)
        return self._tail

    def append(self, entry: Entry) -> None:
        """See `Rows.append`."""
        self._cursor.execute("INSERT INTO entries VALUES (?,?,?,?,?,?,?,?,?,?)", entry)
        self._tail = _new(Head, (entry[0], entry[9]))

    def entry(self, sequence: int) -> Entry | None:
        """See `Rows.entry`."""
        return self._one(f"{_ENTRY} WHERE sequence = ?", sequence)

    def hash_at(self, sequence: int) -> str | None:
        """See `Rows.hash_at`."""
        row = self._connection.execute(f"{_HEAD} WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else Head(*row).hash

    def by_key(self, who: str, key: str) -> Entry | None:
        """See `Rows.by_key`."""
        return self._one(f"{_ENTRY} WHERE who = ? AND key = ? AND key <> ''", who, key)

    def outcome(self, charge: int) -> Entry | None:
        """See `Rows.outcome`."""
        return self._one(f"{_ENTRY} WHERE about = ? AND about > 0", charge)

    def entries(self, after: int = 0, account: str | None = None) -> Iterator[Entry]:
        """See `Rows.entries`."""
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
        """See `Rows.get`.

        Raises:
            LedgerTampered: if the text does not fit its seal.
        """
        place = scope, name
        kept = self._known[place] if place in self._known else self._fetched(place)
        return kept if kept is None or isinstance(kept, str) else as_text(kept)

    def read(self, place: Place, parse: Callable[[str], Value]) -> Value | None:
        """See `Rows.read`; raises as `get` does."""
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
        """See `Rows.put`."""
        values: list[str] = []
        for (scope, name), kept in states:
            text = kept if isinstance(kept, str) else kept.write()
            values += scope, name, text, _seal(scope, name, text)
        self._known.update(states)
        self._cursor.execute(_putting(len(states)), values)

    def states(self) -> Iterator[tuple[str, str, str]]:
        """See `Rows.states`."""
        rows = self._connection.execute("SELECT scope, name FROM states ORDER BY scope, name").fetchall()
        for scope, name in rows:
            yield scope, name, self.get(scope, name) or ""

    def add_answer(self, sequence: int, charge: int, replay_key: str, payload: bytes) -> None:
        """See `Rows.add_answer`."""
        self._connection.execute("INSERT INTO answers VALUES (?,?,?,?)", (sequence, charge, replay_key, payload))

    def answers(self, replay_key: str | None = None) -> Iterator[Stored]:
        """See `Rows.answers`."""
        chosen, values = ("", ()) if replay_key is None else (" WHERE replay_key = ?", (replay_key,))
        for place, charge, key, payload in self._connection.execute(f"{_ANSWER}{chosen} ORDER BY sequence", values):
            yield Stored(place, charge, key, payload if isinstance(payload, bytes) else b"")

    def answers_from(self, start: str, most: int) -> list[Stored]:
        """See `Rows.answers_from`."""
        chosen = f"{_ANSWER} WHERE replay_key >= ? AND replay_key < ? ORDER BY sequence DESC LIMIT ?"
        return [Stored(*row) for row in self._connection.execute(chosen, (start, start + "\U0010ffff", most))]

    def check(self) -> None:
        """See `Rows.check`."""
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
    if {sql for (sql,) in rows} != set(schema.STATEMENTS):
        raise LedgerTampered(0, "the tables or triggers of the file were altered")
