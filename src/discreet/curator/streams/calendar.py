"""The periods of a stream: which values of its key belong to which, from a public start on."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from discreet import check
from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type

Every = Literal["day", "week", "month", "quarter", "year"] | int
"""How long a period is; of a key of whole numbers, how many of them it has."""
Start = dt.date | int | str
"""The first value of the first period; a day may be written, as 2026-01-31."""

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_CHOICES = (*_DAYS, *_MONTHS)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Periods of equal length, one after the other.

    Args:
        every: how long each is.
        start: the first value of the first.
        type: of the key.

    Raises:
        InvalidParameter: if they do not go together.

    >>> Calendar("month", dt.date(2026, 1, 1), Type.DATE).first(2)
    datetime.date(2026, 3, 1)
    """

    every: Every
    start: dt.date | int
    type: Type

    def __post_init__(self) -> None:
        if self.type is Type.INT:
            check.integer(every=self.every, at_least=1)
            check.integer(start=self.start)
            return
        if self.every not in _CHOICES:
            raise InvalidParameter("every", self.every, f"to be one of {', '.join(_CHOICES)}", "Pass every='day'.")
        if isinstance(self.start, int) or not isinstance(self.start, dt.date):
            raise InvalidParameter("start", self.start, "to be a day", "Pass start='2026-01-01', for instance.")
        if self.every in _MONTHS and self.start.day != 1:
            raise InvalidParameter("start", self.start, "to be the first of a month", "Months begin there.")

    @classmethod
    def of(cls, every: Every, start: Start, kind: Type) -> Calendar:
        """Returns the calendar of a key of some type."""
        if isinstance(start, dt.datetime):
            raise InvalidParameter("start", start, "to be a day, without a time", "Periods begin at midnight.")
        if isinstance(start, str) and kind is not Type.INT:
            with suppress(ValueError):
                return cls(every, dt.date.fromisoformat(start), kind)
        if isinstance(start, str):
            raise InvalidParameter("start", start, "to be the first value", "Pass start='2026-01-01', for instance.")
        return cls(every, start, kind)

    def first(self, place: int) -> dt.date | int:
        """Returns the first value of the period at a place, counted from 0.

        Raises:
            InvalidParameter: if no calendar reaches so far.
        """
        if isinstance(self.start, int):
            return self.start + place * int(self.every)
        try:
            if self.every in _DAYS:
                return self.start + dt.timedelta(days=place * _DAYS[str(self.every)])
            months = self.start.year * 12 + self.start.month - 1 + place * _MONTHS[str(self.every)]
            return self.start.replace(year=months // 12, month=months % 12 + 1)
        except (ValueError, OverflowError):
            raise InvalidParameter("horizon", place, "within the years 1 to 9999", "Choose a shorter one.") from None

    def ends(self, place: int) -> tuple[dt.date | int, dt.date | int]:
        """Returns the first value of a period and of the next, as values of the key."""
        return self._value(self.first(place)), self._value(self.first(place + 1))

    def _value(self, first: dt.date | int) -> dt.date | int:
        if self.type is Type.TIMESTAMP and isinstance(first, dt.date):
            return dt.datetime.combine(first, dt.time())
        return first
