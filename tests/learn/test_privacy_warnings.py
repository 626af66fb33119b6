"""Warnings for whoever holds the rows: fits that add up, steps without privacy, labels of no class."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV as UnpaidSearch
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as ReadingScaler

from discreet import learn
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.learn import privacy_warnings
from discreet.learn.privacy_warnings import Sketch
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Budget

X = normals((400, 3), bits=SeededBits(2))
Y = (X[:, 0] > 0).astype(int)
TREE = learn.DecisionTreeClassifier(epsilon=1, bounds=(-3, 3), classes=[0, 1], max_depth=1, cells=2)


@pytest.fixture(autouse=True)
def _nothing_was_fitted() -> Iterator[None]:
    privacy_warnings.forget_fits()
    yield
    privacy_warnings.forget_fits()


def told(act: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(one.message) for one in caught if issubclass(one.category, learn.PrivacyWarning)]


def test_a_second_fit_on_the_same_rows_says_what_both_cost() -> None:
    assert told(lambda: TREE.fit(X, Y)) == []
    other = learn.GaussianNB(epsilon=2, delta=1e-6, bounds=(-3, 3), classes=[0, 1])
    assert "2 fits on them cost epsilon=3, delta=1e-06 together" in told(lambda: other.fit(X, Y))[0]
    assert told(lambda: TREE.fit(X + 0.5, Y)) == []


def test_cross_validation_and_other_searches_say_what_they_cost() -> None:
    said = told(lambda: cross_val_score(TREE, X, Y, cv=4))
    assert "4 fits on them cost epsilon=4 together" in said[-1]
    assert len(said) == 3
    privacy_warnings.forget_fits()
    said = told(lambda: UnpaidSearch(TREE, {"max_depth": [1, 2]}, cv=2).fit(X, Y))
    assert "cost epsilon=" in said[-1]


def test_our_search_and_a_pipeline_are_one_price() -> None:
    search = learn.GridSearchCV(TREE, {"max_depth": [1, 2]}, epsilon=2, delta=0)
    assert told(lambda: search.fit(X, Y)) == []
    pipeline = learn.Pipeline([("scaled", learn.PublicScaler(bounds=(-3, 3))), ("tree", TREE)])
    assert "2 fits on them cost epsilon=3 together" in told(lambda: pipeline.fit(X, Y))[0]


def test_a_seed_costs_nothing() -> None:
    seeded = learn.DecisionTreeClassifier(bounds=(-3, 3), classes=[0, 1], random_state=1)
    assert told(lambda: [seeded.fit(X, Y) for _ in range(3)]) == []


def test_rows_that_many_people_share_are_not_taken_for_the_same() -> None:
    """Of two tables of few different rows nobody can say that they are about the same people."""
    coarse = np.floor(np.abs(X))
    assert told(lambda: TREE.fit(coarse[:200], Y[:200])) == []
    assert told(lambda: TREE.fit(coarse[200:], Y[200:])) == []
    assert len(told(lambda: TREE.fit(coarse[:200], Y[:200]))) == 1


def test_sketches_know_a_tenth_and_no_less_than_nothing() -> None:
    rows = normals((3000, 4), bits=SeededBits(8))
    whole = Sketch.of(rows)
    assert whole.shares(Sketch.of(rows[::-1]))
    assert whole.shares(Sketch.of(rows[:1000]))
    assert not whole.shares(Sketch.of(rows + 1))
    assert not Sketch.of(rows[:1500]).shares(Sketch.of(rows[1500:]))


def test_no_warning_tells_a_hash_or_a_number_of_rows() -> None:
    said = [*told(lambda: cross_val_score(TREE, X, np.where(Y > 0, 1, 7), cv=2))]
    key, total = privacy_warnings._key(), Sketch.of(X).total
    assert all(str(secret) not in text for text in said for secret in (key, total, 400, 200))


def test_remembering_is_cheap() -> None:
    """At most a twentieth of the cheapest fit of so many rows."""
    rows = normals((20_000, 20), bits=SeededBits(3))
    scaler = learn.StandardScaler(bounds=(-3, 3), random_state=1)
    begun = time.process_time()
    scaler.fit(rows)
    fitted = time.process_time()
    Sketch.of(rows)
    assert time.process_time() - fitted < max(0.25 * (fitted - begun), 0.02)


def test_columns_that_were_scaled_by_their_own_moments_are_seen() -> None:
    seeded = learn.LogisticRegression(norm_bound=3, classes=[0, 1], random_state=1)
    said = told(lambda: make_pipeline(ReadingScaler(), seeded).fit(X, Y))
    assert len(said) == 1
    assert "StandardScaler" in said[0]
    assert told(lambda: seeded.fit(X, Y)) == []
    ours = learn.StandardScaler(bounds=(-4, 4), random_state=1)
    assert told(lambda: make_pipeline(ours, seeded).fit(X, Y)) == []


@pytest.mark.parametrize("labels", [np.where(Y > 0, 1, 2), Y.astype(str), [1 if one else "none" for one in Y]])
def test_labels_outside_the_classes_are_told_to_whoever_holds_them(labels: Any) -> None:
    seeded = learn.DecisionTreeClassifier(bounds=(-3, 3), classes=[0, 1], random_state=1)
    said = told(lambda: seeded.fit(X, np.array(labels, dtype=object)))
    assert [text[:33] for text in said] == ["Some labels are not in classes=.."]


def test_missing_labels_and_classes_to_be_found_are_no_mistake() -> None:
    seeded = learn.GaussianNB(bounds=(-3, 3), classes=[0, 1], random_state=1)
    assert told(lambda: seeded.fit(X, np.where(Y > 0, 1.0, np.nan))) == []
    assert told(lambda: seeded.set_params(classes=None).fit(X, Y)) == []


def test_nobody_is_told_of_rows_under_an_account() -> None:
    rows = [{"x": float(x), "label": "abc"[place % 3]} for place, x in enumerate(X[:60, 0])]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(1))
    declared: dict[str, Any] = {"types": {"x": "float", "label": "text"}, "bounds": {"x": (-1, 1)}}
    curator.protect(rows, name="people", budget=Budget(epsilon=9), **declared)
    tree = learn.DecisionTreeClassifier(epsilon=1, classes=["a", "b"])
    question = "SELECT x, label FROM people"
    assert told(lambda: curator.fit(tree, question, target="label")) == []
    assert told(lambda: curator.fit(tree.set_params(max_depth=2), question, target="label")) == []
    assert len(privacy_warnings._FITS) == 0
