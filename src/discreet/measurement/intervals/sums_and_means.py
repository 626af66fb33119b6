"""How wrong aggregates are: variances and intervals of what is computed from noisy statistics. Post-processing.

Intervals hold the aggregate of the kept, clipped rows but for the stated probability, which is that of the noise. What
is rounded is not random: values to the grid on which they are added up, totals to the one of their noise. Intervals are
wider by as much as that can matter, for as many values as there may be by the same noisy statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.errors import InternalError
from discreet.exact import float_above, float_below
from discreet.measurement.aggregates import Joint, Linear, Ratio, Recipe, Total
from discreet.measurement.aggregates.ranked import Ranked
from discreet.measurement.intervals.covariances import joint
from discreet.measurement.intervals.variances import Ends, Floats, Integers, variances
from discreet.measurement.releases.mode import Modal
from discreet.mechanisms.base import Law
from discreet.mechanisms.sums import gaussian_reaches, laplace_reaches, laplace_sum_reach
from discreet.mechanisms.tails import discrete_gaussian_reach, laplace_reach
from discreet.plan.post.outputs import Noisy

_LARGEST = Fraction(10**150)
_ULPS = 2.0**-50  # what a few operations on doubles lose
COUNTED = Fraction(1, 1000)
"""Of the risk of a sum: that its values are more than their noisy number tells."""

_NARROWINGS = 4  # each brings an interval of a mean nearer to its limit; all of them are valid


@dataclass(frozen=True, slots=True)
class Noise:
    """The law of the noise of all statistics of a reading, its scale for each, and which were rounded before it."""

    law: Law
    scales: tuple[Fraction, ...]
    rounded: tuple[bool, ...] = ()

    def repeated(self, count: int) -> Noise:
        """That of the statistics of so many groups side by side."""
        return replace(self, scales=self.scales * count, rounded=self.rounded * count)

    def rounding(self, linear: Linear) -> Fraction:
        """How far a sum may be moved by the rounding of its statistics: half a step of each at most."""
        if not any(self.rounded):
            return Fraction(0)
        return sum((abs(weight) for place, weight in linear.weights if self.rounded[place]), Fraction(0)) / 2

    def variance(self, recipe: Recipe | Ranked | Modal) -> Fraction:
        """Of the noise of an aggregate; of a mean, times the square of its count; of a quantile or mode, in rows.

        A mean's error depends on how far it is from the centre: half way to the ends is assumed.
        """
        if isinstance(recipe, Ranked | Modal):
            return recipe.variance
        if isinstance(recipe, Total):
            return self._variance(recipe.linear)
        if not isinstance(recipe, Ratio):
            return sum((weight**2 * self.variance(part) for weight, part in recipe.parts), Fraction(0))
        return self._variance(recipe.top) + ((recipe.high - recipe.low) / 4) ** 2 * self._variance(recipe.bottom)

    def _variance(self, linear: Linear) -> Fraction:
        factor = 2 if self.law == "laplace" else 1
        return factor * sum(((weight * self.scales[place]) ** 2 for place, weight in linear.weights), Fraction(0))

    def certain_reach(self, linear: Linear, outside: Fraction) -> Fraction:
        """A distance that the noise exceeds with at most this probability, proven with directed rounding.

        Raises:
            InternalError: for sums of Gaussian or of unequal noise, which no selection of keys looks at.
        """
        sizes = {abs(weight) * self.scales[place] for place, weight in linear.weights}
        ((place, weight), *more) = linear.weights
        if not more:
            return abs(weight) * _single(self.law, self.scales[place], outside)
        if self.law != "laplace" or len(sizes) > 1:
            raise InternalError("The size of a group has noise of several kinds.")
        return abs(weight) * laplace_sum_reach(self.scales[place], len(linear.weights), outside)

    def reach(self, linear: Linear, outside: Fraction) -> Fraction:
        """A distance that the noise of a sum and its rounding exceed with at most this probability."""
        sizes = {abs(weight) * self.scales[place] for place, weight in linear.weights}
        if len(linear.weights) == 1 or (self.law == "laplace" and len(sizes) == 1 and len(linear.weights) <= 3):
            return self.certain_reach(linear, outside) + self.rounding(linear)
        largest = max(sizes)
        made = _Terms.of(self, [linear * (1 / largest)])
        return largest * Fraction(float(made.reaches(np.ones((1, 1)), float(outside))[0]))

    def miss(self, total: Total, outside: Fraction) -> Fraction:
        """A distance that noise and rounding exceed with at most this probability, but for the rounding of values.

        Each value that there is was moved by the total's error at most. Where their number is among the statistics, a
        thousandth of the risk is that it is larger than the noisy one by more than was added here; elsewhere all that a
        table can have are counted.
        """
        if total.values is None or not total.error:
            return self.reach(total.linear, outside) + total.most_rounding
        share = outside * COUNTED
        return self.reach(total.linear, outside - share) + total.error * self.reach(total.values, share)

    def mean_miss(self, recipe: Ratio, fewest: int, outside: Fraction) -> float:
        """How far a mean of at least so many values may be from the true one, but for this probability.

        The error is the noise of the residual top - m bottom at the true mean m, over the noisy count. The residual's
        reach is largest at an end of the bounds; a tenth of the risk is that the count comes out too small.
        """
        share, width = outside / 10, recipe.high - recipe.low
        left = fewest - float(self.reach(recipe.bottom, 2 * share))  # one of the two sides
        if left < 1:
            return math.inf
        made = _Terms.of(self, [recipe.top * (1 / width), recipe.bottom])
        ends = np.array([float((end - recipe.centre) / width) for end in (recipe.low, recipe.high)])
        far = float(np.max(made.reaches(np.stack([np.ones_like(ends), -ends]), float(outside - share))))
        return min(far / left * (1 + _ULPS) + float_above(recipe.error / width), 1.0) * float_above(width)

    def finish(self, recipe: Recipe | Ranked, rows: Integers, outside: Fraction) -> list[Noisy]:
        """The aggregate of each row of noisy statistics, with its interval."""
        if isinstance(recipe, Ranked):
            return recipe.finish(rows, outside)
        if isinstance(recipe, Total):
            return self._totals(recipe, rows, outside)
        if isinstance(recipe, Ratio):
            return _means(recipe, self.ratios(recipe, rows, float(outside)))
        if isinstance(recipe, Joint):
            return joint(self, recipe, rows, outside)
        return variances(self, recipe, rows, outside)

    def ratios(self, recipe: Ratio, rows: Integers, outside: float) -> Ends:
        """Means, counted from the centre in units of the width, with their intervals.

        An interval holds all m whose residual top - m bottom is within reach of its noise, as Fieller's sets are.

        At the mean of the values on their grid the exact residual is zero, so the noisy one is noise and the rounding
        of totals alone, whose reach is known for each m. It grows towards the ends of an interval of m; the larger of
        the two gives a smaller interval, and so on. The mean of the values themselves is no further away than rounding
        moves one of them.
        """
        width = recipe.high - recipe.low
        top = recipe.top * (1 / width)  # in units of the width nothing is too large for a double
        made = _Terms.of(self, [top, recipe.bottom])
        noisy_top, noisy_bottom = _float_values(top, rows), _float_values(recipe.bottom, rows)
        least, most = (float((end - recipe.centre) / width) for end in (recipe.low, recipe.high))
        error = float_above(recipe.error / width)
        low, high = np.full(len(rows), least - error), np.full(len(rows), most + error)
        for _ in range(_NARROWINGS):
            reaches = [made.reaches(np.stack([np.ones_like(m), -m]), outside) for m in (low, high)]
            low, high = _narrowed(low, high, noisy_top, noisy_bottom, np.maximum(*reaches))
        value = noisy_top / np.maximum(noisy_bottom, 1.0)
        return Ends(value, low - error, high + error).clipped(least, most)

    def _totals(self, recipe: Total, rows: Integers, outside: Fraction) -> list[Noisy]:
        """Sums with the same error for all; one that is whole is rounded, and its interval has whole ends.

        See `miss` for the rounding of values; where their noisy number is negative, it stands for none.
        """
        if recipe.whole:
            return _whole_totals(recipe, rows, self.reach(recipe.linear, outside))
        reach, values = self.miss(recipe, outside), _exact(recipe.linear, rows)
        numbers = [Fraction(0)] * len(values) if recipe.values is None else _exact(recipe.values, rows)
        far = [reach + recipe.error * max(number, Fraction(0)) for number in numbers]
        return [Noisy(value, value - away, value + away) for value, away in zip(values, far, strict=True)]


@dataclass(frozen=True, slots=True)
class _Terms:
    """Sums of statistics as arrays: the weight of each statistic in each sum, and that weight times its scale.

    A half stands for each statistic that was rounded.
    """

    noise: Noise
    steps: Floats
    sizes: Floats
    sigmas: Floats
    halves: Floats

    @classmethod
    def of(cls, noise: Noise, sums: Sequence[Linear]) -> _Terms:
        places = sorted({place for linear in sums for place, _ in linear.weights})
        weights = [[dict(linear.weights).get(place, Fraction(0)) for linear in sums] for place in places]
        scales = [noise.scales[place] for place in places]
        sizes = [[weight * scale for weight in row] for row, scale in zip(weights, scales, strict=True)]
        halves = [0.5 if any(noise.rounded) and noise.rounded[place] else 0.0 for place in places]
        return cls(noise, _reals(weights), _reals(sizes), np.asarray(_reals([scales])[0]), np.array(halves))

    def reaches(self, factors: Floats, outside: float) -> Floats:
        """How far each combination of the sums reaches; a row of factors for each sum."""
        sizes, steps = self.sizes @ factors, self.steps @ factors
        rounding = self.halves @ np.abs(steps) * (1 + _ULPS)
        if self.noise.law == "laplace":
            return laplace_reaches(sizes, steps, outside) + rounding
        return gaussian_reaches(sizes, steps, self.sigmas, outside) + rounding


def _means(recipe: Ratio, ends: Ends) -> list[Noisy]:
    """Means in units of the width as they are, ends rounded outwards within the bounds."""
    value, low, high = ends.value, ends.low, ends.high
    width, centre = float(recipe.high - recipe.low), float(recipe.centre)
    least, most = float_below(recipe.low), float_above(recipe.high)
    slack = _ULPS * (abs(centre) + width)
    lows, highs = np.maximum(centre + low * width - slack, least), np.minimum(centre + high * width + slack, most)
    values = np.clip(centre + value * width, lows, highs)
    return [Noisy(v, a, b) for v, a, b in zip(values.tolist(), lows.tolist(), highs.tolist(), strict=True)]


def _narrowed(low: Floats, high: Floats, top: Floats, bottom: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """The part of an interval where |top - m bottom| <= reach; its nearest point if there is none."""
    counted = np.abs(bottom) > 0
    safe = np.where(counted, bottom, 1.0)
    far = reach + _ULPS * (np.abs(top) + reach)
    first, second = (top - far) / safe, (top + far) / safe
    left, right = np.where(counted, np.minimum(first, second), low), np.where(counted, np.maximum(first, second), high)
    return np.clip(left, low, high), np.clip(right, low, high)


def _reals(rows: Sequence[Sequence[Fraction]]) -> Floats:
    """Numbers as doubles; what is beyond all reason is held to it."""
    return np.array([[float(min(max(x, -_LARGEST), _LARGEST)) for x in row] for row in rows], dtype=np.float64)


def _float_values(linear: Linear, rows: Integers) -> Floats:
    numerators, denominator = linear.values(rows)
    try:
        return np.array(numerators, dtype=np.float64) / float(denominator)
    except OverflowError:
        return np.asarray(_reals([[Fraction(n, denominator) for n in numerators]])[0])


def _exact(linear: Linear, rows: Integers) -> list[Fraction]:
    numerators, denominator = linear.values(rows)
    return [Fraction(n, denominator) for n in numerators]


def _whole_totals(recipe: Total, rows: Integers, reach: Fraction) -> list[Noisy]:
    numerators, denominator = recipe.linear.values(rows)
    far = math.floor(reach * denominator)  # a whole distance from the numerator is within reach up to here
    return [_whole(n, far, denominator) for n in numerators]


def _whole(numerator: int, far: int, denominator: int) -> Noisy:
    """The nearest whole number and those within reach; at a low confidence there may be none of them."""
    value = (2 * numerator + denominator) // (2 * denominator)
    low, high = -((far - numerator) // denominator), (numerator + far) // denominator
    return Noisy(value, min(value, low), max(value, high))


@lru_cache(maxsize=4096)
def _single(law: Law, scale: Fraction, outside: Fraction) -> Fraction:
    reach = laplace_reach if law == "laplace" else discrete_gaussian_reach
    return Fraction(reach(scale, outside))
