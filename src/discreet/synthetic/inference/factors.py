"""Factors: tables of logarithms over a few named attributes, multiplied and summed without leaving log space."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

Attributes = tuple[str, ...]
"""Names of attributes, one per axis of a table."""

Sizes = Mapping[str, int]
"""How many values each attribute has; its order is the order of the columns."""

Table = NDArray[np.float64]


def cells(attributes: Iterable[str], sizes: Sizes) -> int:
    """Returns how many cells the table of some attributes has.

    >>> cells(("a", "b"), {"a": 2, "b": 3, "c": 5})
    6
    """
    return math.prod(sizes[name] for name in attributes)


def shape_within(attributes: Collection[str], frame: Attributes, sizes: Sizes) -> tuple[int, ...]:
    """Returns the shape of a table of some attributes among the axes of a frame: 1 where an attribute is missing.

    >>> shape_within(("b",), ("a", "b"), {"a": 2, "b": 3})
    (1, 3)
    """
    return tuple(sizes[name] if name in attributes else 1 for name in frame)


def log_sum(logs: Table, axes: tuple[int, ...]) -> Table:
    """Returns log of the sum of exp(logs) along some axes; minus infinity means an exact zero.

    The largest entry of each sum is taken out first, so that no sum overflows and none vanishes that is not zero.
    """
    if not axes:
        return logs
    top = np.max(logs, axis=axes, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        sums: Table = np.log(np.sum(np.exp(logs - top), axis=axes)) + np.squeeze(top, axis=axes)
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A non-negative function of some attributes, kept as its logarithm; minus infinity is an exact zero.

    Args:
        attributes: one name per axis, each once.
        logs: the table of logarithms.

    Raises:
        InvalidParameter: if names repeat, or the table has another number of axes.

    >>> a, ab = Factor(("a",), np.log([1.0, 2.0])), Factor(("b", "a"), np.log([[1.0, 1.0], [3.0, 5.0]]))
    >>> np.exp((a * ab).marginal(("a",)).logs).round(9)
    array([ 4., 12.])
    """

    attributes: Attributes
    logs: Table

    def __post_init__(self) -> None:
        if len(set(self.attributes)) != len(self.attributes):
            raise InvalidParameter("attributes", self.attributes, "to name each attribute once")
        if np.ndim(self.logs) != len(self.attributes):
            raise InvalidParameter("logs", np.shape(self.logs), f"to have {len(self.attributes)} axes")

    @property
    def sizes(self) -> dict[str, int]:
        """Returns how many values each attribute has."""
        return dict(zip(self.attributes, self.logs.shape, strict=True))

    def transpose_to(self, attributes: Attributes) -> Factor:
        """Returns the same factor with its axes in another order."""
        if attributes == self.attributes:
            return self
        if sorted(attributes) != sorted(self.attributes):
            raise InvalidParameter("attributes", attributes, f"to be {self.attributes} in some order")
        return Factor(attributes, self.logs.transpose([self.attributes.index(name) for name in attributes]))

    def within(self, frame: Attributes) -> Table:
        """Returns the table with one axis per attribute of a frame, of length 1 where the factor lacks it."""
        order = tuple(name for name in frame if name in self.attributes)
        return self.transpose_to(order).logs.reshape(
            shape_within(order, frame, {**dict.fromkeys(frame, 1), **self.sizes})
        )

    def __mul__(self, other: Factor) -> Factor:
        """Returns the product, over the attributes of both."""
        sizes, others = self.sizes, other.sizes
        if any(sizes[name] != others[name] for name in sizes.keys() & others.keys()):
            raise InvalidParameter("sizes", others, f"to agree with {sizes}")
        frame = (*self.attributes, *(name for name in other.attributes if name not in sizes))
        return Factor(frame, self.within(frame) + other.within(frame))

    def marginal(self, attributes: Attributes) -> Factor:
        """Returns the sum over all other attributes, with the axes in the order asked for."""
        if not set(attributes) <= set(self.attributes):
            raise InvalidParameter("attributes", attributes, f"to be among {self.attributes}")
        axes = tuple(axis for axis, name in enumerate(self.attributes) if name not in attributes)
        kept = tuple(name for name in self.attributes if name in attributes)
        return Factor(kept, log_sum(self.logs, axes)).transpose_to(attributes)

    @property
    def log_total(self) -> float:
        """Returns the logarithm of the sum of all cells."""
        return float(log_sum(self.logs, tuple(range(self.logs.ndim))))
