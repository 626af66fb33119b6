"""SKEWNESS: how far values lean to one side of their mean, from the means of values, of their squares and cubes.

With central moments m2 and m3 of n values it is sqrt(n (n - 1)) / (n - 2) m3 / m2^(3/2), as DuckDB has it. Whatever n
values are, m3 / m2^(3/2) lies within (n - 2) / sqrt(n - 1) of zero (Wilkins 1944), and so the skewness within sqrt(n).

How far one row moves the sums of powers that it needs is argued in `releases.moments`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.dataclass import dataclass
from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.aggregates.variance import VarianceEstimator, variance_of
from discreet.measurement.intervals.arithmetic import ULPS, Ends, Floats, product, quotient
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, counts
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.argument_moments import PowerSums, power_error
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import MomentNeed, Need
from discreet.plan.model.nodes import Aggregate
from discreet.plan.post.outputs import NoisyNumber

_LARGEST = 3**-1.5 / 2 * (1 + ULPS)
"""Of third central moments of values whose bounds are 1 apart: of p (1 - p) (1 - 2 p), for two values at the ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewnessEstimator(Estimator):
    """The third central moment over the cube of the standard deviation, adjusted as that of a sample.

    Where the variance may be zero, its interval ends at what so many values can give; where the noisy one is zero it
    has no value.

    Args:
        spread: the variance, with the means of x and of its squares.
        cubes: the mean of (x - origin)^3, over the same number.
    """

    spread: VarianceEstimator
    cubes: RatioEstimator

    def variance(self, noise: Noise) -> Fraction:
        """Returns that of all means together, by how strongly a third central moment depends on each of them.

        In units of the width, with a the mean and b the mean square, it depends on them by 6 a^2 - 3 b and by 3 a.
        """
        width = self.spread.mean.width
        parts = (Fraction(3, 4) / width, self.spread.mean), (Fraction(3, 4) / width**2, self.spread.squares)
        return sum(
            (weight**2 * part.variance(noise) for weight, part in (*parts, (1 / width**3, self.cubes))), Fraction(0)
        )

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> list[NoisyNumber]:
        """Returns the skewness of each row, with its interval: three means and a count share the risk equally."""
        share = outside / 4
        spread = self.spread.population(noise, rows, float(share))
        leaning = quotient(self._third(noise, rows, float(share)), _cubed_root(spread))
        return _adjust_skewness(leaning, *counts(noise, self.cubes.bottom, rows, share, fewest=3)).to_noisy(Fraction(1))

    def _third(self, noise: Noise, rows: Integers, outside: float) -> Ends:
        """Returns third central moments in cubes of the width: the mean cube less 3 a b, and 2 a^3 more."""
        mean, squares, cubes = (_from_origin(self.spread, part, noise, rows, outside) for part in self._means)
        both, double = product(mean, squares), Ends(*(2 * part**3 for part in (mean.value, mean.low, mean.high)))
        return Ends(
            cubes.value - 3 * both.value + double.value,
            cubes.low - 3 * both.high + double.low - ULPS,
            cubes.high - 3 * both.low + double.high + ULPS,
        ).clip_to(-_LARGEST, _LARGEST)

    @property
    def _means(self) -> tuple[tuple[RatioEstimator, int], ...]:
        return (self.spread.mean, 1), (self.spread.squares, 2), (self.cubes, 3)


def _from_origin(
    spread: VarianceEstimator, part: tuple[RatioEstimator, int], noise: Noise, rows: Integers, outside: float
) -> Ends:
    """Returns the mean of a power of x - origin, in units of that power of the width."""
    ratio, power = part
    unit = spread.mean.width**power
    moved, scale = float((ratio.centre - (spread.origin if power == 1 else 0)) / unit), float(ratio.width / unit)
    ends = ratio.ends(noise, rows, outside)
    return Ends(moved + scale * ends.value, moved + scale * ends.low - ULPS, moved + scale * ends.high + ULPS)


def _cubed_root(spread: Ends) -> Ends:
    """Returns the cube of the standard deviation."""
    value, low, high = (part * np.sqrt(part) for part in (spread.value, spread.low, spread.high))
    return Ends(value, low * (1 - ULPS), high * (1 + ULPS))


def _adjust_skewness(leaning: Ends, value: Floats, fewest: Floats, most: Floats) -> Ends:
    """Multiplies by sqrt(n (n - 1)) / (n - 2), which falls with n, and within sqrt(n) of zero."""
    best, large, small = (np.sqrt(n * (n - 1)) / (n - 2) for n in (value, fewest, most))
    limit = np.sqrt(most) * (1 + ULPS)
    return Ends(
        leaning.value * best,
        leaning.low * np.where(leaning.low < 0, large * (1 + ULPS), small * (1 - ULPS)),
        leaning.high * np.where(leaning.high > 0, large * (1 + ULPS), small * (1 - ULPS)),
    ).clip_to(-limit, limit)


def skewness_of(sums: PowerSums) -> SkewnessEstimator:
    """Returns the skewness of an argument, from sums of powers of its values up to the third."""
    steps = sums.grid
    low, high = ((end - steps.middle) ** 3 * steps.step**3 for end in (steps.low, steps.high))
    cubes = RatioEstimator(
        top=sums.power(3) * steps.step**3,
        bottom=sums.power(0),
        centre=Fraction(0),
        low=low,
        high=high,
        rounding=power_error(steps, 3),
    )
    return SkewnessEstimator(spread=variance_of(sums), cubes=cubes)


class _Skewness(Aggregation):
    """The skewness of an argument's values."""

    __slots__ = ()

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns the number of values and the sums of their first three powers."""
        return (MomentNeed(argument_of(aggregate), frozenset({0, 1, 2, 3}), self.word),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> SkewnessEstimator:
        """Returns how it follows from the three means."""
        return skewness_of(sources.moments[argument_of(aggregate)])


SKEWNESS = _Skewness(kind="skewness", functions=("SKEWNESS",), bounded=True, power=3)
