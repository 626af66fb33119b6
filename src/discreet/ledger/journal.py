"""The store with a memory of its own: what this process saw in the ledger must still be there the next time.

Any doubt stops writing: a ledger older than one already seen, one that does not match its anchor, a failed
verification. Verification walks the whole chain and adds everything up again, from the entries alone. It detects a
changed, missing, inserted or reordered entry, a changed answer or list of declared keys, and a balance that is not the
sum of its charges. It cannot see that the end of the ledger is missing together with everything that followed from it
(a file restored from yesterday is a good ledger of yesterday): that is what the exported head is for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple

from discreet.errors import LedgerError, LedgerTampered
from discreet.ledger import changes, policy
from discreet.ledger.entry import GENESIS, Entry, Head, compute_entry_hash
from discreet.ledger.serialization import parse_canonical
from discreet.ledger.store.ledger_store import BLOCKS, Places, Store, StoredAnswer, Transaction
from discreet.ledger.tallies import Tallies


class DeclaredTable(NamedTuple):
    """How a table is in the ledger.

    Attributes:
        declaration: everything that was declared about it, as JSON.
        labels: the versions in their order; that of a table without one is empty.
        advanced: the version that a steward moved it on to last; empty if it was never moved on.
        times: since when it is at a version, for each one that a curator can be at.
    """

    declaration: str
    labels: tuple[str, ...]
    advanced: str
    times: Mapping[str, str]

    def current(self, declared: str) -> str:
        """Returns the version at which a curator asks that was opened with a declared one.

        >>> table = DeclaredTable("{}", ("1", "2", "3"), "2", {})
        >>> [table.current(label) for label in ("1", "2", "3", "not attached")]
        ['2', '2', '3', 'not attached']
        """
        if not self.advanced or declared == self.advanced or declared not in self.labels:
            return declared
        return self.advanced if self.labels.index(declared) < self.labels.index(self.advanced) else declared


def current_facts(find: Callable[[str], DeclaredTable | None], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the public facts about a table, at the version that a curator with these facts asks at now."""
    known = find(facts["name"])
    return {**facts, **({} if known is None else {"version": known.current(facts["version"])})}


class _Act:
    """A transaction of a journal; a plain class, because every charge enters one."""

    __slots__ = ("_journal", "_places", "_rows")

    def __init__(self, journal: Journal, places: Places | None) -> None:
        self._journal, self._places = journal, places

    def __enter__(self) -> Transaction:
        self._rows = rows = self._journal.begin(self._places)
        return rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        head = self._rows.tail() if error is None else None
        self._journal.store.end(error)
        if head is not None:
            self._journal.note(head, self._places is not None)


class Journal:
    """Transactions on one ledger, refused as soon as it cannot be trusted."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._seen = self._acted = Head(0, GENESIS)
        self._stopped: LedgerTampered | None = None
        self._lock = threading.Lock()
        self._declared: dict[str, tuple[str | None, DeclaredTable | None]] = {}

    @property
    def is_stopped(self) -> bool:
        """Returns whether this process writes no more: the ledger was found altered, or a commit failed."""
        return self._stopped is not None or self.store.is_stopped

    def declared_table(self, table: str) -> DeclaredTable | None:
        """Returns how a table is declared now, and its versions; None if it was never attached.

        What was read stays known until the table changes in the ledger: a declaration may hold very many keys.
        """
        with self.reading() as rows:
            seal = rows.seal("table", table)
            known = self._declared.get(table)
            if seal is None or known is None or known[0] != seal:
                known = self._declared[table] = seal, None if seal is None else _read_declared(rows, table)
        return known[1]

    def writing(self) -> _Act:
        """Opens one durable transaction on a ledger that is no older than what was seen before."""
        return _Act(self, None)

    def acting(self, places: Places = list) -> _Act:
        """Opens a transaction for what a frozen ledger refuses; `places` returns the states that will be read."""
        return _Act(self, places)

    def begin(self, places: Places | None) -> Transaction:
        """Returns a new transaction, unless the ledger cannot be trusted."""
        if self._stopped is not None:
            raise LedgerTampered(self._stopped.sequence, "the ledger was found altered; this process writes no more")
        rows = self.store.begin(places or list)
        try:
            head = rows.tail()
            if head != self._seen:
                self._refuse_older(rows)
            if places is not None and head != self._acted:
                rows.foresee(places)
                if changes.is_frozen(rows):
                    raise LedgerError(
                        "The ledger is read-only: it did not match its anchor, or was moved",
                        "Ask a steward to compare both and resume the ledger.",
                    )
        except BaseException as error:
            self.store.end(error)
            raise
        return rows

    def reading(self) -> AbstractContextManager[Transaction]:
        """Opens a view of one state of the ledger."""
        return self.store.reading()

    def require_unanchored(self) -> None:
        """Refuses a ledger that has an anchor, which is not compared here.

        Raises:
            LedgerError: if it has one.
        """
        with self.reading() as rows:
            if changes.find_anchored_id(rows) is not None:
                hint = "Open it with AnchoredLedger(path) or Curator(path), or with read_only=True."
                raise LedgerError(f"The ledger {self.store.path} has an anchor, which is not compared here", hint)

    def head(self) -> Head:
        """Returns the last entry's place and hash."""
        with self.reading() as rows:
            return rows.tail()

    def verify(self) -> Head:
        """Walks the chain; a failure stops this process from writing."""
        with self.reading() as rows:
            try:
                head = verify(rows)
            except LedgerTampered as error:
                self._stopped = error
                raise
        self.note(head)
        return head

    def check_anchor(self, anchor: Head) -> None:
        """Freezes the ledger if it does not contain what was once its head.

        Raises:
            LedgerTampered: after freezing it.
        """
        with self.reading() as rows:
            found = rows.hash_at(anchor.sequence) if anchor.sequence else GENESIS
        if found == anchor.hash:
            return
        error = LedgerTampered(
            anchor.sequence, "the ledger is older than its anchor, or another one; it is read-only now"
        )
        try:
            self._freeze(anchor)
        except LedgerError:  # it cannot be written anyway; at least this process will not try again
            self._stopped = error
        raise error

    def _freeze(self, anchor: Head) -> None:
        with self.writing() as rows:
            if not changes.is_frozen(rows):
                changes.apply(rows, rows.add("freeze", {"anchor": str(anchor)}, who=policy.OWNER))

    def resume(self, *, by: str, note: str) -> None:
        """Makes a frozen ledger writable again."""
        with self.writing() as rows:
            policy.require_steward(rows, "", by, "resume the ledger")
            changes.apply(rows, rows.add("resume", {"note": note}, who=by))
            policy.doubt_calendars(rows, by=by)

    def is_frozen(self) -> bool:
        """Returns whether the ledger is read-only until a steward acts."""
        with self.reading() as rows:
            return changes.is_frozen(rows)

    def _refuse_older(self, rows: Transaction) -> None:
        seen = self._seen
        if not seen.sequence:
            return
        if rows.hash_at(seen.sequence) != seen.hash:
            self._stopped = LedgerTampered(seen.sequence, "the ledger is older than what this process has seen")
            raise self._stopped

    def note(self, head: Head, acted: bool = False) -> None:
        """Remembers the newest head that was seen, and the last that was reached by an act: nothing froze it."""
        with self._lock:
            if acted:
                self._acted = head
            if head > self._seen:  # noqa: PLR1730 - max takes much longer
                self._seen = head


Pending = dict[tuple[str, str, str, changes.CountedCaps], list[int]]
"""The number of charges by account, person, price and caps, after the entry of the first."""

_MOST_PENDING = 50_000  # different charges held before they are added up


def verify(rows: Transaction) -> Head:
    """Checks everything about one state of the ledger.

    Returns:
        The head, to be exported.

    Raises:
        LedgerTampered: with the first entry that does not fit.
    """
    head, states = _walk(rows, together=True)
    if _difference(rows, states) is not None:  # adding equal charges at once may round very long sums differently
        head, states = _walk(rows, together=False)
        wrong = _difference(rows, states)
        if wrong is not None:
            raise LedgerTampered(head.sequence, f"the stored {wrong} does not follow from the entries")
    rows.check()
    return head


def _walk(rows: Transaction, *, together: bool) -> tuple[Head, changes.InMemoryStateStore]:
    states, pending, answers = changes.InMemoryStateStore(), Pending(), rows.answers()
    previous, place = GENESIS, 0
    for entry in rows.entries():
        place += 1
        if entry[0] != place:
            raise LedgerTampered(place, "it is missing")
        previous = compute_entry_hash(previous, entry)
        if entry[9] != previous:
            raise LedgerTampered(place, "its content does not match its hash")
        kind = entry[2]
        if kind == "charge" and together and not changes.APPROVED.match(entry[8]):
            pending.setdefault((*entry[3:6], changes.counted_caps(entry[8])), [place, 0])[1] += 1
            if len(pending) > _MOST_PENDING:
                _add_up(states, pending)
            continue
        if kind in BLOCKS:
            _check_block(entry, answers)
        if kind != "answer":
            _add_up(states, pending)
            changes.apply(states, entry)
    _add_up(states, pending)
    if next(answers, None) is not None:
        raise LedgerTampered(place, "after it there is an answer that no entry records")
    return Head(place, previous), states


def _add_up(states: changes.InMemoryStateStore, pending: Pending) -> None:
    """Equal charges are added at once: exact sums do not depend on order."""
    for (account, who, price, counted), (first, count) in pending.items():
        total = Tallies.read(parse_canonical(price)) * count
        changes.charge(states, account, who, total, counted=counted, entry=first)
    pending.clear()


def _check_block(entry: Entry, blocks: Iterator[StoredAnswer]) -> None:
    called = "answer" if entry.kind == "answer" else "list of keys"
    stored = next(blocks, None)
    if stored is None or stored.sequence != entry.sequence:
        raise LedgerTampered(entry.sequence, f"its {called} is missing")
    if not stored.is_of(entry):
        raise LedgerTampered(entry.sequence, f"its {called} was changed")


def _difference(rows: Transaction, states: changes.InMemoryStateStore) -> str | None:
    """The scope of a state that is stored otherwise than computed."""
    stored, computed = {(scope, name): text for scope, name, text in rows.states()}, states.texts
    for place in sorted(stored.keys() | computed.keys()):
        if stored.get(place) != computed.get(place):
            return place[0]
    return None


def _read_declared(rows: Transaction, table: str) -> DeclaredTable | None:
    told = changes.table(rows, table)
    if told is None:
        return None
    advanced = told.get("advanced", {"entry": 0, "since": "", "version": ""})
    labels, moved = tuple(told["versions"]), advanced["version"]
    times = {moved: advanced["since"]} if moved else {}
    later = labels[labels.index(moved) + 1 :] if moved else labels
    missing = {label for label in later if label}
    for entry in rows.entries(advanced["entry"], told["account"], "attach") if missing else ():
        content = entry.content
        if content["table"] == table and content["version"] in missing:
            times[content["version"]] = entry.time
            missing.discard(content["version"])
        if not missing:
            break
    return DeclaredTable(str(told["declaration"]), labels, moved, times)
