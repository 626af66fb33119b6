"""Published values of the bounds, and their rates of error by exact enumeration and by linear programming."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, special, stats

from discreet.audit.mechanisms.confidence_bounds import (
    absence_epsilon,
    certified_epsilon,
    certified_mu,
    most_epsilon,
    one_run_chance,
    one_run_epsilon,
    published_one_run_chance,
)

DIGITS = 5e-5  # of the published values


def test_published_values_of_the_two_sample_bound() -> None:
    assert certified_epsilon(500, 10, 1000, delta=0, outside=0.05) == pytest.approx(3.2420, abs=DIGITS)
    assert absence_epsilon(500, 10, 1000, delta=0, outside=0.05) == pytest.approx(0.6137, abs=DIGITS)
    assert certified_mu(500, 10, 1000, outside=0.05) == pytest.approx(2.0110, abs=DIGITS)
    assert most_epsilon(1000, delta=0, outside=0.05) == pytest.approx(5.6006, abs=DIGITS)


def test_published_values_of_one_run() -> None:
    published = one_run_epsilon(1000, 100, 95, delta=1e-5, outside=0.05)
    assert published == pytest.approx(2.1652, abs=DIGITS)
    assert one_run_epsilon(1000, 100, 95, delta=1e-5, outside=0.05, chance=one_run_chance) > published
    assert one_run_epsilon(1000, 100, 100, delta=0, outside=0.05) == pytest.approx(3.4930, abs=DIGITS)


def test_the_absence_of_an_event_counts_as_much_as_the_event() -> None:
    """Swapping the event for its absence and the datasets with it changes nothing."""
    runs = 400
    for first, second in ((390, 300), (50, 3), (200, 199), (400, 0), (0, 400)):
        one = certified_epsilon(first, second, runs, delta=1e-3, outside=0.1)
        other = certified_epsilon(runs - second, runs - first, runs, delta=1e-3, outside=0.1)
        assert one == pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.05), (3.0, 0.0)])
def test_the_bound_exceeds_a_true_epsilon_as_rarely_as_stated(epsilon: float, delta: float) -> None:
    """Exactly, over all pairs of counts, for pairs of chances that the claim just allows."""
    runs, outside = 60, 0.1
    counts = np.arange(runs + 1)
    bound = certified_epsilon(counts[:, None], counts[None, :], runs, delta=delta, outside=outside)
    for q in (0.001, 0.02, 0.1, 0.3, 0.6, 0.9):
        p = min(math.exp(epsilon) * q + delta, 1 - math.exp(-epsilon) * (1 - q - delta), 1.0)
        weights = np.outer(stats.binom.pmf(counts, runs, p), stats.binom.pmf(counts, runs, q))
        assert float(weights[bound > epsilon + 1e-12].sum()) <= outside


def test_the_mu_bound_exceeds_a_true_mu_as_rarely_as_stated() -> None:
    runs, outside = 60, 0.1
    counts = np.arange(runs + 1)
    bound = certified_mu(counts[:, None], counts[None, :], runs, outside=outside)
    for mu in (0.0, 0.5, 2.0):
        for q in (0.01, 0.1, 0.5, 0.9):
            p = special.ndtr(special.ndtri(q) + mu)
            weights = np.outer(stats.binom.pmf(counts, runs, p), stats.binom.pmf(counts, runs, q))
            assert float(weights[bound > mu + 1e-12].sum()) <= outside


def best_adversary(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """The largest P(right >= correct) of all (epsilon, delta)-DP mechanisms that name `guesses` coins: the optimum.

    Flipping coins together with guesses, permuting canaries, and mixing mechanisms keep both DP and the objective, so
    that some best mechanism gives every answer with w right guesses one probability f_w. Of two coins that differ in
    canary j, which is guessed in a share guesses / canaries of the answers, the excess is a sum over w of positive
    parts: right in the first and wrong in the other, and the reverse.
    """
    w = np.arange(guesses + 1)
    answers = special.comb(canaries, guesses)  # which canaries are guessed
    with_j = special.comb(canaries - 1, guesses - 1)
    size = guesses + 1
    rises, falls = np.arange(1, size), np.arange(size - 1)
    # Variables: f_0 .. f_r, then slacks of rises (w right against w - 1) and of falls (w against w + 1), times scale.
    width = size + len(rises) + len(falls)
    rows, limits = [], []
    for place, i in enumerate(rises):
        row = np.zeros(width)
        row[i], row[i - 1], row[size + place] = 1, -math.exp(epsilon), -1
        rows.append(row)
        limits.append(0.0)
    for place, i in enumerate(falls):
        row = np.zeros(width)
        row[i], row[i + 1], row[size + len(rises) + place] = 1, -math.exp(epsilon), -1
        rows.append(row)
        limits.append(0.0)
    excess = np.zeros(width)
    excess[size : size + len(rises)] = with_j * special.comb(guesses - 1, rises - 1)
    excess[size + len(rises) :] = with_j * special.comb(guesses - 1, falls)
    scale = 1 / answers / 2.0**guesses  # f is about this small: variables in its units
    rows.append(excess * scale)
    limits.append(delta)
    mass = np.zeros(width)
    mass[:size] = answers * special.comb(guesses, w)
    gain = np.where(np.arange(width) < size, mass, 0.0)
    gain[:correct] = 0.0
    solved = optimize.linprog(
        np.asarray(-gain * scale, dtype=np.float64),
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        A_eq=(mass * scale)[np.newaxis],
        b_eq=np.ones(1),
    )
    assert solved.success
    assert solved.fun is not None
    return -float(solved.fun)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("canaries", "guesses"), [(1, 1), (2, 2), (3, 2), (6, 6), (10, 6), (12, 12), (40, 12)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_no_mechanism_beats_the_bound_of_one_run(canaries: int, guesses: int, epsilon: float) -> None:
    """The theorem of one run, against the exact optimum over all mechanisms, at every threshold."""
    for delta in (0.0, 1e-4, 1e-2, 0.1):
        for correct in range(guesses + 1):
            best = best_adversary(canaries, guesses, correct, epsilon, delta)
            assert best <= one_run_chance(canaries, guesses, correct, epsilon=epsilon, delta=delta) + 1e-7


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_randomized_response_attains_the_bound_of_one_run(epsilon: float) -> None:
    for correct in range(9):
        best = best_adversary(8, 8, correct, epsilon, 0.0)
        assert best == pytest.approx(one_run_chance(8, 8, correct, epsilon=epsilon, delta=0.0), abs=1e-7)


def test_the_bound_is_attained_where_it_leaves_room() -> None:
    """Small deltas: the optimum is the bound itself, so that no smaller bound is true."""
    for correct in (7, 9, 11, 12):
        best = best_adversary(12, 12, correct, 1.0, 1e-4)
        bound = one_run_chance(12, 12, correct, epsilon=1.0, delta=1e-4)
        assert best == pytest.approx(bound, abs=1e-7)


def test_the_published_bound_is_beaten_below_the_mean_and_holds_in_the_upper_tail() -> None:
    best = best_adversary(2, 2, 1, 1.0, 0.1)
    assert best > published_one_run_chance(2, 2, 1, epsilon=1.0, delta=0.1) + 0.005
    for guesses in (6, 12):
        for epsilon in (0.1, 1.0, 2.0):
            for correct in range(guesses + 1):
                published = published_one_run_chance(guesses, guesses, correct, epsilon=epsilon, delta=1e-3)
                if published < 0.5:
                    assert best_adversary(guesses, guesses, correct, epsilon, 1e-3) <= published + 1e-7


def test_a_bound_without_the_factor_of_delta_would_be_beaten() -> None:
    """The linear program has power: leaving out delta's part of the bound is seen."""
    best = best_adversary(12, 12, 12, 1.0, 1e-2)
    assert best > one_run_chance(12, 12, 12, epsilon=1.0, delta=0.0) + 1e-3


def test_bounds_grow_with_what_was_seen() -> None:
    found = [one_run_epsilon(500, 100, v, delta=1e-6, outside=0.05) for v in range(50, 101)]
    assert all(one <= other for one, other in pairwise(found))
    assert found[0] == 0.0
