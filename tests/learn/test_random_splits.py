"""Trees whose splits nobody chose: what their leaves may tell, what they cost, and what they fall back to."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter
from discreet.learn import ExtraTreesClassifier
from discreet.learn.trees import random_splits
from discreet.learn.trees.random_splits import RandomTrees, leaf_shares, random_tree, trees_for
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from tests.learn.replayed import recorded

Row = tuple[int, int, int]
ROWS: list[Row] = list(product(range(3), range(3), range(2)))
EVEN = np.array([[0.5, 0.5]])
BASE: list[Row] = [(0, 0, 0), (2, 1, 1), (2, 2, 1), (1, 0, 0)]


def fit(rows: list[Row], **parameters: Any) -> Any:
    common: dict[str, Any] = {"epsilon": 2, "bounds": (0, 3), "classes": [0, 1], "max_depth": 2, "cells": 3}
    table = np.array(rows, dtype=float).reshape(-1, 3)
    return ExtraTreesClassifier(**(common | {"random_state": 0} | parameters)).fit(table[:, :2], table[:, 2])


def loss_of_counts(neighbours: str, trees: int) -> float:
    """The largest privacy loss of all counts together, over neighbouring tables: |move| / scale, summed."""
    worst = 0.0
    for row in ROWS:
        other = BASE if neighbours == "add_remove" else [*BASE, ROWS[5]]
        runs = [
            recorded(Laplace, partial(fit, rows, neighbours=neighbours, n_estimators=trees))
            for rows in ([*BASE, row], other)
        ]
        moves = [
            float(abs(a - b).sum() * used.epsilon / used.sensitivity) for (used, a), (_, b) in zip(*runs, strict=True)
        ]
        worst = max(worst, sum(moves))
    return worst


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("trees", [1, 5])
def test_counts_of_all_trees_together_cost_what_was_paid(neighbours: str, trees: int) -> None:
    assert loss_of_counts(neighbours, trees) == pytest.approx(2)


def _not_divided(_: RandomTrees, counts: Any, trees: int, prior: Any, bits: Any) -> Any:
    noise = Laplace(epsilon=2, sensitivity=1)
    return leaf_shares(np.asarray(noise.release(counts, bits=bits)), trees / 2, prior)


def test_a_budget_that_is_not_divided_among_trees_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomTrees, "fill", _not_divided)
    assert loss_of_counts("add_remove", 5) > 2


def test_splits_read_no_row() -> None:
    trees = [fit(rows, n_estimators=4) for rows in (BASE, ROWS, [])]
    for one in trees[1:]:
        assert (one.features_ == trees[0].features_).all()
        assert (one.thresholds_ == trees[0].thresholds_).all()


def test_the_count_is_released_before_anything_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one answer for every count, so many trees are grown, however many rows there are."""
    right = Laplace.release

    def told(mechanism: Laplace, value: Any, **more: Any) -> Any:
        return np.array([150, 50]) if np.ndim(value) == 1 else right(mechanism, value, **more)

    monkeypatch.setattr(Laplace, "release", told)
    assert [len(fit(rows).shares_) for rows in ([], BASE, ROWS * 50)] == [trees_for(200, 1.8)] * 3


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("trees", [None, 1, 7])
def test_plans_prices_and_pure_privacy(neighbours: str, trees: int | None) -> None:
    table = uniforms((2000, 2), bits=SeededBits(1))
    labels = table[:, 0] > 0.5
    one = ExtraTreesClassifier(
        epsilon=1, bounds=(0, 1), classes=[False, True], n_estimators=trees, neighbours=neighbours, random_state=1
    ).fit(table, labels)
    assert one.event_ == one.plan_event(2)
    assert accounting.epsilon(one.event_, 0) == pytest.approx(1)
    assert one.score(table, labels) > 0.8
    assert np.allclose(one.predict_proba(table).sum(axis=1), 1)


def test_thresholds_lie_within_what_is_left_of_a_feature() -> None:
    for seed in range(20):
        tree = random_tree(1, 6, 64, SeededBits(seed))
        low, high = {0: 0}, {0: 64}
        for node, cell in enumerate(tree.cell.tolist()):
            assert low[node] < cell <= max(high[node] - 1, low[node] + 1)
            low[2 * node + 1], high[2 * node + 1] = low[node], cell
            low[2 * node + 2], high[2 * node + 2] = cell, high[node]


def test_leaves_without_rows_are_like_those_around_them() -> None:
    counts = np.array([[50, 0], [0, 0], [0, 50], [0, 0]])
    shares = leaf_shares(counts, 0.1, EVEN)
    assert shares[:2, 0].min() > 0.9
    assert shares[2:, 1].min() > 0.9


def test_where_noise_hides_everything_all_are_like_the_whole() -> None:
    counts = np.array([[60, 20], [5, 9], [40, 10], [4, 8]])
    assert (leaf_shares(counts, 100.0, np.array([[0.7, 0.3]])).argmax(axis=1) == 0).all()
    assert leaf_shares(counts, 0.01, EVEN).argmax(axis=1).tolist() == [0, 1, 0, 1]


def test_random_labels_do_not_lose_against_the_largest_class() -> None:
    """What is learned at a small budget is, on average, no worse than predicting what most rows are."""
    table = uniforms((4000, 8), bits=SeededBits(2))
    labels = uniforms((4000,), bits=SeededBits(3)) < 0.8
    scores = [
        ExtraTreesClassifier(epsilon=0.1, bounds=(0, 1), classes=[0, 1], random_state=seed).fit(table, labels)
        for seed in range(5)
    ]
    assert np.mean([one.score(table, labels) for one in scores]) > labels.mean() - 0.03


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"n_estimators": 0}, "n_estimators"), ({"max_depth": 17}, "max_depth"), ({"cells": 1}, "cells")],
)
def test_bad_parameters_are_refused_before_rows_are_read(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        ExtraTreesClassifier(**{"bounds": (0, 1), "classes": [0, 1], **parameters}).plan_event(2)
    assert refused.value.name == name
    assert trees_for(1e9, 1.0) == random_splits.MOST_TREES
