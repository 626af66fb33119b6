"""The tightest valid bound for a list of releases fixed beforehand: the least over all methods that can price it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet import check
from discreet.accounting import composition, gdp, homogeneous, rdp, zcdp
from discreet.accounting.composition import Events, Terms, exact_delta, terms
from discreet.accounting.numerics import SLACK, argmin, safe
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import float_above, float_below
from discreet.lazy import Module
from discreet.privacy import ApproxDP, Neighbours

if TYPE_CHECKING:
    from discreet.accounting import pld
else:  # which charges do without: they compose by filters
    pld = Module("discreet.accounting.pld")

Bound = Callable[[Terms, float], float]

_LOG_EPSILONS = (math.log(1e-4), math.log(1e3))  # where a trade-off curve is looked for

_FAINT = 1e-300  # a delta below it counts as zero, except in sums of rationals


def _pld_epsilon(released: Terms, delta: float) -> float:
    return pld.epsilon(released, delta)


def _pld_delta(released: Terms, epsilon: float) -> float:
    return pld.delta(released, epsilon)


_EXACT: dict[str, tuple[Bound, Bound]] = {"GDP": (gdp.epsilon, gdp.delta)}
_OTHERS: dict[str, tuple[Bound, Bound]] = {
    "optimal homogeneous": (homogeneous.epsilon, homogeneous.delta),
    "zCDP": (zcdp.epsilon, zcdp.delta),
    "RDP": (rdp.epsilon, rdp.delta),
    "PLD": (_pld_epsilon, _pld_delta),
}


def epsilon(
    events: Events, delta: check.Number, *, neighbours: Neighbours = Neighbours.ADD_REMOVE, method: str | None = None
) -> float:
    """Returns the smallest epsilon at which the releases are certainly (epsilon, delta)-DP together.

    Args:
        events: one event or several, fixed before the first of them was released.
        delta: from 0, where only pure events have a finite epsilon, to below 1.
        neighbours: the relation for which the events were described; Poisson sampling needs `ADD_REMOVE`.
        method: one of `methods()` for comparison; None takes the least of all that apply.

    Returns:
        A float that is never below the truth.

    Raises:
        UnsupportedEvent: if no method can price the list.

    >>> from discreet.privacy import events
    >>> step = events.PoissonSampled(0.01, events.Gaussian(noise_multiplier=1))
    >>> round(epsilon(events.Repeated(step, 1000), 1e-5), 3)
    1.828
    """
    released, wanted = terms(events, Neighbours(neighbours)), exact_delta(delta)
    _check_method(method)
    if not released:
        return 0.0
    bounds = {} if method not in (None, "basic") else _basic_epsilon(released, wanted, method)
    if wanted > 0:
        bounds |= _run(released, float_below(wanted), 0, method)
    elif not bounds:  # an event with a price only at some delta has none without
        bounds = dict.fromkeys(_run(released, _FAINT, 0, method), math.inf)
    return _least(bounds, released, math.inf)


def delta(
    events: Events, epsilon: check.Number, *, neighbours: Neighbours = Neighbours.ADD_REMOVE, method: str | None = None
) -> float:
    """Returns the smallest delta at which the releases are certainly (epsilon, delta)-DP together, rounded up.

    >>> from discreet.privacy import events
    >>> f"{delta(events.Laplace(noise_multiplier=1), 0.5):.6f}"
    '0.221199'
    """
    released = terms(events, Neighbours(neighbours))
    exact = check.not_negative(epsilon=epsilon)
    _check_method(method)
    if not released:
        return 0.0
    bounds = {} if method not in (None, "basic") else _basic_delta(released, exact, method)
    others = {name: max(bound, _FAINT) for name, bound in _run(released, float_below(exact), 1, method).items()}
    return _least(bounds | others, released, 1.0)


def trade_off(events: Events, alpha: check.Number, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> float:
    """Returns the least false-negative rate of any test for one unit at the false-positive rate alpha, rounded down.

    The f-DP view (Dong, Roth, Su 2022): f(alpha) is the largest of 1 - delta - e^epsilon alpha and
    e^-epsilon (1 - delta - alpha) over all (epsilon, delta) of the profile.

    >>> from discreet.privacy import events
    >>> round(1 - trade_off(events.Pure(1), 0.05), 4)  # the power of the best attacker
    0.1359
    """
    rate = float_above(check.share(alpha=alpha))
    released = terms(events, Neighbours(neighbours))
    if not released:
        return 1 - rate
    try:
        return gdp.trade_off(released, rate)
    except UnsupportedEvent:
        return _trade_off_from_profile(released, rate)


def methods() -> tuple[str, ...]:
    """Returns the names of all methods, by which one of them can be asked for alone.

    >>> from discreet.privacy import events
    >>> questions = events.Repeated(events.Pure(0.1), 100)
    >>> {name: round(epsilon(questions, 1e-6, method=name), 2) for name in methods() if name != "GDP"}
    {'basic': 10.0, 'optimal homogeneous': 4.77, 'zCDP': 5.22, 'RDP': 5.07, 'PLD': 4.77}
    """
    return "basic", *_EXACT, *_OTHERS


def _check_method(method: str | None) -> None:
    if method is not None and method not in methods():
        raise InvalidParameter("method", method, f"to be one of {', '.join(methods())}")


def _run(released: Terms, argument: float, which: int, method: str | None) -> dict[str, float]:
    """Every method's bound; where one is exact, the others are not asked."""
    if method is not None:
        chosen = {name: pair for name, pair in (_EXACT | _OTHERS).items() if name == method}
        return {name: pair[which](released, argument) for name, pair in chosen.items()}
    exact = _collect(_EXACT, released, argument, which)
    return exact or _collect(_OTHERS, released, argument, which)


def _collect(table: dict[str, tuple[Bound, Bound]], released: Terms, argument: float, which: int) -> dict[str, float]:
    bounds = {}
    for name, pair in table.items():
        try:
            bounds[name] = pair[which](released, argument)
        except UnsupportedEvent:
            continue
    return bounds


def _basic_epsilon(released: Terms, wanted: Fraction, method: str | None) -> dict[str, float]:
    total = _basic(released, method)
    if total is None:
        return {}
    return {"basic": float_above(total.epsilon) if total.delta <= wanted else math.inf}


def _basic_delta(released: Terms, at: Fraction, method: str | None) -> dict[str, float]:
    total = _basic(released, method)
    if total is None:
        return {}
    return {"basic": float_above(total.delta) if total.epsilon <= at else 1.0}


def _basic(released: Terms, method: str | None) -> ApproxDP | None:
    """Returns the sum of all losses, or None, so that the other methods decide, unless this method was asked for."""
    try:
        return composition.compose(released)
    except UnsupportedEvent:
        if method is not None:
            raise
        return None


def _least(bounds: dict[str, float], released: Terms, worst: float) -> float:
    if not bounds:
        hint = "Describe the release by an event that has a price."
        raise UnsupportedEvent(next(iter(released)), "Accounting", hint)
    return min((bound for bound in bounds.values() if not math.isnan(bound)), default=worst)


def _trade_off_from_profile(released: Terms, rate: float) -> float:
    profile = _profile(released)

    def miss(at: float) -> float:
        left = 1 - safe(profile(at))
        return max(left - math.exp(min(at, 700)) * rate, math.exp(-at) * (left - rate))

    best = argmin(lambda log: -miss(math.exp(log)), *_LOG_EPSILONS, steps=40)
    return min(1 - rate, max(0.0, miss(0.0), miss(math.exp(best))) * (1 - SLACK))


def _profile(released: Terms) -> Callable[[float], float]:
    """delta as a function of epsilon, by PLD where it has a price, else by whatever has."""
    try:
        return pld.profile(released)
    except UnsupportedEvent:
        return lambda at: _least(_run(released, at, 1, None), released, 1.0)
