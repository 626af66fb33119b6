"""Workers that are ready: as many as may work at once, and one more, so that no request waits for one to start."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from discreet.errors import DiscreetError, ServiceUnavailable
from discreet.service.owner.worker_process import WorkerLost, WorkerProcess

_AFTER = 1.0  # seconds before another start is tried, if one fails


class WorkerPool:
    """Keeps workers ready, and replaces those that are used up, have failed, or know outdated tables.

    Args:
        size: how many are kept.
        lifetime: requests after which one is replaced.
        start: starts one.
    """

    def __init__(self, *, size: int, lifetime: int, start: Callable[[], Awaitable[WorkerProcess]]) -> None:
        self._size, self._lifetime, self._start = size, lifetime, start
        self._idle: deque[WorkerProcess] = deque()
        self._waiting: deque[asyncio.Future[WorkerProcess]] = deque()
        self._busy: set[int] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._generation, self._generations = 0, dict[int, int]()
        self._closed = False

    @property
    def ready(self) -> bool:
        """Returns whether a request would be served at once, or by one that is at work."""
        return bool(self._idle or self._busy)

    def open(self) -> None:
        """Starts as many workers as are missing."""
        while not self._closed and len(self._idle) + len(self._busy) + len(self._starting) < self._size:
            task = asyncio.get_running_loop().create_task(self._start_worker())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start_worker(self) -> None:
        generation = self._generation
        while not self._closed:
            try:
                worker = await self._start()
            except (DiscreetError, WorkerLost, OSError):
                await asyncio.sleep(_AFTER)
                continue
            self._generations[worker.process.pid] = generation
            self._offer(worker)
            return

    async def take(self) -> WorkerProcess:
        """Returns a worker, for one request.

        Raises:
            ServiceUnavailable: if the pool is closed meanwhile.
        """
        while self._idle:
            worker = self._idle.popleft()
            if worker.alive and self._generations[worker.process.pid] == self._generation:
                self._busy.add(worker.process.pid)
                return worker
            self._drop(worker)
        self.open()
        waiting: asyncio.Future[WorkerProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self.give_back(waiting.result())
            raise

    def give_back(self, worker: WorkerProcess) -> None:
        """Takes a worker that may be asked again, unless it is used up."""
        self._busy.discard(worker.process.pid)
        current = self._generations.get(worker.process.pid) == self._generation
        if self._closed or not current or worker.served >= self._lifetime or not worker.alive:
            self._drop(worker)
        else:
            self._offer(worker)

    def discard(self, worker: WorkerProcess) -> None:
        """Kills a worker, and starts another."""
        self._busy.discard(worker.process.pid)
        self._drop(worker)

    def renew(self) -> None:
        """Replaces all workers, since the tables have changed."""
        self._generation += 1
        for worker in list(self._idle):
            self._drop(worker)
        self._idle.clear()
        self.open()

    def close(self) -> None:
        """Kills all that are idle; those at work go when they are given back."""
        self._closed = True
        for task in self._starting:
            task.cancel()
        for worker in self._idle:
            worker.kill()
        self._idle.clear()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(ServiceUnavailable("The service is stopping", "Ask again later."))

    def _offer(self, worker: WorkerProcess) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                self._busy.add(worker.process.pid)
                waiting.set_result(worker)
                return
        self._idle.append(worker)

    def _drop(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._generations.pop(worker.process.pid, None)
        if not self._closed:
            self.open()
