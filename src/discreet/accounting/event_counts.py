"""Events taken apart: how often each basic release occurs. The one place where counts are multiplied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import singledispatch

from discreet import check
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import root_below
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event

Terms = Mapping[Event, int]
Events = Event | Iterable[Event]


def terms(released: Events, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Terms:
    """Returns the basic releases in a list of events, each with the number of times it occurs.

    Composition does not depend on order, so n-fold composition and repetition have the same terms.

    >>> terms([events.Pure(1), events.Repeated(events.Pure(1), 2)])
    {Pure(epsilon=Fraction(1, 1)): 3}

    Raises:
        UnsupportedEvent: for Poisson sampling under the replace relation, where its amplification does not hold.
    """
    listed = [released] if isinstance(released, Event) else list(released)
    total: Counter[Event] = Counter()
    for event in listed:
        _collect(check.instance(Event, event=event), 1, total)
    result = {event: count for event, count in total.items() if count}
    if Neighbours(neighbours) is not Neighbours.ADD_REMOVE:
        for event in result:
            _refuse_sampling(event)
    return result


@singledispatch
def _collect(event: Event, count: int, total: Counter[Event]) -> None:
    total[event] += count


@_collect.register
def _(event: events.Repeated, count: int, total: Counter[Event]) -> None:
    _collect(event.event, count * event.count, total)


@_collect.register
def _(event: events.Composed, count: int, total: Counter[Event]) -> None:
    for part in event.events:
        _collect(part, count, total)


@_collect.register
def _(event: events.PoissonSampled, count: int, total: Counter[Event]) -> None:
    inside: Counter[Event] = Counter()
    _collect(event.event, 1, inside)
    merged = merge(inside)
    if merged is None:  # nothing was released from the sample
        return
    if event.probability == 1:
        _collect(merged, count, total)
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
