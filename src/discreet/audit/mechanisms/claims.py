"""What a mechanism claims, as an epsilon at a delta, and as a mu where its event is Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet import accounting, check
from discreet.accounting import gdp
from discreet.accounting.basic import basic
from discreet.accounting.terms import exact_delta, terms
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import float_above
from discreet.mechanisms import Mechanism
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event

DELTA = Fraction(1, 10**5)  # at which a curve without a delta of its own is looked at


@dataclass(frozen=True, slots=True)
class Claim:
    """An epsilon that holds at a delta, and the mu of Gaussian DP where that is claimed."""

    epsilon: float
    delta: float
    mu: float | None = None


def claim_of(
    mechanism: object,
    *,
    epsilon: check.Number | None,
    delta: check.Number | None,
    event: Event | None,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Claim:
    """The claim of a mechanism, by its own event, by another one, or by numbers.

    Raises:
        InvalidParameter: if nothing is claimed, or two things are.
    """
    if epsilon is not None:
        if event is not None:
            raise InvalidParameter("epsilon", epsilon, "to be left out", "The event says what is claimed.")
        exact = check.not_negative(epsilon=epsilon)
        return Claim(float_above(exact), float_above(exact_delta(0 if delta is None else delta)))
    known = event or (mechanism.event if isinstance(mechanism, Mechanism) else None)
    if known is None:
        raise InvalidParameter("epsilon", None, "to be given", "Pass what is claimed, e.g. epsilon=1, delta=1e-6.")
    at = own_delta(known) if delta is None else exact_delta(delta)
    return Claim(accounting.epsilon(known, at, neighbours=neighbours), float_above(at), _mu(known))


def own_delta(event: Event) -> Fraction:
    """The delta at which an event is looked at: what its promises add up to, and a little where it has a curve.

    >>> own_delta(events.Pure(1)), own_delta(events.Approx(1, 1e-6))
    (Fraction(0, 1), Fraction(1, 1000000))
    """
    total, curves = Fraction(0), False
    for part, count in terms(event).items():
        try:
            total += count * basic(part).delta
        except UnsupportedEvent:
            curves = True
    return total + (DELTA if curves else 0)


def _mu(event: Event) -> float | None:
    """The mu of a list of Gaussian releases; None for all others, discrete Gaussian ones included."""
    parts = terms(event)
    if not parts or not all(isinstance(part, events.Gaussian) for part in parts):
        return None
    return float_above(gdp.compose(parts).mu)
