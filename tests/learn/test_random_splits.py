"""Random trees of which some are chosen: what reads rows, what that costs, and what is left if there is only noise."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.audit.queries.fit_verdicts import moves
from discreet.audit.queries.mechanism_recorder import MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.errors import InvalidParameter
from discreet.learn import ExtraTreesClassifier
from discreet.learn.trees.random_splits import MOST_TREES, Growth, RandomTrees, candidates_for, trees_for
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours
from discreet.statistics.tree_selection import TreeSelection

Row = tuple[int, int, int]
ROWS: list[Row] = list(product(range(3), range(3), range(2)))
BASE: list[Row] = [(0, 0, 0), (2, 1, 1), (2, 2, 1), (1, 0, 0)]


def fit(table_rows: list[Row], **parameters: Any) -> Any:
    common: dict[str, Any] = {"epsilon": 2, "bounds": (0, 3), "classes": [0, 1], "max_depth": 2, "cells": 3}
    common |= {"random_state": 0, "candidates": 6}
    table = np.array(table_rows, dtype=float).reshape(-1, 3)
    return ExtraTreesClassifier(**(common | parameters)).fit(table[:, :2], table[:, 2])


def handed(rows: list[Row], frozen: list[MechanismCall] | None = None, **parameters: Any) -> list[MechanismCall]:
    recorder = MechanismRecorder(frozen=frozen)
    with watch_mechanisms(recorder):
        fit(rows, **parameters)
    assert not recorder.strayed
    return recorder.made


def loss(neighbours: str, trees: int) -> float:
    """The largest epsilon of all releases together, over neighbours, when earlier ones say the same."""
    worst = 0.0
    options: dict[str, Any] = {"neighbours": neighbours, "n_estimators": trees}
    for row in ROWS:
        here = handed([*BASE, row], **options)
        there = handed(BASE if neighbours == "add_remove" else [*BASE, ROWS[5]], here, **options)
        priced = [move for pair in zip(here, there, strict=True) for move in moves(*pair, Neighbours(neighbours))]
        worst = max(worst, float(sum(move.found for move in priced)))
    return worst


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("trees", [1, 5])
def test_all_choices_together_cost_what_was_paid(neighbours: str, trees: int) -> None:
    assert loss(neighbours, trees) == pytest.approx(2)


def test_a_budget_that_is_not_divided_among_trees_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Growth, "selections", lambda *_: [TreeSelection(epsilon=1.9)] * 5)
    assert loss("add_remove", 5) > 2


def test_candidates_read_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[RandomTrees] = []
    right = RandomTrees.draw_random

    def kept(*given: Any) -> RandomTrees:
        drawn.append(right(*given))
        return drawn[-1]

    monkeypatch.setattr(RandomTrees, "draw_random", kept)
    for rows in (BASE, ROWS, []):
        fit(rows, n_estimators=1, rows=9)
    for one in drawn[1:]:
        assert (one.feature == drawn[0].feature).all()
        assert (one.cell == drawn[0].cell).all()


def test_the_count_is_released_before_anything_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one answer for every count, so many trees are grown, however many rows there are."""
    monkeypatch.setattr(Laplace, "release", lambda *_, **__: 200)
    assert [len(fit(rows).labels_) for rows in ([], BASE, ROWS * 50)] == [trees_for(200, 1.9, 2)] * 3
    monkeypatch.setattr(Laplace, "release", lambda *_, **__: -3)
    assert len(fit(ROWS).labels_) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("trees", [None, 1, 7])
@pytest.mark.parametrize("rows", [None, 2000])
def test_plans_prices_and_pure_privacy(neighbours: str, trees: int | None, rows: int | None) -> None:
    table = uniforms((2000, 2), bits=SeededBits(1))
    labels = table[:, 0] > 0.5
    one = ExtraTreesClassifier(
        epsilon=1,
        bounds=(0, 1),
        classes=[False, True],
        n_estimators=trees,
        candidates=30,
        rows=rows,
        neighbours=neighbours,
        random_state=1,
    ).fit(table, labels)
    assert one.event_ == one.plan_event(2)
    assert accounting.epsilon(one.event_, 0) == pytest.approx(1)
    assert one.score(table, labels) > 0.8
    assert np.allclose(one.predict_proba(table).sum(axis=1), 1)


def test_thresholds_lie_within_what_is_left_of_a_feature() -> None:
    drawn = RandomTrees.draw_random(20, 1, 6, 64, SeededBits(1))
    for place in range(20):
        low, high = {0: 0}, {0: 64}
        for node, cell in enumerate(drawn.one(place).cell.tolist()):
            assert low[node] < cell <= max(high[node] - 1, low[node] + 1)
            low[2 * node + 1], high[2 * node + 1] = low[node], cell
            low[2 * node + 2], high[2 * node + 2] = cell, high[node]


def test_leaves_are_counted_as_each_tree_finds_them() -> None:
    drawn = RandomTrees.draw_random(5, 3, 3, 16, SeededBits(2))
    places = np.floor(16 * uniforms((200, 3), bits=SeededBits(3))).astype(np.int64)
    labels = (places[:, 0] > 7).astype(np.int64)
    counts = drawn.counts(places, labels, 2)
    for place in range(5):
        direct = np.zeros((8, 2), dtype=np.int64)
        np.add.at(direct, (drawn.one(place).leaves(places), labels), 1)
        assert (counts[place] == direct).all()
    assert counts[0].sum() == 200


@pytest.mark.ci
def test_random_labels_do_not_lose_against_the_largest_class() -> None:
    """What is learned at a small budget is, on average, no worse than predicting what most rows are."""
    table = uniforms((400, 8), bits=SeededBits(2))
    labels = uniforms((400,), bits=SeededBits(3)) < 0.8
    fitted = partial(ExtraTreesClassifier, epsilon=0.1, candidates=200, bounds=(0, 1), classes=[0, 1])
    scores = [fitted(random_state=seed).fit(table, labels).predict(table) for seed in range(20)]
    assert np.mean([(found == 1).mean() for found in scores]) > 0.95


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_depth": 11}, "max_depth"),
        ({"cells": 1}, "cells"),
        ({"candidates": 0}, "candidates"),
        ({"rows": -1}, "rows"),
    ],
)
def test_bad_parameters_are_refused_before_rows_are_read(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        ExtraTreesClassifier(**{"bounds": (0, 1), "classes": [0, 1], **parameters}).plan_event(2)
    assert refused.value.name == name
    assert trees_for(4e4, 1.0, 2) < trees_for(4e3, 1.0, 2) == MOST_TREES
    assert candidates_for(1e9, 1) == candidates_for(1e9, MOST_TREES)
