"""Whether the ledger answers: found out by looking, at most once a second, so that requests need not wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from discreet.errors import DiscreetError, ServiceUnavailable
from discreet.ledger import Ledger

RETRY_AFTER = 5  # seconds, sent to callers


class LedgerHealth:
    """Looks at the head of a ledger, in a thread of its own.

    Args:
        ledger: the ledger.
        patience: seconds to wait for an answer.
        fresh: seconds for which the last look is believed.
        clock: for tests.
    """

    def __init__(
        self, ledger: Ledger, *, patience: float = 2.0, fresh: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger, self._patience, self._fresh, self._clock = ledger, patience, fresh, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger-health")
        self._look: asyncio.Task[None] | None = None
        self._looked: float | None = None
        self.down = False

    async def check(self) -> bool:
        """Returns whether the ledger answers; one look serves all who ask meanwhile."""
        if self._looked is None or self._clock() - self._looked >= self._fresh:
            look = self._ensure_check()
            await asyncio.wait({look}, timeout=self._patience)
            if not look.done():
                self.down = True
        return not self.down

    def require(self) -> None:
        """Refuses what needs the ledger while it is known not to answer, and looks again.

        Raises:
            ServiceUnavailable: while the ledger is known not to answer.
        """
        if self.down:
            self._ensure_check()
            raise no_answer()

    def note_outage(self) -> None:
        """Notes that a request found no answer."""
        self.down = True
        self._ensure_check()

    def close(self) -> None:
        """Stops looking, without waiting for a look that runs."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._look is not None:
            self._look.cancel()

    def _ensure_check(self) -> asyncio.Task[None]:
        if self._look is None or self._look.done():
            self._look = asyncio.get_running_loop().create_task(self._looking())
        return self._look

    async def _looking(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._ledger.head)
            self.down = False
        except (DiscreetError, RuntimeError):  # RuntimeError: it was closed
            self.down = True
        self._looked = self._clock()


def no_answer(hint: str = "Nothing was spent. Try again later.") -> ServiceUnavailable:
    """Returns the error for callers while the ledger does not answer."""
    return ServiceUnavailable("The ledger does not answer", hint, retry_after=RETRY_AFTER)
