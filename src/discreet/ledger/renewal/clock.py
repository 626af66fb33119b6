"""The clock by which budgets renew: the server's for a ledger on a server, else the machine's, if nobody has set it.

A clock that is set forward would open a period too early. So the machine's clock is compared with one that only counts
on since the machine was started: what passes on both must agree. It is compared from the start of this process on and,
as long as the machine is not started anew, from the entry of the ledger that is the base of a calendar (`ClockBase`).
A clock that was set while the machine was off is not noticed, nor is one of a server.
"""

from __future__ import annotations

import datetime as dt
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

STEP = 60 * 10**9
"""Nanoseconds by which a clock may be corrected without doubt."""

CHANGED = "the clock of this machine was changed"

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # it goes on while the machine sleeps
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Clock(NamedTuple):
    """A reading of a clock.

    Attributes:
        moment: now.
        doubt: why nothing may renew by this clock; empty if it may.
        steady: nanoseconds on the clock that only counts on; 0 if there is none.
        boot: the start of the machine from which that counts; empty if it is not known.
    """

    moment: dt.datetime
    doubt: str = ""
    steady: int = 0
    boot: str = ""


class ClockBase(NamedTuple):
    """A reading that later ones are compared with.

    Attributes:
        moment: of the clock, in nanoseconds.
        steady: of the clock that only counts on.
        boot: the start of the machine.
    """

    moment: int
    steady: int
    boot: str

    @classmethod
    def of(cls, clock: Clock) -> ClockBase:
        """Returns a reading as the base of later ones."""
        return cls(_nanoseconds(clock.moment), clock.steady, clock.boot)

    def agrees(self, clock: Clock) -> bool:
        """Returns whether as much has passed on both clocks since; True if the machine was started anew."""
        if not self.boot or self.boot != clock.boot:
            return True
        return abs((_nanoseconds(clock.moment) - self.moment) - (clock.steady - self.steady)) <= STEP

    def after(self, clock: Clock) -> ClockBase:
        """Returns the base from now on: the same, as long as the machine is."""
        return self if self.boot and self.boot == clock.boot else ClockBase.of(clock)

    def write(self) -> dict[str, Any]:
        """Returns the base as JSON fields."""
        return {"boot": self.boot, "moment": self.moment, "steady": self.steady}

    @classmethod
    def read(cls, fields: dict[str, Any]) -> ClockBase:
        """Returns the base that `write` wrote."""
        return cls(fields["moment"], fields["steady"], fields["boot"])


def _nanoseconds(moment: dt.datetime) -> int:
    return int((moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) / dt.timedelta(microseconds=1)) * 1000


def _lead() -> int:
    """Returns how far the machine's clock is ahead of the one that only counts on, in nanoseconds."""
    return time.time_ns() - time.clock_gettime_ns(_STEADY)


_LEAD = _lead()


@cache
def _boot() -> str:
    try:
        return _BOOT.read_text("ascii").strip()
    except (OSError, ValueError):
        return ""


def read_machine_clock() -> Clock:
    """Returns what the clock of this machine says, and whether it was set since this process began."""
    steady = time.clock_gettime_ns(_STEADY)
    moment = dt.datetime.fromtimestamp(time.time_ns() / 10**9, dt.UTC)
    return Clock(moment, CHANGED if abs(_lead() - _LEAD) > STEP else "", steady, _boot())
