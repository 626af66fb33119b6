"""What a reading found, in columns: keys and exact integers of groups. Private; engines hand it over sealed.

Nothing here says which groups may be shown. `discreet.measurement.releases.exact_groups` has the type that travels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.integer_columns import Column, column_of, objects, scattered
from discreet.plan.model.identity import MANY, Same
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import Groups
from discreet.plan.model.types import Type

Key = tuple[Value, ...]
KeyColumn = NDArray[np.int64] | NDArray[np.object_]
"""Whole numbers of 64 bits where none is NULL, else Python's objects."""

Places = NDArray[np.intp]


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
    def numbers(self) -> list[tuple[int, ...]]:
        """Returns the statistics, or the cells and counts, of each group."""
        if self.cells is not None:
            return list(self.cells)
        if not self.statistics:
            return [()] * self.length
        return list(zip(*(objects(column).tolist() for column in self.statistics), strict=True))

    def taken(self, places: Places) -> GroupColumns:
        """Returns the groups at these places."""
        keys = tuple(column[places] for column in self.keys)
        cells = None if self.cells is None else [self.cells[place] for place in places.tolist()]
        return GroupColumns(len(places), keys, tuple(column[places] for column in self.statistics), cells)

    def with_statistics(self, statistics: Iterable[Column]) -> GroupColumns:
        """Returns the same groups with other statistics."""
        return replace(self, statistics=tuple(statistics), cells=None)

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


class PublicKeys:
    """Keys that are known to everybody, in their order, and where groups stand among them.

    >>> public = PublicKeys((("A",), ("B",)))
    >>> public.aligned(GroupColumns.of({("B",): (3,), ("C",): (1,)}, [Type.TEXT], 1)).groups
    {('A',): (0,), ('B',): (3,)}
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = tuple(keys)
        self._columns = tuple(_objects(column) for column in zip(*self.keys, strict=True))
        is_whole = len(self._columns) == 1 and set(map(type, self._columns[0])) == {int}
        self._whole = self._columns[0].astype(np.int64) if is_whole else None

    def aligned(self, groups: GroupColumns) -> GroupColumns:
        """Returns a group for each of these keys: zeros where there is none, and no group of another key."""
        places, length = self._places(groups), len(self.keys)
        known = places >= 0
        found = groups if bool(known.all()) else groups.taken(np.flatnonzero(known))
        columns = (scattered(column, places[known], length) for column in found.statistics)
        if self._first is not None:
            columns = (column[self._first] for column in columns)
        return GroupColumns(length, self._columns, tuple(columns))

    def _places(self, groups: GroupColumns) -> Places:
        """The first place of each group's key, -1 if it is none of them."""
        if groups.length == 0:
            return np.zeros(0, dtype=np.intp)
        if self._whole is not None and groups.keys[0].dtype == np.int64:
            order, whole = self._order, self._whole[self._order]
            near = np.minimum(np.searchsorted(whole, groups.keys[0]), len(whole) - 1)
            return np.where(whole[near] == groups.keys[0], order[near], -1)
        known = self._by_key
        found = (known.get(key, -1) for key in groups.key_tuples)
        return np.fromiter(found, dtype=np.intp, count=groups.length)

    @cached_property
    def _order(self) -> Places:
        return np.argsort(self._columns[0] if self._whole is None else self._whole, kind="stable")

    @cached_property
    def _by_key(self) -> dict[Key, int]:
        return {key: place for place, key in reversed(tuple(enumerate(self.keys)))}

    @cached_property
    def _first(self) -> Places | None:
        """The first place of each key, if some key is listed twice."""
        if self._whole is not None and len(np.unique(self._whole)) == len(self.keys):
            return None
        if len(self._by_key) == len(self.keys):
            return None
        return np.array([self._by_key[key] for key in self.keys], dtype=np.intp)


def public_keys(keys: tuple[Key, ...]) -> PublicKeys:
    """Returns keys that are known to everybody; many of them are indexed once for the same tuple."""
    return PublicKeys(keys) if len(keys) <= MANY else _many_keys(Same(keys))


@lru_cache(maxsize=4)  # each may be as long as the groups of a question
def _many_keys(keys: Same[tuple[Key, ...]]) -> PublicKeys:
    return PublicKeys(keys.value)
