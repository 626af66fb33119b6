"""Charts that compare: rates with guesses and bounds, success against epsilon, and use of a budget with its price.

Every chart has a title that states its finding, axes with units, and the bound or the chance it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from textwrap import shorten, wrap

from discreet.report.charts import SCHEMA, WIDTH, Spec, decades
from discreet.report.display import percent, rate

Rate = tuple[float, float, float]
"""A share with the low and the high end of its interval."""

_WRAP = 64  # letters of a title in one line
_PERCENT: Spec = {"format": ".0%", "tickCount": 5}
_NAMES = 165  # pixels to the right of a chart, for the names of its lines
_ROW, _TOP = 34, 24
_QUESTION, _LETTERS = 26, 60  # pixels of a question's row, letters of its name


def rates(found: Mapping[str, Rate], marks: Mapping[str, float], *, headline: str, across: str) -> Spec:
    """Returns a bar for each rate with its interval, then one for everything it is compared with.

    Its number at the end.

    Args:
        found: by name, from above.
        marks: chance, a prediction, a bound.
        headline: what the chart shows, as a sentence.
        across: what the rate is a share of.
    """
    measured = [_bar(name, "measured", *found_rate) for name, found_rate in found.items()]
    rows = measured + [_bar(name, "compared", value, value, value) for name, value in marks.items()]
    upright: Spec = {"field": "name", "type": "nominal", "sort": None, "axis": _bare()}
    along: Spec = {"type": "quantitative", "title": f"{across} (share)", "scale": {"domain": [0, 1]}, "axis": _PERCENT}
    layers = [
        _only("measured", {"type": "bar", "style": "surface", "height": {"band": 0.55}}, along | {"field": "value"}),
        _only("compared", {"type": "bar", "style": "compared", "height": {"band": 0.55}}, along | {"field": "value"}),
        _only("measured", {"type": "rule", "strokeWidth": 2, "style": "interval"}, along | {"field": "low"}, "high"),
        _build_label_layer(along | {"field": "high"}),
    ]
    return _build_chart(headline, rows, layers, 56 + _ROW * len(rows)) | {"encoding": {"y": upright}}


def against_epsilon(
    found: Mapping[float, Rate],
    *,
    ceiling: Sequence[tuple[float, float]],
    lines: Mapping[str, float],
    headline: str,
    title: str,
) -> Spec:
    """Returns success by epsilon with intervals, under the curve of the largest success that each epsilon allows.

    Args:
        found: by epsilon.
        ceiling: pairs of an epsilon and a bound.
        lines: rates that have no epsilon: the raw release, other defences, chance.
        headline: what the chart shows, as a sentence.
        title: what the rate is a share of.
    """
    rows = [{"x": x, "value": value, "low": low, "high": high} for x, (value, low, high) in sorted(found.items())]
    reach = [x for x, _ in ceiling] + list(found)
    along: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": "total epsilon (log scale)",
        "scale": {"type": "log", "nice": False, "domain": [min(reach), max(reach)]},
        "axis": {"values": decades(min(reach), max(reach)), "labelOverlap": "greedy", "labelFlush": False},
    }
    upright: Spec = {"type": "quantitative", "title": f"{title} (share)", "scale": {"domain": [0, 1]}, "axis": _PERCENT}
    over = {"x": along, "y": upright | {"field": "value"}}
    most = [("most possible", max(ceiling)[1], "landmark-text")] if ceiling else []
    layers: list[Spec] = [
        *_lines(lines, upright),
        *_names([*((name, value, "figure-text") for name, value in lines.items()), *most], upright),
        _ceiling(ceiling, over),
        {
            "mark": {"type": "rule", "style": "measured", "strokeWidth": 2},
            "encoding": {"x": along, "y": upright | {"field": "low"}, "y2": {"field": "high"}},
        },
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "style": "measured"}, "encoding": over},
    ]
    return _build_chart(headline, rows, layers, 300)


def curves(
    found: Mapping[str, Sequence[tuple[float, Rate]]],
    expected: Mapping[str, Sequence[tuple[float, float]]],
    *,
    headline: str,
    across: str,
    title: str,
    lines: Mapping[str, float] | None = None,
    logarithmic: bool = False,
    shares: bool = True,
    joined: bool = False,
    parts: bool = False,
) -> Spec:
    """Returns measured rates as points with intervals, one colour for each series, over the lines that theory predicts.

    Args:
        found: by series, pairs of a place and the rate there.
        expected: by series, pairs of a place and the predicted rate, for a dashed line of the same colour.
        headline: what the chart shows, as a sentence.
        across: the title of the horizontal axis, with its unit.
        title: what the rate is a share of.
        lines: rates to compare with, across the whole chart.
        logarithmic: whether places grow by factors.
        shares: whether rates are shares; else they are positive amounts that grow by factors, and `title` names them.
        joined: whether points of a series are joined by a line.
        parts: whether places are shares, too.
    """
    rows = [
        {"series": name, "x": x, "value": value, "low": low, "high": high}
        for name, points in found.items()
        for x, (value, low, high) in points
    ]
    theory = [{"series": name, "x": x, "value": value} for name, points in expected.items() for x, value in points]
    kind = {"type": "log", "nice": False} if logarithmic else {"nice": False, "zero": False}
    along: Spec = {"field": "x", "type": "quantitative", "title": across, "scale": kind}
    along["axis"] = {"tickCount": 6} | ({"format": "~%"} if parts else {})
    upright: Spec = {"type": "quantitative", "title": f"{title} (share)", "scale": {"domain": [0, 1]}, "axis": _PERCENT}
    if not shares:
        upright = {"type": "quantitative", "title": title, "scale": {"type": "log"}, "axis": {"values": _tens(rows)}}
    series = list(found)
    colour: Spec = {"field": "series", "type": "nominal", "title": None, "scale": {"domain": series}}
    colour["legend"] = {"orient": "bottom", "symbolType": "circle"}
    over = {"x": along, "y": upright | {"field": "value"}, "color": colour}
    layers: list[Spec] = [
        *_lines(lines or {}, upright),
        *_names([(name, value, "figure-text") for name, value in (lines or {}).items()], upright),
        {
            "mark": {"type": "line", "strokeDash": [5, 4], "strokeWidth": 2},
            "encoding": over,
            "data": {"values": theory},
        },
    ]
    for place, name in enumerate(series):
        layers += _series(name, over, upright, thick=1.3 * (len(series) - 1 - place), joined=joined)
    return _build_chart(headline, rows, layers, 340)


def _series(name: str, over: Spec, upright: Spec, *, thick: float, joined: bool) -> list[Spec]:
    """Returns one series; those drawn first are wider, so that a curve on another one hides it nowhere."""
    only = [{"filter": {"field": "series", "equal": name}}]
    ends = over | {"y": upright | {"field": "low"}, "y2": {"field": "high"}}
    marks: list[tuple[Spec, Spec]] = [({"type": "rule", "strokeWidth": 1.5 + thick, "opacity": 0.75}, ends)]
    if joined:
        marks.append(({"type": "line", "strokeWidth": 1.5 + thick, "opacity": 0.75}, over))
    size = (7 + thick) ** 2
    marks.append(({"type": "point", "filled": True, "size": size, "opacity": 1}, over))
    return [{"transform": only, "mark": mark, "encoding": encoding} for mark, encoding in marks]


def _tens(rows: Sequence[Spec]) -> list[float]:
    """Returns the powers of ten that an axis of amounts shows."""
    amounts = [row["value"] for row in rows] or [1.0]
    powers = range(math.floor(math.log10(min(amounts))), math.ceil(math.log10(max(amounts))) + 1)
    return [10.0**power for power in powers]


def describe_hidden_curves(found: Mapping[str, Sequence[tuple[float, Rate]]], *, shares: bool = True) -> list[str]:
    """Returns a sentence for each curve on which a later one lies, and from where on.

    Two curves lie on each other where they are less than a fiftieth of the chart's height apart, at three places in a
    row at least.

    >>> same = [(place / 4, (0.5, 0.4, 0.6)) for place in range(1, 4)]
    >>> describe_hidden_curves({"a": [(0.0, (0.9, 0.8, 1.0)), *same], "b": [(0.0, (0.1, 0.0, 0.2)), *same]})
    ['The curve of b lies on that of a from 25 % to 75 %.']
    """
    heights = {
        name: [(x, value if shares else math.log10(value)) for x, (value, _, _) in points]
        for name, points in found.items()
    }
    every = [height for points in heights.values() for _, height in points]
    apart_by = 0.02 * (1.0 if shares else (max(every) - min(every)) or 1.0)
    said = []
    for below, above in combinations(heights, 2):
        pairs = zip(heights[below], heights[above], strict=True)
        near = [(x, abs(one - other) < apart_by) for (x, one), (_, other) in pairs]
        stretch = _longest(near)
        if len(stretch) > 2:
            where = f"from {percent(round(stretch[0], 4))} to {percent(round(stretch[-1], 4))}"
            said.append(f"The curve of {above} lies on that of {below} {where}.")
    return said


def _longest(near: Sequence[tuple[float, bool]]) -> list[float]:
    """Returns the longest run of places at which something is so."""
    runs: list[list[float]] = [[]]
    for place, so in near:
        runs[-1].append(place) if so else runs.append([])
    return max(runs, key=len)


def _build_chart(headline: str, rows: list[Spec], layers: list[Spec], height: int) -> Spec:
    return {
        "$schema": SCHEMA,
        "title": {"text": wrap(headline, _WRAP), "offset": _TOP},
        "width": WIDTH,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": rows},
        "layer": layers,
    }


def _bare() -> Spec:
    return {"title": None, "grid": False, "ticks": False, "domain": False, "labelPadding": 8}


def _bar(name: str, kind: str, value: float, low: float, high: float) -> Spec:
    return {"name": name, "kind": kind, "value": value, "low": low, "high": high, "said": rate(value)}


def _only(kind: str, mark: Spec, along: Spec, end: str = "") -> Spec:
    """Returns a layer for the rows of one kind."""
    encoding = {"x": along} | ({"x2": {"field": end}} if end else {})
    return {"transform": [{"filter": {"field": "kind", "equal": kind}}], "mark": mark, "encoding": encoding}


def _build_label_layer(along: Spec) -> Spec:
    word = {"type": "text", "align": "left", "dx": 6, "style": "figure-text"}
    return {"mark": word, "encoding": {"x": along, "text": {"field": "said", "type": "nominal"}}}


def _lines(lines: Mapping[str, float], upright: Spec) -> list[Spec]:
    """Returns dotted lines across the chart."""
    rule = {"type": "rule", "strokeWidth": 1.5, "strokeDash": [2, 3], "style": "exact"}
    y = {"y": upright | {"field": "value"}}
    return [{"data": {"values": [{"value": value}]}, "mark": rule, "encoding": y} for value in lines.values()]


def _names(named: Sequence[tuple[str, float, str]], upright: Spec) -> list[Spec]:
    """Returns the names of lines with their rates, to the right of the chart, where each ends.

    Names that would meet are moved apart, so each shows its rate as well.
    """
    layers: list[Spec] = []
    for (name, value, style), place in zip(named, apart([value for _, value, _ in named]), strict=True):
        word = {"type": "text", "style": style, "align": "left", "dx": 9, "limit": _NAMES}
        layers.append(
            {
                "data": {"values": [{"value": place}]},
                "mark": word,
                "encoding": {
                    "y": upright | {"field": "value"},
                    "x": {"value": "width"},
                    "text": {"value": f"{rate(value)} {name}"},
                },
            }
        )
    return layers


def apart(values: list[float], gap: float = 0.07) -> list[float]:
    """Returns places near the values, in [0, 1], at least a gap from each other."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    places, last = [0.0] * len(values), -gap
    for index in order:
        last = places[index] = max(values[index], last + gap)
    above = 1 + gap
    for index in reversed(order):
        above = places[index] = min(places[index], above - gap)
    return places


def _ceiling(ceiling: Sequence[tuple[float, float]], over: Spec) -> Spec:
    """Returns the curve of the bound."""
    return {
        "data": {"values": [{"x": x, "value": value} for x, value in ceiling]},
        "mark": {"type": "line", "style": "landmark", "strokeWidth": 2, "strokeDash": [5, 4]},
        "encoding": over,
    }


def paid_and_used(shares: Mapping[str, float], *, headline: str) -> Spec:
    """Returns a bar for each question up to what neighbours used of its price, and what would be more than that.

    A bar that ends at the line or before it is one that passed: noise hides exactly what it was paid for. What lies
    beyond is a violation, and is drawn in the colour of one.

    Args:
        shares: by question; more than 1 is more than was paid.
        headline: what the chart shows, as a sentence.
    """
    rows = [
        {"name": f"{place}. {shorten(name, _LETTERS)}", "share": s, "kind": "kept" if s <= 1 else "broken"}
        for place, (name, s) in enumerate(shares.items(), 1)
    ]
    top = 1.25 * max([1.0, *shares.values()])
    along: Spec = {
        "type": "quantitative",
        "title": "difference of neighbours, as a share of the price",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1, *([round(top / 1.25, 2)] if top > 1.25 else [])]},
    }
    upright: Spec = {"field": "name", "type": "nominal", "sort": None, "axis": _bare()}
    bars = [
        _only(kind, {"type": "bar", "style": kind, "height": {"band": 0.6}}, along | {"field": "share"})
        for kind in ("kept", "broken")
    ]
    for bar in bars:
        bar["encoding"]["y"] = upright
    layers = [_beyond(along, top), *bars, *_all_paid(along)]
    return _build_chart(headline, rows, layers, 76 + _QUESTION * max(1, len(rows)))


def _beyond(along: Spec, top: float) -> Spec:
    return {
        "data": {"values": [{"from": 1.0, "to": top}]},
        "mark": {"type": "rect", "style": "beyond"},
        "encoding": {
            "x": along | {"field": "from"},
            "x2": {"field": "to"},
            "y": {"value": 0},
            "y2": {"value": "height"},
        },
    }


def _all_paid(along: Spec) -> list[Spec]:
    """Returns the line at all that was paid, and above it what each side of it means."""
    place, at = {"values": [{"share": 1.0}]}, {"x": along | {"field": "share"}}
    line: Spec = {"data": place, "mark": {"type": "rule", "strokeWidth": 2, "style": "limit"}, "encoding": at}
    sides = (("passed: within the price", "right", -6, "figure-text"), ("violation", "left", 6, "landmark-text"))
    words: list[Spec] = [
        {
            "data": place,
            "mark": {"type": "text", "align": side, "dx": dx, "dy": -9, "style": style},
            "encoding": at | {"y": {"value": 0}, "text": {"value": text}},
        }
        for text, side, dx, style in sides
    ]
    return [line, *words]
