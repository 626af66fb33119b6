"""Reports what is being done, as names of stages, to a listener, and does long work so that it can be stopped.

A stage is named when it begins. Which stages there are is planned: it follows from the question and the declarations,
and never from what was drawn. No share of the work, no size and no duration is reported, since those would reveal how
many rows there are. Between a charge and the storage of its answer one stage is reported, before anything is read, and
stages of what is called there are `unheard`: a run that is stopped must have revealed nothing that was drawn
(`run_charge` of `curator.paid_release`). There is no listener by default. One is `progress=` of the curator's methods,
the status line of a terminal, or

>>> with told_to(print):
...     stage("Reading visits")
Reading visits
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial, wraps
from queue import SimpleQueue
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

Progress = Callable[[str], object]
"""Takes the name of a stage that begins; what it returns or raises changes nothing."""


class Stage(str):
    """The name of a stage, which says in words how much of a budget is spent, where that is known.

    Attributes:
        spent: the same as a number from 0 to 1, for a progress bar; None if it is not known.

    >>> Stage("Measuring age", 0.25)
    'Measuring age (25 % of the budget spent)'
    """

    __slots__ = ("spent",)
    spent: float | None

    def __new__(cls, name: str, spent: float | None = None) -> Self:
        """Returns the name, with the share in words."""
        made = super().__new__(cls, name if spent is None else f"{name} ({100 * spent:.0f} % of the budget spent)")
        made.spent = spent
        return made

    def __getnewargs__(self) -> tuple[str]:
        return (str(self),)


P = ParamSpec("P")
Result = TypeVar("Result")

_LISTENER: ContextVar[Progress | None] = ContextVar("listener", default=None)


def stage(name: str, *, spent: float | None = None) -> None:
    """Reports that a stage begins.

    Args:
        name: what begins.
        spent: how much of its budget is spent, from 0 to 1, where it is spent in steps whose number is planned.
    """
    listener = _LISTENER.get()
    if listener is not None:
        with suppress(Exception):  # between a charge and its answer, a listener's mistake must cost nothing
            listener(Stage(name, spent))


def unheard(name: str) -> None:
    """Ignores a stage: for what is drawn and not stored, and what is done hundreds of times in a stage."""
    del name


@contextmanager
def told_to(listener: Progress | None) -> Iterator[None]:
    """Reports the stages of this thread to a listener; None keeps the present listener."""
    token = _LISTENER.set(_LISTENER.get() if listener is None else listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def sealed_stage(name: str) -> Iterator[None]:
    """Reports that a stage begins, and none of the stages inside of it."""
    stage(name)
    with told_to(unheard):
        yield


def telling(function: Callable[P, Result]) -> Callable[P, Result]:
    """Makes a function with a parameter `progress` report its stages to it."""

    @wraps(function)
    def call_with_progress(*args: P.args, **kwargs: P.kwargs) -> Result:
        with told_to(cast("Any", kwargs.get("progress"))):
            return function(*args, **kwargs)

    return call_with_progress


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
    outcome, stopped = _Outcome[Result](), threading.Event()

    def run() -> Deliver:
        try:
            return partial(outcome.deliver, work(stopped), None)
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            # without its frames, which would hold the connection
            return partial(outcome.deliver, None, error.with_traceback(None))

    def stop() -> None:
        stopped.set()
        while not outcome.is_there_in(_AGAIN):
            with suppress(Exception):  # nothing is at work any more, or its connection is closed
                interrupt()

    _idle_worker().do(run)
    try:
        if not outcome.is_there_in(deadline):
            stop()
    except BaseException:
        threading.Thread(target=stop, daemon=True).start()
        outcome.is_there_in(_PATIENCE)
        raise
    return outcome.take()


class _Outcome(Generic[Result]):
    """What a piece of work returned or raised, for the threads that wait for it.

    They wait for a lock, which takes no step of Python; a `Future` takes thirty for each piece of work.
    """

    def __init__(self) -> None:
        self._lock, self._is_there = threading.Lock(), False
        self._lock.acquire()

    def deliver(self, result: Result | None, error: BaseException | None) -> None:
        """Hands over what was returned, or raised."""
        self._found, self._is_there = (result, error), True  # before the lock, which an interrupted thread may keep
        self._lock.release()

    def is_there_in(self, seconds: float | None) -> bool:
        """Returns whether it is there in time; waits in slices, since a signal need not wake up the waiting thread."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self._is_there:
            left = _DEAF if end is None else min(_DEAF, end - time.monotonic())
            if left <= 0:
                return False
            if self._lock.acquire(timeout=left):
                self._lock.release()
        return True

    def take(self) -> Result:
        """Returns the result, or raises the error, and keeps neither."""
        result, error = self._found
        del self._found
        if error is not None:
            try:
                raise error
            finally:
                del error  # whose frames have it
        return cast("Result", result)
