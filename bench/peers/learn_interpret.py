"""DP-EBM on raw columns, which it bins by itself; categories cost it a part of its budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from learning import Task, serve


class Raw:
    """A fitted model that takes texts."""

    def __init__(self, model: Any, kinds: tuple[str, ...]) -> None:
        self.model, self.kinds = model, kinds

    def predict(self, X: Any) -> Any:
        return self.model.predict(columns(X, self.kinds))

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(columns(X, self.kinds))


def columns(X: Any, kinds: tuple[str, ...]) -> Any:
    table = np.empty(X.shape, dtype=object)
    for place, kind in enumerate(kinds):
        table[:, place] = X[:, place].astype(float) if kind == "continuous" else X[:, place]
    return table


def fit(task: Task, seed: int, X: Any, y: Any) -> Any:
    limits = {place: tuple(pair) for place, pair in enumerate(task.limits) if pair is not None}
    model = DPExplainableBoostingClassifier(
        feature_types=list(task.kinds),
        epsilon=task.epsilon,
        delta=task.delta,
        privacy_bounds=limits,
        random_state=seed,
        n_jobs=1,
    )
    return Raw(model.fit(columns(X, task.kinds), y), task.kinds)


serve(fit, raw=True)
