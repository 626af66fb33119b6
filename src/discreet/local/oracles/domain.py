"""The public list of values that a survey asks about, and the number of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue

MOST_VALUES = 1 << 22
"""Values of one domain: tables and transforms of so many still fit a small machine."""

_LISTED = "Pass how many values there are, or the list of them, e.g. domain=['yes', 'no']."
_KINDS = (str, int)

Value = str | int
"""A value of a domain; False and True are ints."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, init=False)
class ValueDomain:
    """At least two values: 0 to size - 1, or a list of different texts, whole numbers or bools.

    >>> ValueDomain(["yes", "no"]).codes(["no", "yes"]).tolist()
    [1, 0]
    >>> ValueDomain([])
    Traceback (most recent call last):
    discreet.errors.InvalidParameter: Expected domain='0 values' to hold at least two. Pass how many values there are, \
or the list of them, e.g. domain=['yes', 'no'].
    """

    size: int
    values: tuple[Value, ...] | None

    def __init__(self, values: int | Iterable[Value]) -> None:
        listed = None if type(values) is int or isinstance(values, np.integer) else _check_values(values)
        size = check.integer(domain=values, at_most=MOST_VALUES) if listed is None else len(listed)
        if size < 2:
            raise InvalidParameter("domain", f"{size} values", "to hold at least two", _LISTED)
        assign(self, size=size, values=listed)

    @classmethod
    def of(cls, domain: ValueDomain | int | Iterable[Value]) -> ValueDomain:
        """Returns a domain given as itself, by its size or by its values."""
        return domain if isinstance(domain, ValueDomain) else cls(domain)

    def value(self, code: int) -> Value:
        """Returns the value of a number."""
        return code if self.values is None else self.values[code]

    def public(self) -> int | list[Value]:
        """Returns the public description of the domain, as JSON holds it."""
        return self.size if self.values is None else list(self.values)

    def codes(self, values: Any) -> Ints:
        """Returns the number of each value; of a single value, an array of one.

        Raises:
            InvalidValue: if one of them is not in the domain; which one is not said.
        """
        return self._numbers(values) if self.values is None else self._positions(values)

    def _numbers(self, values: Any) -> Ints:
        try:
            array = np.atleast_1d(np.asarray(values))
        except ValueError:  # rows of different lengths
            raise _foreign(self) from None
        whole = array.dtype.kind in "iu" or (array.dtype.kind == "b" and self.size == 2) or not array.size
        if not whole or array.ndim != 1 or (array.size and not 0 <= int(array.min()) <= int(array.max()) < self.size):
            raise _foreign(self)
        return array.astype(np.int64)

    def _positions(self, values: Any) -> Ints:
        known = {value: code for code, value in enumerate(self.values or ())}
        given = values.tolist() if hasattr(values, "tolist") else values
        entries = [given] if isinstance(given, _KINDS) or not isinstance(given, Iterable) else given
        try:
            return np.array([known[entry] for entry in entries], dtype=np.int64)
        except (KeyError, TypeError):
            raise _foreign(self) from None


def _check_values(values: Any) -> tuple[Value, ...]:
    if isinstance(values, str | bytes | bool) or not isinstance(values, Iterable):
        raise InvalidParameter("domain", values, "to be a number of values or a list of them", _LISTED)
    found = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if len(found) > MOST_VALUES:
        raise InvalidParameter("domain", f"{len(found)} values", f"to hold at most {MOST_VALUES}")
    for value in found:
        if not isinstance(value, _KINDS):
            raise InvalidParameter("domain", value, "to hold texts, whole numbers or bools")
    if len(set(found)) < len(found):
        raise InvalidParameter("domain", f"{len(found)} values", "to hold each value once", "Delete repetitions.")
    return found


def _foreign(domain: ValueDomain) -> InvalidValue:
    listed = f"Number the values from 0 to {domain.size - 1}." if domain.values is None else "Add it to the domain."
    return InvalidValue("to be one of the domain's", listed)
