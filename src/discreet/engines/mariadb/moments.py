"""Days and moments on MariaDB: their parts, the starts of periods, and moves within the years 1 to 9999.

An interval beyond these years makes NULL or a day of the year 0, so that the place is asked for before the move.
"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.engines.mariadb.text_templates import write_text
from discreet.engines.sql.dialect import Templates
from discreet.plan.expressions.functions import LAST_DAY, Template
from discreet.plan.expressions.functions.date_functions import DAY_NAMES, MONTH_NAMES
from discreet.plan.model.types import Type

_DAY = "[0-9]{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = "(?:[ T](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{{1,6}})?)?)?"


def day_exists(sql: str) -> str:
    """Writes that a stored day or moment is one: MariaDB stores days such as 2024-02-31 and 0000-00-00."""
    return f"YEAR({sql}) > 0 AND MONTH({sql}) > 0 AND DAY({sql}) BETWEEN 1 AND DAY(LAST_DAY({sql}))"


def _read(pattern: str, kind: str) -> Template:
    r"""Reads a text of a pattern; a cast is NULL if there is no such day."""
    return Template(
        rf"CASE WHEN {{0}} REGEXP '\A{pattern}\z' AND {{0}} >= '0001' THEN CAST({{0}} AS {kind}) END", repeats=(0,)
    )


def _field(sql: str) -> Template:
    return Template(f"CAST({sql} AS SIGNED)")


def _name(names: Sequence[str], place: str) -> Template:
    listed = ", ".join(f"'{name}'" for name in names)
    return Template(write_text(f"ELT({place}, {listed})"))


_AS_DAY = "CAST({0} AS DATE)"
_MONTH = f"({_AS_DAY} - INTERVAL (DAY({{0}}) - 1) DAY)"


def _start(sql: str) -> Template:
    return Template(sql, repeats=(0,))


def _move(unit: str, place: str, last: int) -> Template:
    """Writes a day or moment moved by {1} units; the place is its own, counted from the first one of the year 1."""
    held = f"GREATEST(LEAST({{1}}, {last + 1}), -{last + 1})"
    within = f"CAST({place} AS DECIMAL(40,0)) + {{1}} BETWEEN 0 AND {last}"
    return Template(f"CASE WHEN {within} THEN {{0}} + INTERVAL {held} {unit} END", repeats=(0, 1))


MOMENTS: Templates = {
    ("to_date", Type.TEXT): _read(_DAY, "DATE"),
    "read_timestamp": _read(_DAY + _TIME, "DATETIME(6)"),
    "year": _field("YEAR({0})"),
    "quarter": _field("QUARTER({0})"),
    "month": _field("MONTH({0})"),
    "week": _field("WEEK({0}, 3)"),
    "day": _field("DAY({0})"),
    "day_of_week": _field("WEEKDAY({0}) + 1"),
    "day_of_year": _field("DAYOFYEAR({0})"),
    "day_name": _name(DAY_NAMES, "WEEKDAY({0}) + 1"),
    "month_name": _name(MONTH_NAMES, "MONTH({0})"),
    "hour": _field("HOUR({0})"),
    "minute": _field("MINUTE({0})"),
    "second": _field("SECOND({0})"),
    "start_of_year": _start(f"{_AS_DAY} - INTERVAL (DAYOFYEAR({{0}}) - 1) DAY"),
    "start_of_quarter": _start(f"{_MONTH} - INTERVAL ((MONTH({{0}}) - 1) % 3) MONTH"),
    "start_of_month": _start(_MONTH),
    "start_of_week": _start(f"{_AS_DAY} - INTERVAL WEEKDAY({{0}}) DAY"),
    "end_of_month": Template("LAST_DAY({0})"),
    "days_between": _field("DATEDIFF({1}, {0})"),
    "microseconds_between": Template("TIMESTAMPDIFF(MICROSECOND, {0}, {1})"),
    "add_days": _move("DAY", "DATEDIFF({0}, '0001-01-01')", LAST_DAY - 1),
    "add_months": _move("MONTH", "(YEAR({0}) * 12 + MONTH({0}) - 13)", 9999 * 12 - 1),
}
"""The templates of what reads days and moments."""
