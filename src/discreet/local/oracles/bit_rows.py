"""Reports of one bit for each value of a domain, eight to a byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_CHUNK = 1 << 23  # bits that are worked on at a time
_SUMMED = 255  # rows whose ones a byte can count


def chunks(rows: int, bits: int) -> Iterator[slice]:
    """Returns ranges of rows, each small enough to be spread out as one byte for each bit."""
    step = max(1, _CHUNK // bits)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def pack_bits(members: NDArray[np.bool_]) -> Bytes:
    """Returns rows of bools as rows of bytes."""
    return np.packbits(members, axis=1)


def row_bytes(bits: int) -> int:
    """Returns how many bytes a row of so many bits has."""
    return -(-bits // 8)


def column_sums(rows: NDArray[Any], bits: int) -> Ints:
    """Returns how many rows have each bit.

    >>> column_sums(pack_bits(np.array([[True, False, True], [True, False, False]])), 3).tolist()
    [2, 0, 1]
    """
    total = np.zeros(bits, dtype=np.int64)
    step = max(1, min(_SUMMED, _CHUNK // bits))
    for start in range(0, len(rows), step):
        spread = np.unpackbits(rows[start : start + step].astype(np.uint8, copy=False), axis=1, count=bits)
        total += np.add.reduce(spread, axis=0, dtype=np.uint8)  # at most 255 rows: a byte holds the sum
    return total


def ones(rows: NDArray[Any]) -> Ints:
    """Returns how many bits of each row are set."""
    return np.asarray(np.bitwise_count(rows.astype(np.uint8, copy=False)).sum(axis=1, dtype=np.int64))


def well_formed(rows: NDArray[Any], bits: int) -> NDArray[np.bool_]:
    """Returns which rows are bytes whose unused last bits are 0."""
    unused = (1 << (-bits % 8)) - 1
    within = np.ones(len(rows), dtype=bool) if rows.dtype == np.uint8 else ((rows >= 0) & (rows < 256)).all(axis=1)
    return np.asarray(within & ((rows[:, -1] & unused) == 0))
