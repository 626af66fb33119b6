"""The public domain of a table, and which sets of its attributes are asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

Attributes = tuple[str, ...]
"""A set of attributes, in the order of the domain."""

MOST_ATTRIBUTES = 1000
MOST_VALUES = 1 << 20  # of one attribute
MOST_CELLS = 1 << 24  # of one table
MOST_SETS = 1 << 16  # with all their subsets
_HINT = "Pass public sizes or values, e.g. {'sex': 2, 'region': ['north', 'south']}; they are never read from data."


@dataclass(frozen=True, slots=True, init=False)
class ProductDomain:
    """Attributes with public values: how many each has, and what they are called where that was said.

    Args:
        attributes: for each name a number of values, which are then 0, 1, 2 ..., or the values themselves.

    Raises:
        InvalidParameter: if there is no attribute, or one has no value, a value twice, or too many.

    >>> ProductDomain({"sex": 2, "region": ["north", "south", "east"]}).sizes
    {'sex': 2, 'region': 3}
    """

    sizes: dict[str, int]
    labels: dict[str, tuple[Any, ...]]

    def __init__(self, attributes: Mapping[str, int | Sequence[Any]]) -> None:
        given: Any = attributes
        if not isinstance(given, Mapping) or not 1 <= len(given) <= MOST_ATTRIBUTES:
            raise InvalidParameter("domain", given, f"to have 1 to {MOST_ATTRIBUTES} attributes", _HINT)
        for name in given:
            if not isinstance(name, str) or not name:
                raise InvalidParameter("domain", name, "to have texts as names", _HINT)
        labels = {name: _labels(name, value) for name, value in attributes.items() if not _is_size(value)}
        sizes = {name: len(labels[name]) if name in labels else _size(attributes[name]) for name in attributes}
        assign(self, sizes=sizes, labels=labels)

    def order_attributes(self, names: object) -> Attributes:
        """Returns a set of attributes in the order of the domain.

        Raises:
            InvalidParameter: if one is unknown or named twice, or their table would be too large.
        """
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InvalidParameter("sets", names, "to be tuples of names", "Pass e.g. [('sex',), ('sex', 'region')].")
        given = list(names)
        unknown = [name for name in given if not isinstance(name, str) or name not in self.sizes]
        if unknown:
            raise InvalidParameter("sets", unknown[0], f"to be one of {', '.join(self.sizes)}")
        if len(set(given)) < len(given):
            raise InvalidParameter("sets", tuple(given), "to name an attribute once")
        if math.prod(self.sizes[name] for name in given) > MOST_CELLS:
            raise InvalidParameter("sets", tuple(given), f"to have at most {MOST_CELLS:,} cells", "Ask for fewer.")
        return tuple(name for name in self.sizes if name in set(given))

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        """Returns the shape of a table."""
        return tuple(self.sizes[name] for name in attributes)

    def cells(self, attributes: Iterable[str]) -> int:
        """Returns how many cells a table has."""
        return math.prod(self.sizes[name] for name in attributes)


def _is_size(value: object) -> bool:
    return isinstance(value, int | float) or not isinstance(value, Iterable) or isinstance(value, str)


def _size(value: object) -> int:
    try:
        return check.integer(domain=value, at_least=1, at_most=MOST_VALUES)
    except InvalidParameter as refused:
        raise InvalidParameter("domain", value, f"to have sizes {refused.condition}", _HINT) from None


def _labels(name: str, values: Any) -> tuple[Any, ...]:
    found = tuple(itertools.islice(values, MOST_VALUES + 1))
    try:
        distinct = len(set(found)) == len(found) and all(value == value for value in found)  # noqa: PLR0124 - no NaN
    except TypeError:
        distinct = False
    if not distinct or not 1 <= len(found) <= MOST_VALUES:
        raise InvalidParameter("domain", name, f"to have 1 to {MOST_VALUES:,} values, each once", _HINT)
    return found


def subsets(attributes: Attributes) -> Iterable[Attributes]:
    """Yields all subsets, the empty one first, in the order of the domain.

    >>> list(subsets(("a", "b")))
    [(), ('a',), ('b',), ('a', 'b')]
    """
    return itertools.chain.from_iterable(
        itertools.combinations(attributes, size) for size in range(len(attributes) + 1)
    )


def closure(sets: Iterable[Attributes], domain: ProductDomain) -> tuple[Attributes, ...]:
    """Returns all subsets of the sets that have something to say: those without attributes of a single value.

    Raises:
        InvalidParameter: if there are too many.
    """
    found: dict[Attributes, None] = {}
    for attributes in sets:
        speaking = tuple(name for name in attributes if domain.sizes[name] > 1)
        if 2 ** len(speaking) > MOST_SETS or len(found) > MOST_SETS:
            hint = "Ask for tables of fewer attributes."
            raise InvalidParameter("sets", f"{len(attributes)} attributes", f"to have {MOST_SETS:,} subsets", hint)
        found |= dict.fromkeys(subsets(speaking))
    return tuple(sorted(found, key=len))
