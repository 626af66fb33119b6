"""The store with a memory of its own: what this process saw in the book must still be there the next time.

Any doubt stops writing: a book older than one already seen, one that does not match its anchor, a failed verification.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import LedgerError, LedgerTampered
from discreet.ledger import changes, policy
from discreet.ledger.entry import GENESIS, Head
from discreet.ledger.store import Rows, Store
from discreet.ledger.verify import verify


class Journal:
    """Transactions on one book, refused as soon as it cannot be trusted."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._seen = Head(0, GENESIS)
        self._stopped: LedgerTampered | None = None
        self._lock = threading.Lock()

    @contextmanager
    def writing(self) -> Iterator[Rows]:
        """One durable transaction on a book that is no older than what was seen before."""
        if self._stopped is not None:
            raise LedgerTampered(self._stopped.sequence, "the book was found altered; this process writes no more")
        with self.store.writing() as rows:
            self._refuse_older(rows)
            yield rows
            head = rows.tail()
        self._note(head)

    @contextmanager
    def acting(self) -> Iterator[Rows]:
        """The same for everything that a frozen book refuses."""
        with self.writing() as rows:
            if changes.book(rows)["frozen"]:
                raise LedgerError(
                    "The book is read-only: it did not match its anchor", "A steward compares it, then resumes."
                )
            yield rows

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """One state of the book."""
        with self.store.reading() as rows:
            yield rows

    def head(self) -> Head:
        """The last entry's place and hash."""
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
        self._note(head)
        return head

    def check_anchor(self, anchor: Head) -> None:
        """Freezes the book if it does not contain what was once its head.

        Raises:
            LedgerTampered: after freezing it.
        """
        with self.reading() as rows:
            entry = rows.entry(anchor.sequence)
            found = GENESIS if anchor.sequence == 0 else None if entry is None else entry.hash
        if found == anchor.hash:
            return
        error = LedgerTampered(
            anchor.sequence, "the book is older than its anchor, or another one; it is read-only now"
        )
        try:
            self._freeze(anchor)
        except LedgerError:  # it cannot be written anyway; at least this process will not try again
            self._stopped = error
        raise error

    def _freeze(self, anchor: Head) -> None:
        with self.writing() as rows:
            if not changes.book(rows)["frozen"]:
                changes.apply(rows, rows.add("freeze", {"anchor": str(anchor)}, who=policy.OWNER))

    def resume(self, *, by: str, note: str) -> None:
        """Lets a frozen book be written again."""
        with self.writing() as rows:
            policy.require_steward(rows, "", by, "resume the book")
            changes.apply(rows, rows.add("resume", {"note": note}, who=by))

    def frozen(self) -> bool:
        """Whether the book is read-only until a steward acts."""
        with self.reading() as rows:
            return bool(changes.book(rows)["frozen"])

    def _refuse_older(self, rows: Rows) -> None:
        seen = self._seen
        if not seen.sequence:
            return
        tail = rows.tail()
        entry = tail if tail.sequence == seen.sequence else rows.entry(seen.sequence)
        if entry is None or entry.hash != seen.hash:
            self._stopped = LedgerTampered(seen.sequence, "the book is older than what this process has seen")
            raise self._stopped

    def _note(self, head: Head) -> None:
        with self._lock:
            self._seen = max(self._seen, head)
