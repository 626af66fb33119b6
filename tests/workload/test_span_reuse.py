"""What past releases say for free: generalised least squares, its variance, and where it has no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.lazy import stats
from discreet.noise import SeededBits
from discreet.privacy import Budget
from discreet.workload import PastRelease, Ranges, Workload, reuse
from discreet.workload.span_reuse import laplace_sum_reaches
from tests.cases import try_all


def test_answers_are_generalised_least_squares() -> None:
    strategy = np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]])
    spread = np.diag([1.0, 2, 3, 4]) + 0.5
    values = np.array([5.0, 7, 9, 16])
    queries = np.array([[0.0, 0, 1], [1, 2, 3]])
    found = reuse([PastRelease(strategy=strategy, values=values, variance=spread)], queries)
    inverse = np.linalg.inv(spread)
    information = np.linalg.inv(strategy.T @ inverse @ strategy)
    assert found.value == pytest.approx(queries @ information @ strategy.T @ inverse @ values)
    assert found.variances == pytest.approx(np.diag(queries @ information @ queries.T))
    assert found.complete
    assert found.interval.width == pytest.approx(2 * 1.959964 * np.sqrt(found.variances), rel=1e-5)


def test_what_does_not_follow_is_not_answered() -> None:
    total = PastRelease(strategy=[[1, 1, 1]], values=[30], variance=1)
    found = reuse([total, total], [[1, 1, 1], [2, 2, 2], [1, 1, 0]])
    assert found.answered.tolist() == [True, True, False]
    assert not found.complete
    assert found.variances[:2] == pytest.approx([0.5, 2])
    assert np.isnan(found.value[2])
    assert np.isinf(found.variances[2])


def test_a_workload_is_answered_from_an_earlier_one() -> None:
    counts = np.arange(8) * 10
    for budget in (Budget(rho=0.5), Budget(epsilon=1)):
        released = Workload(Ranges(8)).plan(budget=budget).release(counts, bits=SeededBits(4))
        again = Workload(Ranges(8)).reuse(released.past())
        assert again.complete
        assert again.value == pytest.approx(released.value)
        assert again.variances == pytest.approx(released.variances, rel=0.1)  # of continuous noise, if Laplace
        other = Workload(Ranges(8)).plan(budget=budget).release(counts, bits=SeededBits(5))
        both = Workload(Ranges(8)).reuse([*released.past(), *other.past()])
        assert both.variances == pytest.approx(again.variances / 2)
        truth = Ranges(8).apply(counts.astype(float))
        assert np.mean((both.interval.low <= truth) & (truth <= both.interval.high)) > 0.7


def test_sums_of_laplace_draws_stay_within_their_reach() -> None:
    """Exact tails of sums of equal draws, from the difference of two Gamma laws, and of one discrete draw."""
    nodes = np.linspace(0, 60, 60_001)
    for count in (1, 2, 5, 40):
        reach = float(laplace_sum_reaches(np.array([float(count)]), np.array([1.0]), 0.05)[0])
        tail = 2 * np.trapezoid(stats.gamma.pdf(nodes, count) * stats.gamma.sf(nodes + reach, count), nodes)
        assert tail <= 0.05 + 1e-6
        assert reach < 2 * (2 * count) ** 0.5 * 1.96
    for scale in (0.3, 1.0, 7.0):
        ratio = np.exp(-1 / scale)
        for steps in (None, np.ones(1)):
            reach = float(laplace_sum_reaches(np.array([scale**2]), np.array([scale]), 0.05, steps)[0])
            assert 2 * ratio ** (np.floor(reach) + 1) / (1 + ratio) <= 0.05


def test_bad_input_is_refused() -> None:
    good: dict[str, Any] = {"strategy": [[1, 1]], "values": [3], "variance": 1}
    bad: list[dict[str, Any]] = [
        {"strategy": [1, 1]},
        {"strategy": [[np.nan, 1]]},
        {"strategy": "a"},
        {"values": [1, 2]},
    ]
    bad += [{"values": [np.inf]}, {"variance": 0}, {"variance": -1}, {"variance": [1, 2]}, {"variance": [[1, 2]]}]
    bad += [{"variance": [[-1.0]]}, {"law": "uniform"}, {"variance": [[1.0]], "law": "laplace"}, {"values": []}]

    def is_refused(change: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter):
            PastRelease(**{**good, **change})

    try_all(bad, is_refused)
    past = PastRelease(**good)
    wrong: list[tuple[Any, Any]] = [([], [[1, 1]]), ([past], [[1, 1, 1]]), ([past], [1, 1]), ([good], [[1, 1]])]

    def reuse_is_refused(case: tuple[Any, Any]) -> None:
        with pytest.raises(InvalidParameter):
            reuse(*case)

    try_all(wrong, reuse_is_refused)
    with pytest.raises(InvalidParameter, match="confidence"):
        reuse([past], [[1, 1]], confidence=0)
