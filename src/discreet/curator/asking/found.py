"""What probes found, as it is kept beside a release and told to a reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.curator.measurement_plan import Prepared, Settled, of_each_probe
from discreet.curator.replay.stored_releases import Asked
from discreet.measurement.probes.probes import WHOLE, Fact, Facts
from discreet.mechanisms.base import Law
from discreet.plan.model.schema import Bounds


def written(settled: Settled, bought: Asked) -> dict[str, Any]:
    """The facts of a program and what was paid for it with its probes, as JSON fields; nothing if there are none."""
    if not settled.facts.known:
        return {}
    guessed = settled.facts.guessed
    chosen = [[*spot, _written(fact), spot not in guessed] for spot, fact in settled.facts.known.items()]
    return {"chosen": chosen, "law": settled.law, "bought": [str(bought.epsilon), str(bought.delta)]}


def facts_of(fields: Mapping[str, Any]) -> Facts:
    """The facts that `written` wrote."""
    rows = fields.get("chosen", [])
    return Facts(
        known={(table, what): _read(fact) for table, what, fact, _ in rows},
        guessed=frozenset((table, what) for table, what, _, found in rows if not found),
    )


def _written(fact: Fact) -> int | list[str]:
    return fact if isinstance(fact, int) else [str(fact.low), str(fact.high)]


def _read(fact: int | list[str]) -> Fact:
    if isinstance(fact, int):
        return fact
    low, high = fact
    return Bounds(Fraction(low), Fraction(high))


def law_of(fields: Mapping[str, Any]) -> Law | None:
    """The law that its program was held to; None if to none."""
    law: Law | None = fields.get("law")
    return law


def was_bought_for(payload: bytes | str, asked: Asked) -> bool:
    """Whether a release was paid with at least this budget, probes included: asking again for it is free."""
    epsilon, delta = json.loads(payload).get("bought", ("0", "0"))
    return Fraction(epsilon) >= asked.epsilon and Fraction(delta) >= asked.delta


def remarks(facts: Facts) -> tuple[str, ...]:
    """What the facts mean for the numbers."""
    told = [_about_bounds(column, b, (table, column) in facts.guessed) for (table, column), b in facts.bounds.items()]
    limits = [spot for spot, fact in facts.known.items() if isinstance(fact, int)]
    if set(limits) & facts.guessed:
        told.append("Too few people for limits to be chosen: those of the table are taken.")
    elif limits:
        share = f"{float(100 * WHOLE):g} %"
        told.append(f"Limits were chosen privately to keep all rows of about {share} of people, and are remembered.")
    return tuple(told)


def _about_bounds(column: str, bounds: Bounds, guessed: bool) -> str:
    if guessed:
        return (
            f"Too few people for bounds of {column} to be chosen: its values are clipped to {_range(bounds)}, a range "
            "that does not depend on the data. Declare bounds, or ask with a larger epsilon."
        )
    return f"Values of {column} are clipped to {_range(bounds)}, bounds that were chosen privately and are remembered."


def to_come(prepared: Prepared, asked: Asked) -> tuple[str, ...]:
    """What will be found out first, and for how much."""
    missing = prepared.missing
    return tuple(
        f"{probe.subject} will be chosen privately for epsilon {float(of_each_probe(asked, len(missing))):g}, "
        "then remembered."
        for probe in missing
    )


def _range(bounds: Bounds) -> str:
    return f"{float(bounds.low):,.10g} to {float(bounds.high):,.10g}"
