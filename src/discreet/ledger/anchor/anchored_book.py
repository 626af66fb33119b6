"""A book that is compared with its anchor when it is opened, and keeps the anchor up to date."""

from __future__ import annotations

import os
import shlex
import threading
import warnings

from discreet.errors import AnchorMismatch, AnchorNotKept, InvalidParameter, LedgerError
from discreet.ledger.anchor.anchor_file import Anchor, read_anchor, write_anchor
from discreet.ledger.book import Book
from discreet.ledger.charges import Receipt
from discreet.ledger.entry import Head
from discreet.ledger.store.place import is_there


class AnchoredBook(Book):
    """A book whose newest head is kept in a file apart.

    It is kept before an answer leaves, and when the book is closed. So a book that is older than an answer that
    somebody has seen is refused, also if the file of the book was replaced by hand. If the anchor cannot be written,
    a warning says so: what was paid for is still answered.

    Args:
        path: of the book, see `Book`.
        anchor_file: of the anchor; none is made before the first entry.
        timeout: seconds to wait for others who write.
        read_only: writes nothing, the anchor included.

    Raises:
        AnchorMismatch: if the book lacks entries that its anchor knows, is another one, or is gone.
        LedgerError: if the book or the anchor cannot be used.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with AnchoredBook(f"{folder}/book.db", anchor_file=f"{folder}/anchor") as book:
    ...         book.stewardship.appoint("ana", "steward")
    ...         _ = book.backup(f"{folder}/monday.db")
    ...         book.stewardship.appoint("ben", "auditor")
    ...     AnchoredBook(f"{folder}/monday.db", anchor_file=f"{folder}/anchor")
    Traceback (most recent call last):
    discreet.errors.AnchorMismatch: ...monday.db ends with 1:..., its anchor ... with 2:...: 1 entries are missing. ...
    """

    def __init__(self, path: str, *, anchor_file: str, timeout: float = 30.0, read_only: bool = False) -> None:
        self.anchor_file, self._read_only = anchor_file, read_only
        self._keeping = threading.Lock()
        known = require_there(path, anchor_file)  # before the book is looked at: others may add to it in between
        super().__init__(path, timeout=timeout, read_only=read_only)
        try:
            self._compare(known)
        except BaseException:
            super().close()
            raise
        self._kept = None if known is None else known.head

    def _compare(self, known: Anchor | None) -> None:
        if known is None:
            return
        with self._journal.reading() as rows:
            if not known.is_in(rows):
                raise mismatch(str(self.path), rows.tail(), self.anchor_file, known)

    def store_answer(self, receipt: Receipt, replay_key: str, payload: bytes | str) -> bool:
        """See `Book.store_answer`; the anchor is kept before the answer is sent."""
        stored = super().store_answer(receipt, replay_key, payload)
        self.keep_anchor()
        return stored

    def close(self) -> None:
        """Keeps the anchor, and lets go of the file, or of the connections."""
        try:
            self.keep_anchor()
        finally:
            super().close()

    def keep_anchor(self, *, backup: Head | None = None) -> None:
        """Brings the anchor up to date, unless the book is only read; with the head of a copy that was made."""
        if self._read_only and backup is None:
            return
        try:
            with self._keeping:
                self._keep(backup)
        except (InvalidParameter, LedgerError, OSError) as error:  # the first if its disk is not there any more
            reason = error.strerror if isinstance(error, OSError) else str(error)
            text = f"The anchor {self.anchor_file} was not kept ({reason}); the book has everything. Look at its disk."
            warnings.warn(text, AnchorNotKept, stacklevel=3)

    def _keep(self, backup: Head | None) -> None:
        with self._journal.reading() as rows:
            head = rows.tail()
            if backup is None and (head == self._kept or not head.sequence):
                return
            known = read_anchor(self.anchor_file)
            if known is not None and not known.is_in(rows):
                if known.head.sequence > head.sequence:  # others went on meanwhile, and have kept it
                    return
                raise LedgerError("the anchor is of another book")
            anchor = Anchor.of(rows, known) if known is None or known.head != head else known
        write_anchor(self.anchor_file, anchor if backup is None else anchor.with_backup(backup))
        self._kept = head


def require_there(path: str, anchor_file: str) -> Anchor | None:
    """Returns the anchor of a book, if there is one.

    Raises:
        AnchorMismatch: if of the book only the anchor is left.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     before = require_there(f"{folder}/book.db", f"{folder}/anchor")
    ...     with AnchoredBook(f"{folder}/book.db", anchor_file=f"{folder}/anchor") as book:
    ...         book.stewardship.appoint("ana", "steward")
    ...     after = require_there(f"{folder}/book.db", f"{folder}/anchor")
    >>> before, after.head.sequence
    (None, 1)
    """
    folder = os.path.dirname(os.path.abspath(anchor_file))
    if folder == os.path.dirname(os.path.abspath(path)) and not os.path.isdir(folder):
        return None  # neither can be there; the book says so itself
    known = read_anchor(anchor_file)
    if known is None or not known.head.sequence or is_there(path):
        return known
    hint = (
        f"Restore a backup: discreet restore BACKUP. A new book would forget what was spent; if other people's data "
        f"begin here, move {anchor_file} away."
    )
    reason = f"The ledger {path} is gone, and its anchor tells of {known.head.sequence} entries"
    raise AnchorMismatch(reason, hint, head=None, anchor=str(known.head), missing=known.head.sequence)


def mismatch(path: str, head: Head, anchor_file: str, known: Anchor) -> AnchorMismatch:
    """Returns the error for a book that is older than its anchor, or another one."""
    missing = known.head.sequence - head.sequence
    what = f"{missing} entries are missing" if missing > 0 else "it is another book, or went another way"
    reason = f"{path} ends with {head}, its anchor {anchor_file} with {known.head}: {what}"
    again = f"discreet restore {shlex.quote(path)} --accept-loss"
    hint = f"Put the newest ledger back. If it is lost: `{again}` counts as spent what the anchor knows."
    return AnchorMismatch(reason, hint, head=str(head), anchor=str(known.head), missing=max(missing, 0))
