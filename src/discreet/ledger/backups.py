"""A lost book, put back from its backup: whole, or frozen until a steward has looked."""

from __future__ import annotations

from discreet.errors import LedgerError
from discreet.ledger.book import Book
from discreet.ledger.entry import Head


def restore(source: str, target: str, *, anchor: Head) -> Book:
    """Puts a backup in the place of a lost book.

    Args:
        source: the backup.
        target: where the book shall be; nothing may be there.
        anchor: the latest head that was exported from the lost book.

    Returns:
        The book, verified. If it lacks entries up to the anchor it is frozen: charges were lost, and a steward must
        amend the accounts before resuming.

    Raises:
        LedgerTampered: if the backup was altered.
        LedgerError: if there is already a file.
    """
    with Book(source, read_only=True) as copy:
        copy.verify()
        copy.backup(target)
    book = Book(target)
    try:
        book.check_anchor(anchor)
    except LedgerError:
        if not book.frozen:
            raise
    return book
