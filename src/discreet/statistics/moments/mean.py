"""Private means."""

from __future__ import annotations

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
from discreet.privacy.events import Composed
from discreet.statistics.budget_split import Spending
from discreet.statistics.histogram import resolve_bounds, with_price
from discreet.statistics.inputs import NumericColumn, column
from discreet.statistics.moments.power_sums import Floats, NoisyPowerSums, exact_sum, gaussian, hull, pair

SQUARES_SHARE = Fraction(1, 50)  # of epsilon, for the spread that the interval needs
_SQUARES_RISK, _COUNT_RISK = 0.12, 0.04  # of all that may go wrong: that the spread, or the number, is underestimated
TARGETS = ("population", "sample")


def mean(
    x: Any,
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    target: str = "population",
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the mean of private numbers, clipped to public bounds.

    Args:
        x: one number for each unit; missing ones are left out, or under REPLACE the middle of the bounds.
        bounds: public limits (low, high); "find" finds them for a tenth of the budget (`find_bounds`).
        epsilon: the budget, with Laplace noise if it comes alone.
        delta: with it the noise is normal.
        rho: the budget in zCDP, instead of both.
        neighbours: the relation to protect; under "replace" the number of values is public.
        confidence: of the interval.
        target: "population" for an interval that covers the mean of the population of clipped values, from which the
            values are an independent sample; "sample" for the mean of these very values, which needs no budget for
            their spread.
        bits: the source of randomness; None is the secure one.

    Returns:
        An `Estimate`. Few values or none are no error: the interval widens, to the bounds at last.

    Raises:
        InvalidParameter: outside these domains, before any value is looked at.
        InvalidValue: if the values are no vector of numbers.

    Formal guarantee: the budget, under the relation. Under ADD_REMOVE with epsilon alone the sums of x - low and of
    high - x have Laplace noise (`moments.pair`), the mean is low + width times the first over both, and 1/50 of epsilon
    pays for the sum of squares; with normal noise squares cost nothing (`moments.gaussian`). Under REPLACE the sum gets
    noise for the width.

    The interval collects the means m at which the noisy sum of x - m is not surprising, its law being that of the noise
    plus a normal sampling error. The variance of the latter is bounded by what was released, and by (high - m)(m - low)
    for each value (Bhatia, Davis 2000); that these bounds fail has its part of 1 - confidence. It is exact in the
    noise; only the sampling error is taken as normal.

    >>> from discreet.noise import SeededBits
    >>> print(mean([20, 30, 40] * 500, bounds=(0, 100), epsilon=1, bits=SeededBits(1)))
    30.0226 [29.2193, 30.8255] NOT PRIVATE (seeded randomness)
    """
    spending = Spending.of(epsilon, delta, rho)
    risk = float(1 - check.probability(confidence=confidence))
    if target not in TARGETS:
        raise InvalidParameter("target", target, f"to be one of {TARGETS}")
    source = source_of(bits)
    bounds, spending, paid = resolve_bounds(x, bounds, spending, neighbours, source)
    values = column(x, bounds=bounds, neighbours=neighbours)
    released = _release_sums(values, spending, target, source)
    low, high = centre_interval(released, risk, sample=target == "sample")
    slack = 2 / values.width  # a step, by less than which a value may have been moved to the grid
    value, low, high = values.from_centred([centre_of(released), low - slack, high + slack], bounds)
    event = with_price(released.event, paid)
    return Estimate(value, low, high, event, confidence=confidence, private=source.private)


def _release_sums(values: NumericColumn, spending: Spending, target: str, bits: Bits) -> NoisyPowerSums:
    if not spending.is_pure:
        return gaussian(values, spending, bits, degree=1 if target == "sample" else 2)
    for_sum = spending if target == "sample" else spending.share(1 - SQUARES_SHARE)
    first = pair(values, for_sum, bits) if values.neighbours is Neighbours.ADD_REMOVE else _sum(values, for_sum, bits)
    return first if target == "sample" else _with_squares(first, values, spending.share(SQUARES_SHARE), bits)


def _sum(values: NumericColumn, spending: Spending, bits: Bits) -> NoisyPowerSums:
    """Returns the sum of u under REPLACE: another value in the place of one moves it by at most w steps, which is 1."""
    mechanism = Laplace(epsilon=spending.pure_epsilon, sensitivity=values.width)
    released = mechanism.release(exact_sum(values.steps), bits=bits)
    return NoisyPowerSums(
        values=np.array([float(Fraction(released, values.width))]),
        scales=np.array([float(1 / spending.pure_epsilon)]),
        steps=np.array([1 / values.width]),
        laplace=True,
        powers=np.array([[0.0], [2.0]]),
        constants=np.array([1.0, -1.0]) * values.public_size,
        event=mechanism.event,
    )


def _with_squares(first: NoisyPowerSums, values: NumericColumn, spending: Spending, bits: Bits) -> NoisyPowerSums:
    """Returns what was released, and the sum of squares with Laplace noise.

    Under ADD_REMOVE it is the sum of 2 c^2 - 1, which is between -1 and 1, so a value moves it by at most 1. Under
    REPLACE that could be 2; the sum of c^2, from 0 to 1, moves by at most 1. The integers are w^2 times as large.
    """
    unit = values.width**2
    centred = 2 * values.steps - values.width
    replaced = values.neighbours is Neighbours.REPLACE
    squares = centred * centred
    mechanism = Laplace(epsilon=spending.pure_epsilon, sensitivity=unit)
    released = mechanism.release(exact_sum(squares if replaced else 2 * squares - unit), bits=bits)
    known = np.pad(first.powers, ((0, 0), (0, 1)))
    own = np.zeros(known.shape[1])
    own[-1] = 1.0
    return NoisyPowerSums(
        values=np.append(first.values, float(Fraction(released, unit))),
        scales=np.append(first.scales, float(1 / spending.pure_epsilon)),
        steps=np.append(first.steps, 1 / unit),
        laplace=True,
        powers=np.vstack([known, own if replaced else (own + known[0]) / 2]),
        constants=np.append(first.constants, 0.0),
        event=Composed([first.event, mechanism.event]),
    )


def centre_of(released: NoisyPowerSums) -> float:
    """Returns the mean of c; the number of values it is divided by is at least 1."""
    count, total = released.sums(np.eye(2))
    return float(np.clip(total / max(count, 1.0), -1.0, 1.0))


def centre_interval(released: NoisyPowerSums, risk: float, *, sample: bool = False) -> tuple[float, float]:
    """Returns where the mean of c is, up to a risk, on the scale from -1 to 1.

    Nothing is known, and the whole scale is returned, where there may be no values at all.
    """
    one = np.array([[1.0]])
    short = float(released.reach(one, _COUNT_RISK * risk)[0])
    most = max(float(released.sums(one)[0]) + short, 1.0)
    if float(released.sums(one)[0]) <= short:
        return -1.0, 1.0
    level = risk if sample else risk * (1 - _SQUARES_RISK - _COUNT_RISK)

    def accepts(centres: Floats) -> NDArray[np.bool_]:
        moves = np.stack([-centres, np.ones_like(centres)], axis=1)
        variance = np.zeros_like(centres)
        if not sample:
            squares = np.stack([centres**2, -2 * centres, np.ones_like(centres)], axis=1)
            seen = np.maximum(released.sums(squares), 0.0) + released.reach(squares, _SQUARES_RISK * risk)
            variance = np.minimum(seen, most * (1 - centres**2))
        return np.asarray(released.outside(moves, variance) > level)

    return hull(accepts, centre_of(released), -1.0, 1.0)
