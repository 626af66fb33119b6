"""Trees that are chosen with their labels: exact odds, exact privacy loss, and what is left if there is only noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.audit.queries.fit_verdicts import moves
from discreet.audit.queries.mechanism_recorder import MechanismCall
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, lower
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from discreet.statistics.tree_selection import Odds, TreeSelection, tree_weights

EPSILONS = [Fraction(1, 1000), Fraction(1, 3), Fraction(2)]
# Where each of four kinds of rows lies, in each of three trees of four leaves.
LEAVES = ((0, 1, 2, 3), (0, 0, 3, 3), (1, 1, 1, 2))
ROWS = list(product(range(4), range(2)))  # kind, class
Output = tuple[int, int, tuple[int, ...]]


def counted(rows: list[tuple[int, int]]) -> NDArray[np.int64]:
    counts = np.zeros((3, 4, 2), dtype=np.int64)
    for kind, label in rows:
        for tree in range(3):
            counts[tree, LEAVES[tree][kind], label] += 1
    return counts


def law(mechanism: TreeSelection, counts: NDArray[np.int64]) -> dict[Output, Fraction]:
    """The probability of each tree, depth and labels, by multiplying the weights of single leaves."""
    odds, found = mechanism.odds, {}
    for tree, level in product(range(len(counts)), range(3)):
        held = odds.weights(counts[tree].reshape(1 << level, -1, 2).sum(axis=1))
        for labels in product(range(2), repeat=1 << level):
            chosen = [held[leaf, label] for leaf, label in enumerate(labels)]
            prior = Fraction(1, mechanism.depth_odds**level)
            found[tree, level, labels] = prior * np.prod(chosen, dtype=object) / (2 * odds.start) ** (1 << level)
    whole = sum(found.values())
    return {output: weight / whole for output, weight in found.items()}


def worst_ratio(mechanism: TreeSelection) -> Fraction:
    """The largest ratio of probabilities over all neighbours of several tables."""
    worst = Fraction(1)
    for base in ([], [(0, 0)] * 3, [(0, 0), (1, 1), (2, 0), (3, 1), (3, 1)]):
        tables = [[*base, row] for row in ROWS]
        tables += [base] if mechanism.neighbours is Neighbours.ADD_REMOVE else []
        laws = [law(mechanism, counted(table)) for table in tables]
        pairs = (
            [(laws[-1], one) for one in laws[:-1]]
            if mechanism.neighbours is Neighbours.ADD_REMOVE
            else product(laws, repeat=2)
        )
        for one, other in pairs:
            worst = max(worst, *(max(one[key] / other[key], other[key] / one[key]) for key in one))
    return worst


@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("depth_odds", [1, 4])
def test_no_output_is_likelier_by_more_than_e_to_epsilon(
    epsilon: Fraction, neighbours: Neighbours, depth_odds: int
) -> None:
    limit = lower(lambda digits: Enclosure.of(epsilon, digits).exp())
    ratio = worst_ratio(TreeSelection(epsilon=epsilon, neighbours=neighbours, depth_odds=depth_odds))
    assert 1 + (limit - 1) / 3 < ratio <= limit


def test_odds_for_one_row_are_too_much_if_a_row_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TreeSelection, "odds", property(lambda self: Odds(self.epsilon)))
    limit = lower(lambda digits: Enclosure.of(2, digits).exp())
    assert worst_ratio(TreeSelection(epsilon=2, neighbours="replace")) > limit


@pytest.mark.parametrize("epsilon", [*EPSILONS, Fraction(1, 10**9), Fraction(50)])
def test_weights_grow_by_no_more_than_the_rate_and_never_fall(epsilon: Fraction) -> None:
    odds = Odds(epsilon)
    weights = odds.weights(np.arange(300)).tolist()
    most = lower(lambda digits: Enclosure.of(epsilon, digits).exp(), digits=60)
    assert weights[0] == odds.start
    assert all(a < b <= most * a for a, b in pairwise(weights))
    reached = np.log(float(Fraction(weights[10], weights[0])))
    assert reached == pytest.approx(10 * float(epsilon), rel=1e-5)


def test_weights_of_trees_are_sums_over_all_labels() -> None:
    counts = np.array([[[3, 1], [0, 2], [0, 0], [5, 5]], [[9, 7], [0, 0], [0, 0], [0, 0]]])
    odds = Odds(Fraction(1, 2))
    found = tree_weights(counts, odds)
    for tree, level in product(range(2), range(3)):
        held = counts[tree].reshape(1 << level, -1, 2).sum(axis=1)
        direct = Fraction(1)
        for row in held:
            direct *= Fraction(int(odds.weights(row).sum()), 2 * odds.start)
        assert Fraction(found[tree, level], found[0, 0]) == direct / Fraction(
            int(odds.weights(counts[0].sum(axis=0)).sum()), 2 * odds.start
        )


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("depth_odds", [1, 4])
def test_draws_follow_the_law(depth_odds: int) -> None:
    """Frequencies of labelled trees lie within five standard errors of their exact probabilities, on both sides."""
    mechanism = TreeSelection(epsilon=1, depth_odds=depth_odds)
    counts = counted([(0, 0), (0, 0), (1, 1), (3, 1), (3, 1)])
    runs, bits = 1000, SeededBits(7)
    exact: dict[tuple[int, tuple[int, ...]], float] = {}
    for (tree, level, labels), probability in law(mechanism, counts).items():
        key = tree, tuple(np.repeat(labels, 4 >> level).tolist())
        exact[key] = exact.get(key, 0.0) + float(probability)
    found = dict.fromkeys(exact, 0)
    for _ in range(runs):
        chosen = mechanism.release(counts, bits=bits)
        found[chosen.tree, tuple(chosen.labels.tolist())] += 1
    for key, chance in exact.items():
        assert abs(found[key] - runs * chance) <= 5 * (runs * chance * (1 - chance)) ** 0.5 + 1


def test_without_rows_and_with_one_label_for_all() -> None:
    none = TreeSelection(epsilon=1).release(np.zeros((3, 4, 2), dtype=np.int64), bits=SeededBits(1))
    assert none.labels.shape == (4,)
    skewed = np.tile(np.array([[90, 10]]), (50, 8, 1))  # no tree tells anything
    labels = [TreeSelection(epsilon=0.05).release(skewed, bits=SeededBits(seed)).labels for seed in range(20)]
    assert np.mean(np.concatenate(labels) == 0) > 0.97


def test_a_prior_that_prefers_shallow_trees_leaves_a_single_label_where_trees_tell_nothing() -> None:
    """By the law: the share of outputs with one label for all grows with the prior, and real splits still win."""
    noise, signal = counted(ROWS + [(kind, 0) for kind in range(4)]), counted([(0, 0)] * 40 + [(3, 1)] * 40)

    def single(depth_odds: int, counts: NDArray[np.int64]) -> float:
        exact = law(TreeSelection(epsilon=0.3, depth_odds=depth_odds), counts)
        return float(sum(chance for (_, _, labels), chance in exact.items() if len(set(labels)) == 1))

    assert single(1, noise) < 0.6
    assert single(4, noise) > 0.8
    assert single(4, signal) < 0.01


@pytest.mark.sampled(2)
@pytest.mark.parametrize("depth_odds", [1, 64])
def test_the_best_is_not_far_above_the_chosen_one(depth_odds: int) -> None:
    counts = np.array([[[40, 2], [1, 30]], [[21, 16], [20, 16]]])
    mechanism = TreeSelection(epsilon=1, depth_odds=depth_odds)
    best, options, missed = 70, 2 * (2 + 4), 0
    for seed in range(300):
        chosen = mechanism.release(counts, bits=SeededBits(seed))
        right = int(counts[chosen.tree, np.arange(2), chosen.labels].sum())
        low, high = mechanism.interval(right, options=options, confidence=0.9)
        missed += not low <= best <= high
    assert missed <= 30


def test_an_audit_of_fits_prices_moved_rows() -> None:
    one, other = counted([(0, 0), (1, 1)]), counted([(0, 0), (1, 1), (2, 0)])
    swapped = counted([(0, 0), (3, 0)])
    for neighbours, moved, cost in (("add_remove", other, 1), ("replace", swapped, 1), ("add_remove", swapped, 2)):
        mechanism = TreeSelection(epsilon=1, neighbours=neighbours)
        before, after = (MechanismCall(mechanism, (counts,), None) for counts in (one, moved))
        (found,) = moves(before, after, Neighbours(neighbours))
        assert (found.found, found.allowed) == (Fraction(cost), Fraction(1))


@pytest.mark.parametrize("value", [[[1, 2]], [[[1.0, 2.0]]], np.zeros((2, 3, 2), dtype=int), np.zeros((0, 2, 2), int)])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(InvalidValue, match="tree, leaf and class"):
        TreeSelection(epsilon=1).release(value)
    with pytest.raises(InvalidParameter):
        TreeSelection(epsilon=0)
    with pytest.raises(InvalidParameter):
        TreeSelection(epsilon=1, depth_odds=0)
    with pytest.raises(InvalidParameter):
        TreeSelection(epsilon=1).interval(3)
