"""Columns of exact integers against Python's own, at the ends of what words hold."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exact.integer_columns import (
    Column,
    WideColumn,
    added_up,
    column_of,
    combine_columns,
    concatenate_columns,
    in_words_or_objects,
    largest,
    narrow_column,
    objects,
    round_column,
    scatter_column,
)

EDGES = [
    sign * (1 << bits) + more for bits in (31, 32, 62, 63, 64, 95, 126, 127) for more in (-1, 0, 1) for sign in (-1, 1)
]
NUMBERS = st.one_of(
    st.integers(-10, 10),
    st.sampled_from(EDGES),
    *(st.integers(-(1 << bits), 1 << bits) for bits in (62, 63, 64, 100, 126, 140)),
)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=6)
WEIGHTS = st.one_of(st.sampled_from([0, 1, -1, 3, -7, 1 << 61, (1 << 62) + 1]), NUMBERS)


def split(rows: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [first for first, _ in rows], [second for _, second in rows]


def forms(values: Sequence[int]) -> list[Column]:
    """The same integers in every form that holds them."""
    found: list[Column] = [column_of(values), objects(column_of(values))]
    if all(abs(value) < 1 << 126 for value in values):
        found.append(WideColumn.of(values))
    return found


@given(ROWS, WEIGHTS, WEIGHTS)
def test_sums_with_weights(rows: Sequence[tuple[int, int]], first: int, second: int) -> None:
    one, other = split(rows)
    wanted = [first * a + second * b for a, b in rows]
    for a in forms(one):
        for b in forms(other):
            assert objects(combine_columns([a, b], [first, second], len(rows))).tolist() == wanted


@given(ROWS, st.integers(0, 80))
def test_rounding_is_half_up(rows: Sequence[tuple[int, int]], bits: int) -> None:
    values, _ = split(rows)
    wanted = [(Fraction(value, 1 << bits) + Fraction(1, 2)).__floor__() if bits else value for value in values]
    for column in forms(values):
        assert objects(round_column(column, bits)).tolist() == wanted


@given(ROWS)
def test_what_a_column_holds(rows: Sequence[tuple[int, int]]) -> None:
    values, others = split(rows)
    for column in forms(values):
        assert objects(column).tolist() == objects(narrow_column(column)).tolist() == values
        assert objects(in_words_or_objects(column)).tolist() == values
        assert added_up(column) == sum(values)
        assert all(abs(value) <= largest(column) for value in values)
        for other in forms(others):
            assert objects(concatenate_columns([column, other])).tolist() == values + others
        places = np.arange(len(values))[::-1] * 2
        spread = objects(scatter_column(column, places, 2 * len(values) + 1)).tolist()
        assert [spread[place] for place in places] == values
        assert sum(map(bool, spread)) == sum(map(bool, values))


def test_small_numbers_take_the_small_form() -> None:
    assert column_of([1, -2]).dtype == np.int64  # type: ignore[union-attr]
    assert isinstance(column_of([1 << 100]), WideColumn)
    assert narrow_column(WideColumn.of([5, -5])).dtype == np.int64  # type: ignore[union-attr]
    assert concatenate_columns([]).dtype == np.int64  # type: ignore[union-attr]


def test_mutant_a_sum_without_a_check_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would see it: numpy's own sum of the largest numbers is another."""
    monkeypatch.setattr("discreet.exact.integer_columns.largest", lambda _column: 0)
    column = column_of([(1 << 63) - 1])
    assert objects(combine_columns([column, column], [1, 1], 1)).tolist() != [(1 << 64) - 2]
