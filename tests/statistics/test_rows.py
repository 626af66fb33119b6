"""Rows of integers stay within their radius exactly, and each is a function of itself alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.learn.features import features
from discreet.statistics.inputs import RADIUS, column, within

entries = st.integers(-(1 << 40), 1 << 40)


@given(rows=st.lists(st.lists(entries, min_size=3, max_size=3), min_size=1, max_size=6), radius=st.integers(1, RADIUS))
def test_no_row_is_longer_than_the_radius(rows: list[list[int]], radius: int) -> None:
    kept = within(np.array(rows, dtype=np.int64), radius)
    assert (np.sum(kept * kept, axis=1) <= radius * radius).all()


@given(row=st.lists(st.integers(-RADIUS, RADIUS), min_size=2, max_size=5))
def test_short_rows_are_kept_as_they_are(row: list[int]) -> None:
    steps = np.array([row], dtype=np.int64)
    if int(np.sum(steps * steps)) <= RADIUS**2:
        assert (within(steps) == steps).all()


@given(
    rows=st.lists(st.lists(st.floats(width=32), min_size=2, max_size=2), min_size=2, max_size=8),
    constant=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_a_row_does_not_depend_on_the_others(rows: list[list[float]], constant: float) -> None:
    public = features(2, norm_bound=3.0, constant=constant)
    together = public.rows(np.array(rows))
    assert (np.sum(together * together, axis=1) <= RADIUS**2).all()
    for row, kept in zip(rows, together, strict=True):
        assert (public.rows(np.array([row]))[0] == kept).all()


def test_bounds_move_features_to_the_middle() -> None:
    public = features(2, bounds=([0, -10], [10, 10]))
    rows = public.rows(np.array([[5.0, 0.0], [10.0, 10.0], [np.nan, np.inf]]))
    assert rows[0].tolist() == [0, 0]
    assert rows[1].tolist() == pytest.approx([RADIUS / np.sqrt(2)] * 2, abs=1)
    assert rows[2].tolist() == [0, RADIUS]


def test_missing_values_are_left_out_or_put_in_the_middle() -> None:
    values = [0.0, np.nan, 10.0]
    assert column(values, bounds=(0, 10)).size == 2
    replaced = column(values, bounds=(0, 10), neighbours="replace")
    assert replaced.public_size == 3
    assert replaced.value(replaced.steps).tolist() == [0, 5, 10]
