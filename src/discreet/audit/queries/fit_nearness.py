"""How far apart neighbours are where a learner's numbers meet noise, beside what each mechanism says and what was paid.

With outputs frozen, what a pair of neighbours costs follows from its inputs: |a - b|_1 epsilon / sensitivity for
Laplace noise, |a - b|_2 epsilon / sensitivity for K-norm noise, |a - b|_2^2 / (2 sigma^2) of rho for Gaussian noise,
rate times the range of the changes of scores for choices. Adaptive releases add up, in each currency.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from discreet import accounting
from discreet.audit.queries.mechanism_recorder import Handed
from discreet.audit.queries.sensitivity import Move
from discreet.errors import UnsupportedEvent
from discreet.exact import root_above, root_below
from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    KNorm,
    Laplace,
    Mechanism,
    PartitionSelection,
    PermuteAndFlip,
)
from discreet.mechanisms.knorm import Norm
from discreet.privacy import Neighbours, events

NOTHING = Fraction(0)
ROUNDING = 1 + 1e-6  # prices of events are rounded up


def moves(one: Handed, other: Handed, neighbours: Neighbours) -> tuple[Move, ...]:
    """The distances of two inputs of one release, each with what the mechanism says that it hides.

    Raises:
        UnsupportedEvent: for a mechanism that no learner should use.
    """
    if isinstance(one.mechanism, PartitionSelection):
        return _selected(one, other, neighbours)
    return (_moved(one.mechanism, one.inputs[0], other.inputs[0]),)


@singledispatch
def _moved(mechanism: Mechanism, one: Any, other: Any) -> Move:
    del one, other
    raise UnsupportedEvent(mechanism.event, f"The audit of fits by {type(mechanism).__name__}")


@_moved.register(Laplace)
@_moved.register(DiscreteLaplace)
def _(mechanism: Laplace | DiscreteLaplace, one: Any, other: Any) -> Move:
    allowed = mechanism.event.sensitivity / mechanism.event.scale
    distance = sum((abs(step) for step in _steps(one, other)), NOTHING)
    return Move(distance / mechanism.sensitivity * allowed, allowed, "epsilon")


@_moved.register(Gaussian)
@_moved.register(DiscreteGaussian)
def _(mechanism: Gaussian | DiscreteGaussian, one: Any, other: Any) -> Move:
    twice = 2 * mechanism.sigma**2
    square = sum((step * step for step in _steps(one, other)), NOTHING)
    return Move(square / twice, mechanism.sensitivity**2 / twice, "rho")


@_moved.register
def _(mechanism: KNorm, one: Any, other: Any) -> Move:
    """A root is rounded down: nobody is accused for a rounding."""
    steps = [abs(step) for step in _steps(one, other)]
    if mechanism.norm is Norm.LINF:
        distance = max(steps, default=NOTHING)
    else:
        distance = root_below(sum((step * step for step in steps), NOTHING))
    return Move(distance / mechanism.sensitivity * mechanism.epsilon, mechanism.epsilon, "epsilon")


@_moved.register(PermuteAndFlip)
@_moved.register(Exponential)
def _(mechanism: PermuteAndFlip | Exponential, one: Any, other: Any) -> Move:
    """Each row of scores is a choice; scores that all change alike change nothing, and their range is what counts.

    Options are ranked by scores plus noise of a rate of epsilon / (2 sensitivity), without the 2 if changes have one
    sign: changes from low to high cost the rate times high - low.
    """
    before, after = (np.atleast_2d(np.asarray(scores)).astype(object) for scores in (one, other))
    ranges = [max(0, *row) - min(0, *row) for row in (after - before).tolist()]
    rate = mechanism.epsilon / mechanism.sensitivity / (1 if mechanism.monotone else 2)
    return Move(sum(map(Fraction, ranges), NOTHING) * rate, mechanism.epsilon, "epsilon")


def _steps(one: Any, other: Any) -> list[Fraction]:
    """What differs, entry by entry, exactly."""
    a, b = np.ravel(np.asarray(one)), np.ravel(np.asarray(other))
    places = np.flatnonzero(a != b)
    return [Fraction(x) - Fraction(y) for x, y in zip(a[places].tolist(), b[places].tolist(), strict=True)]


def _selected(one: Handed, other: Handed, neighbours: Neighbours) -> tuple[Move, ...]:
    """Labels whose numbers differ; a replaced row leaves one and enters another, which costs the event twice."""
    a, b = _counts(one), _counts(other)
    steps = [abs(a.get(key, 0) - b.get(key, 0)) for key in {**a, **b}]
    sides = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    return (
        Move(Fraction(sum(step > 0 for step in steps)), Fraction(sides * one.mechanism.max_groups), "groups"),
        Move(Fraction(max(steps, default=0)), Fraction(1), "people in a group"),
    )


def _counts(handed: Handed) -> dict[Any, int]:
    counts = np.ravel(handed.inputs[0]).tolist()
    return dict(zip(handed.labels or range(len(counts)), counts, strict=True))


@dataclass
class Price:
    """Amounts in each currency: a pure epsilon, a rho of Gaussian noise, and promises of an epsilon and a delta."""

    epsilon: Fraction = NOTHING
    rho: Fraction = NOTHING
    promises: list[events.Approx] = field(default_factory=list)

    @property
    def promised(self) -> Fraction:
        """The epsilon of all promises."""
        return sum((promise.epsilon for promise in self.promises), NOTHING)

    def share(self, used: Price, neighbours: Neighbours) -> Fraction | None:
        """The part of this that a pair uses up: currency by currency, or of a promise about all of it together.

        None if something was used that nothing here pays for.
        """
        pairs = (used.epsilon, self.epsilon), (used.rho, self.rho), (used.promised, self.promised)
        if all(paid or not spent for spent, paid in pairs):
            return max((spent / paid for spent, paid in pairs if paid), default=NOTHING)
        if self.rho or not self.promises:
            return None
        found: list[events.Event] = [*used.promises]
        found += [events.Pure(used.epsilon)] if used.epsilon else []
        found += [events.Gaussian(root_above(1 / (2 * used.rho)))] if used.rho else []
        delta = sum((promise.delta for promise in self.promises), NOTHING)
        cost = accounting.epsilon(events.Composed(found), delta, neighbours=neighbours)
        return Fraction(cost / ROUNDING) / (self.epsilon + self.promised)


def used_by(releases: Sequence[tuple[Handed, tuple[Move, ...]]]) -> Price:
    """What a pair of neighbours costs, all releases together; a selection costs its event for each of its groups."""
    found = Price()
    for handed, (first, *_) in releases:
        if first.currency == "groups":
            times = first.found / handed.mechanism.max_groups
            selection = handed.mechanism
            if times:
                found.promises.append(events.Approx(selection.epsilon * times, selection.delta))
        elif first.currency == "rho":
            found.rho += first.found
        else:
            found.epsilon += first.found
    return found


def price_of(charged: Iterable[events.Event], times: int = 1) -> Price:
    """What was charged, in each currency.

    Raises:
        UnsupportedEvent: for an event that no learner should have.
    """
    found = Price()
    for event in charged:
        inner, count = (event.event, times * event.count) if isinstance(event, events.Repeated) else (event, times)
        if isinstance(inner, events.Composed | events.Repeated):
            parts = inner.events if isinstance(inner, events.Composed) else (inner,)
            below = price_of(parts, count)
            found.epsilon, found.rho = found.epsilon + below.epsilon, found.rho + below.rho
            found.promises += below.promises
        elif isinstance(inner, events.Approx):
            found.promises += [inner] * count
        else:
            _add(found, inner, count)
    return found


def _add(found: Price, event: events.Event, count: int) -> None:
    if isinstance(event, events.Gaussian):
        found.rho += count / (2 * event.noise_multiplier**2)
    elif isinstance(event, events.DiscreteGaussian):
        found.rho += count * event.sensitivity**2 / (2 * event.sigma**2)
    elif isinstance(event, events.DiscreteLaplace):
        found.epsilon += count * event.sensitivity / event.scale
    elif isinstance(event, events.Pure | events.BoundedRange):
        found.epsilon += count * event.epsilon
    else:
        raise UnsupportedEvent(event, "The audit of fits")
