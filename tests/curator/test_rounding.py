"""Intervals hold the true aggregate, not that of values on a grid: noise near zero, tables whose roundings add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.noise import SeededBits
from discreet.privacy import Budget, Neighbours

QUIET = 10**9  # an epsilon at which nearly all noise is zero
AMPLE = Budget(epsilon=10**14)
AMPLE_DELTA = Budget(epsilon=10**14, delta=1e-2)

Rows = Sequence[Mapping[str, Any]]
Pair = tuple[Fraction, Fraction]


def holds(low: Any, truth: Fraction | float, high: Any) -> bool:
    """Whether the truth lies in an interval; a root is known to a few units of the last place only."""
    slack = abs(truth) * 2.0**-48 if isinstance(truth, float) else 0
    return Fraction(low) - Fraction(slack) <= truth <= Fraction(high) + Fraction(slack)


def clipped(values: Sequence[float], low: Fraction, high: Fraction) -> list[Fraction]:
    return [min(max(Fraction(value), low), high) for value in values]


def mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def variance(values: Sequence[Fraction]) -> Fraction:
    return mean([value**2 for value in values]) - mean(values) ** 2


def quantile(values: Sequence[Fraction], share: Fraction) -> Fraction:
    """As PERCENTILE_CONT interpolates."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


ONE: dict[str, Callable[[Sequence[Fraction]], Fraction | float]] = {
    "SUM(x)": lambda v: sum(v, Fraction(0)),
    "AVG(x)": mean,
    "VAR_POP(x)": variance,
    "VARIANCE(x)": lambda v: variance(v) * len(v) / (len(v) - 1),
    "STDDEV_POP(x)": lambda v: math.sqrt(variance(v)),
    "MEDIAN(x)": lambda v: quantile(v, Fraction(1, 2)),
    "QUANTILE_CONT(x, 0.9)": lambda v: quantile(v, Fraction(9, 10)),
    "MIN(x)": min,
    "MAX(x)": max,
}
"""Aggregates of one column, and the truth."""


def curator_of(rows: Rows, bounds: Mapping[str, Any], budget: Budget = AMPLE, **options: Any) -> Curator:
    made = Curator.for_tests(engine=Memory(), bits=SeededBits(5))
    types = {"x": "float", "y": "float", "g": "text", "who": "int"}
    named = {name: types[name] for name in rows[0]}
    made.protect(list(rows), name="t", types=named, bounds=bounds, budget=budget, **options)
    return made


def ends_of(curator: Curator, sql: str, **options: Any) -> list[tuple[Any, Any]]:
    """The interval of the only number of each row."""
    answer = curator.ask(sql, **{"epsilon": QUIET, **options})
    return [(record["a_low"], record["a_high"]) for record in answer.records]


WIDE = (0, 2**24)
TABLES: dict[str, tuple[list[float], tuple[Any, Any]]] = {
    "small beside large": ([1.0] * 1000 + [2.0**24], WIDE),
    "halves of a step": ([8.0] * 300 + [24.0] * 300 + [2.0**-30], WIDE),
    "dust": ([2.0**-60] * 500 + [3e-310] * 20 + [1.0], (0, 1)),
    "thirds": ([1 / 3] * 700 + [-2 / 3] * 300, (-1, 1)),
    "bounds off every grid": ([0.1] * 400 + [7.3] * 100 + [99.9] * 10, ("0.1", "7.3")),
    "far from zero": ([1e9 + 0.1] * 200 + [1e9 + 0.9] * 100, (10**9, 10**9 + 1)),
    "below zero": ([-1e-9] * 900 + [-5e6], (-(10**7), 0)),
}


@pytest.mark.parametrize("neighbours", list(Neighbours), ids=lambda relation: relation.value)
@pytest.mark.parametrize("name", TABLES)
def test_every_interval_holds_the_truth(name: str, neighbours: Neighbours) -> None:
    values, (low, high) = TABLES[name]
    curator = curator_of([{"x": x} for x in values], {"x": (low, high)}, neighbours=neighbours)
    true = clipped(values, Fraction(low), Fraction(high))
    for sql, truth in ONE.items():
        ((a, b),) = ends_of(curator, f"SELECT {sql} AS a FROM t")
        assert holds(a, truth(true), b), (sql, a, truth(true), b)
