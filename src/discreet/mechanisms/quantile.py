"""Private quantiles: the exponential mechanism over all points of a public grid, drawn exactly."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Enclosure, Grid, Interval, float_above, float_below, upper
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, numeric, public_grid
from discreet.mechanisms.private_selection import above_or_infinite, choose_point
from discreet.mechanisms.ranks import OneValueEach, Pick, RankTarget
from discreet.mechanisms.value_counts import Histogram, RankLoss
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours, events

_FINE = 1 << 20  # points between the bounds unless a grid is given
_MOST_POINTS = 1 << 60
_LONGEST = 1 << 30  # of the quantile's denominator: scores stay in int64 for 2^32 values


@dataclass(frozen=True, slots=True, init=False)
class Quantile(Mechanism):
    """Releases a grid point near the q-quantile of private values that are clamped to public bounds.

    The loss of a point y is the distance of q n from the ranks that y can claim, the interval from the number of
    values below y to the number of values up to y: zero for a true quantile, also where many values are equal. Point
    y is released with probability proportional to e^(-epsilon loss / (2 sensitivity)); all points of a gap between
    values share one loss, so a gap is drawn by its number of points and then a point uniformly.

    Args:
        epsilon: above 0.
        quantile: q from 0 to 1, 1/2 for the median.
        bounds: public limits (low, high); the points are those of the grid between them.
        grid: the public grid of values and outputs; by default the coarsest one with 2^20 steps between the bounds.
        neighbours: the relation to protect.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-bounded range, as for `Exponential` (Smith 2011). One more value changes a loss by at most
    max(q, 1 - q), a replaced one by at most 1 (`ranks.RankTarget`): these are the sensitivities under ADD_REMOVE and
    REPLACE. Clamping and rounding act on each value alone.

    >>> median = Quantile(epsilon=100, quantile=0.5, bounds=(0, 10), grid=Grid.integers())
    >>> median.release([4, 4, 4, 5, 9])
    4
    """

    epsilon: Fraction
    quantile: Fraction
    bounds: tuple[Fraction, Fraction]
    grid: Grid
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: check.Number,
        quantile: check.Number,
        bounds: tuple[check.Number, check.Number],
        grid: Grid | check.Number | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        low, high = check.limits(bounds=bounds)
        share = check.share(quantile=quantile)
        if share.denominator > _LONGEST:
            raise InvalidParameter("quantile", quantile, "to have at most nine digits", "Round it.")
        assign(
            self,
            epsilon=check.positive(epsilon=epsilon),
            quantile=share,
            bounds=(low, high),
            grid=Grid.finer_than((high - low) / _FINE) if grid is None else public_grid(grid),
            neighbours=Neighbours(neighbours),
        )
        first, last = self.ends
        if not (1 <= last - first < _MOST_POINTS and max(abs(first), abs(last)) < _MOST_POINTS):
            raise InvalidParameter("grid", self.grid, "to have from 2 to 2^60 points between the bounds")

    @property
    def event(self) -> events.Event:
        """Returns what one release costs."""
        return self._pick.event

    @property
    def ends(self) -> tuple[int, int]:
        """Returns the first and the last point between the bounds, in steps."""
        low, high = self.bounds
        return math.ceil(low / self.grid.step), math.floor(high / self.grid.step)

    @property
    def rate(self) -> Fraction:
        """Returns the r of the weights e^(-r loss), with losses in units of 1 / denominator of the quantile."""
        return self._pick.rate / self.quantile.denominator

    def release(self, value: Any, *, bits: Bits | None = None) -> int | float:
        """Releases a private quantile of the values; without any values, a uniformly random point.

        Args:
            value: a vector of numbers; infinite ones are clamped like all others.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: if a value is NaN or no number, or the values are no vector.
        """
        source = source_of(bits)
        cells = self.cells(value)
        result: int | float = self.grid.value(choose_point(*cells, self.rate, source))
        return result

    def cells(self, value: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Returns starts, sizes and whole losses of runs of points of equal loss: gaps, then the distinct values."""
        first, last = self.ends
        counts = Histogram.of_values(last - first, self._steps(value) - first)
        found = counts.coarse
        return found.starts + first, found.sizes, found.least(RankLoss(self._pick, counts.values))

    @property
    def _pick(self) -> Pick:
        return Pick.of("laplace", RankTarget(self.quantile), OneValueEach(self.neighbours), self.epsilon)

    def _steps(self, value: Any) -> NDArray[np.int64]:
        values = np.asarray(numeric(value))
        if values.ndim != 1:
            raise InvalidValue("to be a vector of numbers", "Pass one number for each unit.")
        clamped = values if not values.size else self._near(values)
        return np.asarray(np.clip(self.grid.steps(clamped), *self.ends), dtype=np.int64)

    def _near(self, values: NDArray[Any]) -> NDArray[Any]:
        """Clamps values to limits just outside the bounds, so that none leaves the grid's range; NaN stays NaN."""
        low, high = self.bounds
        if values.dtype.kind == "f":
            return np.asarray(np.clip(values, float_below(low), float_above(high)))
        if values.dtype.kind in "iu":
            kind = np.iinfo(values.dtype)
            least, most = max(math.floor(low), kind.min), min(math.ceil(high), kind.max)
            return np.asarray(np.clip(values, least, most))
        return np.array([_clamp_entry(entry, low, high) for entry in values.tolist()], dtype=object)

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Returns how many ranks the released point may be off, below and above.

        It is the same for every value and every data.

        With this confidence the point's own ranks come within the distance (2 sensitivity / epsilon) ln(points / (1 -
        confidence)) of q n, because a true quantile always is among the points.

        Args:
            released: the released value, which does not matter.
            confidence: the probability of the statement, over the choice.

        >>> Quantile(epsilon=1, quantile=0.5, bounds=(0, 100), grid=1).interval(50)
        Interval(low=-7.5, high=7.5)
        """
        numeric(released)
        chance = check.probability(confidence=confidence)
        first, last = self.ends
        options = (last - first + 1) / (1 - chance)
        steps = math.floor(upper(lambda digits: Enclosure.of(options, digits).log() / self.rate))
        ranks = above_or_infinite(Fraction(steps, self.quantile.denominator))
        return Interval(-ranks, ranks)

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """Returns a release with the only ends in the value's own scale that cost nothing more: the bounds."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        released = self.release(value, bits=source)
        low, high = (
            self.grid.value(end) if end * self.grid.step == bound else rounded(bound)
            for end, bound, rounded in zip(self.ends, self.bounds, (float_below, float_above), strict=True)
        )
        return Estimate(released, low, high, self.event, confidence=chance, private=source.private)


def _clamp_entry(entry: object, low: Fraction, high: Fraction) -> Any:
    if isinstance(entry, bool) or not isinstance(entry, numbers.Real):
        raise InvalidValue("to be numbers", "Pass integers, floats or Fractions.")
    number: Any = entry
    return high if number > high else max(number, low)  # NaN compares with nothing and stays; the grid refuses it
