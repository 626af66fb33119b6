"""Charts of synthetic tables: a column's distribution with what was measured, and distances with noise."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.dataclass import dataclass
from discreet.report.charts import SCHEMA, WIDTH, Spec

_LINE, _PAIR = 21, 34  # pixels of a value's row, and of a pair's
_FRAME = 54


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBar:
    """The share of a value, or of several together, drawn as a bar, and what was measured of it.

    Attributes:
        label: what it is called.
        share: of all rows.
        measured: a noisy count as such a share, drawn as a tick; None if it was not measured.
        low: of the interval that holds the true one.
        high: its other end.
    """

    label: str
    share: float
    measured: float | None
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """A distance, drawn as a dot.

    Attributes:
        label: between what.
        distance: as it was found.
        noise: the part that noise explains, drawn as a bar.
        low: of the interval that holds the true one.
        high: its other end.
    """

    label: str
    distance: float
    noise: float
    low: float
    high: float


def distribution(shares: Sequence[ShareBar]) -> Spec:
    """Returns a bar for each value, and a tick with its interval for what was measured of it.

    >>> chart = distribution([ShareBar(label="A", share=0.5, measured=0.6, low=0.4, high=0.8)])
    >>> [layer["mark"]["type"] for layer in chart["layer"]]
    ['bar', 'rule', 'tick']
    """
    rows = [
        {"label": s.label, "share": s.share, "measured": s.measured}
        | ({"low": None, "high": None} if s.measured is None else {"low": s.low, "high": s.high})
        for s in shares
    ]
    top = max([0.01, *(s.share for s in shares), *(s.high for s in shares if s.measured is not None)])
    least = min([0.0, *(s.measured for s in shares if s.measured is not None)])  # noise makes counts negative
    along = _along("share of rows", 1.04 * top, 1.04 * least)
    layers = [
        _layer({"type": "bar", "style": "surface", "height": {"band": 0.66}}, along, "share"),
        _layer({"type": "rule", "strokeWidth": 1.5, "style": "interval"}, along, "low", "high"),
        _layer(
            {"type": "tick", "orient": "vertical", "thickness": 2, "size": 9, "style": "interval"}, along, "measured"
        ),
    ]
    return _chart(rows, layers, _LINE)


def distances(found: Sequence[Distance]) -> Spec:
    """Returns for each pair the distance as a dot, the part that noise explains as a bar, and its interval."""
    rows = [{"label": d.label, "distance": d.distance, "noise": d.noise, "low": d.low, "high": d.high} for d in found]
    along = _along("share of rows in the wrong cell (total variation)", 1.04 * max([0.01, *(d.high for d in found)]))
    layers = [
        _layer({"type": "bar", "style": "compared", "height": {"band": 0.6}}, along, "noise"),
        _layer({"type": "rule", "strokeWidth": 2, "style": "interval"}, along, "low", "high"),
        _layer(
            {"type": "point", "shape": "circle", "filled": True, "opacity": 1, "size": 70, "style": "measured"},
            along,
            "distance",
        ),
    ]
    return _chart(rows, layers, _PAIR)


def _along(title: str, top: float, least: float = 0.0) -> Spec:
    scale = {"domain": [least, top], "nice": False}
    return {"type": "quantitative", "title": title, "scale": scale, "axis": {"format": "~%", "tickCount": 4}}


def _layer(mark: Spec, along: Spec, field: str, end: str = "") -> Spec:
    encoding = {"x": along | {"field": field}} | ({"x2": {"field": end}} if end else {})
    return {"mark": mark, "encoding": encoding}


def _chart(rows: list[Spec], layers: list[Spec], height: int) -> Spec:
    axis = {"title": None, "grid": False, "ticks": False, "domain": False, "labelPadding": 8}
    return {
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": _FRAME + height * max(1, len(rows)),
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": rows},
        "layer": layers,
        "encoding": {"y": {"field": "label", "type": "nominal", "sort": None, "axis": axis}},
    }
