"""Mistakes in means, variances and counts of arrays: values outside their bounds, pairs and bins that are forgotten."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from discreet import audit
from discreet import statistics as st
from discreet.noise import SeededBits
from discreet.statistics.inputs import NumericColumn, column
from tests.audit.mutants.registry import Mutant, catcher, setting

SURE = 1 - 1e-6


@catcher("audit.distinguish")
def values_are_clipped_to_their_bounds() -> None:
    bits = SeededBits(71)

    def high(x: list[float]) -> bool:
        return bool(st.mean(x, bounds=(0, 1), epsilon=1, target="sample", bits=bits).value > 0.9)

    pair = [0.0] * 100, [0.0] * 100 + [1e6]
    assert audit.distinguish(high, *pair, runs=150, confidence=SURE, epsilon=1).passed


@catcher("audit.distinguish")
def a_value_is_in_a_pair_with_every_other() -> None:
    """One value at the other bound moves a variance of a hundred by 0.0099, and that is the scale of the noise."""
    bits = SeededBits(72)

    def spread_out(x: list[float]) -> bool:
        options: Any = {"bounds": (0, 1), "neighbours": "replace", "target": "sample", "ddof": 0}
        return bool(st.variance(x, epsilon=1, bits=bits, **options).value > 0.005)

    pair = [0.0] * 100, [0.0] * 99 + [1.0]
    assert audit.distinguish(spread_out, *pair, runs=150, confidence=SURE, epsilon=1, neighbours="replace").passed


@catcher("audit.distinguish")
def a_value_is_in_one_bin() -> None:
    """Two hundred bins: in all of them together one value shows more than in one."""
    bits = SeededBits(73)

    def many(x: list[float]) -> bool:
        found = st.histogram(x, bins=list(range(201)), epsilon=1, bits=bits)
        return bool(np.mean(found.value) > 0.5)

    assert audit.distinguish(many, [], [0.5], runs=150, confidence=SURE, epsilon=1).passed


def _module(name: str) -> Any:
    """A module of statistics, which may have the name of a function."""
    return import_module(f"discreet.statistics.{name}")


def _unclipped(values: Any, **options: Any) -> NumericColumn:
    found = column(values, **options)
    return replace(found, steps=np.round(np.asarray(values, dtype=float) / float(found.step)).astype(np.int64))


def _up_to(values: Any, edges: Any) -> Any:
    return np.sum(values[:, None] < edges[None, 1:], axis=0).astype(np.int64)


MUTANTS = [
    Mutant(
        "values outside their bounds",
        "Values are summed as they are, but the noise covers only values within the bounds.",
        setting(_module("moments.mean"), "column", _unclipped),
        values_are_clipped_to_their_bounds,
    ),
    Mutant(
        "one pair instead of all",
        "The noise of a variance covers one pair of values, although each value is in a pair with every other.",
        setting(_module("moments.variance"), "squares_sensitivity", lambda _count, width: width * width),
        a_value_is_in_a_pair_with_every_other,
    ),
    Mutant(
        "bins that overlap",
        "Each count is of all values below an edge, but the noise is for bins that do not overlap.",
        setting(_module("histogram"), "_in_bins", _up_to),
        a_value_is_in_one_bin,
    ),
]
