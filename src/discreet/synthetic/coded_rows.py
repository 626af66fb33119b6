"""Private rows as codes: exact counts of their cells, and the limit on what one unit contributes."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.plan.model import unit_ids
from discreet.synthetic.inference.factors import Attributes, Sizes

Integers = NDArray[np.int64]

MOST_CELLS = 10**7
"""Of one marginal: a public limit on memory."""

_UNIT = "Name a column of texts or whole numbers that says whose row it is."


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Holds rows of codes, at most as many of one unit as was declared: private, to be read by a log only.

    Args:
        sizes: how many codes each column has.
        codes: one line for each row, one column for each name in `sizes`.
    """

    sizes: Sizes
    codes: Integers

    def counts(self, attributes: Attributes) -> Integers:
        """Returns how many rows each cell of some columns has, exactly; of no columns, the number of rows.

        Raises:
            InvalidParameter: if a column is unknown or named twice, or there are more than 10^7 cells.
        """
        shape = checked_shape(attributes, self.sizes)
        names = list(self.sizes)
        place = np.zeros(len(self.codes), dtype=np.int64)
        for name, size in zip(attributes, shape, strict=True):
            place = place * size + self.codes[:, names.index(name)]
        return np.bincount(place, minlength=math.prod(shape)).astype(np.int64).reshape(shape)

    def recode_columns(self, places: Mapping[str, Integers], sizes: Sizes) -> CodedRows:
        """Returns rows with the codes of some columns replaced by those that a public table says."""
        made = self.codes.copy()
        for column, name in enumerate(self.sizes):
            if name in places:
                made[:, column] = places[name][self.codes[:, column]]
        return CodedRows(sizes, made)


def checked_shape(attributes: Attributes, sizes: Sizes) -> tuple[int, ...]:
    """Returns the shape of the table of some columns, from public facts alone.

    Raises:
        InvalidParameter: if a column is unknown or named twice, or there are more than 10^7 cells.
    """
    if len(set(attributes)) < len(attributes) or any(name not in sizes for name in attributes):
        raise InvalidParameter("attributes", attributes, f"to be among {list(sizes)}, each once")
    shape = tuple(sizes[name] for name in attributes)
    if math.prod(shape) > MOST_CELLS:
        raise InvalidParameter("attributes", attributes, f"to have at most {MOST_CELLS:,} cells", "Use wider bins.")
    return shape


def rows_within_limit(units: Sequence[Any] | NDArray[Any], codes: Integers, rows_per_unit: int) -> Integers:
    """Returns the rows that are kept, so that no unit has more than its limit.

    Of a unit's n rows in the order of their codes the one in place i = 0, 1, ... is kept if n is within the limit k, or
    if (i k + r) mod n >= n - k, where r is a digest of the id. This holds for exactly k of them, evenly spaced. Rows
    of equal codes are interchangeable.

    Formal guarantee: what is kept of a unit is a function of that unit's id and rows alone, whatever their order: to
    take the unit away takes away at most k rows and changes no other. Texts count as `unit_ids.id_text` of them. An id
    that is missing, or no text, whole number, day or UUID, belongs to no unit, and its rows are dropped.

    Raises:
        InvalidParameter: if the column of ids has floats by its type.

    >>> codes = np.array([[5], [1], [3], [7]])
    >>> len(rows_within_limit(["ann", "ann", "ann", "bob"], codes, 2))
    3
    """
    return np.asarray(codes[places_within_limit(units, codes, rows_per_unit)])


def places_within_limit(units: Sequence[Any] | NDArray[Any], codes: Integers, rows_per_unit: int) -> Integers:
    """Returns the places of the rows that `rows_within_limit` keeps, in order."""
    owners, ranks = _owners(units, len(codes))
    return _select_rows(owners, ranks, codes, rows_per_unit)


def units_of_values(
    units: Sequence[Any] | NDArray[Any] | None, values: Integers, count: int, rows_per_unit: int
) -> Integers:
    """Returns how many units have each of the values below a count; one unit counts for no more than its limit.

    Formal guarantee: which of a unit's different values count is a function of that unit's id and values alone, by the
    rule of `rows_within_limit`. To take the unit away takes 1 from at most `rows_per_unit` numbers.

    Args:
        units: whose each value is; None if each is of a unit of its own.
        values: numbers of at least 0; those from `count` on do not count.
        count: how many there are.
        rows_per_unit: the limit.

    >>> units_of_values(["ann", "ann", "ann", "bob"], np.array([0, 0, 1, 0]), 2, 2)
    array([2, 1])
    """
    if units is None:
        return np.bincount(values[values < count], minlength=count).astype(np.int64)
    owners, ranks = _owners(units, len(values))
    pairs = np.unique(np.stack([owners, values], axis=1)[(owners >= 0) & (values < count)], axis=0)
    kept = _select_rows(pairs[:, 0], ranks, pairs[:, 1:], rows_per_unit)
    return np.bincount(pairs[kept, 1], minlength=count).astype(np.int64)


def _owners(units: Sequence[Any] | NDArray[Any], rows: int) -> tuple[Integers, Integers]:
    """Returns for each row the number of its unit, -1 without one, and for each unit a digest of its id."""
    if isinstance(units, np.ndarray) and units.dtype.kind == "f":
        raise InvalidParameter("unit", "a column of floats", "to be texts or whole numbers", _UNIT)
    given = units.tolist() if isinstance(units, np.ndarray) else units
    numbers: dict[str, int] = {}
    owners = np.full(rows, -1, dtype=np.int64)
    for row, value in enumerate(given):
        name = id_text(value)
        if name is not None:
            owners[row] = numbers.setdefault(name, len(numbers))
    return owners, np.array([_digest(name) for name in numbers], dtype=np.int64)


def _select_rows(owners: Integers, ranks: Integers, codes: Integers, rows_per_unit: int) -> Integers:
    """Returns the places of the rows that are kept, in order."""
    order = np.lexsort((*codes.T[::-1], owners))
    order = order[owners[order] >= 0]
    owned = owners[order]
    starts = np.flatnonzero(np.diff(owned, prepend=-1))
    lengths = np.diff(starts, append=owned.size)
    place = np.arange(owned.size) - np.repeat(starts, lengths)
    total = np.repeat(lengths, lengths)
    kept = (total <= rows_per_unit) | ((place * rows_per_unit + ranks[owned]) % total >= total - rows_per_unit)
    return np.asarray(np.sort(order[kept]), dtype=np.int64)


def id_text(value: Any) -> str | None:
    """Returns an id as it counts; None for one that belongs to no unit."""
    try:
        return _format_id(value)
    except Exception:  # noqa: BLE001 - an id that cannot be written, such as one of 5,000 digits, is no error
        return None


def _format_id(value: Any) -> str | None:
    if isinstance(value, str):
        text = unit_ids.id_text(value)
        return f"text {text}" if text else None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"number {int(value)}"
    known = isinstance(value, dt.date) or type(value).__name__ == "UUID"  # its module draws random ones as well
    if known and value == value:  # noqa: PLR0124  # a missing moment differs from itself
        return f"{type(value).__name__} {value}"
    return None


def _digest(name: str) -> int:
    """Returns a number below 2^31 that any machine computes; no privacy rests on it."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).digest()) >> 1
