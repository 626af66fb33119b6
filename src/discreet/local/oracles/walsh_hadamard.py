"""The Walsh-Hadamard transform: sums of a table with the signs of all parities, in d log d additions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def transform_table(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns at y the sum of table[u] (-1)^(number of common bits of u and y); a last axis of 2^m entries.

    Whole numbers stay exact while their absolute values sum to less than 2^53.

    >>> transform_table(np.array([1.0, 0.0, 0.0, 2.0])).tolist()
    [3.0, -1.0, -1.0, 3.0]
    """
    result = table.astype(np.float64)
    half = 1
    while half < result.shape[-1]:
        pairs = result.reshape(*result.shape[:-1], -1, 2, half)
        left, right = pairs[..., 0, :], pairs[..., 1, :]
        difference = left - right
        left += right
        right[...] = difference
        half *= 2
    return result


def parity(words: NDArray[Any]) -> NDArray[np.int64]:
    """Returns whether each word has an odd number of ones."""
    return np.asarray(np.bitwise_count(words).astype(np.int64) & 1)
