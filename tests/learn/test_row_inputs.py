"""Rows of every kind: sparse matrices, tables of several libraries, names, and bounds by name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import is_classifier

from discreet import learn
from discreet.errors import InvalidParameter
from discreet.learn import row_inputs
from discreet.learn.persistence import store
from tests.cases import every
from tests.effort import some
from tests.learn.specimens import SPECIMENS, Specimen

NAMES = ["age", "bmi", "children"]
TREE = learn.DecisionTreeClassifier(epsilon=50, classes=[0, 1], random_state=1)


def outputs(model: Any, X: Any) -> list[Any]:
    names = ("predict", "predict_proba", "decision_function", "transform")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


@every("specimen", some(SPECIMENS, 4))
def test_sparse_rows_give_the_same_model_bit_for_bit(specimen: Specimen) -> None:
    X, y = specimen.data
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    wanted = specimen.fit(X, y, epsilon=2.0)
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        model = specimen.fit(form(X), y, epsilon=2.0)
        assert store.to_json(model) == store.to_json(wanted)
    pairs = zip(outputs(wanted, sparse.csr_array(X)), outputs(wanted, X), strict=True)
    assert all(np.array_equal(left, right) for left, right in pairs)


def test_a_sparse_matrix_that_would_be_too_large_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_inputs, "MOST_DENSE", 100)
    with pytest.raises(InvalidParameter, match=r"40 x 3 values.*at most 33 rows"):
        TREE.fit(sparse.csr_array((40, 3)), np.zeros(40))
    with pytest.raises(InvalidParameter, match="1025"):
        TREE.fit(sparse.csr_array((2, 1025)), np.zeros(2))


def _are_alike(left: Any, right: Any) -> bool:
    """Whether outputs are the same: scores but for their last digit, since columns are multiplied in another order."""
    if np.asarray(left).dtype.kind == "f":
        return np.allclose(left, right, rtol=1e-12, atol=1e-12)
    return np.array_equal(left, right)


@every("specimen", some(SPECIMENS, 6))
def test_names_of_a_table_are_kept_and_asked_for_again(specimen: Specimen) -> None:
    X, y = specimen.data
    frames: dict[Any, Any] = {pd: pd.DataFrame(X, columns=NAMES), pl: pl.DataFrame(X, schema=NAMES)}
    frames[pa] = pa.table(frames[pd])
    wanted = specimen.fit(X, y, epsilon=2.0)
    for frame in frames.values():
        model = specimen.fit(frame, y, epsilon=2.0)
        assert model.feature_names_in_.tolist() == NAMES
        pairs = zip(outputs(model, frame), outputs(wanted, X), strict=True)
        assert all(_are_alike(left, right) for left, right in pairs)
        again = store.from_json(store.to_json(model))
        assert again.feature_names_in_.tolist() == NAMES
        ask = again.predict if hasattr(again, "predict") else again.transform
        with pytest.raises(ValueError, match="same order"):
            ask(frames[pd][NAMES[::-1]])
        with pytest.raises(ValueError, match=r"[Ff]eature names"):
            ask(frames[pd].rename(columns={"age": "years"}))
        with pytest.warns(UserWarning, match="valid feature names"):
            ask(X)


@every("specimen", some([one for one in SPECIMENS if "bounds" in one.make().get_params()], 3))
def test_bounds_by_name_are_bounds_by_place(specimen: Specimen) -> None:
    X, y = specimen.data
    frame = pd.DataFrame(X, columns=NAMES)
    low, high = [-3.0, -4.0, -5.0], [3.0, 4.0, 5.0]
    named = dict(zip(NAMES, zip(low, high, strict=True), strict=True))
    shuffled = {name: named[name] for name in ("children", "age", "bmi")}
    by_place = specimen.fit(frame, y, epsilon=2.0, bounds=(low, high))
    by_name = specimen.fit(frame, y, epsilon=2.0, bounds=shuffled)
    assert all(np.array_equal(a, b) for a, b in zip(outputs(by_place, frame), outputs(by_name, frame), strict=True))
    assert by_name.event_ == specimen.ready(epsilon=2.0, bounds=shuffled).plan_event(3)
    again = store.from_json(store.to_json(by_name))
    assert all(np.array_equal(a, b) for a, b in zip(outputs(again, frame), outputs(by_name, frame), strict=True))


def test_bounds_that_name_other_columns_are_refused() -> None:
    X, y = pd.DataFrame(np.zeros((4, 2)), columns=["age", "bmi"]), [0, 1, 0, 1]
    for bounds, told in (
        ({"age": (0, 1)}, r"missing \['bmi'\]"),
        ({"age": (0, 1), "bmi": (0, 1), "sex": (0, 1)}, r"unknown \['sex'\]"),
        ({"age": (0, 1), "bmi": 7}, "pairs"),
        ({"age": (0, 1), "bmi": (2, 1)}, "low < high"),
    ):
        with pytest.raises(InvalidParameter, match=told):
            TREE.set_params(bounds=bounds).fit(X, y)
    with pytest.raises(InvalidParameter, match="without names"):
        TREE.set_params(bounds={"age": (0, 1), "bmi": (0, 1)}).fit(X.to_numpy(), y)


def test_transformers_name_their_columns_and_make_tables() -> None:
    frame = pd.DataFrame(np.linspace(-1, 1, 60).reshape(20, 3), columns=NAMES)
    scaler = learn.StandardScaler(bounds=(-1, 1), random_state=1).set_output(transform="pandas").fit(frame)
    assert list(scaler.transform(frame).columns) == NAMES == scaler.get_feature_names_out().tolist()
    parts = learn.PCA(n_components=2, bounds=(-1, 1), random_state=1).set_output(transform="pandas").fit(frame)
    assert list(parts.transform(frame).columns) == ["pca0", "pca1"]


@pytest.mark.ci
def test_labels_of_a_table_are_labels() -> None:
    for specimen in SPECIMENS:
        X, y = specimen.data
        if y is not None and is_classifier(specimen.make()) and not specimen.slow:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert store.to_json(specimen.fit(X, pd.Series(y))) == store.to_json(specimen.fit(X, y))
