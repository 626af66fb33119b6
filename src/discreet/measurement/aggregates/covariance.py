"""COVAR, CORR and REGR_SLOPE: how two arguments go together, over rows where both have a value."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.measurement.aggregates.aggregation import Aggregation, argument_of
from discreet.measurement.aggregates.mean import mean_of
from discreet.measurement.aggregates.variance import VarianceEstimator, variance_of
from discreet.measurement.intervals.arithmetic import ULPS, Ends, Floats, product, quotient
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, counts
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.additive import Integers
from discreet.measurement.releases.argument_moments import PowerSums, product_error
from discreet.measurement.releases.layouts import Sources, in_order
from discreet.measurement.releases.needs import Need, ProductNeed
from discreet.measurement.releases.products import ProductSums
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.post.outputs import NoisyNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceEstimator(Estimator):
    """A covariance.

    Args:
        first: the mean of the first argument, over the number of pairs; y of a regression.
        second: the mean of the second; x of a regression.
        product: the mean of (first - centre) (second - centre), over the same number.
        sample: whether the products are shared among one pair less.
    """

    first: RatioEstimator
    second: RatioEstimator
    product: RatioEstimator
    sample: bool = False

    @property
    def spreads(self) -> tuple[VarianceEstimator, ...]:
        """Returns the variances that it is made of, besides the covariance."""
        return ()

    @property
    def _parts(self) -> tuple[tuple[Fraction, RatioEstimator], ...]:
        """Returns the means it is made of, and how strongly it depends on each, in units of the bounds' widths."""
        one, other = 1 / self.first.width, 1 / self.second.width
        squares = [(1 / spread.mean.width**2, spread.squares) for spread in self.spreads]
        return (one / 4, self.first), (other / 4, self.second), (one * other, self.product), *squares

    def variance(self, noise: Noise) -> Fraction:
        """Returns that of all means together."""
        return sum((weight**2 * part.variance(noise) for weight, part in self._parts), Fraction(0))

    def cells(self, noise: Noise, rows: Integers, outside: Fraction) -> list[NoisyNumber]:
        """Returns the aggregate of each row, with its interval; every mean has an equal share of the risk."""
        share = outside / (len(self._parts) + self.sample)
        found = self._covariance(noise, rows, float(share))
        if self.sample:
            found = _shared_by_one_less(found, *counts(noise, self.product.bottom, rows, share, fewest=2))
        return self._estimate_cells(found, noise, rows, float(share))

    def _covariance(self, noise: Noise, rows: Integers, outside: float) -> Ends:
        """Returns covariances in units of both widths, from -1/4 to 1/4: the mean product less the product of means."""
        one, other, together = (mean.ends(noise, rows, outside) for mean in (self.first, self.second, self.product))
        area = self.first.width * self.second.width
        scale, centre = float(self.product.width / area), float(self.product.centre / area)
        means = product(one, other)
        found = Ends(
            centre + scale * together.value - means.value,
            centre + scale * together.low - means.high - ULPS,
            centre + scale * together.high - means.low + ULPS,
        )
        return found.clip_to(-0.25, 0.25)

    def _estimate_cells(self, found: Ends, noise: Noise, rows: Integers, outside: float) -> list[NoisyNumber]:
        """Returns what follows from the covariance."""
        del noise, rows, outside
        return found.to_noisy(self.first.width * self.second.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationEstimator(CovarianceEstimator):
    """A covariance over the product of both standard deviations: it lies between -1 and 1."""

    first_spread: VarianceEstimator
    second_spread: VarianceEstimator

    @property
    def spreads(self) -> tuple[VarianceEstimator, ...]:
        """Returns the variances of both arguments."""
        return self.first_spread, self.second_spread

    def _estimate_cells(self, found: Ends, noise: Noise, rows: Integers, outside: float) -> list[NoisyNumber]:
        one, other = (spread.population(noise, rows, outside) for spread in self.spreads)
        return quotient(found, _root_of_product(one, other)).clip_to(-1.0, 1.0).to_noisy(Fraction(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeEstimator(CovarianceEstimator):
    """A covariance over the variance of x.

    It has no public limits: where the variance of x may be zero, its interval ends at infinity, and where the noisy one
    is zero it has no value.
    """

    second_spread: VarianceEstimator

    @property
    def spreads(self) -> tuple[VarianceEstimator, ...]:
        """Returns that of x."""
        return (self.second_spread,)

    def _estimate_cells(self, found: Ends, noise: Noise, rows: Integers, outside: float) -> list[NoisyNumber]:
        slope = quotient(found, self.second_spread.population(noise, rows, outside))
        return slope.to_noisy(self.first.width / self.second.width)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptEstimator(SlopeEstimator):
    """The mean of y less the slope times that of x."""

    def _estimate_cells(self, found: Ends, noise: Noise, rows: Integers, outside: float) -> list[NoisyNumber]:
        slope = quotient(found, self.second_spread.population(noise, rows, outside))
        means = [_from_zero(mean, mean.ends(noise, rows, outside)) for mean in (self.first, self.second)]
        return _intercept(slope, *means).to_noisy(self.first.width)


def _shared_by_one_less(found: Ends, value: Floats, fewest: Floats, most: Floats) -> Ends:
    """Multiplies by n / (n - 1), which falls with n and is 2 at most."""
    large, small = fewest / (fewest - 1) * (1 + ULPS), most / (most - 1) * (1 - ULPS)
    return Ends(
        found.value * value / (value - 1),
        found.low * np.where(found.low < 0, large, small),
        found.high * np.where(found.high > 0, large, small),
    ).clip_to(-0.5, 0.5)


def _root_of_product(one: Ends, other: Ends) -> Ends:
    value, low, high = (
        np.sqrt(a * b) for a, b in ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    )
    return Ends(value, low * (1 - ULPS), high * (1 + ULPS))


def _from_zero(mean: RatioEstimator, ends: Ends) -> Ends:
    """Returns means in units of the width, counted from zero."""
    moved = float(mean.centre / mean.width)
    slack = ULPS * (1 + abs(moved))
    return Ends(ends.value + moved, ends.low + moved - slack, ends.high + moved + slack)


def _intercept(slope: Ends, first: Ends, second: Ends) -> Ends:
    """Returns the mean of y less the slope times that of x; anything where the slope may be anything."""
    known = np.isfinite(slope.low) & np.isfinite(slope.high)
    finite = Ends(slope.value, np.where(known, slope.low, 0.0), np.where(known, slope.high, 0.0))
    moved = product(finite, second)
    slack = ULPS * (1 + np.maximum(np.abs(moved.low), np.abs(moved.high)))
    low = np.where(known, first.low - moved.high - slack, -np.inf)
    high = np.where(known, first.high - moved.low + slack, np.inf)
    return Ends(np.clip(first.value - moved.value, low, high), low, high)


def _mean_product(sums: ProductSums) -> RatioEstimator:
    """Returns the mean of the products of both arguments, each counted from the middle of its bounds."""
    one, other = sums.first.grid, sums.second.grid
    unit = one.step * other.step
    ends = [(steps.low - steps.middle, steps.high - steps.middle) for steps in (one, other)]
    products = [a * b for a in ends[0] for b in ends[1]]
    return RatioEstimator(
        top=sums.products * unit,
        bottom=sums.first.power(0),
        centre=Fraction(0),
        low=min(products) * unit,
        high=max(products) * unit,
        rounding=product_error(one, other),
    )


Build = Callable[[PowerSums, PowerSums, RatioEstimator], CovarianceEstimator]
"""How an estimator is made of what is known of both arguments and of their mean product."""


def _covariance(*, sample: bool) -> Build:
    return lambda one, other, mean: CovarianceEstimator(
        first=mean_of(one), second=mean_of(other), product=mean, sample=sample
    )


def _correlation(one: PowerSums, other: PowerSums, mean: RatioEstimator) -> CovarianceEstimator:
    return CorrelationEstimator(
        first=mean_of(one),
        second=mean_of(other),
        product=mean,
        first_spread=variance_of(one),
        second_spread=variance_of(other),
    )


def _regression(kind: type[SlopeEstimator]) -> Build:
    return lambda one, other, mean: kind(
        first=mean_of(one), second=mean_of(other), product=mean, second_spread=variance_of(other)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfPairs(Aggregation):
    """An aggregate of two arguments.

    Args:
        squared: whether the variance of the first argument is needed, and that of the second.
        build: makes its estimator.
    """

    arguments: int = 2
    bounded: bool = True
    power: int = 2
    squared: tuple[bool, bool] = (False, False)
    build: Build

    def needs(self, aggregate: Aggregate) -> tuple[Need, ...]:
        """Returns products, and squares of some arguments."""
        both = _both(aggregate)
        squared = [part for part, needed in zip(both, self.squared, strict=True) if needed]
        return (ProductNeed(*both, frozenset(squared), self.word),)

    def estimator(self, aggregate: Aggregate, sources: Sources) -> CovarianceEstimator:
        """Returns how it follows from the means of both and of their product."""
        x, y = _both(aggregate)
        ordered = in_order(x, y)
        sums = sources.products[ordered]
        one, other = (sums.first, sums.second) if ordered[0] == x else (sums.second, sums.first)
        return self.build(one, other, _mean_product(sums))


def _both(aggregate: Aggregate) -> tuple[Expression, Expression]:
    if aggregate.other is None:
        raise InternalError(f"An aggregate of the kind {aggregate.kind} has one argument.")
    return argument_of(aggregate), aggregate.other


PAIRS = (
    _OfPairs(kind="covar_pop", functions=("COVAR_POP",), build=_covariance(sample=False)),
    _OfPairs(kind="covar_samp", functions=("COVAR_SAMP",), build=_covariance(sample=True)),
    _OfPairs(kind="corr", functions=("CORR",), squared=(True, True), build=_correlation),
    _OfPairs(kind="regr_slope", functions=("REGR_SLOPE",), squared=(False, True), build=_regression(SlopeEstimator)),
    _OfPairs(
        kind="regr_intercept",
        functions=("REGR_INTERCEPT",),
        squared=(False, True),
        build=_regression(InterceptEstimator),
    ),
)
