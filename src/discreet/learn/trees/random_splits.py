"""Trees with random splits; better ones are likelier to be chosen. Small budgets learn the most from them."""

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
from discreet.learn.trees.decision_trees import Tree
from discreet.mechanisms import Laplace
from discreet.noise import Bits, uniform_below
from discreet.privacy import ApproxDP, Neighbours, PureDP, events
from discreet.privacy.events import Event
from discreet.statistics.tree_selection import TreeSelection

Floats = NDArray[np.float64]

COUNT_SHARE = Fraction(1, 20)  # of epsilon, for the number of rows
ROWS_PER_TREE = 20  # of rows times rate, for each class: with less, trees of their own hold too much noise
MOST_TREES = 41
DEPTH_ODDS = {1: 2, 3: 2}  # by the number of trees: of a depth against the next one, before rows are read; else 1
MOST_CANDIDATES = 1000
LEAST_CANDIDATES = 20
ALL_CANDIDATES = 2000  # of all trees together
LARGEST_FOREST = 1 << 10
_WORK = 5 * 10**6  # of rows times candidates of all trees, about half a second; four times as much if need be
_SURE = 2048  # of rows times epsilon: beyond it the best candidate is chosen anyway, and weights only get longer
_FINE = 1 << 32
_CHUNK = 1 << 20
_DEEPEST = 10  # candidates are complete trees, a thousand of them at a time


def trees_for(count: float, rate: float, classes: int) -> int:
    """Returns how many trees vote: an odd number, so that two classes are never even.

    >>> trees_for(150, 0.1, 3), trees_for(220, 1.0, 2), trees_for(4000, 1.0, 2), trees_for(10**6, 1.0, 2)
    (1, 5, 41, 1)
    """
    rows = max(count, 1.0)
    useful, affordable = rows * rate / (ROWS_PER_TREE * classes), 4 * _WORK / (rows * LEAST_CANDIDATES)
    return min(2 * int(min(useful, affordable) / 2) + 1, MOST_TREES)


def candidates_for(count: float, trees: int) -> int:
    """Returns among how many trees each one is chosen: as many as there is time for.

    >>> candidates_for(150, 1), candidates_for(1000, 9), candidates_for(10**6, 41)
    (1000, 222, 20)
    """
    affordable = min(ALL_CANDIDATES // trees, int(_WORK / (max(count, 1.0) * trees)))
    return min(max(affordable, LEAST_CANDIDATES), MOST_CANDIDATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTrees:
    """Several complete trees, whose nodes are numbered as those of `Tree`.

    Attributes:
        feature: of each tree and inner node.
        cell: of each tree and inner node, from 1.
    """

    feature: Integers
    cell: Integers

    @classmethod
    def draw_random(cls, trees: int, width: int, depth: int, cells: int, bits: Bits) -> RandomTrees:
        """Returns trees that ask about random features at random cells of the remaining range; no row is read."""
        inner = (1 << depth) - 1
        feature = uniform_below(width, (trees, inner), bits=bits)
        draws = uniform_below(_FINE, (trees, inner), bits=bits)
        cell = np.zeros((trees, inner), dtype=np.int64)
        low = np.zeros((trees, 1, width), dtype=np.int16)
        high = np.full((trees, 1, width), cells, dtype=np.int16)
        for level in range(depth):
            nodes = slice((1 << level) - 1, (2 << level) - 1)
            asked = feature[:, nodes, None]
            first = np.take_along_axis(low, asked, axis=2)[:, :, 0].astype(np.int64)
            last = np.take_along_axis(high, asked, axis=2)[:, :, 0].astype(np.int64)
            cell[:, nodes] = first + 1 + draws[:, nodes] * np.maximum(last - first - 1, 0) // _FINE
            low, high = np.repeat(low, 2, axis=1), np.repeat(high, 2, axis=1)
            cut = cell[:, nodes, None].astype(np.int16)
            np.put_along_axis(high[:, 0::2], asked, cut, axis=2)
            np.put_along_axis(low[:, 1::2], asked, cut, axis=2)
        return cls(feature=feature, cell=cell)

    def one(self, place: int) -> Tree:
        """Returns one of them."""
        return Tree(feature=self.feature[place], cell=self.cell[place])

    def counts(self, places: Integers, labels: Integers, classes: int) -> Integers:
        """Returns how many rows of each label lie in each leaf, by tree, leaf and label."""
        trees, inner = self.feature.shape
        cells = (inner + 1) * classes
        found = np.zeros((trees, cells), dtype=np.int64)
        at_once = max(1, _CHUNK // max(len(labels), 1))
        for start in range(0, trees, at_once):
            part = slice(start, start + at_once)
            flat = self._leaves(places, part) * classes + labels
            flat += cells * np.arange(len(flat))[:, None]
            found[part] = np.bincount(flat.ravel(), minlength=cells * len(flat)).reshape(-1, cells)
        return found.reshape(trees, inner + 1, classes)

    def _leaves(self, places: Integers, part: slice) -> Integers:
        feature, cell = self.feature[part], self.cell[part]
        trees, inner = feature.shape
        first = inner * np.arange(trees)[:, None]  # of each tree's nodes, all trees side by side
        nodes = np.repeat(first, len(places), axis=1)
        entries, rows = places.ravel(), places.shape[1] * np.arange(len(places))
        for _ in range(inner.bit_length()):
            right = entries.take(feature.take(nodes) + rows) >= cell.take(nodes)
            nodes = 2 * nodes + (1 - first) + right
        return np.asarray(nodes - first - inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How trees are chosen and labelled.

    Formal guarantee: pure epsilon-DP. Candidates read no row. Each of T trees is chosen, with the labels of its leaves,
    for epsilon / T (`TreeSelection`). If the number of rows is not given, it is released first with Laplace noise; how
    many trees and candidates there are follows from it, and whatever it says, the rest of epsilon is the most that all
    trees cost. Under REPLACE the number of rows is public.

    Attributes:
        epsilon: what all of it costs.
        trees: how many; None lets the number of rows decide.
        candidates: for each tree; None lets the number of rows decide.
        rows: how many rows there are, about; None if that is to be found out.
        depth: of each tree.
        cells: of each feature.
        neighbours: the relation to protect.
    """

    epsilon: Fraction
    trees: int | None
    candidates: int | None
    rows: float | None
    depth: int
    cells: int
    neighbours: Neighbours

    @property
    def counter(self) -> Laplace | None:
        """Returns how the number of rows is released, if it has to be."""
        if self.rows is not None or self.neighbours is Neighbours.REPLACE:
            return None
        return Laplace(epsilon=self.epsilon * COUNT_SHARE, sensitivity=1)

    @property
    def _rest(self) -> Fraction:
        return self.epsilon if self.counter is None else self.epsilon * (1 - COUNT_SHARE)

    @property
    def event(self) -> Event:
        """Returns what all of it costs."""
        chosen = events.Pure(self._rest)
        return chosen if self.counter is None else events.Composed([self.counter.event, chosen])

    def count(self, rows: int, bits: Bits) -> float:
        """Returns how many rows there are, about: from here on public."""
        if self.rows is not None:
            return self.rows
        return float(rows if self.counter is None else self.counter.release(rows, bits=bits))

    def selections(self, count: float, classes: int) -> list[TreeSelection]:
        """Returns how each tree is chosen."""
        rate = float(self._rest) / (1 if self.neighbours is Neighbours.ADD_REMOVE else 2)
        trees = self.trees or trees_for(count, rate, classes)
        each = min(self._rest / trees, Fraction(_SURE) / max(int(count), 1))
        return [TreeSelection(epsilon=each, neighbours=self.neighbours, depth_odds=DEPTH_ODDS.get(trees, 1))] * trees

    def grow(
        self, places: Integers, labels: Integers, classes: int, count: float, bits: Bits
    ) -> list[tuple[Tree, Integers]]:
        """Returns trees and the labels of their leaves."""
        selections = self.selections(count, classes)
        candidates = self.candidates or candidates_for(count, len(selections))
        grown = []
        for selection in selections:
            drawn = RandomTrees.draw_random(candidates, places.shape[1], self.depth, self.cells, bits)
            chosen = selection.release(drawn.counts(places, labels, classes), bits=bits)
            grown.append((drawn.one(chosen.tree), chosen.labels))
        return grown


class ExtraTreesClassifier(CellClassifier, ProbabilityClassifier):
    """Trees with random splits, chosen together with their labels: the best choice for small budgets.

    Of many trees with random splits, the exponential mechanism chooses one and the labels of its leaves, which costs
    what labels alone would cost. No depth has less prior weight than the next, and where few trees vote it has more
    (`DEPTH_ODDS`), so that a tree that holds nothing but noise loses against a single label for all rows. Where rows
    times epsilon is below some thousands this is better than trees whose splits are chosen one by one, and than linear
    models without a delta (docs/learning.md has figures).

    Args:
        epsilon: what one fit may cost; nothing but the finding of classes uses a delta.
        delta: needed only if `classes` is None.
        bounds: public limits (low, high), one pair or one for each feature.
        classes: the public labels; None to find them for a part of the budget.
        n_estimators: how many trees vote; None lets the number of rows decide, 1 to 41.
        max_depth: how many questions a row is asked in a tree, at most.
        cells: into how many equal parts the bounds are cut; splits lie between them.
        candidates: among how many random trees each one is chosen; None lets the number of rows decide, 20 to 1000.
        rows: how many rows there are, about, if that is public; None counts them for a twentieth of epsilon.
        neighbours: "add_remove" or "replace".
        random_state: None for secure noise, an int for a seed, which gives no privacy.

    Attributes:
        classes_: the labels.
        features_, thresholds_: of each tree and inner node (children of i: 2 i + 1 and 2 i + 2), the feature asked
            about and the cell from which a row goes right.
        labels_: of each tree and leaf, the place of its label among the classes; a tree that was cut off has the same
            label in neighbouring leaves.

    Formal guarantee: pure epsilon-DP, see `Growth`. The probabilities of `predict_proba` are shares of votes, where one
    more vote is divided among all classes.

    >>> X = np.linspace(0, 1, 1000)[:, None]
    >>> model = ExtraTreesClassifier(epsilon=1, bounds=(0, 1), classes=[0, 1], random_state=0)
    >>> model.fit(X, X[:, 0] > 0.5).score(X, X[:, 0] > 0.5) > 0.95, len(model.labels_)
    (True, 23)
    >>> print(model.privacy_spent_)
    epsilon=1
    """

    features_: Integers
    thresholds_: Integers
    labels_: Integers

    def __init__(
        self,
        *,
        epsilon: Any = 1.0,
        delta: Any = 0,
        bounds: Any = None,
        classes: Any = None,
        n_estimators: int | None = None,
        max_depth: int = 6,
        cells: int = 64,
        candidates: int | None = None,
        rows: Any = None,
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
        self.candidates = candidates
        self.rows = rows
        self.neighbours = neighbours
        self.random_state = random_state

    def _learn(self, releases: Growth, places: Integers, labels: Integers, bits: Bits) -> None:
        count = releases.count(len(labels), bits)
        grown = releases.grow(places[labels >= 0], labels[labels >= 0], len(self.classes_), count, bits)
        self.features_ = np.stack([tree.feature for tree, _ in grown])
        self.thresholds_ = np.stack([tree.cell for tree, _ in grown])
        self.labels_ = np.stack([leaves for _, leaves in grown])

    def predict_proba(self, X: Any) -> Floats:
        """Returns the probability of each class: its share of the votes of all trees, and of one for none."""
        check_is_fitted(self)
        X = read_rows(self, X)
        places = self._public(X.shape[1]).places(X)
        votes = np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
        rows = np.arange(len(X))
        for feature, cell, labels in zip(self.features_, self.thresholds_, self.labels_, strict=True):
            votes[rows, labels[Tree(feature=feature, cell=cell).leaves(places)]] += 1
        return votes / (len(self.labels_) + 1)

    def _releases(self, plan: ClassPlan, _: int, /) -> Growth:
        loss, trees, candidates = plan.rest.loss, self.n_estimators, self.candidates
        return Growth(
            epsilon=loss.epsilon if isinstance(loss, PureDP | ApproxDP) else Fraction(0),
            trees=None if trees is None else check.integer(n_estimators=trees, at_least=1, at_most=LARGEST_FOREST),
            candidates=None if candidates is None else check.integer(candidates=candidates, at_least=1, at_most=10**5),
            rows=None if self.rows is None else float(check.positive(rows=self.rows)),
            depth=check.integer(max_depth=self.max_depth, at_least=1, at_most=_DEEPEST),
            cells=self._cells(),
            neighbours=self._relation,
        )
