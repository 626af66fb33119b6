"""The period of a calendar that is open for an account, or for the cap of a person, project or team."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from discreet.ledger.renewal.clock import CHANGED, Clock, ClockBase
from discreet.privacy import RenewalSchedule

NEVER = "never"


class Timeline(Protocol):
    """What a renewal looks at: the ledger's clock, and when its entries were written."""

    def clock(self) -> Clock:
        """Returns a reading of the clock by which the ledger renews."""

    def latest_time(self, first: int) -> str:
        """Returns the latest time of the entries from a place on, in ISO 8601; empty if there are none."""


class OpenPeriod(NamedTuple):
    """A period of a calendar, opened by an entry.

    Attributes:
        schedule: the calendar.
        first_day: of the period.
        since: the entry that opened it.
        base: the reading of the clock that later ones are compared with.
        doubt: why nothing renews until a steward renews; empty if nothing was charged by a clock in doubt.
    """

    schedule: RenewalSchedule
    first_day: dt.date
    since: int
    base: ClockBase
    doubt: str = ""

    def write(self) -> dict[str, Any]:
        """Returns the period as JSON fields."""
        calendar = {**self.schedule.write(), "opened": self.first_day.isoformat()}
        return {**calendar, "base": self.base.write(), "doubt": self.doubt, "since": self.since}

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> OpenPeriod | None:
        """Returns the period that `write` wrote, or an entry opens; None if renewals end."""
        if fields["per"] == NEVER:
            return None
        first_day, base = dt.date.fromisoformat(fields["opened"]), ClockBase.read(fields["base"])
        schedule = RenewalSchedule.read({name: fields[name] for name in ("per", "zone", "start")})
        return cls(schedule, first_day, fields["since"], base, fields["doubt"])

    @classmethod
    def opened_by(cls, entry: int, fields: Mapping[str, Any] | None) -> OpenPeriod | None:
        """Returns the period that an entry with such fields opens; None if it opens none."""
        return None if fields is None else cls.read({**fields, "since": entry, "doubt": ""})

    def doubts(self, rows: Timeline) -> str:
        """Returns why nothing may renew by the clock; empty if it may.

        A clock that entries are ahead of was set back, and may be set forward again. Then a period would end late and
        the next one in time, and three could be spent within the length of one.
        """
        clock = rows.clock()
        if self.doubt or clock.doubt:
            return self.doubt or clock.doubt
        if not self.base.agrees(clock):
            return CHANGED
        latest = rows.latest_time(self.since)
        ahead = bool(latest) and dt.datetime.fromisoformat(latest) > clock.moment
        if ahead or self.schedule.period_at(clock.moment) < self.first_day:
            return "entries of the ledger are ahead of the clock"
        return ""

    def due(self, rows: Timeline) -> dt.date | None:
        """Returns the first day of the period that the clock is in, if that may be opened now; else None."""
        period = self.schedule.period_at(rows.clock().moment)
        return period if period > self.first_day and not self.doubts(rows) else None

    def opening(self, rows: Timeline, first_day: dt.date) -> dict[str, Any]:
        """Returns the fields of an entry that opens another period."""
        base = self.base.after(rows.clock())
        return {**self.schedule.write(), "base": base.write(), "opened": first_day.isoformat()}

    def describe(self, rows: Timeline) -> str:
        """Returns when the period ends, or why nothing renews until a steward decides."""
        doubt = self.doubts(rows)
        if doubt:
            return f"{self.schedule}; nothing renews until a steward renews it, because {doubt}"
        return f"{self.schedule}; next on {self.schedule.after(self.first_day)}"


def first_opening(schedule: RenewalSchedule, rows: Timeline) -> dict[str, Any]:
    """Returns the fields of an entry by which a steward opens the period that the clock is in."""
    clock = rows.clock()
    period = schedule.period_at(clock.moment).isoformat()
    return {**schedule.write(), "base": ClockBase.of(clock).write(), "opened": period}
