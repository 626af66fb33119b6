"""What an account, a person or a project has used of its budget, step by step, by the filters of the ledger."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from functools import lru_cache

from discreet.ledger.serialization import NAMES
from discreet.ledger.tallies import CURRENCIES, Price, Tallies, rules
from discreet.privacy import Loss

MOST_STEPS = 400
"""Steps of a curve that are drawn."""


@dataclass(frozen=True, slots=True)
class Step:
    """Which share of a budget is left from a moment on."""

    time: dt.datetime
    left: float


@dataclass(slots=True, kw_only=True)
class Spending:
    """One spender while the book is read.

    Attributes:
        currency: the account's budget, by whose rules sums are kept.
        total: the budget or cap; None for somebody who has no cap of their own.
        first: the first charge of the present period.
        questions: charged ones, ever.
    """

    currency: Loss
    total: Loss | None = None
    first: dt.datetime | None = None
    questions: int = 0
    answered: int = 0
    failed: int = 0
    curve: list[Step] = field(default_factory=list)
    _spent: Tallies | None = None

    @property
    def left(self) -> float:
        """The share of the total that is left."""
        return self.curve[-1].left if self.curve else 1.0

    def charge(self, time: dt.datetime, price: Price) -> None:
        """Adds a charge."""
        self.first = self.first or time
        self.questions += 1
        self._spent = price.added(self._sums)
        self._step(time)

    def begin(self, time: dt.datetime, total: Loss | None) -> None:
        """Begins a period: everything is left."""
        self.total, self.first, self._spent = total, None, None
        self._step(time)

    def change(self, time: dt.datetime, total: Loss | None) -> None:
        """Gives another total; what was spent stays spent."""
        self.total = total
        self._step(time)

    @property
    def _sums(self) -> Tallies:
        return Tallies.zero(self.currency) if self._spent is None else self._spent

    def _step(self, time: dt.datetime) -> None:
        if self.total is not None:
            self.curve.append(Step(time, 1.0 - used_share(self._sums, self.total)))


def used_share(spent: Tallies, budget: Loss) -> float:
    """Returns which part of a budget is used, from 0 to 1, under the rule that leaves most.

    An account is kept by the best of several filters, and a charge passes while one of them holds: so what is used is
    the smallest share of all rules that can tell.

    >>> from discreet.ledger.tallies import prices
    >>> from discreet.privacy import Budget, Neighbours, events
    >>> used_share(prices(events.Pure("0.5"), Budget(epsilon=2), Neighbours.ADD_REMOVE), Budget(epsilon=2))
    0.25
    """
    shares = [1.0]
    for kind, caps in _caps(budget):
        amounts = spent.sums[kind]
        if amounts is not None:
            shares.append(max(_part(amount, cap) for amount, cap in zip(amounts, caps, strict=True)))
    return min(shares)


def _part(amount: tuple[int, int], cap: float) -> float:
    top, bottom = amount
    return 0.0 if not top else math.inf if not cap else top / bottom / cap


@lru_cache(maxsize=256)
def _caps(budget: Loss) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """The rules of a budget by the names of their sums, each with what it allows: epsilon or rho, and a delta."""
    found = [(type(rule.cap), rule.cap) for rule in rules(budget)]
    return tuple((CURRENCIES[kind], tuple(float(getattr(cap, name)) for name in NAMES[kind])) for kind, cap in found)


def drawn(curve: list[Step]) -> list[Step]:
    """Returns as many steps of a curve as are drawn: the first, the last, and every so-manieth between."""
    every = max(1, -(-len(curve) // MOST_STEPS))
    return [step for place, step in enumerate(curve) if place % every == 0 or place == len(curve) - 1]
