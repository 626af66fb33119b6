"""What scouts found, as it is kept beside a release and told to a reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.curator.measure import Law
from discreet.curator.prepared import Prepared, Settled, of_each_scout
from discreet.curator.scouts import Facts
from discreet.curator.stored import Asked
from discreet.plan.schema import Bounds


def written(settled: Settled, bought: Asked) -> dict[str, Any]:
    """The facts of a program and what was paid for it with its scouts, as JSON fields; nothing if there are none."""
    if not settled.facts.bounds:
        return {}
    guessed = settled.facts.guessed
    chosen = [[*spot, str(b.low), str(b.high), spot not in guessed] for spot, b in settled.facts.bounds.items()]
    return {"chosen": chosen, "law": settled.law, "bought": [str(bought.epsilon), str(bought.delta)]}


def facts_of(fields: Mapping[str, Any]) -> Facts:
    """The facts that `written` wrote."""
    rows = fields.get("chosen", [])
    return Facts(
        bounds={(table, column): Bounds(Fraction(low), Fraction(high)) for table, column, low, high, _ in rows},
        guessed=frozenset((table, column) for table, column, _, _, found in rows if not found),
    )


def law_of(fields: Mapping[str, Any]) -> Law | None:
    """The law that its program was held to; None if to none."""
    law: Law | None = fields.get("law")
    return law


def was_bought_for(payload: bytes | str, asked: Asked) -> bool:
    """Whether a release was paid with at least this budget, scouts included: asking again for it is free."""
    epsilon, delta = json.loads(payload).get("bought", ("0", "0"))
    return Fraction(epsilon) >= asked.epsilon and Fraction(delta) >= asked.delta


def remarks(facts: Facts) -> tuple[str, ...]:
    """What the facts mean for the numbers."""
    return tuple(
        f"Too few people for bounds of {column} to be chosen: its values are clipped to {_range(b)}, a range that "
        "does not depend on the data. Declare bounds, or ask with a larger epsilon."
        if (table, column) in facts.guessed
        else f"Values of {column} are clipped to {_range(b)}, bounds that were chosen privately and are remembered."
        for (table, column), b in facts.bounds.items()
    )


def to_come(prepared: Prepared, asked: Asked) -> tuple[str, ...]:
    """What will be found out first, and for how much."""
    missing = prepared.missing
    return tuple(
        f"Bounds of {scout.column} will be chosen privately for epsilon "
        f"{float(of_each_scout(asked, len(missing))):g}, then remembered."
        for scout in missing
    )


def _range(bounds: Bounds) -> str:
    return f"{float(bounds.low):,.10g} to {float(bounds.high):,.10g}"
