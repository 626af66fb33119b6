"""Charts as plain Vega-Lite: dictionaries in, dictionaries out, nothing to install.

Every chart takes released numbers with their intervals. An interval without an end runs to the edge of the chart and
ends in an arrow there; a number without a value keeps its place and stays empty. Texts are data, never names of fields
or expressions, so that no key of a group can be taken for a part of the chart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from textwrap import wrap
from typing import Any

from discreet.dataclass import dataclass
from discreet.report.display import Number

Spec = dict[str, Any]
"""A chart: JSON that Vega-Lite understands."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH = 470
_PANEL = 340  # labels stand outside of a panel
_ROW, _CLOUD = 30, 48
_MARGIN = 0.04  # of the range, on both sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A released number with its interval, and what it is called."""

    label: str
    value: Number | None
    low: Number
    high: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A number on a curve, with the band around it."""

    x: float
    value: float
    low: float
    high: float


def dots(points: Sequence[Point], *, title: str, exact: Mapping[str, float] | None = None) -> Spec:
    """Returns a dot with its interval for each number, one below the other.

    Args:
        points: in order, from above.
        title: of the axis.
        exact: by label, what a hollow diamond shows besides.

    >>> chart = dots([Point(label="A", value=3, low=1, high=math.inf)], title="visits")
    >>> [layer["mark"]["type"] for layer in chart["layer"]]
    ['rule', 'point', 'point']
    """
    span = _span(points, (exact or {}).values())
    marks = [_intervals(span, title), *_arrows(points, span, title), _layer("value", _DOT, span, title)]
    return _rows(points, span, marks + _diamonds(span, title, exact), exact or {})


def bars(points: Sequence[Point], *, title: str, exact: Mapping[str, float] | None = None) -> Spec:
    """Returns a bar from zero for each number, with its interval as an error bar; for counts and sums."""
    span = _span(points, [0, *(exact or {}).values()])
    surface = _layer("value", {"type": "bar", "style": "surface", "height": {"band": 0.62}}, span, title)
    marks = [surface, _intervals(span, title), *_arrows(points, span, title), _layer("value", _TICK, span, title)]
    return _rows(points, span, marks + _diamonds(span, title, exact), exact or {})


def lengths(values: Mapping[str, float], *, title: str, digits: str = ",.2f") -> Spec:
    """Returns a plain bar for each number, which is written at its end."""
    points = [Point(label=label, value=value, low=value, high=value) for label, value in values.items()]
    low, high = _span(points, [0])
    span = (low, high + 0.12 * (high - low))  # room for the number
    surface = _layer("value", {"type": "bar", "style": "surface", "height": {"band": 0.62}}, span, title)
    written = _layer("value", {"type": "text", "align": "left", "dx": 5, "style": "figure-text"}, span, title)
    written["encoding"]["text"] = {"field": "value", "type": "quantitative", "format": digits}
    return _rows(points, span, [surface, written], {})


def curve(readings: Sequence[CurvePoint], *, across: str, title: str, logarithmic: bool = False) -> Spec:
    """Returns a line through numbers, and the band of their intervals."""
    along: Spec = {"field": "x", "type": "quantitative", "title": across, "scale": {"nice": False, "zero": False}}
    if logarithmic:
        reach = [reading.x for reading in readings]
        along |= {"scale": {"type": "log", "nice": False}, "axis": {"values": decades(min(reach), max(reach))}}
    upright: Spec = {"type": "quantitative", "title": title, "scale": {"zero": False}}
    band = {"y": upright | {"field": "low"}, "y2": {"field": "high"}}
    layers: list[Spec] = [
        {"mark": {"type": "area", "style": "band"}, "encoding": band},
        {"mark": {"type": "line", "style": "curve", "strokeWidth": 2}, "encoding": {"y": upright | {"field": "value"}}},
    ]
    values = [{"x": r.x, "value": r.value, "low": r.low, "high": r.high} for r in readings]
    return _chart(values, layers, height=220) | {"encoding": {"x": along}}


def clouds(groups: Mapping[str, Sequence[float]], *, title: str, landmarks: Mapping[str, float]) -> Spec:
    """Returns many outcomes for each group as a cloud of ticks, the middle nine tenths as a bar, landmarks as lines."""
    points = [_middle(label, outcomes) for label, outcomes in groups.items()]
    everything = [outcome for outcomes in groups.values() for outcome in outcomes]
    span = _span(points, [*everything, *landmarks.values()])
    ticks = _layer("value", {"type": "tick", "style": "cloud", "thickness": 2, "height": {"band": 0.5}}, span, title)
    ticks["data"] = {"values": [{"label": label, "value": value} for label, many in groups.items() for value in many]}
    chart = _rows(points, span, [ticks, _intervals(span, title), *_landmarks(landmarks, span, title)], {})
    return chart | {"height": 70 + _CLOUD * len(groups)}


def along_time(chart: Spec) -> Spec:
    """Returns a chart whose numbers are milliseconds from 1970 on, with an axis of days."""
    layers = []
    for layer in chart["layer"]:
        along = layer["encoding"]["x"]
        timed = along | {"type": "temporal", "scale": along["scale"] | {"type": "utc"}}
        layers.append(layer | {"encoding": layer["encoding"] | {"x": timed}})
    return chart | {"layer": layers}


def panels(charts: Sequence[Spec]) -> Spec:
    """Returns several charts, one below the other, each with a scale of its own."""
    if len(charts) == 1:
        return charts[0]
    inner = [{name: part for name, part in chart.items() if name not in ("$schema", "autosize")} for chart in charts]
    return {"$schema": SCHEMA, "vconcat": [chart | {"width": _PANEL} for chart in inner]}


def captioned(chart: Spec, text: str) -> Spec:
    """Returns a chart with a sentence below it; in one that has a title, the sentence stands under the title."""
    if not text:
        return chart
    if "title" in chart:
        return chart | {"title": chart["title"] | {"subtitle": text}}
    return chart | {
        "title": {"text": text, "orient": "bottom", "anchor": "start", "fontWeight": "normal", "fontSize": 11}
    }


def single(chart: Spec) -> list[Spec]:
    """Returns the charts that stand one below the other in one; a chart that is alone is a list of one."""
    parts = chart.get("vconcat")
    return [chart] if parts is None else [{"$schema": SCHEMA, "autosize": _FIT} | part for part in parts]


def at_width(chart: Spec, width: int) -> Spec:
    """Returns a chart of so many pixels, labels and names of lines included; it must be a single one.

    Titles of axes are broken into lines that fit.
    """
    return fitting(chart | {"width": width, "autosize": _FIT})


def fitting(chart: Spec) -> Spec:
    """Returns a chart of the width it has, the titles of its axes broken into lines that fit; panels likewise.

    >>> drawn = fitting(curve([CurvePoint(x=1, value=1, low=0, high=2)], across="a word " * 9, title="rows"))
    >>> len(drawn["encoding"]["x"]["title"])
    2
    """
    if "vconcat" in chart:
        return chart | {"vconcat": [fitting(part) for part in chart["vconcat"]]}
    width = chart.get("width")
    broken: Spec = _break_titles(chart, {"x": width // _OF_X, "y": width // _OF_Y}) if isinstance(width, int) else chart
    return broken


_OF_X, _OF_Y = 12, 8  # pixels of a chart for each letter of a title: 6.5, and the space around the plot


def _break_titles(part: Any, letters: Mapping[str, int]) -> Any:
    """Returns the same with the titles of its axes in several lines, if they are longer."""
    if isinstance(part, list):
        return [_break_titles(one, letters) for one in part]
    if not isinstance(part, dict):
        return part
    made = {name: _break_titles(one, letters) for name, one in part.items() if name != "values"}
    for axis in letters.keys() & made.keys():
        title = made[axis].get("title") if isinstance(made[axis], dict) else None
        if isinstance(title, str) and len(title) > letters[axis]:
            made[axis] = made[axis] | {"title": wrap(title, letters[axis])}
    return made | ({"values": part["values"]} if "values" in part else {})


_FIT: Spec = {"type": "fit", "contains": "padding"}
_DOT: Spec = {"type": "point", "shape": "circle", "filled": True, "opacity": 1, "size": 70, "style": "measured"}
_TICK: Spec = {"type": "tick", "orient": "vertical", "thickness": 3, "height": {"band": 0.62}, "style": "measured"}


def _chart(values: list[Spec], layers: list[Spec], height: int) -> Spec:
    return {
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": height,
        "autosize": _FIT,
        "data": {"values": values},
        "layer": layers,
    }


def _rows(points: Sequence[Point], span: tuple[float, float], layers: list[Spec], exact: Mapping[str, float]) -> Spec:
    """Returns a chart with one row for each number."""
    labels = _distinct([point.label for point in points])
    values = [_row(point, label, span, exact.get(point.label)) for point, label in zip(points, labels, strict=True)]
    chart = _chart(values, layers, height=54 + _ROW * max(1, len(points)))
    axis = {"title": None, "grid": False, "ticks": False, "domain": False, "labelPadding": 8}
    chart["encoding"] = {"y": {"field": "label", "type": "nominal", "scale": {"domain": labels}, "axis": axis}}
    return chart


def _row(point: Point, label: str, span: tuple[float, float], exact: float | None) -> Spec:
    empty = point.value is None
    row: Spec = {"label": label, "value": _json(point.value), "exact": exact}
    row |= {"low": None, "high": None} if empty else {"low": max(point.low, span[0]), "high": min(point.high, span[1])}
    return row | {
        "open_low": None if empty or math.isfinite(point.low) else span[0],
        "open_high": None if empty or math.isfinite(point.high) else span[1],
    }


def _json(value: Number | None) -> Number | None:
    """Returns a number for JSON; None for infinities and NaN, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else value


def _distinct(labels: Iterable[str]) -> list[str]:
    """Returns the labels, repeated ones numbered: two rows never share a place."""
    found: dict[str, None] = {}
    for label in labels:
        tried = (label if number == 1 else f"{label} ({number})" for number in count(1))
        found[next(name for name in tried if name not in found)] = None
    return list(found)


def _span(points: Sequence[Point], more: Iterable[float] = ()) -> tuple[float, float]:
    """Returns the range of everything finite, with a margin; from 0 to 1 if there is nothing."""
    parts = [part for p in points if p.value is not None for part in (p.value, p.low, p.high)]
    finite = [float(part) for part in (*parts, *more) if math.isfinite(part)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if low == high:
        low, high = low - abs(low) / 2, high + (abs(high) / 2 or 1.0)
    margin = _MARGIN * (high - low)
    return (low - margin if low else 0.0, high + margin if high else 0.0)


def decades(low: float, high: float) -> list[float]:
    """Returns 1, 2 and 5 times the powers of ten between two numbers.

    >>> decades(0.1, 3)
    [0.1, 0.2, 0.5, 1.0, 2.0]
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [tick for power in powers for tick in (10.0**power, 2 * 10.0**power, 5 * 10.0**power) if low <= tick <= high]


def _layer(field: str, mark: Spec, span: tuple[float, float], title: str) -> Spec:
    scale = {"domain": list(span), "nice": False, "zero": False}
    along = {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 5}}
    return {"mark": mark, "encoding": {"x": along}}


def _intervals(span: tuple[float, float], title: str) -> Spec:
    layer = _layer("low", {"type": "rule", "strokeWidth": 2, "style": "interval"}, span, title)
    layer["encoding"]["x2"] = {"field": "high"}
    return layer


def _arrows(points: Sequence[Point], span: tuple[float, float], title: str) -> list[Spec]:
    """Returns an arrow at the edge for intervals without an end, if there are any."""
    ends = [
        ("open_low", [p.low for p in points], "triangle-left"),
        ("open_high", [p.high for p in points], "triangle-right"),
    ]
    return [
        _layer(
            field,
            {"type": "point", "shape": shape, "filled": True, "opacity": 1, "size": 50, "style": "interval"},
            span,
            title,
        )
        for field, found, shape in ends
        if any(math.isinf(end) for end in found)
    ]


def _diamonds(span: tuple[float, float], title: str, exact: Mapping[str, float] | None) -> list[Spec]:
    mark = {"type": "point", "shape": "diamond", "filled": False, "size": 90, "strokeWidth": 2, "style": "exact"}
    return [_layer("exact", mark, span, title)] if exact else []


def _landmarks(landmarks: Mapping[str, float], span: tuple[float, float], title: str) -> list[Spec]:
    """Returns dashed lines across all rows, with their names above."""
    return [
        layer | {"data": {"values": [{"value": value}]}}
        for name, value in landmarks.items()
        for layer in _landmark(name, span, title, before=value > sum(span) / 2)
    ]


def _landmark(name: str, span: tuple[float, float], title: str, *, before: bool) -> list[Spec]:
    dashed = {"type": "rule", "strokeWidth": 2, "strokeDash": [5, 4], "style": "landmark"}
    side = {"align": "right", "dx": 3} if before else {"align": "left", "dx": -3}
    above = {"type": "text", "baseline": "bottom", "style": "landmark-text"}
    line, word = _layer("value", dashed, span, title), _layer("value", above | side, span, title)
    line["encoding"] |= {"y": {"value": 0}, "y2": {"value": "height"}}
    word["encoding"] |= {"y": {"value": -4}, "text": {"value": name}}
    return [line, word]


def _middle(label: str, outcomes: Sequence[float]) -> Point:
    ordered = sorted(outcomes)
    cut = len(ordered) // 20
    return Point(label=label, value=ordered[len(ordered) // 2], low=ordered[cut], high=ordered[-1 - cut])
