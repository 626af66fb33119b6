"""Choosing models and parameters: everything that was tried is paid for, and only the winner is seen."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier as PublicTree
from sklearn.utils.estimator_checks import check_estimator

from discreet import accounting
from discreet.accounting.random_repetitions import Tries, tuned_epsilon
from discreet.errors import InvalidParameter
from discreet.learn.linear.regression import Ridge
from discreet.learn.selection.choice import choose_model, distances, errors
from discreet.learn.selection.search import GridSearchCV
from discreet.learn.selection.search_plan import draw_tries
from discreet.learn.trees.boosting import AdditiveClassifier
from discreet.learn.trees.decision_trees import DecisionTreeClassifier
from discreet.mechanisms import Laplace, PermuteAndFlip
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import ApproxDP, Neighbours, PureDP, events
from tests.learn.specimens import CLASSES

TABLE = uniforms((1500, 2), bits=SeededBits(5))
LABELS = (np.abs(TABLE[:, 0] - 0.5) < 0.25).astype(int)
BOOSTED = AdditiveClassifier(bounds=(0, 1), classes=[0, 1], rounds=2, cells=8)
TREE = DecisionTreeClassifier(bounds=(0, 1), classes=[0, 1])


def constant(label: int) -> Any:
    return DummyClassifier(strategy="constant", constant=label).fit([[0], [0], [0]], [0, 1, 2])


def test_rows_are_predicted_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    model = constant(1)
    honest = model.predict

    def predict(rows: Any) -> Any:
        shapes.append(rows.shape)
        return honest(rows)

    monkeypatch.setattr(model, "predict", predict)
    found = errors(model, np.array([[1.0], [np.nan], [2.0], [np.inf]]), np.array([1, 1, 0, 1]))
    assert found.tolist() == [0, 1, 1, 1]
    assert shapes == [(1, 1), (1, 1)]


@pytest.mark.parametrize(("neighbours", "span"), [("add_remove", 1), ("replace", 2)])
def test_no_row_moves_the_scores_further_than_paid_for(
    monkeypatch: pytest.MonkeyPatch, neighbours: str, span: int
) -> None:
    models = [constant(label) for label in (0, 1, 2)]
    seen: list[tuple[PermuteAndFlip, Any]] = []

    def choose(self: PermuteAndFlip, scores: Any, **_: Any) -> int:
        seen.append((self, np.array(scores)))
        return 0

    monkeypatch.setattr(PermuteAndFlip, "choose", choose)
    base, worst = [0, 1, 1], 0
    for old, new in itertools.product([0, 1, 2, 9], [None, 0, 1, 2, 9]):
        if (new is None) == (neighbours == "replace"):
            continue
        for labels in ([*base, old], base if new is None else [*base, new]):
            choose_model(models, [[0.0]] * len(labels), labels, epsilon=1, neighbours=neighbours)
        moves = seen[-2][1] - seen[-1][1]
        worst = max(worst, max(0, moves.max()) - min(0, moves.min()))
    assert worst == span
    assert all(mechanism.rate * span == 1 for mechanism, _ in seen)


def test_the_better_model_wins_nearly_always() -> None:
    models = [constant(0), constant(1)]
    wins = Counter(
        choose_model(models, [[0.0]] * 40, [1] * 25 + [0] * 15, epsilon=1, bits=SeededBits(seed)).index
        for seed in range(100)
    )
    # The loser has a gap of 10 and wins with a coin of e^-10, then a half: 0.00002.
    assert wins[1] == 100


@pytest.mark.parametrize("tries", [Tries(Fraction(1), Fraction(1, 4)), Tries(Fraction(0), Fraction(1, 10))])
def test_the_number_of_tries_has_its_law(tries: Tries) -> None:
    bits = SeededBits(6)
    drawn = np.array([draw_tries(tries, bits) for _ in range(1000)])
    gamma, eta = float(tries.gamma), int(tries.eta)
    weights = np.array([(1 - gamma) ** k / (1 if eta else k) for k in range(1, 400)])
    for k in (1, 2, 5):
        share = weights[k - 1] / weights.sum()
        # Five standard deviations of a share of 1000 draws.
        assert np.mean(drawn == k) == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 1000))
    assert drawn.mean() == pytest.approx(tries.mean, rel=0.2)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_a_small_grid_is_composed_and_keeps_to_the_budget(neighbours: str) -> None:
    one = GridSearchCV(BOOSTED, {"rounds": [1, 2]}, epsilon=2, neighbours=neighbours, random_state=0)
    plan = one._plan(2)
    assert plan.tries is None
    released = [one._model(plan, candidate, None).plan_event(2) for candidate in one._candidates()]
    assert 1.95 < accounting.epsilon(released, 1e-6, neighbours=Neighbours(neighbours)) <= 2
    one.fit(TABLE, LABELS)
    assert one.event_ == one.plan_event(2) == events.Approx(2, 1e-6)
    assert isinstance(one.privacy_spent_, ApproxDP)


def test_a_large_grid_is_tried_by_lot_and_keeps_to_the_budget() -> None:
    one = GridSearchCV(BOOSTED, {"rounds": [1, 2, 3, 4], "cells": [4, 8, 16]}, epsilon=2, random_state=0)
    plan = one._plan(2)
    assert plan.tries == Tries.of_mean(24)
    released = [one._model(plan, candidate, None).plan_event(2) for candidate in one._candidates()]
    assert 1.95 < tuned_epsilon([*released, plan.score_noise.event], plan.tries, 1e-6) <= 2
    alone = GridSearchCV(BOOSTED, {"rounds": [2]}, epsilon=2)._plan(2)
    assert alone.epsilon / 3 < plan.epsilon < alone.epsilon  # a try costs more than alone, and far less than twelve


def test_pure_tries_cost_three_times_one() -> None:
    plan = GridSearchCV(TREE, {"max_depth": [1, 2, 3, 4, 5]}, epsilon=3, delta=0)._plan(2)
    assert plan.tries is not None
    assert float(plan.epsilon) == pytest.approx(1)
    few = GridSearchCV(TREE, {"max_depth": [1, 2]}, epsilon=3, delta=0)._plan(2)
    assert few.tries is None
    assert float(few.epsilon) == pytest.approx(1.5)


@pytest.mark.ci
@pytest.mark.parametrize("tries", [None, 4])
def test_the_winner_is_all_that_is_kept(tries: int | None) -> None:
    one = GridSearchCV(TREE, {"max_depth": [1, 2]}, epsilon=20, delta=0, tries=tries, random_state=3)
    one.fit(TABLE, LABELS)
    assert {name for name in vars(one) if name.endswith("_")} == {
        "best_estimator_", "best_params_", "classes_", "event_", "n_features_in_", "privacy_spent_", "private_",
    }  # fmt: skip
    assert one.best_params_ == {"max_depth": 2}
    assert one.score(TABLE, LABELS) > 0.95
    assert isinstance(one.privacy_spent_, PureDP)
    assert one.best_estimator_.max_depth == 2


def test_every_row_is_fitted_on_or_held_out_and_never_both(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    honest = GridSearchCV._choose_from_all

    def look(self: GridSearchCV, plan: Any, data: Any, bits: Any) -> Any:
        seen.append(data)
        return honest(self, plan, data, bits)

    monkeypatch.setattr(GridSearchCV, "_choose_from_all", look)
    for neighbours in ("add_remove", "replace"):
        one = GridSearchCV(TREE, {"max_depth": [1]}, epsilon=5, delta=0, neighbours=neighbours, random_state=1)
        one.fit(np.arange(200.0)[:, None].repeat(2, 1) / 200, np.arange(200) % 2)
        rows = sorted([*seen[-1].X[:, 0], *seen[-1].held[:, 0]])
        assert rows == sorted(np.arange(200.0) / 200)
    assert len(seen[-1].held) == 40  # the number of rows is public under REPLACE, and so is that of each part


@pytest.mark.ci
def test_losing_tries_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[Any] = []
    honest = DecisionTreeClassifier.fit

    def counted(self: Any, X: Any, y: Any) -> Any:
        fits.append(self.epsilon)
        return honest(self, X, y)

    monkeypatch.setattr(DecisionTreeClassifier, "fit", counted)
    GridSearchCV(TREE, {"max_depth": [1, 2]}, epsilon=6, delta=0, random_state=2).fit(TABLE, LABELS)
    assert sum(fits) <= 6
    assert len(fits) == 2
    fits.clear()
    GridSearchCV(TREE, {"max_depth": [1, 2]}, epsilon=6, delta=0, tries=3, random_state=2).fit(TABLE, LABELS)
    assert set(fits) == {fits[0]}
    assert 3 * fits[0] <= 6


@pytest.mark.ci
def test_scores_of_tries_are_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[tuple[Any, Any]] = []
    honest = Laplace.release

    def seen(self: Laplace, value: Any, **more: Any) -> Any:
        if np.ndim(value) == 0:
            released.append((self, value))
        return honest(self, value, **more)

    monkeypatch.setattr(Laplace, "release", seen)
    one = GridSearchCV(TREE, {"max_depth": [1, 2]}, epsilon=6, delta=0, tries=3, random_state=2)
    one.fit(TABLE, LABELS)
    assert released
    assert all(used.event == one._plan(2).score_noise.event and used.sensitivity == 1 for used, _ in released)


@pytest.mark.parametrize(
    ("estimator", "grid", "name"),
    [
        (TREE, {"epsilon": [1, 2]}, "param_grid"),
        (TREE, {"random_state": [1]}, "param_grid"),
        (PublicTree(), {"max_depth": [1]}, "estimator"),
    ],
)
def test_refusals(estimator: Any, grid: Any, name: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        GridSearchCV(estimator, grid, epsilon=1).fit(TABLE, LABELS)
    assert refusal.value.name == name


def test_distances_stay_within_their_unit_whatever_is_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Ridge(epsilon=1, norm_bound=1, label_bounds=(0, 10))
    said = iter([5.0, 1e300, -np.inf, np.nan, 10.0])
    monkeypatch.setattr(model, "predict", lambda _: [next(said)], raising=False)
    labels = np.array([0.0, -99.0, 5.0, 1.0, np.nan])
    assert distances(model, np.zeros((5, 1)), labels, (0.0, 10.0)).tolist() == [512, 1024, 512, 1024, 1024]


@pytest.mark.parametrize("tries", [None, 3])
def test_a_regressor_is_searched_by_its_distances(tries: int | None) -> None:
    labels = 4 * TABLE[:, 0] - 2
    ridge = Ridge(norm_bound=1.5, label_bounds=(-4, 4))
    one = GridSearchCV(ridge, {"alpha": [1.0, 1e7]}, epsilon=8, delta=1e-6, tries=tries, random_state=1)
    one.fit(TABLE, labels)
    assert one.best_params_ == {"alpha": 1.0}
    assert one.score(TABLE, labels) > 0.8
    assert one._plan(2).score_noise.sensitivity == 1024
    assert not hasattr(one, "classes_")


def test_a_regressor_needs_the_bounds_of_its_labels() -> None:
    with pytest.raises(InvalidParameter) as refusal:
        GridSearchCV(Ridge(norm_bound=1), {"alpha": [1.0]}, epsilon=1).fit(TABLE, LABELS)
    assert refusal.value.name == "label_bounds"


def test_a_search_that_finds_no_classes_has_a_constant_winner() -> None:
    tree = DecisionTreeClassifier(bounds=(0, 1))
    for tries in (None, 2):  # each candidate once, and by lot
        one = GridSearchCV(tree, {"max_depth": [1]}, epsilon=1, tries=tries, random_state=0)
        one.fit(TABLE[:20], LABELS[:20])
        assert one.constant_
        assert len(set(one.predict(TABLE[:20]).tolist())) == 1


@pytest.mark.slow
def test_scikit_learn_accepts_a_search() -> None:
    tree = DecisionTreeClassifier(bounds=(-10, 10))
    one = GridSearchCV(tree, {"max_depth": [3, 4]}, epsilon=2000, delta=1e-6, tries=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that are skipped
        results = check_estimator(one, expected_failed_checks=dict(CLASSES), on_fail=None)
    assert [f"{found['check_name']}: {found['exception']!r}" for found in results if found["status"] == "failed"] == []
