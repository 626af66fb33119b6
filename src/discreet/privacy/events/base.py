"""What all events are, and events made of events: sampling, repetition, composition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from discreet import check
from discreet.check import Number, assign
from discreet.errors import InvalidParameter
from discreet.privacy.amounts import repetitions

DEEPEST = 32  # levels of nesting; no honest analysis needs ten
MOST_EVENTS = 1 << 20  # of one composition; more of the same is `Repeated`


class Event:
    """A description of one release, or of several: frozen, hashable, equal by content."""

    __slots__ = ()

    @property
    def depth(self) -> int:
        """Returns levels of nesting, 1 for an event that contains no other."""
        return 1


def nested_depth(event: Event) -> int:
    """Returns the depth of an event, refused if one more level around it would be too much."""
    if event.depth >= DEEPEST:
        name, kind = "event", type(event).__name__
        raise InvalidParameter(name, f"a {kind} {event.depth} levels deep", f"below {DEEPEST} levels", "Flatten it.")
    return event.depth


@dataclass(frozen=True, slots=True, init=False)
class PoissonSampled(Event):
    """The event, run on a secret sample that each unit enters independently with the given probability.

    Defined for `Neighbours.ADD_REMOVE` only, and `event` describes the release for that relation on the sampled
    units. All rows of a unit enter together: units are sampled, not rows. Several releases from one sample are one
    `Composed` inside; a fresh sample for each is a `Composed` or `Repeated` outside (Li, Qardaji, Su 2012; Balle,
    Barthe, Gaboardi 2018).

    Args:
        probability: above 0 and at most 1.
        event: what is released from the sample.

    Raises:
        InvalidParameter: outside these domains, or if events are nested too deeply.

    >>> PoissonSampled(0.01, Repeated(Composed([]), 2)).probability
    Fraction(1, 100)
    """

    probability: Fraction
    event: Event

    def __init__(self, probability: Number, event: Event) -> None:
        chance = check.positive(probability=probability)
        if chance > 1:
            raise InvalidParameter("probability", probability, "<= 1", "Pass a share, e.g. probability=0.01.")
        assign(self, probability=chance, event=_inner(event))

    @property
    def depth(self) -> int:
        """Returns levels of nesting."""
        return self.event.depth + 1


@dataclass(frozen=True, slots=True, init=False)
class Repeated(Event):
    """So many releases on the same data, each described by the event, with independent noise.

    Each may be chosen after seeing the ones before, as long as the event describes it (adaptive composition; Dwork,
    Rothblum, Vadhan 2010). The number was fixed beforehand.

    Args:
        event: what each release is.
        count: a whole number from 0.

    Raises:
        InvalidParameter: outside these domains, or if events are nested too deeply.

    >>> Repeated(Composed([]), 1000).count
    1000
    """

    event: Event
    count: int

    def __init__(self, event: Event, count: int) -> None:
        assign(self, event=_inner(event), count=repetitions(count))

    @property
    def depth(self) -> int:
        """Returns levels of nesting."""
        return self.event.depth + 1


@dataclass(frozen=True, slots=True, init=False)
class Composed(Event):
    """All the events on the same data, in this order, with independent noise; an empty list releases nothing.

    Each release may depend on the outcomes of the ones before; the list of events was fixed beforehand (adaptive
    composition of a declared list; Dwork, Rothblum, Vadhan 2010).

    Args:
        events: any iterable of events.

    Raises:
        InvalidParameter: if a member is no event, there are more than 2^20, or events are nested too deeply.

    >>> Composed([]).events
    ()
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        if not isinstance(events, Iterable):
            raise InvalidParameter("events", events, "to be several events", "Pass a list, e.g. Composed([event]).")
        members = tuple(_inner(event) for event in islice(events, MOST_EVENTS + 1))
        if len(members) > MOST_EVENTS:
            raise InvalidParameter(
                "events", f"more than {MOST_EVENTS} events", "fewer", "Use Repeated for equal events."
            )
        assign(self, events=members)

    @property
    def depth(self) -> int:
        """Returns levels of nesting."""
        return max((event.depth for event in self.events), default=0) + 1


def _inner(event: object) -> Event:
    inner = check.instance(Event, event=event)
    nested_depth(inner)
    return inner
