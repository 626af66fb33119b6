"""Covariances, correlations and regressions, from means whose intervals hold together: see `nonlinear`."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.measurement.aggregates import Joint, Ratio
from discreet.measurement.intervals.variances import ULPS, Ends, Floats, Integers, Noise, counts, listed, population
from discreet.plan.post.outputs import Noisy


def joint(noise: Noise, recipe: Joint, rows: Integers, outside: Fraction) -> list[Noisy]:
    """The aggregate of each row of noisy statistics, with its interval.

    A correlation lies between -1 and 1. A slope has no public limits: where the variance of x may be zero, its interval
    ends at infinity, and where the noisy one is zero it has no value.
    """
    share = outside / (len(recipe.parts) + recipe.sample)
    found = _covariance(noise, recipe, rows, float(share))
    one, other = (_width(mean) for mean in (recipe.first, recipe.second))
    if recipe.sample:
        return listed(_sample(found, *counts(noise, recipe.product.bottom, rows, share)), one * other)
    if recipe.kind == "covar_pop":
        return listed(found, one * other)
    spreads = [population(noise, spread, rows, float(share)) for spread in recipe.spreads]
    if recipe.kind == "corr":
        return listed(_quotient(found, _root_of_product(*spreads)).clipped(-1.0, 1.0), Fraction(1))
    slope = _quotient(found, *spreads)
    if recipe.kind == "regr_slope":
        return listed(slope, one / other)
    means = [_counted_from_zero(mean, noise.ratios(mean, rows, float(share))) for mean in (recipe.first, recipe.second)]
    return listed(_intercept(slope, *means), one)


def _width(mean: Ratio) -> Fraction:
    return mean.high - mean.low


def _covariance(noise: Noise, recipe: Joint, rows: Integers, outside: float) -> Ends:
    """Covariances in units of both widths, between -1/4 and 1/4: the mean product less the product of the means."""
    one, other, together = (noise.ratios(mean, rows, outside) for mean in (recipe.first, recipe.second, recipe.product))
    area = _width(recipe.first) * _width(recipe.second)
    scale, centre = float(_width(recipe.product) / area), float(recipe.product.centre / area)
    means = _product(one, other)
    found = Ends(
        centre + scale * together.value - means.value,
        centre + scale * together.low - means.high - ULPS,
        centre + scale * together.high - means.low + ULPS,
    )
    return found.clipped(-0.25, 0.25)


def _product(one: Ends, other: Ends) -> Ends:
    ends = np.stack([a * b for a in (one.low, one.high) for b in (other.low, other.high)])
    return Ends(one.value * other.value, ends.min(axis=0), ends.max(axis=0))


def _sample(found: Ends, value: Floats, fewest: Floats, most: Floats) -> Ends:
    """Times n / (n - 1), which falls with n and is 2 at most."""
    large, small = fewest / (fewest - 1) * (1 + ULPS), most / (most - 1) * (1 - ULPS)
    return Ends(
        found.value * value / (value - 1),
        found.low * np.where(found.low < 0, large, small),
        found.high * np.where(found.high > 0, large, small),
    ).clipped(-0.5, 0.5)


def _root_of_product(one: Ends, other: Ends) -> Ends:
    value, low, high = (
        np.sqrt(a * b) for a, b in ((one.value, other.value), (one.low, other.low), (one.high, other.high))
    )
    return Ends(value, low * (1 - ULPS), high * (1 + ULPS))


def _quotient(top: Ends, bottom: Ends) -> Ends:
    """By a number that is not negative: infinite ends where it may be zero, no value where it is.

    A quotient moves away from zero as its divisor falls, so each end belongs to one end of the divisor.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low = top.low / np.where(top.low < 0, bottom.low, bottom.high) * np.where(top.low < 0, 1 + ULPS, 1 - ULPS)
        high = top.high / np.where(top.high > 0, bottom.low, bottom.high) * np.where(top.high > 0, 1 + ULPS, 1 - ULPS)
        value = np.where(bottom.value > 0, top.value / bottom.value, np.nan)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return Ends(np.clip(value, low, high), low, high)


def _counted_from_zero(mean: Ratio, ends: Ends) -> Ends:
    """Means in units of the width."""
    moved = float(mean.centre / _width(mean))
    slack = ULPS * (1 + abs(moved))
    return Ends(ends.value + moved, ends.low + moved - slack, ends.high + moved + slack)


def _intercept(slope: Ends, first: Ends, second: Ends) -> Ends:
    """The mean of y less the slope times that of x; anything where the slope may be anything."""
    known = np.isfinite(slope.low) & np.isfinite(slope.high)
    finite = Ends(slope.value, np.where(known, slope.low, 0.0), np.where(known, slope.high, 0.0))
    moved = _product(finite, second)
    slack = ULPS * (1 + np.maximum(np.abs(moved.low), np.abs(moved.high)))
    low = np.where(known, first.low - moved.high - slack, -np.inf)
    high = np.where(known, first.high - moved.low + slack, np.inf)
    return Ends(np.clip(first.value - moved.value, low, high), low, high)
