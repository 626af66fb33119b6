"""Regression: what one row moves, what is paid, what comes out and how sure it is."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression as Exact
from sklearn.linear_model import Ridge as ExactRidge

from discreet.errors import InvalidParameter
from discreet.learn import PCA, GaussianNB, noisy_moments
from discreet.learn.features import features
from discreet.learn.linear import regression as linear_regression
from discreet.learn.linear.regression import LinearRegression, Ridge
from discreet.learn.noisy_moments import NumericLabels, joint_rows, label_radius, release_moments, squared_norm
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.privacy.events import Gaussian
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS
from discreet.statistics.row_sums import moment_sensitivity, second_moments
from tests.learn.spying import squared_distance, told

WILD = np.array(
    [
        [3.0, 0.0, 5.0],
        [0.0, 3.0, -5.0],
        [-3.0, 0.0, 5.0],
        [1e9, -1e300, np.inf],
        [np.nan, 2.0, -1e200],
        [0.1, np.inf, np.nan],
        [2.1, 2.1, -4.0],
        [0.0, 0.0, 0.0],
    ]
)


def model(**given: Any) -> LinearRegression:
    chosen = {"epsilon": 1, "delta": 1e-6, "norm_bound": 3.0, "label_bounds": (-5.0, 5.0), "random_state": 1, **given}
    return LinearRegression(**chosen)


def heard(rows: np.ndarray, **given: Any) -> list[Any]:
    return told(lambda: model(**given).fit(rows[:, :2], rows[:, 2]))


def worst(neighbours: str, **given: Any) -> Fraction:
    """The largest squared distance between neighbouring tables, over what is allowed: at most 1."""
    base = WILD[:2]
    largest = Fraction(0)
    if neighbours == "replace":
        tables = [np.vstack([base, row]) for row in WILD]
        pairs = list(combinations(range(len(tables)), 2))
    else:
        tables = [base, *(np.vstack([base, row]) for row in WILD)]
        pairs = [(0, place) for place in range(1, len(tables))]
    heard_all = [heard(table, neighbours=neighbours, **given) for table in tables]
    for left, right in pairs:
        largest = max(largest, squared_distance(heard_all[left], heard_all[right]))
    event = model(neighbours=neighbours, **given).plan_event(2)
    assert isinstance(event, Gaussian)
    return largest * event.noise_multiplier**2


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_row_moves_the_moments_further_than_was_paid(neighbours: str, fit_intercept: bool) -> None:
    found = worst(neighbours, fit_intercept=fit_intercept)
    assert found <= 1
    assert found > Fraction(9, 10)  # and the bound is reached, but for rounding


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_bounds_that_touch_zero_leave_nothing_without_noise(neighbours: str) -> None:
    """A peer stores the exact diagonal where a lower bound is 0, and never clips without an intercept."""
    for fit_intercept in (True, False):
        given = {"norm_bound": None, "bounds": ([0, 0], [10, 1]), "fit_intercept": fit_intercept}
        found = heard(WILD, neighbours=neighbours, **given)
        assert sum(np.size(one.value) for one in found) == 4 * 5 // 2  # every entry of the upper half meets noise
        assert min(one.sigma for one in found) > RADIUS**2
        assert worst(neighbours, **given) <= 1


def test_a_forgotten_factor_under_replace_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        noisy_moments, "moment_sensitivity", lambda norm, _: moment_sensitivity(norm, Neighbours.ADD_REMOVE)
    )
    assert worst("add_remove") <= 1
    assert worst("replace") > 1


def test_labels_that_are_not_clipped_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumericLabels, "clip_steps", lambda _self, steps: steps)
    assert worst("add_remove") > 1


def test_labels_left_out_of_the_sensitivity_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_moments, "squared_norm", lambda _labels: RADIUS**2)
    assert worst("add_remove") > 1


def test_known_moments_and_sensitivities() -> None:
    rows, y = np.array([[3, -1], [2, 2], [0, 4]]), np.array([5, -4, 1])
    found = second_moments(np.column_stack([rows, y]))
    assert found[:2, :2].tolist() == [[13, 1], [1, 21]]
    assert found[:2, 2].tolist() == [7, -9]
    assert float(moment_sensitivity(16, Neighbours.REPLACE)) == pytest.approx(22.627417)
    rows = np.array([[4, 0], [0, 4], [-4, 0]])
    joint = [np.outer(row, row) for row in rows]
    assert max(np.linalg.norm(joint[0] - other) for other in joint) == pytest.approx(22.627417)
    assert np.linalg.norm(rows[0] * 5) == 20
    assert np.linalg.norm(rows[0] * 5 - rows[2] * 5) == 40


def test_squared_labels_are_free_under_replace() -> None:
    """Rows and cross moments with weights a = b = 1 move by 4.5 (brute force); the joint matrix by no more."""
    angles, labels = np.linspace(0, np.pi, 181), np.array([-1.0, 1.0])
    moves = [
        2
        - 2 * np.cos(angle) ** 2
        + np.sum((y * np.array([1.0, 0]) - z * np.array([np.cos(angle), np.sin(angle)])) ** 2)
        for angle in angles
        for y in labels
        for z in labels
    ]
    assert max(moves) == pytest.approx(4.5, abs=1e-3)
    half = Fraction(1, 2)  # labels of this squared length beside rows of length 1: cross moments have b = 2 T = 1
    assert 2 * (1 + half) ** 2 == Fraction(9, 2)


def test_noise_beside_the_diagonal_has_half_the_variance() -> None:
    public = features(2, norm_bound=1.0, constant=0.5)
    labels = NumericLabels(centre=np.zeros(1), spread=np.ones(1), radius=100)
    spending = Spending.of(rho=0.5)
    found = told(
        lambda: release_moments(
            joint_rows(public, np.zeros((1, 2)), labels, np.zeros((1, 1))),
            public=public,
            labels=labels,
            spending=spending,
            neighbours=Neighbours.ADD_REMOVE,
            bits=SeededBits(1),
        )
    )
    sigmas = sorted(float(one.sigma) for one in found)
    assert sigmas == pytest.approx([squared_norm(labels) / np.sqrt(2), squared_norm(labels)])


def rows_and_labels(seed: int, n: int = 4000, d: int = 4) -> tuple[Any, Any, Any]:
    bits = SeededBits(seed)
    X, noise, theta = normals((n, d), bits=bits), normals(n, bits=bits), normals(d, bits=bits)
    return X, X @ theta + 0.5 + noise, theta


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_event_is_the_plan_and_costs_no_more_than_asked(neighbours: str) -> None:
    X, y, _ = rows_and_labels(1, n=50)
    found = model(neighbours=neighbours).fit(X, y)
    assert found.event_ == model(neighbours=neighbours).plan_event(4)
    assert 0.999 < getattr(found.privacy_spent_, "epsilon", 2) <= 1
    assert not found.private_
    assert LinearRegression(norm_bound=3, label_bounds=(-5, 5)).fit(X, y).private_


def test_with_little_noise_it_is_least_squares() -> None:
    X, y, _ = rows_and_labels(2)
    for intercept in (True, False):
        found = model(epsilon=1e5, norm_bound=8.0, label_bounds=(-9, 9), fit_intercept=intercept).fit(X, y)
        exact = Exact(fit_intercept=intercept).fit(X, y)
        assert found.coef_ == pytest.approx(exact.coef_, abs=0.01)
        assert found.intercept_ == pytest.approx(exact.intercept_, abs=0.01)
        shifted = model(epsilon=1e5, norm_bound=None, bounds=(-5, 9), label_bounds=(-9, 11), fit_intercept=intercept)
        assert shifted.fit(X, y).predict(X[:9]) == pytest.approx(exact.predict(X[:9]), abs=0.05)


def test_several_labels_and_a_penalty() -> None:
    X, y, _ = rows_and_labels(3)
    both = np.column_stack([y, 2 * X[:, 0] + 10])
    bounds = ([-9, 0], [9, 20])
    found = Ridge(alpha=3000.0, epsilon=1e5, norm_bound=8.0, label_bounds=bounds, random_state=1).fit(X, both)
    exact = ExactRidge(3000.0).fit(X, both)
    assert found.coef_ == pytest.approx(exact.coef_, abs=0.01)
    assert found.intercept_ == pytest.approx(exact.intercept_, abs=0.02)
    assert found.coef_interval_[0].shape == (2, 4)


def test_shrinking_rows_with_their_labels_does_not_move_coefficients() -> None:
    X, y, theta = rows_and_labels(4, n=20_000)
    found = model(epsilon=1e5, norm_bound=1.0, label_bounds=(-9, 9)).fit(X, y)
    assert found.coef_ == pytest.approx(theta, abs=0.05)


def test_rows_without_a_label_count_nowhere() -> None:
    X, y, _ = rows_and_labels(5, n=100)
    half = np.where(np.arange(100) < 50, y, np.nan)
    everything = told(lambda: model(norm_bound=8).fit(X, half))
    known = told(lambda: model(norm_bound=8).fit(X[:50], y[:50]))
    assert squared_distance(everything, known) == 0


def coverage(seeds: range, epsilon: float) -> tuple[float, float]:
    hits, widths = [], []
    for seed in seeds:
        X, y, theta = rows_and_labels(seed)
        found = model(epsilon=epsilon, norm_bound=2.6, label_bounds=(-9, 9), random_state=seed).fit(X, y)
        low, high = found.coef_interval_
        hits.append((low <= theta) & (theta <= high))
        widths.append(high - low)
    return float(np.mean(hits)), float(np.mean(widths))


def test_intervals_cover_the_coefficients() -> None:
    hit, width = coverage(range(100, 120), 1.0)  # 80 intervals: at 95 %, 69 or fewer hits have a chance below 0.3 %
    assert hit >= 69 / 80
    sampling, noise = 1.96 / np.sqrt(4000), 1.96 * 4.2247 * 2.6 * 9 / 4000  # of the cross moments alone, all budget
    assert width < 2 * (2 * sampling) + 2 * (2 * noise)


@pytest.mark.slow
def test_intervals_cover_the_coefficients_often() -> None:
    for epsilon in (0.5, 3.0):
        hit, _ = coverage(range(200, 500), epsilon)  # 1200 intervals: a deviation is 0.6 %
        assert hit >= 0.94


def test_where_noise_decides_intervals_say_so() -> None:
    X, y, _ = rows_and_labels(6, n=10)
    found = model(epsilon=0.1).fit(X, y)
    low, high = found.conf_int(0.5)
    assert np.isinf(low).all()
    assert np.isinf(high).all()
    assert np.isfinite(found.coef_).all()


def accuracy(seeds: range, epsilon: float, *, n: int = 10_000, d: int = 10) -> float:
    """The mean R2 on fresh rows, where least squares has 0.816."""
    found = []
    for seed in seeds:
        bits = SeededBits(seed)
        theta = normals(d, bits=bits)
        theta *= np.sqrt(0.816 / 0.184) / np.linalg.norm(theta)
        X, noise = normals((n + 2000, d), bits=bits), normals(n + 2000, bits=bits)
        y = X @ theta + noise
        fitted = model(epsilon=epsilon, norm_bound=4.1, label_bounds=(-9.3, 9.3), random_state=seed).fit(X[:n], y[:n])
        found.append(fitted.score(X[n:], y[n:]))
    return float(np.mean(found))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("epsilon", "least"), [(0.5, 0.74), (1, 0.80), (3, 0.81)])
def test_accuracy_at_ten_thousand_rows(epsilon: float, least: float) -> None:
    assert accuracy(range(10), epsilon) >= least


def test_refusals_come_before_the_data() -> None:
    for given in ({"norm_bound": None}, {"label_bounds": None}, {"delta": None}, {"label_bounds": (1, 1)}):
        with pytest.raises(InvalidParameter):
            model(**given).fit(np.ones((3, 2)), np.ones(3))
        with pytest.raises(InvalidParameter):
            model(**given).plan_event(2)  # before anything is paid
    with pytest.raises(InvalidParameter, match="norm_bound"):
        LinearRegression().plan_event(3)
    with pytest.raises(InvalidParameter, match="alpha"):
        Ridge(alpha=-1, norm_bound=1, label_bounds=(0, 1)).plan_event(3)
    with pytest.raises(InvalidParameter, match="n_components"):
        PCA(n_components=4, norm_bound=1).plan_event(3)
    with pytest.raises(InvalidParameter, match="var_smoothing"):
        GaussianNB(bounds=(0, 1), classes=[0, 1], var_smoothing=-1).plan_event(3)


def test_the_length_of_labels_is_the_best_one() -> None:
    """The minimum of (1 + T)^2 (labels / T + r^2), by search."""
    for count, labels in ((1, 1), (10, 1), (100, 1), (10, 3)):
        shares = np.linspace(1e-4, 2, 20_001)
        best = shares[np.argmin((1 + shares) ** 2 * (labels / shares + count / 10))]
        assert labels * (label_radius(count, labels) / RADIUS) ** 2 == pytest.approx(best, abs=2e-3)


def test_targets_are_numbers() -> None:
    with pytest.raises(ValueError, match="numeric labels"):
        linear_regression._targets(["a", "b"])
