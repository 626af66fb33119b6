"""Values as text for a terminal, a spreadsheet, or another program."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.report.display import printable

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # spreadsheets take the wide forms for the narrow ones
_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    r"""Rows as CSV that neither a spreadsheet nor a terminal executes; numbers are numbers.

    A text that a spreadsheet would take for a formula, because it begins with = + - @, gets an apostrophe before it;
    control characters are spelled out. JSON has all texts as they are.

    >>> print(csv_text(["k", "n"], [{"k": "=1+1", "n": -3.5}, {"k": "-7", "n": 2}, {"k": "a\nb", "n": None}]), end="")
    k,n
    '=1+1,-3.5
    -7,2
    a\nb,
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name) for name in columns])
    writer.writerows([_cell(record[name]) for name in columns] for record in records)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    text = check.spelled_out(value)
    return f"'{text}" if _FORMULA.match(text) else text


def json_text(fields: Any) -> str:
    r"""Plain values as JSON in which every control character is escaped.

    >>> json_text("\x7f\x1b")
    '"\\u007f\\u001b"'
    """
    return json.dumps(fields, indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def number(value: float | Fraction) -> str:
    """A number of at most six digits after the point, whole ones in full.

    >>> number(12345), number(0.125), number(float("inf")), number(1234567.891)
    ('12,345', '0.125', 'inf', '1,234,567.891')
    """
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    size = abs(float(value))
    if size and not 1e-4 <= size < 1e12:
        return f"{float(value):.4g}"
    places = 3 if size >= 1 else 6
    return f"{float(value):,.{places}f}".rstrip("0").rstrip(".")


def shown(value: object) -> str:
    """Any value of an answer."""
    if value is None:
        return "NULL"
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        return number(value)
    return printable(str(value))
