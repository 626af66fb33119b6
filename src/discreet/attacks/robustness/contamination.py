"""Data with something wrong in them on purpose: gross outliers, flipped labels, a planted pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.errors import InvalidParameter

Floats = NDArray[np.float64]


def with_outliers(x: Any, rows: int, *, at: float) -> Floats:
    """Returns the values, the first so many of them replaced by one that lies far away.

    >>> with_outliers([1.0, 2.0, 3.0], 1, at=1000.0).tolist()
    [1000.0, 2.0, 3.0]
    """
    values = np.array(x, dtype=np.float64)
    values[: _some(rows, len(values))] = at
    return values


def with_flipped_labels(y: Any, rows: int, *, label: Any, to: Any) -> NDArray[Any]:
    """Returns the labels, the first so many of those that are `label` said to be `to`.

    A one-sided lie is the worst kind.

    >>> with_flipped_labels([0, 1, 1, 1], 2, label=1, to=0).tolist()
    [0, 0, 0, 1]
    """
    labels = np.array(y)
    labels[np.flatnonzero(labels == label)[: _some(rows, len(labels))]] = to
    return labels


def with_backdoor(
    X: Any, y: Any, rows: int, *, pattern: Mapping[int, float], label: Any
) -> tuple[Floats, NDArray[Any]]:
    """Returns the table with so many rows added.

    Copies of its first rows of other labels, with a pattern, under one label.

    Args:
        X: rows of numbers.
        y: their labels.
        rows: how many to add.
        pattern: by place of a feature, the value it gets.
        label: what they are said to be.

    >>> X, y = with_backdoor([[0.0, 0.0], [5.0, 0.0]], [1, 0], 1, pattern={1: 9.0}, label=1)
    >>> X.tolist(), y.tolist()
    ([[0.0, 0.0], [5.0, 0.0], [5.0, 9.0]], [1, 0, 1])
    """
    table, labels = np.array(X, dtype=np.float64), np.array(y)
    others = np.flatnonzero(labels != label)
    copies = triggered(table[np.resize(others, _some(rows, len(others)))], pattern)
    return np.vstack([table, copies]), np.concatenate([labels, np.full(len(copies), label, dtype=labels.dtype)])


def triggered(X: Any, pattern: Mapping[int, float]) -> Floats:
    """Returns the rows with the pattern in them."""
    table = np.array(X, dtype=np.float64)
    for place, value in pattern.items():
        table[:, place] = value
    return table


def _some(rows: int, most: int) -> int:
    count = check.integer(rows=rows, at_least=0)
    if count > most:
        raise InvalidParameter("rows", rows, f"<= {most}, as many as there are")
    return count
