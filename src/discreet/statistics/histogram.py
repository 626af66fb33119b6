"""Private counts in public bins, and public bounds found from such counts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import root_above
from discreet.mechanisms import Gaussian, Laplace
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.privacy.events import Composed, Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import vector

_HINT = "Pass ascending edges, e.g. bins=[0, 10, 20], or categories=['a', 'b']; they are public, never read from data."
_MOST = 1 << 24

SMALLEST, LARGEST = -30, 60  # exponents of two: nearer to zero is zero, farther away is at the end
SHARE = Fraction(1, 10)  # of a statistic's budget, where it is to find its bounds
RISK = Fraction(1, 100)
_BINS = LARGEST - SMALLEST  # of each sign


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
    """Counts private values in public bins, or by public categories; empty ones are shown like others.

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
        raise InvalidParameter("bins", bins, "to be given, or else categories", _HINT)
    edges = None if bins is None else _edges(bins)
    source = source_of(bits)
    counts = _in_bins(vector(x), edges) if edges is not None else _equal(x, list(categories or ()))
    return disjoint_counts(spending, relation).estimate(counts, confidence=chance, bits=source)


def disjoint_counts(spending: Spending, neighbours: Neighbours) -> Laplace | Gaussian:
    """Returns the noise of counts that share no value; they are whole numbers with noise, too."""
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
        raise InvalidParameter("bins", "edges", f"to be 2 to {_MOST} numbers", _HINT)
    if np.isnan(edges).any() or not (edges[:-1] < edges[1:]).all():
        raise InvalidParameter("bins", "edges", "to be ascending", _HINT)
    return edges


def _in_bins(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    places = np.searchsorted(edges, values, side="right") - 1
    last = edges.size - 1
    places[values == edges[-1]] = last - 1
    inside = (places >= 0) & (places < last) & ~np.isnan(values)
    return np.bincount(places[inside], minlength=last).astype(np.int64)


def _equal(x: Any, categories: list[Any]) -> NDArray[np.int64]:
    """Counts the values equal to each category; 1 and 1.0 are equal, and nothing is equal to a missing value."""
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits that were found, and what finding them cost.

    Attributes:
        low: the lower limit.
        high: the upper limit.
        event: what was released.
        private: False if the noise came from a seeded source.
    """

    low: float
    high: float
    event: Event
    private: bool

    @property
    def pair(self) -> tuple[float, float]:
        """Returns both bounds, as other statistics take them."""
        return self.low, self.high


def find_bounds(
    x: Any,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    risk: Number = RISK,
    bits: Bits | None = None,
) -> Bounds:
    """Finds powers of two between which nearly all of the values lie.

    Args:
        x: one number for each unit; missing ones count nowhere.
        epsilon: the budget, with Laplace noise if it comes alone.
        delta: with it the noise is normal.
        rho: the budget in zCDP, instead of both.
        neighbours: the relation to protect.
        risk: the probability that an empty bin is taken for one that is not.
        bits: the source of randomness; None is the secure one.

    Returns:
        `Bounds`, whose `pair` can be passed as ``bounds=`` of another statistic; their `event` is paid for besides.

    Raises:
        InvalidParameter: outside these domains.
        InvalidValue: if the values are no vector of numbers.

    Formal guarantee: the budget. Values are counted in public bins [2^j, 2^(j+1)) and their negatives for j from -30 to
    59, zero and what is nearer to it in one of its own; infinities count at the ends. A value is in one bin, so that
    counts move by 1, or where it is replaced by 2 in the L1 norm and by sqrt 2 in the L2 norm, and get noise for that.
    Bins whose noisy count exceeds what the noise of an empty one reaches with probability risk over the number of bins
    are taken as filled; the bounds are the outer ends of the first and the last of them. Everything after the noise is
    post-processing. Values in bins that are not found will be clipped: about as many as the threshold in each.

    >>> from discreet.noise import SeededBits
    >>> find_bounds([20, 30, 45] * 100, epsilon=1, bits=SeededBits(1)).pair
    (16.0, 64.0)
    """
    chance = check.probability(risk=risk)
    return _release_bounds(x, Spending.of(epsilon, delta, rho), Neighbours(neighbours), chance, source_of(bits))


def resolve_bounds(
    x: Any, bounds: Any, spending: Spending, neighbours: Neighbours | str, bits: Bits
) -> tuple[Any, Spending, tuple[Event, ...]]:
    """Returns given bounds, or for "find" those found for a tenth of the budget; the remaining budget; the price."""
    if not isinstance(bounds, str) or bounds != "find":
        return bounds, spending, ()
    found = _release_bounds(x, spending.share(SHARE), Neighbours(neighbours), RISK, bits)
    return found.pair, spending.share(1 - SHARE), (found.event,)


def with_price(event: Event, paid: tuple[Event, ...]) -> Event:
    """Returns an event together with those that came before it."""
    return Composed([*paid, event]) if paid else event


def _release_bounds(x: Any, spending: Spending, neighbours: Neighbours, risk: Fraction, bits: Bits) -> Bounds:
    mechanism = disjoint_counts(spending, neighbours)
    noisy = np.asarray(mechanism.release(_counts(vector(x)), bits=bits))
    each = min(2 * risk / (2 * _BINS + 1), Fraction(1, 2))  # noise is symmetric: above it is half of this
    filled = np.flatnonzero(noisy > int(mechanism.error(confidence=1 - each)))
    low, high = (_ends(filled[0])[0], _ends(filled[-1])[1]) if filled.size else (0.0, 1.0)
    return Bounds(low, high, mechanism.event, bits.private)


def _counts(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns how many values are in each bin: the negative ones from the farthest, zero, the positive ones."""
    known = values[~np.isnan(values)]
    _, exponents = np.frexp(known)  # |x| is in [2^(e - 1), 2^e)
    exponents = np.where(np.isinf(known), LARGEST, exponents - 1)
    size = np.clip(exponents, SMALLEST - 1, LARGEST - 1) - SMALLEST + 1  # 0 is the bin of zero
    places = _BINS + np.where(known == 0, 0, np.sign(known) * size).astype(np.int64)
    return np.bincount(places, minlength=2 * _BINS + 1).astype(np.int64)


def _ends(place: int) -> tuple[float, float]:
    """Returns the limits of a bin; that of zero ends where the first ones next to it begin."""
    size = abs(int(place) - _BINS)
    if size == 0:
        return -(2.0**SMALLEST), 2.0**SMALLEST
    near, far = 2.0 ** (SMALLEST + size - 1), 2.0 ** (SMALLEST + size)
    return (near, far) if place > _BINS else (-far, -near)
