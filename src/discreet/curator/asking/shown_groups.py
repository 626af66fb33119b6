"""The refusal of a question that adds up private groups, of which an answer shows only some, with texts that work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from discreet.curator.measurement_plan import MeasurementPlan
from discreet.errors import DiscreetError, UnsupportedQuery
from discreet.sql.rewrites import Rewrites, rewrites

REASON = (
    "The inner groups are private and only those that are large enough are shown, so this would leave groups out "
    "without saying how many."
)

Accepts = Callable[[str], bool]
"""Tells whether a text could be asked in the place of a question."""


def refusal_of_shown_groups(measurement: MeasurementPlan, accepts: Accepts) -> UnsupportedQuery:
    """Returns the refusal; everything that it proposes was read and planned at the terms of the question.

    Args:
        measurement: the question.
        accepts: whether a text could be asked in its place.
    """
    found, several = _rewrites(measurement), bool(measurement.plan.beside)
    distinct, by_person = _first(found.distinct, accepts), _first(found.by_person, accepts)
    groups = None if several else _first(found.groups, accepts)  # one stored release does not serve several
    ways = [
        f"count different values: `{distinct}`" if distinct else "",
        f"group by the person as well, whose rows are limited: `{by_person}`" if by_person else "",
        f"ask for the groups first, `{groups}`, and then again for this, which is free and about the groups shown"
        if groups
        else "",
    ]
    usual = "declare the keys with keys=..., or ask for each SELECT with GROUP BY by itself"
    told = "; or ".join(filter(None, ways)) or usual
    return UnsupportedQuery(REASON, f"{told[0].upper()}{told[1:]}.")


def _rewrites(measurement: MeasurementPlan) -> Rewrites:
    """What the text suggests; nothing if there is none, or it has parameters."""
    try:
        return rewrites(measurement.sql, measurement.schemas) if measurement.sql else Rewrites()
    except DiscreetError:
        return Rewrites()


def _first(texts: Sequence[str], accepts: Accepts) -> str | None:
    return next((text for text in texts if "`" not in text and accepts(text)), None)
