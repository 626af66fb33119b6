"""Conversions between types, which are NULL where a value has no counterpart."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from discreet.plan.expressions.functions.record import (
    B,
    CalendarFacts,
    D,
    F,
    Function,
    N,
    Rounding,
    S,
    Signature,
    T,
    Template,
    always_present,
    cast,
    is_inside,
    map_monotone,
    takes,
)
from discreet.plan.expressions.interval_arithmetic import Span
from discreet.plan.model.nodes import FunctionCall
from discreet.plan.model.types import Type

_INT = re.compile(r"[+-]?[0-9]{1,19}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

# ------------------------------------------------------------------------------------------------------------ in Python


def _to_int(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if _INT.fullmatch(value) else None
    return int(value)


def as_double(value: Any) -> float | None:
    """Returns a number as a double; None if none is as large. There is one zero."""
    try:
        found = float(value)
    except OverflowError:
        return None
    return found + 0.0 if math.isfinite(found) else None


def _to_float(value: Any) -> float | None:
    return None if isinstance(value, str) and not _FLOAT.fullmatch(value) else as_double(value)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _to_date(value: Any) -> dt.date | None:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(value) if _DATE.fullmatch(value) else None
    except ValueError:
        return None


def _to_timestamp(value: dt.date) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def _is_no_text(call: FunctionCall, _arguments: Sequence[Span], _result: Span) -> bool:
    return call.arguments[0].type is not T


# ------------------------------------------------------------------------------------------------------------------ SQL


def _from(*kinds: Type, result: Type) -> tuple[Signature, ...]:
    return tuple(Signature((kind,), result) for kind in kinds)


def _when(condition: str, sql: str, *, infinite: bool = False) -> Template:
    return Template(f"CASE WHEN {condition} THEN {sql} END", repeats=(0,), infinite=infinite)


def _duckdb_match(pattern: str) -> str:
    return f"regexp_full_match({{0}}, '{pattern}')"


def _spark_match(pattern: str) -> str:
    """Returns a condition that a whole text matches; Java's $ would let a line feed follow."""
    return f"{{0}} RLIKE r'(?s)^(?:{pattern})(?!.)'"


_WHOLE = "[+-]?[0-9]{{1,19}}"
_ISO_DAY = "[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}"
_DOUBLE = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_JAVA_DOUBLE = "[+-]?(?:[0-9]++[.]?[0-9]*+|[.][0-9]++)(?:[eE][+-]?[0-9]++)?"
_DUCKDB_INT = "{0} >= -9223372036854775808e0 AND {0} < 9223372036854775808e0"
_SPARK_INT = "{0} >= -9223372036854775808D AND {0} < 9223372036854775808D"

# -------------------------------------------------------------------------------------------------------------- records

CONVERSIONS = (
    Function(
        "to_int",
        "FLOAT: rounded towards zero; TEXT: an optional sign and 1 to 19 digits, else NULL; BOOL: 0 or 1",
        _from(N, F, T, B, result=N),
        compute=_to_int,
        bounds=map_monotone(math.trunc),
        present=is_inside,
        sql={N: "{0}"},
        spelled={
            "duckdb": {
                B: "CAST({0} AS BIGINT)",
                F: _when(_DUCKDB_INT, "CAST(trunc({0}) AS BIGINT)"),
                T: _when(_duckdb_match(_WHOLE), "TRY_CAST({0} AS BIGINT)"),
            },
            "postgres": {B: "CAST(CAST({0} AS integer) AS bigint)"},
            "spark": {
                B: "CAST({0} AS BIGINT)",
                F: _when(_SPARK_INT, "CAST({0} AS BIGINT)"),
                T: _when(_spark_match(_WHOLE), "try_cast({0} AS BIGINT)"),
            },
        },
    ),
    Function(
        "round_to_int",
        "the nearest whole number, halves the even one; NULL outside of INT",
        takes(F, result=N),
        compute=round,  # of Python's numbers it is to the even one
        bounds=map_monotone(round),
        present=is_inside,
        spelled={
            # The rest after the whole part is exact; a cast rounds as well, but not the same way in all versions.
            "duckdb": _when(
                _DUCKDB_INT,
                "CAST(trunc({0}) + CASE"
                " WHEN abs({0} - trunc({0})) > 0.5e0"
                " OR (abs({0} - trunc({0})) = 0.5e0 AND trunc({0}) / 2e0 <> trunc({0} / 2e0))"
                " THEN sign({0}) ELSE 0e0 END AS BIGINT)",
            ),
            "spark": _when(_SPARK_INT, "CAST(rint({0}) AS BIGINT)"),
        },
    ),
    Function(
        "to_float",
        "INT: the nearest double; TEXT: digits with at most one point and an exponent, else NULL",
        _from(N, F, T, result=F),
        compute=_to_float,
        bounds=map_monotone(Fraction),
        present=is_inside,
        rounding=Rounding.KEPT,
        sql={F: "{0}", N: cast(F)},
        spelled={
            "duckdb": {T: _when(_duckdb_match(_DOUBLE), "TRY_CAST({0} AS DOUBLE)", infinite=True)},
            "spark": {T: _when(_spark_match(_JAVA_DOUBLE), "try_cast({0} AS DOUBLE)", infinite=True)},
        },
    ),
    Function(
        "to_text",
        "INT: its decimal digits; BOOL: true or false; DATE: YYYY-MM-DD",
        _from(T, N, B, D, result=T),
        compute=_to_text,
        present=always_present,
        advice="Only whole numbers, dates and truth values become text; write CAST(x AS INT) first: {grouped}.",
        sql={T: "{0}", None: cast(T)},
    ),
    Function(
        "to_date",
        "TIMESTAMP: its day; TEXT: YYYY-MM-DD of an existing day from 0001 to 9999, else NULL",
        _from(D, S, T, result=D),
        compute=_to_date,
        bounds=map_monotone(math.floor),
        present=_is_no_text,
        advice="Only timestamps and texts become dates: {grouped}.",
        calendar=CalendarFacts(within="day", truncates="DAY"),
        sql={D: "{0}", S: cast(D)},
        spelled={
            "duckdb": {T: _when(f"{_duckdb_match(_ISO_DAY)} AND {{0}} >= '0001'", "TRY_CAST({0} AS DATE)")},
            "spark": {T: _when(f"{_spark_match(_ISO_DAY)} AND {{0}} >= '0001'", "try_cast({0} AS DATE)")},
        },
    ),
    Function(
        "to_timestamp",
        "DATE: its midnight",
        _from(D, S, result=S),
        compute=_to_timestamp,
        bounds=lambda spans: spans[0],
        present=always_present,
        sql={D: cast(S), S: "{0}"},
    ),
)
