"""Private quantiles with intervals for those of the population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import check
from discreet.accounting import zcdp
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.exact import float_below
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate, Neighbours
from discreet.privacy.events import Composed
from discreet.statistics.budget_split import Spending
from discreet.statistics.histogram import resolve_bounds, with_price
from discreet.statistics.inputs import NumericColumn, column
from discreet.statistics.quantiles.points import POINT_SHARE, Fences, many_points

_MOST = 1000


def quantiles(
    x: Any,
    shares: Sequence[Number],
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    intervals: bool = True,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates several quantiles of private numbers, clipped to public bounds, in the order of `shares`.

    Args:
        x: one number for each unit; missing ones are left out, or under REPLACE the middle of the bounds.
        shares: which quantiles, from 0 to 1.
        bounds: public limits (low, high); "find" finds them for a tenth of the budget (`find_bounds`).
        epsilon: the budget.
        delta: where there are many draws, they share what (epsilon, delta) is in zCDP; few do better without it.
        rho: the budget in zCDP, instead of both.
        neighbours: the relation to protect; under "replace" the number of values is public.
        confidence: of each interval.
        intervals: False spends the whole budget on the points, and each interval is all that lies within the bounds.
        bits: the source of randomness; None is the secure one.

    Raises:
        InvalidParameter: outside these domains, before any value is looked at.
        InvalidValue: if the values are no vector of numbers.

    Formal guarantee: the budget, under the relation. Points are drawn by the exponential mechanism over all grid points
    between the bounds (Smith 2011), several of them from one tree (`points.many_points`), for 2/5 of the
    budget. Two more draws for each, its fences, and under ADD_REMOVE 1/25 for the number of values, make the interval.

    The interval covers the q-quantile of the population of clipped values, whatever that is: fences are drawn for
    shares p < q and p > q, among blocks around the released point, so that sampling (an exact binomial law) and the
    draws together put the quantile outside of them at most as often as was asked for (`points.Fences`). If there is no
    such p, the end is the bound.

    >>> from discreet.noise import SeededBits
    >>> print(quantiles(range(1000), [0.25, 0.5], bounds=(0, 1000), epsilon=10, bits=SeededBits(1)))
    NOT PRIVATE (seeded randomness)
    entry       value [95 % interval]
    -----  --------------------------
    0       249.884 [216.96, 286.099]
    1      499.869 [460.032, 536.084]
    """
    chance = check.probability(confidence=confidence)
    wanted = _check_shares(shares)
    ordered = sorted(set(wanted))
    spending = _budget(epsilon, delta, rho, draws=4 * len(ordered))
    source = source_of(bits)
    bounds, spending, paid = resolve_bounds(x, bounds, spending, neighbours, source)
    values = _sort_values(column(x, bounds=bounds, neighbours=neighbours))
    if not check.instance(bool, intervals=intervals):
        points, event = many_points(values, ordered, spending, source)
        ends = dict.fromkeys(ordered, (0, values.width))
    else:
        points, event = many_points(values, ordered, spending.share(POINT_SHARE), source)
        fences = Fences.of(values, ordered, spending, float(1 - chance), source)
        drawn = {share: fences.draw(values, share, point, source) for share, point in zip(ordered, points, strict=True)}
        ends = {share: (low[0], high[0]) for share, (low, high) in drawn.items()}
        event = Composed([event, *fences.events, *(one[1] for pair in drawn.values() for one in pair)])
    steps = dict(zip(ordered, points, strict=True))
    lows = [min(ends[share][0], steps[share]) - 1 for share in wanted]  # values were moved by less than a step
    highs = [max(ends[share][1], steps[share]) + 1 for share in wanted]
    found, low, high = (_values(values, one, bounds) for one in ([steps[share] for share in wanted], lows, highs))
    return Estimate(found, low, high, with_price(event, paid), confidence=chance, private=source.private)


def quantile(
    x: Any,
    share: Number,
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    intervals: bool = True,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates one quantile of private numbers, clipped to public bounds: see `quantiles`.

    >>> from discreet.noise import SeededBits
    >>> print(quantile(range(1000), 0.9, bounds=(0, 1000), epsilon=10, bits=SeededBits(1)))
    899.869 [875.133, 922.356] NOT PRIVATE (seeded randomness)
    """
    found = quantiles(
        x,
        [share],
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        confidence=confidence,
        intervals=intervals,
        bits=bits,
    )
    value, low, high = (float(array[0]) for array in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.event, confidence=confidence, private=found.private)


def median(
    x: Any,
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    intervals: bool = True,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the median of private numbers, clipped to public bounds: see `quantiles`.

    >>> from discreet.noise import SeededBits
    >>> print(median(range(1000), bounds=(0, 1000), epsilon=10, bits=SeededBits(1)))
    499.869 [463.653, 536.084] NOT PRIVATE (seeded randomness)
    """
    return quantile(
        x,
        Fraction(1, 2),
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        confidence=confidence,
        intervals=intervals,
        bits=bits,
    )


def interquartile_range(
    x: Any,
    *,
    bounds: Any,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    confidence: Number = CONFIDENCE,
    intervals: bool = True,
    bits: Bits | None = None,
) -> Estimate:
    """Estimates the distance between the upper and the lower quartile: post-processing of two `quantiles`.

    Each quartile's interval has half of the risk, so that both cover, and with them their distance.

    >>> from discreet.noise import SeededBits
    >>> print(interquartile_range(range(1000), bounds=(0, 1000), epsilon=10, bits=SeededBits(1)))
    501.015 [421.34, 573.446] NOT PRIVATE (seeded randomness)
    """
    chance = check.probability(confidence=confidence)
    found = quantiles(
        x,
        [Fraction(1, 4), Fraction(3, 4)],
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        confidence=(1 + chance) / 2,
        intervals=intervals,
        bits=bits,
    )
    value = float(found.value[1] - found.value[0])
    low, high = float(found.low[1] - found.high[0]), float(found.high[1] - found.low[0])
    return Estimate(value, max(low, 0.0), high, found.event, confidence=chance, private=found.private)


def _budget(epsilon: Number | None, delta: Number | None, rho: Number | None, *, draws: int) -> Spending:
    """Returns the budget in the currency in which one of so many draws gets more: epsilons add up, and squares of them.

    A draw of range r is r-DP and r^2 / 8-zCDP. That rho is (epsilon, delta)-DP is the bound of `zcdp.rho_for`.
    """
    if rho is not None or delta is None or delta == 0:
        return Spending.of(epsilon, delta, rho)
    pure, slack = Spending.of(epsilon), check.probability(delta=delta)
    amount = Fraction(zcdp.rho_for(float_below(pure.pure_epsilon), float_below(slack)))
    part = Fraction(1, draws)
    if amount == 0:
        return pure
    together = Spending.of(rho=amount)
    return max(pure, together, key=lambda one: one.share(part).range_epsilon)


def _check_shares(shares: Sequence[Number]) -> list[Fraction]:
    if not isinstance(shares, list | tuple | np.ndarray) or np.ndim(np.asarray(shares, dtype=object)) != 1:
        raise InvalidParameter("shares", shares, "to be a list of numbers", "Pass e.g. [0.25, 0.5, 0.75].")
    if not 1 <= len(shares) <= _MOST:
        hint = "Pass a list, e.g. [0.25, 0.5, 0.75]."
        raise InvalidParameter("shares", shares, f"to be a list of 1 to {_MOST} numbers", hint)
    found = [check.share(quantile=share) for share in shares]
    if max(share.denominator for share in found) > 1 << 30:
        raise InvalidParameter("shares", "a number", "to have at most nine digits", "Round it.")
    return found


def _sort_values(values: NumericColumn) -> NumericColumn:
    """Returns the same values in ascending order: no draw depends on their order, and each is faster."""
    return replace(values, steps=np.sort(values.steps))


def _values(values: NumericColumn, steps: Sequence[Any], bounds: Any) -> Any:
    lowest, highest = (float(end) for end in check.limits(bounds=bounds))
    return np.clip(values.value([float(step) for step in steps]), lowest, highest)
