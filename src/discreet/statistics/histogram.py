"""Private counts in public bins."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import root_above
from discreet.mechanisms import Gaussian, Laplace
from discreet.mechanisms.base import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.statistics.column import vector
from discreet.statistics.spending import Spending

_HINT = "Pass ascending edges, e.g. bins=[0, 10, 20], or categories=['a', 'b']; they are public, never read from data."
_MOST = 1 << 24


def histogram(
    x: Any,
    *,
    bins: Sequence[Number] | None = None,
    categories: Sequence[Any] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    bits: Bits | None = None,
) -> Estimate:
    """How many private values lie in each public bin, or equal each public category; empty ones are shown like others.

    Args:
        x: one value for each unit.
        bins: ascending edges: a bin holds what is at least its lower edge and below its upper one, the last bin its
            upper edge, too. Values outside, and missing ones, count nowhere.
        categories: the values to count, instead of bins; all others count nowhere.
        epsilon: the budget, with Laplace noise if it comes alone.
        delta: with it the noise is normal.
        rho: the budget in zCDP, instead of both.
        neighbours: the relation to protect.
        confidence: of each interval, for the count of these very values.
        bits: the source of randomness; None is the secure one.

    Returns:
        An `Estimate` of whole numbers, which may be negative: they are unbiased, and sums of them stay so.

    Raises:
        InvalidParameter: outside these domains, before any value is looked at.
        InvalidValue: if the values are no vector.

    Formal guarantee: the budget, under the relation. A value is in one bin at most: one more or less moves the counts
    by 1, in the L1 norm and in the L2 norm. Another value in its place moves two of them, by 2 and by sqrt 2.

    >>> from discreet.noise import SeededBits
    >>> print(histogram([1, 2, 2, 3] * 100, bins=[0, 2, 4], epsilon=1, bits=SeededBits(1)))
    NOT PRIVATE (seeded randomness)
    entry  value [95 % interval]
    -----  ---------------------
    0              101 [98, 104]
    1             300 [297, 303]
    """
    spending = Spending.of(epsilon, delta, rho)
    chance = check.probability(confidence=confidence)
    relation = Neighbours(neighbours)
    if (bins is None) == (categories is None):
        raise InvalidParameter("bins", bins, "or categories to be given, one of them", _HINT)
    edges = None if bins is None else _edges(bins)
    source = source_of(bits)
    counts = _in_bins(vector(x), edges) if edges is not None else _equal(x, list(categories or ()))
    return disjoint_counts(spending, relation).estimate(counts, confidence=chance, bits=source)


def disjoint_counts(spending: Spending, neighbours: Neighbours) -> Laplace | Gaussian:
    """The noise of counts of which a value is in one at most; they are whole numbers with noise, too."""
    replaced = neighbours is Neighbours.REPLACE
    if spending.is_pure:
        return Laplace(epsilon=spending.pure_epsilon, sensitivity=1 + replaced)
    move = root_above(Fraction(2)) if replaced else Fraction(1)
    return Gaussian.with_multiplier(noise_multiplier=spending.noise_multiplier, sensitivity=move, grid=1)


def _edges(bins: Sequence[Number]) -> NDArray[np.float64]:
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("bins", bins, "to be numbers", _HINT) from None
    if edges.ndim != 1 or not 2 <= edges.size <= _MOST:
        raise InvalidParameter("bins", "edges", f"to be 2 to {_MOST} of them", _HINT)
    if np.isnan(edges).any() or not (edges[:-1] < edges[1:]).all():
        raise InvalidParameter("bins", "edges", "to ascend", _HINT)
    return edges


def _in_bins(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    places = np.searchsorted(edges, values, side="right") - 1
    last = edges.size - 1
    places[values == edges[-1]] = last - 1
    inside = (places >= 0) & (places < last) & ~np.isnan(values)
    return np.bincount(places[inside], minlength=last).astype(np.int64)


def _equal(x: Any, categories: list[Any]) -> NDArray[np.int64]:
    """How many values are equal to each category; 1 and 1.0 are equal, and nothing is equal to a missing value."""
    try:
        places = {category: place for place, category in enumerate(categories)}
    except TypeError:
        raise InvalidParameter("categories", "values", "to be hashable", _HINT) from None
    if not 1 <= len(places) == len(categories) <= _MOST:
        raise InvalidParameter("categories", f"{len(categories)} values", "to be different, and at least one", _HINT)
    given = np.asarray(x, dtype=object)
    if given.ndim != 1:
        raise InvalidValue("to be a vector", "Pass one value for each unit.")
    found = np.array([_place(places, value) for value in given.tolist()], dtype=np.int64)
    return np.bincount(found[found >= 0], minlength=len(categories)).astype(np.int64)


def _place(places: dict[Any, int], value: Any) -> int:
    try:
        return places.get(value, -1)
    except TypeError:  # what has no hash is no category
        return -1
