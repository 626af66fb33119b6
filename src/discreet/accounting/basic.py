"""Basic composition: epsilons and deltas add up, in exact rationals, also when each release is chosen adaptively.

Dwork, McSherry, Nissim, Smith 2006; Dwork, Kenthapadi, McSherry, Mironov, Naor 2006.
"""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch

from discreet.accounting.event_counts import Terms, terms
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import Enclosure, upper
from discreet.privacy import ApproxDP, events
from discreet.privacy.events import Event

METHOD = "Basic composition"


@singledispatch
def basic(event: Event) -> ApproxDP:
    """Returns the (epsilon, delta) that one event certainly satisfies, in exact rationals rounded up.

    >>> print(basic(events.Laplace(noise_multiplier=4)))
    epsilon=0.25, delta=0
    """
    raise UnsupportedEvent(event, METHOD, "It has no single (epsilon, delta); use zCDP, RDP or PLD.")


@basic.register(events.Pure)
@basic.register(events.BoundedRange)
@basic.register(events.RandomizedResponse)
def _(event: events.Pure | events.BoundedRange | events.RandomizedResponse) -> ApproxDP:
    return ApproxDP(event.epsilon, 0)


@basic.register
def _(event: events.Approx) -> ApproxDP:
    return ApproxDP(event.epsilon, event.delta)


@basic.register
def _(event: events.Laplace) -> ApproxDP:
    return ApproxDP(1 / event.noise_multiplier, 0)


@basic.register
def _(event: events.DiscreteLaplace) -> ApproxDP:
    return ApproxDP(event.sensitivity / event.scale, 0)


@basic.register
def _(event: events.PoissonSampled) -> ApproxDP:
    """(ln(1 + q(e^epsilon - 1)), q delta) of the inside, composed (Li, Qardaji, Su 2012; Balle et al. 2018)."""
    inside = compose(terms(event.event))
    return ApproxDP(amplified(inside.epsilon, event.probability), event.probability * inside.delta)


def amplified(epsilon: Fraction, probability: Fraction) -> Fraction:
    """Returns ln(1 + q (e^epsilon - 1)), rounded up.

    >>> round(float(amplified(Fraction(1), Fraction(1, 100))), 7)
    0.0170369
    """
    if not epsilon or probability == 1:
        return epsilon
    if (
        epsilon > LARGEST_EXPONENT
    ):  # ln(1 + q (e^epsilon - 1)) <= epsilon + ln q + e^-epsilon / q, and less than epsilon
        return epsilon
    bound = upper(lambda digits: ((Enclosure.of(epsilon, digits).exp() - 1) * probability + 1).log(), digits=60)
    return min(epsilon, bound)


def compose(released: Terms) -> ApproxDP:
    """Returns the sum over all terms.

    Raises:
        UnsupportedEvent: if a term has no (epsilon, delta), or the deltas reach 1.
    """
    total = ApproxDP(0, 0)
    try:
        for event, count in released.items():
            total = total + basic(event) * count
    except InvalidParameter as error:
        raise UnsupportedEvent("this list", METHOD, f"Its deltas add up to 1 or more ({error.condition}).") from None
    return total


LARGEST_EXPONENT = 10_000  # beyond it sampling gains less than one part in a thousand and digits cost time
