"""Noise that is frozen: what a curator releases on one table comes out again on its neighbour.

What still differs between two runs of the same calls was not covered by noise.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from sklearn.base import BaseEstimator

from discreet.curator import Curator
from discreet.ledger.renewal.clock import Clock
from discreet.ledger.store import ledger_store
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits
from discreet.presentation.ledger_report import report_page
from discreet.stream.gaussian_factor import GaussianFactor
from discreet.stream.laplace_tree import LaplaceTree
from tests.conftest import steady

NOW = 1_800_000_000
SALT = "neighbours"


class Tape(Releaser):
    """A releaser that records what it releases, or releases again what was recorded.

    Args:
        kept: what was recorded, in order; it is written to unless `again`.
        again: whether it comes out again, whatever enters.
    """

    def __init__(self, kept: list[Any], *, again: bool) -> None:
        super().__init__(SeededBits(5))  # of what is drawn from releases, such as synthetic rows: the same both times
        self.noisy = Releaser(SeededBits(6))
        self.kept, self.again, self.place = kept, again, 0

    def _passed(self, name: str, *given: Any, **named: Any) -> Any:
        if self.again:
            self.place += 1
            before, found = self.kept[self.place - 1]
            assert before == name
            return _copied(found)
        found = getattr(self.noisy, name)(*given, **named)
        self.kept.append((name, _copied(found)))
        return found

    def streamed(self, released: Callable[[list[int]], list[int]]) -> Callable[[list[int]], list[int]]:
        """The noise of a stream, which has a generator of its own, on the same tape."""

        def passed(exact: list[int]) -> list[int]:
            if self.again:
                self.place += 1
                return list(self.kept[self.place - 1][1])
            found = released(exact)
            self.kept.append(("stream", list(found)))
            return found

        return passed

    def noise(self, *given: Any) -> Any:
        return self._passed("noise", *given)

    def select(self, *given: Any) -> Any:
        return self._passed("select", *given)

    def weigh(self, *given: Any) -> Any:
        return self._passed("weigh", *given)

    def points(self, *given: Any, **named: Any) -> Any:
        return self._passed("points", *given, **named)

    def places(self, *given: Any) -> Any:
        return self._passed("places", *given)

    def candidates(self, *given: Any) -> Any:
        return self._passed("candidates", *given)

    def fit_rows(self, *given: Any) -> Any:
        return self._passed("fit_rows", *given)

    def model(self, *given: Any, **named: Any) -> Any:
        return self._passed("model", *given, **named)


def _copied(found: Any) -> Any:
    """A learner is filled further on; models of synthetic tables are not, and cannot be copied."""
    return deepcopy(found) if isinstance(found, BaseEstimator | list | dict) else found


class _Still(dt.datetime):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> _Still:
        return cls.fromtimestamp(NOW, tz)


@contextmanager
def still(name: str) -> Iterator[None]:
    """Clocks of ledgers and reports stand still, and what is drawn beside noise (ids, salts) follows from a name."""
    clock = SimpleNamespace(time_ns=lambda: NOW * 10**9)
    dates = SimpleNamespace(**{**vars(dt), "datetime": _Still})
    reading = Clock(dt.datetime.fromtimestamp(NOW, dt.UTC))
    with ExitStack() as patched:
        patched.enter_context(patch.object(ledger_store, "time", clock))
        patched.enter_context(patch.object(ledger_store, "read_machine_clock", lambda: reading))
        patched.enter_context(patch.object(report_page, "dt", dates))
        patched.enter_context(steady(name))
        yield


@contextmanager
def frozen(kept: list[Any], *, again: bool) -> Iterator[None]:
    """Every curator made meanwhile, by whatever face, releases through one tape."""
    tape, right = Tape(kept, again=again), Curator._measure_with

    def measured(curator: Curator, engine: Any, releaser: Releaser, *, salt: str | None) -> None:
        del releaser, salt
        right(curator, engine, tape, salt=SALT)

    with ExitStack() as patched:
        patched.enter_context(still("frozen"))
        patched.enter_context(patch.object(Curator, "_measure_with", measured))
        for kind in (GaussianFactor, LaplaceTree):
            patched.enter_context(patch.object(kind, "noise", _taped(kind.noise, tape)))
        yield


def _taped(noise: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    return lambda mechanism, _: tape.streamed(noise(mechanism, tape.noisy.bits))


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


@contextmanager
def heard() -> Iterator[list[str]]:
    """All log lines of ours."""
    logger, handler = logging.getLogger("discreet"), _Lines()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
