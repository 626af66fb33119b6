"""Counts in public bins, and bounds that are found by them."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet import statistics as st
from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.statistics.histogram import _BINS, _counts, _ends
from tests.statistics.recorded import BOTH, given_to_noise, neighbouring, pure_loss, remembered, squared_mu

VALUES = [-np.inf, 0.0, 1.5, 2.0, np.nan]


def _both_costs(ask: Any, neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> tuple[Fraction, Fraction]:
    """The most that epsilon=1 and rho=1/2 cost between neighbours, the latter as mu^2."""
    pure = remembered(lambda x: given_to_noise(monkeypatch, lambda: ask(x, neighbours=neighbours, epsilon=1)))
    normal = remembered(lambda x: given_to_noise(monkeypatch, lambda: ask(x, neighbours=neighbours, rho=0.5)))
    pairs = list(neighbouring(VALUES, neighbours, 1))
    one = max(pure_loss(pure(mine), pure(other)) for mine, other in pairs)
    return one, max(squared_mu(normal(mine), normal(other)) for mine, other in pairs)


@pytest.mark.parametrize("neighbours", BOTH)
def test_counts_cost_the_budget(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    pure, squared = _both_costs(partial(st.histogram, bins=[0, 1, 2]), neighbours, monkeypatch)
    assert pure == 1
    assert 1 - Fraction(1, 10**9) <= squared <= 1


@pytest.mark.parametrize("neighbours", BOTH)
def test_bounds_cost_the_budget(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    pure, squared = _both_costs(st.find_bounds, neighbours, monkeypatch)
    assert pure == 1
    assert 1 - Fraction(1, 10**9) <= squared <= 1


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_event_is_the_budget(neighbours: Neighbours, delta: float | None) -> None:
    found = st.histogram([1, 2], bins=[0, 5], epsilon=0.5, delta=delta, neighbours=neighbours)
    assert 0.499 < accounting.epsilon([found.event], delta or 0, neighbours=neighbours) <= 0.5
    bounds = st.find_bounds([1, 2], epsilon=0.5, neighbours=neighbours)
    assert accounting.epsilon([bounds.event], 0, neighbours=neighbours) == 0.5


STATISTICS: list[Any] = [st.mean, st.variance, st.median, st.interquartile_range]


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.1}])
def test_statistics_find_their_bounds(statistic: Any, budget: dict[str, Any]) -> None:
    bits = SeededBits(13)
    x = 1000 + 100 * normals(20_000, bits=bits)
    truth = {st.mean: 1000, st.variance: 10_000, st.median: 1000, st.interquartile_range: 134.898}[statistic]
    found = statistic(x, bounds="find", bits=bits, **budget)
    assert found.low <= truth <= found.high
    assert found.high - found.low < truth  # the bounds are a power of two or two apart
    if "epsilon" in budget:
        assert 0.999 < accounting.epsilon([found.event], 0) <= 1
    with pytest.raises(InvalidParameter, match="bounds"):
        statistic(x, bounds="guess", **budget)


@pytest.mark.parametrize("neighbours", BOTH)
def test_finding_bounds_and_a_mean_cost_the_budget(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw returns 0, so that the bounds that are found are the same for both."""

    @remembered
    def seen(x: list[float]) -> Any:
        return given_to_noise(monkeypatch, lambda: st.mean(x, bounds="find", epsilon=1, neighbours=neighbours))

    costs = [pure_loss(seen(one), seen(other)) for one, other in neighbouring(VALUES, neighbours, 1)]
    assert Fraction(95, 100) <= max(costs) <= 1


def test_bins_and_categories_hold_what_they_say() -> None:
    x = [-1, 0, 0.5, 1, 2, 2, 3, np.nan, np.inf, None]
    binned = st.histogram(x, bins=[0, 1, 2], epsilon=200)
    assert binned.value.tolist() == [2, 3]
    words = ["a", "b", "a", None, ["list"], 3, 3.0, float("nan")]
    named = st.histogram(words, categories=["b", "a", 3, "none of them"], epsilon=200)
    assert named.value.tolist() == [1, 2, 2, 0]
    assert st.histogram([], categories=["a"], epsilon=200).value.tolist() == [0]
    assert st.histogram([], bins=[0, 1], rho=20_000).value.tolist() == [0]


def test_intervals_cover_the_counts() -> None:
    """4000 intervals of 95 %: 5 deviations of the share that cover are 1.7 %."""
    bits = SeededBits(5)
    budgets: list[dict[str, Any]] = [{"epsilon": 0.3}, {"rho": 0.1}]
    for budget in budgets:
        found = st.histogram([], categories=list(range(4000)), bits=bits, **budget)
        share = float(np.mean((found.low <= 0) & (found.high >= 0)))
        assert 0.933 < share < 0.99  # whole numbers cover a little more


def test_every_number_is_in_the_bin_that_says_so() -> None:
    numbers = [0.0, -0.0, 5e-324, 2.0**-31, 2.0**-30, -(2.0**-30), 1.0, 1.999, -2.0, 3.5, 1e15, 1e300, -1e300]
    for number in [*numbers, np.inf, -np.inf]:
        counts = _counts(np.array([number]))
        assert counts.size == 2 * _BINS + 1
        low, high = _ends(int(np.flatnonzero(counts)[0]))
        far = np.clip(number, -(2.0**60), np.nextafter(2.0**60, 0))
        assert low <= far <= high
    ends = [_ends(place) for place in range(2 * _BINS + 1)]
    assert all(one[1] == other[0] for one, other in pairwise(ends))


@pytest.mark.parametrize("neighbours", BOTH)
def test_bounds_hold_nearly_all_values_and_little_more(neighbours: Neighbours) -> None:
    bits = SeededBits(7)
    x = 1000 + 100 * normals(5000, bits=bits)
    for _ in range(20):
        found = st.find_bounds(x, epsilon=1, neighbours=neighbours, bits=bits)
        assert found.pair in ((512.0, 2048.0), (512.0, 1024.0))
        assert np.mean((x < found.low) | (x > found.high)) < 0.02
    assert st.find_bounds(-x, epsilon=1, bits=bits).pair == (-2048.0, -512.0)
    mean = st.mean(x, bounds=found.pair, epsilon=1, bits=bits)
    assert mean.low <= 1000 <= mean.high


def test_empty_bins_are_hardly_ever_found() -> None:
    """At a risk of 1 % for all bins together, more than 8 of 200 have a chance below 1e-3."""
    bits = SeededBits(11)
    found = [st.find_bounds([], epsilon=1, bits=bits).pair for _ in range(200)]
    assert sum(pair != (0.0, 1.0) for pair in found) <= 8


def test_what_is_wrong_is_refused() -> None:
    wrong: list[Any] = [
        {},
        {"bins": [1]},
        {"bins": [2, 1]},
        {"bins": ["a", "b"]},
        {"bins": [0, np.nan]},
        {"categories": []},
        {"categories": ["a", "a"]},
        {"categories": [[1]]},
        {"bins": [0, 1], "categories": ["a"]},
    ]
    for options in wrong:
        with pytest.raises(InvalidParameter):
            st.histogram([1], epsilon=1, **options)
    for table in ([[1, 2]], "text"):
        with pytest.raises(InvalidValue):
            st.histogram(table, bins=[0, 1], epsilon=1)
        with pytest.raises(InvalidValue):
            st.histogram(table, categories=["a"], epsilon=1)
    with pytest.raises(InvalidParameter):
        st.find_bounds([1], epsilon=0)
