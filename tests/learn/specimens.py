"""One instance of every learner, with public bounds and a few rows: what tests of all learners are given.

A learner that `discreet.learn` exports needs an entry here, with the reason for each of scikit-learn's own checks that
it fails on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor

from discreet import learn
from discreet.learn.persistence.store import kinds
from discreet.noise import SeededBits
from discreet.noise.experiment import normals

QUIET = "an error would tell that one row has such a label: it is clipped, or counts nowhere"
NO_ROWS = "an error would tell that there are no rows, and their number is private"
FOUND = "which labels occur often enough to be classes is found privately, and finding none is an answer"

COMMON: Mapping[str, Any] = {"epsilon": 1e4, "delta": 1e-6}
ROWS, FEATURES = 40, 3


@dataclass(frozen=True)
class Specimen:
    """How a learner is made, what scikit-learn expects of it that it refuses, and whether all its checks take long."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    public: tuple[str, ...] = ("bounds", "norm_bound")
    excused: Mapping[str, str] = field(default_factory=dict)
    slow: bool = False
    checked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> type[Any]:
        """Its class."""
        return kinds()[self.name]

    def make(self, **changed: Any) -> Any:
        """An instance, with other parameters, of learners inside it as well."""
        inside = {name: value for name, value in changed.items() if "__" in name}
        own = {name: value for name, value in changed.items() if "__" not in name}
        return clone(self.kind(**{**COMMON, **self.params, **own})).set_params(**inside)

    @property
    def data(self) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        """Rows within the bounds, two classes that differ, a target of numbers that follows the first feature."""
        X = np.clip(normals((ROWS, FEATURES), bits=SeededBits(5)), -3, 3)
        model = self.make()
        if is_classifier(model):
            return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
        return X, np.clip(2 * X[:, 0], -4, 4) if is_regressor(model) else None

    def ready(self, **changed: Any) -> Any:
        """An instance for the data, with a seed unless another is given; its classes are public if it has any."""
        model = self.make(**{"random_state": 7, **changed})
        known = {"classes", "estimator__classes"} & model.get_params().keys() - changed.keys()
        return model.set_params(**{name: ["no", "yes"] for name in known})

    def fit(self, X: Any = None, y: Any = None, **changed: Any) -> Any:
        """A fitted instance."""
        given, labels = self.data
        model = self.ready(**changed)
        X, y = (given, labels) if X is None else (X, y)
        return model.fit(X) if y is None else model.fit(X, y)


_BOXED = {"bounds": (-3.0, 3.0)}
_EMPTY = {"check_estimators_empty_data_messages": NO_ROWS}
_NUMERIC = {"check_supervised_y_no_nan": QUIET, **_EMPTY}
CLASSES = {"check_classifiers_regression_target": FOUND, **_NUMERIC}
_WEIGHTS = {
    "check_all_zero_sample_weights_error": "an error would tell that all weights are 0",
    "check_sample_weight_equivalence_on_dense_data": "a weight is a part of a row, at most the whole of it",
    "check_sample_weight_equivalence_on_sparse_data": "a weight is a part of a row, at most the whole of it",
}
_UNPAID = {"check_clustering": "labels of the training rows would be stored, and nobody paid for them"}
_WIDE: dict[str, Any] = {"bounds": (-10.0, 10.0), "epsilon": 1000}
SPECIMENS = (
    Specimen("AdditiveClassifier", {**_WIDE, "rounds": 4, "cells": 16}, excused=CLASSES),
    Specimen("AutoClassifier", {**_WIDE, "delta": 1e-6}, excused=CLASSES),
    Specimen("DecisionTreeClassifier", _WIDE, excused=CLASSES),
    Specimen("ExtraTreesClassifier", {**_WIDE, "n_estimators": 5, "candidates": 20}, excused=CLASSES),
    Specimen("GaussianNB", {**_BOXED, "epsilon": 300}, excused=CLASSES),
    Specimen(
        "GridSearchCV",
        {"estimator": learn.DecisionTreeClassifier(**_WIDE), "param_grid": {"max_depth": [1, 3]}, "delta": 0},
        public=("estimator__bounds",),
        excused=CLASSES,
        checked={"delta": 1e-6},
        slow=True,
    ),
    Specimen("KMeans", {**_BOXED, "n_clusters": 3}, excused={**_EMPTY, **_UNPAID}),
    Specimen("LinearRegression", {**_BOXED, "label_bounds": (-10, 10)}, excused={**_NUMERIC, **_WEIGHTS}),
    Specimen("LinearSVC", {**_BOXED, "steps": 30}, excused=CLASSES),
    Specimen("LogisticRegression", {**_BOXED, "steps": 30}, excused=CLASSES),
    Specimen("PCA", _BOXED, excused=_EMPTY),
    Specimen("RandomForestClassifier", {**_WIDE, "n_estimators": 2}, excused=CLASSES),
    Specimen("Ridge", {**_BOXED, "label_bounds": (-10, 10)}, excused={**_NUMERIC, **_WEIGHTS}),
    Specimen("StandardScaler", _BOXED, excused=_EMPTY),
)
