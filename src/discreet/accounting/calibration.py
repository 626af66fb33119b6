"""Noise for a target, always ending on the safe side: what is returned was seen to satisfy the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet import check
from discreet.accounting.bounds import epsilon as epsilon_of
from discreet.accounting.composition import Events
from discreet.accounting.gdp import gaussian_delta
from discreet.accounting.loss_distributions.dominating_pairs import discrete_gaussian_delta
from discreet.accounting.numerics import smallest
from discreet.accounting.zcdp import rho_for
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import float_above, float_below, root_above
from discreet.privacy import Neighbours
from discreet.privacy.events import DiscreteGaussian, Gaussian

_PRECISION = 1e-4
_LARGEST_NOISE = 2.0**60
_MARGIN = 2.0**-34
_SHRINKING = 0.75  # small steps down: where sigma is below 1, less noise may be private again, at a worse price in zCDP
_HALVINGS = 34  # the noise is at most 2^-34 too large: each costs a sum over the lattice


def gaussian_sigma(epsilon: check.Number, delta: check.Number, sensitivity: check.Number = 1) -> Fraction:
    """Returns the sigma of Gaussian noise for (epsilon, delta)-DP, by the exact profile (Balle, Wang 2018).

    Args:
        epsilon: above 0, of any size: no classical formula with its limits is used.
        delta: strictly between 0 and 1.
        sensitivity: how far one unit moves the value, in the L2 norm.

    >>> round(float(gaussian_sigma(1, 1e-5)), 6)
    3.730632
    """
    at, target = _target(epsilon, delta)
    move = check.positive(sensitivity=sensitivity)
    multiplier = Fraction(smallest(lambda noise: gaussian_delta(1 / noise, at) <= target, start=1 / at))
    return raised(multiplier, Gaussian, epsilon=epsilon, delta=delta) * move


def discrete_gaussian_sigma(
    epsilon: check.Number, delta: check.Number, sensitivity: check.Number = 1, dimension: int = 1
) -> Fraction:
    """Returns the sigma of discrete Gaussian noise for (epsilon, delta)-DP, solved on the integers.

    The sigma that zCDP gives is certainly enough. In several dimensions, where no single shift is the worst, it is the
    answer. In one, the search starts from it and walks down while the profile, summed over the lattice, is seen to
    keep to delta; the sigma of the continuous law would be too small there.

    >>> round(float(discrete_gaussian_sigma(1, 1e-5)), 4)
    3.7405
    """
    at, target = _target(epsilon, delta)
    move = check.positive(sensitivity=sensitivity)
    entries = check.integer(dimension=dimension, at_least=1)
    certain = concentrated_sigma(_rho(at, target), move)
    if entries > 1:
        return raised(certain, lambda sigma: DiscreteGaussian(sigma, move, entries), epsilon=epsilon, delta=delta)
    if move.denominator != 1:
        raise InvalidParameter(
            "sensitivity", sensitivity, "to be whole in one dimension", "Integers move by whole steps."
        )

    def holds(sigma: Fraction) -> bool:
        try:
            return discrete_gaussian_delta(sigma, int(move), at) <= target
        except UnsupportedEvent:  # beyond what floats resolve
            return False

    found = certain
    if holds(certain):
        start = float_above(certain)
        found = Fraction(
            smallest(lambda sigma: holds(Fraction(sigma)), start, halvings=_HALVINGS, shrinking=_SHRINKING)
        )
    return raised(found, lambda sigma: DiscreteGaussian(sigma, move), epsilon=epsilon, delta=delta)


def _rho(epsilon: float, delta: float) -> float:
    rho = rho_for(epsilon, delta)
    if not rho > 0:
        raise InvalidParameter("epsilon", epsilon, "to be met by some amount of noise", "Raise epsilon or delta.")
    return rho


def raised(
    noise: Fraction, family: Callable[[Fraction], Events], *, epsilon: check.Number, delta: check.Number
) -> Fraction:
    """Returns the noise, raised by a little until what it releases is priced within the target.

    A price is searched by floats that round in their own way. Where delta is a small difference of large numbers, as at
    a tiny epsilon, it can come out above the target by a share of 10^-5, although the noise was seen to meet it.
    """
    target, share, step = check.positive(epsilon=epsilon), check.probability(delta=delta), _MARGIN
    while step < 1 and epsilon_of(family(noise), share) > target:
        noise, step = Fraction(float_above(noise * (1 + Fraction(step)))), 2 * step
    return noise


def concentrated_sigma(rho: check.Number, sensitivity: check.Number = 1) -> Fraction:
    """Returns the sigma at which Gaussian noise, continuous or discrete, is rho-zCDP.

    It is sensitivity / sqrt(2 rho), rounded up.

    >>> concentrated_sigma("0.5")
    Fraction(1, 1)
    """
    budget = check.positive(rho=rho)
    return check.positive(sensitivity=sensitivity) * root_above(1 / (2 * budget))


def calibrate(
    family: Callable[[Fraction], Events],
    *,
    epsilon: check.Number,
    delta: check.Number,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    start: check.Number = 1,
    precision: float = _PRECISION,
) -> Fraction:
    """Returns the least noise of a family of events that meets a target, to a relative precision, never below it.

    Args:
        family: from a noise level to the events it would release; more noise must never cost more.
        epsilon: the target.
        delta: the target.
        neighbours: the relation of the events.
        start: where to begin.
        precision: how much too large the noise may be.

    >>> from discreet.privacy import events
    >>> noise = calibrate(lambda s: events.Repeated(events.Gaussian(s), 4), epsilon=1, delta=1e-5)
    >>> 7.461 < noise < 7.463  # twice the noise of one release
    True
    """
    target = float_below(check.positive(epsilon=epsilon))
    share = check.not_negative(delta=delta)
    first = float(check.positive(start=start))

    def holds(noise: float) -> bool:
        return epsilon_of(family(Fraction(noise)), share, neighbours=neighbours) <= target

    low, high = _bracket(holds, first)
    while high - low > precision * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return Fraction(high)


def _bracket(holds: Callable[[float], bool], start: float) -> tuple[float, float]:
    """Noise that is too little and noise that is enough, a factor of two apart."""
    high = start
    while not holds(high):
        high *= 2
        if high > _LARGEST_NOISE:
            raise InvalidParameter(
                "epsilon", "the target", "to be met by some amount of noise", "Raise epsilon or delta."
            )
    low = high / 2
    while low > 1 / _LARGEST_NOISE and holds(low):
        low, high = low / 2, low
    return low, high


def _target(epsilon: check.Number, delta: check.Number) -> tuple[float, float]:
    """The target, lowered so that what `accounting.epsilon` says of the result, rounded up, still meets it."""
    return float_below(check.positive(epsilon=epsilon)) * (1 - _MARGIN), float_below(check.probability(delta=delta))
