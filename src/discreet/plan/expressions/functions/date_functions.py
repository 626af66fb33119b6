"""Functions of days and moments: their parts, the starts of periods, differences and moves."""

from __future__ import annotations

import datetime as dt
import math
from calendar import monthrange
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from discreet.plan.expressions.functions.record import (
    LAST_DAY,
    TIMES,
    BoundsRule,
    CalendarFacts,
    D,
    Form,
    Function,
    N,
    S,
    Signature,
    T,
    Template,
    always_present,
    between,
    each,
    is_inside,
    takes,
)
from discreet.plan.expressions.interval_arithmetic import EMPTY, Span

Day = TypeVar("Day", bound=dt.date)

DAY = 86_400_000_000
"""Microseconds."""

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def day_number(value: dt.date) -> Fraction:
    """Returns the number of a day, 1 for 0001-01-01; a moment's with the part of the day that has passed.

    >>> day_number(dt.datetime(1, 1, 2, 12))
    Fraction(5, 2)
    """
    passed = value - dt.datetime.combine(value.date(), dt.time()) if isinstance(value, dt.datetime) else dt.timedelta()
    return value.toordinal() + Fraction(passed // dt.timedelta(microseconds=1), DAY)


# ------------------------------------------------------------------------------------------------------------ in Python


def _day(value: dt.date) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


def _start_of_year(value: dt.date) -> dt.date:
    return _day(value).replace(month=1, day=1)


def _start_of_quarter(value: dt.date) -> dt.date:
    return _day(value).replace(month=(value.month - 1) // 3 * 3 + 1, day=1)


def _start_of_month(value: dt.date) -> dt.date:
    return _day(value).replace(day=1)


def _start_of_week(value: dt.date) -> dt.date | None:
    day = _day(value)
    number = day.toordinal() - day.weekday()
    return dt.date.fromordinal(number) if number >= 1 else None


def _end_of_month(value: dt.date) -> dt.date:
    return _day(value).replace(day=monthrange(value.year, value.month)[1])


def _add_days(value: Day, days: int) -> Day | None:
    number = value.toordinal() + days
    return value + dt.timedelta(days=days) if 1 <= number <= LAST_DAY else None


def _add_months(value: Day, months: int) -> Day | None:
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        return None
    return value.replace(year=year, month=month + 1, day=min(value.day, monthrange(year, month + 1)[1]))


# --------------------------------------------------------------------------------------------------------------- bounds


def _of_day(monotone: Callable[[dt.date], int | dt.date | None]) -> BoundsRule:
    """Returns a function of days that never decreases and always has a value."""

    def value(end: Fraction) -> int:
        found = monotone(dt.date.fromordinal(min(max(math.floor(end), 1), LAST_DAY)))
        return found.toordinal() if isinstance(found, dt.date) else found or 0

    return lambda spans: spans[0] if spans[0].is_empty else spans[0].map(value)


def _months_later(spans: Sequence[Span]) -> Span:
    """A month has 28 to 31 days, and the day in it moves by 3 at most; the time of day stays."""
    days, months = spans
    if days.is_empty or months.is_empty:
        return EMPTY
    return days + Span(min(28 * months.low, 31 * months.low) - 3, max(28 * months.high, 31 * months.high) + 3)


# ------------------------------------------------------------------------------------------------------------------ SQL


def _field(name: str) -> str:
    """Returns a part of a day or moment as most databases have it."""
    return f"CAST(extract({name} FROM {{0}}) AS bigint)"


def _spark(sql: str) -> str:
    """Returns a part of a day on Spark: a 32-bit number as an INT, so that what is computed with it has 64 bits."""
    return f"CAST({sql.replace('{0}', 'CAST({0} AS DATE)')} AS BIGINT)"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _postgres_name(names: Sequence[str], place: str) -> str:
    return f'(CAST((ARRAY[{_names(names)}])[CAST(extract({place} FROM {{0}}) AS integer)] AS text) COLLATE "C")'


def _spark_name(names: Sequence[str], place: str) -> str:
    return f"elt({place.replace('{0}', 'CAST({0} AS DATE)')}, {_names(names)})"


def _start(unit: str) -> dict[str, Form]:
    return {
        "duckdb": f"CAST(date_trunc('{unit}', {{0}}) AS DATE)",
        "spark": f"trunc(CAST({{0}} AS DATE), '{unit.upper()}')",
    }


def _write_truncation(unit: str) -> str:
    return f"CAST(date_trunc('{unit}', CAST({{0}} AS timestamp)) AS date)"


def _write_move(sql: str, place: str, last: int, wide: str) -> Template:
    """Returns a day or moment moved by {1} units, NULL outside the years 1 to 9999.

    Args:
        sql: the move by a 32-bit number {1}, which carries no day within these years out of range.
        place: the unit of {0}, counted from the first one of the year 1.
        last: the place of the last unit.
        wide: the type of exact sums.
    """
    held = sql.replace("{1}", f"CAST(greatest(least({{1}}, {last + 1}), -{last + 1}) AS INTEGER)")
    return Template(f"CASE WHEN CAST({place} AS {wide}) + {{1}} BETWEEN 0 AND {last} THEN {held} END", repeats=(0, 1))


def _moved_days(dialect: str, sql: str) -> Template:
    place = {
        "duckdb": "(CAST({0} AS DATE) - DATE '0001-01-01')",
        "postgres": "(CAST({0} AS date) - DATE '0001-01-01')",
        "spark": "datediff(CAST({0} AS DATE), DATE '0001-01-01')",
    }
    return _write_move(sql, place[dialect], LAST_DAY - 1, _WIDE[dialect])


def _moved_months(dialect: str, sql: str) -> Template:
    place = {
        "duckdb": "(year({0}) * 12 + month({0}) - 13)",
        "postgres": "(extract(year FROM {0}) * 12 + extract(month FROM {0}) - 13)",
        "spark": "(year({0}) * 12 + month({0}) - 13)",
    }
    return _write_move(sql, place[dialect], 9999 * 12 - 1, _WIDE[dialect])


_WIDE = {"duckdb": "HUGEINT", "postgres": "numeric", "spark": "DECIMAL(38,0)"}

# -------------------------------------------------------------------------------------------------------------- records

_PARTS = (
    Function(
        "year",
        "the year",
        each(1, TIMES, N),
        compute=lambda day: day.year,
        bounds=_of_day(lambda day: day.year),
        present=always_present,
        words=("YEAR",),
        example="GROUP BY YEAR(day)",
        calendar=CalendarFacts(within="year", parts=("YEAR",)),
        sql=_field("year"),
        spelled={"duckdb": "year({0})", "spark": _spark("year({0})")},
    ),
    Function(
        "quarter",
        "the quarter of the year, 1 to 4",
        each(1, TIMES, N),
        compute=lambda day: (day.month + 2) // 3,
        bounds=between(1, 4),
        present=always_present,
        words=("QUARTER",),
        example="GROUP BY QUARTER(day)",
        calendar=CalendarFacts(within="quarter", cycle="year", parts=("QUARTER",)),
        sql=_field("quarter"),
        spelled={"duckdb": "quarter({0})", "spark": _spark("quarter({0})")},
    ),
    Function(
        "month",
        "the month, 1 to 12",
        each(1, TIMES, N),
        compute=lambda day: day.month,
        bounds=between(1, 12),
        present=always_present,
        words=("MONTH",),
        example="GROUP BY MONTH(day)",
        calendar=CalendarFacts(within="month", cycle="year", parts=("MONTH",)),
        sql=_field("month"),
        spelled={"duckdb": "month({0})", "spark": _spark("month({0})")},
    ),
    Function(
        "week",
        "the ISO 8601 week, 1 to 53",
        each(1, TIMES, N),
        compute=lambda day: day.isocalendar().week,
        bounds=between(1, 53),
        present=always_present,
        words=("WEEK", "WEEKOFYEAR"),
        example="GROUP BY WEEK(day)",
        calendar=CalendarFacts(within="week", parts=("WEEK", "WEEKOFYEAR")),
        sql=_field("week"),
        spelled={"duckdb": "week({0})", "spark": _spark("weekofyear({0})")},
    ),
    Function(
        "day",
        "the day of the month, 1 to 31",
        each(1, TIMES, N),
        compute=lambda day: day.day,
        bounds=between(1, 31),
        present=always_present,
        words=("DAY",),
        example="GROUP BY DAY(day)",
        calendar=CalendarFacts(within="day", parts=("DAY", "DAYOFMONTH")),
        sql=_field("day"),
        spelled={"duckdb": "day({0})", "spark": _spark("day({0})")},
    ),
    Function(
        "day_of_week",
        "the day of the week, from 1 (Monday) to 7 (Sunday)",
        each(1, TIMES, N),
        compute=lambda day: day.isoweekday(),
        bounds=between(1, 7),
        present=always_present,
        words=("ISODOW",),
        example="GROUP BY ISODOW(day)",
        calendar=CalendarFacts(within="day", cycle="week", parts=("ISODOW", "DAYOFWEEKISO")),
        sql=_field("isodow"),
        spelled={"duckdb": "isodow({0})", "spark": _spark("weekday({0}) + 1")},
    ),
    Function(
        "day_of_year",
        "the day of the year, 1 to 366",
        each(1, TIMES, N),
        compute=lambda day: day.timetuple().tm_yday,
        bounds=between(1, 366),
        present=always_present,
        words=("DAYOFYEAR",),
        example="GROUP BY DAYOFYEAR(day)",
        calendar=CalendarFacts(within="day", parts=("DOY", "DAYOFYEAR")),
        sql=_field("doy"),
        spelled={"duckdb": "dayofyear({0})", "spark": _spark("dayofyear({0})")},
    ),
    Function(
        "day_name",
        "the name of the weekday, Monday to Sunday",
        each(1, TIMES, T),
        compute=lambda day: DAY_NAMES[day.weekday()],
        present=always_present,
        values=DAY_NAMES,
        words=("DAYNAME",),
        example="GROUP BY DAYNAME(day)",
        calendar=CalendarFacts(within="day", cycle="week"),
        spelled={
            "duckdb": "dayname({0})",
            "postgres": _postgres_name(DAY_NAMES, "isodow"),
            "spark": _spark_name(DAY_NAMES, "weekday({0}) + 1"),
        },
    ),
    Function(
        "month_name",
        "the name of the month, January to December",
        each(1, TIMES, T),
        compute=lambda day: MONTH_NAMES[day.month - 1],
        present=always_present,
        values=MONTH_NAMES,
        words=("MONTHNAME",),
        example="GROUP BY MONTHNAME(day)",
        calendar=CalendarFacts(within="month", cycle="year"),
        spelled={
            "duckdb": "monthname({0})",
            "postgres": _postgres_name(MONTH_NAMES, "month"),
            "spark": _spark_name(MONTH_NAMES, "month({0})"),
        },
    ),
    Function(
        "hour",
        "the hour of a timestamp, 0 to 23",
        takes(S, result=N),
        compute=lambda moment: moment.hour,
        bounds=between(0, 23),
        present=always_present,
        words=("HOUR",),
        example="GROUP BY HOUR(arrived)",
        advice="HOUR takes a timestamp; a date has no hour: {grouped}.",
        calendar=CalendarFacts(within="hour", parts=("HOUR",)),
        sql=_field("hour"),
        spelled={"duckdb": "hour({0})", "spark": "CAST(hour({0}) AS BIGINT)"},
    ),
    Function(
        "minute",
        "the minute of a timestamp, 0 to 59",
        takes(S, result=N),
        compute=lambda moment: moment.minute,
        bounds=between(0, 59),
        present=always_present,
        words=("MINUTE",),
        example="GROUP BY MINUTE(arrived)",
        advice="MINUTE takes a timestamp; a date has no minute: {grouped}.",
        calendar=CalendarFacts(within="minute", parts=("MINUTE",)),
        sql=_field("minute"),
    ),
    Function(
        "second",
        "the second of a timestamp, 0 to 59, without the fraction",
        takes(S, result=N),
        compute=lambda moment: moment.second,
        bounds=between(0, 59),
        present=always_present,
        words=("SECOND",),
        example="GROUP BY SECOND(arrived)",
        advice="SECOND takes a timestamp; a date has no second: {grouped}.",
        calendar=CalendarFacts(parts=("SECOND",)),
        sql=_field("second"),
        spelled={"postgres": "CAST(floor(extract(second FROM {0})) AS bigint)"},  # whose seconds have a fraction
    ),
)

_STARTS = (
    Function(
        "start_of_year",
        "January 1 of the year",
        each(1, TIMES, D),
        compute=_start_of_year,
        bounds=_of_day(_start_of_year),
        present=always_present,
        calendar=CalendarFacts(within="year", truncates="YEAR"),
        sql=_write_truncation("year"),
        spelled=_start("year"),
    ),
    Function(
        "start_of_quarter",
        "the first day of the quarter",
        each(1, TIMES, D),
        compute=_start_of_quarter,
        bounds=_of_day(_start_of_quarter),
        present=always_present,
        calendar=CalendarFacts(within="quarter", truncates="QUARTER"),
        sql=_write_truncation("quarter"),
        spelled=_start("quarter"),
    ),
    Function(
        "start_of_month",
        "the first day of the month",
        each(1, TIMES, D),
        compute=_start_of_month,
        bounds=_of_day(_start_of_month),
        present=always_present,
        calendar=CalendarFacts(within="month", truncates="MONTH"),
        sql=_write_truncation("month"),
        spelled=_start("month"),
    ),
    Function(
        "start_of_week",
        "the Monday of the week",
        each(1, TIMES, D),
        compute=_start_of_week,
        bounds=_of_day(_start_of_week),
        present=is_inside,
        calendar=CalendarFacts(within="week", truncates="WEEK"),
        sql=_write_truncation("week"),
        spelled=_start("week"),
    ),
    Function(
        "end_of_month",
        "the last day of the month",
        each(1, TIMES, D),
        compute=_end_of_month,
        bounds=_of_day(_end_of_month),
        present=always_present,
        words=("LAST_DAY",),
        example="WHERE LAST_DAY(day) = day",
        calendar=CalendarFacts(within="month"),
        sql="last_day(CAST({0} AS DATE))",
        spelled={
            "duckdb": "last_day({0})",
            "postgres": "CAST(date_trunc('month', CAST({0} AS timestamp))"
            " + make_interval(months => 1, days => -1) AS date)",
        },
    ),
)

_DIFFERENCES = (
    Function(
        "days_between",
        "b - a in days",
        takes(D, D, result=N),
        compute=lambda a, b: b.toordinal() - a.toordinal(),
        bounds=lambda spans: spans[1] - spans[0],
        present=always_present,
        sql="CAST({1} - {0} AS bigint)",
        spelled={"duckdb": "{1} - {0}", "spark": "CAST(datediff({1}, {0}) AS BIGINT)"},
    ),
    Function(
        "microseconds_between",
        "b - a in microseconds",
        takes(S, S, result=N),
        compute=lambda a, b: (b - a) // dt.timedelta(microseconds=1),
        bounds=lambda spans: (spans[1] - spans[0]) * Span.exactly(DAY),
        present=always_present,
        sql="CAST((extract(epoch FROM {1}) - extract(epoch FROM {0})) * 1000000 AS bigint)",
        spelled={"duckdb": "epoch_us({1}) - epoch_us({0})", "spark": "timestampdiff(MICROSECOND, {0}, {1})"},
    ),
    Function(
        "add_days",
        "b days after a, at the same time of day; NULL outside the years 1 to 9999",
        tuple(Signature((kind, N), kind) for kind in TIMES),
        compute=_add_days,
        bounds=lambda spans: spans[0] + spans[1],
        present=is_inside,
        spelled={
            "duckdb": {D: _moved_days("duckdb", "{0} + {1}"), S: _moved_days("duckdb", "{0} + to_days({1})")},
            "postgres": {
                D: _moved_days("postgres", "{0} + {1}"),
                S: _moved_days("postgres", "{0} + make_interval(days => {1})"),
            },
            "spark": {
                D: _moved_days("spark", "date_add({0}, {1})"),
                S: _moved_days("spark", "timestampadd(DAY, {1}, {0})"),
            },
        },
    ),
    Function(
        "add_months",
        "the same day and time b months after a, or the last day of a shorter month; NULL outside the years 1 to 9999",
        tuple(Signature((kind, N), kind) for kind in TIMES),
        compute=_add_months,
        bounds=_months_later,
        present=is_inside,
        spelled={
            "duckdb": {
                D: _moved_months("duckdb", "CAST({0} + to_months({1}) AS DATE)"),
                S: _moved_months("duckdb", "{0} + to_months({1})"),
            },
            "postgres": {
                D: _moved_months("postgres", "CAST({0} + make_interval(months => {1}) AS date)"),
                S: _moved_months("postgres", "{0} + make_interval(months => {1})"),
            },
            "spark": {
                D: _moved_months("spark", "add_months({0}, {1})"),
                S: _moved_months("spark", "timestampadd(MONTH, {1}, {0})"),
            },
        },
    ),
)

DATES = (*_PARTS, *_STARTS, *_DIFFERENCES)
