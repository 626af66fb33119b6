"""Private tables of counts, from a whole table, from tables of sets of attributes, or counted from rows.

Whatever was given, all that is made of it are exact integers, and what is refused depends on types and shapes alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidValue
from discreet.mechanisms.strategy import whole_counts
from discreet.workload.product_domain import MOST_CELLS, Attributes, ProductDomain

Integers = NDArray[np.int64]

_MOST_COUNTED = 1 << 50
_FORMS = "Pass an integer array over the whole domain, {('a', 'b'): table, ...}, or columns of codes {'a': codes, ...}."


def maximal(sets: Iterable[Attributes]) -> list[Attributes]:
    """Returns the sets that are part of no other.

    >>> maximal([("a",), ("a", "b"), ("c",)])
    [('a', 'b'), ('c',)]
    """
    found: list[Attributes] = []
    for attributes in sorted(set(sets), key=len, reverse=True):
        if not any(set(attributes) <= set(larger) for larger in found):
            found.append(attributes)
    return found


class CountedTables:
    """The tables of maximal sets of attributes; smaller ones are sums of them."""

    __slots__ = ("_domain", "_tables")

    def __init__(self, counts: Any, sets: Iterable[Attributes], domain: ProductDomain) -> None:
        """Reads what was given.

        Raises:
            InvalidValue: if it has not the form, the type or the shape of counts over this domain.
        """
        self._domain = domain
        largest = maximal(sets)
        if isinstance(counts, Mapping) and any(isinstance(key, tuple) for key in counts):
            self._tables = _read_tables(counts, largest, domain)
        elif isinstance(counts, Mapping) or hasattr(counts, "columns"):
            self._tables = _count_rows(counts, largest, domain)
        else:
            self._tables = _sum_whole_counts(counts, largest, domain)

    def table(self, attributes: Attributes) -> Integers:
        """Returns the counts by a set of attributes that is part of one of the sets."""
        within = next(found for found in self._tables if set(attributes) <= set(found))
        return _margin(self._tables[within], within, attributes)


def _margin(table: Integers, names: Sequence[str], kept: Attributes) -> Integers:
    others = tuple(axis for axis, name in enumerate(names) if name not in kept)
    return np.asarray(np.sum(table, axis=others))


def _sum_whole_counts(counts: Any, sets: list[Attributes], domain: ProductDomain) -> dict[Attributes, Integers]:
    names = tuple(domain.sizes)
    if domain.cells(names) > MOST_CELLS:
        raise InvalidValue("to be tables or columns", f"The whole domain has too many cells. {_FORMS}")
    whole = _addable(whole_counts(counts, domain.shape(names)))
    return {attributes: _margin(whole, names, attributes) for attributes in sets}


def _read_tables(
    counts: Mapping[Any, Any], sets: list[Attributes], domain: ProductDomain
) -> dict[Attributes, Integers]:
    found: dict[Attributes, Integers] = {}
    for names, table in counts.items():
        attributes = domain.order_attributes(names)
        axes = [list(names).index(name) for name in attributes]
        given = _addable(whole_counts(table, tuple(domain.sizes[name] for name in names)))
        found[attributes] = given.transpose(axes)
    missing = [attributes for attributes in sets if not any(set(attributes) <= set(table) for table in found)]
    if missing:
        raise InvalidValue(f"to have a table for {missing[0]}", "Every set that is asked for must be part of a table.")
    covers = {attributes: next(table for table in found if set(attributes) <= set(table)) for attributes in sets}
    return {attributes: _margin(found[table], table, attributes) for attributes, table in covers.items()}


def _addable(table: Integers) -> Integers:
    """Returns a table whose sums and differences stay in int64, and are exact as floats with noise.

    Counts are clipped to their part of 2^50, a public number: an error would reveal something of them, and clipping
    moves no count farther than one unit did.
    """
    most = _MOST_COUNTED // table.size
    return table.clip(-most, most)


def _count_rows(frame: Any, sets: list[Attributes], domain: ProductDomain) -> dict[Attributes, Integers]:
    """Counts rows; one with a value outside of the domain, in an attribute that is used, counts nowhere."""
    used = [name for name in domain.sizes if any(name in attributes for attributes in sets)]
    columns = {name: _codes(frame, name, domain) for name in used}
    if len({column.size for column in columns.values()}) > 1:
        raise InvalidValue("to be columns of one length", "Pass one code for each row.")
    if not used:
        raise InvalidValue("to be a table", "The number of rows is asked for alone: pass {(): count}.")
    inside = np.logical_and.reduce([column >= 0 for column in columns.values()])
    kept = columns if inside.all() else {name: column[inside] for name, column in columns.items()}
    return {attributes: _table(kept, attributes, domain) for attributes in sets}


def _table(columns: dict[str, Integers], attributes: Attributes, domain: ProductDomain) -> Integers:
    shape = domain.shape(attributes)
    place = columns[attributes[0]]
    for name in attributes[1:]:
        place = place * domain.sizes[name] + columns[name]
    return np.bincount(place, minlength=math.prod(shape)).astype(np.int64).reshape(shape)


def _codes(frame: Any, name: str, domain: ProductDomain) -> Integers:
    try:
        column = np.asarray(frame[name])
    except (KeyError, IndexError, TypeError, ValueError):
        raise InvalidValue(f"to have a column {name!r}", _FORMS) from None
    if column.ndim != 1:
        raise InvalidValue(f"to have one value for each row in {name!r}", _FORMS)
    if name in domain.labels:
        return _places(column, domain.labels[name])
    if column.dtype.kind not in "iu":
        raise InvalidValue(f"to have whole codes from 0 in {name!r}", "Or name the values in the domain.")
    size = domain.sizes[name]
    return np.where((column >= 0) & (column < size), column, -1).astype(np.int64)


def _places(column: NDArray[Any], labels: tuple[Any, ...]) -> Integers:
    """Returns the place of each value among the labels, or -1."""
    known = np.asarray(labels)
    if known.ndim == 1 and known.dtype.kind in "iuU" and column.dtype.kind == known.dtype.kind:
        order = np.argsort(known)
        found = order[np.searchsorted(known, column, sorter=order).clip(0, len(labels) - 1)]
        return np.where(known[found] == column, found, -1).astype(np.int64)
    places = {label: place for place, label in enumerate(labels)}
    return np.array([_place(places, value) for value in column.tolist()], dtype=np.int64)


def _place(places: dict[Any, int], value: Any) -> int:
    try:
        return places.get(value, -1)
    except TypeError:  # what has no hash is no label
        return -1
