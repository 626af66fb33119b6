"""The integer gradient of generalised linear models: test vectors, limits that hold exactly, and rows by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, softmax

from discreet.errors import InvalidParameter
from discreet.learn.features import features
from discreet.statistics import row_sums as glm
from discreet.statistics.inputs import rounded_within
from discreet.statistics.row_sums import Design

numbers = st.integers(-5000, 5000)
residual = st.integers(-3000, 3000)
clips = st.sampled_from([1, 7, 1 << 12, 1 << 21, 1 << 22])


def test_the_rule_of_integer_models_on_three_rows() -> None:
    design = Design.of(features(2, norm_bound=1.0).rows([[0.6, 0.8], [1, 0], [-0.28, 0.96]]), clip=1 << 21)
    assert design.rows.tolist() == [[2457, 3276], [4096, 0], [-1147, 3932]]
    residuals = glm.class_residuals(design.margins(np.array([1.0, -0.5])), np.array([1, 0, 1]))
    held = np.clip(residuals, -design.limits, design.limits)
    assert held.tolist() == [-461, 512, -512]
    assert design.gradient(residuals).tolist() == [1551739, -3523420]


def test_a_clipped_gradient_is_rounded_inside_its_ball() -> None:
    scaled = 8 * np.array([[0.6, -0.55, 0.58]])
    assert np.rint(scaled).tolist() == [[5, -4, 5]]
    assert rounded_within(scaled, 8).tolist() == [[4, -4, 4]]


@given(values=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3), radius=st.integers(1, 5000))
def test_rounded_vectors_stay_in_their_ball_even_if_the_float_clip_failed(values: list[float], radius: int) -> None:
    kept = rounded_within(np.array([values]), radius)
    assert int(np.sum(kept * kept)) <= radius * radius


@given(row=st.lists(numbers, min_size=2, max_size=4), value=residual, clip=clips)
def test_one_row_moves_the_gradient_by_the_clip_at_most(row: list[int], value: int, clip: int) -> None:
    design = Design.of(np.array([row]), clip=clip)
    moved = [int(entry) for entry in design.gradient(np.array([value]))]
    assert sum(entry * entry for entry in moved) <= clip * clip


@given(row=st.lists(numbers, min_size=2, max_size=3), values=st.lists(residual, min_size=3, max_size=3), clip=clips)
def test_one_row_moves_the_softmax_gradient_by_the_clip_at_most(row: list[int], values: list[int], clip: int) -> None:
    moved = Design.of(np.array([row]), clip=clip).gradient(np.array([values]))
    assert sum(int(entry) ** 2 for entry in moved.ravel()) <= clip * clip


@given(row=st.lists(numbers, min_size=2, max_size=3), weight=st.integers(-4000, 4000), limit=clips)
def test_one_row_moves_the_curvature_by_its_limit_at_most(row: list[int], weight: int, limit: int) -> None:
    moved = Design.of(np.array([row])).curvature(np.array([weight]), limit)
    assert sum(int(entry) ** 2 for entry in moved.ravel()) <= limit * limit


@given(
    rows=st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=2, max_size=6),
    theta=st.lists(st.floats(-8, 8), min_size=2, max_size=2),
)
def test_a_row_adds_the_same_whatever_the_others_are(rows: list[list[int]], theta: list[float]) -> None:
    def gradient(part: slice) -> NDArray[np.int64]:
        design = Design.of(np.array(rows)[part], clip=glm.UNIT)
        return design.gradient(glm.class_residuals(design.margins(np.array(theta)), np.arange(len(rows))[part] % 2))

    alone = [gradient(slice(place, place + 1)) for place in range(len(rows))]
    assert (gradient(slice(None)) == np.sum(alone, axis=0)).all()


def test_residuals_are_close_to_the_real_ones() -> None:
    margins = np.linspace(-10, 10, 4001)
    exact = (margins * glm.MARGIN).astype(np.int64)
    zeros = np.zeros(margins.size, dtype=np.int64)
    assert glm.class_residuals(exact, zeros) / glm.RESIDUAL == pytest.approx(expit(margins), abs=2e-3)
    three = np.stack([exact, -exact, exact // 2], axis=1)
    found = glm.softmax_residuals(three, zeros + 1) / glm.RESIDUAL
    wanted = softmax(np.stack([margins, -margins, margins / 2], axis=1), axis=1) - np.array([0, 1, 0])
    assert found == pytest.approx(wanted, abs=6e-3)


def test_labels_of_no_class_count_nowhere() -> None:
    margins = np.array([5 << 28, -3 << 28])
    unknown = np.array([-1, 7])
    hinge = glm.link_table(lambda z: -np.clip((1.5 - z), 0.0, 1.0))
    assert glm.class_residuals(margins, unknown).tolist() == [0, 0]
    assert glm.sign_residuals(margins, unknown, hinge).tolist() == [0, 0]
    assert glm.softmax_residuals(np.stack([margins] * 3, axis=1), unknown).tolist() == [[0, 0, 0]] * 2


def test_a_smoothed_hinge_pulls_each_class_its_own_way() -> None:
    hinge = glm.link_table(lambda z: -np.clip((1.5 - z), 0.0, 1.0))
    margins = np.array([0, 0, 3 << 28, -3 << 28])
    assert glm.sign_residuals(margins, np.array([0, 1, 1, 1]), hinge).tolist() == [1024, -1024, 0, -1024]


def test_weights_out_of_all_proportion_are_brought_back() -> None:
    design = Design.of(np.full((1, 1000), 129))
    margins = design.margins(np.full(1000, np.inf))
    assert margins.tolist() == [129 * 1000 * (1 << 30)]
    assert design.margins(np.full(1000, np.nan)).tolist() == [0]


def test_tables_are_bounded() -> None:
    with pytest.raises(InvalidParameter) as caught:
        glm.link_table(np.exp)
    assert caught.value.name == "function"
