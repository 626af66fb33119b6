"""Rows that are held as columns: a row is made when it is read, and is not kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np

T = TypeVar("T")


class ColumnarRows(Sequence[dict[str, T]], Generic[T]):
    """Rows, as a sequence of dictionaries, of columns of one length.

    Args:
        columns: by name; arrays hold numbers of 64 bits, which rows have as Python's.
        length: of each of them.

    >>> rows = ColumnarRows({"ward": ["A", "B"], "n": np.array([3, 5])}, 2)
    >>> rows[1], rows.take_places([1, 0])
    ({'ward': 'B', 'n': 5}, [{'ward': 'B', 'n': 5}, {'ward': 'A', 'n': 3}])
    >>> rows == [{"ward": "A", "n": 3}, {"ward": "B", "n": 5}]
    True
    """

    __slots__ = ("_length", "columns")
    __hash__ = None  # type: ignore[assignment] # columns may be lists

    def __init__(self, columns: Mapping[str, Sequence[T] | Any], length: int) -> None:
        self.columns, self._length = dict(columns), length

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, T]]) -> ColumnarRows[T]:
        """Returns rows of the same names as columns; those that are columns already are as they were."""
        if isinstance(rows, ColumnarRows):
            return rows
        return cls({name: [row[name] for row in rows] for name in (rows[0] if rows else ())}, len(rows))

    def take_places(self, places: Sequence[int]) -> ColumnarRows[T]:
        """Returns the rows at some places, in this order."""
        return ColumnarRows({name: _take_places(column, places) for name, column in self.columns.items()}, len(places))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[dict[str, T]]:
        if not self.columns:
            return iter([{} for _ in range(self._length)])
        names = tuple(self.columns)
        return (
            dict(zip(names, row, strict=True)) for row in zip(*map(list_values, self.columns.values()), strict=True)
        )

    @overload
    def __getitem__(self, index: int) -> dict[str, T]: ...
    @overload
    def __getitem__(self, index: slice) -> ColumnarRows[T]: ...

    def __getitem__(self, index: int | slice) -> dict[str, T] | ColumnarRows[T]:
        if isinstance(index, slice):
            length = len(range(*index.indices(self._length)))
            return ColumnarRows({name: column[index] for name, column in self.columns.items()}, length)
        place = range(self._length)[index]
        return {name: _item(column[place]) for name, column in self.columns.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(one == another for one, another in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return repr(list(self))


def list_values(column: Sequence[T] | Any) -> Sequence[T]:
    """Returns the values of a column, as Python has them."""
    values: Sequence[T] = column.tolist() if isinstance(column, np.ndarray) else column
    return values


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _take_places(column: Any, places: Sequence[int]) -> Any:
    if isinstance(column, np.ndarray):
        return column[np.asarray(places, dtype=np.intp)]
    return column.take_places(places) if hasattr(column, "take_places") else [column[place] for place in places]
