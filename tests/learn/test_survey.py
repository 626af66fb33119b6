"""The survey: how far a row moves it, what becomes of rows afterwards, and weights that find their way back."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.exact import root_above
from discreet.learn.features import features
from discreet.learn.linear.row_summary import (
    COUNTED,
    FINE,
    EntrySquares,
    RowSummary,
    class_shares,
    find_place,
    fine_rows,
)
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS

Integers = NDArray[np.int64]

entry = st.one_of(st.floats(-3, 3), st.sampled_from([np.nan, np.inf, -np.inf, 1e308, 1.0, -1.0]))
row = st.lists(entry, min_size=3, max_size=3)
PUBLIC = features(3, norm_bound=1.0)


BUDGETS = [Spending.of(1), Spending.of(1, 1e-6)]
CODES = range(-1, 3)
EVEN = np.full(2, 0.5)


def survey(neighbours: Neighbours, spending: Spending = BUDGETS[1]) -> RowSummary:
    return RowSummary.of(spending, neighbours)


def length_squared(values: Integers) -> int:
    return sum(int(value) ** 2 for value in values)


def sums(made: RowSummary, rows: list[list[float]], codes: list[int]) -> Integers:
    return made.sums(fine_rows(np.array(rows).reshape(-1, 3), PUBLIC), np.array(codes, dtype=np.int64), 3)


@given(others=st.lists(row, max_size=3), new=row, code=st.sampled_from(CODES))
def test_an_added_row_moves_the_survey_by_its_sensitivity_at_most(
    others: list[list[float]], new: list[float], code: int
) -> None:
    made, codes = survey(Neighbours.ADD_REMOVE), [0, 1, 2][: len(others)]
    before, after = sums(made, others, codes), sums(made, [*others, new], [*codes, code])
    assert length_squared(after - before) <= made.sensitivity**2
    assert (after - before).tolist() == sums(made, [new], [code]).tolist()  # whatever the other rows are


@given(old=row, new=row)
def test_a_replaced_row_moves_the_survey_by_its_sensitivity_at_most(old: list[float], new: list[float]) -> None:
    made = survey(Neighbours.REPLACE)
    for one, other in product(CODES, CODES):
        assert length_squared(sums(made, [new], [one]) - sums(made, [old], [other])) <= made.sensitivity**2


@pytest.mark.parametrize("relation", list(Neighbours))
def test_no_corner_of_neighbouring_tables_is_further_apart(relation: Neighbours) -> None:
    """All pairs of rows at corners, at the rim and at zero, of all classes: the largest move is near the bound."""
    made = survey(relation)
    grid = [-1.0, 0.0, 0.6, 0.8, 1.0]
    rows = [list(each) for each in product(grid, grid, [0.0])]
    found = [sums(made, [each], [code]) for each in rows for code in CODES]
    others = [0 * found[0]] if relation is Neighbours.ADD_REMOVE else found
    largest = max(length_squared(one - other) for one in found for other in others)
    reached = 2 + COUNTED**2 if relation is Neighbours.ADD_REMOVE else 4 + 2 * COUNTED**2
    assert largest == reached * FINE**2 <= made.sensitivity**2


@pytest.mark.parametrize("relation", list(Neighbours))
def test_no_corner_moves_the_squares_of_entries_by_more_than_is_told(relation: Neighbours) -> None:
    made = EntrySquares(noise=VectorNoise(part=BUDGETS[0]), neighbours=relation)
    grid = [-1.0, -0.6, 0.0, 0.6, 0.8, 1.0, 7.0]
    rows = [fine_rows(np.array([each]), PUBLIC) for each in product(grid, grid, [0.0, 0.6])]
    found = [made.sums(each) for each in rows]
    others = [0 * found[0]] if relation is Neighbours.ADD_REMOVE else found
    largest = max(length_squared(one - other) for one in found for other in others)
    assert largest == (1 if relation is Neighbours.ADD_REMOVE else 2) * FINE**2 <= made.sensitivity**2
    assert made.sums(np.concatenate(rows[:3])).tolist() == np.sum(found[:3], axis=0).tolist()


def test_entries_that_differ_little_are_enlarged_unless_that_is_noise() -> None:
    place = find_place(np.zeros(2), 50.0, 100.0, 0.001, centred=True, shares=EVEN)
    clear, hidden = (place.scale_entries(np.array([45.0, 5.0]), sigma) for sigma in (0.001, 50.0))
    assert hidden.scale.tolist() == [1, 1]
    assert hidden.length == place.length
    assert clear.scale[1] / clear.scale[0] == pytest.approx((2.0 / 0.4) ** 0.5)  # variances 1.8, 0.2, and LEVEL
    rows = clear.rows(np.array([[FINE // 2, 0], [0, FINE // 2], [FINE, FINE]]))
    assert rows[1, 1] > rows[0, 0] > 0
    assert all(length_squared(each) <= RADIUS**2 for each in rows)


@pytest.mark.parametrize("relation", list(Neighbours))
def test_counts_that_weigh_more_than_is_told_would_be_seen(
    relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant whose noise is made for one count of all rows, not for a count of each class that weighs double."""
    monkeypatch.setattr(RowSummary, "sensitivity", property(lambda _: root_above(Fraction(5)) * FINE))
    with pytest.raises(AssertionError):
        test_no_corner_of_neighbouring_tables_is_further_apart(relation)


@pytest.mark.parametrize("spending", BUDGETS)
@pytest.mark.parametrize("relation", list(Neighbours))
def test_the_noise_is_made_for_that(spending: Spending, relation: Neighbours) -> None:
    made = survey(relation, spending)
    mechanism = made.noise.mechanism(made.sensitivity, 7)
    assert (mechanism.sensitivity, mechanism.event) == (made.sensitivity, made.event)


@given(table=st.lists(row, min_size=1, max_size=5))
def test_rows_are_functions_of_themselves_and_keep_to_the_radius(table: list[list[float]]) -> None:
    place = find_place(np.array([0.5, -0.2, 0.1]), 2.0, 4.0, 0.01, centred=True, shares=EVEN)
    rows = place.rows(fine_rows(np.array(table), PUBLIC))
    alone = [place.rows(fine_rows(np.array([each]), PUBLIC))[0] for each in table]
    assert rows.tolist() == [each.tolist() for each in alone]
    assert all(length_squared(each) <= RADIUS**2 for each in rows)


def test_a_middle_that_is_noise_is_left_alone() -> None:
    noisy = find_place(np.array([3.0, -4.0]), 50.0, 100.0, 5.0, centred=True, shares=EVEN)
    assert noisy.centre.tolist() == [0, 0]
    clear = find_place(np.array([30.0, -40.0]), 50.0, 100.0, 0.01, centred=True, shares=EVEN)
    assert (clear.centre / FINE).tolist() == pytest.approx([0.3, -0.4], abs=1e-6)


@pytest.mark.parametrize("centred", [True, False])
def test_weights_of_integer_rows_and_of_given_rows_give_the_same_margins(centred: bool) -> None:
    X = 0.3 * normals((50, 3), bits=SeededBits(1)) + [0.2, 0.1, -0.3]
    public = features(3, bounds=([-2, -2, -1], [2, 3, 1]))
    fine = fine_rows(X, public)
    place = survey(Neighbours.REPLACE).release(fine, np.arange(50) % 2, 2, centred=centred, bits=SeededBits(2))
    rows = place.rows(fine)
    inside = np.sum(rows[:, :3] ** 2, axis=1) < 0.99 * place.radius**2
    theta = normals((1, place.width), bits=SeededBits(3))
    weights, shift = place.weights(theta, public.norm)
    expected = ((X - public.centre) / public.spread) @ weights.T + shift
    assert inside.sum() > 20
    assert rows[inside] @ theta[0] / RADIUS == pytest.approx(expected[inside, 0], abs=5e-3)


def test_the_number_of_rows_of_a_class_is_released_and_their_sum_is_public_only_if_they_are_replaced() -> None:
    fine, codes = fine_rows(np.zeros((7, 3)), PUBLIC), np.array([0, 0, 0, 1, 1, -1, 2])
    added, replaced = survey(Neighbours.ADD_REMOVE), survey(Neighbours.REPLACE)
    assert added.sums(fine, codes, 2).tolist() == [0, 0, 0, 0, 3 * COUNTED * FINE, 2 * COUNTED * FINE]
    assert replaced.release(fine, codes, 2, centred=True, bits=SeededBits(1)).count == 7
    assert added.release(fine, codes, 2, centred=True, bits=SeededBits(1)).count not in (5, 7)


@given(counts=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=5), sigma=st.floats(0.01, 1e6))
def test_shares_of_classes_are_shares_whatever_was_released(counts: list[float], sigma: float) -> None:
    found = class_shares(np.array(counts), sigma)
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
