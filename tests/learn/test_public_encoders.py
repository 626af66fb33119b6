"""Public steps: their fit reads no value, their output is a function of each row, and no value is an error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils.estimator_checks import check_estimator

from discreet import learn
from discreet.errors import InvalidParameter
from tests.learn.specimens import NO_ROWS

ODD: list[Any] = ["a", "b", None, float("nan"), 3, 3.0, True, b"a", ["a"], "A", "", np.str_("b"), np.int64(3)]
HOT = learn.PublicOneHotEncoder(categories=[["a", "b", 3]])


def test_no_value_is_an_error() -> None:
    column = np.empty((len(ODD), 1), dtype=object)
    column[:, 0] = ODD
    found = HOT.fit(column[:0]).transform(column)
    assert found.tolist()[:6] == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert found.sum() == 6
    codes = learn.PublicOrdinalEncoder(categories=[["a", "b", 3]]).fit(column[:0]).transform(column)
    assert np.isnan(codes).sum() == len(ODD) - 6
    far = learn.PublicScaler(bounds=(0, 4)).fit_transform([[1.0], [np.nan], [np.inf], [-np.inf], [1e308]])
    assert far.ravel().tolist()[:1] + far.ravel().tolist()[2:] == [0.25, 1.0, 0.0, 1.0]
    assert np.isnan(far[1, 0])


@pytest.mark.parametrize(
    "step",
    [
        learn.PublicOneHotEncoder(categories={"k": ["a", "b"], "n": [1, 2]}),
        learn.PublicOrdinalEncoder(categories={"n": [1, 2], "k": ["a", "b"]}),
    ],
)
def test_what_is_fitted_depends_on_names_alone(step: Any) -> None:
    frame = pd.DataFrame({"k": ["a", "b", "z"], "n": [1, 2, 9]})
    whole, none = step.fit(frame).transform(frame), step.fit(frame[:0]).transform(frame)
    assert np.array_equal(whole, none, equal_nan=True)
    assert np.array_equal(whole, step.fit(frame).transform(pl.DataFrame(frame.to_dict("list"))), equal_nan=True)
    alone = np.vstack([step.transform(frame[i : i + 1]) for i in range(3)])
    assert np.array_equal(whole, alone, equal_nan=True)
    with pytest.raises(ValueError, match="same order"):
        step.transform(frame[["n", "k"]])


def test_names_and_tables_come_out() -> None:
    frame = pd.DataFrame({"ward": ["A", "B"], "sex": ["F", "M"]})
    encoder = learn.PublicOneHotEncoder(categories={"sex": ["F", "M"], "ward": ["A", "B"]})
    made = encoder.set_output(transform="pandas").fit_transform(frame)
    assert list(made.columns) == ["ward=A", "ward=B", "sex=F", "sex=M"]
    with pytest.raises(InvalidParameter, match="input_features"):
        encoder.get_feature_names_out(["x", "y"])
    scaler = learn.PublicScaler(bounds={"age": (0, 100)}).set_output(transform="pandas")
    assert scaler.fit_transform(pd.DataFrame({"age": [50]})).to_dict("list") == {"age": [0.5]}


@pytest.mark.parametrize(
    "step",
    [
        learn.PublicOneHotEncoder(),
        learn.PublicOneHotEncoder(categories="auto"),
        learn.PublicOneHotEncoder(categories=[["a"], ["b"]]),
        learn.PublicOneHotEncoder(categories=[[]]),
        learn.PublicOrdinalEncoder(categories=[["a", "a"]]),
        learn.PublicOrdinalEncoder(categories=[[float("nan")]]),
        learn.PublicOrdinalEncoder(categories={"other": ["a"]}),
        learn.PublicScaler(),
        learn.PublicScaler(bounds=(1, 0)),
        learn.PublicScaler(bounds={"other": (0, 1)}),
        learn.PublicScaler(bounds=(0, 1), feature_range=(1, 1)),
    ],
)
def test_what_is_not_declared_is_refused(step: Any) -> None:
    with pytest.raises(InvalidParameter):
        step.fit(pd.DataFrame({"x": [1.0]}))


def test_scikit_learn_accepts_the_scaler() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        excused = {"check_estimators_empty_data_messages": NO_ROWS}
        results = check_estimator(learn.PublicScaler(bounds=(-9, 9)), expected_failed_checks=excused, on_fail=None)
    assert [f"{one['check_name']}: {one['exception']!r}" for one in results if one["status"] == "failed"] == []
