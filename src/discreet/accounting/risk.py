"""What a release lets an attacker learn about one unit: the meaning of an epsilon in plain figures.

An attacker who knows everything but whether one unit is in the data sees one of two laws: P with it, Q without it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet import check
from discreet.accounting import composition
from discreet.accounting.bounds import delta as delta_of
from discreet.accounting.bounds import epsilon as epsilon_of
from discreet.accounting.bounds import trade_off
from discreet.accounting.composition import Events, terms
from discreet.accounting.numerics import argmin
from discreet.dataclass import dataclass
from discreet.errors import UnsupportedEvent
from discreet.exact import float_above
from discreet.privacy import Neighbours

FALSE_POSITIVES = Fraction(1, 20)
PRIOR = Fraction(1, 2)
CHANCE = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The best that any attacker can do; every figure is an upper bound, rounded up.

    Attributes:
        power: how often a unit that is there is found, by a test that accuses so many of those who are not.
        false_positives: that rate of wrong accusations.
        posterior: how sure the attacker can become that the unit is there, starting from the prior.
        prior: how sure the attacker was.
        guess: how often the best guess between there and not there is right, where both are equally likely.
        chance: with which the posterior may be exceeded; 0 if it never is.
    """

    power: float
    false_positives: Fraction
    posterior: float
    prior: Fraction
    guess: float
    chance: Fraction


def risk(
    events: Events,
    *,
    false_positives: check.Number = FALSE_POSITIVES,
    prior: check.Number = PRIOR,
    chance: check.Number = CHANCE,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Risk:
    """Returns what releases that were fixed beforehand let an attacker learn about one unit.

    Args:
        events: one event or several.
        false_positives: the rate at which the attacker may accuse those who are not there.
        prior: how sure the attacker is before the release.
        chance: with which the posterior may be exceeded, where the loss has no largest value; pure releases need none.
        neighbours: the relation of the events.

    Formal guarantee: the power is 1 - f(alpha) for the trade-off function f (Dong, Roth, Su 2022). If the privacy loss
    is at most L, the odds grow by at most e^L, so the posterior is at most p e^L / (1 - p + p e^L). The best guess is
    right with (1 + TV) / 2, where TV = delta(0) is the total variation distance.

    >>> from discreet.privacy.events import Pure
    >>> found = risk(Pure(1))
    >>> round(found.power, 4), round(found.posterior, 4)
    (0.1359, 0.7311)
    """
    rate, sure, rare = (
        check.share(false_positives=false_positives),
        check.probability(prior=prior),
        check.probability(chance=chance),
    )
    largest, exceeded = _largest_loss(events, rare, neighbours)
    return Risk(
        power=1 - trade_off(events, rate, neighbours=neighbours),
        false_positives=rate,
        posterior=_posterior(float(sure), largest),
        prior=sure,
        guess=(1 + delta_of(events, 0, neighbours=neighbours)) / 2,
        chance=exceeded,
    )


def _largest_loss(events: Events, chance: Fraction, neighbours: Neighbours) -> tuple[float, Fraction]:
    """Returns a loss that is exceeded with at most a chance, and that chance; 0 if it never is.

    From delta(epsilon) = E[(1 - e^(epsilon - L))+] it follows that P(L > epsilon + t) <= delta(epsilon) / (1 - e^-t)
    for every t > 0, under either of the two laws: the least sum is taken.
    """
    try:
        total = composition.compose(terms(events, neighbours))
    except UnsupportedEvent:
        total = None
    if total is not None and not total.delta:
        return float_above(total.epsilon), Fraction(0)

    def loss_bound(log: float) -> float:
        margin = math.exp(log)
        share = chance * Fraction(-math.expm1(-margin))
        return epsilon_of(events, share, neighbours=neighbours) + margin

    return min(math.inf, loss_bound(argmin(loss_bound, math.log(1e-3), math.log(10.0), steps=12))), chance


def _posterior(prior: float, loss: float) -> float:
    """p e^L / (1 - p + p e^L), written so that nothing overflows."""
    return prior / (prior + (1 - prior) * math.exp(-loss))
