"""What a reading found, in columns: keys and exact integers of groups. Private; engines hand it over sealed.

Nothing here says which groups may be shown. `discreet.measurement.releases.exact_groups` has the type that travels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact.integer_columns import Column, column_of, objects, scatter_column
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import Groups
from discreet.plan.model.schema import MANY, IdentityKey
from discreet.plan.model.types import Type

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

    @property
    def lists(self) -> dict[str, Sequence[T]]:
        """Returns the columns with values as Python has them."""
        return {name: list_values(column) for name, column in self.columns.items()}

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


Key = tuple[Value, ...]
KeyColumn = NDArray[np.int64 | np.object_]
"""Whole numbers of 64 bits where none is NULL, else Python's objects."""

Places = NDArray[np.intp]

_SPREAD = 4  # how many numbers there may be for each key in a table of their places


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupColumns:
    """Keys of groups, no two alike, with either statistics or cells of each group (see `readings.Groups`).

    Args:
        length: how many groups there are.
        keys: a column for each key of the reading.
        statistics: a column for each statistic of the reading.
        cells: of each group, for a split or a spread: cells in ascending order, then as many counts.
    """

    length: int
    keys: tuple[KeyColumn, ...]
    statistics: tuple[Column, ...] = ()
    cells: Sequence[tuple[int, ...]] | None = None

    @classmethod
    def of(cls, groups: Groups, kinds: Sequence[Type], width: int | None) -> GroupColumns:
        """Returns groups that are written one by one, in their order.

        Args:
            groups: what was found.
            kinds: the types of the keys.
            width: the number of statistics; None if groups have cells.
        """
        keys = tuple(map(key_column, zip(*groups, strict=True), kinds)) if groups else _no_keys(kinds)
        if width is None:
            return cls(len(groups), keys, cells=tuple(groups.values()))
        statistics = zip(*groups.values(), strict=True) if groups else [()] * width
        return cls(len(groups), keys, tuple(map(column_of, statistics)))

    @property
    def groups(self) -> Groups:
        """Returns the groups one by one."""
        return dict(zip(self.key_tuples, self.numbers, strict=True))

    @property
    def key_tuples(self) -> list[Key]:
        """Returns the key of each group."""
        if not self.keys:
            return [()] * self.length
        return list(zip(*(column.tolist() for column in self.keys), strict=True))

    @property
    def key_rows(self) -> KeyRows:
        """Returns the keys as they are released, once they may be."""
        return KeyRows.of_columns([column.tolist() for column in self.keys], self.length)

    @property
    def numbers(self) -> list[tuple[int, ...]]:
        """Returns the statistics, or the cells and counts, of each group."""
        if self.cells is not None:
            return list(self.cells)
        if not self.statistics:
            return [()] * self.length
        return list(zip(*(objects(column).tolist() for column in self.statistics), strict=True))

    def take_places(self, places: Places) -> GroupColumns:
        """Returns the groups at these places."""
        keys = tuple(column[places] for column in self.keys)
        cells = None if self.cells is None else [self.cells[place] for place in places.tolist()]
        return GroupColumns(len(places), keys, tuple(column[places] for column in self.statistics), cells)

    def with_statistics(self, statistics: Iterable[Column]) -> GroupColumns:
        """Returns the same groups with other statistics."""
        return GroupColumns(self.length, self.keys, tuple(statistics))

    @property
    def order(self) -> Places:
        """Returns the places of the groups in the order of `group_keys.in_order`."""
        if all(column.dtype == np.int64 for column in self.keys):
            return np.lexsort(self.keys[::-1]) if self.keys else np.arange(self.length)
        columns = [column.tolist() for column in self.keys]
        if not any(None in column for column in columns):
            keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
            return np.array(sorted(range(self.length), key=keys.__getitem__), dtype=np.intp)
        rows = [[(value is None, value) for value in key] for key in zip(*columns, strict=True)]
        return np.array(sorted(range(self.length), key=rows.__getitem__), dtype=np.intp)


def key_column(values: Sequence[Any], kind: Type) -> KeyColumn:
    """Returns a column of keys from values of one type, NULL being None."""
    if kind is Type.INT and None not in values:
        return np.array(values, dtype=np.int64)
    return _objects(values)


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _no_keys(kinds: Sequence[Type]) -> tuple[KeyColumn, ...]:
    return tuple(key_column((), kind) for kind in kinds)


_EVERYTHING: tuple[Key, ...] = ((),)
"""The keys of a question without GROUP BY: one group, of everything."""


def _zero(column: Column) -> Column:
    return scatter_column(column[:0], np.zeros(0, dtype=np.intp), 1)


class PublicKeys:
    """Public keys, in their order, and the place of groups among them.

    >>> public = PublicKeys((("A",), ("B",)))
    >>> public.align_groups(GroupColumns.of({("B",): (3,), ("C",): (1,)}, [Type.TEXT], 1)).groups
    {('A',): (0,), ('B',): (3,)}
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = tuple(keys)
        alone = [key[0] for key in self.keys] if self.keys and len(self.keys[0]) == 1 else []
        self._whole = np.array(alone, dtype=np.int64) if set(map(type, alone)) == {int} else None
        found = (alone,) if alone else zip(*self.keys, strict=True)
        self.columns = (self._whole,) if self._whole is not None else tuple(map(_objects, found))

    def align_groups(self, groups: GroupColumns) -> GroupColumns:
        """Returns a group for each of these keys: zeros where there is none, and no group of another key."""
        if self.keys == _EVERYTHING:
            return GroupColumns(1, (), groups.statistics if groups.length else tuple(map(_zero, groups.statistics)))
        places, length = self._places(groups), len(self.keys)
        known = places >= 0
        found = groups if bool(known.all()) else groups.take_places(np.flatnonzero(known))
        columns = (scatter_column(column, places[known], length) for column in found.statistics)
        if self._first is not None:
            columns = (column[self._first] for column in columns)
        return GroupColumns(length, self.columns, tuple(columns))

    @cached_property
    def ends(self) -> list[tuple[int, int]] | None:
        """Returns the least and the largest of each key, if the keys are all whole numbers between them, else None.

        >>> PublicKeys([(2, 7), (3, 8), (2, 8), (3, 7)]).ends, PublicKeys([(2,), (4,)]).ends
        ([(2, 3), (7, 8)], None)
        """
        columns = [column.tolist() for column in self.columns]
        if not columns or any(set(map(type, column)) != {int} for column in columns):
            return None
        found = [(min(column), max(column)) for column in columns]
        different = len(self.keys) if self._first is None else len(self._by_key)
        return found if math.prod(most - least + 1 for least, most in found) == different else None

    def _places(self, groups: GroupColumns) -> Places:
        """Returns the first place of each group's key, -1 if it is none of them."""
        if groups.length == 0:
            return np.zeros(0, dtype=np.intp)
        if self._whole is not None and groups.keys[0].dtype == np.int64:
            return self._places_of_numbers(groups.keys[0])
        known = self._by_key
        found = (known.get(key, -1) for key in _tuples_or_values(groups))
        return np.fromiter(found, dtype=np.intp, count=groups.length)

    def _places_of_numbers(self, keys: KeyColumn) -> Places:
        """Returns places by a table where keys lie close together, else by search."""
        order, whole = self._sorted_numbers
        if self._table is not None:
            inside = (keys >= whole[0]) & (keys <= whole[-1])
            return np.where(inside, self._table[np.where(inside, keys, whole[0]) - whole[0]], -1)
        near = np.minimum(np.searchsorted(whole, keys), len(whole) - 1)
        return np.where(whole[near] == keys, order[near], -1)

    @cached_property
    def _sorted_numbers(self) -> tuple[Places, NDArray[np.int64]]:
        """Returns whole numbers in ascending order, and the place of each; of equal ones the first comes first."""
        whole = np.zeros(0, dtype=np.int64) if self._whole is None else self._whole
        order = np.argsort(whole, kind="stable")
        return order, whole[order]

    @cached_property
    def _table(self) -> Places | None:
        order, whole = self._sorted_numbers
        span = int(whole[-1]) - int(whole[0]) + 1
        if span > _SPREAD * len(whole):
            return None
        table = np.full(span, -1, dtype=np.intp)
        table[whole[::-1] - whole[0]] = order[::-1]  # of those that are equal the first one last
        return table

    @cached_property
    def _by_key(self) -> dict[Any, int]:
        """Returns places by key, or by value where keys have one alone."""
        keys = self.columns[0].tolist() if len(self.columns) == 1 else self.keys
        return {key: place for place, key in reversed(tuple(enumerate(keys)))}

    @cached_property
    def _first(self) -> Places | None:
        """Returns the first place of each key, if some key is listed twice."""
        if self._whole is not None and bool(np.all(np.diff(self._sorted_numbers[1]) > 0)):
            return None
        if len(self._by_key) == len(self.keys):
            return None
        keys = self.columns[0].tolist() if len(self.columns) == 1 else self.keys
        return np.array([self._by_key[key] for key in keys], dtype=np.intp)


class KeyRows:
    """Keys of groups that may be known: as columns, as tuples, or as both, each made of the other when it is used.

    >>> rows = KeyRows.of_columns([["A", "B"]], 2)
    >>> rows.tuples, KeyRows.of(rows.tuples).columns
    ((('A',), ('B',)), [['A', 'B']])
    """

    def __init__(self, length: int) -> None:
        self.length = length

    @classmethod
    def of(cls, keys: Sequence[Key] | KeyRows) -> KeyRows:
        """Returns keys that are tuples; what is of this kind already as it is."""
        if isinstance(keys, KeyRows):
            return keys
        made = cls(len(keys))
        made.tuples = tuple(keys)
        return made

    @classmethod
    def of_columns(cls, columns: Sequence[Sequence[Value]], length: int) -> KeyRows:
        """Returns keys that are columns."""
        made = cls(length)
        made.columns = list(columns)
        return made

    def with_key(self, key: Key) -> KeyRows:
        """Returns the keys and one more."""
        columns = [[*column, value] for column, value in zip(self.columns, key, strict=True)]
        return KeyRows.of_columns(columns, self.length + 1)

    @cached_property
    def tuples(self) -> tuple[Key, ...]:
        """Returns the keys one by one."""
        return tuple(zip(*self.columns, strict=True)) if self.columns else ((),) * self.length

    @cached_property
    def columns(self) -> list[Sequence[Value]]:
        """Returns the values of each key; nothing where there is no group."""
        if self.length > MANY:
            return [column.tolist() for column in public_keys(self.tuples).columns]
        return [list(column) for column in zip(*self.tuples, strict=True)]


def _tuples_or_values(groups: GroupColumns) -> Sequence[Any]:
    return groups.keys[0].tolist() if len(groups.keys) == 1 else groups.key_tuples


def public_keys(keys: tuple[Key, ...]) -> PublicKeys:
    """Returns public keys; many of them are indexed once for the same tuple."""
    return PublicKeys(keys) if len(keys) <= MANY else _many_keys(IdentityKey(keys))


@lru_cache(maxsize=4)  # each may be as long as the groups of a question
def _many_keys(keys: IdentityKey[tuple[Key, ...]]) -> PublicKeys:
    return PublicKeys(keys.value)
