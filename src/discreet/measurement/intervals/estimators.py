"""Estimators: how aggregates follow from released numbers, with variances and intervals. Post-processing.

Intervals hold the aggregate of the kept, clipped rows but for the stated probability, which is that of the noise. What
is rounded is not random: values to the grid on which they are added up, totals to the one of their noise. Intervals are
wider by as much as that can matter, for as many values as there may be by the same noisy statistics.

Values are defined for all integers, however small or negative a noisy count is, and ends stay within what any rows
could give.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from discreet.dataclass import dataclass
from discreet.exact import float_above, float_below
from discreet.measurement.intervals.arithmetic import Ends, Floats
from discreet.measurement.intervals.noise import ULPS, Noise, NoiseTerms, real_values
from discreet.measurement.releases.additive import Integers, LinearCombination
from discreet.measurement.releases.grids import MOST_ROWS
from discreet.plan.post.outputs import Cell, NoisyColumn, NoisyNumber

T = TypeVar("T")

COUNTED = Fraction(1, 1000)
"""Of the risk of a sum: that its values are more than their noisy number tells."""

_FAR = 1 << 60  # numerators of 64 bits are no larger either
_NARROWINGS = 4  # each brings an interval of a mean nearer to its limit; all of them are valid


class Estimator(ABC):
    """Computes an aggregate from the released numbers of a group, and how wrong that is."""

    __slots__ = ()

    @abstractmethod
    def variance(self, noise: Noise) -> Fraction:
        """Returns the variance of the error that noise makes, in units in which estimators of one kind compare."""

    @abstractmethod
    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> Sequence[Cell]:
        """Returns the aggregate of each row of released numbers, its interval missing with at most this probability."""

    def error(self, noise: Noise, outside: Fraction, fewest: int | None) -> Fraction | float:
        """Returns how far it may be from the truth whatever comes out; infinite if nothing can be said beforehand.

        Args:
            noise: of the statistics.
            outside: the probability of more.
            fewest: a number of values that there are at least, if one is known.
        """
        del noise, outside, fewest
        return math.inf

    @property
    def total(self) -> TotalEstimator | None:
        """Returns the same as a sum of statistics, if it is one: sums over groups are such sums, too."""
        return None

    @property
    def values(self) -> LinearCombination | None:
        """Returns the number of values that it rests on, where something counts them."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns what a reader must know of its numbers."""
        return ()


@dataclass(frozen=True, slots=True)
class TotalEstimator(Estimator):
    """An aggregate that is a weighted sum of statistics.

    Args:
        linear: the sum.
        whole: whether the exact one is a whole number.
        rounding: how far the rounding of a value has moved it at most.
        values: how many there are, where something counts them.
        positive: whether nothing negative is added.
    """

    linear: LinearCombination
    whole: bool
    rounding: Fraction = Fraction(0)
    values: LinearCombination | None = None
    positive: bool = False

    @property
    def most_rounding(self) -> Fraction:
        """Returns how far the rounding of all values has moved it, however many there are."""
        return self.rounding * MOST_ROWS

    @property
    def total(self) -> TotalEstimator:
        """Returns the estimator itself, which is a total already."""
        return self

    def variance(self, noise: Noise) -> Fraction:
        """Returns that of the sum."""
        return noise.variance(self.linear)

    def miss(self, noise: Noise, outside: Fraction) -> Fraction:
        """Returns a distance that noise and rounding exceed with at most this probability, but for that of values.

        Each value that there is was moved by `rounding` at most. Where their number is among the statistics, a
        thousandth of the risk is that it is larger than the noisy one by more than was added here; elsewhere all that a
        table can have are counted.
        """
        if self.values is None or not self.rounding:
            return noise.reach(self.linear, outside) + self.most_rounding
        share = outside * COUNTED
        return noise.reach(self.linear, outside - share) + self.rounding * noise.reach(self.values, share)

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> Sequence[NoisyNumber]:
        """Returns sums with the same error for all; one that is whole is rounded, and its interval has whole ends.

        See `miss` for the rounding of values; where their noisy number is negative, it counts as zero.
        """
        if self.whole:
            return _whole_totals(self.linear, rows, noise.reach(self.linear, outside))
        reach, values = self.miss(noise, outside), _exact(self.linear, rows)
        numbers = [Fraction(0)] * len(values) if self.values is None else _exact(self.values, rows)
        far = [reach + self.rounding * max(number, Fraction(0)) for number in numbers]
        return [NoisyNumber(value, value - away, value + away) for value, away in zip(values, far, strict=True)]

    def error(self, noise: Noise, outside: Fraction, fewest: int | None) -> Fraction | float:
        """Returns what noise, and the rounding of as many values as a table may have, make at most."""
        del fewest
        if not self.whole:
            return self.miss(noise, outside) + self.most_rounding * (self.values is not None)
        reach = noise.reach(self.linear, outside)
        halves = any(weight.denominator > 1 for _, weight in self.linear.weights)
        return math.floor(reach + Fraction(halves, 2))


def adapt_estimator(estimator: Estimator, *, whole: bool) -> Estimator:
    """Returns the same estimator for statistics that were fitted to each other; they need not be whole numbers.

    Args:
        estimator: for statistics as they were released.
        whole: whether those that were fitted are whole numbers; sums of them are, if they add up in no parts.
    """
    if not isinstance(estimator, TotalEstimator):
        return estimator
    kept = estimator.whole and whole and all(weight.denominator == 1 for _, weight in estimator.linear.weights)
    return dataclasses.replace(estimator, whole=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEstimator(Estimator):
    """An aggregate that is centre + top / bottom and lies between two public ends; bottom counts values.

    Args:
        top: a sum of values, counted from the centre.
        bottom: their number.
        centre: where the top counts from.
        low: the smallest value.
        high: the largest.
        rounding: how far the rounding of a value has moved it at most.
    """

    top: LinearCombination
    bottom: LinearCombination
    centre: Fraction
    low: Fraction
    high: Fraction
    rounding: Fraction = Fraction(0)

    @property
    def values(self) -> LinearCombination:
        """Returns the count of values, which is the bottom of the ratio."""
        return self.bottom

    @property
    def width(self) -> Fraction:
        """Returns the distance of the two ends."""
        return self.high - self.low

    def variance(self, noise: Noise) -> Fraction:
        """Returns that of the top less the mean times the bottom, which is the mean's times the square of its count.

        A mean's error depends on how far it is from the centre: half way to the ends is assumed.
        """
        return noise.variance(self.top) + (self.width / 4) ** 2 * noise.variance(self.bottom)

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> NoisyColumn:
        """Returns means, ends rounded outwards within the bounds."""
        found = self.ends(noise, rows, float(outside))
        width, centre = float(self.width), float(self.centre)
        least, most = float_below(self.low), float_above(self.high)
        slack = ULPS * (abs(centre) + width)
        lows = np.maximum(centre + found.low * width - slack, least)
        highs = np.minimum(centre + found.high * width + slack, most)
        return NoisyColumn(np.clip(centre + found.value * width, lows, highs), lows, highs)

    def ends(self, noise: Noise, rows: Integers, outside: float) -> Ends:
        """Returns means, counted from the centre in units of the width, with their intervals.

        An interval holds all m whose residual top - m bottom is within reach of its noise, as Fieller's sets are.

        At the mean of the values on their grid the exact residual is zero, so the noisy one is noise and the rounding
        of totals alone, whose reach is known for each m. It grows towards the ends of an interval of m; the larger of
        the two gives a smaller interval, and so on. The mean of the values themselves is no further away than rounding
        moves one of them.
        """
        top = self.top * (1 / self.width)  # in units of the width nothing is too large for a double
        made = NoiseTerms.of(noise, [top, self.bottom])
        noisy_top, noisy_bottom = real_values(top, rows), real_values(self.bottom, rows)
        least, most = (float((end - self.centre) / self.width) for end in (self.low, self.high))
        moved = float_above(self.rounding / self.width)
        low, high = np.full(len(rows), least - moved), np.full(len(rows), most + moved)
        farthest = made.residual_reaches(least - moved, most + moved, len(rows), outside)
        for _ in range(_NARROWINGS):
            low, high = _narrow_interval(low, high, noisy_top, noisy_bottom, farthest(low, high))
        value = noisy_top / np.maximum(noisy_bottom, 1.0)
        return Ends(value, low - moved, high + moved).clip_to(least, most)

    def error(self, noise: Noise, outside: Fraction, fewest: int | None) -> float:
        """Returns how far a mean of at least so many values may be from the true one.

        The error is the noise of the residual top - m bottom at the true mean m, over the noisy count. The residual's
        reach is largest at an end of the bounds; a tenth of the risk is that the count comes out too small.
        """
        if fewest is None:
            return math.inf
        share = outside / 10
        left = fewest - float(noise.reach(self.bottom, 2 * share))  # one of the two sides
        if left < 1:
            return math.inf
        made = NoiseTerms.of(noise, [self.top * (1 / self.width), self.bottom])
        ends = np.array([float((end - self.centre) / self.width) for end in (self.low, self.high)])
        far = float(np.max(made.reaches(np.stack([np.ones_like(ends), -ends]), float(outside - share))))
        return min(far / left * (1 + ULPS) + float_above(self.rounding / self.width), 1.0) * float_above(self.width)


def sum_over_groups(part: T, shifts: Sequence[int]) -> T:
    """Returns an estimator whose every sum of statistics goes over several groups that stand side by side.

    Args:
        part: the estimator of one group, or a part of it.
        shifts: where the statistics of each group begin.
    """
    found: Any = part
    if isinstance(found, LinearCombination):
        found = LinearCombination(
            tuple(sorted((place + shift, weight) for place, weight in found.weights for shift in shifts))
        )
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        names = [field.name for field in dataclasses.fields(found)]
        found = type(found)(**{name: sum_over_groups(getattr(found, name), shifts) for name in names})
    result: T = found
    return result


def counts(
    noise: Noise, number: LinearCombination, rows: Integers, outside: Fraction, *, fewest: int
) -> tuple[Floats, ...]:
    """Returns how many values there are, the fewest and the most there may be; each as many as `fewest` at least."""
    reach = noise.reach(number, outside)
    tops, bottom = number.values(rows)
    far = reach * bottom
    ends = [[float(-((far - n) // bottom)), float((far + n) // bottom)] for n in tops]
    value = [float((2 * n + bottom) // (2 * bottom)) for n in tops]
    low, high = np.array(ends, dtype=np.float64).reshape(len(tops), 2).T
    best = np.array(value, dtype=np.float64)
    return tuple(np.maximum(part, float(fewest)) for part in (best, np.minimum(low, best), np.maximum(high, best)))


def _narrow_interval(low: Floats, high: Floats, top: Floats, bottom: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Returns the part of an interval where |top - m bottom| <= reach; its nearest point if there is none."""
    counted = np.abs(bottom) > 0
    safe = np.where(counted, bottom, 1.0)
    far = reach + ULPS * (np.abs(top) + reach)
    first, second = (top - far) / safe, (top + far) / safe
    left, right = np.where(counted, np.minimum(first, second), low), np.where(counted, np.maximum(first, second), high)
    return np.clip(left, low, high), np.clip(right, low, high)


def _exact(linear: LinearCombination, rows: Integers) -> list[Fraction]:
    numerators, denominator = linear.values(rows)
    return [Fraction(n, denominator) for n in numerators]


def _whole_totals(linear: LinearCombination, rows: Integers, reach: Fraction) -> Sequence[NoisyNumber]:
    """Returns the nearest whole number and those within reach; at a low confidence there may be none of them."""
    numerators, denominator = linear.numerators(rows)
    n: Any = numerators
    far = math.floor(reach * denominator)  # a whole distance from the numerator is within reach up to here
    if far > _FAR or denominator > _FAR:
        n = n.astype(object)
    elif len(n) == 1 and n.dtype != object:  # as below, in Python's integers: arrays of one number take much longer
        n = int(n[0])
        best = (2 * n + denominator) // (2 * denominator)
        ends = min(best, -((far - n) // denominator)), max(best, (n + far) // denominator)
        return NoisyColumn(*np.array([[best], ends[:1], ends[1:]], dtype=np.int64))
    value = (2 * n + denominator) // (2 * denominator)
    low, high = np.minimum(value, -((far - n) // denominator)), np.maximum(value, (n + far) // denominator)
    if n.dtype != object:
        return NoisyColumn(value, low, high)
    return [NoisyNumber(*one) for one in zip(value.tolist(), low.tolist(), high.tolist(), strict=True)]
