"""Charts over time: what remains of budgets, and when a straight line reaches zero."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from discreet.dataclass import dataclass
from discreet.report.charts import SCHEMA, WIDTH, Spec

Moment = dt.datetime
MOST_LINES = 6
"""Lines of one chart; there are no more colours that are told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnDown:
    """The share of one budget that remains over time.

    Attributes:
        steps: pairs of a moment and the share that is left from then on, in order.
        used_up: when nothing is left at the pace so far; None if that is unknown.
    """

    steps: Sequence[tuple[Moment, float]]
    used_up: Moment | None = None


def burn_down(budgets: Mapping[str, BurnDown], *, now: Moment, headline: str) -> Spec:
    """Returns what remains of several budgets over time, as shares of each, with forecasts as dashed lines.

    Args:
        budgets: by name; the first ones are drawn, as many as a chart holds.
        now: until when steps are known; forecasts begin there.
        headline: what the chart shows, as a sentence.
    """
    shown = dict(list(budgets.items())[:MOST_LINES])
    rows = [
        {"series": name, "time": _text(time), "left": left}
        for name, budget in shown.items()
        for time, left in [*budget.steps, (now, budget.steps[-1][1])]
    ]
    end = _horizon(shown, now)
    ahead = [
        {"series": name, "time": _text(time), "left": left}
        for name, budget in shown.items()
        for time, left in _ahead(budget, now, end)
    ]
    share: Spec = {"domain": [0, 1], "nice": False}
    upright: Spec = {"field": "left", "type": "quantitative", "title": "remaining budget or cap", "scale": share}
    upright["axis"] = {"format": ".0%", "tickCount": 5}
    along: Spec = {"field": "time", "type": "temporal", "title": None, "scale": {"type": "utc"}}
    along["axis"] = {"tickCount": 5, "labelOverlap": "greedy", "labelFlush": False}
    colour: Spec = {"field": "series", "type": "nominal", "title": None, "scale": {"domain": list(shown)}}
    colour["legend"] = {"orient": "bottom", "symbolType": "stroke"} if len(shown) > 1 else None
    over = {"x": along, "y": upright, "color": colour}
    return {
        "$schema": SCHEMA,
        "title": {"text": headline},
        "width": WIDTH,
        "height": 300,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": rows},
        "layer": [*_lines(over, ahead), *_today(along, now)],
    }


def _lines(over: Spec, ahead: list[Spec]) -> list[Spec]:
    steps = {"type": "line", "interpolate": "step-after", "strokeWidth": 2}
    dashed = {"type": "line", "strokeDash": [5, 4], "strokeWidth": 2}
    known = [{"mark": steps, "encoding": over}]
    if not ahead:
        return known  # a layer without values has no extent, and Vega warns about it
    return [*known, {"data": {"values": ahead}, "mark": dashed, "encoding": over}]


def _today(along: Spec, now: Moment) -> list[Spec]:
    """Returns a line at the end of what is known."""
    rule = {"type": "rule", "strokeDash": [2, 3], "style": "limit"}
    return [{"data": {"values": [{"time": _text(now)}]}, "mark": rule, "encoding": {"x": along}}]


def _horizon(budgets: Mapping[str, BurnDown], now: Moment) -> Moment:
    """Returns until when forecasts are drawn: the last day of any, but no further than as long again as was seen."""
    first = min((budget.steps[0][0] for budget in budgets.values()), default=now)
    days = [budget.used_up for budget in budgets.values() if budget.used_up is not None]
    return min(max(days, default=now), now + max(now - first, dt.timedelta(days=1)))


def _ahead(budget: BurnDown, now: Moment, end: Moment) -> list[tuple[Moment, float]]:
    """Returns a straight line from what remains to zero, as far as it is drawn."""
    left = budget.steps[-1][1]
    if budget.used_up is None or budget.used_up <= now or end <= now:
        return []
    last = min(budget.used_up, end)
    return [(now, left), (last, left * (1 - (last - now) / (budget.used_up - now)))]


def _text(moment: Moment) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")
