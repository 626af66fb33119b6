"""Columns of exact integers: 64 bits where they fit, two words of 64 bits each where sums do not, else objects.

Formal guarantee: every function returns the integers that Python's would be. Before numpy adds or multiplies, the
largest numbers that could come out are compared with what the words hold; nothing wraps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass

Int64s = NDArray[np.int64]
Int64sOrObjects = NDArray[np.int64 | np.object_]

_WORD, _HALF = 1 << 64, 1 << 32
_LOW_HALF = np.uint64(_HALF - 1)
_SAFE = 1 << 62  # in 64 bits there is room for one more factor of two
_WIDE = 1 << 126  # and in two words as well
_TOP = (1 << 63) - 1
_SHORT = 16  # numbers that Python compares in less time than numpy takes to begin


@dataclass(frozen=True, slots=True, eq=False)
class WideColumn:
    """Integers of 128 bits in two's complement, as a database adds them up: high * 2^64 + low.

    >>> objects(WideColumn.of([-1, 1 << 100])).tolist()
    [-1, 1267650600228229401496703205376]
    """

    high: Int64s
    low: NDArray[np.uint64]

    @classmethod
    def of(cls, values: Sequence[int]) -> WideColumn:
        """Returns integers of at most 127 bits as two words."""
        high = np.fromiter((value >> 64 for value in values), dtype=np.int64, count=len(values))
        low = np.fromiter((value & (_WORD - 1) for value in values), dtype=np.uint64, count=len(values))
        return cls(high, low)

    @classmethod
    def from_int64(cls, values: Int64s) -> WideColumn:
        """Returns numbers of 64 bits as two words."""
        return cls(values >> 63, values.view(np.uint64))

    def __len__(self) -> int:
        return len(self.high)

    def __add__(self, other: WideColumn) -> WideColumn:
        low = self.low + other.low  # modulo 2^64: what is carried is added to the other word
        return WideColumn(self.high + other.high + (low < self.low), low)

    def __mul__(self, factor: int) -> WideColumn:
        """Multiplies with a factor below 2^63, modulo 2^128: a product of 127 bits is exact."""
        carried, low = _product(self.low, abs(factor))
        high = (self.high.view(np.uint64) * np.uint64(abs(factor)) + carried).view(np.int64)
        return WideColumn(high, low) if factor >= 0 else -WideColumn(high, low)

    def __neg__(self) -> WideColumn:
        low = ~self.low + np.uint64(1)
        return WideColumn(~self.high + (low == 0), low)

    def __rshift__(self, bits: int) -> WideColumn:
        """Divides by 2^bits and rounds down; of 1 to 63 bits."""
        down, up = np.uint64(bits), np.uint64(64 - bits)
        return WideColumn(self.high >> bits, (self.low >> down) | (self.high.view(np.uint64) << up))

    def __getitem__(self, places: Any) -> WideColumn:
        return WideColumn(self.high[places], self.low[places])

    @property
    def largest(self) -> int:
        """Returns a bound of all absolute values, at most 2^64 too large."""
        return (max(-int(self.high.min()), int(self.high.max())) + 1) << 64 if len(self) else 0


Column = Int64sOrObjects | WideColumn


def column_of(values: Iterable[int]) -> Column:
    """Returns integers as the smallest column that holds them.

    >>> column_of([1, 2])
    array([1, 2])
    """
    found = list(values)
    least, most = (min(found), max(found)) if found else (0, 0)
    if least >= -_TOP and most <= _TOP:
        return np.array(found, dtype=np.int64)
    if least >= -_WIDE and most <= _WIDE:
        return WideColumn.of(found)
    return _objects_of(found)


def narrow_column(column: Column) -> Column:
    """Returns the same integers in 64 bits, if they fit."""
    if not isinstance(column, WideColumn):
        return column
    small = column.low.view(np.int64)
    return small if bool(np.array_equal(small >> 63, column.high)) else column


def objects(column: Column) -> NDArray[np.object_]:
    """Returns the same as Python's integers."""
    if not isinstance(column, WideColumn):
        return column.astype(object)
    return np.asarray(column.high.astype(object) * _WORD + column.low.astype(object), dtype=object)


def in_words_or_objects(column: Column) -> Int64sOrObjects:
    """Returns the same as an array: of 64 bits if all fit, else of Python's integers."""
    small = narrow_column(column)
    return objects(small) if isinstance(small, WideColumn) else small


def array_of(values: Iterable[int]) -> Int64sOrObjects:
    """Returns integers as an array: of 64 bits if all fit, else of Python's integers.

    >>> array_of([1, 2])
    array([1, 2])
    """
    return in_words_or_objects(column_of(values))


def largest(column: Column) -> int:
    """Returns a bound of all absolute values; that of two words is at most 2^64 too large."""
    if isinstance(column, WideColumn):
        return column.largest
    if len(column) <= _SHORT:
        return max(map(abs, column.tolist()), default=0)
    return max(-int(column.min()), int(column.max()))


def combine_columns(columns: Sequence[Column], weights: Sequence[int], length: int) -> Column:
    """Returns the sum of weight times column.

    >>> combine_columns([np.array([3, 4]), np.array([1, 2])], [1, -2], 2)
    array([1, 0])
    """
    pairs = [(narrow_column(column), weight) for column, weight in zip(columns, weights, strict=True) if weight]
    if not pairs:
        return np.zeros(length, dtype=np.int64)
    if len(pairs) == 1 and pairs[0][1] == 1:
        return pairs[0][0]
    most = sum(abs(weight) * largest(column) for column, weight in pairs)
    if not any(_is_of_objects(column) for column, _ in pairs) and all(abs(w) <= _SAFE for _, w in pairs):
        if most <= _SAFE and not any(isinstance(column, WideColumn) for column, _ in pairs):
            return _sum([column if weight == 1 else column * weight for column, weight in pairs])
        if most <= _WIDE:
            return narrow_column(_sum([_wide(column) * weight for column, weight in pairs]))
    return _sum([objects(column) * weight for column, weight in pairs])


def add_columns(one: Column, other: Column) -> Int64sOrObjects:
    """Returns the sums of two columns as an array: of 64 bits if all fit, else of Python's integers.

    >>> add_columns(np.array([3, 4]), np.array([1, 2]))
    array([4, 6])
    """
    return in_words_or_objects(combine_columns((one, other), (1, 1), len(one)))


def round_column(column: Column, bits: int) -> Int64sOrObjects:
    """Returns the column divided by 2^bits, rounded half up.

    >>> round_column(np.array([5, 6, -5, -6]), 2)
    array([ 1,  2, -1, -1])
    """
    if bits == 0:
        return in_words_or_objects(column)
    half, small = 1 << bits >> 1, narrow_column(column)
    if isinstance(small, WideColumn):
        if bits < 64 and small.largest + half <= _WIDE:
            return in_words_or_objects((small + WideColumn.from_int64(np.array([half], dtype=np.int64))) >> bits)
        small = objects(small)
    moved: Any = small.astype(object) if bits > 62 or largest(small) + half > _TOP else small
    found: Int64sOrObjects = (moved + half) >> bits
    return found


def added_up(column: Column) -> int:
    """Returns the sum of all integers.

    >>> added_up(np.array([1 << 62, 1 << 62]))
    9223372036854775808
    """
    if isinstance(column, WideColumn):
        return (added_up(column.high) << 64) + _sum_of_words(column.low)
    if column.dtype == object:
        return sum(column.tolist())
    if len(column) * largest(column) <= _SAFE:
        return int(column.sum())
    words = column.astype(np.int64)
    return (int((words >> 32).sum()) << 32) + int((words & np.int64(_HALF - 1)).sum())


def scatter_column(column: Column, places: NDArray[np.intp], length: int) -> Column:
    """Returns a column of zeros with these integers at their places."""
    if isinstance(column, WideColumn):
        high, low = (scatter_column(word, places, length) for word in (column.high, column.low.view(np.int64)))
        return WideColumn(np.asarray(high), np.asarray(low).view(np.uint64))
    made: Any = np.zeros_like(column, shape=length)
    made[places] = column
    return made  # type: ignore[no-any-return]


def concatenate_columns(columns: Sequence[Column]) -> Column:
    """Returns columns one after the other."""
    if any(map(_is_of_objects, columns)):
        return np.concatenate([objects(column) for column in columns])
    wide = [_wide(column) for column in columns]
    if not wide:
        return np.zeros(0, dtype=np.int64)
    high, low = [column.high for column in wide], [column.low for column in wide]
    return narrow_column(WideColumn(np.concatenate(high), np.concatenate(low)))


def _is_of_objects(column: Column) -> bool:
    return not isinstance(column, WideColumn) and column.dtype == object


def _sum(columns: Sequence[Any]) -> Column:
    found: Column = sum(columns[1:], start=columns[0])
    return found


def _wide(column: Column) -> WideColumn:
    if isinstance(column, WideColumn):
        return column
    return WideColumn.from_int64(np.ascontiguousarray(column, dtype=np.int64))


def _objects_of(values: Sequence[int]) -> NDArray[np.object_]:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _sum_of_words(words: NDArray[np.uint64]) -> int:
    return (int((words >> np.uint64(32)).sum()) << 32) + int((words & _LOW_HALF).sum())


def _product(words: NDArray[np.uint64], factor: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns the two words of a product, by halves of 32 bits, whose products fit into one word."""
    top, bottom = np.uint64(factor >> 32), np.uint64(factor & (_HALF - 1))
    upper, lower, shift = words >> np.uint64(32), words & _LOW_HALF, np.uint64(32)
    first, second, third = lower * bottom, upper * bottom, lower * top
    middle = (first >> shift) + (second & _LOW_HALF) + (third & _LOW_HALF)
    high = upper * top + (second >> shift) + (third >> shift) + (middle >> shift)
    return high, (middle << shift) | (first & _LOW_HALF)
