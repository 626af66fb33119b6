"""Rows as CSV that neither a spreadsheet nor a terminal executes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet import check

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # spreadsheets take the wide forms for the narrow ones
_NUMBER = re.compile(r"[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?")


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    r"""Returns rows as CSV that neither a spreadsheet nor a terminal executes; numbers are numbers.

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
    if isinstance(value, float):
        return value + 0.0  # a zero has no sign
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    text = check.spelled_out(value)
    return f"'{text}" if _FORMULA.match(text) else text
