"""Charts that compare: rates beside guesses and bounds, success against epsilon, and use of a budget beside its price.

Every chart has a title that states its finding, axes with units, and the bound or the chance it is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten, wrap

from discreet.report.charts import SCHEMA, WIDTH, Spec
from discreet.report.display import rate

Rate = tuple[float, float, float]
"""A share with the low and the high end of its interval."""

_WRAP = 64  # letters of a title in one line
_PERCENT: Spec = {"format": ".0%", "tickCount": 5}
_NAMES = 130  # pixels beside a chart, for the names of its lines
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
        _written(along | {"field": "high"}),
    ]
    return _titled(headline, rows, layers, _ROW * len(rows)) | {"encoding": {"y": upright}}


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
    scale: Spec = {"type": "log", "nice": False, "domain": [min(reach), max(reach)]}
    along: Spec = {
        "field": "x",
        "type": "quantitative",
        "title": "epsilon of the whole release (log scale)",
        "scale": scale,
    }
    upright: Spec = {"type": "quantitative", "title": f"{title} (share)", "scale": {"domain": [0, 1]}, "axis": _PERCENT}
    over = {"x": along, "y": upright | {"field": "value"}}
    layers: list[Spec] = [
        *_lines(lines, upright),
        _ceiling(ceiling, over),
        {
            "mark": {"type": "rule", "style": "measured", "strokeWidth": 2},
            "encoding": {"x": along, "y": upright | {"field": "low"}, "y2": {"field": "high"}},
        },
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1, "style": "measured"}, "encoding": over},
    ]
    return _titled(headline, rows, layers, 240)


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
    """
    rows = [
        {"series": name, "x": x, "value": value, "low": low, "high": high}
        for name, points in found.items()
        for x, (value, low, high) in points
    ]
    theory = [{"series": name, "x": x, "value": value} for name, points in expected.items() for x, value in points]
    kind = {"type": "log", "nice": False} if logarithmic else {"nice": False, "zero": False}
    along: Spec = {"field": "x", "type": "quantitative", "title": across, "scale": kind}
    upright: Spec = {"type": "quantitative", "title": f"{title} (share)", "scale": {"domain": [0, 1]}, "axis": _PERCENT}
    if not shares:
        upright = {"type": "quantitative", "title": title, "scale": {"type": "log"}}
    colour: Spec = {"field": "series", "type": "nominal", "title": None, "sort": None, "legend": {"orient": "bottom"}}
    over = {"x": along, "y": upright | {"field": "value"}, "color": colour}
    layers: list[Spec] = [
        *_lines(lines or {}, upright),
        {
            "mark": {"type": "line", "strokeDash": [5, 4], "strokeWidth": 2},
            "encoding": over,
            "data": {"values": theory},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": over | {"y": upright | {"field": "low"}, "y2": {"field": "high"}},
        },
        {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1}, "encoding": over},
    ]
    if joined:
        layers.append({"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": over})
    return _titled(headline, rows, layers, 240)


def _titled(headline: str, rows: list[Spec], layers: list[Spec], height: int) -> Spec:
    return {
        "$schema": SCHEMA,
        "title": {"text": wrap(headline, _WRAP), "offset": _TOP},
        "width": WIDTH,
        "height": height,
        "autosize": {"type": "pad"},
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


def _written(along: Spec) -> Spec:
    word = {"type": "text", "align": "left", "dx": 6, "style": "figure-text"}
    return {"mark": word, "encoding": {"x": along, "text": {"field": "said", "type": "nominal"}}}


def _lines(lines: Mapping[str, float], upright: Spec) -> list[Spec]:
    """Returns dotted lines across the chart, named beside it; names that would meet are moved apart."""
    layers: list[Spec] = []
    for (name, value), place in zip(lines.items(), apart(list(lines.values())), strict=True):
        rule = {"type": "rule", "strokeWidth": 1.5, "strokeDash": [2, 3], "style": "exact"}
        word = {"type": "text", "style": "figure-text", "align": "left", "dx": 6, "limit": _NAMES}
        y = {"y": upright | {"field": "value"}}
        layers.append({"data": {"values": [{"value": value}]}, "mark": rule, "encoding": y})
        layers.append(
            {
                "data": {"values": [{"value": place}]},
                "mark": word,
                "encoding": y | {"x": {"value": "width"}, "text": {"value": name}},
            }
        )
    return layers


def apart(values: list[float], gap: float = 0.065) -> list[float]:
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
    """Returns the bound; its name ends where the curve is half way up, left of it, where nothing else is."""
    values = [{"x": x, "value": value} for x, value in ceiling]
    half = (values[0]["value"] + values[-1]["value"]) / 2 if values else 0.5
    middle = min(values, key=lambda row: abs(row["value"] - half), default={"x": 1.0, "value": 1.0})
    line: Spec = {
        "mark": {"type": "line", "style": "landmark", "strokeWidth": 2, "strokeDash": [5, 4]},
        "encoding": over,
    }
    word: Spec = {
        "data": {"values": [middle]},
        "mark": {"type": "text", "style": "landmark-text", "align": "right", "dx": -8, "dy": -4},
        "encoding": over | {"text": {"value": "most that epsilon allows"}},
    }
    return {"data": {"values": values}, "layer": [line, word]}


def paid_and_used(shares: Mapping[str, float], *, headline: str) -> Spec:
    """Returns a bar for each question, and a line at all that was paid.

    Args:
        shares: by question; more than 1 is more than was paid.
        headline: what the chart shows, as a sentence.
    """
    rows = [
        {"name": f"{place}. {shorten(name, _LETTERS)}", "share": s} for place, (name, s) in enumerate(shares.items(), 1)
    ]
    top = max(1.0, *shares.values()) if shares else 1.0
    along: Spec = {
        "type": "quantitative",
        "title": "largest difference of neighbours, as a part of what was paid",
        "scale": {"domain": [0, top]},
        "axis": {"format": ".0%", "tickCount": 5},
    }
    upright: Spec = {
        "field": "name",
        "type": "nominal",
        "sort": None,
        "axis": {"title": None, "grid": False, "ticks": False, "domain": False, "labelLimit": 420, "labelPadding": 8},
    }
    bar: Spec = {
        "mark": {"type": "bar", "style": "surface", "height": {"band": 0.5}},
        "encoding": {"y": upright, "x": along | {"field": "share"}},
    }
    line: Spec = {
        "data": {"values": [{"share": 1.0}]},
        "mark": {"type": "rule", "strokeWidth": 2, "strokeDash": [5, 4], "style": "landmark"},
        "encoding": {"x": along | {"field": "share"}},
    }
    named: Spec = {
        "data": {"values": [{"share": 1.0}]},
        "mark": {"type": "text", "align": "right", "dx": -4, "dy": -8, "style": "landmark-text"},
        "encoding": {"x": along | {"field": "share"}, "y": {"value": 0}, "text": {"value": "all that was paid"}},
    }
    return {
        "$schema": SCHEMA,
        "title": {"text": wrap(headline, _WRAP), "offset": 24},
        "width": WIDTH,
        "height": _QUESTION * max(1, len(rows)),
        "autosize": {"type": "pad"},
        "data": {"values": rows},
        "layer": [bar, line, named],
    }
