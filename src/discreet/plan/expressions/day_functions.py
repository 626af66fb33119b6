"""The meanings of functions of days and moments in plain Python, total on the years 1 to 9999."""

from __future__ import annotations

import datetime as dt
from calendar import monthrange
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

Day = TypeVar("Day", bound=dt.date)

LAST = dt.date.max.toordinal()
"""The number of the last day; the first has number 1."""

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def number(value: dt.date) -> Fraction:
    """Days since the one before 0001-01-01, a moment's with the part of the day that has passed.

    >>> number(dt.datetime(1, 1, 2, 12))
    Fraction(5, 2)
    """
    passed = value - dt.datetime.combine(value.date(), dt.time()) if isinstance(value, dt.datetime) else dt.timedelta()
    return value.toordinal() + Fraction(passed // dt.timedelta(microseconds=1), 86_400_000_000)


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


def _start_of_week(value: dt.date) -> dt.date | None:
    day = _day(value)
    number = day.toordinal() - day.weekday()
    return dt.date.fromordinal(number) if number >= 1 else None


def _add_days(value: Day, days: int) -> Day | None:
    number = value.toordinal() + days
    return value + dt.timedelta(days=days) if 1 <= number <= LAST else None


def _add_months(value: Day, months: int) -> Day | None:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    return value.replace(year=year, month=month + 1, day=min(value.day, monthrange(year, month + 1)[1]))


DAYS: dict[str, Callable[..., Any]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar().week,
    "day": lambda day: day.day,
    "day_of_year": lambda day: day.timetuple().tm_yday,
    "day_of_week": lambda day: day.isoweekday(),
    "day_name": lambda day: DAY_NAMES[day.weekday()],
    "month_name": lambda day: MONTH_NAMES[day.month - 1],
    "hour": lambda moment: moment.hour,
    "days_between": lambda a, b: b.toordinal() - a.toordinal(),
    "add_days": _add_days,
    "add_months": _add_months,
    "start_of_year": lambda day: _day(day).replace(month=1, day=1),
    "start_of_quarter": lambda day: _day(day).replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "start_of_month": lambda day: _day(day).replace(day=1),
    "start_of_week": _start_of_week,
    "end_of_month": lambda day: _day(day).replace(day=monthrange(day.year, day.month)[1]),
}
"""By the names of `functions.FUNCTIONS`; no argument is NULL."""
