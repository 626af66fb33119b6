"""The difference of means, and any test made private by blocks: sensitivities, levels, coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet import statistics as st
from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import Neighbours
from discreet.statistics.noise_errors import beyond, half_width, number_noise
from discreet.statistics.tests import binomial as many_tests
from discreet.statistics.tests import difference_of_means as means_difference
from tests.statistics.recorded import flat, overruns, watched

RELATIONS = ["add_remove", "replace"]


def compared(x: list[float], y: list[float], relation: str, **budget: Any) -> tuple[Any, Any]:
    with watched(lambda index: 40 + index) as seen:
        found = st.difference_of_means_test(x, y, bounds=(-10, 10), neighbours=relation, bits=SeededBits(1), **budget)
    return found, seen


def worst(relation: str, **budget: Any) -> float:
    x, y = [1.0, -10.0, 10.0], [0.0, 5.0]
    _, base = compared(x, y, relation, **budget)
    found = []
    for new in (-10.0, -3.0, 0.0, 0.5, 10.0, np.inf):
        kept = x if relation == "add_remove" else x[:-1]
        for pair in (([*kept, new], y), (x, [*(y if relation == "add_remove" else y[1:]), new])):
            _, other = compared(*pair, relation, **budget)
            found += overruns(base, other)
            half = len(base.values) // 2  # one sample is untouched, which is why both cost no more than one
            untouched = slice(half, None) if pair[1] == y else slice(0, half)
            assert base.values[untouched] == other.values[untouched]
    return max(found)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}], ids=["pure", "gaussian"])
def test_neighbours_move_every_sum_of_one_sample_by_its_sensitivity_at_most(relation: str, budget: Any) -> None:
    assert 0.9 < worst(relation, **budget) <= 1


def test_a_sensitivity_without_its_factor_two_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(means_difference, "number_noise", lambda part, move: number_noise(part, max(1, move // 2)))
    assert worst("replace", epsilon=1) > 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_event_is_what_was_drawn_for_each_sample(relation: str) -> None:
    found, seen = compared([1.0, 2.0], [3.0], relation, epsilon=1)
    drawn = [mechanism.event for mechanism in seen.mechanisms]
    assert drawn == flat(found.event) * 2
    assert accounting.epsilon(found.event, 0, neighbours=Neighbours(relation)) == 1


def judged(runs: int, size: int, shift: float, **options: Any) -> tuple[float, float]:
    """The share of tests that reject at 0.1, and of 95 % intervals that cover the true difference."""
    rejected, covered = 0, 0
    for seed in range(runs):
        bits = SeededBits(300 + seed)
        x, y = uniforms(size, bits=bits) + shift, uniforms(2 * size, bits=bits)
        found = st.difference_of_means_test(x, y, bounds=(-1, 3), bits=bits, **options)
        rejected += found.reject(0.1)
        assert found.estimate is not None
        covered += found.estimate.low <= shift <= found.estimate.high
    return rejected / runs, covered / runs


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", RELATIONS)
def test_levels_and_intervals_hold(relation: str) -> None:
    """100 runs at level 0.1: 21 or more rejections has a chance of 0.001, and so has coverage of 0.87 or less."""
    rejected, covered = judged(100, 200, 0.0, epsilon=0.5, neighbours=relation)
    assert 0.01 < rejected < 0.21
    assert covered > 0.87
    rejected, covered = judged(30, 2000, 0.3, epsilon=1, delta=1e-6, neighbours=relation)
    assert rejected == 1
    assert covered > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize("budget", [{"epsilon": 0.5}, {"epsilon": 1, "delta": 1e-6}], ids=["pure", "gaussian"])
def test_levels_and_intervals_hold_closely(relation: str, size: int, budget: Any) -> None:
    """1000 runs: deviations of 0.0095 and 0.007."""
    rejected, covered = judged(1000, size, 0.0, neighbours=relation, **budget)
    assert rejected < 0.13
    assert covered > 0.93


def test_one_sided_p_values_add_up() -> None:
    x, y = [1.0] * 50, [2.0] * 50
    options: dict[str, Any] = {"bounds": (0, 3), "epsilon": 1}
    up = st.difference_of_means_test(x, y, alternative="greater", bits=SeededBits(1), **options)
    down = st.difference_of_means_test(x, y, alternative="less", bits=SeededBits(1), **options)
    assert up.p_value is not None
    assert down.p_value is not None
    assert up.p_value + down.p_value == pytest.approx(1)
    assert up.p_value > 0.5


def test_tails_and_widths_agree() -> None:
    for level in (0.5, 0.9, 0.99):
        width = half_width(level, deviation=2.0, scales=[0.5, 3.0])
        assert beyond(width, deviation=2.0, scales=[0.5, 3.0]) == pytest.approx(1 - level, abs=1e-6)


@pytest.mark.parametrize(("options", "name"), [({"bounds": None}, "bounds"), ({"alternative": "more"}, "alternative")])
def test_wrong_parameters_are_refused_before_the_data_is_touched(options: Any, name: str) -> None:
    given: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1} | options
    with pytest.raises(InvalidParameter) as caught:
        st.difference_of_means_test(object(), object(), **given)
    assert caught.value.name == name


def z_test(rows: Any) -> float:
    """P(|N(0, 1)| >= sqrt(n) |mean|), for rows of variance 1."""
    distance = float(np.sqrt(len(rows)) * abs(np.mean(rows)))
    return beyond(distance, deviation=1.0) if np.isfinite(distance) else float("nan")


@pytest.mark.parametrize("relation", RELATIONS)
def test_one_unit_changes_one_block(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With places fixed for each unit, as independent draws are, a change of one unit moves the count by 1 at most."""
    monkeypatch.setattr(many_tests, "uniform_below", lambda bound, size, *, bits: np.arange(size) % bound)  # noqa: ARG005
    counts = []
    base = [0.0, 9.0, 1.0, -0.2, 0.3, 0.1]
    for new in (0.0, 99.0, -99.0, np.nan):
        rows = [*base, new] if relation == "add_remove" else [*base[:-1], new]
        with watched(lambda index: index) as seen:
            st.test_of_tests(np.array(rows), z_test, blocks=3, epsilon=1, neighbours=relation, bits=SeededBits(1))
        counts.append(seen.values[0])
    assert max(counts) - min(counts) == 1


def test_what_fails_does_not_reject_and_is_not_seen() -> None:
    def fragile(rows: Any) -> float:
        if rows.max() > 5:
            raise ValueError("private")
        return float("nan") if rows.min() < -5 else 0.0

    with watched(lambda index: index) as seen:
        st.test_of_tests(np.array([9.0, -9.0] * 40), fragile, blocks=4, epsilon=1, bits=SeededBits(1))
    assert seen.values == [0]


@pytest.mark.ci
def test_the_level_is_kept_and_differences_are_found() -> None:
    """100 tests at level 0.1: 21 or more rejections has a chance of 0.001."""
    rejected = 0
    for seed in range(100):
        bits = SeededBits(seed)
        rejected += st.test_of_tests(normals(200, bits=bits), z_test, blocks=20, epsilon=0.7, bits=bits).reject(0.1)
    assert 1 < rejected < 21
    bits = SeededBits(7)
    assert st.test_of_tests(normals(2000, bits=bits) + 0.5, z_test, blocks=40, epsilon=1, bits=bits).reject(0.01)


def test_several_arrays_are_cut_alike() -> None:
    def same(first: Any, second: Any) -> float:
        return 0.0 if (first == second).all() else 1.0

    rows = np.arange(300.0)
    assert st.test_of_tests((rows, rows), same, blocks=30, epsilon=1, bits=SeededBits(1)).reject(0.01)
    with pytest.raises(InvalidValue):
        st.test_of_tests((rows, rows[:5]), same, blocks=30, epsilon=1)
    with pytest.raises(InvalidParameter) as caught:
        st.test_of_tests(rows, 0.5, blocks=30, epsilon=1)  # type: ignore[arg-type]
    assert caught.value.name == "test"
