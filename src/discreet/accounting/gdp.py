"""Gaussian differential privacy: exact for lists of Gaussian releases, in any dimension.

The profile of N(mu, 1) against N(0, 1) is delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 -
epsilon/mu), and composition adds the squares of mu (Balle, Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 3.3).
"""

from __future__ import annotations

import math
from functools import singledispatch

from discreet.accounting.composition import Terms
from discreet.accounting.numerics import safe, smallest
from discreet.errors import UnsupportedEvent
from discreet.exact import float_above
from discreet.lazy import special
from discreet.privacy import GDP, events
from discreet.privacy.events import Event

_ULPS = 2.0**-47  # of each logarithm, in units of its size: 64 times the unit roundoff


@singledispatch
def gdp(event: Event) -> GDP:
    """Returns the mu of one event, where its trade-off curve is exactly that of a Gaussian."""
    raise UnsupportedEvent(event, "GDP", "Only Gaussian noise is Gaussian DP; use PLD.")


@gdp.register
def _(event: events.Gaussian) -> GDP:
    return GDP(1 / event.noise_multiplier)


def compose(released: Terms) -> GDP:
    """Returns the root of the sum of squares."""
    return GDP.compose([(gdp(event), count) for event, count in released.items()])


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Returns the smallest delta of mu-GDP at this epsilon, rounded up.

    Written as e^a (1 - e^(b - a)) with logarithms a and b of the two terms; the rounding of their difference is added.

    >>> f"{gaussian_delta(1 / 3.7306316348, 1.0):.6g}"
    '1e-05'
    """
    if mu <= 0:
        return 0.0
    a = float(special.log_ndtr(mu / 2 - epsilon / mu))
    b = epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu))
    rounding = _ULPS * (1 + abs(a) + abs(b) + epsilon)
    return min(1.0, math.exp(min(a, 0.0)) * min(1.0, -math.expm1(min(b - a - rounding, 0.0))) * (1 + rounding))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Returns the smallest epsilon of mu-GDP at this delta, rounded up."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    return smallest(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, start=max(mu, mu * mu))


def epsilon(released: Terms, delta: float) -> float:
    """Returns the epsilon of a list of Gaussian releases."""
    return safe(gaussian_epsilon(float_above(compose(released).mu), delta))


def delta(released: Terms, at: float) -> float:
    """Returns the delta of a list of Gaussian releases."""
    return min(1.0, safe(gaussian_delta(float_above(compose(released).mu), at)))


def trade_off(released: Terms, alpha: float) -> float:
    """Returns G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu): the least false-negative rate of any test, rounded down."""
    mu = float_above(compose(released).mu)
    return max(0.0, float(special.ndtr(-special.ndtri(alpha) - mu)) * (1 - 2.0**-40))
