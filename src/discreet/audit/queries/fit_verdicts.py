"""Whether two fits on neighbours could be told apart by anything but noise, and whether the noise was paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from discreet.audit.queries.fit_nearness import Price, moves, price_of, used_by
from discreet.audit.queries.mechanism_recorder import Handed
from discreet.audit.queries.noise_size import Loudness
from discreet.audit.queries.recorder import Seen
from discreet.audit.queries.sensitivity import Move
from discreet.audit.queries.verdicts import Fault, same_course, short
from discreet.curator.asking.performance import costs_no_more
from discreet.ledger import Account
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from discreet.privacy import Neighbours, events


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """A fit, as it is asked for."""

    estimator: Any
    sql: str
    target: str | None
    rows_per_unit: int

    @property
    def arguments(self) -> tuple[Any, str, str | None, int]:
        """What a curator is told."""
        return self.estimator, self.sql, self.target, self.rows_per_unit

    @property
    def called(self) -> str:
        """What is audited, in words."""
        aim = f" for {self.target}" if self.target is not None else ""
        return f"{type(self.estimator).__name__}{aim}: {self.sql}"


@dataclass
class Trained(Seen):
    """What a fit did.

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
    handed: list[Handed] = field(default_factory=list)
    apart: int = 0
    strayed: bool = False
    unjudged: str = ""


@dataclass(frozen=True)
class Compared:
    """A fit on two neighbours: what it did on the first, and the part of what was paid that the pair used up."""

    seen: Trained
    share: Fraction
    faults: tuple[Fault, ...]


def verdict(asked: Fitting, first: Trained, second: Trained, account: Account) -> Compared:
    """Compares everything that a fit did on one table and on its neighbour."""
    faults = list(same_course(first, second, due=int(first.status in ("answered", "failed"))))
    share = Fraction(0)
    if first.model is not None and second.model is not None and not first.unjudged:
        faults += _rows(asked, first, account.neighbours)
        faults += same_models(first.model, second.model)
        share, more = _judged(first, second, account)
        faults += more
    return Compared(first, share, tuple(faults))


def _judged(first: Trained, second: Trained, account: Account) -> tuple[Fraction, list[Fault]]:
    """The part of what was paid that a pair used up; of what a mechanism hides, where a fit does not compose."""
    if not _same_releases(first, second):
        return Fraction(0), [("releases", f"the same {len(first.handed)}", f"{len(second.handed)}, or others")]
    apart = [moves(a, b, account.neighbours) for a, b in zip(first.handed, second.handed, strict=True)]
    faults = list(_movement(apart))
    if not _composes(first.fitted):
        return max((move.found / move.allowed for release in apart for move in release), default=Fraction(0)), faults
    used, paid = used_by(list(zip(first.handed, apart, strict=True))), price_of([first.model.event_])
    share = paid.share(used, account.neighbours)
    if share is None or share > 1:
        due = f"at most epsilon {short(paid.epsilon + paid.promised)} and rho {short(paid.rho)} of noise"
        faults.append(("uncharged", due, f"epsilon {short(used.epsilon)} and rho {short(used.rho)}"))
    faults += _booked(first, used, account)
    return Fraction(2) if share is None else share, faults


def _rows(asked: Fitting, seen: Trained, neighbours: Neighbours) -> Iterator[Fault]:
    """One person is so many rows of the learner's input; a replaced one leaves as many, and brings as many."""
    most = asked.rows_per_unit * (1 if neighbours is Neighbours.ADD_REMOVE else 2)
    if seen.apart > most:
        yield "rows", f"at most {most} that differ", str(seen.apart)


def same_models(one: Any, other: Any) -> Iterator[Fault]:
    """Equal in everything that an analyst sees, given that the same noise came out."""
    if _shapes(one) != _shapes(other):
        yield "shapes", "the same attributes, each of the same shape", "others"
    elif _written(one) != _written(other):
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


def _written(model: Any) -> str:
    text: str = import_module("discreet.learn.store").to_json(model)  # learners are an extra
    return text


def _same_releases(first: Trained, second: Trained) -> bool:
    if second.strayed or len(first.handed) != len(second.handed):
        return False
    return all(a.mechanism == b.mechanism for a, b in zip(first.handed, second.handed, strict=True))


def _movement(apart: Sequence[Sequence[Move]]) -> Iterator[Fault]:
    for move in (move for release in apart for move in release):
        if not move.is_covered:
            yield "movement", f"at most {short(move.allowed)} {move.currency}", short(move.found)


def _booked(seen: Trained, used: Price, account: Account) -> Iterator[Fault]:
    """Whoever moves an input of noise is of an account to which all of it was charged, by the book."""
    moved = used.epsilon or used.rho or used.promises
    booked = seen.charged.get(account.name, events.Composed([]))
    if moved and not costs_no_more(seen.model.event_, booked, account):
        yield "uncharged", f"the whole price on the account {account.name!r}, whose people move the numbers", "less"


def _composes(learner: Any) -> bool:
    """Whether a fit costs what its releases cost together; the best of a random number of tries costs less."""
    search = import_module("discreet.learn.search").GridSearchCV  # learners are an extra
    return not isinstance(learner, search) or learner._plan(learner.n_features_in_).tries is None


def loud(loudness: Loudness, handed: Sequence[Handed]) -> None:
    """Listens to all noise that was added to numbers."""
    for each in handed:
        mechanism = each.mechanism
        if isinstance(mechanism, Laplace | DiscreteLaplace):
            loudness.hear("laplace", mechanism.event.scale, _sizes(each))
        elif isinstance(mechanism, Gaussian | DiscreteGaussian):
            loudness.hear("gaussian", mechanism.sigma / mechanism.grid.step, _sizes(each))


def _sizes(handed: Handed) -> list[float]:
    """How large each draw was, in steps of the grid."""
    noise = np.asarray(handed.out, dtype=np.float64) - np.asarray(handed.inputs[0], dtype=np.float64)
    sizes: list[float] = (np.abs(noise).ravel() / float(handed.mechanism.grid.step)).tolist()
    return sizes
