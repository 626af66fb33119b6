"""The smallest honest learners: noisy sums of integer rows, for tests of everything that surrounds a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from discreet.errors import InvalidParameter
from discreet.learn.features import features
from discreet.learn.learner import ClassPlan, Learner, codes
from discreet.mechanisms import Laplace
from discreet.privacy import Neighbours, events
from discreet.statistics.inputs import RADIUS


class TinyLearner(Learner):
    """Parameters of them all, and one release of exact sums."""

    accounts_rows_per_unit = True

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = None,
        bounds: Any = None,
        norm_bound: Any = None,
        neighbours: Any = "add_remove",
        rows_per_unit: Any = 1,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm_bound = norm_bound
        self.neighbours = neighbours
        self.rows_per_unit = rows_per_unit
        self.random_state = random_state

    def _mechanism(self, n_features: int, epsilon: Any = None) -> Laplace:
        """A row moves each of n_features entries by RADIUS at most, and its count by 1; a replaced one twice."""
        features(n_features, bounds=self.bounds, norm_bound=self.norm_bound)
        turns = 1 if self._relation is Neighbours.ADD_REMOVE else 2
        moved = turns * (n_features * RADIUS + 1) * self.rows_per_unit
        return Laplace(epsilon=self.epsilon if epsilon is None else epsilon, sensitivity=moved)

    def _rows(self, X: NDArray[np.float64]) -> NDArray[np.int64]:
        return features(X.shape[1], bounds=self.bounds, norm_bound=self.norm_bound).rows(X)


class TinyScaler(TransformerMixin, TinyLearner):  # type: ignore[misc]
    """The centre of all rows."""

    def plan_event(self, n_features: int) -> events.Event:
        return self._mechanism(n_features).event

    def fit(self, X: Any, y: Any = None) -> TinyScaler:
        del y
        X = validate_data(self, X, ensure_all_finite=False, dtype=np.float64)
        rows, bits = self._rows(X), self._bits()
        found = np.concatenate([rows.sum(axis=0), [len(rows)]])
        noisy = self._mechanism(X.shape[1]).release(found, bits=bits)
        self.centre_ = noisy[:-1] / max(int(noisy[-1]), 1)
        self._account(self.plan_event(X.shape[1]), bits)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(validate_data(self, X, reset=False, ensure_all_finite=False) - self.centre_)


class TinyRegressor(RegressorMixin, TinyLearner):  # type: ignore[misc]
    """The mean of the target."""

    def __init__(self, *, label_bounds: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.label_bounds = label_bounds

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*TinyLearner._get_param_names(), "label_bounds"])

    def plan_event(self, n_features: int) -> events.Event:
        if self.label_bounds is None:
            raise InvalidParameter("label_bounds", None, "to be given")
        return self._mechanism(n_features).event

    def fit(self, X: Any, y: Any) -> TinyRegressor:
        X, y = validate_data(self, X, y, ensure_all_finite=False, dtype=np.float64)
        low, high = self.label_bounds
        steps = np.floor((np.clip(y, low, high) - low) / (high - low) * RADIUS + 0.5).astype(np.int64)
        bits = self._bits()
        total, count = self._mechanism(X.shape[1]).release(np.array([steps.sum(), len(steps)]), bits=bits)
        self.mean_ = float(low + total / max(count, 1) / RADIUS * (high - low))
        self._account(self.plan_event(X.shape[1]), bits)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        return np.full(len(validate_data(self, X, reset=False, ensure_all_finite=False)), self.mean_)


class TinyClassifier(ClassifierMixin, TinyLearner):  # type: ignore[misc]
    """The centre of each class."""

    def __init__(self, *, classes: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.classes = classes

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*TinyLearner._get_param_names(), "classes"])

    def _plan(self) -> ClassPlan:
        return ClassPlan.of(self.classes, epsilon=self.epsilon, delta=self.delta, neighbours=self._relation)

    def plan_event(self, n_features: int, n_classes: int | None = None) -> events.Event:
        del n_classes
        plan = self._plan()
        left = self.epsilon if plan.event is None else self.epsilon * 0.9
        return plan.compose_event(self._mechanism(n_features, left).event)

    def fit(self, X: Any, y: Any) -> TinyClassifier:
        X, y = validate_data(self, X, y, ensure_all_finite=False, dtype=np.float64)
        plan, bits, rows = self._plan(), self._bits(), self._rows(X)
        self.classes_ = plan.read(y, bits)
        places = codes(y, self.classes_)
        sums = np.array([rows[places == place].sum(axis=0) for place in range(len(self.classes_))])
        counts = np.array([(places == place).sum() for place in range(len(self.classes_))])
        left = self.epsilon if plan.event is None else self.epsilon * 0.9
        noisy = self._mechanism(X.shape[1], left).release(np.column_stack([sums, counts]), bits=bits)
        self.centres_ = noisy[:, :-1] / np.maximum(noisy[:, -1:], 1)
        self._account(self.plan_event(X.shape[1]), bits)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        rows = self._rows(validate_data(self, X, reset=False, ensure_all_finite=False, dtype=np.float64))
        far = ((rows[:, None, :] - self.centres_[None]) ** 2).sum(axis=2)
        return np.asarray(self.classes_[far.argmin(axis=1)])


TINY = {kind.__name__: kind for kind in (TinyScaler, TinyRegressor, TinyClassifier)}
