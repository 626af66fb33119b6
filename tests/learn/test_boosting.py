"""Boosting: what a row moves, what is planned and paid, and how well it predicts."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from discreet import accounting
from discreet.errors import InvalidParameter
from discreet.exact import root_above
from discreet.learn.trees import boosting
from discreet.learn.trees.boosting import ONE, UNIT, AdditiveClassifier, shares
from discreet.mechanisms import Gaussian
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours, events
from tests.learn.replayed import recorded, worst_excess

ROWS = [(0.1, 0.9, 0), (0.9, 0.1, 1), (0.5, 0.5, 1), (0.9, 0.9, 0), (np.nan, np.inf, 1), (0.2, 0.3, 7)]
OTHERS = [(0.3, 0.3, 1), (0.8, 0.2, 0), (0.6, 0.7, 1)]


def model(**parameters: Any) -> AdditiveClassifier:
    common: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": (0, 1), "classes": [0, 1], "random_state": 0}
    return AdditiveClassifier(**(common | {"rounds": 3, "cells": 4} | parameters))


def fit(parameters: dict[str, Any], rows: list[tuple[float, float, int]]) -> AdditiveClassifier:
    table = np.array(rows, dtype=float).reshape(-1, 3)
    return model(**parameters).fit(table[:, :2], table[:, 2].astype(int))


def pairs(neighbours: str) -> list[tuple[Any, Any]]:
    if neighbours == "add_remove":
        return [(OTHERS, [*OTHERS[:1], row, *OTHERS[1:]]) for row in ROWS]
    return [([*OTHERS, old], [*OTHERS, new]) for old, new in itertools.permutations(ROWS, 2)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("more", [{}, {"classes": [0, 1, 7]}, {"residual_bound": 1}])
def test_no_row_moves_a_release_by_more_than_its_sensitivity(neighbours: str, more: dict[str, Any]) -> None:
    parameters = {"neighbours": neighbours} | more
    worst = worst_excess(Gaussian, lambda rows: fit(parameters, rows), pairs(neighbours), size=4e5, first=10**6)
    assert 0.9 < worst <= 1 + 1e-12


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_residuals_that_are_not_shortened_are_noticed(monkeypatch: pytest.MonkeyPatch, neighbours: str) -> None:
    monkeypatch.setattr(boosting, "within", lambda residuals, _: residuals)
    parameters = {"neighbours": neighbours, "residual_bound": 0.5}
    assert worst_excess(Gaussian, lambda rows: fit(parameters, rows), pairs(neighbours), size=4e5, first=10**6) > 1.2


def test_a_replaced_row_calibrated_as_an_added_one_is_noticed() -> None:
    parameters = {"neighbours": "add_remove"}
    assert worst_excess(Gaussian, lambda rows: fit(parameters, rows), pairs("replace"), size=4e5, first=10**6) > 1.2


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("classes", [[0, 1], None])
def test_what_was_planned_is_what_was_released_and_costs_what_was_asked(neighbours: str, classes: Any) -> None:
    table = uniforms((4000, 2), bits=SeededBits(1))
    one = model(neighbours=neighbours, classes=classes, epsilon=2).fit(table, table[:, 0] > 0.5)
    assert one.event_ == one.plan_event(2)
    cost = accounting.epsilon(one.event_, 1e-6, neighbours=Neighbours(neighbours))
    assert (1.9 if classes else 1.7) < cost <= 2
    assert not one.private_


def test_parameters_are_only_stored_and_never_changed() -> None:
    one = model(rounds=2)
    before = one.get_params()
    table = uniforms((50, 2), bits=SeededBits(1))
    one.fit(table, table[:, 0] > 0.5)
    assert one.get_params() == before
    assert clone(one).get_params().keys() == before.keys()


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"bounds": None}, "bounds"),
        ({"delta": 0}, "delta"),
        ({"rounds": 0}, "rounds"),
        ({"cells": 1}, "cells"),
        ({"residual_bound": 0}, "residual_bound"),
        ({"classes": [1]}, "classes"),
    ],
)
def test_what_cannot_be_is_refused_with_the_name_of_the_parameter(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        model(**parameters).fit(np.zeros((5, 1)), [0, 1, 0, 1, 0])
    assert refusal.value.name == name


def test_shares_are_probabilities() -> None:
    scores = np.array([[0, 0, 0], [ONE, 0, -ONE], [100 * ONE, 0, 0]])
    exact = np.exp(scores / ONE - scores.max(axis=1, keepdims=True) / ONE)
    exact /= exact.sum(axis=1, keepdims=True)
    assert np.abs(shares(scores) / UNIT - exact).max() < 0.004
    alone = np.vstack([shares(row[None]) for row in scores])
    assert (alone == shares(scores)).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_it_learns_what_no_line_can_separate(classes: int) -> None:
    table = uniforms((6000, 3), bits=SeededBits(2))
    labels = (np.abs(table[:, 0] - 0.5) * 2 * classes).astype(int).clip(0, classes - 1)
    one = model(epsilon=2, rounds=8, cells=32, classes=list(range(classes))).fit(table[:5000], labels[:5000])
    assert one.score(table[5000:], labels[5000:]) > 0.9
    chances = one.predict_proba(table[5000:])
    assert np.allclose(chances.sum(axis=1), 1)
    assert (one.classes_[chances.argmax(axis=1)] == one.predict(table[5000:])).all()
    assert one.terms_.shape == (3, 32, 1 if classes == 2 else classes)


def test_more_budget_predicts_better() -> None:
    table = uniforms((3000, 2), bits=SeededBits(3))
    labels = (np.abs(table[:, 0] - 0.5) < 0.25).astype(int)

    def score(epsilon: str, seed: int) -> float:
        return float(model(epsilon=epsilon, random_state=seed, cells=16).fit(table, labels).score(table, labels))

    scores = [np.mean([score(epsilon, seed) for seed in range(4)]) for epsilon in ("0.02", "0.2", "2")]
    assert scores[0] < scores[1] < scores[2]
    assert scores[2] > 0.95


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_the_number_of_rows_and_their_cells_move_by_their_sensitivity(neighbours: str) -> None:
    """However few rows are released, and so however coarse the cells, in both relations."""
    for rows in (1, 30, 10**6):
        worst = [0.0, 0.0]
        for here, there in pairs(neighbours):
            one, other = (
                recorded(Gaussian, partial(fit, {"neighbours": neighbours}, table), size=1e-9, first=rows)
                for table in (here, there)
            )
            for place in (0, 1):
                (used, a), (same, b) = one[place], other[place]
                assert (used, a.shape) == (same, b.shape)
                move = float(np.sqrt(np.sum((a - b).astype(float) ** 2))) / float(used.sensitivity)
                worst[place] = max(worst[place], move)
        assert min(worst) > 0.99
        assert max(worst) <= 1


def test_counts_of_cells_of_an_added_row_are_noticed_for_a_replaced_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "root_above", lambda square: root_above(square / 2))
    excess = worst_excess(
        Gaussian, lambda rows: fit({"neighbours": "replace"}, rows), pairs("replace"), size=1e-9, first=10**6
    )
    assert excess > 1.4


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("rows", [20, 4000])
def test_every_draw_is_in_the_event(neighbours: str, rows: int) -> None:
    table = uniforms((rows, 2), bits=SeededBits(1))
    one = model(neighbours=neighbours, epsilon=2)
    drawn = [each for each, _ in recorded(Gaussian, lambda: one.fit(table, table[:, 0] > 0.5), first=rows)]
    planned = one.plan_event(2)
    assert isinstance(planned, events.Composed)
    first, second, visits = planned.events
    assert isinstance(visits, events.Repeated)
    assert [each.event for each in drawn] == [first, second, *[visits.event] * visits.count]


def test_cells_are_as_coarse_as_rows_are_few_for_the_noise() -> None:
    assert boosting._coarse(8, 0.1).tolist() == boosting._coarse(8, 2).tolist() == [0] * 4 + [1] * 4
    assert boosting._coarse(8, 3.9).max() == 2
    assert boosting._coarse(8, 1e9).tolist() == list(range(8))
    assert boosting._coarse(5, 3.0).tolist() == [0, 0, 1, 1, 2]
    places = np.array([[0, 7], [3, 3], [4, 7], [7, 0]])
    for fine in (1, 3, 5, 100):
        coarse = boosting._coarse(8, fine)
        exact = [np.bincount(coarse[column], minlength=coarse[-1] + 1) for column in places.T]
        assert (boosting._histograms(places, 8, coarse) == np.stack(exact)).all()


def test_a_feature_keeps_a_few_cells_when_noise_is_large() -> None:
    counts = np.array([50.0, 50.0, 50.0])
    assert boosting._merge_cells(counts, 1e9, 150.0).tolist() == [0, 1, 2]
    assert len(set(boosting._merge_cells(np.full(64, 1000.0), 1.0, 64_000.0))) == 32


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("share", "epsilon"), [(0.75, "0.3"), (0.75, 3), (0.9, "0.3"), (0.9, 3)])
def test_labels_that_nothing_predicts_leave_the_majority(share: float, epsilon: Any) -> None:
    """Turning a share t of fresh rows costs t (2 share - 1): a rule of chance is right about 1 - share of them.

    The bound is one deviation of the share of a class among so many rows, sqrt(q (1 - q) / n): what is lost to noise
    is then less than what nobody could tell from the majority on a sample of this size.
    """
    rows, short = 1000, []
    for seed in range(6):
        bits = SeededBits(seed)
        X = uniforms((2 * rows, 5), bits=bits)
        y = (uniforms((2 * rows,), bits=bits) > share).astype(int)
        one = model(epsilon=epsilon, rounds=8, cells=64, random_state=seed).fit(X[:rows], y[:rows])
        short.append(np.mean(y[rows:] == 0) - one.score(X[rows:], y[rows:]))
    assert np.mean(short) < np.sqrt(share * (1 - share) / rows)


def test_few_rows_teach_more_than_the_prior() -> None:
    """Eight features, each right about seven rows of ten, 200 rows, epsilon 1: cells are halves, and votes add up."""
    scores = []
    for seed in range(6):
        bits = SeededBits(seed)
        y = (uniforms((1200,), bits=bits) > 0.5).astype(int)
        X = np.where(uniforms((1200, 8), bits=bits) < 0.7, y[:, None], 1 - y[:, None]).astype(float)
        one = model(rounds=8, cells=64, random_state=seed).fit(X[:200], y[:200])
        scores.append(one.score(X[200:], y[200:]))
    assert np.mean(scores) > 0.7
