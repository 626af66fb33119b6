"""What the ledger knows of a stream: its charge, and what was released in each period."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import StreamError
from discreet.ledger import Book, Receipt
from discreet.stream.state_file import Entry


@dataclass(frozen=True, slots=True)
class LedgerWitness:
    """Keeps what each period released in the ledger, beside the one charge of the stream, before it is shown.

    A period is kept once: whoever comes second, with other noise, is told so and shows nothing.

    Args:
        book: the ledger.
        receipt: of the charge.
        question: which was charged, as JSON.
    """

    book: Book
    receipt: Receipt
    question: str

    def _place(self, period: int) -> str:
        return f"stream:{self.receipt.hash}:{period}"

    def seen(self, stream: str) -> int | None:  # noqa: ARG002 - the charge names the stream
        """Returns how many periods were released; None before the first."""
        last = 1
        while self.book.stored(self._place(last)):
            last *= 2
        low, high = last // 2, last  # the last known to be there, and one known not to be
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.book.stored(self._place(middle)) else (low, middle)
        return low or None

    def testify(self, stream: str, periods: int, entry: Entry | None) -> None:  # noqa: ARG002 - see above
        """Keeps what the last period released.

        Raises:
            StreamError: if something else was released for it; then nothing of this must be shown.
        """
        if entry is None:
            return
        payload = json.dumps({"noisy": entry["noisy"]}, separators=(",", ":"))
        kept = self.book.store_beside(self.receipt, self._place(periods), payload, question=self.question)
        if kept != payload.encode():
            raise StreamError(f"Period {periods} was released by another process", "Open the stream again.")

    def released(self) -> list[list[list[int]]]:
        """Returns what was released in each period."""
        count = self.seen("") or 0
        return [json.loads(self.book.stored(self._place(t))[0].payload)["noisy"] for t in range(1, count + 1)]


class LooseState:
    """The state of a stream whose ledger dies with the process: nothing but the ledger keeps it."""

    def __init__(self, witness: LedgerWitness) -> None:
        self._witness, self._count = witness, witness.seen("") or 0
        if self._count:
            raise StreamError("The stream is open already", "Go on with the object that has it.")

    def taken(self) -> list[Entry]:
        """Returns nothing: a new process has a new ledger."""
        return []

    def append(self, values: Sequence[int], noisy: Sequence[Sequence[int]], **beside: Any) -> None:  # noqa: ARG002
        """Keeps a period in the ledger."""
        self._count += 1
        self._witness.testify("", self._count, {"noisy": [list(each) for each in noisy]})

    def close(self) -> None:
        """Does nothing."""
