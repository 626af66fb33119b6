"""Work in a thread of its own, so that a deadline and Ctrl-C stop it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

Result = TypeVar("Result")
Deliver = Callable[[], None]

_AGAIN = 0.01  # seconds between interrupts: one that comes too early is forgotten
_DEAF = 0.1  # seconds between two looks for a signal, which another thread may have received
_PATIENCE = 0.5  # seconds that a person who pressed Ctrl-C waits for the end of the work
_MOST_IDLE = 4  # threads that wait for work: more end


class _Worker:
    """A thread that does one piece of work after another: what DuckDB sets up in a new thread costs half a small query.

    It is idle again before its work is delivered, so that the next caller finds it.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], Deliver]] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def do(self, work: Callable[[], Deliver]) -> None:
        self._work.put(work)

    def _run(self) -> None:
        stays = True
        while stays:
            deliver = self._work.get()()
            stays = len(_IDLE) < _MOST_IDLE
            if stays:
                _IDLE.append(self)
            deliver()
            del deliver  # it holds what was read


_IDLE: list[_Worker] = []
os.register_at_fork(after_in_child=_IDLE.clear)  # a child has none of these threads


def _idle_worker() -> _Worker:
    try:
        return _IDLE.pop()
    except IndexError:
        return _Worker()


def stoppable(
    work: Callable[[threading.Event], Result], interrupt: Callable[[], None], *, deadline: float | None = None
) -> Result:
    """Returns what the work returns, done in another thread, so that the one that waits hears signals.

    Python hears Ctrl-C in the main thread only, between two of its own steps, and so not before a long call into
    another language returns. A caller in another thread is stopped by the deadline alone.

    Args:
        work: what is done; it may look at an event that says when its result is not wanted any more, and raise.
        interrupt: stops what is at work, if anything is; called again and again until the work ends.
        deadline: seconds after which the work is stopped; what it raises then is raised.

    Raises:
        KeyboardInterrupt: at once, or after half a second if the work does not end; it is stopped in the background.

    >>> stoppable(lambda stopped: stopped.is_set(), lambda: None)
    False
    """
    future: Future[Result] = Future()
    stopped = threading.Event()

    def run() -> Deliver:
        try:
            return partial(future.set_result, work(stopped))
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            # without its frames, which would hold the connection
            return partial(future.set_exception, error.with_traceback(None))

    def stop() -> None:
        stopped.set()
        while not _ends(future, _AGAIN):
            with suppress(Exception):  # nothing is at work any more, or its connection is closed
                interrupt()

    _idle_worker().do(run)
    try:
        if not _ends(future, deadline):
            stop()
    except BaseException:
        threading.Thread(target=stop, daemon=True).start()
        wait([future], _PATIENCE)
        raise
    return future.result()


def _ends(future: Future[Result], seconds: float | None) -> bool:
    """Returns whether something ends in time; waits in slices, since a signal need not wake up the waiting thread."""
    end = None if seconds is None else time.monotonic() + seconds
    while not future.done():
        left = _DEAF if end is None else min(_DEAF, end - time.monotonic())
        if left <= 0:
            return False
        with suppress(TimeoutError):
            future.exception(left)
    return True
