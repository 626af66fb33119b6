"""Public domains of single columns: keys that are listed, and bins of numbers.

A column domain turns each value into a code, 0, 1, ... It does so for any value whatever, by a rule that looks at this
one value only: a value that is missing, of another type or not among those that were declared has the last code, or,
where a column was declared without missing values, the first. An error would reveal that the value occurs.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.domain.bin_pieces import BinPieces

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Key = str | bool | int | float | dt.date

MOST_VALUES = 1 << 16
"""The largest number of codes of one column: a marginal of it is measured whole."""

_KEYS = "Pass the public values of the column, e.g. ['F', 'M']; they are never read from the data."
_WITHIN = ("uniform", "histogram")
_EDGES = "Pass e.g. Bins([0, 10, 20, 50]) or range(0, 100, 5); edges are never read from the data."


class ColumnDomain(ABC):
    """The public values of one column, each with a code from 0; "missing or anything else" is the last one.

    Formal guarantee: the code of a value is a function of that value and of the declaration alone, and there is one for
    every value.
    """

    __slots__ = ()

    missing: bool

    def _declare(self, *, missing: bool, **fields: object) -> None:
        """Sets its fields, while it is being built."""
        assign(self, **fields, missing=check.instance(bool, missing=missing))

    @property
    @abstractmethod
    def labels(self) -> tuple[Any, ...]:
        """Returns the value of each code, but for the code of missing values."""

    @abstractmethod
    def places(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the place of each value among the labels, -1 for none."""

    @abstractmethod
    def decode_places(self, places: Codes, uniforms: Floats) -> list[Any]:
        """Returns a value for each place; numbers in (0, 1) choose where a place has several values."""

    @abstractmethod
    def members(self, values: Any) -> list[int]:
        """Returns the places of declared values; None is the one of missing values.

        Raises:
            InvalidParameter: if a value was not declared.
        """

    @property
    @abstractmethod
    def detail(self) -> str:
        """Returns how a value is made of a code, in words."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Returns the declaration as plain data for JSON."""

    @property
    def size(self) -> int:
        """Returns the number of codes."""
        return len(self.labels) + self.missing

    @property
    def fine_size(self) -> int:
        """Returns the number of fine codes."""
        return self.size

    @property
    def code_of_fine(self) -> Codes:
        """Returns the code of each fine code."""
        return np.arange(self.size)

    def fine_codes(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the fine code of each value: of what is still to be measured of a column besides its codes."""
        return self.codes(values)

    def codes(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the code of each value."""
        places = self.places(values)
        return np.where(places < 0, len(self.labels) if self.missing else 0, places).astype(np.int64)

    def values(self, codes: Codes, uniforms: Floats) -> list[Any]:
        """Returns a value for each code, None for missing ones."""
        absent = codes >= len(self.labels)
        found = self.decode_places(np.where(absent, 0, codes), uniforms)
        return [None if gone else value for gone, value in zip(absent.tolist(), found, strict=True)]

    def _place_of_missing(self) -> int:
        if not self.missing:
            raise InvalidParameter("forbidden", None, "to be a value of the column", "It has no missing values.")
        return len(self.labels)


@dataclass(frozen=True, slots=True, init=False)
class Keys(ColumnDomain):
    """Values that are listed: texts, numbers, truth values or days; a moment counts as its day.

    Args:
        keys: the values, each once, all of one type.
        missing: whether there is a code for missing values and all that are not listed; if not, these count as the
            first key.

    Raises:
        InvalidParameter: if there are none or too many, one repeats, is missing, or is of another type.

    >>> sex = Keys(["F", "M"])
    >>> sex.codes(["M", None, "F", "?"]).tolist(), sex.size
    ([1, 2, 0, 2], 3)
    >>> Keys(["F", "F"])
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected keys=['F', 'F'] to name each value once. Pass the public values of the \
column, e.g. ['F', 'M']; they are never read from the data.
    """

    keys: tuple[Key, ...]
    missing: bool

    def __init__(self, keys: Iterable[Any], *, missing: bool = True) -> None:
        if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
            raise InvalidParameter("keys", keys, "to be a list of values", _KEYS)
        found = tuple(one.item() if isinstance(one, np.generic) else one for one in keys)
        if not 1 <= len(found) <= MOST_VALUES:
            raise InvalidParameter("keys", f"{len(found)} values", f"to be 1 to {MOST_VALUES:,}", _KEYS)
        kinds = {_kind(key) for key in found}
        if None in kinds or len(kinds) > 1:
            told = "to be texts, numbers, booleans or dates, all of one type"
            raise InvalidParameter("keys", list(found), told, _KEYS)
        if len(set(found)) < len(found):
            raise InvalidParameter("keys", list(found), "to name each value once", _KEYS)
        self._declare(keys=found, missing=missing)

    @property
    def labels(self) -> tuple[Key, ...]:
        """Returns the keys in their order."""
        return self.keys

    def places(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the place of each value among the keys, -1 for none."""
        known: dict[Any, int] = {key: place for place, key in enumerate(self.keys)}
        if self._are_days:
            return np.fromiter((known.get(day_of(value), -1) for value in values), dtype=np.int64, count=len(values))
        given = values.tolist() if isinstance(values, np.ndarray) else values
        return np.fromiter((_place(known, value) for value in given), dtype=np.int64, count=len(given))

    def decode_places(self, places: Codes, uniforms: Floats) -> list[Any]:  # noqa: ARG002  # a key is one value
        """Returns the key of each place."""
        return [self.keys[place] for place in places.tolist()]

    def members(self, values: Any) -> list[int]:
        """Returns the places of some keys; None is the one of missing values."""
        known = {key: place for place, key in enumerate(self.keys)}
        found = []
        for value in _list_values(values):
            if value is not None and _place(known, value) < 0:
                raise InvalidParameter("forbidden", value, f"to be among {list(self.keys)}")
            found.append(self._place_of_missing() if value is None else known[value])
        return found

    @property
    def detail(self) -> str:
        """Returns how a value is made of a code."""
        return "the declared value"

    @property
    def _are_days(self) -> bool:
        return isinstance(self.keys[0], dt.date)

    def as_dict(self) -> dict[str, Any]:
        """Returns the declaration as plain data."""
        keys = [key.isoformat() if isinstance(key, dt.date) else key for key in self.keys]
        return {"kind": "keys", "keys": keys, "days": self._are_days, "missing": self.missing}


def _kind(key: Any) -> str | None:
    if isinstance(key, bool):
        return "truth value"
    if isinstance(key, str):
        return "text"
    if isinstance(key, int) or (isinstance(key, float) and math.isfinite(key)):
        return "number"
    return "day" if isinstance(key, dt.date) and not isinstance(key, dt.datetime) else None


def _place(known: dict[Any, int], value: Any) -> int:
    try:
        return known.get(value, -1)
    except Exception:  # noqa: BLE001 - a value that cannot be compared is no key, and no error either
        return -1


def _list_values(values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidParameter("forbidden", values, "to be a list of values", "Pass e.g. {'status': ['married']}.")
    return list(values)


def day_of(value: Any) -> dt.date | None:
    """Returns the day of a value, or None; no value is an error.

    >>> day_of(np.datetime64("2024-02-29T12:30")), day_of("2024-02-30")
    (datetime.date(2024, 2, 29), None)
    """
    try:
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[D]").item()
        elif isinstance(value, str):
            value = dt.date.fromisoformat(value[:10])
        if isinstance(value, dt.datetime):
            value = dt.date(value.year, value.month, value.day)
        return value if isinstance(value, dt.date) else None
    except Exception:  # noqa: BLE001 - what is no day is missing, and no error
        return None


@dataclass(frozen=True, slots=True, init=False)
class Bins(ColumnDomain):
    """Bins of numbers between declared edges, each with its lower edge and without its upper one.

    A number below the first edge, or not below the last one, counts in the first or the last bin. What is no number is
    missing. A number that is drawn from a bin gets its place in it back: evenly, or by a private histogram of the bin's
    pieces, for which a part of the budget is paid.

    Args:
        edges: ascending numbers, at least two; of a `range` its start, its steps and its stop.
        missing: whether there is a code for missing values; if not, these count in the first bin.
        whole: whether whole numbers are drawn; None means whole if all edges are.
        within: "uniform", or "histogram": a generator then measures how many rows are in each of 8 pieces of every bin.

    Raises:
        InvalidParameter: if edges are too few or too many, not numbers, or not ascending.

    >>> age = Bins(range(0, 100, 5))
    >>> age.codes([0, 4.9, 37, 250, None, -3]).tolist(), age.size
    ([0, 0, 7, 19, 20, 0], 21)
    >>> Bins([0, 10, 10])
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected edges=[0, 10, 10] to be ascending. Pass e.g. Bins([0, 10, 20, 50]) or \
range(0, 100, 5); edges are never read from the data.
    """

    edges: tuple[float, ...]
    missing: bool
    whole: bool
    within: str
    shares: tuple[float, ...] | None

    def __init__(
        self,
        edges: range | Iterable[Any],
        *,
        missing: bool = True,
        whole: bool | None = None,
        within: str = "uniform",
    ) -> None:
        found = _edges(edges)
        if within not in _WITHIN:
            raise InvalidParameter("within", within, "to be 'uniform' or 'histogram'")
        if any(low >= high for low, high in pairwise(found)):
            raise InvalidParameter("edges", list(found), "to be ascending", _EDGES)
        fit = all(float(edge).is_integer() and abs(edge) < 2**53 for edge in found)
        if whole is True and not fit:
            raise InvalidParameter("edges", list(found), "to be whole numbers if whole=True", _EDGES)
        integral = fit and all(isinstance(edge, int) for edge in found)
        floats = tuple(float(edge) for edge in found)
        counts = integral if whole is None else check.instance(bool, whole=whole)
        self._declare(edges=floats, missing=missing, whole=counts, within=within, shares=None)

    def with_shares(self, shares: Iterable[float]) -> Bins:
        """Returns the same bins with the released shares of their pieces.

        Raises:
            InvalidParameter: if there is not one for each piece, or those of a bin are no shares.
        """
        found, bins = tuple(float(share) for share in shares), self.pieces.bins
        right = len(found) == bins.size and all(0 <= share <= 1 for share in found)
        if not right or not np.allclose(np.bincount(bins, weights=found), 1.0):
            raise InvalidParameter("shares", "other numbers", "to be the shares of pieces of bins")
        made = Bins(self.edges, missing=self.missing, whole=self.whole, within="histogram")
        assign(made, shares=found)
        return made

    @property
    def pieces(self) -> BinPieces:
        """Returns the pieces of all bins."""
        return BinPieces.of(self.edges, whole=self.whole)

    @property
    def asks(self) -> bool:
        """Returns whether a histogram of the pieces is to be measured; not if every bin is one number."""
        return self.within == "histogram" and self.shares is None and self.pieces.divide

    @property
    def fine_size(self) -> int:
        """Returns the number of fine codes: the pieces, if they are to be measured."""
        return self.pieces.bins.size + self.missing if self.asks else self.size

    @property
    def code_of_fine(self) -> Codes:
        """Returns the code of each fine code."""
        if not self.asks:
            return np.arange(self.size)
        bins = self.pieces.bins
        return np.append(bins, bins[-1] + 1) if self.missing else bins

    def fine_codes(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the piece that each value is in, if pieces are to be measured."""
        if not self.asks:
            return self.codes(values)
        pieces = self.pieces
        places = pieces.places(_numbers(values))
        return np.where(places < 0, pieces.bins.size if self.missing else 0, places)

    @property
    def labels(self) -> tuple[tuple[float, float], ...]:
        """Returns the two edges of each bin."""
        return tuple(pairwise(self.edges))

    @property
    def size(self) -> int:
        """Returns the number of codes."""
        return len(self.edges) - 1 + self.missing

    def places(self, values: Sequence[Any] | NDArray[Any]) -> Codes:
        """Returns the bin of each number, -1 for what is none."""
        numbers = _numbers(values)
        found = np.searchsorted(np.array(self.edges), numbers, side="right") - 1
        found = found.clip(0, len(self.edges) - 2)
        return np.where(np.isnan(numbers), -1, found).astype(np.int64)

    def decode_places(self, places: Codes, uniforms: Floats) -> list[Any]:
        """Returns a number within each bin: the lower edge and more, less than the upper one."""
        edges = np.array(self.edges)
        if self.shares is not None:
            pieces = self.pieces
            edges = pieces.edges
            places, uniforms = pieces.split(places, uniforms, np.array(self.shares))
        low, high = edges[places], edges[places + 1]
        if self.whole:
            spread = np.floor(uniforms * (high - low))
            return [int(number) for number in np.minimum(low + spread, high - 1).tolist()]
        found = low + uniforms * (high - low)
        return [float(number) for number in np.maximum(low, np.minimum(found, np.nextafter(high, low))).tolist()]

    def members(self, values: Any) -> list[int]:
        """Returns the bins that make up a range of numbers, or a pair (low, high) without `high`.

        None is the place of missing values.
        """
        if values is None or (isinstance(values, list) and values == [None]):
            return [self._place_of_missing()]
        ends = (values.start, values.stop) if isinstance(values, range) else values
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise InvalidParameter("forbidden", values, "to be a range or a pair of edges", "Pass e.g. range(0, 15).")
        low, high = (float(end) if isinstance(end, Real) else end for end in ends)
        if low not in self.edges or high not in self.edges or low >= high:
            raise InvalidParameter("forbidden", values, f"to be made of whole bins of edges {list(self.edges)}")
        return list(range(self.edges.index(low), self.edges.index(high)))

    @property
    def detail(self) -> str:
        """Returns how a value is made of a code."""
        even = self.within == "uniform" or not self.pieces.divide
        how = "spread evenly within its bin" if even else "placed within its bin by a private histogram"
        return f"{how}, {'whole' if self.whole else 'real'} numbers"

    def as_dict(self) -> dict[str, Any]:
        """Returns the declaration as plain data."""
        found = {"kind": "bins", "edges": list(self.edges), "missing": self.missing, "whole": self.whole}
        if self.within == "uniform":
            return found
        return found | {"within": self.within, "shares": None if self.shares is None else list(self.shares)}


def _edges(edges: Any) -> tuple[Any, ...]:
    if isinstance(edges, range):
        if edges.step < 1 or not 1 <= len(edges) <= MOST_VALUES:
            raise InvalidParameter("edges", edges, f"to be an ascending range of 1 to {MOST_VALUES:,} steps", _EDGES)
        return (*edges, edges.stop)
    if isinstance(edges, str | bytes | Mapping) or not isinstance(edges, Iterable):
        raise InvalidParameter("edges", edges, "to be numbers", _EDGES)
    found = tuple(edge.item() if isinstance(edge, np.generic) else edge for edge in edges)
    if not 2 <= len(found) <= MOST_VALUES:
        raise InvalidParameter("edges", f"{len(found)} numbers", f"to be 2 to {MOST_VALUES:,}", _EDGES)
    if any(isinstance(edge, bool) or not isinstance(edge, Real) or not math.isfinite(edge) for edge in found):
        raise InvalidParameter("edges", list(found), "to be finite numbers", _EDGES)
    return found


def _numbers(values: Sequence[Any] | NDArray[Any]) -> Floats:
    """Returns each value as a float, NaN for what is no number; a number too large for floats is infinite."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        return values.astype(np.float64)
    given = values.tolist() if isinstance(values, np.ndarray) else values
    return np.fromiter((_number(value) for value in given), dtype=np.float64, count=len(given))


def _number(value: Any) -> float:
    if value is None or isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        if not isinstance(value, int | Fraction):
            return math.nan
        return math.inf if value > 0 else -math.inf
    except Exception:  # noqa: BLE001 - whatever is no number is missing, and no error
        return math.nan
