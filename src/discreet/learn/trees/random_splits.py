"""Trees whose splits are drawn at random, so that the whole budget goes to what their leaves hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.learn.base import Classifier, ClassPlan, codes, read_labelled, read_rows
from discreet.learn.features import Cells, Integers
from discreet.learn.trees.decision_trees import DEEPEST, Tree
from discreet.learn.weights import no_weights
from discreet.mechanisms import Laplace
from discreet.noise import Bits, uniform_below
from discreet.privacy import ApproxDP, Neighbours, PureDP, events
from discreet.privacy.events import Event

Floats = NDArray[np.float64]

COUNT_SHARE = Fraction(1, 10)  # of epsilon, for the number of rows of each class
ROWS_PER_TREE = 40  # of rows times epsilon: with less, averaging over trees costs more than it gains
MOST_TREES = 30
LARGEST_FOREST = 1 << 10
_SPREAD = 0.6  # how far shares in a node are expected to lie from those above it
_FINE = 1 << 32


def trees_for(count: float, epsilon: float) -> int:
    """Returns how many trees are worth their noise: one for each `ROWS_PER_TREE` of rows times epsilon.

    >>> trees_for(150, 0.1), trees_for(1000, 1.0), trees_for(10**6, 1.0)
    (1, 25, 30)
    """
    return min(max(math.ceil(count * epsilon / ROWS_PER_TREE), 1), MOST_TREES)


def random_tree(width: int, depth: int, cells: int, bits: Bits) -> Tree:
    """Returns a tree that asks about random features at random cells of what is left of them; it reads no row."""
    inner = (1 << depth) - 1
    feature = uniform_below(width, inner, bits=bits)
    draws = uniform_below(_FINE, inner, bits=bits)
    low = np.zeros((2 * inner + 1, width), dtype=np.int64)
    high = np.full((2 * inner + 1, width), cells, dtype=np.int64)
    cell = np.zeros(inner, dtype=np.int64)
    for node in range(inner):
        asked = feature[node]
        first, last = low[node, asked], high[node, asked]
        cell[node] = first + 1 + (int(draws[node]) * max(int(last - first) - 1, 0)) // _FINE
        low[2 * node + 1], low[2 * node + 2] = low[node], low[node]
        high[2 * node + 1], high[2 * node + 2] = high[node], high[node]
        high[2 * node + 1, asked], low[2 * node + 2, asked] = cell[node], cell[node]
    return Tree(feature=feature, cell=cell)


def smoothed(counts: NDArray[Any], prior: Floats, deviation: float) -> Floats:
    """Returns shares of classes from noisy counts, each moved from a prior as far as the noise lets it be believed.

    The error of a share is about that of a count over the number of rows; a normal prior with a deviation of
    `_SPREAD` around what was expected then leaves this part of the difference (a posterior mean).

    >>> smoothed(np.array([[300, 100], [-4, 2]]), np.array([[0.5, 0.5]]), 10.0).round(2).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    held = np.maximum(counts, 0.0)
    rows = held.sum(axis=1, keepdims=True)
    believed = rows**2 / (rows**2 + counts.shape[1] * (deviation / _SPREAD) ** 2)
    return np.asarray(prior + believed * (held / np.maximum(rows, 1.0) - prior))


def leaf_shares(counts: NDArray[Any], scale: float, prior: Floats) -> Floats:
    """Returns the share of each class in each leaf from counts with Laplace noise: post-processing.

    From the root down, the counts of a node, which are the sums of its leaves', correct the shares of the node above
    it. Noise is that of the average over all trees. A leaf of few rows is believed to be like those around it, and if
    noise hides all, like all rows.

    >>> leaf_shares(np.array([[90, 10], [0, 0]]), 0.01, np.array([[0.5, 0.5]])).round(2).tolist()
    [[0.9, 0.1], [0.9, 0.1]]
    """
    leaves, classes = counts.shape
    shares = prior
    for level in range(leaves.bit_length()):
        below = leaves >> level
        held = counts.reshape(1 << level, below, classes).sum(axis=1)
        above = np.repeat(shares, len(held) // len(shares), axis=0)
        shares = smoothed(held, above, scale * math.sqrt(2 * below))
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTrees:
    """How trees with random splits are filled.

    Formal guarantee: pure epsilon-DP. Splits read no row. A row lies in one leaf of each tree and has one label, so
    that the counts of T trees move by T together in the L1 norm, by 2 T if the row is replaced: Laplace noise of scale
    T / epsilon. How many rows each class has is released first, with Laplace noise for a move of 1, or 2; how many
    trees there are follows from it, and whatever it says, the rest of epsilon is what all trees cost.

    Attributes:
        epsilon: what all of it costs.
        trees: how many; None lets the number of rows decide.
        depth: of each tree.
        cells: of each feature.
        neighbours: the relation to protect.
    """

    epsilon: Fraction
    trees: int | None
    depth: int
    cells: int
    neighbours: Neighbours

    @property
    def _moved(self) -> int:
        return 1 if self.neighbours is Neighbours.ADD_REMOVE else 2

    @property
    def _counter(self) -> Laplace:
        return Laplace(epsilon=self.epsilon * COUNT_SHARE, sensitivity=self._moved)

    @property
    def _rest(self) -> Fraction:
        return self.epsilon * (1 - COUNT_SHARE)

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        return events.Composed([self._counter.event, events.Pure(self._rest)])

    def whole(self, labels: Integers, classes: int, bits: Bits) -> tuple[Floats, int]:
        """Returns the share of each class among all rows, and how many trees are grown: the first release."""
        counter = self._counter
        exact = np.bincount(labels, minlength=classes).astype(np.int64)
        noisy = np.asarray(counter.release(exact, bits=bits))[None, :]
        deviation = math.sqrt(2) * float(counter.sensitivity / counter.epsilon)
        trees = self.trees or trees_for(float(noisy.sum()), float(self._rest))
        return smoothed(noisy, np.full((1, classes), 1 / classes), deviation), trees

    def fill(self, counts: Integers, trees: int, prior: Floats, bits: Bits) -> Floats:
        """Returns the share of each class in each leaf of one of so many trees, from exact counts of labels."""
        noise = Laplace(epsilon=self._rest / trees, sensitivity=self._moved)
        noisy = np.asarray(noise.release(counts, bits=bits))
        return leaf_shares(noisy, self._moved * math.sqrt(trees) / float(self._rest), prior)  # of their average

    def counts(self, tree: Tree, places: Integers, labels: Integers, classes: int) -> Integers:
        """Returns how many rows of each label lie in each leaf of a tree."""
        leaves = 1 << self.depth
        flat = tree.leaves(places) * classes + labels
        return np.bincount(flat, minlength=leaves * classes).reshape(leaves, classes).astype(np.int64)


class ExtraTreesClassifier(Classifier):
    """Trees with splits drawn at random, whose leaves are private: the most that small budgets tell.

    No budget is spent on choosing splits; all of it goes to the leaves, and a partition costs the same however many
    leaves it has. Where rows times epsilon is below about a thousand, or there are many classes, this is better than
    trees with chosen splits, and than linear models without a delta (docs/learning.md has figures).

    Args:
        epsilon: what one fit may cost; nothing but the finding of classes uses a delta.
        delta: needed only if `classes` is None.
        bounds: public limits (low, high), one pair or one for each feature.
        classes: the public labels; None to find them for a part of the budget.
        n_estimators: how many trees there are; None lets a private count of the rows decide, 1 to 30.
        max_depth: how many questions a row is asked in a tree.
        cells: into how many equal parts the bounds are cut; splits lie between them.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed that protects nobody.

    Attributes:
        classes_: the labels.
        features_, thresholds_: of each tree and inner node (children of i: 2 i + 1 and 2 i + 2), the feature asked
            about and the cell from which a row goes right.
        shares_: of each tree, leaf and class, what was released about the leaf, smoothed by the leaves around it.

    Formal guarantee: pure epsilon-DP, see `RandomTrees`; where nothing but noise is in the leaves, all rows are
    predicted to be of the class that the whole tree has most of.

    >>> X = np.linspace(0, 1, 2000)[:, None]
    >>> model = ExtraTreesClassifier(epsilon=3, bounds=(0, 1), classes=[0, 1], random_state=0)
    >>> model.fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5) > 0.95, len(model.shares_)
    (True, 30)
    >>> print(model.privacy_spent_)
    epsilon=3
    """

    features_: Integers
    thresholds_: Integers
    shares_: Floats

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 0,
        bounds: Any = None,
        classes: Any = None,
        n_estimators: int | None = None,
        max_depth: int = 7,
        cells: int = 64,
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

    def plan_event(self, n_features: int) -> Event:
        """Returns the event of a fit on so many features."""
        self._public(n_features)
        plan = self._class_plan()
        return plan.composed(self._recipe(plan).event)

    def fit(self, X: Any, y: Any, **weights: Any) -> Self:
        """Draws the trees, and fills their leaves.

        Args:
            X: rows of numbers; missing ones count as the middle of the bounds.
            y: labels; rows whose label is none of the classes count nowhere.
            **weights: none: the weight of a row is refused, with the reason.
        """
        no_weights(weights)
        plan = self._class_plan()
        recipe = self._recipe(plan)
        X, y = read_labelled(self, X, y)
        public = self._public(X.shape[1])
        event, bits = self._affordable(plan.composed(recipe.event)), self._bits()
        self.classes_ = plan.read(y, bits)
        labels = codes(y, self.classes_)
        places, labels = public.places(X)[labels >= 0], labels[labels >= 0]
        prior, trees = recipe.whole(labels, len(self.classes_), bits)
        grown = [random_tree(X.shape[1], recipe.depth, public.count, bits) for _ in range(trees)]
        self.features_ = np.stack([tree.feature for tree in grown])
        self.thresholds_ = np.stack([tree.cell for tree in grown])
        filled = (recipe.counts(tree, places, labels, len(self.classes_)) for tree in grown)
        self.shares_ = np.stack([recipe.fill(counts, trees, prior, bits) for counts in filled])
        self._account(event, bits)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Returns the probability of each class: shares in the row's leaves, averaged over trees."""
        check_is_fitted(self)
        X = read_rows(self, X)
        places = self._public(X.shape[1]).places(X)
        total = np.zeros((len(X), len(self.classes_)))
        for feature, cell, shares in zip(self.features_, self.thresholds_, self.shares_, strict=True):
            total += shares[Tree(feature=feature, cell=cell).leaves(places)]
        return total / len(self.shares_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _public(self, n_features: int) -> Cells:
        return Cells.of(n_features, self._bounds, check.integer(cells=self.cells, at_least=2, at_most=1 << 12))

    def _recipe(self, plan: ClassPlan) -> RandomTrees:
        loss, trees = plan.rest.loss, self.n_estimators
        return RandomTrees(
            epsilon=loss.epsilon if isinstance(loss, PureDP | ApproxDP) else Fraction(0),
            trees=None if trees is None else check.integer(n_estimators=trees, at_least=1, at_most=LARGEST_FOREST),
            depth=check.integer(max_depth=self.max_depth, at_least=1, at_most=DEEPEST),
            cells=check.integer(cells=self.cells, at_least=2, at_most=1 << 12),
            neighbours=self._relation,
        )
