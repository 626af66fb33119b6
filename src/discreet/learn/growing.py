"""Complete binary trees over public cells: how rows walk through them, and how private splits are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.learn.cells import Integers
from discreet.mechanisms import PermuteAndFlip
from discreet.noise import Bits, uniform_below

DEEPEST = 16
FINE = 16  # steps of impurity for one row


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
        """How many questions a row is asked."""
        return int(self.feature.size + 1).bit_length() - 1

    def leaves(self, places: Integers) -> Integers:
        """The leaf of each row, from 0: a function of the row alone."""
        nodes = np.zeros(len(places), dtype=np.int64)
        rows = np.arange(len(places))
        for _ in range(self.depth):
            nodes = 2 * nodes + 1 + (places[rows, self.feature[nodes]] >= self.cell[nodes])
        return nodes - self.feature.size


def random_tree(depth: int, n_features: int, cells: int, bits: Bits) -> Tree:
    """A tree whose splits nobody chose: it reads no data."""
    inner = (1 << depth) - 1
    return Tree(
        feature=uniform_below(n_features, inner, bits=bits),
        cell=1 + uniform_below(cells - 1, inner, bits=bits),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitter:
    """Chooses the splits of one tree, level by level.

    The score of a split is minus the Gini impurity that it leaves: the sum over both sides of n - sum n_c^2 / n, n rows
    of which n_c have label c, in whole steps of 1 / FINE, rounded up.

    Formal guarantee: each level is `epsilon`-DP. One more row, of label c, raises the impurity of its own side by
    1 - (2 n_c + 1) / (n + 1) + sum n_k^2 / (n (n + 1)). With p = n_c / n and s = sum (n_k / n)^2, p^2 <= s <= 1, this
    is n (1 - 2 p + s) / (n + 1), at least 0 and below 2; rounded, it moves by 0 to 2 FINE steps, and no other side
    moves. ADD_REMOVE: the scores of one node all fall by that, for which permute-and-flip on monotone scores is
    epsilon-DP, and other nodes do not change (parallel composition over disjoint rows). REPLACE: a row leaves one node
    and enters another, each of which moves in one direction, or both are the same node, whose scores move both ways.
    Calibrated to the last, the first two cost half of epsilon each.

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
        """A tree for rows in cells; later levels read earlier ones only as released."""
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
    """For each node, the score of every split: feature by feature, each at the cells 1, 2, ..., cells - 1.

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
    """n - sum n_c^2 / n in steps of 1 / FINE, rounded up, exactly; of no rows, 0."""
    total = counts.sum(axis=-1)
    return np.asarray(FINE * total - FINE * (counts * counts).sum(axis=-1) // np.maximum(total, 1))
