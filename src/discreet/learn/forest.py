"""A forest of private trees, each grown on rows of its own."""

from __future__ import annotations

from typing import Any

from discreet import check
from discreet.learn.trees import TreeLearner


class RandomForestClassifier(TreeLearner):
    """A few private trees on disjoint random parts of the rows, which vote with the shares in their leaves.

    Ranks rows better than one tree does where there are many, and costs the same, since each row is in one tree only.

    Args:
        epsilon: what one fit may cost; nothing but the finding of classes uses a delta.
        delta: needed only if `classes` is None.
        bounds: public limits (low, high), one pair or one for each feature.
        classes: the public labels; None to find them for a part of the budget.
        n_estimators: how many trees there are.
        max_depth: how many questions a row is asked in a tree.
        cells: into how many equal parts the bounds are cut; splits lie between them.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed that protects nobody.

    Attributes:
        classes_: the labels.
        features_, thresholds_, counts_: as in `DecisionTreeClassifier`, for each tree.

    Formal guarantee: pure epsilon-DP, the guarantee of one tree. A row goes to a tree by a coin that reads neither it
    nor others. Given the coins, two neighbours differ in the rows of one tree only (a replaced row keeps the coin of
    its place), so only that tree's releases differ in law: parallel composition under both relations. The coins are
    not released, and a mixture over them of laws that keep the inequality keeps it.

    >>> import numpy as np
    >>> X = np.linspace(0, 1, 4000)[:, None]
    >>> model = RandomForestClassifier(epsilon=3, bounds=(0, 1), classes=[0, 1], random_state=0)
    >>> round(model.fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5), 2)
    1.0
    """

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 0,
        bounds: Any = None,
        classes: Any = None,
        n_estimators: int = 3,
        max_depth: int = 4,
        cells: int = 16,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.cells = cells
        self.neighbours = neighbours
        self.random_state = random_state

    def _n_trees(self) -> int:
        return check.integer(n_estimators=self.n_estimators, at_least=1, at_most=10**6)
