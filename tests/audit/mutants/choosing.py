"""Mistakes in the choice of options, keys and points, and in the sparse vector technique."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import audit
from discreet.mechanisms import (
    Exponential,
    PartitionSelection,
    PermuteAndFlip,
    Quantile,
    ReportNoisyMax,
    SparseVector,
    SparseVectorSession,
    partition_selection,
)
from discreet.mechanisms import noisy_max as flipping
from discreet.mechanisms.optimal_selection import OptimalRule
from discreet.mechanisms.partition_selection import SelectedKeys
from discreet.mechanisms.tails import laplace_cut
from discreet.noise import SeededBits, discrete_laplace
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.audit.neighbouring import runner

SURE = 1 - 1e-6
RUNS = 600
KEYS = PartitionSelection(epsilon=1, delta=1e-5, method="laplace")
QUESTIONS = SparseVector(epsilon=1, sensitivity=1, threshold=0)


@catcher("audit.exact")
def exponential_costs_the_requested_epsilon() -> None:
    assert audit.exact(Exponential(epsilon=1, sensitivity=1), [0, 30], [1, 29]).passed


@catcher("audit.distinguish")
def the_order_of_visits_reveals_nothing() -> None:
    mechanism = PermuteAndFlip(epsilon=1, sensitivity=1)
    assert audit.distinguish(mechanism, [0, 1], [1, 0], runs=RUNS, confidence=SURE, bits=SeededBits(21)).passed


@catcher("audit.distinguish")
def only_the_index_is_reported() -> None:
    mechanism = ReportNoisyMax(epsilon=1, sensitivity=1)
    assert audit.distinguish(mechanism, [4, 0], [5, 0], runs=RUNS, confidence=SURE, bits=SeededBits(22)).passed


@catcher("audit.exact")
def keys_of_one_person_are_hardly_ever_shown() -> None:
    assert audit.exact(KEYS, [0], [1], epsilon=1, delta=1e-5).passed


@catcher("audit.exact")
def counts_of_shown_keys_hide_each_person() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=1e-4, method="truncated")
    for count in (0, 5, 40):
        assert audit.exact(mechanism, [count], [count + 1]).passed


@catcher("audit.exact")
def keys_of_one_person_are_charged() -> None:
    assert audit.exact(KEYS, [0, 20], [1, 20]).passed


@catcher("audit.exact")
def all_keys_of_one_person_count() -> None:
    mechanism = PartitionSelection(epsilon=1, delta=1e-5, max_groups=2)
    assert audit.exact(mechanism, [10, 10], [11, 11]).passed


@catcher("audit.distinguish")
def keys_are_selected_before_they_are_shown() -> None:
    show = runner(KEYS, SeededBits(23))
    assert audit.distinguish(show, [0, 40], [1, 40], runs=RUNS, confidence=SURE, epsilon=1, delta=1e-5).passed


@catcher("audit.exact")
def threshold_noise_hides_negative_answers() -> None:
    assert audit.exact(QUESTIONS, [0] * 8, [1] * 8).passed


@catcher("audit.exact")
def every_positive_answer_is_charged() -> None:
    mechanism = SparseVector(epsilon=4, sensitivity=1, threshold=0, max_positives=3)
    assert audit.exact(mechanism, [0] * 2 + [-3] * 3, [1] * 2 + [-4] * 3).passed


@catcher("audit.distinguish")
def sessions_end_with_the_last_positive_answer() -> None:
    """Half of the queries rise and half fall, which no noise of the threshold hides."""
    show, half = runner(QUESTIONS, SeededBits(24)), 40

    def balance(queries: list[int]) -> int:
        above, _ = show(queries)
        return int(sum(above[:half]) - sum(above[half:]))

    found = audit.distinguish(
        balance, [0] * (2 * half), [1] * half + [-1] * half, runs=800, confidence=SURE, event=QUESTIONS.event
    )
    assert found.passed


@catcher("audit.distinguish")
def positive_answers_come_without_values() -> None:
    show = runner(QUESTIONS, SeededBits(25))
    assert audit.distinguish(show, [9], [10], runs=RUNS, confidence=SURE, event=QUESTIONS.event).passed


@catcher("audit.exact")
def a_replaced_value_counts_twice() -> None:
    mechanism = Quantile(epsilon=2, quantile=Fraction(1, 2), bounds=(0, 1), grid=Fraction(1, 64), neighbours="replace")
    assert audit.exact(mechanism, [0, 0, 0, 1, 1], [0, 0, 1, 1, 1], neighbours="replace").passed
    assert audit.exact(mechanism, [0] * 20, [0] * 19 + [1], neighbours="replace", epsilon=Fraction(11, 10)).passed


@catcher("audit.distinguish")
def an_outlier_stays_hidden() -> None:
    mechanism = Quantile(epsilon=1, quantile=Fraction(1, 2), bounds=(0, 1000), grid=1)
    crowd = [400, 410, 420]
    found = audit.distinguish(mechanism, crowd, [*crowd, 990], runs=RUNS, confidence=SURE, bits=SeededBits(26))
    assert found.passed


def _early_threshold(patch: pytest.MonkeyPatch) -> None:
    right = PartitionSelection.threshold.fget  # type: ignore[attr-defined]
    patch.setattr(PartitionSelection, "threshold", property(lambda m: right(m) - 1))


def _short_noise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partition_selection, "laplace_cut", lambda *given: laplace_cut(*given) - 1)


def _free_threshold(patch: pytest.MonkeyPatch) -> None:
    right = PartitionSelection.event.fget  # type: ignore[attr-defined]
    patch.setattr(PartitionSelection, "event", property(lambda m: right(m).events[0]))  # the noise alone


def _one_key_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionSelection, "rule", property(lambda m: OptimalRule.of(m.epsilon, m.delta)))


def _shown_all(mechanism: PartitionSelection, value: Any, *, bits: Any = None) -> SelectedKeys:
    counts = np.asarray(value)
    noisy = counts + discrete_laplace(mechanism.scale, counts.shape, bits=bits)
    return SelectedKeys(counts > 0, noisy[counts > 0])


def _with_score(patch: pytest.MonkeyPatch) -> None:
    right = ReportNoisyMax.choose

    def choose(mechanism: ReportNoisyMax, scores: Any, *, bits: Any = None) -> Any:
        index = right(mechanism, scores, bits=bits)
        return index, scores[index]

    patch.setattr(ReportNoisyMax, "choose", choose)


def _unpaid_numbers(patch: pytest.MonkeyPatch) -> None:
    right = SparseVectorSession.ask_steps

    def ask(session: SparseVectorSession, steps: int) -> bool:
        above = right(session, steps)
        if above:
            session._answers.append(steps)
        return above

    patch.setattr(SparseVectorSession, "ask_steps", ask)


def _bounds_from_data(patch: pytest.MonkeyPatch) -> None:
    right = Quantile.cells

    def cells(mechanism: Quantile, value: Any) -> Any:
        own = Quantile(epsilon=mechanism.epsilon, quantile=mechanism.quantile, bounds=(min(value), max(value)), grid=1)
        return right(own, value)

    patch.setattr(Quantile, "cells", cells)


def _as_if_added(mechanism: Quantile) -> Fraction:
    top, bottom = mechanism.quantile.numerator, mechanism.quantile.denominator
    return mechanism.epsilon / (2 * max(top, bottom - top))


MUTANTS = [
    Mutant(
        "half the range of scores",
        "The exponential mechanism divides by the sensitivity once, although scores may move up and down.",
        setting(Exponential, "rate", property(lambda m: m.epsilon / m.grid.l1_steps(m.sensitivity))),
        exponential_costs_the_requested_epsilon,
    ),
    Mutant(
        "permute-and-flip without the permutation",
        "Options are visited in the order of their index, not in a random order.",
        setting(flipping, "_one_of", lambda indices, _bits: int(indices[0])),
        the_order_of_visits_reveals_nothing,
    ),
    Mutant(
        "report noisy max with the score",
        "The score of the winner is released with its index, and is not charged.",
        _with_score,
        only_the_index_is_reported,
    ),
    Mutant(
        "threshold off by one",
        "Keys are shown if their noisy count is one below the threshold that delta requires.",
        _early_threshold,
        keys_of_one_person_are_hardly_ever_shown,
    ),
    Mutant(
        "truncated noise too short",
        "The noise of counts is cut one step earlier than delta allows, and the threshold is lowered with it.",
        _short_noise,
        counts_of_shown_keys_hide_each_person,
    ),
    Mutant(
        "delta of the threshold not charged",
        "The event of a selection lists its noise, but not the chance that one person's own key is shown.",
        _free_threshold,
        keys_of_one_person_are_charged,
    ),
    Mutant(
        "groups of a person forgotten",
        "A person may have two keys, but each is selected as if it were the only one.",
        _one_key_only,
        all_keys_of_one_person_count,
    ),
    Mutant(
        "key set leaked",
        "Every key in the data is shown with a noisy count, without any selection.",
        setting(PartitionSelection, "release", _shown_all),
        keys_are_selected_before_they_are_shown,
    ),
    Mutant(
        "sparse vector without threshold noise",
        "The threshold has no noise, so that every negative answer leaks.",
        setting(SparseVector, "threshold_scale", property(lambda _: Fraction(1, 1000))),
        threshold_noise_hides_negative_answers,
    ),
    Mutant(
        "sparse vector that pays for one positive answer",
        "The noise covers one positive answer, but three are given.",
        setting(SparseVector, "query_scale", property(lambda m: 2 / (m.epsilon - m._threshold_epsilon))),
        every_positive_answer_is_charged,
    ),
    Mutant(
        "sparse vector without an end",
        "A session continues after its last positive answer.",
        setting(SparseVectorSession, "finished", property(lambda _: False)),
        sessions_end_with_the_last_positive_answer,
    ),
    Mutant(
        "sparse vector with uncharged numbers",
        "Each positive answer comes with the exact value of its query, which is not charged.",
        _unpaid_numbers,
        positive_answers_come_without_values,
    ),
    Mutant(
        "wrong adjacency",
        "Under REPLACE, a quantile uses the sensitivity of ADD_REMOVE.",
        setting(Quantile, "rate", property(_as_if_added)),
        a_replaced_value_counts_twice,
    ),
    Mutant(
        "bounds from data",
        "A quantile is drawn between the smallest and the largest value in the data.",
        _bounds_from_data,
        an_outlier_stays_hidden,
    ),
]
