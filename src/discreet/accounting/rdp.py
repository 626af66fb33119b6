"""Rényi differential privacy: curves over orders that add up (Mironov 2017).

A price is the cumulant k(alpha) = (alpha - 1) D_alpha of the privacy loss on a fixed list of orders, together with
a share of delta. Cumulants are convex in alpha and vanish at 1, so a chord between two known orders is a bound.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, singledispatch

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.composition import Terms, basic, terms
from discreet.accounting.numerics import safe
from discreet.dataclass import dataclass
from discreet.errors import UnsupportedEvent
from discreet.exact import float_above
from discreet.lazy import special
from discreet.privacy import events
from discreet.privacy.events import Event

ORDERS: NDArray[np.float64] = np.array(
    [1 + x / 100 for x in (1, 2, 5)]
    + [x / 10 for x in range(11, 110)]
    + [float(x) for x in range(11, 65)]
    + [80.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1024.0, 2048.0, 4096.0]
)
"""Orders at which curves are known; small ones serve large epsilons, large ones small deltas."""

_ROUNDING = 2.0**-44
_WHOLE_ORDERS = [int(order) for order in ORDERS if order == int(order)]
_BROKEN_ORDERS = np.array([order for order in ORDERS if 3 < order < 11 and order != int(order)])
_SERIES = 512  # terms at broken orders; they fall at least like i^-5


@dataclass(frozen=True, slots=True, eq=False)
class Renyi:
    """A curve of cumulants over ORDERS, and the probability with which it does not hold."""

    cumulants: NDArray[np.float64]
    delta: Fraction = Fraction(0)

    def __add__(self, other: Renyi) -> Renyi:
        return Renyi(self.cumulants + other.cumulants, self.delta + other.delta)

    def __mul__(self, count: int) -> Renyi:
        return Renyi(self.cumulants * count, self.delta * count)

    @property
    def divergences(self) -> NDArray[np.float64]:
        """Returns D_alpha over ORDERS."""
        return self.cumulants / (ORDERS - 1)


@singledispatch
def rdp(event: Event) -> Renyi:
    """Returns the curve of one event, rounded up; a pure guarantee is as bad as randomized response at most."""
    loss = basic(event)
    return Renyi(_up(_randomized_response(float_above(loss.epsilon))), loss.delta)


def _up(cumulants: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(cumulants, 0.0) * (1 + _ROUNDING)


def _randomized_response(epsilon: float) -> NDArray[np.float64]:
    """ln(p^a (1-p)^(1-a) + (1-p)^a p^(1-a)) with p = e^eps / (1 + e^eps): the worst curve of any epsilon-DP release.

    Mironov 2017, Section 6; in the form -ln(1 + e^-eps) + ln(e^((a-1) eps) + e^(-a eps)).
    """
    a = ORDERS
    smooth = np.logaddexp((a - 1) * epsilon, -a * epsilon) - math.log1p(math.exp(-epsilon))
    return np.minimum(smooth, (a - 1) * epsilon * np.minimum(1.0, a * epsilon / 2))


@rdp.register
def _(event: events.Laplace) -> Renyi:
    """ln(a/(2a-1) e^((a-1)/b) + (a-1)/(2a-1) e^(-a/b)); Mironov 2017, Proposition 6."""
    a, inverse = ORDERS, float_above(1 / event.noise_multiplier)
    curve = np.logaddexp(np.log(a / (2 * a - 1)) + (a - 1) * inverse, np.log((a - 1) / (2 * a - 1)) - a * inverse)
    return Renyi(_up(np.minimum(curve, _randomized_response(inverse))))


@rdp.register
def _(event: events.Gaussian) -> Renyi:
    """a (a - 1) / (2 noise_multiplier^2); Mironov 2017, Proposition 7."""
    return _quadratic(1 / (2 * event.noise_multiplier**2))


@rdp.register
def _(event: events.DiscreteGaussian) -> Renyi:
    """The same curve as the continuous law; Canonne, Kamath, Steinke 2020, Theorem 14."""
    return _quadratic(event.sensitivity**2 / (2 * event.sigma**2))


@rdp.register
def _(event: events.Concentrated) -> Renyi:
    return Renyi(_quadratic(event.rho).cumulants, event.delta)


@rdp.register
def _(event: events.BoundedRange) -> Renyi:
    """The lesser of a epsilon^2 / 8 (Cesar, Rogers 2021) and the curve of a pure epsilon."""
    concentrated = _quadratic(event.epsilon**2 / 8).cumulants
    return Renyi(np.minimum(concentrated, rdp(events.Pure(event.epsilon)).cumulants))


def _quadratic(rho: Fraction) -> Renyi:
    return Renyi(_up(ORDERS * (ORDERS - 1) * float_above(rho)))


@rdp.register
def _(event: events.PoissonSampled) -> Renyi:
    """Gaussian noise on a Poisson sample (Mironov, Talwar, Zhang 2019, Sections 3.3), and chords between known orders.

    The removal direction is the larger one for Gaussian noise (their Theorem 5). Any other event counts as the pure
    guarantee that sampling leaves of it, or keeps its curve: divergences are quasi-convex (see zCDP).
    """
    if not isinstance(event.event, events.Gaussian):
        return _sampled_otherwise(event)
    rate, precision = float_above(event.probability), float_above(1 / (2 * event.event.noise_multiplier**2))
    if rate == 1:  # closer to 1 than floats can say: a sample of all rows is never better
        return rdp(event.event)
    return Renyi(_up(_sampled_curve(rate, precision)))


@lru_cache(maxsize=64)  # a filter is charged for the same step thousands of times
def _sampled_curve(rate: float, precision: float) -> NDArray[np.float64]:
    whole = [_sampled_cumulant(order, rate, precision) for order in _WHOLE_ORDERS]
    curve = np.interp(ORDERS, [1, *_WHOLE_ORDERS], [0.0, *whole])
    broken = np.isin(ORDERS, _BROKEN_ORDERS)
    curve[broken] = np.fmin(curve[broken], _broken_cumulants(rate, precision))
    return curve


def _sampled_otherwise(event: events.PoissonSampled) -> Renyi:
    try:
        loss = basic(event)
    except UnsupportedEvent:
        return compose(terms(event.event))
    return Renyi(_up(_randomized_response(float_above(loss.epsilon))), loss.delta)


def _sampled_cumulant(order: int, rate: float, precision: float) -> float:
    """ln of the sum over k of C(order, k) (1-q)^(order-k) q^k e^(k (k-1) / (2 sigma^2))."""
    k = np.arange(order + 1)
    log_choose = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
    logs = log_choose + (order - k) * math.log1p(-rate) + k * math.log(rate) + k * (k - 1) * precision
    error = 2.0**-48 * order * math.log(order + 1)  # of the log-gamma values, which cancel
    return max(0.0, float(special.logsumexp(logs))) + error


def _broken_cumulants(rate: float, precision: float) -> NDArray[np.float64]:
    """Returns the same at fractional orders, by two binomial series that meet where both mixture parts are equal.

    From the first index above the order on, signs alternate and sizes fall, so the last term bounds the omitted rest.
    Where cancellation would cost more than 2^-30 the result is NaN, and the chord stays.
    """
    variance = 1 / (2 * precision)
    meeting = variance * (math.log1p(-rate) - math.log(rate)) + 0.5
    a, i = _BROKEN_ORDERS[:, None], np.arange(_SERIES, dtype=np.float64)
    signs = np.where(special.gammasgn(a - i + 1) > 0, 1.0, -1.0)
    log_choose = special.gammaln(a + 1) - special.gammaln(i + 1) - special.gammaln(a - i + 1)
    sigma = math.sqrt(variance)

    def part(power: NDArray[np.float64], tail: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = (a - power) * math.log1p(-rate) + power * math.log(rate)
        return log_choose + weights + power * (power - 1) * precision + special.log_ndtr(tail / sigma)

    low, high = part(i + 0 * a, meeting - i), part(a - i, a - i - meeting)
    top = np.maximum(low.max(axis=1), high.max(axis=1))[:, None]
    terms_ = np.exp(low - top) + np.exp(high - top)
    total = (signs * terms_).sum(axis=1) + terms_[:, -1] + 2.0**-44 * terms_.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 2.0**-14 * terms_.sum(axis=1), np.log(total) + top[:, 0], np.nan)


def compose(released: Terms) -> Renyi:
    """Returns the sum over all terms."""
    total = Renyi(np.zeros_like(ORDERS))
    for event, count in released.items():
        total = total + rdp(event) * count
    return total


def epsilon(released: Terms, delta: float) -> float:
    """Returns the least over orders of D_a + ln((a-1)/a) - (ln delta + ln a)/(a-1).

    See Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    total = compose(released)
    left = delta - float_above(total.delta)
    if left <= 0:
        return math.inf
    bounds = total.divergences + np.log1p(-1 / ORDERS) - (math.log(left) + np.log(ORDERS)) / (ORDERS - 1)
    return safe(max(0.0, float(np.min(bounds))))


def delta(released: Terms, at: float) -> float:
    """Returns the least over orders of e^((a-1)(D_a - epsilon)) (1 - 1/a)^a / (a - 1)."""
    total = compose(released)
    logs = total.cumulants - (ORDERS - 1) * at + ORDERS * np.log1p(-1 / ORDERS) - np.log(ORDERS - 1)
    return min(1.0, safe(math.exp(min(0.0, float(np.min(logs)) + 1e-12)) + float_above(total.delta)))
