"""Weights: public ones of classes, bounded ones of rows; no neighbour moves a release further than without them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression as Exact

from discreet import learn
from discreet.errors import InvalidParameter
from discreet.learn import weights
from discreet.learn.weights import ONE, class_shares, root_shares, shrink_values
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from tests.cases import every
from tests.learn.specimens import SPECIMENS, Specimen
from tests.learn.spying import Told, replies, squared_distance, told

ADD, SWAP = "add_remove", "replace"
WEIGHTED = {0: 1, 1: 5}
KINDS: list[Any] = [
    lambda **given: learn.LogisticRegression(bounds=(-1, 1), steps=4, **given),
    lambda **given: learn.LinearSVC(bounds=(-1, 1), steps=4, **given),
    lambda **given: learn.AdditiveClassifier(bounds=(-1, 1), rounds=2, cells=4, **given),
]
ROWS = [(*pair, label) for pair in product((-1.0, 0.2, 1.0, np.nan), (-1.0, 1.0)) for label in (0, 1, 7)]
BASE = [(0.3, 2.0, 1), (-0.5, np.inf, 0), (1.0, -1.0, 1)]


def heard(kind: Any, rows: list[Any], outputs: list[Any] | None, **given: Any) -> list[Told]:
    table = np.array(rows)
    model = kind(classes=[0, 1], class_weight=WEIGHTED, random_state=1, **given)
    return told(lambda: model.fit(table[:, :2], table[:, 2]), outputs)


def worst(kind: Any, neighbours: str) -> Fraction:
    """The largest squared distance of neighbours, in units of all that was paid, all released values being the same."""
    table = np.array([*BASE, ROWS[0]])
    given: dict[str, Any] = {"neighbours": neighbours}
    model = kind(classes=[0, 1], class_weight=WEIGHTED, random_state=1, **given)
    outputs = replies(lambda: model.fit(table[:, :2], table[:, 2]))
    said = [heard(kind, [*BASE, row], outputs, **given) for row in ROWS]
    pairs = (
        list(combinations(said, 2))
        if neighbours == SWAP
        else [(heard(kind, BASE, outputs, **given), one) for one in said]
    )
    return max(squared_distance(left, right) for left, right in pairs) / squared_price(model.plan_event(2))


def squared_price(event: Any) -> Fraction:
    """mu^2 of a composition of Gaussians: the sum of all 1 / multiplier^2."""
    if hasattr(event, "events"):
        return sum((squared_price(each) for each in event.events), Fraction(0))
    if hasattr(event, "count"):
        return squared_price(event.event) * int(event.count)
    return 1 / Fraction(event.noise_multiplier) ** 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
@pytest.mark.parametrize("kind", KINDS)
def test_no_weighted_row_moves_more_than_was_paid(kind: Any, neighbours: str) -> None:
    assert 0 < worst(kind, neighbours) <= 1


@pytest.mark.parametrize("kind", KINDS[2:])
def test_weights_above_one_are_seen(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake: weights as they were given, not over the largest."""
    monkeypatch.setattr(weights, "_shares", lambda given: np.array([int(ONE * each) for each in given]))
    assert worst(kind, ADD) > 1


def test_shares_are_parts_of_the_largest_and_only_shrink() -> None:
    assert class_shares({"a": 2, "b": 0}, ["a", "b", "c"]).tolist() == [ONE, 0, ONE // 2]
    values = np.arange(-3000, 3001)
    for share in (0, 1, 511, ONE):
        found = shrink_values(values, np.full(len(values), share))
        assert (np.abs(found) <= np.abs(values)).all()
        assert (np.abs(found) >= np.abs(values) * share / ONE - 1).all()
    roots = root_shares([4.0, 1.0, -1.0, np.nan, np.inf, 1e9], 6, 4)
    assert roots.tolist() == [4096, 2048, 0, 0, 4096, 4096]


REFUSED: dict[str, Any] = {
    "balanced": "balanced",
    "a list": [1, 2],
    "a class that is none": {0: 1, 3: 2},
    "below zero": {0: -1},
    "no weight": {0: 0, 1: 0},
    "not finite": {0: float("inf")},
}


@every("name", REFUSED)
def test_weights_that_are_not_public_numbers_are_refused_before_the_rows(name: str) -> None:
    forests: list[Any] = [
        lambda **given: learn.DecisionTreeClassifier(bounds=(-1, 1), **given),
        lambda **given: learn.RandomForestClassifier(bounds=(-1, 1), **given),
    ]
    for kind in (*KINDS, *forests):
        with pytest.raises(InvalidParameter, match="class_weight"):
            kind(classes=[0, 1], class_weight=REFUSED[name]).plan_event(2)


def test_perturbations_refuse_weights() -> None:
    for method in ("output", "objective"):
        model = learn.LogisticRegression(bounds=(0, 1), classes=[0, 1], method=method, class_weight={0: 1, 1: 2})
        with pytest.raises(InvalidParameter, match="gradient"):
            model.plan_event(2)


def test_a_heavier_class_is_predicted_more_often() -> None:
    X = normals((4000, 2), bits=SeededBits(3))
    y = (X[:, 0] + normals(4000, bits=SeededBits(4)) > 1).astype(int)
    for kind in (*KINDS, lambda **given: learn.DecisionTreeClassifier(bounds=(-3, 3), **given)):
        model = kind(epsilon=20, classes=[0, 1], random_state=1).set_params(bounds=(-3, 3))
        light = model.fit(X, y).predict(X).mean()
        heavy = model.set_params(class_weight={1: 8}).fit(X, y).predict(X).mean()
        assert heavy > light + 0.1
        assert model.event_ == model.set_params(class_weight=None).plan_event(2)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", [ADD, SWAP])
def test_no_weight_of_a_row_moves_a_regression_more_than_was_paid(neighbours: str) -> None:
    def listen(rows: list[Any]) -> list[Told]:
        table = np.array(rows)
        model = learn.LinearRegression(
            bounds=(-1, 1), label_bounds=(-1, 1), weight_bound=2, neighbours=neighbours, random_state=1
        )
        return told(lambda: model.fit(table[:, :1], table[:, 1], sample_weight=table[:, 2]))

    rows = list(product((-1.0, 1.0, 0.3), (-1.0, 1.0, np.nan), (0.0, 0.5, 2.0, 1e6, -3.0, np.nan)))
    base = [(0.5, 0.5, 1.0)]
    said = [listen([*base, row]) for row in rows]
    pairs = list(combinations(said, 2)) if neighbours == SWAP else [(listen(base), one) for one in said]
    multiplier = Fraction(learn.LinearRegression(bounds=(-1, 1), label_bounds=(-1, 1)).plan_event(1).noise_multiplier)  # type: ignore[attr-defined]
    moved = max(squared_distance(left, right) for left, right in pairs) * multiplier**2
    assert Fraction(8, 10) < moved <= 1


def test_a_weighted_regression_is_the_exact_one_with_little_noise() -> None:
    X = np.clip(normals((5000, 2), bits=SeededBits(6)), -3, 3)
    y = X @ [1.0, -2.0] + np.where(X[:, 0] > 0, 1.0, 0.0)
    parts = np.where(X[:, 0] > 0, 3.0, 0.5)
    model = learn.LinearRegression(epsilon=1e4, bounds=(-3, 3), label_bounds=(-12, 12), weight_bound=3, random_state=1)
    assert model.fit(X, y, sample_weight=parts).coef_ == pytest.approx(Exact().fit(X, y, parts).coef_, abs=0.03)
    again = learn.from_json(learn.to_json(model))
    assert again.weight_bound == 3


@every("specimen", [one for one in SPECIMENS if one.name not in ("LinearRegression", "Ridge")])
def test_other_learners_refuse_weights_of_rows_with_the_reason(specimen: Specimen) -> None:
    X, y = specimen.data
    with pytest.raises(InvalidParameter, match="as private as its row") as caught:
        specimen.ready().fit(X, y, sample_weight=np.ones(len(X)))
    assert caught.value.name == "sample_weight"
