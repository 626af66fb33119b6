"""Means: what one value moves, what the noise costs, how near they come, and how often their intervals cover."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet import statistics as st
from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import column
from discreet.statistics.moments.mean import centre_of
from discreet.statistics.moments.power_sums import beyond, pair
from tests.cases import every
from tests.statistics.recorded import BOTH, given_to_noise, neighbouring, pure_loss, remembered, squared_mu

POINTS = [0.0, 1.0, 2.5, 4.0, np.inf]


def beta_sample(count: int, bits: SeededBits) -> Any:
    """100 Beta(2, 5), of mean 200 / 7: the second smallest of six uniform numbers."""
    return 100 * np.partition(uniforms((count, 6), bits=bits), 1, axis=1)[:, 1]


@pytest.mark.parametrize("target", ["population", "sample"])
@pytest.mark.parametrize("neighbours", BOTH)
def test_laplace_noise_costs_epsilon_and_no_less(
    neighbours: Neighbours, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @remembered
    def seen(x: list[float]) -> Any:
        return given_to_noise(
            monkeypatch,
            lambda: st.mean(x, bounds=(0, 4), epsilon=1, neighbours=neighbours, target=target),
        )

    costs = [pure_loss(seen(one), seen(other)) for one, other in neighbouring(POINTS, neighbours, 1)]
    assert max(costs) <= 1
    assert max(costs) >= Fraction(98, 100)  # under replace the sum and the squares are furthest at different moves


@pytest.mark.parametrize("target", ["population", "sample"])
@pytest.mark.parametrize("neighbours", BOTH)
def test_normal_noise_costs_mu_and_no_less(
    neighbours: Neighbours, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @remembered
    def seen(x: list[float]) -> Any:
        return given_to_noise(
            monkeypatch, lambda: st.mean(x, bounds=(0, 4), rho=0.5, neighbours=neighbours, target=target)
        )

    costs = [squared_mu(seen(one), seen(other)) for one, other in neighbouring(POINTS, neighbours, 1)]
    assert 1 - Fraction(1, 10**9) <= max(costs) <= 1


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_event_is_the_budget(neighbours: Neighbours, delta: float | None) -> None:
    found = st.mean([1, 2, 3], bounds=(0, 4), epsilon=0.5, delta=delta, neighbours=neighbours)
    cost = accounting.epsilon([found.event], delta or 0, neighbours=neighbours)
    assert 0.499 < cost <= 0.5
    assert found.private


def test_the_error_at_a_thousand_values() -> None:
    """RMSE 0.109: the root of 2 ((1 - p)^2 + p^2) / (0.98 n epsilon)^2 for p = 2/7, in units of the width.

    The relative standard error over 500 draws is about 4.5 %: the squared error of Laplace noise has a kurtosis of 6.
    """
    bits = SeededBits(8)
    errors = []
    for _ in range(500):
        x = beta_sample(1000, bits)
        released = pair(column(x, bounds=(0, 100)), Spending.of(epsilon=0.98), bits)  # the default has 49/50 for it
        errors.append(50 + 50 * centre_of(released) - float(x.mean()))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(0.109, abs=0.01)


@pytest.mark.slow
def test_the_default_error_at_a_thousand_values() -> None:
    bits = SeededBits(9)
    errors = []
    for _ in range(2000):
        x = beta_sample(1000, bits)
        errors.append(st.mean(x, bounds=(0, 100), epsilon=1, bits=bits).value - float(x.mean()))
    # 0.0018 of the tolerance is the share of squares, the rest are two standard errors
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(0.109, abs=0.0045)


CASES: list[tuple[int, float, dict[str, Any]]] = [
    (1000, 1, {}),
    (1000, 1, {"neighbours": "replace"}),
    (1000, 1, {"delta": 1e-6}),
    (200, 0.1, {}),
    (100, 1, {"target": "sample"}),
]


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("count", "epsilon", "options"), CASES)
def test_intervals_cover_and_are_short(count: int, epsilon: float, options: dict[str, Any]) -> None:
    """60 intervals: of those that cover 95 % fewer than 49 cover with a chance below 1e-4; the seeds are fixed."""
    bits, covered, lengths, errors = SeededBits(count), 0, [], []
    for _ in range(60):
        x = beta_sample(count, bits)
        truth = float(x.mean()) if options.get("target") == "sample" else 200 / 7
        found = st.mean(x, bounds=(0, 100), epsilon=epsilon, bits=bits, **options)
        covered += found.low <= truth <= found.high
        assert found.low <= found.value <= found.high
        lengths.append(found.high - found.low)
        errors.append(abs(found.value - float(x.mean())))
    assert covered >= 49
    deviation = 0.0 if options.get("target") == "sample" else 100 * np.sqrt(10 / 392)
    plain = 2 * 1.96 * deviation / np.sqrt(count)
    assert np.mean(lengths) < 2 * plain + 4 * np.quantile(errors, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "epsilon", "options"), [*CASES, (100, 0.1, {}), (20, 2, {}), (5000, 0.3, {})])
def test_intervals_cover_in_the_long_run(count: int, epsilon: float, options: dict[str, Any]) -> None:
    bits, covered, runs = SeededBits(count + 1), 0, 500
    for _ in range(runs):
        x = beta_sample(count, bits)
        truth = float(x.mean()) if options.get("target") == "sample" else 200 / 7
        found = st.mean(x, bounds=(0, 100), epsilon=epsilon, bits=bits, **options)
        covered += found.low <= truth <= found.high
    assert covered / runs >= 0.94 - 2 * np.sqrt(0.06 * 0.94 / runs)


@every("neighbours", BOTH)
@every("budget", [{"epsilon": 1}, {"rho": 0.1}])
@every("x", [[], [3], [np.nan, np.nan], [None, 2], [np.inf, -np.inf]])
def test_few_values_are_no_error(x: list[Any], budget: dict[str, Any], neighbours: Neighbours) -> None:
    found = st.mean(x, bounds=(-5, 5), neighbours=neighbours, **budget)
    assert -5 <= found.low <= found.value <= found.high <= 5
    if len(x) < 2 and neighbours is Neighbours.ADD_REMOVE:
        wide = [st.mean(x, bounds=(-5, 5), bits=SeededBits(seed), **budget) for seed in range(20)]
        assert sum(one.high - one.low == 10 for one in wide) >= 15


def test_a_bound_that_is_no_whole_number_of_steps_is_reached() -> None:
    found = [st.mean([0.1] * 10_000, bounds=(0, 0.1), epsilon=10, bits=SeededBits(seed)) for seed in range(40)]
    assert sum(one.low <= 0.1 <= one.high for one in found) >= 34  # fewer in 1 of 300 trials
    assert all(one.low > 0.09 for one in found)


def test_what_is_wrong_is_refused_before_the_values_are_seen() -> None:
    with pytest.raises(InvalidParameter, match="bounds"):
        st.mean(["text"], bounds=None, epsilon=1)
    with pytest.raises(InvalidParameter, match="target"):
        st.mean(["text"], bounds=(0, 1), epsilon=1, target="both")
    with pytest.raises(InvalidParameter, match="epsilon"):
        st.mean(["text"], bounds=(0, 1))
    with pytest.raises(InvalidValue):
        st.mean(["text"], bounds=(0, 1), epsilon=1)


@pytest.mark.parametrize(("sigma", "sizes"), [(1.0, [1.0]), (0.0, [2.0, 1.0]), (3.0, [0.1, 1.0, 1.0]), (50.0, [1e-6])])
def test_the_tail_of_noise_and_sample_together(sigma: float, sizes: list[float]) -> None:
    """Against 400,000 draws, whose share of a chance p errs by less than 5 sqrt(p / 400,000)."""
    bits, runs = SeededBits(3), 400_000
    drawn = sigma * normals(runs, bits=bits)
    for size in sizes:
        drawn += size * (np.log(uniforms(runs, bits=bits)) - np.log(uniforms(runs, bits=bits)))
    for distance in (0.5, 2.0, 6.0, 100.0):
        chance = float(np.mean(np.abs(drawn) > distance))
        found = float(beyond(np.array([distance]), np.array([sigma**2]), np.array(sizes)[:, None])[0])
        assert found == pytest.approx(chance, rel=0.02, abs=5 * np.sqrt(max(chance, 1e-5) / runs))


def test_an_interval_that_forgets_the_noise_covers_too_seldom() -> None:
    """n = 500 of Beta(2, 5), public, epsilon 1: 0.931 instead of 0.95, by the law of sampling error plus noise."""
    variance = 10 / (49 * 8) / 500
    covers = 1 - beyond(np.array([1.959964 * variance**0.5]), np.array([variance]), np.array([[1 / 500]]))
    assert float(covers[0]) == pytest.approx(0.931, abs=1e-3)
