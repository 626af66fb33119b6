"""One learning task in one form for every library, and the loop in which a worker fits and scores it.

Standard library and numpy only: every environment imports this file.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Task:
    """Train, predict, score, at a guarantee.

    Attributes:
        path: an .npz file with X_train, y_train, X_test, y_test, and raw_train, raw_test (text) if `kinds` is given.
        learner: "logistic", "additive", "linear", "bayes", "kmeans", "forest".
        kinds: of the raw columns, "nominal" or "continuous", for libraries that encode by themselves.
        limits: of the raw continuous columns.
        norm: how long a row of X may be.
        low: of all entries of X.
        high: of all entries of X.
        label_low: of y, where it is a number.
        label_high: of y, where it is a number.
        clusters: how many, of a clustering.
        seeds: how many fits.
    """

    path: str
    learner: str
    epsilon: float
    delta: float = 1e-6
    kinds: tuple[str, ...] = ()
    limits: tuple[tuple[float, float] | None, ...] = ()
    norm: float = 1.0
    low: float = 0.0
    high: float = 1.0
    label_low: float = 0.0
    label_high: float = 1.0
    clusters: int = 0
    seeds: int = 3

    def text(self) -> str:
        return json.dumps(asdict(self))


Scores = dict[str, list[float]]


def auc(labels: Any, scores: Any) -> float:
    """The area under the curve, ties counted half."""
    positive = np.asarray(labels) == np.max(labels)
    order = np.argsort(scores, kind="stable")
    values, ranks = np.asarray(scores)[order], np.empty(len(order))
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks[order] = (ends - (counts - 1) / 2)[inverse]
    wins = ranks[positive].sum() - positive.sum() * (positive.sum() + 1) / 2
    return float(wins / (positive.sum() * (~positive).sum()))


def score(task: Task, model: Any, X: Any, y: Any) -> dict[str, float]:
    """Accuracy and AUC of a classifier, R2 of a regression, mean squared distance of a clustering."""
    if task.learner == "kmeans":
        distances = ((np.asarray(X)[:, None, :] - np.asarray(model.cluster_centers_)[None]) ** 2).sum(axis=2)
        return {"cost": float(distances.min(axis=1).mean())}
    if task.learner == "linear":
        missed = np.asarray(y) - np.ravel(model.predict(X))
        return {"r2": float(1 - np.sum(missed**2) / np.sum((y - np.mean(y)) ** 2))}
    found = {"accuracy": float(np.mean(np.asarray(model.predict(X)) == y))}
    if len(np.unique(y)) == 2:
        found["auc"] = auc(y, np.asarray(model.predict_proba(X))[:, 1])
    return found


def run(task: Task, fit: Callable[[Task, int, Any, Any], Any], *, raw: bool = False) -> Scores:
    """Fits with several seeds and collects scores and seconds of CPU."""
    with np.load(task.path) as data:
        X, y, X_test, y_test = (data[name] for name in ("X_train", "y_train", "X_test", "y_test"))
        if raw:
            X, X_test = data["raw_train"], data["raw_test"]
    scores: Scores = {}
    for seed in range(task.seeds):
        start = time.process_time()
        model = fit(task, seed, X, y)
        found = {"seconds": time.process_time() - start} | score(task, model, X_test, y_test)
        for name, value in found.items():
            scores.setdefault(name, []).append(value)
    return scores


def serve(fit: Callable[[Task, int, Any, Any], Any], *, raw: bool = False) -> None:
    """What a worker does: a task from the input, scores to the output."""
    warnings.simplefilter("ignore")
    print(json.dumps(run(Task(**json.loads(sys.stdin.read())), fit, raw=raw)))
