"""Checks that only noise separates fits on two neighbours, and that the noise was paid for.

With outputs frozen, what a pair of neighbours costs follows from its inputs: |a - b|_1 epsilon / sensitivity for
Laplace noise, |a - b|_2 epsilon / sensitivity for K-norm noise, |a - b|_2^2 / (2 sigma^2) of rho for Gaussian noise,
rate times the range of the changes of scores for choices. Adaptive releases add up, in each currency.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import singledispatch
from importlib import import_module
from typing import Any

import numpy as np

from discreet import accounting
from discreet.audit.queries.mechanism_recorder import MechanismCall
from discreet.audit.queries.neighbour_distance import Move
from discreet.audit.queries.recorder import QueryRecord
from discreet.audit.queries.verdicts import Fault, NoiseSize, same_course, short
from discreet.curator.paid_release import costs_no_more
from discreet.dataclass import dataclass
from discreet.errors import UnsupportedEvent
from discreet.exact import root_above, root_below
from discreet.ledger import Account
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
from discreet.statistics.tree_selection import TreeSelection

NOTHING = Fraction(0)
ROUNDING = 1 + 1e-6  # prices of events are rounded up


def moves(one: MechanismCall, other: MechanismCall, neighbours: Neighbours) -> tuple[Move, ...]:
    """Returns the distances of two inputs of one release, each with what the mechanism says that it hides.

    Raises:
        UnsupportedEvent: for a mechanism that no learner should use.
    """
    if isinstance(one.mechanism, PartitionSelection):
        return _measure_selection(one, other, neighbours)
    return (_measure_move(one.mechanism, one.inputs[0], other.inputs[0]),)


@singledispatch
def _measure_move(mechanism: Mechanism, one: Any, other: Any) -> Move:
    del one, other
    raise UnsupportedEvent(mechanism.event, f"The audit of fits by {type(mechanism).__name__}")


@_measure_move.register(Laplace)
@_measure_move.register(DiscreteLaplace)
def _(mechanism: Laplace | DiscreteLaplace, one: Any, other: Any) -> Move:
    allowed = mechanism.event.sensitivity / mechanism.event.scale
    distance = sum((abs(step) for step in _steps(one, other)), NOTHING)
    return Move(distance / mechanism.sensitivity * allowed, allowed, "epsilon")


@_measure_move.register(Gaussian)
@_measure_move.register(DiscreteGaussian)
def _(mechanism: Gaussian | DiscreteGaussian, one: Any, other: Any) -> Move:
    twice = 2 * mechanism.sigma**2
    square = sum((step * step for step in _steps(one, other)), NOTHING)
    return Move(square / twice, mechanism.sensitivity**2 / twice, "rho")


@_measure_move.register
def _(mechanism: KNorm, one: Any, other: Any) -> Move:
    """Returns the distance in the norm; a root is rounded down, so that rounding alone is never a violation."""
    steps = [abs(step) for step in _steps(one, other)]
    if mechanism.norm is Norm.LINF:
        distance = max(steps, default=NOTHING)
    else:
        distance = root_below(sum((step * step for step in steps), NOTHING))
    return Move(distance / mechanism.sensitivity * mechanism.epsilon, mechanism.epsilon, "epsilon")


@_measure_move.register(PermuteAndFlip)
@_measure_move.register(Exponential)
def _(mechanism: PermuteAndFlip | Exponential, one: Any, other: Any) -> Move:
    """Returns what choices cost, one for each row of scores.

    Scores that all change alike change nothing, and their range is what counts.

    Options are ranked by scores plus noise of a rate of epsilon / (2 sensitivity), without the 2 if changes have one
    sign: changes from low to high cost the rate times high - low.
    """
    before, after = (np.atleast_2d(np.asarray(scores)).astype(object) for scores in (one, other))
    ranges = [max(0, *row) - min(0, *row) for row in (after - before).tolist()]
    rate = mechanism.epsilon / mechanism.sensitivity / (1 if mechanism.monotone else 2)
    return Move(sum(map(Fraction, ranges), NOTHING) * rate, mechanism.epsilon, "epsilon")


@_measure_move.register
def _(mechanism: TreeSelection, one: Any, other: Any) -> Move:
    """Returns what a choice of a tree costs: all odds move by a rate for each row in a leaf more, and for each less.

    The moves of different trees are those of the same rows, so that the largest count.
    """
    steps = (np.asarray(other) - np.asarray(one)).reshape(len(np.asarray(one)), -1)
    up, down = (int(np.maximum(moved, 0).sum(axis=1).max()) for moved in (steps, -steps))
    return Move((up + down) * mechanism.odds.rate, mechanism.epsilon, "epsilon")


def _steps(one: Any, other: Any) -> list[Fraction]:
    """Returns what differs, entry by entry, exactly."""
    a, b = np.ravel(np.asarray(one)), np.ravel(np.asarray(other))
    places = np.flatnonzero(a != b)
    return [Fraction(x) - Fraction(y) for x, y in zip(a[places].tolist(), b[places].tolist(), strict=True)]


def _measure_selection(one: MechanismCall, other: MechanismCall, neighbours: Neighbours) -> tuple[Move, ...]:
    """Returns labels whose numbers differ; a replaced row leaves one and enters another: two times the event."""
    a, b = _counts(one), _counts(other)
    steps = [abs(a.get(key, 0) - b.get(key, 0)) for key in {**a, **b}]
    sides = 1 if neighbours is Neighbours.ADD_REMOVE else 2
    return (
        Move(Fraction(sum(step > 0 for step in steps)), Fraction(sides * one.mechanism.max_groups), "groups"),
        Move(Fraction(max(steps, default=0)), Fraction(1), "people in a group"),
    )


def _counts(handed: MechanismCall) -> dict[Any, int]:
    counts = np.ravel(handed.inputs[0]).tolist()
    return dict(zip(handed.labels or range(len(counts)), counts, strict=True))


@dataclass
class CurrencyAmounts:
    """Holds amounts in each currency: a pure epsilon, a rho of Gaussian noise, promises of an epsilon and a delta."""

    epsilon: Fraction = NOTHING
    rho: Fraction = NOTHING
    promises: list[events.Approx] = field(default_factory=list)

    @property
    def promised_epsilon(self) -> Fraction:
        """Returns the epsilon of all promises."""
        return sum((promise.epsilon for promise in self.promises), NOTHING)

    def share(self, used: CurrencyAmounts, neighbours: Neighbours) -> Fraction | None:
        """Returns the part of this that a pair uses up: currency by currency, or of a promise about all of it together.

        None if something was used that nothing here pays for.
        """
        pairs = (used.epsilon, self.epsilon), (used.rho, self.rho), (used.promised_epsilon, self.promised_epsilon)
        if all(paid or not spent for spent, paid in pairs):
            return max((spent / paid for spent, paid in pairs if paid), default=NOTHING)
        if self.rho or not self.promises:
            return None
        found: list[events.Event] = [*used.promises]
        found += [events.Pure(used.epsilon)] if used.epsilon else []
        found += [events.Gaussian(root_above(1 / (2 * used.rho)))] if used.rho else []
        delta = sum((promise.delta for promise in self.promises), NOTHING)
        cost = accounting.epsilon(events.Composed(found), delta, neighbours=neighbours)
        return Fraction(cost / ROUNDING) / (self.epsilon + self.promised_epsilon)


def used_by(releases: Sequence[tuple[MechanismCall, tuple[Move, ...]]]) -> CurrencyAmounts:
    """Returns what a pair of neighbours costs, all releases together.

    A selection costs its event for each of its groups.
    """
    found = CurrencyAmounts()
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


def price_of(charged: Iterable[events.Event], times: int = 1) -> CurrencyAmounts:
    """Returns what was charged, in each currency.

    Raises:
        UnsupportedEvent: for an event that no learner should have.
    """
    found = CurrencyAmounts()
    for event in charged:
        inner, count = (event.event, times * event.count) if isinstance(event, events.Repeated) else (event, times)
        inner = events.strip_calibration(inner)
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


def _add(found: CurrencyAmounts, event: events.Event, count: int) -> None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedFit:
    """Holds a fit as it is asked for."""

    estimator: Any
    sql: str
    target: str | None
    rows_per_unit: int

    @property
    def arguments(self) -> tuple[Any, str, str | None, int]:
        """Returns the arguments that a curator gets."""
        return self.estimator, self.sql, self.target, self.rows_per_unit

    @property
    def name(self) -> str:
        """Returns what is audited, in words."""
        aim = f" for {self.target}" if self.target is not None else ""
        return f"{type(self.estimator).__name__}{aim}: {self.sql}"


@dataclass
class FitRecord(QueryRecord):
    """Records what a fit did.

    Attributes:
        model: what the analyst got.
        fitted: the learner as it was fitted, before it was kept.
        handed: what every mechanism was given, and what came out.
        apart: how many rows of the learner's input only one of the two neighbours has.
        strayed: whether a mechanism was asked for another release than on the neighbour.
        unjudged: what was done whose privacy does not follow from the inputs of noise.
    """

    model: Any = None
    fitted: Any = None
    handed: list[MechanismCall] = field(default_factory=list)
    apart: int = 0
    strayed: bool = False
    unjudged: str = ""


@dataclass(frozen=True)
class FitComparison:
    """Compares a fit on two neighbours: what it did on the first, and the part of the price that the pair used up."""

    seen: FitRecord
    share: Fraction
    faults: tuple[Fault, ...]


def verdict(asked: AuditedFit, first: FitRecord, second: FitRecord, account: Account) -> FitComparison:
    """Compares everything that a fit did on one table and on its neighbour."""
    faults = list(same_course(first, second, due=int(first.status in ("answered", "failed"))))
    share = Fraction(0)
    if first.model is not None and second.model is not None and not first.unjudged:
        faults += _rows(asked, first, account.neighbours)
        faults += same_models(first.model, second.model)
        share, more = _judge_pair(first, second, account)
        faults += more
    return FitComparison(first, share, tuple(faults))


def _judge_pair(first: FitRecord, second: FitRecord, account: Account) -> tuple[Fraction, list[Fault]]:
    """Returns the part of what was paid that a pair used; of what a mechanism hides, if a fit does not compose."""
    if not _same_releases(first, second):
        return Fraction(0), [("releases", f"the same {len(first.handed)}", f"{len(second.handed)}, or others")]
    apart = [moves(a, b, account.neighbours) for a, b in zip(first.handed, second.handed, strict=True)]
    faults = list(_movement(apart))
    if not _composes(first.fitted):
        return max((move.found / move.allowed for release in apart for move in release), default=Fraction(0)), faults
    used, paid = used_by(list(zip(first.handed, apart, strict=True))), price_of([first.model.event_])
    share = paid.share(used, account.neighbours)
    if share is None or share > 1:
        due = f"at most epsilon {short(paid.epsilon + paid.promised_epsilon)} and rho {short(paid.rho)} of noise"
        faults.append(("uncharged", due, f"epsilon {short(used.epsilon)} and rho {short(used.rho)}"))
    faults += _check_charge(first, used, account)
    return Fraction(2) if share is None else share, faults


def _rows(asked: AuditedFit, seen: FitRecord, neighbours: Neighbours) -> Iterator[Fault]:
    """Yields a fault if one person is more rows of the learner's input than declared, a replaced one twice as many."""
    most = asked.rows_per_unit * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
    if seen.apart > most:
        yield "rows", f"at most {most} that differ", str(seen.apart)


def same_models(one: Any, other: Any) -> Iterator[Fault]:
    """Yields faults unless models are equal in all that an analyst sees, given that the same noise came out."""
    if _shapes(one) != _shapes(other):
        yield "shapes", "the same attributes, each of the same shape", "others"
    elif _serialize_model(one) != _serialize_model(other):
        yield "model", "the same numbers, as the same noise came out", "others"
    if (one.notes_, one.columns_) != (other.notes_, other.columns_):
        yield "notes", "the same", "others"
    if (one.cost_, one.remaining_, one.event_) != (other.cost_, other.remaining_, other.event_):
        yield "price", f"{one.cost_}", f"{other.cost_}, or another event"
    if (one.private_, one.replayed_) != (other.private_, other.replayed_):
        yield "marks", "the same", "others"


def _shapes(model: Any) -> dict[str, Any]:
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return {name: np.shape(value) if isinstance(value, np.ndarray) else type(value) for name, value in found.items()}


def _serialize_model(model: Any) -> str:
    text: str = import_module("discreet.learn.persistence.store").to_json(model)  # learners are an extra
    return text


def _same_releases(first: FitRecord, second: FitRecord) -> bool:
    if second.strayed or len(first.handed) != len(second.handed):
        return False
    return all(a.mechanism == b.mechanism for a, b in zip(first.handed, second.handed, strict=True))


def _movement(apart: Sequence[Sequence[Move]]) -> Iterator[Fault]:
    for move in (move for release in apart for move in release):
        if not move.is_covered:
            yield "movement", f"at most {short(move.allowed)} {move.currency}", short(move.found)


def _check_charge(seen: FitRecord, used: CurrencyAmounts, account: Account) -> Iterator[Fault]:
    """Yields a fault unless the ledger charged all of a noise to the account whose people move its input."""
    moved = used.epsilon or used.rho or used.promises
    booked = events.strip_calibration(seen.charged.get(account.name, events.Composed([])))
    if moved and not costs_no_more(seen.model.event_, booked, account):
        yield "uncharged", f"the whole price on the account {account.name!r}, whose people move the numbers", "less"


def _composes(learner: Any) -> bool:
    """Returns whether a fit costs what its releases cost together; the best of a random number of tries costs less."""
    search = import_module("discreet.learn.selection.search").GridSearchCV  # learners are an extra
    return not isinstance(learner, search) or learner._plan(learner.n_features_in_).tries is None


def include_all(noise_size: NoiseSize, handed: Sequence[MechanismCall]) -> None:
    """Includes all noise that was added to numbers."""
    for each in handed:
        mechanism = each.mechanism
        if isinstance(mechanism, Laplace | DiscreteLaplace):
            noise_size.include("laplace", mechanism.event.scale, _sizes(each))
        elif isinstance(mechanism, Gaussian | DiscreteGaussian):
            noise_size.include("gaussian", mechanism.sigma / mechanism.grid.step, _sizes(each))


def _sizes(handed: MechanismCall) -> list[float]:
    """Returns how large each draw was, in steps of the grid."""
    noise = np.asarray(handed.out, dtype=np.float64) - np.asarray(handed.inputs[0], dtype=np.float64)
    sizes: list[float] = (np.abs(noise).ravel() / float(handed.mechanism.grid.step)).tolist()
    return sizes
