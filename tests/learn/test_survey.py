"""The survey: how far a row moves it, what becomes of rows afterwards, and weights that find their way back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.learn.features import features
from discreet.learn.linear.row_summary import FINE, Survey, fine_rows, placed
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.statistics.inputs import RADIUS

Integers = NDArray[np.int64]

entry = st.one_of(st.floats(-3, 3), st.sampled_from([np.nan, np.inf, -np.inf, 1e308, 1.0, -1.0]))
row = st.lists(entry, min_size=3, max_size=3)
PUBLIC = features(3, norm_bound=1.0)


def survey(neighbours: Neighbours) -> Survey:
    return Survey(noise_multiplier=Fraction(5), neighbours=neighbours)


def length_squared(values: Integers) -> int:
    return sum(int(value) ** 2 for value in values)


@given(others=st.lists(row, max_size=3), new=row)
def test_an_added_row_moves_the_survey_by_its_sensitivity_at_most(others: list[list[float]], new: list[float]) -> None:
    made = survey(Neighbours.ADD_REMOVE)
    before = made.sums(fine_rows(np.array(others).reshape(-1, 3), PUBLIC))
    after = made.sums(fine_rows(np.array([*others, new]), PUBLIC))
    assert length_squared(after - before) <= made.mechanism.sensitivity**2


@given(old=row, new=row)
def test_a_replaced_row_moves_the_survey_by_its_sensitivity_at_most(old: list[float], new: list[float]) -> None:
    made = survey(Neighbours.REPLACE)
    moved = made.sums(fine_rows(np.array([new]), PUBLIC)) - made.sums(fine_rows(np.array([old]), PUBLIC))
    assert length_squared(moved) <= made.mechanism.sensitivity**2


def test_the_sensitivities_are_reached() -> None:
    far = fine_rows(np.array([[1.0, 0, 0]]), PUBLIC)
    added = survey(Neighbours.ADD_REMOVE)
    assert length_squared(added.sums(far)) == 3 * FINE**2 <= added.mechanism.sensitivity**2
    replaced = survey(Neighbours.REPLACE)
    moved = replaced.sums(far) - replaced.sums(0 * far)
    assert length_squared(moved) == 2 * FINE**2
    assert length_squared(replaced.sums(far) - replaced.sums(-far)) == 4 * FINE**2 <= replaced.mechanism.sensitivity**2


@given(table=st.lists(row, min_size=1, max_size=5))
def test_rows_are_functions_of_themselves_and_keep_to_the_radius(table: list[list[float]]) -> None:
    place = placed(np.array([0.5, -0.2, 0.1]), 2.0, 4.0, 0.01, centred=True)
    rows = place.rows(fine_rows(np.array(table), PUBLIC))
    alone = [place.rows(fine_rows(np.array([each]), PUBLIC))[0] for each in table]
    assert rows.tolist() == [each.tolist() for each in alone]
    assert all(length_squared(each) <= RADIUS**2 for each in rows)


def test_a_middle_that_is_noise_is_left_alone() -> None:
    noisy = placed(np.array([3.0, -4.0]), 50.0, 100.0, 5.0, centred=True)
    assert noisy.centre.tolist() == [0, 0]
    clear = placed(np.array([30.0, -40.0]), 50.0, 100.0, 0.01, centred=True)
    assert (clear.centre / FINE).tolist() == pytest.approx([0.3, -0.4], abs=1e-6)


@pytest.mark.parametrize("centred", [True, False])
def test_weights_of_integer_rows_and_of_given_rows_give_the_same_margins(centred: bool) -> None:
    X = 0.3 * normals((50, 3), bits=SeededBits(1)) + [0.2, 0.1, -0.3]
    public = features(3, bounds=([-2, -2, -1], [2, 3, 1]))
    fine = fine_rows(X, public)
    place = survey(Neighbours.REPLACE).release(fine, centred=centred, bits=SeededBits(2))
    rows = place.rows(fine)
    inside = np.sum(rows[:, :3] ** 2, axis=1) < 0.99 * place.radius**2
    theta = normals((1, place.width), bits=SeededBits(3))
    weights, shift = place.weights(theta, public.norm)
    expected = ((X - public.centre) / public.spread) @ weights.T + shift
    assert inside.sum() > 20
    assert rows[inside] @ theta[0] / RADIUS == pytest.approx(expected[inside, 0], abs=5e-3)


def test_the_number_of_rows_is_part_of_the_release_only_where_it_is_private() -> None:
    fine = fine_rows(np.zeros((7, 3)), PUBLIC)
    assert survey(Neighbours.ADD_REMOVE).sums(fine).tolist() == [0, 0, 0, 0, 7 * FINE]
    assert survey(Neighbours.REPLACE).sums(fine).tolist() == [0, 0, 0, 0]
    assert survey(Neighbours.REPLACE).release(fine, centred=True, bits=SeededBits(1)).count == 7
