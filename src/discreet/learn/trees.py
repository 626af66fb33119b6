"""Decision trees whose splits and leaves are private, alone or as a forest on disjoint rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.learn.cells import Cells, Integers
from discreet.learn.classifier import Classifier
from discreet.learn.growing import DEEPEST, Splitter, Tree
from discreet.learn.labelled import read_labelled, read_rows
from discreet.learn.labels import ClassPlan, codes
from discreet.mechanisms import Laplace
from discreet.noise import Bits, uniform_below
from discreet.privacy import ApproxDP, Neighbours, PureDP, events
from discreet.privacy.events import Event

HALF = Fraction(1, 2)  # of epsilon for splits, the rest for leaves


class TreeLearner(Classifier):
    """What one tree and a forest have in common; a forest of one tree is the tree."""

    bounds: Any
    max_depth: Any
    cells: Any
    features_: Integers
    thresholds_: Integers
    counts_: Integers

    def _n_trees(self) -> int:
        return 1

    def plan_event(self, n_features: int) -> Event:
        """The event of a fit on so many features."""
        Cells.of(n_features, self.bounds, self._cells())
        self._n_trees()
        plan = self._class_plan()
        return plan.composed(self._recipe(plan).event)

    def fit(self, X: Any, y: Any) -> Self:
        """Grows the trees.

        Args:
            X: rows of numbers; missing ones count as the middle of the bounds.
            y: labels; rows whose label is none of the classes count nowhere.
        """
        plan = self._class_plan()
        recipe, trees = self._recipe(plan), self._n_trees()
        X, y = read_labelled(self, X, y)
        public = Cells.of(X.shape[1], self.bounds, self._cells())
        event, bits = self._affordable(plan.composed(recipe.event)), self._bits()
        self.classes_ = plan.read(y, bits)
        labels = codes(y, self.classes_)
        places, labels = public.places(X)[labels >= 0], labels[labels >= 0]
        tree_of = uniform_below(trees, len(labels), bits=bits)  # a coin of its own for each row, whatever it holds
        grown = [
            recipe.grow(places[kept], labels[kept], len(self.classes_), bits)
            for kept in (tree_of == tree for tree in range(trees))
        ]
        self.features_ = np.stack([tree.feature for tree, _ in grown])
        self.thresholds_ = np.stack([tree.cell for tree, _ in grown])
        self.counts_ = np.stack([counts for _, counts in grown])
        self._account(event, bits)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class: noisy shares in the row's leaf, averaged over trees."""
        check_is_fitted(self)
        X = read_rows(self, X)
        places = Cells.of(X.shape[1], self.bounds, self._cells()).places(X)
        total = np.zeros((len(X), len(self.classes_)))
        for feature, cell, counts in zip(self.features_, self.thresholds_, self.counts_, strict=True):
            held = np.maximum(counts, 0) + 1.0
            total += (held / held.sum(axis=1, keepdims=True))[Tree(feature=feature, cell=cell).leaves(places)]
        return total / len(self.counts_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _cells(self) -> int:
        return check.integer(cells=self.cells, at_least=2, at_most=1 << 12)

    def _recipe(self, plan: ClassPlan) -> _Recipe:
        loss = plan.rest.loss
        epsilon = loss.epsilon if isinstance(loss, PureDP | ApproxDP) else Fraction(0)
        return _Recipe(
            epsilon=epsilon,
            depth=check.integer(max_depth=self.max_depth, at_least=1, at_most=DEEPEST),
            cells=self._cells(),
            neighbours=self._relation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recipe:
    """How one tree is grown: half of epsilon for its splits, level by level, and half for the counts in its leaves."""

    epsilon: Fraction
    depth: int
    cells: int
    neighbours: Neighbours

    @property
    def splitter(self) -> Splitter:
        monotone = self.neighbours is Neighbours.ADD_REMOVE
        return Splitter(epsilon=self.epsilon * HALF / self.depth, depth=self.depth, cells=self.cells, monotone=monotone)

    @property
    def noise(self) -> Laplace:
        """One row is in one leaf, under one label: counts move by 1, or by 2 if it is replaced."""
        return Laplace(
            epsilon=self.epsilon * (1 - HALF), sensitivity=1 if self.neighbours is Neighbours.ADD_REMOVE else 2
        )

    @property
    def event(self) -> Event:
        levels = events.Repeated(events.Pure(self.splitter.epsilon), self.depth)
        return events.Composed([levels, self.noise.event])

    def grow(self, places: Integers, labels: Integers, classes: int, bits: Bits) -> tuple[Tree, Integers]:
        """The tree, and the noisy count of each label in each leaf."""
        tree = self.splitter.grow(places, labels, classes, bits)
        leaves = 1 << self.depth
        flat = tree.leaves(places) * classes + labels
        counts = np.bincount(flat, minlength=leaves * classes).reshape(leaves, classes).astype(np.int64)
        return tree, np.asarray(self.noise.release(counts, bits=bits))


class DecisionTreeClassifier(TreeLearner):
    """One tree of a fixed depth, with private splits and private counts in its leaves.

    A tree is a rule that people can read, and finds what features do together. Where they add up, `AdditiveClassifier`
    predicts better from the same budget (docs/learning.md has figures).

    Args:
        epsilon: what one fit may cost; nothing but the finding of classes uses a delta.
        delta: needed only if `classes` is None.
        bounds: public limits (low, high), one pair or one for each feature.
        classes: the public labels; None to find them for a part of the budget.
        max_depth: how many questions a row is asked; fixed, never stopped early by data.
        cells: into how many equal parts the bounds are cut; splits lie between them.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed that protects nobody.

    Attributes:
        classes_: the labels.
        features_, thresholds_: of each tree and inner node (children of i: 2 i + 1 and 2 i + 2), the feature asked
            about and the cell from which a row goes right.
        counts_: of each tree, leaf and class, the noisy number of rows.

    Formal guarantee: pure epsilon-DP, half of it for the splits, an equal part for each level (`Splitter`), half for
    the counts in the leaves: a row lies in one leaf and has one label, so they move by 1 in the L1 norm, by 2 if the
    row is replaced. Basic composition adds up to epsilon.

    >>> X = np.linspace(0, 1, 2000)[:, None]
    >>> model = DecisionTreeClassifier(epsilon=3, bounds=(0, 1), classes=[0, 1], random_state=0)
    >>> round(model.fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5), 2)
    1.0
    >>> print(model.privacy_spent_)
    epsilon=3
    """

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 0,
        bounds: Any = None,
        classes: Any = None,
        max_depth: int = 4,
        cells: int = 16,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.max_depth = max_depth
        self.cells = cells
        self.neighbours = neighbours
        self.random_state = random_state
