"""The best Gram matrix: closed forms, published optima, bounds from both sides, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.mechanisms.optimal_gram import OptimalGram, optimal_gram
from tests.cases import try_all


def _is_certain(found: OptimalGram, gram: Any) -> None:
    """The bounds hold: X is feasible, its variance is what it says, and the lower bound is near."""
    assert np.diag(found.gram).max() <= 1 + 1e-12
    assert np.trace(gram @ np.linalg.inv(found.gram)) == pytest.approx(found.total_variance, rel=1e-9)
    assert found.lower_bound <= found.total_variance * (1 + 1e-12)
    assert found.total_variance <= found.lower_bound * (1 + 1.1e-6)


def _prefixes(n: int) -> Any:
    ones = np.tril(np.ones((n, n)))
    return ones.T @ ones


@pytest.mark.parametrize(("n", "mean"), [(8, 2.233272), (64, 4.409397)])
def test_running_totals_have_the_published_optimum(n: int, mean: float) -> None:
    found = optimal_gram(_prefixes(n))
    _is_certain(found, _prefixes(n))
    assert found.total_variance / n == pytest.approx(mean, abs=1e-5)


@pytest.mark.slow
def test_a_year_of_running_totals_has_the_published_optimum() -> None:
    assert optimal_gram(_prefixes(365)).total_variance / 365 == pytest.approx(6.939352, abs=2e-5)


def test_closed_forms_are_met() -> None:
    assert optimal_gram(np.eye(5)).total_variance == pytest.approx(5)
    weighted = np.diag([1.0, 4.0, 9.0])  # queries of different weight: one unit is in one cell, each has all the budget
    assert optimal_gram(weighted).total_variance == pytest.approx(14)
    circulant = np.eye(6) * 3 + np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    roots = np.sqrt(np.linalg.eigvalsh(circulant))  # of all equal diagonal entries: (sum of roots)^2 / n
    assert optimal_gram(circulant).total_variance == pytest.approx(np.sum(roots) ** 2 / 6)


def test_marginals_of_two_attributes_have_the_published_optimum() -> None:
    workload = np.vstack([np.kron(np.eye(2), np.ones((1, 3))), np.kron(np.ones((1, 2)), np.eye(3)), np.eye(6)])
    assert optimal_gram(workload.T @ workload).total_variance == pytest.approx(16.379882, abs=1e-5)


def test_a_workload_of_lower_rank_is_answered_through_a_basis() -> None:
    one_way = np.vstack([np.kron(np.eye(2), np.ones((1, 3))), np.kron(np.ones((1, 2)), np.eye(3))])
    basis = one_way[:4]
    weights = one_way @ np.linalg.pinv(basis)
    found = optimal_gram(weights.T @ weights, basis=basis)
    assert np.diag(basis.T @ found.gram @ basis).max() <= 1 + 1e-12
    assert found.total_variance == pytest.approx(np.trace(weights.T @ weights @ np.linalg.inv(found.gram)))
    nearly = one_way.T @ one_way + 1e-9 * np.eye(6)  # a ridge makes it of full rank, and costs a little
    assert found.lower_bound <= optimal_gram(nearly).total_variance
    assert found.total_variance == pytest.approx(optimal_gram(nearly).lower_bound, rel=1e-3)
    total = optimal_gram(np.array([[3.0]]), basis=np.ones((1, 7)))  # the same total three times: each has variance 1
    assert total.total_variance == pytest.approx(3)


def test_random_workloads_are_certain_and_no_strategy_is_better() -> None:
    state = np.sin(np.arange(1, 6 * 9 * 7 + 1) ** 1.5).reshape(6, 9, 7)  # fixed, and without structure
    for workload in state:
        gram = workload.T @ workload
        found = optimal_gram(gram)
        _is_certain(found, gram)
        for other in (np.eye(7), workload):
            lengths = np.max(np.sum(other * other, axis=0))
            assert found.total_variance <= np.trace(gram @ np.linalg.inv(other.T @ other)) * lengths * (1 + 1e-9)


def test_the_triangular_factor_is_one() -> None:
    found = optimal_gram(_prefixes(9))
    factor = found.triangular_factor()
    assert np.array_equal(factor, np.tril(factor))
    assert factor.T @ factor == pytest.approx(found.gram)


def test_bad_matrices_are_refused() -> None:
    bad: list[Any] = [np.ones((2, 3)), np.ones(3), np.zeros((0, 0)), np.ones((2, 2)), -np.eye(2), np.zeros((2, 2))]
    bad += [np.array([[1.0, np.nan], [np.nan, 1.0]]), np.array([[1.0, 0.5], [0.0, 1.0]])]

    def check(matrix: Any) -> None:
        with pytest.raises(InvalidParameter) as refused:
            optimal_gram(matrix)
        assert refused.value.name == "workload_gram"

    try_all(bad, check)
    with pytest.raises(InvalidParameter, match="4096"):
        optimal_gram(np.broadcast_to(np.float64(1), (5000, 5000)))
    with pytest.raises(InvalidParameter, match="precision"):
        optimal_gram(np.eye(2), precision=0)
