"""Aggregates that questions may ask for: one file each, which names needs and owns no noise; all are registered here.

SQL, plans and programs know an aggregate by what it says of itself in `base`. A new one is a file and a line below.
"""

from __future__ import annotations

from collections.abc import Iterable

from discreet.errors import UnsupportedQuery
from discreet.measurement.aggregates.aggregation import Aggregation
from discreet.measurement.aggregates.count import COUNTS
from discreet.measurement.aggregates.covariance import PAIRS
from discreet.measurement.aggregates.different import DIFFERENT
from discreet.measurement.aggregates.mean import MEAN
from discreet.measurement.aggregates.mode import MODE
from discreet.measurement.aggregates.quantile import QUANTILES
from discreet.measurement.aggregates.skewness import SKEWNESS
from discreet.measurement.aggregates.sum import SUM
from discreet.measurement.aggregates.variance import SPREADS
from discreet.measurement.intervals.estimators import Estimator
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import Need
from discreet.plan.model.nodes import Aggregate

AGGREGATIONS: dict[str, Aggregation] = {
    registered.kind: registered
    for registered in (*COUNTS, SUM, MEAN, *DIFFERENT, *SPREADS, SKEWNESS, *PAIRS, *QUANTILES, MODE)
}
"""By kind, as plans name them."""


def aggregation(kind: str) -> Aggregation:
    """Returns the aggregate of a kind.

    Raises:
        UnsupportedQuery: if none is registered.
    """
    found = AGGREGATIONS.get(kind)
    if found is None:
        raise UnsupportedQuery(
            f"There is no aggregate of the kind {kind!r}.", f"Ask for one of {', '.join(sorted(AGGREGATIONS))}."
        )
    return found


def needs(aggregates: Iterable[Aggregate]) -> list[Need]:
    """Returns what must be released for aggregates, in their order; equal needs may occur several times.

    Raises:
        UnsupportedQuery: if one is not registered.
    """
    return [need for each in aggregates for need in aggregation(each.kind).needs(each)]


def estimators(aggregates: Iterable[Aggregate], sources: Sources) -> dict[str, Estimator]:
    """Returns how each aggregate follows from what was released, by name."""
    return {each.name: aggregation(each.kind).estimator(each, sources) for each in aggregates}


__all__ = ["AGGREGATIONS", "Aggregation", "aggregation", "estimators", "needs"]
