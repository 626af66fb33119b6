"""Exact strategies: what one unit moves, by brute force; exact products; the law of the noise; refusals."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms.strategy import Contribution, IntegerStrategy, StrategyMechanism
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from tests.cases import try_all
from tests.conformance.nothing import NoBits

BIG = 1 << 22
MATRICES = [
    [[1, 0], [0, 1]],
    [[1, 1, 1]],
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
    [[2, -1], [-1, 3]],
    [[0, 5, -5], [1, 0, 1]],
    [[BIG + 1, -BIG + 3], [7, BIG - 5]],
]
CONTRIBUTIONS = [
    Contribution(cells=cells, amount=amount, signed=signed)
    for cells in (1, 2, 3)
    for amount in (1, 2)
    for signed in (False, True)
]


def _held(cells: int, contribution: Contribution) -> list[Any]:
    """All that a unit may hold, at the ends of its amounts, where convex functions are largest."""
    lowest = -contribution.amount if contribution.signed else 0
    ends = itertools.product((lowest, 0, contribution.amount), repeat=cells)
    return [np.array(held, dtype=object) for held in set(ends) if np.count_nonzero(held) <= contribution.cells]


def test_no_unit_moves_measurements_farther_than_claimed() -> None:
    def check(case: tuple[list[list[int]], Contribution]) -> None:
        entries, contribution = case
        strategy = IntegerStrategy(matrix=np.array(entries, dtype=np.int64))
        moved = [np.array(entries, dtype=object) @ held for held in _held(len(entries[0]), contribution)]
        for neighbours in Neighbours:
            apart = moved if neighbours is Neighbours.ADD_REMOVE else [a - b for a in moved for b in moved]
            squares, sums = max(sum(a * a) for a in apart), max(sum(abs(a)) for a in apart)
            assert strategy.l2_squared(contribution, neighbours) >= squares
            assert strategy.l1(contribution, neighbours) >= sums
            if contribution.cells == 1:
                assert strategy.l2_squared(contribution, neighbours) == squares
                assert contribution.signed or strategy.l1(contribution, neighbours) == sums

    try_all(itertools.product(MATRICES, CONTRIBUTIONS), check)


def test_bounds_of_several_cells_are_attained_where_columns_agree_or_are_orthogonal() -> None:
    two = Contribution(cells=2)
    assert IntegerStrategy(matrix=np.ones((1, 5), dtype=np.int64)).l2_squared(two) == 4
    assert IntegerStrategy(matrix=np.eye(5, dtype=np.int64)).l2_squared(two) == 2
    assert IntegerStrategy(matrix=np.eye(5, dtype=np.int64)).l2_squared(two, "replace") == 4


def test_many_pairs_are_bounded_in_the_l1_norm() -> None:
    wide = IntegerStrategy(matrix=np.array([[1, 2] * 10_000], dtype=np.int64))
    assert wide.l1(neighbours="replace") == 4  # the sum of two norms: at least the true 2


def test_a_matrix_is_kept_where_a_grid_holds_it_and_else_rounded() -> None:
    kept = IntegerStrategy.round_matrix([[3, 0.25], [-1, 2]])
    assert kept.grid.step == Fraction(1, 4)
    assert kept.values().tolist() == [[3, 0.25], [-1, 2]]
    third = IntegerStrategy.round_matrix([[1 / 3, 1], [1e-9, -1]])
    assert np.abs(third.values() - [[1 / 3, 1], [1e-9, -1]]).max() <= float(third.grid.step) / 2
    assert np.abs(third.matrix).max() <= 1 << 24
    assert np.abs(third.matrix).max() > 1 << 22


def test_products_are_exact_whatever_the_counts() -> None:
    strategy = IntegerStrategy.round_matrix([[1 / 3, -0.7, 0.9], [0.1, 0.2, -1]])
    for counts in ([0, 0, 0], [5, -7, 11], [2**62, -(2**63), 2**63 - 1], [2**40, 1, -1]):
        given = np.array(counts, dtype=np.int64)
        expected = strategy.matrix.astype(object) @ given.astype(object)
        assert strategy.product(given).tolist() == expected.tolist()
        mechanism = StrategyMechanism.laplace(strategy, epsilon=10**9)
        released = mechanism.release(given, bits=SeededBits(1))
        assert released == pytest.approx((expected * float(strategy.grid.step)).astype(float), rel=1e-6, abs=1e-3)


def test_events_are_those_of_the_noise_drawn() -> None:
    strategy = IntegerStrategy.round_matrix([[1, 0.5], [0.3, 1]])
    gaussian = StrategyMechanism.gaussian(strategy, noise_multiplier=3)
    assert gaussian.event.noise_multiplier == 3  # type: ignore[union-attr]
    assert gaussian.noise.sigma**2 >= 9 * strategy.l2_squared()  # type: ignore[union-attr]
    laplace = StrategyMechanism.laplace(strategy, epsilon=Fraction(1, 2), neighbours="replace")
    assert accounting.epsilon(laplace.event, 0) == 0.5
    assert laplace.noise.scale == 2 * strategy.l1(neighbours=Neighbours.REPLACE)  # type: ignore[union-attr]


def test_the_noise_has_the_variance_that_is_claimed(bits: SeededBits) -> None:
    """Of 40,000 draws the mean square is within 3 % (4 sd of Gaussian, 2.7 sd of Laplace squares): seeded, so fixed."""
    strategy = IntegerStrategy.round_matrix(np.vstack([np.eye(2), [[0.6, 0.8]]] * 200))
    for mechanism in (
        StrategyMechanism.gaussian(strategy, noise_multiplier=2),
        StrategyMechanism.laplace(strategy, epsilon=1),
    ):
        errors = np.concatenate([mechanism.release([7, 9], bits=bits) - strategy.values() @ [7, 9] for _ in range(67)])
        assert np.mean(errors**2) == pytest.approx(mechanism.variance, rel=0.03)


def test_bad_input_is_refused_before_a_bit_is_drawn() -> None:
    mechanism = StrategyMechanism.gaussian(IntegerStrategy.round_matrix(np.eye(2)), noise_multiplier=1)

    def counts_are_refused(counts: Any) -> None:
        with pytest.raises(InvalidValue) as refused:
            mechanism.release(counts, bits=NoBits())
        assert refused.value.hint

    try_all([[1], [1, 2, 3], [[1, 2]], [1.0, 2.0], [True, False], ["a", "b"], [1, None], 3], counts_are_refused)

    def matrix_is_refused(matrix: Any) -> None:
        with pytest.raises(InvalidParameter, match="matrix"):
            IntegerStrategy.round_matrix(matrix)

    try_all([[], [[]], [1, 2], [[0, 0]], [[np.nan, 1]], [[np.inf]], [["a"]], "a", [[1], [2, 3]]], matrix_is_refused)
    with pytest.raises(InvalidParameter, match="matrix"):
        IntegerStrategy(matrix=np.array([[1 << 30]]))
    for wrong in ({"cells": 0}, {"amount": 0}, {"amount": 1.5}, {"signed": 1}):
        with pytest.raises(InvalidParameter):
            Contribution(**wrong)
