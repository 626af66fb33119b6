"""When a budget is used up if queries go on as they did."""

from __future__ import annotations

import datetime as dt

from discreet.dataclass import dataclass

SHORTEST = dt.timedelta(days=1)
"""From the first charge of a period on; before that, a pace says nothing."""

FARTHEST = dt.timedelta(days=3650)
"""Beyond which no day is told."""

METHOD = (
    "Forecast: the remaining budget, divided by the spending per day since the first charge of the present period. A "
    "renewal begins a new period with a new pace. The forecast assumes that queries continue as before. There is no "
    "forecast until a day has passed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When a budget is used up at a pace.

    Attributes:
        pace: which share is spent a day.
        used_up: when nothing remains; None if that is more than ten years away.
    """

    pace: float
    used_up: dt.datetime | None

    @property
    def words(self) -> str:
        """Returns the day, in words."""
        return "not within ten years" if self.used_up is None else f"about {day(self.used_up)}"


def day(moment: dt.datetime) -> str:
    """Returns a day in words.

    >>> day(dt.datetime(2026, 2, 1))
    '1 February 2026'
    """
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


_MONTHS = (  # of no locale
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def forecast(spent: float, left: float, *, since: dt.datetime | None, now: dt.datetime) -> Forecast | None:
    """Returns when something is used up; None if it is too early to tell.

    Args:
        spent: the share of it that is used, in the present period.
        left: the share that remains.
        since: the first charge of the period; None if there was none.
        now: when the forecast is made.

    >>> begun, now = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 11)
    >>> forecast(0.25, 0.75, since=begun, now=now).words
    'about 10 February 2026'
    """
    if since is None or spent <= 0 or now - since < SHORTEST:
        return None
    pace = spent / ((now - since) / dt.timedelta(days=1))
    days = left / pace
    far = days > FARTHEST / dt.timedelta(days=1)
    return Forecast(pace=pace, used_up=None if far else now + dt.timedelta(days=days))
