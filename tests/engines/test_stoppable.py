"""Work that is stopped: by a deadline, by Ctrl-C, and never by taking half of it for the whole."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from discreet.engines import DuckDB
from discreet.engines.duckdb import engine as duckdb
from discreet.engines.duckdb import source_tables
from discreet.errors import QueryFailed
from discreet.plan.model.readings import Reading, Statistic
from discreet.progress import _IDLE, _MOST_IDLE, stoppable
from tests.engines.tables import N, col
from tests.open_groups import unsealed

pytestmark = pytest.mark.usefixtures("ctrl_c")

SOON = 10.0  # seconds: many times as long as it takes
BY_NUMBER = Reading(table="t", keys=(col("n", N),), statistics=(Statistic(kind="rows"),))


def press(seconds: float = 0.05) -> None:
    """Presses Ctrl-C after a while."""
    threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()


def ignore() -> None:
    """An interrupt that stops nothing."""


def interruptible() -> tuple[Callable[[threading.Event], str], Callable[[], None], list[int]]:
    """Work that ends at the third interrupt only, and how often it was interrupted."""
    count, ended = [0], threading.Event()

    def work(_stopped: threading.Event) -> str:
        assert ended.wait(SOON)
        raise TimeoutError

    def interrupt() -> None:
        count[0] += 1
        if count[0] == 3:
            ended.set()

    return work, interrupt, count


def test_what_work_returns_and_raises_comes_back() -> None:
    assert stoppable(lambda _: 7, ignore, deadline=SOON) == 7
    with pytest.raises(ZeroDivisionError):
        stoppable(lambda _: 1 / 0, ignore)


def test_a_deadline_interrupts_until_the_work_ends() -> None:
    work, interrupt, count = interruptible()
    with pytest.raises(TimeoutError):
        stoppable(work, interrupt, deadline=0.01)
    assert count[0] >= 3  # more on a busy machine, where the work is seen to have ended a little later


def test_ctrl_c_interrupts_until_the_work_ends() -> None:
    work, interrupt, count = interruptible()
    press()
    with pytest.raises(KeyboardInterrupt):
        stoppable(work, interrupt)
    assert count[0] >= 3  # more on a busy machine, where the work is seen to have ended a little later


def test_work_that_does_not_hear_is_left_behind_and_told() -> None:
    told, ended, started = threading.Event(), threading.Event(), time.monotonic()

    def deaf(stopped: threading.Event) -> None:
        ended.wait(SOON)
        if stopped.is_set():
            told.set()

    press()
    with pytest.raises(KeyboardInterrupt):
        stoppable(deaf, ignore)
    assert time.monotonic() - started < SOON
    ended.set()
    assert told.wait(SOON)


def test_some_rows_are_not_taken_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline passes between two lots of rows that were already there."""

    class Stopped(threading.Event):
        def is_set(self) -> bool:
            return True

    with DuckDB(threads=1) as engine:
        engine.register("t", pa.table({"n": list(range(100))}), {"n": N})
        monkeypatch.setattr(source_tables, "_ROWS_AT_ONCE", 10)
        assert len(unsealed(engine.read(BY_NUMBER))) == 100
        monkeypatch.setattr(duckdb, "stoppable", lambda work, *_, **__: work(Stopped()))
        with pytest.raises(QueryFailed):
            unsealed(engine.read(BY_NUMBER))


def test_ctrl_c_while_a_frame_is_copied_leaves_the_engine_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    fill, copying = duckdb._fill, threading.Event()

    def slow(*opened: Any) -> None:
        copying.wait(0.3)  # longer than until Ctrl-C is pressed
        fill(*opened)

    with DuckDB(threads=1) as engine:
        engine.register("t", pa.table({"n": [1, 2]}), {"n": N})
        with monkeypatch.context() as patch:
            patch.setattr(duckdb, "_fill", slow)
            press()
            with pytest.raises(KeyboardInterrupt):
                unsealed(engine.read(BY_NUMBER))
        assert unsealed(engine.read(BY_NUMBER)) == {(1,): (1,), (2,): (1,)}


def test_threads_are_used_again_and_few_stay_idle() -> None:
    together = threading.Barrier(2 * _MOST_IDLE)
    with ThreadPoolExecutor(2 * _MOST_IDLE) as pool:
        first = {*pool.map(lambda _: stoppable(_thread_once(together), ignore), range(2 * _MOST_IDLE))}
    assert len(first) == 2 * _MOST_IDLE  # each waited for all others
    assert len(_IDLE) <= _MOST_IDLE
    assert stoppable(_thread, ignore) == stoppable(_thread, ignore)


def _thread(_stopped: threading.Event) -> int:
    return threading.get_ident()


def _thread_once(together: threading.Barrier) -> Callable[[threading.Event], int]:
    def work(_stopped: threading.Event) -> int:
        together.wait(SOON)
        return threading.get_ident()

    return work


def test_work_that_fails_or_does_not_hear_keeps_no_thread_from_the_next() -> None:
    with pytest.raises(ZeroDivisionError):
        stoppable(lambda _: 1 / 0, ignore)
    ended = threading.Event()
    press()
    with pytest.raises(KeyboardInterrupt):
        stoppable(lambda _: ended.wait(SOON), ignore)
    assert stoppable(lambda _: 7, ignore, deadline=SOON) == 7  # by another thread
    ended.set()


def test_a_forked_child_starts_threads_of_its_own() -> None:
    assert stoppable(lambda _: 7, ignore) == 7
    child = os.fork()
    if not child:
        os._exit(stoppable(lambda _: 7, ignore, deadline=SOON))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_an_idle_thread_holds_nothing_of_what_it_read() -> None:
    class Rows:
        """Something that can be looked at from afar."""

    rows = stoppable(lambda _: Rows(), ignore)
    held = weakref.ref(rows)
    stoppable(lambda _: 7, ignore)
    del rows
    gc.collect(1)  # the youngest objects, of which these are
    assert held() is None
