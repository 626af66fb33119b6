"""A machine whose clock can be set, with processes that open ledgers on it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.ledger.renewal.clock import CHANGED, STEP, Clock
from discreet.ledger.store import ledger_store, postgres

SECOND = 10**9
DAY = 86_400 * SECOND


class Machine:
    """The true time, and how far the clock of a machine is ahead of it, in nanoseconds.

    It takes the place of the clock of this machine; `process` is the one that runs now, by the lead of the clock when
    that process began.
    """

    def __init__(self, patch: pytest.MonkeyPatch, start: dt.datetime) -> None:
        self.time, self.ahead, self.started, self.boots = int(start.timestamp()) * SECOND, 0, 0, 1
        self.process = self.lead
        patch.setattr(ledger_store, "read_machine_clock", self.read)
        patch.setattr(postgres, "Clock", lambda _: Clock(self.moment))  # a server's, which has no other to agree with
        patch.setattr(ledger_store, "_now", lambda: self.moment.isoformat(timespec="milliseconds"))

    @property
    def wall(self) -> int:
        return self.time + self.ahead

    @property
    def moment(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self.wall / SECOND, dt.UTC)

    @property
    def lead(self) -> int:
        return self.wall - (self.time - self.started)

    def read(self) -> Clock:
        doubt = CHANGED if abs(self.lead - self.process) > STEP else ""
        return Clock(self.moment, doubt, self.time - self.started, f"boot {self.boots}")

    def start_anew(self) -> None:
        self.started, self.boots = self.time, self.boots + 1

    def open(self, path: Path) -> tuple[Ledger, int]:
        """Returns a ledger that a new process opens, and the lead by which that process is known."""
        self.process = self.lead
        return Ledger(str(path)), self.process

    def pass_days(self, days: float) -> None:
        self.time += int(days * DAY)
