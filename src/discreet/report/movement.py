"""A chart of budgets: of what was paid, how much neighbouring tables used up."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten, wrap

from discreet.report.charts import SCHEMA, WIDTH, Spec

_ROW, _WRAP, _LETTERS = 26, 64, 60


def paid_and_used(shares: Mapping[str, float], *, headline: str) -> Spec:
    """A bar for each question, and a line at all that was paid.

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
        "height": _ROW * max(1, len(rows)),
        "autosize": {"type": "pad"},
        "data": {"values": rows},
        "layer": [bar, line, named],
    }
