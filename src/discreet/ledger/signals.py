"""Ctrl-C beside a transaction: heard before it begins and after it has ended, never in its middle.

Python raises `KeyboardInterrupt` between any two steps of the main thread, also between a lock that was taken and the
code that would give it back. A transaction takes milliseconds, so the signal can wait for its end.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps into enums, which takes ten times as long
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]


class Deferral:
    """Holds SIGINT back between `begin` and `end`, if Python handles it and this is the main thread; else does nothing.

    Begun twice, it is ended twice; one inside another hands the signal on to the outer one. Whatever handler there was
    is called at the end, so that others who handle the signal in their own way lose nothing.

    >>> before = signal.signal(signal.SIGINT, lambda *_: print("heard"))
    >>> held = Deferral()
    >>> held.begin()
    >>> signal.raise_signal(signal.SIGINT)
    >>> held.end()
    heard
    >>> _ = signal.signal(signal.SIGINT, before)
    """

    __slots__ = ("_before", "_caught", "_depth")

    def __init__(self) -> None:
        self._before: Handler | None = None
        self._caught: tuple[int, FrameType | None] | None = None
        self._depth = 0

    def begin(self) -> None:
        """From now on the signal waits; one that came before is heard here, while nothing is held yet."""
        if threading.get_ident() != threading.main_thread().ident or not callable(_signal.getsignal(signal.SIGINT)):
            return
        if self._before is None:
            self._caught, self._depth = None, 0
            try:
                self._before = _signal.signal(signal.SIGINT, self._note)
            except ValueError:  # an interpreter beside the main one, which hears no signals
                return
        self._depth += 1

    def end(self) -> None:
        """Hears a signal that has waited; called in the thread that began, when nothing is held any more."""
        before = self._before
        if before is None or threading.get_ident() != threading.main_thread().ident:
            return
        self._depth -= 1
        if self._depth:
            return
        self._before = None
        _signal.signal(signal.SIGINT, before)
        if self._caught is not None:
            before(*self._caught)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._caught = number, frame
