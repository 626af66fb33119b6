"""VARIANCE and STDDEV, of a sample or of a population: from the means of values and of their squares."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.dataclass import dataclass
from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.aggregates.mean import mean_of
from discreet.measurement.intervals.arithmetic import ULPS, Ends, Floats, squares
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, counts
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.argument_moments import PowerSums, half_square, product_error
from discreet.measurement.releases.layouts import Sources
from discreet.measurement.releases.needs import MomentNeed, Need
from discreet.plan.model.nodes import Aggregate
from discreet.plan.post.outputs import NoisyNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceEstimator(Estimator):
    """The mean of (x - origin)^2 less the square of the mean of x - origin.

    Args:
        mean: of x, over its number.
        squares: the mean of (x - origin)^2, over the same number.
        origin: where squares count from.
        sample: whether the squares are shared among one value less.
        root: whether the standard deviation is meant.
    """

    mean: RatioEstimator
    squares: RatioEstimator
    origin: Fraction
    sample: bool = False
    root: bool = False

    def variance(self, noise: Noise) -> Fraction:
        """Returns that of both means together, by how strongly it depends on each where the mean lies half way out."""
        return self.squares.variance(noise) + (self.mean.width / 2) ** 2 * self.mean.variance(noise)

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> list[NoisyNumber]:
        """Returns variances, or their roots, with their intervals."""
        share = outside / (3 if self.sample else 2)
        found = self.population(noise, rows, float(share))
        if self.sample:
            found = _shared_by_one_less(found, *counts(noise, self.mean.bottom, rows, share, fewest=2))
        return _root(found, self.sample).to_noisy(self.mean.width) if self.root else found.to_noisy(self.mean.width**2)

    def population(self, noise: Noise, rows: Integers, outside: float) -> Ends:
        """Returns variances in squares of the width, between 0 and 1/4.

        The mean of squares less the square of the mean; and no more than (high - mean) (mean - low), which holds for
        whatever lies between the bounds (Bhatia, Davis 2000).
        """
        width = self.mean.width
        mean, mean_square = self.mean.ends(noise, rows, outside), self.squares.ends(noise, rows, outside)
        scale, centre = float(self.squares.width / width**2), float(self.squares.centre / width**2)
        moved = float((self.mean.centre - self.origin) / width)
        least, most = squares(mean.low + moved, mean.high + moved)
        found = Ends(
            centre + scale * mean_square.value - (mean.value + moved) ** 2,
            centre + scale * mean_square.low - most - ULPS,
            centre + scale * mean_square.high - least + ULPS,
        )
        middle = float((self.mean.low + self.mean.high) / 2 - self.mean.centre) / float(width)
        off = np.maximum(np.maximum(mean.low - middle, middle - mean.high), 0.0)
        return found.clip_to(0.0, np.minimum(0.25 - off**2 + ULPS, 0.25))


def variance_of(sums: PowerSums, *, sample: bool = False, root: bool = False) -> VarianceEstimator:
    """Returns the variance of an argument, or its root, from sums of its values and of their squares."""
    steps = sums.grid
    unit, most = steps.step**2, (steps.high - steps.middle) ** 2
    mean_square = RatioEstimator(
        top=sums.power(2) * unit,
        bottom=sums.power(0),
        centre=half_square(steps) * unit,
        low=Fraction(0),
        high=most * unit,
        rounding=product_error(steps, steps),
    )
    return VarianceEstimator(
        mean=mean_of(sums), squares=mean_square, origin=steps.middle * steps.step, sample=sample, root=root
    )


def _shared_by_one_less(found: Ends, value: Floats, fewest: Floats, most: Floats) -> Ends:
    """Multiplies by n / (n - 1), which falls with n; 1/2 at most, for two values at the ends."""
    return Ends(
        found.value * value / (value - 1),
        found.low * most / (most - 1) * (1 - ULPS),
        found.high * fewest / (fewest - 1) * (1 + ULPS),
    ).clip_to(0.0, 0.5)


def _root(found: Ends, sample: bool) -> Ends:
    value, low, high = (np.sqrt(part) for part in (found.value, found.low, found.high))
    most = math.sqrt(0.5) * (1 + ULPS) if sample else 0.5
    return Ends(value, low * (1 - ULPS), np.minimum(high * (1 + ULPS), most))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread(Aggregation):
    """A variance or a standard deviation."""

    bounded: bool = True
    power: int = 2
    sample: bool = False
    root: bool = False

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns the number of values, their sum and that of their squares."""
        return (MomentNeed(argument_of(aggregate), frozenset({0, 1, 2}), self.word),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> VarianceEstimator:
        """Returns how it follows from the two means."""
        return variance_of(sources.moments[argument_of(aggregate)], sample=self.sample, root=self.root)


SPREADS = (
    _Spread(kind="var_pop", functions=("VAR_POP",)),
    _Spread(kind="var_samp", label="VARIANCE", functions=("VARIANCE", "VAR_SAMP"), sample=True),
    _Spread(kind="stddev_pop", functions=("STDDEV_POP",), root=True),
    _Spread(kind="stddev_samp", label="STDDEV", functions=("STDDEV", "STDDEV_SAMP"), sample=True, root=True),
)
