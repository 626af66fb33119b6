"""A queue: so many requests at once, a bounded number that wait, and callers take turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from discreet.errors import ServiceUnavailable, TooManyRequests

_SECONDS = 2  # after which another try may be worth it


class JobQueue:
    """Lets requests pass, each caller's in their order, and callers in turn: many of one do not delay one of another.

    Args:
        slots: how many work at once.
        waiting: how many may wait, of all callers.
        per_caller: how many of one caller may wait.
    """

    def __init__(self, *, slots: int, waiting: int, per_caller: int) -> None:
        self._free, self._waiting, self._per_caller = slots, waiting, per_caller
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def length(self) -> int:
        """The number of requests that wait."""
        return sum(map(len, self._queues.values()))

    def require_room(self, caller: str) -> None:
        """Refuses a request that could not even wait.

        Raises:
            TooManyRequests: if too many of the caller's own wait.
            ServiceUnavailable: if too many of all callers wait.
        """
        if len(self._queues.get(caller, ())) >= self._per_caller:
            hint = "Wait for an answer to one of them."
            raise TooManyRequests("Too many of your queries are waiting", hint, retry_after=_SECONDS)
        if self.length >= self._waiting:
            raise ServiceUnavailable("Too many queries are waiting", "Ask again later.", retry_after=_SECONDS)

    @asynccontextmanager
    async def slot(self, caller: str) -> AsyncIterator[None]:
        """Waits for a turn, and keeps the slot until the end of the block."""
        self.require_room(caller)
        if self._free and not self._queues:
            self._free -= 1
        else:
            await self._turn(caller)
        try:
            yield
        finally:
            self._free += 1
            self._call_next()

    async def _turn(self, caller: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was ours already
                self._free += 1
                self._call_next()
            else:
                self._forget(caller, turn)
            raise

    def _forget(self, caller: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(caller)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._queues[caller]

    def _call_next(self) -> None:
        """Gives a slot to the caller whose turn it is, who goes to the end of the line."""
        while self._free and self._queues:
            caller, queue = self._queues.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._queues[caller] = queue
            if not turn.done():
                self._free -= 1
                turn.set_result(None)
