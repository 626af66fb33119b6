"""An answer's records as a table and as charts.

Records are rows as dictionaries. A released number, day or moment `x` comes with `x_low` and `x_high`; everything else
is a key. All that is shown is a function of them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from textwrap import wrap
from typing import Any

from discreet.dataclass import dataclass
from discreet.report.charts import Point, Spec, along_time, captioned, dots, panels
from discreet.report.display import Number, format_measured, on_a_scale, percent, plain
from discreet.report.html import NOTHING, Html, element

Record = Mapping[str, Any]

_LOW, _HIGH = "_low", "_high"
_WIDTH, _HEIGHT = 96, 12
_WRAP = 64  # letters of a remark in one line


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """The columns of an answer: which are keys, and which are released numbers.

    >>> AnswerShape.of(["ward", "n", "n_low", "n_high"])
    AnswerShape(names=('ward', 'n'), numbers=('n',))
    """

    names: tuple[str, ...]
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, columns: Sequence[str]) -> AnswerShape:
        """Returns the shape of an answer with these columns."""
        numbers = tuple(name for name in columns if name + _LOW in columns and name + _HIGH in columns)
        ends = {name + end for name in numbers for end in (_LOW, _HIGH)}
        return cls(tuple(name for name in columns if name not in ends), numbers)

    def label(self, record: Record) -> str:
        """Returns the keys of a row, as one text."""
        return " · ".join(plain(record[name]) for name in self.names if name not in self.numbers)


def shape(records: Sequence[Record]) -> AnswerShape:
    """Returns the shape of records; nothing at all if there are none."""
    return AnswerShape.of(tuple(records[0]) if records else ())


def points(records: Sequence[Record], name: str) -> list[Point]:
    """Returns one released number of every row.

    It is called by the row's keys, or by its own name where there are none.
    """
    found = shape(records)
    return [
        Point(label=found.label(record) or name, value=value, low=low, high=high)
        for record in records
        for value, low, high in [_scale_parts(record, name)]
    ]


COVERED = {"noise": "noise only", "population": "noise and the sampling of the population"}
"""What intervals cover, in words."""


def caption(confidence: Fraction, interval: str) -> str:
    """Returns what is written below a chart of released numbers.

    >>> caption(Fraction(19, 20), "noise")
    '95 % intervals cover noise only.'
    """
    return f"{percent(confidence)} intervals cover {COVERED[interval]}."


def spec(records: Sequence[Record], *, remarks: Mapping[str, str] | None = None, caption: str = "") -> Spec:
    """Returns a chart of all released numbers with their intervals.

    One panel, with a scale of its own, for each column.

    Args:
        records: the rows.
        remarks: on columns, each written above its panel, such as what was left out of it.
        caption: what is written below.
    """
    drawn = [(name, dots(points(records, name), title=name)) for name in shape(records).numbers]
    charts = [
        (along_time(chart) if _is_time(records, name) else chart) | _remark((remarks or {}).get(name, ""))
        for name, chart in drawn
    ]
    return captioned(panels(charts or [dots([], title="no rows")]), caption)


def _remark(text: str) -> Spec:
    return {"title": {"text": wrap(text, _WRAP), "fontWeight": "normal", "fontSize": 12}} if text else {}


def table(records: Sequence[Record], *, caption: str) -> Html:
    """Returns the rows, each number with its interval in one cell, followed by a small error bar."""
    found = shape(records)
    if not records:
        return element("p", f"{caption}: no group is shown.")
    spans = {name: _span(records, name) for name in found.numbers}
    head = element("tr", *(_heading(name, name in found.numbers) for name in found.names))
    body = (element("tr", *(_cell(record, name, spans) for name in found.names)) for record in records)
    return element("table", element("caption", caption), element("thead", head), element("tbody", *body))


def error_bars(records: Sequence[Record], name: str) -> list[Html]:
    """Returns the error bar of a released number in every row, on the scale of all of them."""
    span = _span(records, name)
    return [error_bar(*_scale_parts(record, name), span=span) for record in records]


def error_bar(value: Number | None, low: Number, high: Number, *, span: tuple[float, float]) -> Html:
    """Returns a dot and its interval on a line, as a picture of a few words, in the colour of the text around it.

    >>> error_bar(5, 0, 10, span=(0, 10)).count("<circle")
    1
    """
    track = _line(2, _WIDTH - 2, "0.2", "1")
    drawn = NOTHING if value is None else _mark(value, low, high, span)
    return element(
        "svg",
        track,
        drawn,
        width=str(_WIDTH),
        height=str(_HEIGHT),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        aria_hidden="true",
    )


def _mark(value: Number, low: Number, high: Number, span: tuple[float, float]) -> Html:
    left, middle, right = (_place(part, span) for part in (low, value, high))
    dot = element("circle", cx=f"{middle:.1f}", cy=str(_HEIGHT // 2), r="3", fill="currentColor")
    return Html(_line(left, right, "0.65", "2") + dot)


def _line(start: float, end: float, opacity: str, width: str) -> Html:
    ends = {"x1": f"{start:.1f}", "x2": f"{end:.1f}", "y1": str(_HEIGHT // 2), "y2": str(_HEIGHT // 2)}
    return element("line", **ends, stroke="currentColor", stroke_opacity=opacity, stroke_width=width)


def _place(part: Number, span: tuple[float, float]) -> float:
    """Returns the place of a number on the line; what lies outside, and infinity, is at its end."""
    low, high = span
    if math.isfinite(part) and high > low:
        share = (min(max(part, low), high) - low) / (high - low)
    else:
        share = 0.5 + math.copysign(0.5, part) * math.isinf(part)
    return 4 + (_WIDTH - 8) * share


def _span(records: Sequence[Record], name: str) -> tuple[float, float]:
    """Returns the range of everything finite in a column."""
    parts = [part for record in records for part in _scale_parts(record, name) if part is not None]
    finite = [float(part) for part in parts if math.isfinite(part)] or [0.0]
    return min(finite), max(finite)


def _parts(record: Record, name: str) -> tuple[Any, Any, Any]:
    return record[name], record[name + _LOW], record[name + _HIGH]


def _scale_parts(record: Record, name: str) -> tuple[Number | None, Number, Number]:
    """Returns a released value and its interval as numbers, days and moments in milliseconds."""
    value, low, high = _parts(record, name)
    return None if value is None else on_a_scale(value), on_a_scale(low), on_a_scale(high)


def _is_time(records: Sequence[Record], name: str) -> bool:
    return any(isinstance(part, dt.date) for record in records for part in _parts(record, name))


def _heading(name: str, is_number: bool) -> Html:
    return element("th", plain(name), scope="col", style=f"text-align:{'right' if is_number else 'left'}")


def cell(record: Record, name: str) -> str:
    """Returns a key, or a released number with its interval, as text.

    >>> cell({"n": 12, "n_low": 9, "n_high": 15}, "n")
    '12 (9 to 15)'
    """
    return format_measured(*_parts(record, name)) if name + _LOW in record else plain(record[name])


def _cell(record: Record, name: str, spans: Mapping[str, tuple[float, float]]) -> Html:
    if name not in spans:
        return element("th", plain(record[name]), scope="row", style="text-align:left;font-weight:normal")
    picture = error_bar(*_scale_parts(record, name), span=spans[name])
    return element(
        "td", format_measured(*_parts(record, name)), " ", picture, style="text-align:right;white-space:nowrap"
    )
