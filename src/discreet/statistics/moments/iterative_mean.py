"""Means in several dimensions from a vague idea of where they are: each noisy mean is the next centre of clipping.

Without any idea, the start is the fullest cell of a histogram with infinitely many cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, lower
from discreet.lazy import special
from discreet.mechanisms import Gaussian, PartitionSelection
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import matrix, whole, within

Floats = NDArray[np.float64]

REACH = 3  # cells between the middle of the fullest cell and the mean, at most, for normal data
_FURTHEST = 2.0**52  # cells beyond are one cell
_MANY = 16  # coordinates from which on Gaussian noise is the smaller one

UNITS = 1 << 20  # of a row, to the radius of clipping: its noise has one law whatever the radius is
COUNT = Fraction(1, 20)  # of the budget, where the number of rows is private
START = Fraction(1, 5)  # of epsilon, where no radius is known
_FAILURE = Fraction(1, 10)  # of 1 - confidence, for rows that are cut although they belong
_NEAR, _FAR = (1, 3), (1, 1, 1, 9)  # how the steps share the budget


@dataclass(frozen=True, slots=True, kw_only=True)
class StableStart:
    """Finds, for each coordinate, a cell of width `scale` that holds much of the data.

    Formal guarantee: (epsilon, delta)-DP under the relation. A unit is in one cell for each coordinate, so the cells
    are keys of `PartitionSelection`, at most `dimension` to a unit, whose integer thresholds pay for cells that one
    unit alone fills; choosing the largest noisy count among the shown ones is post-processing (Karwa, Vadhan 2018). A
    replaced unit is one removed and one added: half of epsilon and delta / (1 + e^(epsilon / 2)) are used then (group
    privacy).
    """

    selection: PartitionSelection
    event: Event
    dimension: int

    @classmethod
    def of(cls, *, epsilon: Fraction, delta: Fraction, dimension: int, neighbours: Neighbours) -> StableStart:
        """Returns the search of a budget."""
        method: Any = "laplace" if dimension < _MANY else "gaussian"
        if neighbours is Neighbours.ADD_REMOVE:
            selection = PartitionSelection(epsilon=epsilon, delta=delta, max_groups=dimension, method=method)
            return cls(selection=selection, event=selection.event, dimension=dimension)
        half = epsilon / 2
        share = lower(lambda digits: 1 / (Enclosure.of(half, digits).exp() + 1))
        kept = delta * Fraction(int(share * 2**80), 2**80)
        if kept == 0:
            raise InvalidParameter("radius", None, "to be given at this epsilon", "State where the mean may be.")
        selection = PartitionSelection(epsilon=half, delta=kept, max_groups=dimension, method=method)
        return cls(selection=selection, event=events.Approx(epsilon, delta), dimension=dimension)

    def release(self, rows: Floats, scale: float, bits: Bits) -> tuple[Floats, NDArray[np.bool_]]:
        """Releases the middle of the fullest cell of each coordinate, 0 where none is shown, and which ones were."""
        cells, owners, counts = _histogram(rows, scale)
        shown = self.selection.release(counts, bits=bits)
        noisy = np.asarray(shown.counts, dtype=np.float64)
        cells, owners = cells[shown.kept], owners[shown.kept]
        centre, known = np.zeros(self.dimension), np.zeros(self.dimension, dtype=bool)
        for place in range(self.dimension):
            own = np.flatnonzero(owners == place)
            if own.size:
                best = own[np.argmax(noisy[own])]
                centre[place], known[place] = (cells[best] + 0.5) * scale, True
        return centre, known


def _histogram(rows: Floats, scale: float) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Returns the filled cells of all coordinates in order, the coordinate of each, and how many units it holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        places = np.clip(np.floor(rows / scale), -_FURTHEST, _FURTHEST)
    found = [np.unique(column[~np.isnan(column)], return_counts=True) for column in places.T]
    cells = np.concatenate([cell for cell, _ in found])
    counts = np.concatenate([count for _, count in found]).astype(np.int64)
    owners = np.repeat(np.arange(len(found)), [cell.size for cell, _ in found])
    return cells, owners, counts


def iterative_mean(
    X: Any,
    *,
    radius: Number | None = None,
    centre: Any = 0.0,
    scale: Number = 1,
    shares: Sequence[Number] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = 0.95,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the mean of rows of covariance up to scale^2 times the identity, with normal or lighter tails.

    Rows are clipped to a ball that holds them all if the mean is within `radius` of the centre; the noisy mean is the
    centre of the next, much smaller ball (CoinPress: Biswas, Dong, Kamath, Ullman 2020). If the mean was outside, the
    result is wrong and as private as ever. Each coordinate has its own interval: sampling error by `scale`, and noise.

    Args:
        X: a matrix with a row for each unit, or a vector; missing entries count as the centre.
        radius: public, how far the mean is from the centre at most; None finds a start by a histogram of cells of width
            `scale`, which needs a delta.
        centre: public, a number or one for each coordinate.
        scale: public, a bound of the standard deviation in any direction.
        shares: how the steps share the budget, e.g. (1, 3); None is two steps, or four if the radius is large.
        epsilon: with delta, the budget; or
        delta: see epsilon.
        rho: the budget of zero-concentrated DP.
        neighbours: the relation to protect; under ADD_REMOVE rows are counted for a twentieth of the budget.
        confidence: the probability that the interval of one coordinate covers the population's mean.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, before anything is read.
        InvalidValue: if there is no table of numbers.

    Formal guarantee: mu-GDP by composition of Gaussian releases of integer sums, each row alone shrunk to a length of
    at most 2^20 units (`inputs.within`): a sum moves by at most 2^20 units under ADD_REMOVE, twice that under REPLACE.
    Centres, radii and units are functions of what was released before. A start by histogram is (epsilon / 5, delta /
    2)-DP on top of the rest, which keeps to the remaining budget.

    >>> from discreet.noise import SeededBits
    >>> rows = np.tile([[3.0, 5.0], [5.0, 3.0]], (2000, 1))
    >>> found = iterative_mean(rows, radius=1000, epsilon=1, delta=1e-6, bits=SeededBits(1))
    >>> found.value.round(1).tolist()
    [4.0, 4.0]
    """
    request = _Request.of(radius, scale, shares, confidence, neighbours)
    budget = Spending.of(epsilon, delta, rho)
    _ = budget.noise_multiplier  # refuses a budget without a delta
    if radius is None and (delta is None or rho is not None):
        hint = "Say how far the mean may be from the centre, or pass epsilon and delta to have it found."
        raise InvalidParameter("radius", None, "to be given with rho", hint)
    table, flat = table_of(X)
    plan = MeanPlan.of(budget, table.shape[1], request, epsilon=epsilon, delta=delta)
    source = source_of(bits)
    found = plan.run(table, spread_over(centre, table.shape[1]), source)
    if not flat:
        return found
    value, low, high = (float(part[0]) for part in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.event, confidence=found.confidence, private=found.private)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """Holds the public facts of a request, after checks."""

    radius: float | None
    scale: float
    shares: tuple[Fraction, ...]
    outside: Fraction
    neighbours: Neighbours

    @classmethod
    def of(cls, radius: Any, scale: Any, shares: Any, confidence: Any, neighbours: Any) -> _Request:
        spread = float(check.positive(scale=scale))
        far = None if radius is None else float(check.positive(radius=radius))
        parts = (_FAR if far is not None and far > 20 * spread else _NEAR) if shares is None else tuple(shares)
        if not parts:
            raise InvalidParameter("shares", shares, "to be at least one", "Pass e.g. shares=(1, 3).")
        return cls(
            radius=far,
            scale=spread,
            shares=tuple(check.positive(shares=part) for part in parts),
            outside=1 - check.probability(confidence=confidence),
            neighbours=Neighbours(neighbours),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanPlan:
    """All releases of a run, known before any row is seen."""

    request: _Request
    start: StableStart | None
    count: Gaussian | None
    sums: tuple[Gaussian, ...]
    dimension: int

    @classmethod
    def of(cls, budget: Spending, dimension: int, request: _Request, *, epsilon: Any, delta: Any) -> MeanPlan:
        """Returns the plan of a budget."""
        start, rest = None, budget
        if request.radius is None:
            whole_epsilon, slack = check.positive(epsilon=epsilon), check.probability(delta=delta)
            part, chance = whole_epsilon * START, slack / 2
            start = StableStart.of(epsilon=part, delta=chance, dimension=dimension, neighbours=request.neighbours)
            rest = Spending.of(whole_epsilon - part, slack - chance)
        counted = request.neighbours is Neighbours.ADD_REMOVE
        left = (1 - COUNT if counted else Fraction(1)) / sum(request.shares)
        multipliers = [rest.share(share * left).noise_multiplier for share in request.shares]
        moves = UNITS if counted else 2 * UNITS
        return cls(
            request=request,
            start=start,
            count=gaussian(rest.share(COUNT).noise_multiplier, 1) if counted else None,
            sums=tuple(gaussian(multiplier, moves) for multiplier in multipliers),
            dimension=dimension,
        )

    @property
    def event(self) -> Event:
        """Returns the event of all releases."""
        parts = [part.event for part in (self.start, self.count, *self.sums) if part is not None]
        return events.Composed(parts)

    def run(self, table: Floats, centre: Floats, bits: Bits) -> Estimate:
        """Returns the releases one after the other; each may use what was released before, and nothing else."""
        request, d = self.request, self.dimension
        known = np.ones(d, dtype=bool)
        radius = request.radius
        if self.start is not None:
            centre, known = self.start.release(table, request.scale, bits)
            radius = REACH * request.scale * math.sqrt(d)
        size, count_noise = self._size(table, bits)
        ball = _Ball(centre, float(radius or 0.0))
        failure = float(request.outside * _FAILURE) / (2 * len(self.sums))
        fewest = max(size - 4 * count_noise, 1.0)
        for mechanism in self.sums[:-1]:
            found = ball.step(table, self._cut(ball, size, failure), mechanism, size, bits)
            error = math.hypot(request.scale / math.sqrt(fewest), found.noise)
            near = length(d, failure) * error + ball.radius * 4 * count_noise / size + found.unit
            ball = min(ball, _Ball(found.centre, near), key=lambda one: one.radius)
        last = ball.step(table, self._cut(ball, size, failure), self.sums[-1], size, bits)
        drift = np.abs(last.centre - ball.centre) * count_noise / size
        deviation = np.sqrt(request.scale**2 / fewest + last.noise**2 + drift**2)
        tail = float(request.outside * (1 - _FAILURE)) / 2
        half = np.where(known, -float(special.ndtri(tail)) * deviation + last.unit, np.inf)
        ends = last.centre - half, last.centre + half
        return Estimate(last.centre, *ends, event=self.event, confidence=1 - request.outside, private=bits.private)

    def _cut(self, ball: _Ball, size: float, failure: float) -> float:
        """Returns the radius that holds all rows, if the ball holds the mean."""
        return ball.radius + self.request.scale * length(self.dimension, failure / size)

    def _size(self, table: Floats, bits: Bits) -> tuple[float, float]:
        """Returns how many rows there are, public or noisy, and the deviation of that."""
        if self.count is None:
            return float(max(len(table), 1)), 0.0
        return max(float(self.count.release(len(table), bits=bits)), 1.0), float(self.count.sigma)


@dataclass(frozen=True, slots=True)
class _Found:
    """A noisy mean, the deviation of its noise in each coordinate, and what its unit of rounding was."""

    centre: Floats
    noise: float
    unit: float


@dataclass(frozen=True, slots=True, eq=False)
class _Ball:
    """Where the mean is."""

    centre: Floats
    radius: float

    def step(self, table: Floats, cut: float, mechanism: Gaussian, size: float, bits: Bits) -> _Found:
        """Returns the mean of rows clipped to the distance `cut` from the centre."""
        unit = cut / UNITS
        total = clipped_sum(table, self.centre, unit)
        noisy = np.asarray(mechanism.release(total, bits=bits), dtype=np.float64)
        return _Found(self.centre + noisy * (unit / size), float(mechanism.sigma) * unit / size, unit)


def clipped_sum(table: Floats, centre: Floats, unit: float) -> NDArray[np.int64]:
    """Returns the sum over rows of x - centre in whole units, each row alone shrunk to at most UNITS."""
    return np.asarray(within(whole(table - centre, 1 / unit), UNITS).sum(axis=0), dtype=np.int64)


def length(dimension: int, failure: float) -> float:
    """Returns what the length of a standard normal vector hardly ever exceeds (Laurent, Massart 2000)."""
    tail = math.log(1 / failure)
    return math.sqrt(dimension + 2 * math.sqrt(dimension * tail) + 2 * tail)


def gaussian(multiplier: Fraction, sensitivity: int) -> Gaussian:
    """Returns the noise of one sum."""
    return Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=sensitivity)


def table_of(X: Any) -> tuple[Floats, bool]:
    """Returns rows of floats, and whether a vector was given."""
    given = np.asarray(X)
    flat = given.ndim == 1
    return matrix(given[:, None] if flat else given), flat


def spread_over(centre: Any, dimension: int) -> Floats:
    """Returns a public centre with as many entries as rows have."""
    try:
        found = np.broadcast_to(np.asarray(centre, dtype=np.float64), (dimension,)).astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter("centre", centre, f"to be a number or {dimension} numbers") from None
    if not np.isfinite(found).all():
        raise InvalidParameter("centre", centre, "to be finite")
    return found
