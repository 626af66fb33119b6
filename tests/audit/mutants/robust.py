"""Mistakes in robust statistics: noise that follows the data too closely, blocks, and rows that are too long."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import audit
from discreet.mechanisms import Quantile
from discreet.noise import SeededBits
from discreet.statistics.moments import iterative_mean as iterative
from discreet.statistics.moments.iterative_mean import iterative_mean
from discreet.statistics.robust import smooth_sensitivity
from discreet.statistics.robust import subsample_and_aggregate as blocks
from discreet.statistics.robust.subsample_and_aggregate import BlockPlan
from discreet.statistics.robust.trimmed_mean import smooth_median
from tests.audit.mutants.registry import Mutant, catcher, setting

SURE = 1 - 1e-6


@catcher("audit.distinguish")
def stable_data_look_like_their_neighbours() -> None:
    """0, 0, 0, 0, 1 has a local sensitivity of 0, and 0, 0, 0, 1, 1 one of 1."""
    bits = SeededBits(61)

    def nearly_exact(x: list[int]) -> bool:
        return bool(0 < smooth_median(x, bounds=(0, 1), epsilon=1, target="sample", bits=bits).value < 1e-3)

    pair = [0, 0, 0, 0, 1], [0, 0, 0, 1, 1]
    assert audit.distinguish(nearly_exact, *pair, runs=350, confidence=SURE, epsilon=1, neighbours="replace").passed


@catcher("audit.exact")
def values_of_blocks_are_replaced() -> None:
    median = BlockPlan.of(Fraction(1), 4, (Fraction(0), Fraction(1)), Fraction(1, 20)).middle
    pair = [0.001, 0.001, 1, 1], [0, 0.001, 0.001, 1]  # a quantile for added values costs twice as much here
    assert audit.exact(median, *pair, neighbours="replace", epsilon=1).passed


@catcher("audit.distinguish")
def rows_are_clipped_to_the_ball() -> None:
    bits = SeededBits(62)

    def far(rows: Any) -> bool:
        found = iterative_mean(rows, radius=10, epsilon=1, delta=1e-6, bits=bits)
        return float(found.value[0]) > 2

    calm = np.zeros((200, 2))
    pair = calm, np.vstack([calm, [1e9, 0.0]])
    assert audit.distinguish(far, *pair, runs=150, confidence=SURE, epsilon=1, delta=1e-6).passed


def _local_only(patch: pytest.MonkeyPatch) -> None:
    """What one replaced value does to these data, raised to the floor, and no look at other databases."""

    def local(steps: Any, width: int, cut: int, _beta: Fraction, floor: Fraction) -> Fraction:
        padded = np.concatenate([[0], steps, [width]])
        left, right = cut + 1, steps.size - cut
        move = max(padded[right + 1] - padded[left], padded[right] - padded[left - 1])
        return max(Fraction(int(move), steps.size - 2 * cut), floor)

    patch.setattr(smooth_sensitivity, "trimmed_mean", local)


def _as_if_added(**options: Any) -> Quantile:
    return Quantile(**{**options, "neighbours": "add_remove"})


MUTANTS = [
    Mutant(
        "local sensitivity as the scale of noise",
        "Noise is scaled to what one unit changes in these data, which reveals how stable they are.",
        _local_only,
        stable_data_look_like_their_neighbours,
    ),
    Mutant(
        "block values added instead of replaced",
        "The median over blocks is calibrated for an added value, although a unit replaces the value of its block.",
        setting(blocks, "Quantile", functools.partial(_as_if_added)),
        values_of_blocks_are_replaced,
    ),
    Mutant(
        "long rows in an iterative mean",
        "Rows are summed as they are, however far outside the ball.",
        setting(iterative, "within", lambda steps, _radius: steps),
        rows_are_clipped_to_the_ball,
    ),
]
