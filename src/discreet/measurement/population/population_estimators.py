"""Totals and means of a population, from the released numbers of a random sample of its people.

*What is estimated.* Each person i of the population has a part y_i of a total: what their rows add to it within limits
and bounds. It does not depend on who else was drawn, since rows are kept by a rule within one person. The total of a
population is the sum of y_i over all N people; its mean is the u for which the parts sum (x - u) over the rows of each
person add up to zero. People are drawn, not rows: several rows of one person are one cluster.

*Sampling error.* Of n people drawn of N without replacement, the sum of parts has the variance
n (1 - n/N) S^2, S^2 = sum (y_i - mean)^2 / (N - 1) (Cochran 1977, Theorem 2.2). S^2 is not released. It is bounded for
each value that the estimate may have:

- parts within [a, b] with mean m have a mean square deviation of at most (b - m)(m - a) (Bhatia, Davis 2000);
- a person with at most k rows has a squared part (sum (x - u))^2 <= k sum (x - u)^2 (Cauchy, Schwarz), and rows within
  [a, b] with mean u have a mean (x - u)^2 of at most (b - u)(u - a).

So an interval holds all values that noise and sampling, at the variance of that very value, leave possible, as Wilson's
(1927) and Fieller's (1954) do: it does not collapse at a count of zero, and needs no estimate of a variance. Where the
same question releases a variance, its upper end is taken if it is smaller; see `_Squares`.

*Approximation.* The sampling error is taken as normal, with a correction of half the largest part that a person can
have for what is not continuous. Noise is not approximated. Samples should have 30 people or more.

*Strata* that were drawn in proportion are one sample whose variance is no larger: between strata nothing varies. What
rounding to whole people leaves can move the expected sum by no more than `unevenness` times the largest part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.dataclass import dataclass
from discreet.measurement.aggregates.variance import VarianceEstimator
from discreet.measurement.intervals.arithmetic import Ends, Floats
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, TotalEstimator
from discreet.measurement.intervals.noise import ULPS, Noise, NoiseTerms, real_values
from discreet.measurement.population.combined_reach import combined_reaches, noise_risks
from discreet.measurement.releases.additive import Integers
from discreet.plan.model.sample import SimpleSample
from discreet.plan.post.outputs import Cell, NoisyColumn, NoisyNumber

_PARTS = 1.0, 1.0, 1.0, 0.125, 0.125, 0.125
"""Parts of an interval that are looked at on either side of its best value, one after the other; see `_narrow`."""

_EACH = 3  # as often the reaches of a mean's noise are taken anew: they hold for all narrower intervals
_TINY = 1e-9
_SHARE = Fraction(1, 20)
"""Of the risk: that a mean rests on more values than is supposed, and each of what a released variance rests on."""

_SPREAD = 4  # numbers: a variance, a mean, how many values there are, and the squares of the population

_LARGEST = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationTotal(Estimator):
    """A total of the population, as the total of the sample times N/n.

    Args:
        base: the total of the sample.
        sample: how it was drawn.
        low: the smallest part of one person.
        high: the largest.
        mean: of a sum, the mean of the same values, if it is released with their variance.
    """

    base: TotalEstimator
    sample: SimpleSample
    low: Fraction
    high: Fraction
    mean: PopulationRatio | None = None

    def variance(self, noise: Noise) -> Fraction:
        """Returns the variance of the error that noise makes."""
        return self.base.variance(noise) * self.sample.factor**2

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> Sequence[Cell]:
        """Returns totals, ends rounded outwards; a value outside of what is possible stays as it is.

        Whole totals have whole ends.
        """
        factor, found = float(self.sample.factor), self.expected(noise, rows, outside)
        moved = float(self.sample.unevenness * max(abs(self.low), abs(self.high)))
        least, most = (float(self.sample.population * end) for end in (self.low, self.high))
        slack = ULPS * factor * (np.abs(found.low) + np.abs(found.high) + moved)
        low = np.minimum(np.maximum((found.low - moved) * factor - slack, least), found.value * factor)
        high = np.maximum(np.minimum((found.high + moved) * factor + slack, most), found.value * factor)
        return (
            _whole(found.value * factor, low, high) if self.base.whole else NoisyColumn(found.value * factor, low, high)
        )

    def expected(self, noise: Noise, rows: Integers, outside: Fraction) -> Ends:
        """Returns the sum that is expected of a sample of this size, with the released one as its value."""
        left = outside * (1 - (0 if self.mean is None else _SPREAD * _SHARE))
        risks, values = noise_risks(left), real_values(self.base.linear, rows)
        least, most = (np.full(len(rows), float(end * self.sample.size)) for end in (self.low, self.high))
        square = self._square(noise, rows, outside * _SHARE)
        noisy = np.array([[float(self.base.miss(noise, risk))] for risk in risks])
        reach = _Reach(
            noise=noisy + self._rounding(rows),
            risks=risks,
            deviations=partial(self._deviations, ends=(least, most), square=square),
            outside=left,
            jump=float((self.high - self.low) / 2) if self.sample.missed else 0.0,
        )
        low, high = least, most
        for part in _PARTS:
            low, high = _narrow(low, high, values, part, reach.far)
        return Ends(values, low, high)

    def _rounding(self, rows: Integers) -> Floats:
        """Returns how far the rounding of values has moved each sum, by their noisy number (`TotalEstimator.miss`)."""
        if self.base.values is None or not self.base.rounding:
            return np.zeros(len(rows))
        return float(self.base.rounding) * np.maximum(real_values(self.base.values, rows), 0.0) * (1 + ULPS)

    def _deviations(self, low: Floats, high: Floats, *, ends: tuple[Floats, Floats], square: Floats) -> Floats:
        """Returns the largest standard deviation of the sum, wherever in an interval its expectation is."""
        found = np.minimum(_largest_product(low, high, *ends) / self.sample.size, square)
        return np.asarray(np.sqrt(float(self.sample.design_factor) * found) * (1 + ULPS))

    def _square(self, noise: Noise, rows: Integers, share: Fraction) -> Floats:
        """Returns the sum of squared parts that is expected of a sample, by the released variance of its values."""
        if self.mean is None:
            return np.full(len(rows), np.inf)
        width, zero = float(self.mean.width), np.full(len(rows), float(-self.mean.centre / self.mean.width))
        farthest = float(max(abs(self.mean.low), abs(self.mean.high)) / self.mean.width)
        found = self.mean.squares(noise, rows, share).at(zero, zero, farthest)
        return np.asarray(self.mean.rows * found * width**2 * (1 + ULPS))


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationRatio(RatioEstimator):
    """A mean of the population.

    Args:
        sample: how it was drawn.
        rows: how many values one person has at most.
        spread: the variance of the same values, if it is released as well.
    """

    sample: SimpleSample
    rows: int
    spread: VarianceEstimator | None = None

    def ends(self, noise: Noise, rows: Integers, outside: float) -> Ends:
        """Returns means, counted from the centre in units of the width, with their intervals.

        An interval holds all m whose residual top - m bottom is within reach of its noise and of the sampling error of
        the parts sum (x - m), whose expectation is zero at the mean of the population; see `RatioEstimator.ends`.
        """
        top, share = self.top * (1 / self.width), Fraction(outside) * _SHARE
        noisy_top, noisy_bottom = real_values(top, rows), real_values(self.bottom, rows)
        least, most = (float((end - self.centre) / self.width) for end in (self.low, self.high))
        moved = float(self.rounding / self.width) * (1 + ULPS)
        low, high = np.full(len(rows), least - moved), np.full(len(rows), most + moved)
        reach = _Reach(
            noise=np.zeros(0),
            risks=noise_risks(left := Fraction(outside) - share * (1 if self.spread is None else 1 + _SPREAD)),
            deviations=self._deviations(noise, rows, share, (least, most)),
            outside=left,
            jump=self._uneven + (self.rows / 2 if self.sample.missed else 0.0),
            bottom=np.maximum(noisy_bottom, _TINY),  # of no values at all nothing is said
        )
        made, count = NoiseTerms.of(noise, [top, self.bottom]), len(rows)
        farthest = [made.residual_reaches(low[0], high[0], count, float(risk)) for risk in reach.risks] if count else []
        for step, part in enumerate(_PARTS if count else ()):
            if step % _EACH == 0:
                reach = replace(reach, noise=np.stack([each(low, high) for each in farthest]))
            low, high = _narrow(low, high, noisy_top / reach.bottom, part, reach.far)
        value = noisy_top / np.maximum(noisy_bottom, 1.0)
        return Ends(value, low - moved, high + moved).clip_to(least, most)

    @property
    def _uneven(self) -> float:
        return float(self.sample.unevenness * self.rows)

    def _deviations(
        self, noise: Noise, rows: Integers, share: Fraction, ends: tuple[float, float]
    ) -> Callable[[Floats, Floats], Floats]:
        """Returns the largest standard deviation of the residual, if the mean lies between two ends."""
        counted, squares = self.counted.expected(noise, rows, share).high, self.squares(noise, rows, share)
        factor = float(self.sample.design_factor * self.rows)

        def deviations(first: Floats, last: Floats) -> Floats:
            square = counted * _largest_product(first, last, *ends) + self._uneven
            return np.sqrt(factor * np.minimum(square, squares.at(first, last))) * (1 + ULPS)

        return deviations

    @property
    def counted(self) -> PopulationTotal:
        """Returns the number of values that the mean rests on."""
        number = TotalEstimator(self.bottom, whole=True)
        return PopulationTotal(base=number, sample=self.sample, low=Fraction(0), high=Fraction(self.rows))

    def squares(self, noise: Noise, rows: Integers, share: Fraction) -> ReleasedSquares:
        """Returns what a released variance says of squares; nothing if there is none."""
        if self.spread is None:
            return ReleasedSquares(np.full(len(rows), np.inf))
        reach = float(noise.reach(self.bottom, share))
        return ReleasedSquares(
            values=np.maximum(real_values(self.bottom, rows) + reach, 0.0) * (1 + ULPS),
            variance=self.spread.population(noise, rows, float(share)).high,
            mean=RatioEstimator.ends(self, noise, rows, float(share)),
            spare=math.sqrt(2 * self.rows * math.log(1 / share)),
        )


@dataclass(frozen=True, slots=True)
class ReleasedSquares:
    """The sum of (x - u)^2 that is expected of a sample, by its released variance, in squares of the width.

    Let Q be the sum of (x - u)^2 over the rows of a sample, q that of one person: with at most k rows no further than d
    from u, it is between 0 and k d^2. For t > 0, e^(-tq) <= 1 - tq + t^2 k d^2 q / 2, so that
    P(Q <= E - z) <= e^(-z^2 / (2 k d^2 E)) for the expectation E of Q, also for people drawn without replacement
    (Hoeffding 1963, Theorem 4). So sqrt(E) <= sqrt(Q) + d sqrt(2 k ln(1/risk)) but for the risk. And Q is the number of
    values times the sum of their variance and the squared distance of their mean from u.

    Args:
        values: how many a sample has at most; infinite if no variance is released.
        variance: theirs, at most.
        mean: their mean.
        spare: sqrt(2 k ln(1/risk)).
    """

    values: Floats
    variance: Floats | None = None
    mean: Ends | None = None
    spare: float = 0.0

    def at(self, low: Floats, high: Floats, farthest: float = 1.0) -> Floats:
        """Returns the largest sum for any u in an interval, from which values are so far away at most."""
        if self.variance is None or self.mean is None:
            return self.values
        apart = np.maximum(high - self.mean.low, self.mean.high - low)
        found = np.sqrt(self.values * (self.variance + apart**2)) + farthest * self.spare
        return np.asarray(found**2 * (1 + ULPS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reach:
    """How far noise and sampling reach together, by where the true value is.

    Args:
        noise: reaches of noise, a row for each risk.
        risks: of the noise.
        deviations: the largest standard deviation of the sampling error, if the true value lies between two ends.
        outside: the probability of more.
        jump: what is added for sums that are not continuous.
        bottom: by what errors are divided.
    """

    noise: Floats
    risks: Sequence[Fraction]
    deviations: Callable[[Floats, Floats], Floats]
    outside: Fraction
    jump: float
    bottom: Floats | float = 1.0

    def far(self, first: Floats, last: Floats) -> Floats:
        """Returns how far a released value is from a true one between two ends, but for the risk."""
        found = combined_reaches(self.noise, self.risks, self.deviations(first, last), self.outside)
        return np.asarray((found + self.jump) / self.bottom)


def _narrow(
    low: Floats, high: Floats, best: Floats, part: float, reach: Callable[[Floats, Floats], Floats]
) -> tuple[Floats, Floats]:
    """Returns what is left of intervals without values that are further from the best one than errors reach.

    Of the values below the best one, those in the lowest part are judged by what errors reach anywhere in that part;
    those above likewise. What is left out was never possible, so that all steps are valid, and each is nearer to the
    values whose own errors reach the best one.

    Args:
        low: the lower ends.
        high: the upper ends.
        best: the values that were released.
        part: how much of either side is judged.
        reach: how far errors reach at most if the true value lies between two ends.
    """
    middle, slack = np.clip(best, low, high), ULPS * np.abs(best)
    first, last = low + (middle - low) * part, high - (high - middle) * part
    below, above = reach(low, first), reach(last, high)
    left, right = best - below * (1 + ULPS) - slack, best + above * (1 + ULPS) + slack
    return np.maximum(low, np.minimum(first, left)), np.minimum(high, np.maximum(last, right))


def _largest_product(low: Floats, high: Floats, first: Floats | float, last: Floats | float) -> Floats:
    """Returns the largest (last - m)(m - first) for m in an interval."""
    middle = np.clip((np.asarray(first) + last) / 2, low, high)
    return np.maximum((last - middle) * (middle - first), 0.0)


def _whole(value: Floats, low: Floats, high: Floats) -> Sequence[Cell]:
    """Returns the nearest whole numbers with whole ends."""
    if not np.all(np.maximum(np.abs(low), np.abs(high)) < _LARGEST):
        parts = zip(value.tolist(), low.tolist(), high.tolist(), strict=True)
        return [_whole_number(*part) for part in parts]
    best, ends = np.rint(value).astype(np.int64), (np.ceil(low).astype(np.int64), np.floor(high).astype(np.int64))
    return NoisyColumn(best, np.minimum(ends[0], best), np.maximum(ends[1], best))


def _whole_number(value: float, low: float, high: float) -> NoisyNumber:
    best = round(value)
    return NoisyNumber(best, min(math.ceil(low), best), max(math.floor(high), best))
