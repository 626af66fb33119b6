"""Regression by bounded scores: exact sensitivities under both relations, the account of a run, and coverage."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet import statistics as st
from discreet.errors import InvalidParameter, InvalidValue
from discreet.noise import SeededBits
from discreet.noise.experiment import coins, normals, uniforms
from discreet.privacy import Neighbours
from discreet.statistics.robust.regression_plan import NumericResponse
from discreet.statistics.row_sums import SymmetricNoise
from tests.statistics.recorded import flat, overruns, watched

RELATIONS = ["add_remove", "replace"]
ROWS = [([0.3, -0.2], 1.0), ([1.0, 1.0], 0.0), ([-5.0, 2.0], 1.0), ([0.0, 0.5], 0.5)]
EXTRA = [(list(x), y) for x, y in product([(0.0, 0.0), (1.0, 0.0), (-9.0, 0.1), (np.nan, 1.0)], [0.0, 1.0, -3.0, 9.0])]
BINARY: Any = "logistic_regression"


def run(table: list[tuple[list[float], float]], relation: str, psi: Any, **options: Any) -> tuple[Any, Any]:
    X, y = np.array([row for row, _ in table]), np.array([target for _, target in table])
    public: dict[str, Any] = {} if psi == BINARY else {"bounds": (-4, 4), "scale": 0.7}
    with watched(lambda index: (1 << 19) + index) as seen:  # a median in the middle, short steps
        estimate = st.m_regression(
            X, y, psi=psi, norm_bound=1, neighbours=relation, bits=SeededBits(1), **public, **options
        )
    return estimate, seen


def worst(relation: str, psi: Any, **options: Any) -> float:
    base, seen = run(ROWS, relation, psi, **options)
    kept = ROWS if relation == "add_remove" else ROWS[:-1]
    runs = [run([*kept, row], relation, psi, **options) for row in EXTRA]
    found = []
    for estimate, other in runs:
        assert (estimate.value == base.value).all()  # nothing else is a function of the data
        assert (estimate.high == base.high).all()
        found += overruns(seen, other)
    if relation == "replace":  # every new row against every other one
        found += [ratio for one, other in product(runs, runs) for ratio in overruns(one[1], other[1])]
    return max(found)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("psi", [st.Huber(), st.Biweight(), st.Logistic(), BINARY], ids=str)
@pytest.mark.parametrize("method", ["newton", "gradient"])
def test_neighbours_move_every_sum_by_its_sensitivity_at_most(relation: str, psi: Any, method: str) -> None:
    assert 0.5 < worst(relation, psi, epsilon=1, delta=1e-6, method=method, steps=2) <= 1


def test_signed_slopes_need_twice_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert NumericResponse(st.Biweight()).signed
    assert not NumericResponse(st.Huber()).signed
    monkeypatch.setattr(NumericResponse, "signed", property(lambda self: False))  # noqa: ARG005
    assert worst("replace", st.Biweight(1.85), epsilon=1, delta=1e-6, steps=2) > 1


def test_a_limit_without_the_root_of_two_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SymmetricNoise, "sensitivity", property(lambda self: Fraction(self.limit)))
    far = [([1.0, 0.0], 1.0), ([-1.0, 0.0], 1.0)]
    X, y = np.array([row for row, _ in far]), np.array([target for _, target in far])
    sums = []
    for index in (0, 1):
        with watched(lambda step: (1 << 19) + step) as seen:
            st.m_regression(
                X[[index]], y[[index]], psi=BINARY, norm_bound=1, epsilon=1, delta=1e-6, neighbours="replace", steps=1
            )
        sums.append(seen)
    assert max(overruns(*sums)) > 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("options", [{}, {"method": "gradient"}, {"steps": 3, "intercept": False}], ids=str)
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}], ids=["pure", "gaussian"])
def test_the_event_is_what_was_drawn(relation: str, options: Any, budget: Any) -> None:
    estimate, seen = run(ROWS, relation, st.Huber(), **options, **budget)
    assert flat(estimate.event) == [mechanism.event for mechanism in seen.mechanisms]
    delta = Fraction(1, 10**6) if "delta" in budget else 0
    assert 0.9 < accounting.epsilon(estimate.event, delta, neighbours=Neighbours(relation)) <= 1


def test_newton_asks_for_no_number_of_rows() -> None:
    _, seen = run(ROWS, "add_remove", BINARY, epsilon=1, delta=1e-6, method="newton")
    assert not any(np.shape(value) == () for value in seen.values)


def test_few_rows_are_fitted_by_gradient_steps() -> None:
    few, _ = run(ROWS * 10, "replace", BINARY, epsilon=1, delta=1e-6)
    many, _ = run(ROWS * 5000, "replace", BINARY, epsilon=1, delta=1e-6)
    assert len(flat(few.event)) == 102  # 100 gradients, squares, slopes
    assert len(flat(many.event)) == 12  # 5 gradients with curvatures, squares, slopes


def made(size: int, kind: Any, bits: SeededBits) -> tuple[Any, Any, Any]:
    """Rows in a square, and numbers with wild values or classes, from known coefficients."""
    X = np.sqrt(2) * (uniforms((size, 2), bits=bits) - 0.5)
    if kind == BINARY:
        truth = np.array([2.0, -1.0, 0.5])
        chance = 1 / (1 + np.exp(-(X @ truth[:2] + truth[2])))
        return X, (uniforms(size, bits=bits) < chance).astype(float), truth
    truth = np.array([2.0, -1.0, 5.0])
    wild = uniforms(size, bits=bits) < 0.05
    errors = np.where(wild, 20.0 * coins(size, bits=bits) - 10, 0.5 * normals(size, bits=bits))
    return X, X @ truth[:2] + truth[2] + errors, truth


def coverage(runs: int, size: int, kind: Any, **options: Any) -> Any:
    hits = np.zeros(3)
    public: dict[str, Any] = {} if kind == BINARY else {"bounds": (-20, 20), "scale": 0.5}
    for seed in range(runs):
        bits = SeededBits(900 + seed)
        X, y, truth = made(size, kind, bits)
        found = st.m_regression(X, y, psi=kind, norm_bound=1, bits=bits, **public, **options)
        hits += (found.low <= truth) & (truth <= found.high)
    return hits / runs


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [st.Huber(), BINARY], ids=str)
def test_intervals_cover_the_population(kind: Any) -> None:
    """Of 120 intervals with 0.95 each, 105 or fewer (0.875) has a chance of 0.001."""
    assert coverage(40, 3000, kind, epsilon=1, delta=1e-6).mean() > 0.875


@pytest.mark.slow
@pytest.mark.parametrize("kind", [st.Huber(), st.Biweight(), BINARY], ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
def test_intervals_cover_the_population_closely(kind: Any, relation: str) -> None:
    """Of 900 intervals with 0.95 each, 0.925 or less has a chance of 0.001 if they were independent."""
    assert coverage(300, 5000, kind, epsilon=1, delta=1e-6, neighbours=relation).mean() > 0.925


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"norm_bound": None}, "norm_bound"),
        ({"bounds": None}, "bounds"),
        ({"scale": 0}, "scale"),
        ({"scale": 1e-9}, "scale"),
        ({"psi": "huber"}, "psi"),
        ({"psi": st.Huber(4.1)}, "psi"),
        ({"epsilon": None}, "epsilon"),
        ({"intercept": 1}, "intercept"),
    ],
)
def test_wrong_parameters_are_refused_before_the_data_is_touched(options: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"psi": st.Huber(), "bounds": (-10, 10), "norm_bound": 1, "epsilon": 1} | options
    with pytest.raises(InvalidParameter) as caught:
        st.m_regression(object(), object(), **given)
    assert caught.value.name == name


def test_methods_and_shapes_are_checked() -> None:
    with pytest.raises(InvalidParameter) as caught:
        st.m_regression([[1.0]], [1], psi=BINARY, norm_bound=1, epsilon=1, method="exact")  # type: ignore[arg-type]
    assert caught.value.name == "method"
    with pytest.raises(InvalidValue):
        st.m_regression([[1.0]], [1, 0], psi=BINARY, norm_bound=1, epsilon=1)


def test_the_largest_score_has_room() -> None:
    estimate, _ = run(ROWS, "replace", st.Huber(4), epsilon=1, delta=1e-6)
    assert np.isfinite(estimate.value).all()


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_rows_are_no_error(relation: str) -> None:
    found = st.m_regression(
        np.zeros((0, 2)), [], psi=BINARY, norm_bound=1, epsilon=1, delta=1e-6, neighbours=relation, bits=SeededBits(1)
    )
    assert np.isfinite(found.value).all()
