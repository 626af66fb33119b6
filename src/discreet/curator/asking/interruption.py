"""Ctrl-C during a question: its charge stays, the book says that it was stopped, and so does what is raised."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

from discreet.errors import DiscreetError
from discreet.ledger import Book, Receipt

STAYS = "The question was stopped after it was charged, and the charge stays."
AGAIN = "Asked again with the same key, it is answered and not charged again."
STORED = "Its answer is stored: asked again, it costs nothing."
LOST = "Without a key, asking again is a new question and a new charge."
UNKNOWN = "The question was stopped while it was being charged; history tells whether it was. A charge stays."


class Stopping:
    """Everything from the charge to the answer: a `KeyboardInterrupt` that leaves here tells what was charged.

    It stays a `KeyboardInterrupt`, with notes. Stopping a question uses up no failure credit: whoever stops it chooses
    the moment, and has seen nothing yet.

    Args:
        book: where the charge is.
        analyst: who asks.
        key: their idempotency key, if they gave one.
    """

    def __init__(self, book: Book, analyst: str, key: str | None) -> None:
        self._book, self._analyst, self._key = book, analyst, key
        self._receipt: Receipt | None = None

    def holding(self, receipt: Receipt) -> Receipt:
        """The receipt; from now on it is known what was charged."""
        self._receipt = receipt
        return receipt

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            error.__context__ = None  # what was being handled can carry data
            for note in self._notes():
                error.add_note(note)

    def _notes(self) -> tuple[str, ...]:
        charged, answered = self._receipt is not None, False
        with suppress(DiscreetError):  # the book cannot be written now; then whoever asks again waits a little longer
            if self._receipt is not None and not self._receipt.repeated:
                answered = self._book.interrupt(self._receipt)
            elif self._key is not None:
                charged = self._book.is_charged(self._analyst, self._key)
        if answered:
            return STAYS, STORED
        if charged:
            return STAYS, LOST if self._key is None else AGAIN
        return () if self._key is not None else (UNKNOWN,)
