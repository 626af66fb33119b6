"""Covariances: what one row moves, what the noise costs, and how often entries are covered."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet import statistics as st
from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.statistics.inputs import RADIUS
from discreet.statistics.moments.covariance import scale_of
from tests.statistics.recorded import BOTH, given_to_noise, neighbouring, remembered, squared_mu

ROWS = [(0.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (0.3, -0.7), (9.0, 0.0), (np.nan, -1.0)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("public", [{"bounds": (-1, 1)}, {"norm_bound": 1.4}])
def test_noise_costs_mu_at_most(
    neighbours: Neighbours, public: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under replace the sums move most for opposite rows and the squares for orthogonal ones: never both."""

    @remembered
    def seen(rows: list[Any]) -> Any:
        table = np.array(rows, dtype=float).reshape(-1, 2)
        return given_to_noise(
            monkeypatch, lambda: st.covariance(table, rho=0.5, neighbours=neighbours, bits=SeededBits(1), **public)
        )

    def cost(one: list[Any], other: list[Any]) -> Fraction:
        return squared_mu(seen(one), seen(other))

    costs = [cost(one, other) for one, other in neighbouring(ROWS, neighbours, 1)]
    assert max(costs) <= 1
    assert max(costs) > (Fraction(99, 100) if neighbours is Neighbours.ADD_REMOVE else Fraction(8, 10))


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_event_is_the_budget(neighbours: Neighbours) -> None:
    found = st.covariance([[1, 2], [3, 4]], bounds=(0, 5), epsilon=0.5, delta=1e-6, neighbours=neighbours)
    assert 0.499 < accounting.epsilon([found.event], 1e-6, neighbours=neighbours) <= 0.5


def test_rows_are_clipped_to_their_bounds_and_their_length() -> None:
    scale = scale_of(2, (0, [2, 4]), None)
    rows = scale.rows(np.array([[1.0, 2.0], [2.0, 4.0], [1e9, -1e9], [np.nan, np.inf]]))
    most = scale.most
    assert rows.tolist() == [[0, 0], [most, most], [most, -most], [0, most]]
    assert 2 * most * most <= RADIUS**2
    long = scale_of(2, None, 5).rows(np.array([[3.0, 4.0], [30.0, 40.0]]))
    assert long[1].tolist() == pytest.approx(long[0].tolist(), abs=1)
    assert (np.sum(long**2, axis=1) <= RADIUS**2).all()


def sample(count: int, bits: SeededBits) -> Any:
    """Two normal columns of deviation 1 with a correlation of 0.6."""
    plain = normals((count, 2), bits=bits)
    return np.stack([plain[:, 0], 0.6 * plain[:, 0] + 0.8 * plain[:, 1]], axis=1)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("runs", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_entries_are_covered(neighbours: Neighbours, runs: int) -> None:
    bits = SeededBits(runs)
    truth, together = np.array([[1, 0.6], [0.6, 1]]), np.array([[1, 0.6], [0.6, 1]])
    missed, far = np.zeros((2, 2)), np.zeros((2, 2))
    for _ in range(runs):
        x = sample(2000, bits)
        options: Any = {"bounds": (-5, 5), "epsilon": 1, "delta": 1e-6, "neighbours": neighbours, "bits": bits}
        found = st.covariance(x, **options)
        missed += (found.low > truth) | (found.high < truth)
        assert (found.low <= found.value).all()
        assert (found.value <= found.high).all()
        assert np.linalg.eigvalsh(found.value).min() > -1e-9
        related = st.correlation(x, **options)
        far += (related.low > together) | (related.high < together)
        assert np.diagonal(related.value).tolist() == [1, 1]
    assert missed.max() <= 0.06 * runs
    assert far.max() <= 0.06 * runs


def test_many_rows_give_the_truth() -> None:
    bits = SeededBits(9)
    x = sample(200_000, bits)
    found = st.covariance(x, bounds=(-5, 5), epsilon=5, delta=1e-6, bits=bits)
    assert found.value == pytest.approx(np.cov(x.T), abs=0.01)
    assert np.max(found.high - found.low) < 0.1


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("rows", [np.zeros((0, 3)), np.ones((1, 3)), np.full((2, 3), np.nan)])
def test_few_rows_are_no_error(rows: Any, neighbours: Neighbours) -> None:
    found = st.covariance(rows, bounds=(0, 2), rho=0.1, neighbours=neighbours)
    assert np.isfinite([found.value, found.low, found.high]).all()
    assert (np.abs(found.value) <= 1).all()
    related = st.correlation(rows, norm_bound=2, rho=0.1, neighbours=neighbours)
    assert (np.abs(related.value) <= 1).all()


def test_what_is_wrong_is_refused() -> None:
    rows = [["a", "b"]]
    wrong: list[Any] = [{}, {"bounds": (0, 1), "norm_bound": 1}, {"bounds": 3}, {"bounds": ([0, 0, 0], 1)}]
    for public in wrong:
        with pytest.raises((InvalidParameter, InvalidValue)):
            st.covariance(np.zeros((2, 2)), epsilon=1, delta=1e-6, **public)
    with pytest.raises(InvalidParameter, match="delta"):
        st.covariance(rows, bounds=(0, 1), epsilon=1)
    with pytest.raises(InvalidValue):
        st.covariance(rows, bounds=(0, 1), epsilon=1, delta=1e-6)
