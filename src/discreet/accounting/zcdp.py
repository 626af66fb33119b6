"""Zero-concentrated differential privacy: rho adds up, in exact rationals, also under adaptive choice.

Bun, Steinke 2016. The pairs (rho, delta) of approximate zCDP add up likewise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from discreet import check
from discreet.accounting.composition import Terms, basic, terms
from discreet.accounting.numerics import least, safe
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import float_above
from discreet.privacy import ZCDP, events
from discreet.privacy.events import Event

METHOD = "zCDP"
_SMALLEST = Fraction(1, 10**check.LARGEST_EXPONENT)
_ORDERS = (math.log(1e-9), math.log(1e12))  # of alpha - 1, in logarithms


@singledispatch
def zcdp(event: Event) -> ZCDP:
    """Returns the (rho, delta) of one event; a pure epsilon counts epsilon^2 / 2 (Bun, Steinke 2016, Proposition 1.4).

    >>> print(zcdp(events.Pure(1)), zcdp(events.BoundedRange(1)), zcdp(events.Gaussian(noise_multiplier=1)))
    rho=0.5 rho=0.125 rho=0.5
    """
    loss = basic(event)
    return ZCDP(_rho(loss.epsilon**2 / 2), loss.delta)


def _rho(exact: Fraction) -> Fraction:
    """Returns a price that the domain of losses can hold: one below 1e-300 is rounded up to it."""
    return max(exact, _SMALLEST) if exact else exact


@zcdp.register
def _(event: events.Gaussian) -> ZCDP:
    """rho = 1 / (2 noise_multiplier^2); Bun, Steinke 2016, Proposition 1.6; tight."""
    return ZCDP(_rho(1 / (2 * event.noise_multiplier**2)))


@zcdp.register
def _(event: events.DiscreteGaussian) -> ZCDP:
    """rho = sensitivity^2 / (2 sigma^2), in any dimension; Canonne, Kamath, Steinke 2020, Theorem 14."""
    return ZCDP(_rho(event.sensitivity**2 / (2 * event.sigma**2)))


@zcdp.register
def _(event: events.BoundedRange) -> ZCDP:
    """rho = epsilon^2 / 8; Cesar, Rogers 2021, by Hoeffding's lemma on a loss of range epsilon."""
    return ZCDP(_rho(event.epsilon**2 / 8))


@zcdp.register
def _(event: events.Concentrated) -> ZCDP:
    return ZCDP(event.rho, event.delta)


@zcdp.register
def _(event: events.PoissonSampled) -> ZCDP:
    """What is pure inside is amplified; anything else keeps its price, since divergences are quasi-convex.

    (1-q) Q + q P is no further from Q than P is, nor P from (1-q) P + q Q (van Erven, Harremoes 2014, Theorem 13).
    """
    try:
        loss = basic(event)
    except UnsupportedEvent:
        return compose(terms(event.event))
    return ZCDP(loss.epsilon**2 / 2, loss.delta)


def compose(released: Terms) -> ZCDP:
    """Returns the sum over all terms."""
    try:
        return ZCDP.compose([(zcdp(event), count) for event, count in released.items()])
    except InvalidParameter as error:
        raise UnsupportedEvent("this list", METHOD, f"Its deltas add up to 1 or more ({error.condition}).") from None


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Returns the smallest epsilon that rho-zCDP implies at this delta, rounded up.

    Every order alpha gives a bound, alpha rho + (ln(1/delta) + alpha ln(1 - 1/alpha) - ln(alpha - 1)) / (alpha - 1)
    (Canonne, Kamath, Steinke 2020, Proposition 12), and the least is taken.

    >>> f"{zcdp_epsilon(0.5, 1e-6):.6f}"
    '5.221534'
    """
    if rho <= 0:
        return 0.0

    def epsilon_bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return order * rho + (-math.log(delta) - order * math.log1p(1 / excess) - log_excess) / excess

    return safe(max(0.0, least(epsilon_bound, *_ORDERS)))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Returns the smallest delta that rho-zCDP implies at this epsilon, rounded up."""
    if rho <= 0:
        return 0.0

    def log_bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return excess * (order * rho - epsilon) - order * math.log1p(1 / excess) - log_excess

    return min(1.0, safe(math.exp(min(0.0, least(log_bound, *_ORDERS) + 1e-12))))


def rho_for(epsilon: float, delta: float) -> float:
    """Returns the largest rho whose conversion stays within (epsilon, delta), rounded down.

    The bound of an order (`zcdp_epsilon`) is at most epsilon for rho up to a number of its own; one order is enough, so
    the largest of these numbers is taken.

    >>> f"{rho_for(5.221534, 1e-6):.6f}"
    '0.500000'
    """

    def negative_rho(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1 + excess
        return -(epsilon + (math.log(delta) + order * math.log1p(1 / excess) + log_excess) / excess) / order

    rho, less = -least(negative_rho, *_ORDERS), 2.0**-48
    while rho > 0 and zcdp_epsilon(rho, delta) > epsilon:
        rho, less = rho * (1 - less), 2 * less
    return max(0.0, rho)


def epsilon(released: Terms, delta: float) -> float:
    """Returns the epsilon of a list at this delta, after the events' own deltas are subtracted from it."""
    total = compose(released)
    left = delta - float_above(total.delta)
    if left <= 0:
        return math.inf if total.rho or total.delta > delta else 0.0
    return zcdp_epsilon(float_above(total.rho), left)


def delta(released: Terms, at: float) -> float:
    """Returns the delta of a list at this epsilon."""
    total = compose(released)
    return min(1.0, safe(zcdp_delta(float_above(total.rho), at) + float_above(total.delta)))
