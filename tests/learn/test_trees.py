"""Private trees: what a row moves, under both relations, what is paid, and what they learn."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.learn.trees import decision_trees as growing
from discreet.learn.trees.decision_trees import (
    FINE,
    DecisionTreeClassifier,
    RandomForestClassifier,
    Tree,
    split_scores,
)
from discreet.mechanisms import Laplace, PermuteAndFlip
from discreet.noise import SeededBits, uniform_below
from discreet.noise.experiment import uniforms
from tests.learn.replayed import recorded

CELLS, CLASSES = 3, 3
ROWS = list(itertools.product(range(CELLS), range(CELLS), range(CLASSES)))
Row = tuple[int, int, int]
TABLES: list[list[Row]] = [[], [(0, 0, 0)], [(0, 1, 0), (0, 2, 0), (1, 1, 1)], [(2, 2, 2)] * 4 + [(0, 2, 1)]]


def scores(table: list[Row], tree: Tree) -> np.ndarray[Any, Any]:
    rows = np.array(table, dtype=np.int64).reshape(-1, 3)
    nodes = tree.feature.size + 1
    return split_scores(rows[:, :2], rows[:, 2], tree.leaves(rows[:, :2]), (nodes, CELLS, CLASSES))


def spans(neighbours: str, tree: Tree) -> float:
    """The privacy loss of one level in units of rate * FINE: over nodes, the length of the range of moves."""
    worst = 0
    for table in TABLES:
        for row in ROWS:
            for new in [None] if neighbours == "add_remove" else ROWS:
                here, there = [*table, row], table if new is None else [*table, new]
                moves = scores(here, tree) - scores(there, tree)
                reach = np.maximum(moves.max(axis=1), 0) - np.minimum(moves.min(axis=1), 0)
                worst = max(worst, int(reach.sum()))
    return worst / FINE


def random_tree(depth: int, n_features: int, cells: int, bits: SeededBits) -> Tree:
    """A tree whose splits nobody chose."""
    inner = (1 << depth) - 1
    return Tree(
        feature=uniform_below(n_features, inner, bits=bits), cell=1 + uniform_below(cells - 1, inner, bits=bits)
    )


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize(("neighbours", "allowed"), [("add_remove", 2), ("replace", 4)])
def test_no_row_moves_the_scores_of_a_level_further_than_paid_for(depth: int, neighbours: str, allowed: int) -> None:
    tree = random_tree(depth, 2, CELLS, SeededBits(4))
    assert 0.6 * allowed < spans(neighbours, tree) <= allowed


def test_scores_of_added_rows_move_in_one_direction() -> None:
    tree = random_tree(1, 2, CELLS, SeededBits(4))
    for table in TABLES:
        for row in ROWS:
            assert (scores([*table, row], tree) <= scores(table, tree)).all()


def test_an_impurity_without_its_division_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "_impurity", lambda counts: FINE * (counts * counts).sum(axis=-1))
    assert spans("add_remove", random_tree(0, 2, CELLS, SeededBits(4))) > 2


def fit(rows: list[Row], **parameters: Any) -> Any:
    kind = RandomForestClassifier if "n_estimators" in parameters else DecisionTreeClassifier
    common: dict[str, Any] = {"epsilon": 2, "bounds": (0, 3), "classes": [0, 1, 2], "max_depth": 2, "cells": CELLS}
    table = np.array(rows, dtype=float).reshape(-1, 3)
    return kind(**(common | {"random_state": 0} | parameters)).fit(table[:, :2], table[:, 2].astype(int))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("neighbours", "allowed"), [("add_remove", 1), ("replace", 2)])
@pytest.mark.parametrize("forest", [{}, {"n_estimators": 2}])
def test_no_row_moves_the_leaves_further_than_paid_for(
    monkeypatch: pytest.MonkeyPatch, neighbours: str, allowed: int, forest: dict[str, int]
) -> None:
    def chosen(_: Any, given: Any, **__: Any) -> Any:
        return np.arange(len(given)) % given.shape[1]

    monkeypatch.setattr(PermuteAndFlip, "choose", chosen)
    base, worst = TABLES[3], 0
    for row in ROWS:
        other = base if neighbours == "add_remove" else [*base, ROWS[5]]
        runs = [
            recorded(Laplace, partial(fit, rows, neighbours=neighbours, **forest)) for rows in ([*base, row], other)
        ]
        assert all(float(used.sensitivity) == allowed for used, _ in runs[0])
        worst = max(worst, sum(int(abs(a - b).sum()) for (_, a), (_, b) in zip(*runs, strict=True)))
    assert worst == allowed


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_plans_prices_and_pure_privacy(kind: Any, neighbours: str) -> None:
    table = uniforms((3000, 2), bits=SeededBits(1))
    one = kind(epsilon=1, bounds=(0, 1), classes=[False, True], neighbours=neighbours, random_state=1)
    one.fit(table, table[:, 0] > 0.5)
    assert one.event_ == one.plan_event(2)
    assert float(one.privacy_spent_.epsilon) == pytest.approx(1)
    assert one.score(table, table[:, 0] > 0.5) > 0.9
    assert np.allclose(one.predict_proba(table).sum(axis=1), 1)


def test_a_tree_learns_a_corner_that_no_sum_of_features_can() -> None:
    table = uniforms((8000, 2), bits=SeededBits(2))
    labels = (table[:, 0] > 0.5) != (table[:, 1] > 0.25)
    one = DecisionTreeClassifier(epsilon=2, bounds=(0, 1), classes=[0, 1], max_depth=3, random_state=0)
    assert one.fit(table, labels).score(table, labels) > 0.9


def test_a_forest_puts_every_row_into_one_tree() -> None:
    rows = [ROWS[k % len(ROWS)] for k in range(100)]
    inputs = recorded(Laplace, lambda: fit(rows, n_estimators=4))
    assert len(inputs) == 4
    assert sum(int(counts.sum()) for _, counts in inputs) == 100


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"bounds": None}, "bounds"),
        ({"max_depth": 0}, "max_depth"),
        ({"cells": 1}, "cells"),
        ({"classes": None}, "classes"),
    ],
)
def test_refusals_name_the_parameter(parameters: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        fit(TABLES[3], **parameters)
    assert refusal.value.name == name
