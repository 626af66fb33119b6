"""The rows of a ledger inside one transaction of a database that speaks SQL: entries, states and answers.

Every database keeps the same three tables, with texts in the order of their code points, so the statements are the
same; what differs is how they are run, and how a table is kept from being altered (`store.sqlite_tables`,
`store.postgres_tables`). Values are never part of a statement.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from discreet.errors import LedgerTampered
from discreet.ledger.entry import GENESIS, Entry, Head
from discreet.ledger.store.ledger_store import (
    AnswerPlace,
    Kept,
    Place,
    Places,
    StoredAnswer,
    Transaction,
    Value,
    as_text,
)

_ENTRY = "SELECT sequence, time, kind, account, who, price, key, about, body, hash FROM entries"
_HEAD = "SELECT sequence, hash FROM entries"
TAIL = f"{_HEAD} ORDER BY sequence DESC LIMIT 1"
_STATE = "SELECT text, seal FROM states WHERE scope = ? AND name = ?"
_STATES = "SELECT scope, name, text, seal FROM states{} ORDER BY scope, name"
_LATEST = "SELECT coalesce(max(time), ''), coalesce(max(sequence), 0) FROM entries WHERE sequence > ?"
_MOST_TIMES = 1000
_SEAL = "SELECT seal FROM states WHERE scope = ? AND name = ?"
_ANSWER = "SELECT sequence, charge, replay_key, payload FROM answers"
_PLACES = (
    "SELECT a.sequence, a.charge, a.replay_key, e.hash FROM answers a LEFT JOIN entries e ON e.sequence = a.sequence "
    "WHERE {} AND a.charge > 0 ORDER BY a.sequence DESC LIMIT ?"
)
_ALL_PLACES = _PLACES.format("a.replay_key >= ? AND a.replay_key < ?")
_LATER_PLACES = _PLACES.format(  # of a text that is put together there is no index: the few later rows are looked at
    "a.sequence > ? AND (a.replay_key || '') >= ? AND (a.replay_key || '') < ?"
)
_new = tuple.__new__  # makes a named tuple without the function around it
MOST_FORESEEN = 100  # SQLite limits the size of a statement; further states are read when they are asked for
_MOST_REMEMBERED = 1000  # states between two transactions

Remembered = tuple[Head, dict[Place, Any]]
"""States as they were kept when some entry was the last; None for one that did not exist."""


Run = Callable[[str, Sequence[Any]], Any]
"""Runs a statement with its values, and returns a cursor."""


class SqlTransaction(Transaction):
    """The rows of a ledger, inside a transaction of one connection.

    States are what the entries amount to, and the hash of the last entry identifies all of them. So a process that
    wrote the last entry, as most frequent writers did, need not read the states again.

    Args:
        remembered: states as they were at some head.
    """

    _query: Run
    """Runs a statement whose rows are fetched while others run."""
    _short: Run
    """Runs a statement whose rows are fetched before any other runs."""
    _write: Run
    """Runs a statement that has no rows, before the next that has some, or the end."""

    def __init__(self, remembered: Remembered | None = None) -> None:
        self._remembered = remembered
        self._tail: Head | None = None  # no other process writes during a transaction
        self._known: dict[Place, Any] = {}
        self.times: dict[int, tuple[str, int]] = {}
        """The latest time from an entry on, and the last entry that was looked at; the store keeps it."""
        self._wrote_none = True

    @abstractmethod
    def _stream(self, select: str, condition: str, values: Sequence[Any], after: int = 0) -> Iterator[tuple[Any, ...]]:
        """Returns the rows of a long table in the order of `sequence`, without fetching all at once.

        Args:
            select: the statement up to its WHERE; `sequence` comes first.
            condition: what it says after "WHERE sequence > after".
            values: of the condition.
            after: the last sequence to leave out.
        """

    @property
    def remembered_state(self) -> Remembered:
        """The states that the next transaction may start from if this one is committed."""
        return self._tail or self.tail(), self._known if len(self._known) <= _MOST_REMEMBERED else {}

    @property
    def seen_state(self) -> Remembered | None:
        """The states that the next look may start from; None if this one did not look for the last entry."""
        return None if self._tail is None else self.remembered_state

    def foresee(self, places: Places) -> None:
        """Reads several states at once if none is remembered; else the few missing ones are read when asked for."""
        if self._tail is None:
            self.tail()
        if not self._known:
            self._read(places()[:MOST_FORESEEN])

    def _read(self, places: Sequence[Place]) -> None:
        if places:
            self.learn(places, self._query(*foreseeing(places)).fetchall())

    def learn(self, places: Sequence[Place], found: Sequence[tuple[str, str, str, str]]) -> None:
        """Takes note of the rows that were found at some places; what is remembered is as good."""
        if not self._known:
            self._known.update(dict.fromkeys(places))
            self._known.update({(scope, name): self._check_seal(scope, name, *rest) for scope, name, *rest in found})

    def tail(self) -> Head:
        """Returns the place and the hash of the last entry."""
        if self._tail is None:
            row = self._short(TAIL, ()).fetchone()
            if self._remembered is not None and self._remembered[0] == row:
                self._tail, self._known = self._remembered
            else:
                self._tail = Head(*row) if row else Head(0, GENESIS)
        return self._tail

    def append(self, entry: Entry) -> None:
        """Adds an entry, and remembers it as the last one."""
        self._wrote_none = False
        self._write("INSERT INTO entries VALUES (?,?,?,?,?,?,?,?,?,?)", entry)
        self._tail = _new(Head, (entry[0], entry[9]))

    def entry(self, sequence: int) -> Entry | None:
        """Returns the entry at a place, or None."""
        return self._one(f"{_ENTRY} WHERE sequence = ?", sequence)

    def hash_at(self, sequence: int) -> str | None:
        """Returns the hash of the entry at a place, or None."""
        row = self._query(f"{_HEAD} WHERE sequence = ?", (sequence,)).fetchone()
        return None if row is None else Head(*row).hash

    def latest_time(self, first: int) -> str:
        """Returns the latest time of the entries from a place on, in ISO 8601; empty if there are none.

        Each entry is looked at once in a process: with a month of entries this would take longer than a charge.
        """
        latest, last = self.times.get(first, ("", first - 1))
        time, sequence = self._short(_LATEST, (last,)).fetchone()
        found: tuple[str, int] = max(latest, time), max(last, sequence)
        if self._wrote_none:  # an entry that is undone gives its place to another
            if len(self.times) >= _MOST_TIMES:
                self.times.clear()
            self.times[first] = found
        return found[0]

    def by_key(self, who: str, key: str) -> Entry | None:
        """Returns the charge that came with an idempotency key."""
        return self._one(f"{_ENTRY} WHERE who = ? AND key = ? AND key <> ''", who, key)

    def outcome(self, charge: int) -> Entry | None:
        """Returns the entry that ended a charge, or None."""
        return self._one(f"{_ENTRY} WHERE about = ? AND about > 0", charge)

    def entries(self, after: int = 0, account: str | None = None, kind: str | None = None) -> Iterator[Entry]:
        """Returns the entries in order, perhaps those of one account or of one kind."""
        wanted = {name: value for name, value in (("account", account), ("kind", kind)) if value is not None}
        chosen = "".join(f" AND {name} = ?" for name in wanted)
        for row in self._stream(_ENTRY, chosen, tuple(wanted.values()), after):
            yield Entry._make(row)

    def get(self, scope: str, name: str) -> str | None:
        """Returns the text of a state, or None.

        Raises:
            LedgerTampered: if the text does not fit its seal.
        """
        place = scope, name
        kept = self._known[place] if place in self._known else self._fetch_state(place)
        return kept if kept is None or isinstance(kept, str) else as_text(kept)

    def read(self, place: Place, parse: Callable[[str], Value]) -> Value | None:
        """Returns what a state says, parsed once, or None; raises as `get` does."""
        kept: Value | str | None = self._known.get(place)
        if kept is None and place not in self._known:
            kept = self._fetch_state(place)
        if isinstance(kept, str):
            kept = self._known[place] = parse(kept)
        return kept

    def _fetch_state(self, place: Place) -> Any:
        self.tail()  # what is remembered belongs to a tail
        if place not in self._known:
            row = self._query(_STATE, place).fetchone()
            self._known[place] = None if row is None else self._check_seal(*place, *row)
        return self._known[place]

    def _check_seal(self, scope: str, name: str, text: object, seal: object) -> str:
        if not isinstance(text, str) or seal != _seal(scope, name, text):
            raise LedgerTampered(self.tail().sequence, f"the stored {scope} does not match its seal")
        return text

    def put(self, *states: tuple[Place, Kept]) -> None:
        """Replaces states, and seals each of them."""
        values: list[str] = []
        for (scope, name), kept in states:
            text = kept if isinstance(kept, str) else kept.write()
            values += scope, name, text, _seal(scope, name, text)
        self._known.update(states)
        self._write(_putting(len(states)), values)

    def states(self, *scopes: str) -> Iterator[tuple[str, str, str]]:
        """Returns all states of some scopes whose seals fit."""
        chosen = f" WHERE scope IN ({','.join('?' * len(scopes))})" if scopes else ""
        for scope, name, text, seal in self._query(_STATES.format(chosen), scopes).fetchall():
            yield scope, name, self._check_seal(scope, name, text, seal)

    def seal(self, scope: str, name: str) -> str | None:
        """Returns the seal of a state, or None."""
        row = self._query(_SEAL, (scope, name)).fetchone()
        return None if row is None else str(row[0])

    def add_answer(self, sequence: int, charge: int, replay_key: str, payload: bytes) -> None:
        """Adds the bytes that an entry records."""
        self._write("INSERT INTO answers VALUES (?,?,?,?)", (sequence, charge, replay_key, payload))

    def answers(self, replay_key: str | None = None) -> Iterator[StoredAnswer]:
        """Returns the answers in order, perhaps those of one replay key."""
        chosen, values = ("", ()) if replay_key is None else (" AND replay_key = ?", (replay_key,))
        for place, charge, key, payload in self._stream(_ANSWER, chosen, values):
            yield StoredAnswer(place, charge, key, payload if isinstance(payload, bytes) else b"")

    def answer_places(self, start: str, most: int, *, after: int = 0) -> list[AnswerPlace]:
        """Returns the places of answers whose replay key begins with a text."""
        bounds = start, start + "\U0010ffff", most  # no text that begins with `start` sorts after the second bound
        asked = self._query(_LATER_PLACES, (after, *bounds)) if after else self._query(_ALL_PLACES, bounds)
        rows = asked.fetchall()
        return [_new(AnswerPlace, row) for row in rows]

    def answer_at(self, sequence: int) -> StoredAnswer | None:
        """Returns the answer that an entry recorded, or None."""
        row = self._query(f"{_ANSWER} WHERE sequence = ?", (sequence,)).fetchone()
        if row is None:
            return None
        place, charge, key, payload = row
        return StoredAnswer(place, charge, key, payload if isinstance(payload, bytes) else b"")

    def answer_start(self, sequence: int, length: int) -> bytes:
        """Returns the first bytes of an answer, which the server cuts."""
        row = self._query("SELECT substr(payload, 1, ?) FROM answers WHERE sequence = ?", (length, sequence)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else b""

    def _one(self, query: str, *values: int | str) -> Entry | None:
        row = self._query(query, values).fetchone()
        return Entry._make(row) if row else None


def foreseeing(places: Sequence[Place]) -> tuple[str, list[str]]:
    """Returns the statement that reads the states at some places, and its values."""
    return _foreseeing(len(places)), [value for place in places for value in place]


@lru_cache(maxsize=64)
def _foreseeing(count: int) -> str:
    """Returns the statement that reads so many states: one row or none for each."""
    state = "SELECT scope, name, text, seal FROM states WHERE scope = ? AND name = ?"
    return " UNION ALL ".join([state] * count)


@lru_cache(maxsize=64)
def _putting(count: int) -> str:
    """Returns the statement that writes so many states."""
    row, changed = "(?,?,?,?)", "ON CONFLICT (scope, name) DO UPDATE SET text = excluded.text, seal = excluded.seal"
    return " ".join(["INSERT INTO states VALUES", ",".join([row] * count), changed])


def _seal(scope: str, name: str, text: str) -> str:
    return sha256(f"{scope}\n{name}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
