"""Sealed columns: what engines hand over, and what travels until noise is added.

*Formal guarantee.* A value of these types shows nothing of what it holds: not as a text, a length, a truth value or a
number, not by comparison or iteration, not as an array and not as a pickle. Its operations take public arguments and
return sealed values. What it holds is read by `open_exact` alone, whose importers are listed by a contract.

In-process callers have the data anyway: this keeps honest code from putting a reading where it does not belong, such as
a note, a log line, a stage of progress or the text of an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn, final

import numpy as np

from discreet.exact.integer_columns import Int64sOrObjects, combine_columns, in_words_or_objects, largest, round_column
from discreet.plan.model.group_columns import GroupColumns, Key, public_keys

_PRIVATE = "Exact groups are private: only a Releaser releases anything from them."


class SealedValue:
    """Refuses what Python does with any value; without `__len__`, `__iter__` and the like it refuses the rest."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "<exact groups>"  # tracebacks and debuggers print locals

    def __str__(self) -> NoReturn:
        raise TypeError(_PRIVATE)

    def __format__(self, form: str) -> NoReturn:
        raise TypeError(_PRIVATE)

    def __bool__(self) -> NoReturn:
        raise TypeError(_PRIVATE)

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError(_PRIVATE)

    def __array__(self, *_: Any) -> NoReturn:
        raise TypeError(_PRIVATE)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(_PRIVATE)


@final
class ExactGroups(SealedValue):
    """Keys and exact integers of groups. Private.

    >>> from discreet.plan.model.types import Type
    >>> groups = ExactGroups(GroupColumns.of({("A",): (3,)}, [Type.TEXT], 1))
    >>> groups, groups.times(2)
    (<exact groups>, <exact groups>)
    >>> len(groups)
    Traceback (most recent call last):
    TypeError: object of type 'ExactGroups' has no len()
    """

    __slots__ = ("__content",)

    def __init__(self, content: GroupColumns) -> None:
        self.__content = content

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("A sealed class cannot have subclasses.")

    @classmethod
    def nothing(cls) -> ExactGroups:
        """Returns no group, for a question that reads no statistics."""
        return cls(GroupColumns(0, ()))

    def align_to(self, keys: tuple[Key, ...]) -> ExactGroups:
        """Returns a group for each public key, with zeros where nothing was read."""
        return ExactGroups(public_keys(keys).align_groups(self.__content))

    def in_order(self) -> ExactGroups:
        """Returns the groups in the order of their keys."""
        return ExactGroups(self.__content.take_places(self.__content.order))

    def slice_statistics(self, start: int, stop: int) -> ExactGroups:
        """Returns the statistics from one place to before another."""
        return ExactGroups(self.__content.with_statistics(self.__content.statistics[start:stop]))

    def round_statistics(self, grains: Sequence[int]) -> ExactGroups:
        """Returns the statistics divided by powers of two, each rounded half up; as they are without any."""
        if not any(grains):
            return self
        columns = self.__content.statistics
        return ExactGroups(self.__content.with_statistics(map(round_column, columns, grains)))

    def times(self, factor: int) -> ExactGroups:
        """Returns what so many copies of all rows would have, each of another person."""
        content = self.__content
        if content.cells is None:
            columns = (combine_columns([column], [factor], content.length) for column in content.statistics)
            return ExactGroups(content.with_statistics(columns))
        return ExactGroups(GroupColumns(content.length, content.keys, cells=[_times(c, factor) for c in content.cells]))

    def sum_over_axes(self, sizes: Sequence[int], axes: Sequence[int]) -> ExactGroups:
        """Returns the sums over some axes of groups that fill a table of these sizes, in the order of its cells."""
        sums = [_sum_axes(in_words_or_objects(column), sizes, axes) for column in self.__content.statistics]
        length = math.prod(size for axis, size in enumerate(sizes) if axis not in axes)
        return ExactGroups(GroupColumns(length, (), tuple(sums)))


def _sum_axes(column: Int64sOrObjects, sizes: Sequence[int], axes: Sequence[int]) -> Int64sOrObjects:
    if column.dtype != object and len(column) * largest(column) > np.iinfo(np.int64).max:
        column = column.astype(object)
    return np.asarray(column.reshape(sizes).sum(axis=tuple(axes)) if axes else column).reshape(-1)


def _times(numbers: tuple[int, ...], factor: int) -> tuple[int, ...]:
    """Returns the cells as they are, and their counts multiplied."""
    half = len(numbers) // 2
    return (*numbers[:half], *(factor * number for number in numbers[half:]))
