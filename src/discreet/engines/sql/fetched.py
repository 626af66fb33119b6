"""What a database hands over: rows of Python's objects, or an Arrow table where there may be many groups.

Both become the same columns of keys and exact integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.integer_columns import Column, WideColumn, column_of, concatenate_columns, narrow_column, objects
from discreet.lazy import pa
from discreet.plan.model.group_columns import KeyColumn, key_column
from discreet.plan.model.types import Type


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FetchedRows:
    """A result as rows."""

    rows: Sequence[tuple[Any, ...]]

    @property
    def length(self) -> int:
        """Returns the number of rows."""
        return len(self.rows)

    def keys(self, place: int, kind: Type) -> KeyColumn:
        """Returns a column of keys."""
        return key_column([row[place] for row in self.rows], kind)

    def integers(self, place: int) -> Column:
        """Returns a column of integers, 0 for NULL."""
        return column_of([int(row[place] or 0) for row in self.rows])

    def lists(self, start: int) -> list[tuple[int, ...]]:
        """Returns the lists from a place on, put together for each row."""
        return [tuple(chain.from_iterable(row[start:])) for row in self.rows]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FetchedTable:
    """A result as an Arrow table."""

    table: Any

    @property
    def length(self) -> int:
        """Returns the number of rows."""
        return int(self.table.num_rows)

    def keys(self, place: int, kind: Type) -> KeyColumn:
        """Returns a column of keys: numbers as they lie there, other values as Python's objects."""
        column = self.table.column(place)
        if kind is not Type.INT:
            return key_column(_values(column), kind)
        numbers = narrow_column(self.integers(place))
        if column.null_count == 0 and not isinstance(numbers, WideColumn):
            return numbers
        values = zip(objects(numbers).tolist(), column.is_null().to_pylist(), strict=True)
        return key_column([None if absent else value for value, absent in values], kind)

    def integers(self, place: int) -> Column:
        """Returns a column of integers, 0 for NULL."""
        return concatenate_columns([_integers(chunk) for chunk in self.table.column(place).chunks])

    def lists(self, start: int) -> list[tuple[int, ...]]:
        """Returns the lists from a place on, put together for each row."""
        columns = [column.to_pylist() for column in self.table.columns[start:]]
        return [tuple(chain.from_iterable(row)) for row in zip(*columns, strict=True)]


Fetched = FetchedRows | FetchedTable


def _integers(chunk: Any) -> Column:
    """Integers of 64 bits or fewer, or the two words of decimals of 38 digits without decimals."""
    if pa.types.is_integer(chunk.type) and (chunk.type.bit_width < 64 or chunk.type == pa.int64()):
        held = np.frombuffer(chunk.buffers()[1], dtype=chunk.type.to_pandas_dtype())
        return _zero_nulls(chunk, held[chunk.offset : chunk.offset + len(chunk)].astype(np.int64))
    if not (pa.types.is_decimal128(chunk.type) and chunk.type.scale == 0):
        return column_of([int(value or 0) for value in chunk.to_pylist()])
    words = np.frombuffer(chunk.buffers()[1], dtype=np.uint64)
    pairs = words[2 * chunk.offset : 2 * (chunk.offset + len(chunk))].reshape(-1, 2)
    low, high = (_zero_nulls(chunk, pairs[:, place].copy().view(np.int64)) for place in (0, 1))
    return narrow_column(WideColumn(high, low.view(np.uint64)))


def _zero_nulls(chunk: Any, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the words of what is not NULL, 0 for the rest."""
    if chunk.null_count:
        words[chunk.is_null().to_numpy(zero_copy_only=False)] = 0
    return words


def _values(column: Any) -> list[Any]:
    """Texts, truth values, days and moments, and doubles that are there, in one step; everything else one by one."""
    kind = column.type
    at_once = pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind)
    at_once |= kind == pa.timestamp("us") or (pa.types.is_float64(kind) and column.null_count == 0)
    found: list[Any] = column.to_numpy().tolist() if at_once else column.to_pylist()
    return found
