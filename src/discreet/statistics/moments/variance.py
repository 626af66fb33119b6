"""Private variances and standard deviations."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.mechanisms import Laplace
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.privacy.events import Composed, Event
from discreet.statistics.budget_split import Spending
from discreet.statistics.histogram import resolve_bounds, with_price
from discreet.statistics.inputs import NumericColumn, column
from discreet.statistics.moments.mean import TARGETS, centre_interval
from discreet.statistics.moments.power_sums import (
    COARSE,
    Floats,
    NoisyPowerSums,
    bernstein,
    beyond,
    exact_sum,
    gaussian,
    hull,
)

MOMENTS_SHARE = Fraction(1, 5)  # of epsilon under REPLACE, for the moments that the interval needs
_CENTRE_RISK, _SPREAD_RISK, _COUNT_RISK = 0.1, 0.08, 0.02  # of all that may go wrong
WIDEST = 10**150
_CENTRES = 17  # means that are tried between the ends of their interval


def variance(
    x: Any,
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    ddof: int = 1,
    target: str = "population",
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the variance of private numbers, clipped to public bounds.

    Args:
        x: one number for each unit; missing ones are left out, or under REPLACE the middle of the bounds.
        bounds: public limits (low, high); "find" finds them for a tenth of the budget (`find_bounds`).
        epsilon: the budget, with Laplace noise if it comes alone.
        delta: with it the noise is normal.
        rho: the budget in zCDP, instead of both.
        neighbours: the relation to protect; under "replace" the number of values is public.
        confidence: of the interval.
        ddof: the squares are divided by the number of values less this, 0 or 1.
        target: "population" for an interval that covers the variance of the population, "sample" for that of these
            very values, with the same divisor.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, before any value is looked at.
        InvalidValue: if the values are no vector of numbers.

    Formal guarantee: the budget, under the relation: sums of Bernstein's polynomials with Laplace noise
    (`moments.bernstein`), or four moments with normal noise (`moments.gaussian`). Under REPLACE with epsilon alone the
    variance itself gets Laplace noise for its sensitivity (`squares_sensitivity`), and a fifth of epsilon pays for
    the moments that an interval for the population needs.

    The interval collects the variances v at which, for some mean m of its own interval, the noisy sum of (x - m)^2 - v
    is not surprising. Its sampling error is taken as normal, with a variance bounded by the fourth moments that were
    released, and by v (h^2 - v), h being the distance of m from the farther bound. In the noise it is exact.

    >>> from discreet.noise import SeededBits
    >>> print(variance([20, 30, 40] * 500, bounds=(0, 100), epsilon=1, bits=SeededBits(1)))
    61.6018 [42.8886, 80.9403] NOT PRIVATE (seeded randomness)
    """
    spending = Spending.of(epsilon, delta, rho)
    risk = float(1 - check.probability(confidence=confidence))
    less = check.integer(ddof=ddof, at_least=0, at_most=1)
    if target not in TARGETS:
        raise InvalidParameter("target", target, f"to be one of {TARGETS}")
    source = source_of(bits)
    bounds, spending, paid = resolve_bounds(x, bounds, spending, neighbours, source)
    ends = check.limits(bounds=bounds)
    if ends[1] - ends[0] > WIDEST:
        hint = "The square of their distance must be a number."
        raise InvalidParameter("bounds", bounds, "to be at most 1e150 apart", hint)
    values = column(x, bounds=bounds, neighbours=neighbours, fine=COARSE)
    if spending.is_pure and values.neighbours is Neighbours.REPLACE:
        found, event = _direct(values, spending, source, less=less, risk=risk, sample=target == "sample")
    else:
        released = gaussian(values, spending, source) if not spending.is_pure else bernstein(values, spending, source)
        found, event = _from_moments(released, less, risk, target), released.event
    top = 2.0 if target == "sample" and less else 1.0  # of two values at the bounds; of a population
    found = _off_the_grid(found, 2 / values.width) * float((values.high - values.low) / 2) ** 2
    value, low, high = np.clip(found, 0.0, top * float((values.top - values.low) / 2) ** 2).tolist()
    return Estimate(value, low, high, with_price(event, paid), confidence=confidence, private=source.private)


def standard_deviation(
    x: Any,
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    ddof: int = 1,
    target: str = "population",
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the standard deviation: the root of `variance` and of its ends, post-processing of one release.

    >>> from discreet.noise import SeededBits
    >>> print(standard_deviation([20, 30, 40] * 500, bounds=(0, 100), epsilon=1, bits=SeededBits(1)))
    7.84868 [6.54894, 8.99668] NOT PRIVATE (seeded randomness)
    """
    squared = variance(
        x,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        confidence=confidence,
        ddof=ddof,
        target=target,
        bits=bits,
    )
    value, low, high = (math.sqrt(end) for end in (squared.value, squared.low, squared.high))
    return Estimate(value, low, high, squared.event, confidence=confidence, private=squared.private)


def squares_sensitivity(count: int, width: int) -> int:
    """Returns how far another value in the place of one moves count^2 times the variance of integers from 0 to width.

    That is the sum over pairs i < j of (k_i - k_j)^2. A value is in count - 1 of the pairs, and each of these stays
    between 0 and width^2: the move is at most (count - 1) width^2, and it is that much for a value that leaves all the
    others at one end for the other end. The variance with the divisor count so moves by width^2 (count - 1) / count^2,
    the one with count - 1 by width^2 / count.

    >>> squares_sensitivity(4, 6) / 4**2
    6.75
    """
    return max(count - 1, 1) * width * width  # a single value has no spread, and no noise would mean no mechanism


def _from_moments(released: NoisyPowerSums, less: int, risk: float, target: str) -> Floats:
    """Returns the variance of c and its interval, from sums of powers."""
    count, total, squares = released.sums(np.eye(3))
    size = max(float(count), 1.0)
    value = (squares - total**2 / size) / max(size - less, 1.0)
    sample = target == "sample"
    low, high = centre_interval(released, _CENTRE_RISK * risk, sample=sample)
    short = float(released.reach(np.array([[1.0]]), _COUNT_RISK * risk)[0])
    if float(count) <= short:
        return np.array([value, 0.0, 2.0])
    centres = np.linspace(low, high, _CENTRES)
    level = risk * (1 - _CENTRE_RISK - _COUNT_RISK - (0 if sample else _SPREAD_RISK))

    def accepts(variances: Floats) -> NDArray[np.bool_]:
        centre, tried = (part.ravel() for part in np.meshgrid(centres, variances))
        moves = np.stack([centre**2 - tried, -2 * centre, np.ones_like(centre)], axis=1)
        spread = 0.0 if sample else sampling_variance(released, centre, tried, size + short, _SPREAD_RISK * risk)
        chances = released.outside(moves, spread)
        return np.asarray(np.any(chances.reshape(-1, _CENTRES) > level, axis=1))

    first, last = hull(accepts, float(np.clip(value, 0.0, 1.0)), 0.0, 1.0)
    fewest = max(size - short, 2.0)
    return np.array([value, first, last * (fewest / (fewest - 1) if sample and less else 1.0)])


def sampling_variance(
    released: NoisyPowerSums, centre: Floats, tried: Floats, count: float, risk: float
) -> Floats | float:
    """Returns an upper bound of the variance of the sum of (c - centre)^2 - tried, which fails with at most this risk.

    It is the sum of the squares in the mean, which the release estimates; and (c - centre)^2 is
    between 0 and (1 + |centre|)^2, so with the mean `tried` it has a variance of at most tried ((1 + |centre|)^2 -
    tried) (Bhatia, Davis 2000).
    """
    rest = centre**2 - tried
    fourth = np.stack(
        [rest**2, -4 * centre * rest, 4 * centre**2 + 2 * rest, -4 * centre, np.ones_like(centre)], axis=1
    )
    seen = np.maximum(released.sums(fourth), 0.0) + released.reach(fourth, risk)
    return np.minimum(seen, count * tried * np.maximum((1 + np.abs(centre)) ** 2 - tried, 0.0))


def _direct(
    values: NumericColumn, spending: Spending, bits: Bits, *, less: int, risk: float, sample: bool
) -> tuple[Floats, Event]:
    """Returns the variance of c with Laplace noise of its own, for a public number of values."""
    own = spending if sample else spending.share(1 - MOMENTS_SHARE)
    size = values.public_size
    moves = squares_sensitivity(size, values.width)
    mechanism = Laplace(epsilon=own.pure_epsilon, sensitivity=moves)
    exact = size * exact_sum(values.steps * values.steps) - exact_sum(values.steps) ** 2
    unit = Fraction(4, values.width**2 * max(size, 1))  # turns it into the sum of squared distances of c from its mean
    noisy, scale = float(mechanism.release(exact, bits=bits) * unit), float(mechanism.event.scale * unit)
    value = noisy / max(size - less, 1)
    if sample:
        far = scale * math.log(1 / risk) + float(unit)
        return np.array([value, *((noisy + sign * far) / max(size - less, 1) for sign in (-1, 1))]), mechanism.event
    released = bernstein(values, spending.share(MOMENTS_SHARE), bits)
    event = Composed([mechanism.event, released.event])
    if size < 2:
        return np.array([value, 0.0, 1.0]), event
    centres = np.linspace(*centre_interval(released, _CENTRE_RISK * risk), _CENTRES)
    level = risk * (1 - _CENTRE_RISK - _SPREAD_RISK)

    def accepts(variances: Floats) -> NDArray[np.bool_]:
        centre, tried = (part.ravel() for part in np.meshgrid(centres, variances))
        spread = np.asarray(sampling_variance(released, centre, tried, size, _SPREAD_RISK * risk))
        distance = np.maximum(np.abs(noisy - (size - 1) * variances) - float(unit), 0.0)
        widest = spread.reshape(-1, _CENTRES).max(axis=1)
        return np.asarray(beyond(distance, widest, np.full((1, len(variances)), scale)) > level)

    first, last = hull(accepts, float(np.clip(value, 0.0, 1.0)), 0.0, 1.0)
    return np.array([value, first, last]), event


def _off_the_grid(found: Floats, step: float) -> Floats:
    """Returns ends that hold for values before rounding to the grid by less than a step, and their deviation."""
    value, low, high = np.sqrt(np.maximum(found, 0.0))
    return np.array([value**2, max(low - step, 0.0) ** 2, (high + step) ** 2])
