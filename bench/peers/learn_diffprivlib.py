"""diffprivlib's learners, with the public bounds that they ask for."""

from __future__ import annotations

from typing import Any

from diffprivlib import models
from learning import Task, serve


def fit(task: Task, seed: int, X: Any, y: Any) -> Any:
    bounds = (task.low, task.high)
    common = {"epsilon": task.epsilon, "random_state": seed}
    build = {
        "logistic": lambda: models.LogisticRegression(data_norm=task.norm, **common),
        "linear": lambda: models.LinearRegression(
            bounds_X=bounds, bounds_y=(task.label_low, task.label_high), **common
        ),
        "bayes": lambda: models.GaussianNB(bounds=bounds, **common),
        "kmeans": lambda: models.KMeans(n_clusters=task.clusters, bounds=bounds, **common),
        "forest": lambda: models.RandomForestClassifier(bounds=bounds, classes=sorted(set(y.tolist())), **common),
        "tree": lambda: models.DecisionTreeClassifier(bounds=bounds, classes=sorted(set(y.tolist())), **common),
    }
    return build[task.learner]().fit(X, y)


serve(fit)
