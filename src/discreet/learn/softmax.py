"""Probabilities from whole scores by table and integer division: no bit of a row's share depends on other rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

ONE = 1 << 20  # a score of 1
UNIT = 1 << 10  # a probability of 1
_STEP = 12  # bits of a score that the table ignores: it has 256 entries for a score of 1
_TABLE = np.rint((1 << 20) * np.exp(-np.arange(16 << 8) / 256)).astype(np.int64)


def shares(scores: Integers) -> Integers:
    """e^score of each output over the sum of all, in units; one output stands beside another of score 0.

    >>> shares(np.array([[0], [ONE], [-50 * ONE]])).ravel().tolist()
    [512, 749, 0]
    >>> shares(np.array([[0, 0, ONE]])).tolist()
    [[217, 217, 590]]
    """
    single = scores.shape[1] == 1
    columns = np.hstack([np.zeros_like(scores), scores]) if single else scores
    gaps = (columns.max(axis=1, keepdims=True) - columns) >> _STEP
    weights = _TABLE[np.minimum(gaps, len(_TABLE) - 1)]
    total = weights.sum(axis=1, keepdims=True)  # of integers: exact in any order
    found = (2 * UNIT * weights + total) // (2 * total)
    return np.asarray(found[:, 1:] if single else found, dtype=np.int64)
