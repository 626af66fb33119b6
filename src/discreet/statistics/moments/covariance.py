"""Private covariances and correlations."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.lazy import special
from discreet.mechanisms import Gaussian
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.privacy.events import Composed, Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, Integers, matrix, whole, within
from discreet.statistics.row_sums import Floats, moment_sensitivity, positive_part, release_symmetric, second_moments

COUNT_SHARE = Fraction(1, 5)  # of mu^2 under ADD_REMOVE, for the number of rows; the sums have the rest
SUM_SHARE = Fraction(1, 4)  # of what the sums have, for the sum of the rows; the squares have the rest
_COUNT_RISK = 0.1
_SPREAD_RISK = 0.1
_HINT = (
    "Pass bounds=(low, high), one pair for all columns or one for each, or norm_bound=1.0 if rows are at most that "
    "long; both are public and never read from the data."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScale:
    """How rows become integer vectors: entry j is round((x_j - centre_j) / unit_j), clipped, shrunk to length RADIUS.

    Attributes:
        centre: of each column.
        unit: the value of an integer 1 in each column.
        most: the largest size of an entry.
    """

    centre: Floats
    unit: Floats
    most: int

    def rows(self, X: Floats) -> Integers:
        """Returns the integer rows, each a function of itself alone; what is missing is the centre."""
        steps = whole(X - self.centre, 1 / self.unit)
        return within(steps if self.most == RADIUS else np.clip(steps, -self.most, self.most), RADIUS)

    @property
    def farthest(self) -> Floats:
        """Returns how far an entry may be from its centre, in the units of the data."""
        return self.unit * self.most


def scale_of(columns: int, bounds: Any, norm_bound: Any) -> RowScale:
    """Returns the public map of rows with so many columns.

    With bounds each column is moved to [-1, 1] first, and rows are at most sqrt(columns) long; with `norm_bound` they
    are taken as they are, and longer ones are shrunk.

    Raises:
        InvalidParameter: if both are missing or given, or one does not fit.
    """
    if (bounds is None) == (norm_bound is None):
        raise InvalidParameter("bounds", bounds, "to be given, or else norm_bound", _HINT)
    if norm_bound is not None:
        length = float(check.positive(norm_bound=norm_bound))
        return RowScale(centre=np.zeros(columns), unit=np.full(columns, length / RADIUS), most=RADIUS)
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidParameter("bounds", bounds, "to be a pair (low, high)", _HINT)
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)) for end in bounds)
    except (TypeError, ValueError):
        raise InvalidParameter("bounds", bounds, f"to be numbers, one or {columns} at each end", _HINT) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise InvalidParameter("bounds", bounds, "to be finite with low < high", _HINT)
    most = math.isqrt(RADIUS * RADIUS // columns)
    return RowScale(centre=(low + high) / 2, unit=(high - low) / 2 / most, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedMoments:
    """What was released about rows: in units of RADIUS, which no row is longer than.

    Attributes:
        count: how many rows there are.
        sums: of the rows.
        squares: the sum of x x'.
        noises: sigma of each of the three; off the diagonal that of the squares is smaller by sqrt 2.
        event: what it cost.
    """

    count: float
    sums: Floats
    squares: Floats
    noises: tuple[float, float, float]
    event: Event

    @property
    def size(self) -> float:
        """Returns the number of rows that sums are divided by, at least 1."""
        return max(self.count, 1.0)


def moments_of(rows: Integers, spending: Spending, neighbours: Neighbours, bits: Bits) -> ReleasedMoments:
    """Returns the number of integer rows of length RADIUS at most, their sum and the sum of x x', with normal noise.

    Formal guarantee: mu-GDP for the mu^2 of `spending`. A row moves the sum by at most RADIUS in the L2 norm, or by
    twice that where it is replaced, and the squares by `moment_sensitivity` in the Frobenius norm. Each has its share
    of mu^2, and the number of rows has one under ADD_REMOVE.
    """
    replaced = neighbours is Neighbours.REPLACE
    rest = spending if replaced else spending.share(1 - COUNT_SHARE)
    for_sum, for_squares = rest.share(SUM_SHARE), rest.share(1 - SUM_SHARE)
    adder = Gaussian.with_multiplier(noise_multiplier=for_sum.noise_multiplier, sensitivity=RADIUS * (1 + replaced))
    sums = adder.release(np.sum(rows, axis=0, dtype=np.int64), bits=bits)
    move = moment_sensitivity(RADIUS * RADIUS, neighbours)
    squares = release_symmetric(
        second_moments(rows), noise_multiplier=for_squares.noise_multiplier, sensitivity=move, bits=bits
    )
    events: list[Event] = [adder.event, _squares_event(for_squares)]
    count, blur = float(len(rows)), 0.0
    if not replaced:
        counter = Gaussian.with_multiplier(noise_multiplier=spending.share(COUNT_SHARE).noise_multiplier, sensitivity=1)
        count, blur = float(counter.release(len(rows), bits=bits)), float(counter.sigma)
        events.append(counter.event)
    sigmas = blur, float(adder.sigma) / RADIUS, float(for_squares.noise_multiplier * move) / RADIUS**2
    return ReleasedMoments(
        count=count,
        sums=np.asarray(sums, dtype=float) / RADIUS,
        squares=squares / RADIUS**2,
        noises=sigmas,
        event=Composed(events),
    )


def _squares_event(spending: Spending) -> Event:
    return Gaussian.with_multiplier(noise_multiplier=spending.noise_multiplier, sensitivity=1).event


def covariance(
    X: Any,
    *,
    bounds: Any = None,
    norm_bound: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the covariance matrix of private rows: positive semidefinite, with an interval for each entry.

    Args:
        X: a row for each unit and a column for each variable; what is missing is the middle of its bounds.
        bounds: public limits (low, high) of the columns, numbers or arrays with one number for each.
        norm_bound: the length that rows are shrunk to, instead of bounds.
        epsilon: the budget.
        delta: of the budget: the noise is normal.
        rho: the budget in zCDP, instead of both.
        neighbours: the relation to protect; under "replace" the number of rows is public.
        confidence: of each entry's interval, which is for the population of clipped rows.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, or for a budget without delta, before any row is looked at.
        InvalidValue: if X is no table of numbers.

    Formal guarantee: the budget, under the relation (`moments_of`): the matrix is centred by the noisy mean and made
    positive as post-processing. Intervals count the noise to the first order and, for the sampling error of entry ij,
    the bound E (x_i - m_i)^2 (x_j - m_j)^2 <= min(h_i^2 C_jj, h_j^2 C_ii), h being the largest distance from the mean:
    no fourth moment is released, so they are longer than needed.

    >>> from discreet.noise import SeededBits
    >>> X = [[0, 0], [1, 0], [1, 1], [0, 0]] * 5000
    >>> covariance(X, bounds=(0, 1), epsilon=1, delta=1e-6, bits=SeededBits(1)).value.round(2)
    array([[0.25, 0.12],
           [0.12, 0.19]])
    """
    found, low, high, event, private = _covariance(
        X, (bounds, norm_bound), Spending.of(epsilon, delta, rho), Neighbours(neighbours), (confidence, bits)
    )
    return Estimate(found, low, high, event, confidence=confidence, private=private)


def correlation(
    X: Any,
    *,
    bounds: Any = None,
    norm_bound: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the correlation matrix of private rows: post-processing of `covariance`, see there.

    An interval is all that the intervals of the covariance and of both variances allow, each at a third of the risk.

    >>> from discreet.noise import SeededBits
    >>> X = [[0, 0], [1, 0], [1, 1], [0, 0]] * 5000
    >>> correlation(X, bounds=(0, 1), epsilon=1, delta=1e-6, bits=SeededBits(1)).value.round(2)
    array([[1.  , 0.58],
           [0.58, 1.  ]])
    """
    chance = check.probability(confidence=confidence)
    found, low, high, event, private = _covariance(
        X, (bounds, norm_bound), Spending.of(epsilon, delta, rho), Neighbours(neighbours), (1 - (1 - chance) / 3, bits)
    )
    deviation = np.sqrt(np.maximum(np.diagonal(found), 1e-300))
    value = np.clip(found / np.outer(deviation, deviation), -1.0, 1.0)
    least, most = (np.sqrt(np.maximum(np.diagonal(end), 0.0)) for end in (low, high))
    smallest, largest = np.maximum(np.outer(least, least), 1e-300), np.maximum(np.outer(most, most), 1e-300)
    with np.errstate(over="ignore"):
        lower = np.clip(np.where(low < 0, low / smallest, low / largest), -1.0, 1.0)
        upper = np.clip(np.where(high > 0, high / smallest, high / largest), -1.0, 1.0)
    for one in (value, lower, upper):
        np.fill_diagonal(one, 1.0)
    return Estimate(
        value, np.minimum(lower, value), np.maximum(upper, value), event, confidence=chance, private=private
    )


_Found = tuple[Floats, Floats, Floats, Event, bool]


def _covariance(
    X: Any, public: tuple[Any, Any], spending: Spending, neighbours: Neighbours, rest: tuple[Any, Bits | None]
) -> _Found:
    _ = spending.noise_multiplier  # a pure budget is refused before rows are read
    risk = float(1 - check.probability(confidence=rest[0]))
    given = matrix(X)
    scale = scale_of(given.shape[1], *public)
    source = source_of(rest[1])
    moments = moments_of(scale.rows(given), spending, neighbours, source)
    size = moments.size
    centre = moments.sums / size
    plain = (moments.squares / size - np.outer(centre, centre)) * (size / max(size - 1, 1.0))
    half = _half_width(moments, centre, plain, scale.most / RADIUS, risk)
    value = positive_part(plain)
    units = np.outer(scale.unit, scale.unit) * RADIUS**2
    most = np.outer(scale.farthest, scale.farthest)
    low, high = np.minimum(plain - half, value) * units, np.maximum(plain + half, value) * units
    smallest = np.where(np.eye(len(value), dtype=bool), 0.0, -most)
    clipped = (np.clip(end, smallest, most) for end in (value * units, low, high))
    return (*clipped, moments.event, source.private)  # type: ignore[return-value]


def _half_width(moments: ReleasedMoments, centre: Floats, plain: Floats, farthest: float, risk: float) -> Floats:
    """Returns how far the population's covariances may be from `plain`, infinite where rows may be hardly any.

    To the first order the noise of entry ij is e_ij - m_i s_j - m_j s_i + (2 m_i m_j - Q_ij / n) c over n, for the
    noise e of the squares, s of the sums and c of the count; on the diagonal two of the terms are equal.
    """
    blur, of_sums, of_squares = moments.noises
    fewest = moments.size - blur * float(special.ndtri(1 - _COUNT_RISK * risk))
    if fewest < 2:
        return np.full(plain.shape, np.inf)
    diagonal = np.eye(len(centre), dtype=bool)
    products = np.outer(centre, centre)
    squared = centre[:, None] ** 2 + centre[None, :] ** 2
    noise = (
        np.where(diagonal, 1.0, 0.5) * of_squares**2
        + np.where(diagonal, 2.0, 1.0) * squared * of_sums**2
        + (2 * products - moments.squares / moments.size) ** 2 * blur**2
    ) / fewest**2
    sure = float(special.ndtri(1 - _SPREAD_RISK * risk / 2))
    spreads = np.maximum(np.diagonal(plain), 0.0) + sure * np.sqrt(np.diagonal(noise))
    reach = (farthest + np.abs(centre)) ** 2
    sampling = np.minimum(reach[:, None] * spreads[None, :], reach[None, :] * spreads[:, None]) / fewest
    z = float(special.ndtri(1 - (1 - _COUNT_RISK - _SPREAD_RISK) * risk / 2))
    return np.asarray(z * np.sqrt(noise + sampling) + _rounding(np.sqrt(spreads), farthest))


def _rounding(deviations: Floats, farthest: float) -> Floats:
    """Returns how far rounding may have moved each covariance: entries are moved by half of 1 / RADIUS at most.

    Those of rows that are shrunk, whole rows being at most as long as an entry may be, are moved by five times that:
    lengths are rounded up, and entries down.

    With x + e and y + f for x and y, the covariance changes by cov(e, y) + cov(x, f) + cov(e, f), and deviations of e
    and f are no larger than they themselves can be.
    """
    each = (5 if farthest == 1 and len(deviations) > 1 else 1) / (2 * RADIUS)
    return np.asarray(each * (deviations[:, None] + deviations[None, :]) + each**2)
