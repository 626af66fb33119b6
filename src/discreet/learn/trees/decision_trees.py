"""Decision trees over public cells, whose splits and leaves are private, alone or as a forest on disjoint rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet import check
from discreet.dataclass import dataclass
from discreet.learn.features import Integers
from discreet.learn.learner import ClassPlan, ProbabilityClassifier, read_rows
from discreet.learn.trees.cell_classifier import CellClassifier
from discreet.learn.weights import ONE, class_shares
from discreet.mechanisms import Laplace, PermuteAndFlip
from discreet.noise import Bits, uniform_below
from discreet.privacy import ApproxDP, Neighbours, PureDP, events
from discreet.privacy.events import Event

DEEPEST = 16
FINE = 16  # steps of impurity for one row

HALF = Fraction(1, 2)  # of epsilon for splits, the rest for leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A complete tree: node i has the children 2 i + 1, for cells below `cell`, and 2 i + 2.

    Attributes:
        feature: of each inner node.
        cell: of each inner node, from 1.
    """

    feature: Integers
    cell: Integers

    @property
    def depth(self) -> int:
        """Returns how many questions a row is asked."""
        return int(self.feature.size + 1).bit_length() - 1

    def leaves(self, places: Integers) -> Integers:
        """Returns the leaf of each row, from 0: a function of the row alone."""
        nodes = np.zeros(len(places), dtype=np.int64)
        rows = np.arange(len(places))
        for _ in range(self.depth):
            nodes = 2 * nodes + 1 + (places[rows, self.feature[nodes]] >= self.cell[nodes])
        return nodes - self.feature.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitter:
    """Chooses the splits of one tree, level by level.

    The score of a split is minus the Gini impurity that it leaves: the sum over both sides of n - sum n_c^2 / n, where
    n_c of n rows have label c, in whole steps of 1 / FINE, rounded up.

    Formal guarantee: each level is `epsilon`-DP. One more row, of label c, raises the impurity of its own side by 1 -
    (2 n_c + 1) / (n + 1) + sum n_k^2 / (n (n + 1)). With p = n_c / n and s = sum (n_k / n)^2, p^2 <= s <= 1, this is n
    (1 - 2 p + s) / (n + 1), at least 0 and below 2; rounded, it moves by 0 to 2 FINE steps, and no other side moves.
    ADD_REMOVE: the scores of one node all fall by that, for which permute-and-flip on monotone scores is epsilon-DP,
    and other nodes do not change (parallel composition over disjoint rows). REPLACE: a row leaves one node and enters
    another, and each moves in one direction, or both are the same node, whose scores move both ways. Calibrated to the
    last, the first two cost half of epsilon each.

    Attributes:
        epsilon: of each level.
        depth: how many levels there are.
        cells: how many cells a feature has.
        monotone: whether the relation is ADD_REMOVE.
    """

    epsilon: Fraction
    depth: int
    cells: int
    monotone: bool

    def grow(self, places: Integers, labels: Integers, classes: int, bits: Bits) -> Tree:
        """Returns a tree for rows in cells; later levels read earlier ones only as released."""
        mechanism = PermuteAndFlip(epsilon=self.epsilon, sensitivity=2 * FINE, monotone=self.monotone)
        feature = np.zeros(0, dtype=np.int64)
        cell = np.zeros(0, dtype=np.int64)
        for _ in range(self.depth):
            leaves = Tree(feature=feature, cell=cell).leaves(places)
            shape = (feature.size + 1, self.cells, classes)
            scores = split_scores(places, labels, leaves, shape)
            chosen = np.asarray(mechanism.choose(scores, bits=bits))
            feature = np.concatenate([feature, chosen // (self.cells - 1)])
            cell = np.concatenate([cell, 1 + chosen % (self.cells - 1)])
        return Tree(feature=feature, cell=cell)


def split_scores(places: Integers, labels: Integers, leaves: Integers, shape: tuple[int, int, int]) -> Integers:
    """Returns for each node, the score of every split: feature by feature, each at the cells 1, 2, ..., cells - 1.

    Args:
        places: the cells of rows.
        labels: of rows.
        leaves: the node of each row.
        shape: how many nodes, cells and classes there are.
    """
    nodes, cells, classes = shape
    scores = np.zeros((nodes, places.shape[1], cells - 1), dtype=np.int64)
    for j in range(places.shape[1]):
        flat = (leaves * cells + places[:, j]) * classes + labels
        counts = np.bincount(flat, minlength=nodes * cells * classes).reshape(shape)
        below = np.cumsum(counts, axis=1)
        above = below[:, -1:, :] - below
        scores[:, j] = -(_impurity(below) + _impurity(above))[:, :-1]
    return scores.reshape(nodes, -1)


def _impurity(counts: Integers) -> Integers:
    """Returns n - sum n_c^2 / n in steps of 1 / FINE, rounded up, exactly; of no rows, 0."""
    total = counts.sum(axis=-1)
    return np.asarray(FINE * total - FINE * (counts * counts).sum(axis=-1) // np.maximum(total, 1))


class TreeLearner(CellClassifier, ProbabilityClassifier):
    """What one tree and a forest have in common; a forest of one tree is the tree."""

    max_depth: Any
    features_: Integers
    thresholds_: Integers
    counts_: Integers

    def _n_trees(self) -> int:
        return 1

    def _learn(self, releases: _Recipe, places: Integers, labels: Integers, bits: Bits) -> None:
        places, labels, trees = places[labels >= 0], labels[labels >= 0], self._n_trees()
        tree_of = uniform_below(trees, len(labels), bits=bits)  # a coin of its own for each row, whatever it holds
        grown = [
            releases.grow(places[kept], labels[kept], len(self.classes_), bits)
            for kept in (tree_of == tree for tree in range(trees))
        ]
        self.features_ = np.stack([tree.feature for tree, _ in grown])
        self.thresholds_ = np.stack([tree.cell for tree, _ in grown])
        self.counts_ = np.stack([counts for _, counts in grown])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Returns the probability of each class: noisy shares in the row's leaf, averaged over trees."""
        check_is_fitted(self)
        X = read_rows(self, X)
        places = self._public(X.shape[1]).places(X)
        total = np.zeros((len(X), len(self.classes_)))
        shares = class_shares(self.class_weight, self.classes_) / ONE
        for feature, cell, counts in zip(self.features_, self.thresholds_, self.counts_, strict=True):
            held = (np.maximum(counts, 0) + 1.0) * shares
            total += (held / held.sum(axis=1, keepdims=True))[Tree(feature=feature, cell=cell).leaves(places)]
        return total / len(self.counts_)

    def _releases(self, plan: ClassPlan, _: int, /) -> _Recipe:
        self._n_trees()
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
        """Returns one row is in one leaf, under one label: counts move by 1, or by 2 if it is replaced."""
        return Laplace(
            epsilon=self.epsilon * (1 - HALF), sensitivity=1 if self.neighbours is Neighbours.ADD_REMOVE else 2
        )

    @property
    def event(self) -> Event:
        levels = events.Repeated(events.Pure(self.splitter.epsilon), self.depth)
        return events.Composed([levels, self.noise.event])

    def grow(self, places: Integers, labels: Integers, classes: int, bits: Bits) -> tuple[Tree, Integers]:
        """Returns the tree, and the noisy count of each label in each leaf."""
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
        class_weight: public weights of classes, e.g. {0: 1, 1: 3}, by which released counts in the leaves are
            multiplied: post-processing, which splits do not see.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

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
        class_weight: Any = None,
        neighbours: Any = "add_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.max_depth = max_depth
        self.cells = cells
        self.class_weight = class_weight
        self.neighbours = neighbours
        self.random_state = random_state


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
        class_weight: public weights of classes, e.g. {0: 1, 1: 3}, by which released counts in the leaves are
            multiplied: post-processing, which splits do not see.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

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
        class_weight: Any = None,
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
        self.class_weight = class_weight
        self.neighbours = neighbours
        self.random_state = random_state

    def _n_trees(self) -> int:
        return check.integer(n_estimators=self.n_estimators, at_least=1, at_most=10**6)
