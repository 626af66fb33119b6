"""The exponential mechanism over whole trees, splits and labels together, in integers alone."""

from __future__ import annotations

from bisect import bisect
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Interval, lower, upper
from discreet.mechanisms import Mechanism
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits, source_of, uniform_below
from discreet.privacy import Estimate, Neighbours, events

Integers = NDArray[np.int64]

_PRECISION = 20  # bits of the rate that survive rounding: a millionth of epsilon is left unspent


@dataclass(frozen=True, slots=True)
class Odds:
    """Integer weights of how many rows a leaf labels correctly.

    Guarantee: W(i) <= W(i + 1) <= e^rate W(i) for every i, exactly. W(0) = 2^k and W(i + 1) = floor(W(i) g), where
    g = 1 + m / 2^k is a rational just below e^rate; W(i) m >= 2^k, so that nothing falls.

    Attributes:
        rate: the largest step of log W.
    """

    rate: Fraction

    @property
    def bits(self) -> int:
        """Returns k: so many that g - 1, which is at least the rate, keeps `_PRECISION` bits."""
        return _PRECISION + max(0, (self.rate.denominator // self.rate.numerator).bit_length())

    @property
    def start(self) -> int:
        """Returns W(0), the weight of no rows."""
        return 1 << self.bits

    @property
    def growth(self) -> Fraction:
        """Returns g, the factor of one more row."""
        raised = lower(lambda digits: Enclosure.of(self.rate, digits).exp())
        return Fraction(int(raised * self.start), self.start)

    def weights(self, counts: Integers) -> NDArray[Any]:
        """Returns W of each count, as Python's integers.

        >>> (Odds(Fraction(1)).weights(np.array([0, 1, 2])) / Odds(Fraction(1)).start).astype(float).round(4)
        array([1.    , 2.7183, 7.3891])
        """
        found, places = np.unique(counts, return_inverse=True)
        step, bits = int(self.growth * self.start), self.bits
        weight, reached = self.start, 0
        table = np.empty(len(found), dtype=object)
        for place, count in enumerate(found.tolist()):
            for _ in range(count - reached):
                weight = (weight * step) >> bits
            table[place], reached = weight, count
        return np.asarray(table[places.reshape(counts.shape)])


def tree_weights(counts: Integers, odds: Odds) -> NDArray[Any]:
    """Returns the weight of each of several trees, cut off at each depth from 0 to its own, over all labellings.

    A leaf has the weight sum_c W(n_c), a tree that of its leaves multiplied; a tree that was cut off has, instead of
    the leaves that it lacks, as many without rows, so that labels of every depth have the same prior weight together.
    All weights are divided by a power of the weight of a leaf without rows.

    Args:
        counts: how many rows of each class lie in each leaf, by tree, leaf and class.
        odds: the weights of counts.
    """
    trees, leaves, classes = counts.shape
    levels = [counts.reshape(trees, 1 << level, -1, classes).sum(axis=2) for level in range(leaves.bit_length())]
    empty = classes * odds.start
    most = max(int((held.sum(axis=2) > 0).sum(axis=1).max()) for held in levels)
    powers = np.array(list(accumulate([1] + [empty] * most, lambda a, b: a * b)), dtype=object)
    return np.stack([_products(held, odds) * powers[most - _count_filled(held)] for held in levels], axis=1)


def _count_filled(held: Integers) -> Integers:
    return np.asarray((held.sum(axis=2) > 0).sum(axis=1))


def _products(held: Integers, odds: Odds) -> NDArray[Any]:
    """Returns the weights of leaves with rows, multiplied for each tree."""
    some = held.sum(axis=2) > 0
    result = np.ones(len(held), dtype=object)
    if some.any():
        of_leaves = odds.weights(held[some]).sum(axis=1)
        owners, starts = np.unique(np.nonzero(some)[0], return_index=True)
        result[owners] = np.multiply.reduceat(of_leaves, starts)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTree:
    """A tree that was chosen, and the class of each leaf; a tree that was cut off has it in leaves side by side.

    Attributes:
        tree: its place among the candidates.
        labels: of each leaf, the place of its class.
    """

    tree: int
    labels: Integers


@dataclass(frozen=True, slots=True, init=False)
class TreeSelection(Mechanism):
    """Chooses one of several trees, a depth to cut it off at and labels for its leaves, so that many rows get theirs.

    Formal guarantee: pure epsilon-DP. With W of `Odds`, the probability of a tree, a depth and labels l is prod_leaf
    W(n_l), times a prior weight of the depth, over the sum of that for all of them. One more row raises one of the
    factors, or none, to at most e^rate times itself, and the sum likewise: rate = epsilon under ADD_REMOVE, where
    numerator and sum rise together, and half of it if a row is replaced, which lowers one factor and raises another.
    This is the exponential mechanism (McSherry, Talwar 2007) with a monotone score, the number of rows that a labelled
    tree gets right; choosing the tree costs nothing in addition to its labels. Before rows are read, all trees of one
    depth together weigh `depth_odds` times as much as all of the next: public, so it changes no ratio. A single label
    for all remains if no tree holds more than noise.

    Args:
        epsilon: above 0.
        neighbours: the relation.
        depth_odds: how much likelier a depth is than the next, before rows are read; 1 or more.

    >>> from discreet.noise import SeededBits
    >>> counts = [[[40, 2], [1, 30]], [[21, 16], [20, 16]]]  # two trees of two leaves, two classes
    >>> chosen = TreeSelection(epsilon=1).release(counts, bits=SeededBits(1))
    >>> chosen.tree, chosen.labels.tolist()
    (0, [0, 1])
    """

    epsilon: Fraction
    neighbours: Neighbours
    depth_odds: int

    def __init__(
        self,
        *,
        epsilon: check.Number,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        depth_odds: int = 1,
    ) -> None:
        assign(
            self,
            epsilon=check.positive(epsilon=epsilon),
            neighbours=Neighbours(neighbours),
            depth_odds=check.integer(depth_odds=depth_odds, at_least=1, at_most=1 << 20),
        )

    @property
    def event(self) -> events.Pure:
        """Returns what a choice costs."""
        return events.Pure(self.epsilon)

    @property
    def odds(self) -> Odds:
        """Returns the weights of counts."""
        return Odds(self.epsilon if self.neighbours is Neighbours.ADD_REMOVE else self.epsilon / 2)

    def release(self, value: Any, *, bits: Bits | None = None) -> LabelledTree:
        """Chooses a labelled tree.

        Args:
            value: how many rows of each class lie in each leaf, by tree, leaf and class; complete trees, whose leaves
                are in order, so that those of one branch are side by side.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: for anything else.
        """
        source, counts, odds = source_of(bits), _counts(value), self.odds
        _, leaves, classes = counts.shape
        weights = tree_weights(counts, odds)
        weights *= np.array([self.depth_odds**below for below in reversed(range(weights.shape[1]))], dtype=object)
        tree, level = divmod(_draw_index(weights.ravel().tolist(), source), weights.shape[1])
        held = counts[tree].reshape(1 << level, -1, classes).sum(axis=1)
        labels = [_draw_index(row, source) for row in odds.weights(held).tolist()]
        return LabelledTree(tree=tree, labels=np.repeat(np.array(labels, dtype=np.int64), leaves >> level))

    def interval(self, released: Any, *, options: int | None = None, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns how many rows the best labelled tree gets right, given how many the chosen one does.

        That number is private: this is for planning, or for a number that was paid for separately. Of N options, all
        that lose more than ln(N r / (1 - confidence)) / ln g rows together have less than the rest of the probability,
        r the largest ratio of prior weights: a tree of depth d has 2^(2^d) labellings or more, so d <= log2(log2(N)).

        Args:
            released: how many rows the chosen tree gets right.
            options: how many labelled trees there were.
            confidence: the probability of the statement, over the choice.
        """
        if options is None:
            raise InvalidParameter("options", options, "to be given", "Say how many there were, e.g. options=1000.")
        count = check.integer(options=options, at_least=1)
        count *= self.depth_odds ** (count.bit_length() - 1).bit_length()
        outside, grown = 1 - check.probability(confidence=confidence), self.odds.growth - Fraction(1, self.odds.start)
        lost = upper(lambda digits: Enclosure.of(count / outside, digits).log() / Enclosure.of(grown, digits).log())
        return Interval(released, released + int(lost))

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Releases the labels; their ends are the first and the last class, as a distance of classes means nothing."""
        source, chance = source_of(bits), check.probability(confidence=confidence)
        labels = self.release(value, bits=source).labels
        last = np.full_like(labels, np.shape(value)[-1] - 1)
        return Estimate(labels, last * 0, last, self.event, confidence=chance, private=source.private)


def _counts(value: Any) -> Integers:
    counts = np.asarray(value)
    if counts.dtype.kind not in "iu" or counts.ndim != 3 or not counts.size or counts.shape[1].bit_count() != 1:
        raise InvalidValue(
            "to be counts by tree, leaf and class, with a power of 2 of leaves",
            "Pass integers, e.g. of shape (9, 8, 2).",
        )
    return np.asarray(np.maximum(counts, 0), dtype=np.int64)


def _draw_index(weights: list[int], bits: Bits) -> int:
    """Returns a place, with a probability of exactly its weight over the sum of all."""
    ends = list(accumulate(weights))
    return bisect(ends, uniform_below(ends[-1], bits=bits))
