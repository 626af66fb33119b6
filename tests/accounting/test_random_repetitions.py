"""The best of a random number of tries: published figures, and exact laws on a few outputs, which no bound may miss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from discreet.accounting import random_repetitions as tuning
from discreet.accounting.random_repetitions import Tries, best_of, tuned_epsilon
from discreet.accounting.rdp import ORDERS
from discreet.errors import InvalidParameter
from discreet.privacy import events

GEOMETRIC, LOGARITHMIC = Tries(Fraction(1), Fraction(1, 10)), Tries(Fraction(0), Fraction(1, 100))
Law = NDArray[np.float64]
PAIRS: list[tuple[Sequence[float], Sequence[float]]] = [
    ([0.7, 0.2, 0.1], [0.5, 0.3, 0.2]),
    ([0.9, 0.1], [0.8, 0.2]),
    ([0.2, 0.3, 0.5], [0.25, 0.35, 0.4]),
    ([0.01, 0.98, 0.01], [0.02, 0.96, 0.02]),
]


@pytest.mark.parametrize(("tries", "expected"), [(GEOMETRIC, 1.98617), (LOGARITHMIC, 1.74798)])
def test_published_figures(tries: Tries, expected: float) -> None:
    assert best_of(0.05 * ORDERS, tries)[ORDERS == 8] == pytest.approx(expected, abs=1e-5)


def test_a_geometric_number_of_pure_tries_costs_three_times_one() -> None:
    assert tuned_epsilon([events.Pure("0.5")], GEOMETRIC, 0) == pytest.approx(1.5)
    assert tuned_epsilon([events.Pure("0.5")], LOGARITHMIC, 0) == pytest.approx(1.0)


def number_law(tries: Tries, most: int = 4000) -> Law:
    """P(K = k) for k = 1, 2, ..., from the definition."""
    eta, gamma = float(tries.eta), float(tries.gamma)
    logs = [math.log1p(-gamma)]
    for k in range(1, most):
        logs.append(logs[-1] + math.log1p(-gamma) + math.log((k + eta) / (k + 1)))
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())


def best_law(one: Sequence[float], tries: Tries) -> Law:
    """The law of the best of K draws; outputs are ordered from worst to best."""
    number = number_law(tries)
    below = np.concatenate([[0.0], np.cumsum(one)])
    powers = np.arange(1, len(number) + 1)
    return np.diff([float(number @ np.minimum(q, 1.0) ** powers) for q in below])


def divergence(p: Law, q: Law, order: float) -> float:
    return float(logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1))


def curve(p: Sequence[float], q: Sequence[float]) -> Law:
    a, b = np.array(p), np.array(q)
    return np.array([max(divergence(a, b, order), divergence(b, a, order)) for order in ORDERS])


@pytest.mark.parametrize("tries", [GEOMETRIC, LOGARITHMIC, Tries(Fraction(1, 2), Fraction(1, 20))])
def test_the_mean_is_that_of_the_law(tries: Tries) -> None:
    number = number_law(tries)
    assert tries.mean == pytest.approx(float(number @ np.arange(1, len(number) + 1)), rel=1e-6)


@pytest.mark.parametrize(("mean", "eta"), [(1, 1), (2, 1), (10, 1), (10, 0), (7, "1/2")])
def test_a_law_of_a_given_mean(mean: int, eta: float | str) -> None:
    assert Tries.of_mean(mean, eta).mean == pytest.approx(mean, rel=1e-4)


def missed(tries: Tries) -> float:
    """By how much exact divergences of the best exceed the bound, at worst."""
    low = ORDERS < 200
    worst = -math.inf
    for p, q in PAIRS:
        bound = best_of(curve(p, q), tries)
        best_p, best_q = best_law(p, tries), best_law(q, tries)
        for order, limit in zip(ORDERS[low], bound[low], strict=True):
            worst = max(worst, divergence(best_p, best_q, order) - limit, divergence(best_q, best_p, order) - limit)
    return worst


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tries", [GEOMETRIC, LOGARITHMIC, Tries(Fraction(1), Fraction(1, 2))])
def test_no_exact_law_exceeds_the_bound(tries: Tries) -> None:
    assert missed(tries) <= 1e-9


def test_forgetting_that_the_best_was_chosen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "best_of", lambda divergences, _: divergences)
    below = curve([0.9, 0.1], [0.8, 0.2])
    best = divergence(best_law([0.9, 0.1], GEOMETRIC), best_law([0.8, 0.2], GEOMETRIC), 2.0)
    assert best > 1.5 * tuning.best_of(below, GEOMETRIC)[ORDERS == 2.0]


@pytest.mark.parametrize("tries", [GEOMETRIC, LOGARITHMIC])
def test_no_exact_law_exceeds_the_pure_price(tries: Tries) -> None:
    for p, q in PAIRS:
        one = float(np.abs(np.log(np.array(p) / np.array(q))).max())
        best = float(np.abs(np.log(best_law(p, tries) / best_law(q, tries))).max())
        assert best <= (2 + float(tries.eta)) * one + 1e-9


def test_a_delta_of_tries_counts_for_each_of_them() -> None:
    exact, loose = events.Gaussian(20), events.Composed([events.Gaussian(20), events.Approx("1e-9", "1e-8")])
    assert tuned_epsilon([exact], GEOMETRIC, 1e-6) < tuned_epsilon([loose], GEOMETRIC, 1e-6)
    assert tuned_epsilon([loose], GEOMETRIC, 1e-7) == math.inf  # ten tries of 1e-8


def test_the_worst_of_several_kinds_of_tries_counts() -> None:
    both = tuned_epsilon([events.Gaussian(20), events.Gaussian(10)], GEOMETRIC, 1e-6)
    assert both == tuned_epsilon([events.Gaussian(10)], GEOMETRIC, 1e-6)


def test_parameters_are_held_to_their_domain() -> None:
    with pytest.raises(InvalidParameter):
        Tries(Fraction(-1), Fraction(1, 2))
    with pytest.raises(InvalidParameter):
        Tries(Fraction(1), Fraction(1))
