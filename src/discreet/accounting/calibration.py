"""Noise for a target, always ending on the safe side: what is returned was seen to satisfy the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet import check
from discreet.accounting import gdp, rdp, zcdp
from discreet.accounting.bounds import epsilon as epsilon_of
from discreet.accounting.composition import Events, Terms, terms
from discreet.accounting.gdp import gaussian_delta
from discreet.accounting.numerics import smallest
from discreet.accounting.zcdp import rho_for
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import float_above, float_below, root_above
from discreet.lazy import Module
from discreet.privacy import Neighbours
from discreet.privacy.events import Approx, DiscreteGaussian, Gaussian, Repeated

if TYPE_CHECKING:
    from discreet.accounting import pld
    from discreet.accounting.loss_distributions import dominating_pairs
else:  # which most noise is found without
    pld = Module("discreet.accounting.pld")
    dominating_pairs = Module("discreet.accounting.loss_distributions.dominating_pairs")

_PRECISION = 1e-4
_LARGEST_NOISE = 2.0**60
_MARGIN = 2.0**-34
_RAISES = 34  # of noise by 2^-34, 2^-33, ..., 1/2 of itself
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
    return increase_noise(multiplier, Gaussian, epsilon=epsilon, delta=delta) * move


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
        return increase_noise(
            certain, lambda sigma: DiscreteGaussian(sigma, move, entries), epsilon=epsilon, delta=delta
        )
    if move.denominator != 1:
        raise InvalidParameter(
            "sensitivity", sensitivity, "to be whole in one dimension", "Integers move by whole steps."
        )

    def holds(sigma: Fraction) -> bool:
        try:
            return dominating_pairs.discrete_gaussian_delta(sigma, int(move), at) <= target
        except UnsupportedEvent:  # beyond what floats resolve
            return False

    found = certain
    if holds(certain):
        start = float_above(certain)
        found = Fraction(
            smallest(lambda sigma: holds(Fraction(sigma)), start, halvings=_HALVINGS, shrinking=_SHRINKING)
        )
    return increase_noise(found, lambda sigma: DiscreteGaussian(sigma, move), epsilon=epsilon, delta=delta)


def _rho(epsilon: float, delta: float) -> float:
    rho = rho_for(epsilon, delta)
    if not rho > 0:
        raise InvalidParameter("epsilon", epsilon, "to be met by some amount of noise", "Raise epsilon or delta.")
    return rho


def increase_noise(
    noise: Fraction, family: Callable[[Fraction], Events], *, epsilon: check.Number, delta: check.Number
) -> Fraction:
    """Returns the noise, raised by a little until what it releases is priced within the target.

    A price is searched by floats that round in their own way. Where delta is a small difference of large numbers, as at
    a tiny epsilon, it can come out above the target by a share of 10^-5, although the noise was seen to meet it.

    Noise is raised by 2^-34 of itself, then by 2^-33, 2^-32, ..., and the first that is seen to meet the target is
    returned. One after the other is tried, except for Gaussian noise in several parts together with leaks: its price
    falls as noise grows, so the first that meets the target is the one that does while its predecessor does not, and
    interpolation finds both in about four looks.
    """
    target, share = check.positive(epsilon=epsilon), check.probability(delta=delta)
    tries = [noise]

    def raise_noise(times: int) -> Fraction:
        while len(tries) <= times:
            tries.append(Fraction(float_above(tries[-1] * (1 + Fraction(_MARGIN) * 2 ** (len(tries) - 1)))))
        return tries[times]

    def excess(times: int) -> float:
        return _excess(terms(family(raise_noise(times))), target, share)

    released = terms(family(noise))
    times = _interpolate_raises(excess, _slope(released, target)) if _falls_smoothly(released) else _first(excess)
    return raise_noise(times)


def _first(excess: Callable[[int], float]) -> int:
    """Returns the first of 0, 1, 2, ... without excess; the last, which is not looked at, if none is."""
    return next((times for times in range(_RAISES) if excess(times) <= 0), _RAISES)


def _interpolate_raises(excess: Callable[[int], float], slope: float) -> int:
    """Returns the same for an excess that falls: n raises add (2^n - 1) 2^-34 to noise, where it is nearly linear.

    The slope makes the first guess, and two points on either side the others. Whatever is guessed, the search ends
    where the excess was seen to be above 0 just before, and not above 0 there.
    """
    low, above = 0, excess(0)
    if above <= 0:
        return 0
    high, below = _RAISES, 0.0
    crossing = 1 + above / (slope * _MARGIN)
    while high - low > 1:
        guess = math.ceil(math.log2(crossing)) if math.isfinite(crossing) else high
        guess = min(max(guess, low + 1), high - 1)
        found = excess(guess)
        if found > 0:
            low, above = guess, found
        else:
            high, below = guess, found
        crossing = 2.0**low + (2.0**high - 2.0**low) / (1 - below / above)
    return high


def _slope(released: Terms, epsilon: Fraction) -> float:
    """Returns the relative fall of delta per relative rise of noise: mu phi(epsilon/mu - mu/2) / delta, of the profile.

    It is that of Gaussian noise alone, for a guess.
    """
    gaussian: Terms = {event: count for event, count in released.items() if isinstance(event, Gaussian)}
    mu, at = float(gdp.compose(gaussian).mu), float(epsilon)
    density = math.exp(-((at / mu - mu / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
    return max(1.0, mu * density / (2 * max(gaussian_delta(mu, at), 1e-300)))


def _falls_smoothly(released: Terms) -> bool:
    """Returns whether noise is Gaussian in several parts with leaks, so that the price is that of a law on a grid.

    Other prices are roots of closed forms, or sums over a lattice, which may rise and fall by their rounding.
    """
    gaussian = sum(count for event, count in released.items() if isinstance(event, Gaussian))
    leaks = sum(count for event, count in released.items() if isinstance(event, Approx) and not event.epsilon)
    return gaussian > 1 and leaks > 0 and gaussian + leaks == sum(released.values())


def _excess(released: Terms, epsilon: Fraction, delta: Fraction) -> float:
    """Returns a number that falls with the price of the releases, above 0 if, and only if, this is above epsilon."""
    beyond = _without_transforms(released, epsilon, delta)
    if beyond is not None and beyond <= 0:  # a price is the least of all methods
        return beyond
    if beyond is None:
        price = epsilon_of([Repeated(event, count) for event, count in released.items()], delta)
    else:
        price = min(zcdp.epsilon(released, float_below(delta)), rdp.epsilon(released, float_below(delta)))
        if price > epsilon:
            return beyond
    return float(Fraction(price) / epsilon - 1) if math.isfinite(price) else math.inf


def _without_transforms(released: Terms, epsilon: Fraction, delta: Fraction) -> float | None:
    if not _falls_smoothly(released):
        return None
    try:
        return pld.excess(released, float_below(epsilon), float_below(delta))
    except UnsupportedEvent:  # other methods have a price
        return None


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
    """Returns the target, lowered so that what `accounting.epsilon` says of the result, rounded up, still meets it."""
    return float_below(check.positive(epsilon=epsilon)) * (1 - _MARGIN), float_below(check.probability(delta=delta))
