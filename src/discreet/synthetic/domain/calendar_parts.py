"""Calendar parts of days: years, quarters, months, single days, and the months and weekdays that come round again."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.domain.column_domains import MOST_VALUES, Codes, ColumnDomain, Floats, day_of

_HINT = "Pass e.g. Calendar('year_month', years=(2019, 2024)) or Calendar('weekday')."
_NUMBERS = (int, float, np.integer, np.floating)
_NO_NUMBERS = (bool, np.timedelta64)  # which are numbers by their types
_ROUND = {"month": 12, "weekday": 7}
_PER_YEAR = {"year": 1, "quarter": 4, "year_month": 12}
_PARTS = (*_PER_YEAR, "day", *_ROUND)
_CYCLIC: dict[str, Callable[[dt.date], int]] = {
    "month": lambda day: day.month - 1,
    "weekday": lambda day: day.isoweekday() - 1,
}


@dataclass(frozen=True, slots=True, init=False)
class Calendar(ColumnDomain):
    """Selects a part of a value's day: values are days, moments, or texts that begin like 2024-01-31.

    The parts "year", "quarter", "year_month" and "day" cut declared years into pieces of time; a day before or after
    these years counts in the first or the last piece, and a day that is drawn is any day of its piece. The parts
    "month" (1 to 12) and "weekday" (Monday is 1, Sunday 7) come round again: what is drawn is the number of the part,
    and such numbers are read as they are written. A time of day is not kept.

    Args:
        part: one of these.
        years: the first and the last year, both included; none for parts that come round again.
        missing: whether there is a code for what is no day; if not, it counts as the first piece.

    Raises:
        InvalidParameter: if the part is unknown, or years are missing, not in order, or too many.

    >>> admitted = Calendar("year_month", years=(2023, 2024))
    >>> admitted.codes([dt.date(2023, 1, 31), "2024-12-24", None, dt.date(1990, 1, 1)]).tolist(), admitted.size
    ([0, 23, 24, 0], 25)
    """

    part: str
    years: tuple[int, int] | None
    missing: bool

    def __init__(self, part: str, *, years: tuple[int, int] | None = None, missing: bool = True) -> None:
        if part not in _PARTS:
            raise InvalidParameter("part", part, f"to be one of {', '.join(_PARTS)}", _HINT)
        if (part in _ROUND) is not (years is None):
            told = "to be left out" if part in _ROUND else "to be given"
            raise InvalidParameter("years", years, f"{told} with part={part!r}", _HINT)
        self._declare(part=part, years=None if years is None else _years(years), missing=missing)
        if self.size > MOST_VALUES:
            raise InvalidParameter("years", years, f"to have at most {MOST_VALUES:,} parts", _HINT)

    @property
    def labels(self) -> tuple[Any, ...]:
        """Returns the first day of each piece of time, or the numbers of parts that come round again."""
        if self.years is None:
            return tuple(range(1, _ROUND[self.part] + 1))
        return tuple(self._first(place) for place in range(self._pieces))

    @property
    def size(self) -> int:
        """Returns the number of codes."""
        return self._pieces + self.missing

    @property
    def _pieces(self) -> int:
        if self.years is None:
            return _ROUND[self.part]
        first, last = self.years
        if self.part == "day":
            return dt.date(last, 12, 31).toordinal() - dt.date(first, 1, 1).toordinal() + 1
        return (last - first + 1) * _PER_YEAR[self.part]

    def places(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the piece that each day is in, -1 for what is no day."""
        given = list(values)
        return np.fromiter((self._place(value) for value in given), dtype=np.int64, count=len(given))

    def _place(self, value: Any) -> int:
        if self.years is None and isinstance(value, _NUMBERS) and not isinstance(value, _NO_NUMBERS):
            known = range(1, _ROUND[self.part] + 1)
            return known.index(int(value)) if value in known else -1
        day = day_of(value)
        if day is None:
            return -1
        if self.years is None:
            return _CYCLIC[self.part](day)
        return min(max(self._piece(day), 0), self._pieces - 1)

    def _piece(self, day: dt.date) -> int:
        first = (self.years or (1, 1))[0]
        if self.part == "day":
            return day.toordinal() - dt.date(first, 1, 1).toordinal()
        per_year = _PER_YEAR[self.part]
        return (day.year - first) * per_year + (day.month - 1) * per_year // 12

    def _first(self, place: int) -> dt.date:
        year = (self.years or (1, 1))[0]
        if self.part == "day":
            return dt.date(year, 1, 1) + dt.timedelta(days=place)
        per_year = _PER_YEAR[self.part]
        return dt.date(year + place // per_year, place % per_year * (12 // per_year) + 1, 1)

    def decode_places(self, places: Codes, uniforms: Floats) -> list[Any]:
        """Returns a day of each piece of time, or the number of a part that comes round again."""
        if self.years is None:
            return [place + 1 for place in places.tolist()]
        starts = [self._first(place) for place in range(self._pieces)]
        lengths = np.array([_days(start, self.part) for start in starts])
        offsets = np.minimum(np.floor(uniforms * lengths[places]), lengths[places] - 1).astype(np.int64)
        pairs = zip(places.tolist(), offsets.tolist(), strict=True)
        return [starts[place] + dt.timedelta(days=offset) for place, offset in pairs]

    def members(self, values: Any) -> list[int]:
        """Returns the places of pieces, each given by a day in it, or of numbers of parts; None is missing."""
        if isinstance(values, str | bytes) or not isinstance(values, Sequence):
            raise InvalidParameter("forbidden", values, "to be a list of days or numbers", _HINT)
        places = [self._place_of_missing() if value is None else self._place(value) for value in values]
        if min(places, default=-1) < 0:
            raise InvalidParameter("forbidden", list(values), f"to be parts of {self.part}", _HINT)
        return places

    @property
    def detail(self) -> str:
        """Returns how a value is made of a code."""
        return f"the number of its {self.part}" if self.years is None else f"any day of its {self.part}, evenly"

    def as_dict(self) -> dict[str, Any]:
        """Returns the declaration as plain data."""
        years = None if self.years is None else list(self.years)
        return {"kind": "calendar", "part": self.part, "years": years, "missing": self.missing}


def _years(years: Any) -> tuple[int, int]:
    if not isinstance(years, tuple | list) or len(years) != 2:
        raise InvalidParameter("years", years, "to be a pair (first, last)", _HINT)
    first, last = (check.integer(years=year, at_least=dt.MINYEAR, at_most=dt.MAXYEAR) for year in years)
    if first > last:
        raise InvalidParameter("years", years, "to be in order", _HINT)
    return first, last


def _days(start: dt.date, part: str) -> int:
    if part == "day":
        return 1
    months = 12 // _PER_YEAR[part]
    return sum(calendar.monthrange(start.year, start.month + month)[1] for month in range(months))
