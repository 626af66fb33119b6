"""What is left of a budget after each charge, as a chart: a function of the book alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from discreet.ledger import Entry
from discreet.ledger.serialization import ratio
from discreet.report.charts import SCHEMA, WIDTH, Spec

MOST_STEPS = 400
"""Points of a curve; of more charges every so-manieth is shown, and the last."""


def amount_left(entries: Iterable[Entry], total: Fraction, name: str) -> list[tuple[int, Fraction]]:
    """Returns what is left after each charge of a list in order: (place in the book, amount).

    Args:
        entries: of one account, of everybody or of one person.
        total: the budget or cap as it is now.
        name: the amount that is counted, "epsilon" or "rho".

    A renewal begins again. A charge whose price is in another currency leaves the curve as it is.
    """
    left, curve = total, list[tuple[int, Fraction]]()
    for entry in entries:
        if entry.kind == "renew":
            left = total
            curve.append((entry.sequence, left))
        elif entry.kind in ("charge", "recover"):  # what was lost with a book counts as spent
            left = max(Fraction(0), left - _cost(entry.content, name))
            curve.append((entry.sequence, left))
    return curve


def _cost(content: dict[str, Any], name: str) -> Fraction:
    cost = content["cost"] or {}
    return ratio(cost[name]) if name in cost else Fraction(0)


def burn_down(curve: Sequence[tuple[int, Fraction]], total: Fraction, name: str) -> Spec | None:
    """Returns the chart of what is left, by the number of questions; None if nothing was asked."""
    if not curve:
        return None
    steps = [(0, total), *((place, left) for place, (_, left) in enumerate(curve, 1))]
    every = max(1, len(steps) // MOST_STEPS)
    chosen = [step for place, step in enumerate(steps) if place % every == 0 or place == len(steps) - 1]
    values = [{"x": place, "y": float(left)} for place, left in chosen]
    across: Spec = {"field": "x", "type": "quantitative", "title": "charged questions", "axis": {"tickMinStep": 1}}
    upright: Spec = {
        "field": "y",
        "type": "quantitative",
        "title": f"{name} left",
        "scale": {"domain": [0, float(total)], "nice": False},
    }
    line = {"type": "line", "style": "curve", "strokeWidth": 2}
    area = {"type": "area", "style": "band"}
    return {
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": 200,
        "autosize": {"type": "fit", "contains": "padding"},
        "data": {"values": values},
        "encoding": {"x": across, "y": upright},
        "layer": [{"mark": area}, {"mark": line}],
    }
