"""Mistakes in the auditor itself, which would then report leaks that do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet import audit
from discreet.audit.mechanisms import confidence_bounds, distinguisher
from discreet.noise import SeededBits, uniform_below
from tests.audit.mechanisms.test_confidence_bounds import best_adversary
from tests.audit.mutants.registry import Mutant, catcher, setting

AUDITS = 20


@catcher("audits of equal distributions")
def no_leak_is_found_where_nothing_differs() -> None:
    """Two equal laws on 64 values, claimed to be equal: each of 20 audits fails with at most 5 %; 5 with 0.3 %."""
    bits = SeededBits(51)

    def draw(_: Any) -> int:
        return uniform_below(64, bits=bits)

    failed = sum(not audit.distinguish(draw, 0, 1, epsilon=0, runs=200).passed for _ in range(AUDITS))
    assert failed < 5


@catcher("linear program")
def no_mechanism_beats_the_bound_of_one_run() -> None:
    for correct in (8, 10):
        best = best_adversary(10, 10, correct, 1.0, 0.01)
        assert best <= confidence_bounds.one_run_chance(10, 10, correct, epsilon=1.0, delta=0.01) + 1e-7


def _all_of_them(pairs: list[Any]) -> tuple[list[Any], ...]:
    return pairs, pairs, pairs


def _shares(first: Any, second: Any, runs: int, outside: float) -> tuple[Any, Any]:
    del outside
    return np.asarray(first) / runs, np.maximum(np.asarray(second) / runs, 0.5 / runs)


MUTANTS = [
    Mutant(
        "events chosen and counted on the same runs",
        "The runs that choose an event also count it, so that chance looks like a leak.",
        setting(distinguisher, "_split", _all_of_them),
        no_leak_is_found_where_nothing_differs,
    ),
    Mutant(
        "frequencies instead of confidence limits",
        "Counts are divided by runs, without a margin for chance.",
        setting(confidence_bounds, "ends", _shares),
        no_leak_is_found_where_nothing_differs,
    ),
    Mutant(
        "one run without delta",
        "The bound of a single run ignores delta.",
        setting(confidence_bounds, "_steepest", lambda *_: 0.0),
        no_mechanism_beats_the_bound_of_one_run,
    ),
]
