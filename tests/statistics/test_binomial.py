"""The binomial test: its law, test vectors, exact level, exact coverage, and the sensitivity of what it releases."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import statistics as st
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.privacy import events
from discreet.statistics.tests import binomial as tulap
from tests.statistics.recorded import overruns, watched


def test_known_values() -> None:
    assert tulap.tulap_cdf(0.7, 1.0) == pytest.approx(0.7651, abs=5e-5)
    assert tulap.greater(20, 30, 0.5, 1.0) == pytest.approx(0.05205376, abs=5e-9)
    assert tulap.greater(20, 30, 0.5, 0.5) == pytest.approx(0.09406783, abs=5e-9)
    assert tulap.greater(19.5, 30, 0.5, 60.0) == pytest.approx(0.04936857, abs=5e-9)  # without noise


def test_the_law_is_that_of_integer_noise_and_a_uniform_part() -> None:
    """F(t) = sum over k of P(k) P(U <= t - k), from the definition."""
    for epsilon, t in product([0.3, 1.0, 3.0], np.linspace(-6, 6, 49)):
        k = np.arange(-300, 301)
        law = np.exp(-epsilon * np.abs(k)) * (1 - np.exp(-epsilon)) / (1 + np.exp(-epsilon))
        wanted = np.sum(law * np.clip(t - k + 0.5, 0, 1))
        assert tulap.tulap_cdf(float(t), epsilon) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("p_value", [tulap.greater, tulap.less, tulap.two_sided])
def test_the_level_is_exact(p_value: Any) -> None:
    """P(p <= a) = a, integrated over the law of Z: the test is neither loose nor too eager."""
    trials, chance, epsilon = 12, 0.3, 0.8
    counts, weights = tulap._binomial(trials, chance)
    z = np.linspace(-40, 60, 4001)
    law = np.array([np.sum(weights * tulap.tulap_cdf(end - counts, epsilon)) for end in z])
    p_values = np.array([p_value(float(middle), trials, chance, epsilon) for middle in (z[1:] + z[:-1]) / 2])
    for level in (0.01, 0.05, 0.3):
        assert np.sum(np.diff(law)[p_values <= level]) == pytest.approx(level, abs=2e-3)


def test_a_classical_p_value_on_noisy_counts_is_too_eager() -> None:
    trials, epsilon = 30, 0.3
    counts, weights = tulap._binomial(trials, 0.5)
    z = np.linspace(-100, 130, 4001)
    law = np.array([np.sum(weights * tulap.tulap_cdf(end - counts, epsilon)) for end in z])
    classical = np.array([tulap.greater(float(middle), trials, 0.5, 60.0) for middle in (z[1:] + z[:-1]) / 2])
    assert np.sum(np.diff(law)[classical <= 0.05]) > 0.15


def test_intervals_cover_exactly() -> None:
    """The chance that the interval covers, integrated over the law of Z."""
    trials, epsilon, chance = 20, 1.0, 0.35
    counts, weights = tulap._binomial(trials, chance)
    z = np.linspace(-15, 35, 501)
    law = np.array([np.sum(weights * tulap.tulap_cdf(end - counts, epsilon)) for end in z])
    covered = []
    for middle in (z[1:] + z[:-1]) / 2:
        low, high = tulap.chance_interval(float(middle), trials, epsilon, 0.1)
        covered.append(low <= chance <= high)
    assert np.sum(np.diff(law)[covered]) == pytest.approx(0.9, abs=0.02)


def test_many_trials_are_summed_where_it_matters() -> None:
    exact = tulap.greater(15_100, 30_000, 0.5, 1.0)
    assert exact == pytest.approx(0.1255, abs=2e-3)  # the normal tail at 100 / sqrt(7500 + 2)
    assert tulap.less(14_900, 30_000, 0.5, 1.0) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_neighbours_move_the_count_by_one_at_most(relation: str) -> None:
    found = []
    for new in (0, 1, True, None, np.nan, 7):
        changed = [1, 0, 1, new] if relation == "add_remove" else [1, 0, new]
        seen = []
        for outcomes in ([1, 0, 1], changed):
            with watched(lambda index: 2 + index) as kept:
                st.binomial_test(outcomes, epsilon=1, trials=3, neighbours=relation, bits=SeededBits(1))
            seen.append(kept)
        found += overruns(seen[0], seen[1])
    assert max(found) == 1


def test_the_event_is_the_noise_drawn() -> None:
    found = st.binomial_test([1, 0, 1], epsilon=0.5, bits=SeededBits(1))
    assert found.event == Laplace(epsilon=0.5, sensitivity=1).event == events.DiscreteLaplace(scale=2, sensitivity=1)
    assert found.estimate is not None
    assert found.estimate.event == found.event
    assert not found.private


def test_alternatives_agree_with_each_other() -> None:
    options: dict[str, Any] = {"epsilon": 1, "trials": 100, "null": 0.5}
    up = st.binomial_test(70, alternative="greater", bits=SeededBits(5), **options)
    down = st.binomial_test(70, alternative="less", bits=SeededBits(5), **options)
    both = st.binomial_test(70, bits=SeededBits(5), **options)
    assert up.p_value is not None
    assert down.p_value is not None
    assert up.p_value + down.p_value == pytest.approx(1)
    assert both.p_value == pytest.approx(2 * min(up.p_value, down.p_value))  # symmetric at 1/2
    assert up.statistic == both.statistic


@pytest.mark.parametrize(
    ("successes", "options", "name"),
    [
        (object(), {"epsilon": None}, "epsilon"),
        (object(), {"null": 0}, "null"),
        (object(), {"alternative": "more"}, "alternative"),
        (5, {}, "trials"),
        ([1], {"neighbours": "add_remove"}, "trials"),
        (5.5, {"trials": 10}, "successes"),
    ],
)
def test_wrong_parameters_are_refused(successes: Any, options: Any, name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        st.binomial_test(successes, **({"epsilon": 1} | options))
    assert caught.value.name == name


def test_a_result_decides_only_what_was_paid_for() -> None:
    known = st.TestResult(p_value=0.04, event=events.Pure(1), private=True)
    assert (known.reject(0.05), known.reject(0.01)) == (True, False)
    with pytest.raises(InvalidParameter):
        known.reject()
    decided = st.TestResult(rejected=True, level=Fraction(1, 20), event=events.Pure(1), private=False)
    assert decided.reject()
    assert decided.reject(0.05)
    with pytest.raises(InvalidParameter):
        decided.reject(0.01)
    assert str(known) == "p = 0.04"
    assert "NOT PRIVATE" in str(decided)
