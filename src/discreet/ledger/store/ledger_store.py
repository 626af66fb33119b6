"""What the ledger needs from a database: a few rows read and written inside one transaction.

A store makes three promises. From `begin` to `end` a writer is alone among all threads and processes, and what was
written is durable if it ends without an error, and gone if it ends with one. `reading` sees one state of the ledger.
Entries and answers are only ever added. SQLite keeps them in `store.sqlite`, PostgreSQL in `store.postgres`; another
database needs these two classes only.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps into enums, which takes ten times as long
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import lru_cache
from types import FrameType
from typing import Any, NamedTuple, Protocol, TypeVar

from discreet.ledger.account import AccountMember, AccountState
from discreet.ledger.entry import Entry, Head, digest, seal
from discreet.ledger.renewal.clock import Clock, read_machine_clock
from discreet.ledger.serialization import canonical

Value = TypeVar("Value")


def _now() -> str:
    """Returns the time in milliseconds, in ISO 8601."""
    thousandths = time.time_ns() // 1_000_000
    return f"{_second(thousandths // 1000)}.{str(thousandths)[-3:]}+00:00"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """Returns a second in ISO 8601; cached, because the same second is written many times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class StoredAnswer(NamedTuple):
    """An answer as it was kept: the entry that recorded it, its charge, and the bytes that were sent."""

    sequence: int
    charge: int
    replay_key: str
    payload: bytes
    event: str = ""
    """All that was released for it, as its entry says; empty where that is what the charge, or the answer, says."""

    def is_of(self, entry: Entry) -> bool:
        """Returns whether these are the bytes that an entry records: of an answer, or of declared keys."""
        content = entry.content
        length, header = content.get("header", (0, digest(b"")))
        return (
            entry.kind in BLOCKS
            and self.charge == (no_charge(entry.sequence) if entry.kind == "keys" else entry.about)
            and self.replay_key == content["replay_key"]
            and digest(self.payload) == content["digest"]
            and digest(self.payload[:length]) == header
        )

    def __repr__(self) -> str:
        """Leaves out the payload."""
        return f"StoredAnswer(sequence={self.sequence}, charge={self.charge}, {len(self.payload)} bytes)"


class AnswerPlace(NamedTuple):
    """The place of a stored answer: the entry that recorded it, its charge, its replay key, and the entry's hash."""

    sequence: int
    charge: int
    replay_key: str
    hash: str | None
    """None if the entry is missing."""


class StoredHeader(NamedTuple):
    """The first line of a stored answer, which describes it."""

    place: AnswerPlace
    question: str
    """The question that was charged."""
    header: bytes
    """The first line; empty for an answer of one line, which must be opened."""
    event: str
    """As `StoredAnswer.event`."""

    def __repr__(self) -> str:
        """Leaves out what was asked and answered."""
        return f"StoredHeader(sequence={self.place.sequence}, {len(self.header)} bytes)"


BLOCKS = frozenset(("answer", "keys"))
"""The kinds of entries that record bytes, which are stored in a table of their own."""


def no_charge(sequence: int) -> int:
    """Returns the number that replaces the charge of declared keys, which cost nothing: their entry's place, negated.

    >>> no_charge(7)
    -7
    """
    return -sequence


Place = tuple[str, str]
"""Scope and name of a state."""


VERSION = 7
"""The version of ledgers, in a file or on a server. A ledger of an earlier version becomes one of this version with the
first entry that the earlier code does not know, so that the earlier code refuses the ledger and does not take it for
altered; until then both can use it."""

NEW = 2
"""The version of a new ledger: until it holds what came later, earlier code can use it."""

_CAPS = ("approvals", "approve", "claim teams", "doubt", "give back", "request", "reserve", "team")
VERSIONS = {"service": 2, "recover": 3, "anchor": 4, "keys": 5, **dict.fromkeys(_CAPS, 6), "advance": 7}
"""The version that introduced a kind of entry; all other kinds are as old as the ledger."""

CALENDARS = 6
"""The version that introduced calendars, by which a budget or a cap renews: fields of entries of earlier kinds."""


def needed_version(entry: Entry) -> int:
    """Returns the version of a ledger that may hold an entry; 0 if every version may."""
    dated = entry.kind in ("open", "amend", "renew", "appoint", "allot") and "renews" in entry.content
    dated = dated or (entry.kind == "open" and "rows" in entry.content["account"])
    return CALENDARS if dated else VERSIONS.get(entry.kind, 0)


Places = Callable[[], Sequence[Place]]
"""Returns places, and is called only if they are needed."""


Kept = str | AccountState | AccountMember
"""A state as it is kept between charges: its text, or its parsed value once a caller has needed it."""


def as_text(kept: Kept) -> str:
    """Returns a state as it is written in the ledger."""
    return kept if isinstance(kept, str) else kept.write()


class StateStore(Protocol):
    """A place for states: the store, or memory while verifying."""

    def get(self, scope: str, name: str) -> str | None:
        """Returns the text of a state, if there is one."""

    def read(self, place: Place, parse: Callable[[str], Value]) -> Value | None:
        """Returns what a state says, if there is one; `parse` makes it from its text, the same for a scope."""

    def put(self, *states: tuple[Place, Kept]) -> None:
        """Replaces states, each given as a text or as what it says."""


class Transaction(ABC):
    """The rows of the ledger inside one transaction."""

    @abstractmethod
    def foresee(self, places: Places) -> None:
        """Reads several states at once, because they will be asked for; what is remembered is not read again."""

    @abstractmethod
    def tail(self) -> Head:
        """Returns the last entry's place and hash."""

    _clock: Clock | None = None

    def clock(self) -> Clock:
        """Returns the time of this transaction, by the clock of the machine unless the database has one.

        It is read once, so that all that is decided in a transaction is decided in one period.
        """
        if self._clock is None:
            self._clock = read_machine_clock()
        return self._clock

    def stamp(self) -> str:
        """Returns the time for an entry, in ISO 8601."""
        return _now() if self._clock is None else self._clock.moment.isoformat(timespec="milliseconds")

    @abstractmethod
    def latest_time(self, first: int) -> str:
        """Returns the latest time of the entries from a place on, in ISO 8601; empty if there are none."""

    def add(
        self, kind: str, body: object, *, who: str, account: str = "", price: str = "", key: str = "", about: int = 0
    ) -> Entry:
        """Writes the next entry of the chain; a body that is a text is canonical JSON already."""
        sequence, previous = self.tail()
        written = body if isinstance(body, str) else canonical(body)
        entry = seal(previous, sequence + 1, (self.stamp(), kind, account, who, price, key, about, written))
        self.append(entry)
        return entry

    @abstractmethod
    def append(self, entry: Entry) -> None:
        """Adds an entry; a second one with the same place, key or charge is refused."""

    @abstractmethod
    def require_version(self, version: int) -> None:
        """Makes the ledger one of this version at least, together with what is written in the transaction."""

    @abstractmethod
    def entry(self, sequence: int) -> Entry | None:
        """Returns the entry at a place."""

    @abstractmethod
    def hash_at(self, sequence: int) -> str | None:
        """Returns the hash of the entry at a place."""

    @abstractmethod
    def by_key(self, who: str, key: str) -> Entry | None:
        """Returns the charge of an idempotency key; keys of different people are different."""

    @abstractmethod
    def outcome(self, charge: int) -> Entry | None:
        """Returns the entry that says how a charge ended."""

    @abstractmethod
    def entries(self, after: int = 0, account: str | None = None, kind: str | None = None) -> Iterator[Entry]:
        """Returns entries in order of their sequence, perhaps those of one account or of one kind."""

    @abstractmethod
    def get(self, scope: str, name: str) -> str | None:
        """Returns a state: what the entries so far amount to."""

    @abstractmethod
    def read(self, place: Place, parse: Callable[[str], Value]) -> Value | None:
        """Returns what a state says; `parse` makes it from its text, and always is the same for a scope."""

    @abstractmethod
    def put(self, *states: tuple[Place, Kept]) -> None:
        """Replaces states, each given as a text or as what it says."""

    @abstractmethod
    def states(self, *scopes: str) -> Iterator[tuple[str, str, str]]:
        """Returns every state, or those of some scopes, as (scope, name, text), in order."""

    @abstractmethod
    def seal(self, scope: str, name: str) -> str | None:
        """Returns the digest of a state, without its text."""

    @abstractmethod
    def add_answer(self, sequence: int, charge: int, replay_key: str, payload: bytes) -> None:
        """Adds the bytes that an entry records, of an answer or of declared keys (`no_charge`)."""

    @abstractmethod
    def answers(self, replay_key: str | None = None) -> Iterator[StoredAnswer]:
        """Returns answers in order of their sequence."""

    @abstractmethod
    def answer_places(self, start: str, most: int, *, after: int = 0) -> list[AnswerPlace]:
        """Returns where the newest answers are whose replay key begins like this, without declared keys; reads none.

        Args:
            start: how their replay keys begin.
            most: how many at most.
            after: the last sequence to leave out.
        """

    @abstractmethod
    def answer_at(self, sequence: int) -> StoredAnswer | None:
        """Returns the answer that an entry recorded."""

    @abstractmethod
    def answer_start(self, sequence: int, length: int) -> bytes:
        """Returns the first bytes of an answer, and reads no more of it than that."""

    @abstractmethod
    def check(self) -> None:
        """Raises `LedgerTampered` if the database finds its own structure damaged."""


class Store(ABC):
    """A durable place for the rows of one ledger.

    Attributes:
        path: the file, or the address of the database.
    """

    path: str

    @abstractmethod
    def begin(self, places: Places = list) -> Transaction:
        """Waits for all other writers, and excludes them until `end`; `places` will probably be looked at."""

    @abstractmethod
    def end(self, error: BaseException | None) -> None:
        """Makes durable what was written, or undoes it after an error."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """Opens a view of one state of the ledger, which does not hinder writers."""

    @property
    def is_stopped(self) -> bool:
        """Returns whether this process writes no more, because what it wrote may or may not be on the disk."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Closes the database, or the connections to it."""

    def give_up(self) -> None:  # noqa: B027 - a file has no server to wait for
        """Ends every wait for a server, in whatever thread: what waits fails at once."""


DEAF = 0.05
"""Seconds that a wait for others may last without hearing a signal."""

Handler = Callable[[int, FrameType | None], Any]


class Lock(Protocol):
    """A lock that excludes other threads."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Waits so many seconds for the lock."""

    def release(self) -> None:
        """Releases the lock for other threads."""


class Deferral:
    """Holds SIGINT back between `begin` and `end`, if Python handles it and this is the main thread; else does nothing.

    Python raises `KeyboardInterrupt` between any two steps of the main thread, also between a lock that was taken and
    the code that would give it back. A transaction takes milliseconds, so the signal can wait for its end.

    Begun twice, it is ended twice; one inside another hands the signal on to the outer one. Whatever handler there was
    is called at the end, so that others who handle the signal in their own way lose nothing.

    >>> before = signal.signal(signal.SIGINT, lambda *_: print("heard"))
    >>> held = Deferral()
    >>> held.begin()
    >>> signal.raise_signal(signal.SIGINT)
    >>> held.end()
    heard
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    __slots__ = ("_before", "_caught", "_depth")

    def __init__(self) -> None:
        self._before: Handler | None = None
        self._caught: tuple[int, FrameType | None] | None = None
        self._depth = 0

    def begin(self) -> None:
        """Defers the signal from now on; one that came before is raised here, while nothing is held yet."""
        if threading.get_ident() != threading.main_thread().ident or not callable(_signal.getsignal(signal.SIGINT)):
            return
        if self._before is None:
            self._caught, self._depth = None, 0
            try:
                self._before = _signal.signal(signal.SIGINT, self._note)
            except ValueError:  # a subinterpreter, which receives no signals
                return
        self._depth += 1

    def end(self) -> None:
        """Hears a signal that has waited; called in the thread that began, when nothing is held any more."""
        before = self._before
        if before is None or threading.get_ident() != threading.main_thread().ident:
            return
        self._depth -= 1
        if self._depth:
            return
        self._before = None
        _signal.signal(signal.SIGINT, before)
        if self._caught is not None:
            before(*self._caught)

    def hold(self, lock: Lock) -> None:
        """Takes a lock; a signal is heard while it waits for other threads, and waits itself from then on."""
        self.begin()
        while not lock.acquire(timeout=DEAF):
            self.end()
            self.begin()

    def let_go(self, lock: Lock) -> None:
        """Releases a lock, and raises a signal that has waited."""
        lock.release()
        self.end()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._caught = number, frame
