"""Composition: events taken apart into basic releases, and their epsilons and deltas added up in exact rationals.

`terms` is the one place where counts are multiplied. Basic composition holds also when each release is chosen
adaptively (Dwork, McSherry, Nissim, Smith 2006; Dwork, Kenthapadi, McSherry, Mironov, Naor 2006).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import singledispatch

from discreet import check
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import Enclosure, root_below, upper
from discreet.privacy import ApproxDP, Neighbours, events
from discreet.privacy.events import Event

Terms = Mapping[Event, int]
Events = Event | Iterable[Event]

METHOD = "Basic composition"
LARGEST_EXPONENT = 10_000  # beyond it sampling gains less than one part in a thousand and digits cost time


def terms(released: Events, neighbours: Neighbours = Neighbours.ADD_REMOVE, *, calibrated: bool = False) -> Terms:
    """Returns the basic releases in a list of events, each with the number of times it occurs.

    Composition does not depend on order, so n-fold composition and repetition have the same terms.

    Args:
        released: the events.
        neighbours: the relation they are described for.
        calibrated: whether `Calibrated` events stay whole, for `compose`; otherwise only the law of their noise counts.

    >>> terms([events.Pure(1), events.Repeated(events.Pure(1), 2)])
    {Pure(epsilon=Fraction(1, 1)): 3}

    Raises:
        UnsupportedEvent: for Poisson sampling under the replace relation, where its amplification does not hold.
    """
    listed = [released] if isinstance(released, Event) else list(released)
    total: Counter[Event] = Counter()
    for event in listed:
        _collect(check.instance(Event, event=event), 1, total, calibrated)
    result = {event: count for event, count in total.items() if count}
    if Neighbours(neighbours) is not Neighbours.ADD_REMOVE:
        for event in result:
            _refuse_sampling(event)
    return result


def strip_calibration(calibrated: Terms) -> Terms:
    """Returns terms that were made with `calibrated`, by the law of their noise."""
    if not any(events.strip_calibration(event) != event for event in calibrated):
        return calibrated
    return terms([events.Repeated(event, count) for event, count in calibrated.items()])


@singledispatch
def _collect(event: Event, count: int, total: Counter[Event], _calibrated: bool) -> None:
    total[event] += count


@_collect.register
def _(event: events.Repeated, count: int, total: Counter[Event], calibrated: bool) -> None:
    _collect(event.event, count * event.count, total, calibrated)


@_collect.register
def _(event: events.Composed, count: int, total: Counter[Event], calibrated: bool) -> None:
    for part in event.events:
        _collect(part, count, total, calibrated)


@_collect.register
def _(event: events.Calibrated, count: int, total: Counter[Event], calibrated: bool) -> None:
    if calibrated:
        total[event] += count
    else:
        _collect(event.event, count, total, calibrated)


@_collect.register
def _(event: events.PoissonSampled, count: int, total: Counter[Event], calibrated: bool) -> None:
    inside: Counter[Event] = Counter()
    _collect(event.event, 1, inside, calibrated)
    merged = merge(inside)
    if merged is None:  # nothing was released from the sample
        return
    if event.probability == 1:
        _collect(merged, count, total, calibrated)
    elif isinstance(merged, events.PoissonSampled):  # a sample of a sample is a sample
        joint = events.PoissonSampled(event.probability * merged.probability, merged.event)
        total[joint] += count
    else:
        total[events.PoissonSampled(event.probability, merged)] += count


def merge(inside: Terms) -> Event | None:
    """Merges several releases from one sample into a single event: they are composed first and amplified once.

    Gaussian releases merge exactly (their squared multipliers add up inverted). Others keep their composition.
    """
    live = {event: count for event, count in inside.items() if count}
    gaussian = {event: count for event, count in live.items() if isinstance(event, events.Gaussian)}
    if sum(live.values()) == 1:
        return next(iter(live))
    if live and len(gaussian) == len(live):
        return merged_gaussian(gaussian)
    parts = [events.Repeated(event, count) for event, count in sorted(live.items(), key=repr)]
    return events.Composed(parts) if parts else None


def merged_gaussian(gaussian: Mapping[events.Gaussian, int]) -> events.Gaussian:
    """Merges Gaussian releases into one, of the root of the sum of squared mu (Dong, Roth, Su 2022, Corollary 3.3)."""
    precision = sum((count / event.noise_multiplier**2 for event, count in gaussian.items()), Fraction(0))
    return events.Gaussian(root_below(1 / precision))


def _refuse_sampling(event: Event) -> None:
    if isinstance(event, events.PoissonSampled):
        raise UnsupportedEvent(
            event,
            "The replace relation",
            "Poisson sampling amplifies privacy for neighbours that add or remove a unit: pass "
            "neighbours=Neighbours.ADD_REMOVE, or convert the guarantee with privacy.convert.",
        )


def exact_delta(delta: check.Number) -> Fraction:
    """Returns a target delta, from 0 to below 1."""
    value = check.not_negative(delta=delta)
    if value >= 1:
        raise InvalidParameter("delta", delta, "< 1", "With delta=1 every release is allowed.")
    return value


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


@basic.register(events.Approx)
@basic.register(events.Calibrated)
def _(event: events.Approx | events.Calibrated) -> ApproxDP:
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
    inside = compose(terms(event.event, calibrated=True))
    return ApproxDP(amplified_epsilon(inside.epsilon, event.probability), event.probability * inside.delta)


def amplified_epsilon(epsilon: Fraction, probability: Fraction) -> Fraction:
    """Returns ln(1 + q (e^epsilon - 1)), rounded up.

    >>> round(float(amplified_epsilon(Fraction(1), Fraction(1, 100))), 7)
    0.0170369
    """
    if not epsilon or probability == 1 or epsilon > LARGEST_EXPONENT:  # it is never more than epsilon
        return epsilon
    bound = upper(lambda digits: ((Enclosure.of(epsilon, digits).exp() - 1) * probability + 1).log(), digits=60)
    return min(epsilon, bound)


def compose(released: Terms) -> ApproxDP:
    """Returns the sum over all terms.

    Raises:
        UnsupportedEvent: if a term has no (epsilon, delta), or the deltas reach 1.
    """
    try:
        return ApproxDP.compose([(basic(event), count) for event, count in released.items()])
    except InvalidParameter as error:
        raise UnsupportedEvent("this list", METHOD, f"Its deltas add up to 1 or more ({error.condition}).") from None
