"""Rows that are held as columns are the rows that they were made of."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from discreet.plan.model.group_columns import ColumnarRows
from discreet.plan.post.outputs import NoisyColumn, NoisyNumber

ROWS: list[dict[str, Any]] = [
    {"k": "A", "n": 3, "x": 0.5},
    {"k": None, "n": -1, "x": 2.0},
    {"k": "C", "n": 7, "x": 1.0},
]
HELD: ColumnarRows[Any] = ColumnarRows(
    {"k": ("A", None, "C"), "n": np.array([3, -1, 7]), "x": np.array([0.5, 2.0, 1.0])}, 3
)


@pytest.mark.parametrize("held", [HELD, ColumnarRows.of(ROWS)], ids=["arrays", "lists"])
def test_rows_come_back_with_values_of_python(held: ColumnarRows[Any]) -> None:
    assert list(held) == ROWS
    assert all(held == other and other == held for other in (ROWS, tuple(ROWS), HELD))
    assert [held[place] for place in (0, 1, 2, -1)] == [*ROWS, ROWS[-1]]
    assert repr(held) == repr(ROWS)
    assert {type(value) for row in (*held, held[1]) for value in row.values()} == {str, int, float, type(None)}
    assert held[1:] == ROWS[1:]
    assert held[::-2] == ROWS[::-2]
    assert len(held[5:]) == 0
    assert held.take_places([2, 0]) == [ROWS[2], ROWS[0]]
    assert len(held.take_places([])) == 0
    assert pickle.loads(pickle.dumps(held)) == copy.deepcopy(held) == ROWS


def test_other_rows_are_not_equal() -> None:
    assert ROWS[:2] != HELD
    assert [*ROWS[:2], {**ROWS[2], "n": 8}] != HELD
    assert HELD != "rows"
    assert HELD != 3
    with pytest.raises(IndexError):
        HELD[3]
    with pytest.raises(TypeError):
        hash(HELD)


def test_rows_without_columns_are_counted() -> None:
    assert list(ColumnarRows[Any]({}, 2)) == [{}, {}]
    assert list(ColumnarRows.of([])) == []


def test_a_noisy_column_makes_noisy_numbers_whose_zeros_have_no_sign() -> None:
    column = NoisyColumn(np.array([-0.0, 2.0]), np.array([-1.0, -0.0]), np.array([-0.0, 3.0]))
    assert list(column) == [column[0], column[1]] == [NoisyNumber(0.0, -1.0, 0.0), NoisyNumber(2.0, 0.0, 3.0)]
    assert not np.signbit([column.value[0], column.high[0], column.low[1]]).any()
    assert list(column[1:]) == list(column.take_places([1])) == [NoisyNumber(2.0, 0.0, 3.0)]
    assert list(column.at(np.array([1.0, -4.0]))) == [NoisyNumber(1.0, -1.0, 1.0), NoisyNumber(-4.0, -4.0, 3.0)]
