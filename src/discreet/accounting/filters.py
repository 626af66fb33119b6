"""Budgets for releases that are chosen while one sees the answers: filters that refuse, odometers that report.

A filter's guarantee holds although every event may depend on all answers before it, and also for several interactions
that run at the same time (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers, Wu 2023; concurrent
composition by Vadhan, Zhang 2023 and Haney et al. 2023). Nothing here is tight accounting of a fixed list: that is
`accounting.epsilon`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import singledispatch
from typing import Any, TypeVar

import numpy as np

from discreet import check
from discreet.accounting import composition, gdp, rdp, zcdp
from discreet.accounting.composition import Terms, strip_calibration, terms
from discreet.dataclass import dataclass
from discreet.errors import InsufficientBudget, InvalidParameter, UnsupportedEvent
from discreet.exact import float_above, float_below
from discreet.privacy import GDP, ZCDP, ApproxDP, Loss, Neighbours, PureDP
from discreet.privacy.events import Event

Price = Callable[[Terms], Loss]
L = TypeVar("L", bound=Any)


@dataclass(frozen=True, slots=True)
class Rule:
    """A cap in one currency; sound alone for what it is given, whatever is chosen when.

    Its price is that of terms made with `calibrated`: sums of epsilons and deltas need the amounts to which noise was
    calibrated, other currencies the law of the noise.
    """

    cap: Loss
    price: Price


@dataclass(frozen=True, slots=True)
class _Tally:
    """What a rule has counted so far; None once it met an event without a price or passed its cap."""

    rule: Rule
    spent: Loss | None

    def after(self, released: Terms) -> _Tally:
        """Returns the tally with one more charge."""
        if self.spent is None:
            return self
        try:
            total = self.spent + self.rule.price(released)
        except (UnsupportedEvent, InvalidParameter):  # no price, or deltas that reach 1
            return _Tally(self.rule, None)
        return _Tally(self.rule, total if total <= self.rule.cap else None)


def _pure(released: Terms) -> Loss:
    total = composition.compose(released)
    if total.delta:
        raise UnsupportedEvent("an event with a delta", "A pure budget", "Open the account with a delta.")
    return PureDP(total.epsilon)


def _concentrated(released: Terms) -> ZCDP:
    return zcdp.compose(strip_calibration(released))


def _gaussian(released: Terms) -> GDP:
    return gdp.compose(strip_calibration(released))


@singledispatch
def rules(budget: Loss) -> tuple[Rule, ...]:
    """Returns the rules of a budget: after every charge, at least one of them must hold."""
    raise InvalidParameter("budget", budget, "to be a PureDP, ApproxDP, ZCDP or GDP", "Build it with Budget(...).")


@rules.register
def _(budget: PureDP) -> tuple[Rule, ...]:
    return (Rule(budget, _pure),)


@rules.register
def _(budget: ZCDP) -> tuple[Rule, ...]:
    return (Rule(budget, _concentrated),)


@rules.register
def _(budget: GDP) -> tuple[Rule, ...]:
    return (Rule(budget, _gaussian),)


@rules.register
def _(budget: ApproxDP) -> tuple[Rule, ...]:
    """Best of several filters: all for the same epsilon, with deltas that add up to the budget's.

    Pure sums cost no delta; basic sums may use half of it; approximate zCDP uses a quarter for its conversion and a
    quarter for the deltas of the events. Cut the transcripts by the first rule that holds at their end: each class is
    bounded by its own rule's (epsilon, delta_i), and the classes add up.
    """
    if not budget.delta:
        return rules(PureDP(budget.epsilon))
    half, quarter = budget.delta / 2, budget.delta / 4
    pure = Rule(PureDP(budget.epsilon), _pure)
    if not budget.epsilon:
        return (pure, Rule(ApproxDP(0, budget.delta), composition.compose))
    rho = Fraction(zcdp.rho_for(float_below(budget.epsilon), float_below(quarter)))
    return pure, Rule(ApproxDP(budget.epsilon, half), composition.compose), Rule(ZCDP(rho, quarter), _concentrated)


class Filter:
    """A budget that releases chosen adaptively cannot exceed.

    Formal guarantee: if every release is described by an event that was charged here before it, all of them together
    satisfy the budget, under the one neighbour relation of the account. A refused charge spends nothing. Thread-safe.

    Args:
        budget: a PureDP, ApproxDP, ZCDP or GDP.
        neighbours: the relation of all events charged here.

    >>> from discreet.privacy import Budget, events
    >>> account = Filter(Budget(epsilon=1))
    >>> for _ in range(10):
    ...     account.charge(events.Pure(0.1))
    >>> account.charge(events.Pure(0.1))
    Traceback (most recent call last):
    discreet.errors.InsufficientBudget: The charge needs epsilon=0.1. Remaining: epsilon=0. ...
    """

    def __init__(self, budget: Loss, *, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> None:
        self.budget = budget
        self.neighbours = Neighbours(neighbours)
        self._tallies = tuple(_Tally(rule, rule.cap * 0) for rule in rules(budget))
        self._lock = threading.Lock()

    def charge(self, event: Event, *, neighbours: Neighbours | None = None) -> None:
        """Spends the price of one event, or raises and spends nothing.

        Raises:
            InsufficientBudget: if no rule would hold afterwards.
            UnsupportedEvent: if no rule has a price for the event.
            InvalidParameter: if the event was described for another neighbour relation.
        """
        released = self._terms(event, neighbours)
        with self._lock:
            after = tuple(tally.after(released) for tally in self._tallies)
            if all(tally.spent is None for tally in after):
                raise self._refusal(released)
            self._tallies = after

    def can_afford(self, event: Event) -> bool:
        """Returns whether a charge would pass now."""
        released = self._terms(event, None)
        return any(tally.after(released).spent is not None for tally in self._tallies)

    @property
    def spent(self) -> Loss:
        """Returns what was spent, in the currency of the first rule that still holds."""
        return next(tally.spent for tally in self._tallies if tally.spent is not None)

    @property
    def remaining(self) -> Loss:
        """Returns the remaining budget, in the same currency."""
        tally = next(tally for tally in self._tallies if tally.spent is not None)
        return _difference(tally)

    def _terms(self, event: Event, neighbours: Neighbours | None) -> Terms:
        if neighbours is not None and Neighbours(neighbours) is not self.neighbours:
            raise InvalidParameter(
                "neighbours",
                Neighbours(neighbours).value,
                f"to be {self.neighbours.value}, the relation of this account",
                "Open an account for each relation; guarantees of different relations do not add up.",
            )
        return terms(check.instance(Event, event=event), self.neighbours, calibrated=True)

    def _refusal(self, released: Terms) -> Exception:
        priced = [tally for tally in self._tallies if tally.spent is not None]
        for tally in priced:
            try:
                return InsufficientBudget(tally.rule.price(released), _difference(tally), "Nothing was spent.")
            except (UnsupportedEvent, InvalidParameter):
                continue
        hint = f"A budget of {self.budget} cannot price it. Open the account with a rho or a delta."
        return UnsupportedEvent(next(iter(released)), "This account", hint)


@singledispatch
def _less(cap: Loss, spent: Loss) -> Loss:
    raise InvalidParameter("cap", cap, f"to be a loss from which {spent} can be taken")


@_less.register
def _(cap: PureDP, spent: PureDP) -> Loss:
    return PureDP(cap.epsilon - spent.epsilon)


@_less.register
def _(cap: ApproxDP, spent: ApproxDP) -> Loss:
    return ApproxDP(cap.epsilon - spent.epsilon, cap.delta - spent.delta)


@_less.register
def _(cap: ZCDP, spent: ZCDP) -> Loss:
    return ZCDP(cap.rho - spent.rho, cap.delta - spent.delta)


@_less.register
def _(cap: GDP, spent: GDP) -> Loss:
    return GDP.from_square(cap.mu_squared - spent.mu_squared)


def _difference(tally: _Tally) -> Loss:
    """Returns what remains under a rule that still holds."""
    return _less(tally.rule.cap, tally.rule.cap if tally.spent is None else tally.spent)


class RenyiFilter:
    """A budget counted by Rényi divergence at one declared order.

    Formal guarantee: (epsilon, delta)-DP for adaptive releases, because the sum of divergences of one order is capped
    so that its conversion meets the target (Feldman, Zrnic 2021; Lécuyer 2021). Trying several orders and keeping the
    best would cost delta for each: declare one.

    >>> from discreet.accounting import ORDERS
    >>> from discreet.privacy import events
    >>> step = events.PoissonSampled(0.01, events.Gaussian(noise_multiplier=1))
    >>> account = RenyiFilter(epsilon=2, delta=1e-5, order=8)
    >>> account.charge(events.Repeated(step, 500))
    >>> print(8 in ORDERS, len(ORDERS), ORDERS.min(), ORDERS.max())  # those that can be declared
    True 166 1.01 4096.0
    """

    def __init__(self, *, epsilon: check.Number, delta: check.Number, order: check.Number) -> None:
        alpha = float(check.rational(order=order))
        places = np.flatnonzero(np.isclose(rdp.ORDERS, alpha, rtol=1e-12, atol=0))
        if not places.size:
            raise InvalidParameter("order", order, "to be one of accounting.ORDERS", "Pass e.g. order=10.")
        self._place = int(places[0])
        target, share = check.positive(epsilon=epsilon), check.probability(delta=delta)
        self._half = share / 2
        conversion = math.log1p(-1 / alpha) - (math.log(float_below(self._half)) + math.log(alpha)) / (alpha - 1)
        self.cap = Fraction((float_below(target) - conversion) * (alpha - 1) * (1 - 2.0**-40))
        if self.cap <= 0:
            raise InvalidParameter("order", order, "large enough for this target", "Raise the order or epsilon.")
        self._spent, self._delta = Fraction(0), Fraction(0)
        self._lock = threading.Lock()

    def charge(self, event: Event) -> None:
        """Spends the divergence of one event, or raises `InsufficientBudget` and spends nothing."""
        price = rdp.compose(terms(check.instance(Event, event=event)))
        cost = Fraction(float(price.cumulants[self._place]))
        with self._lock:
            spent, share = self._spent + cost, self._delta + price.delta
            if spent > self.cap or share > self._half:
                raise InsufficientBudget(
                    f"{float(cost):.6g}", f"{float(self.cap - self._spent):.6g}", "Nothing was spent."
                )
            self._spent, self._delta = spent, share


def _try(price: Callable[[Terms], L], released: Terms) -> L | None:
    try:
        return price(released)
    except UnsupportedEvent:
        return None


def _add(total: L | None, more: L | None) -> L | None:
    return None if total is None or more is None else total + more


class Odometer:
    """A running bound of what was spent, valid at every moment although the releases are chosen adaptively.

    Formal guarantee: with probability 1 - delta over everything released, the privacy loss never exceeds what was
    reported. The sum of rho is compared with thresholds first * 2^j, each entitled to delta_j = 6 delta / (pi (j +
    1))^2; the tail bound rho + 2 sqrt(rho ln(1/delta_j)) holds at a random time, which sharper conversions do not
    (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse et al. 2023). Pure releases alone are also bounded by their sum,
    without a delta.

    >>> from discreet.privacy import events
    >>> meter = Odometer(delta=1e-6, first="0.01")
    >>> meter.charge(events.Concentrated("0.05"))
    >>> f"{float(meter.spent.epsilon):.6f}"
    '2.418259'
    """

    def __init__(
        self,
        *,
        delta: check.Number = Fraction(1, 10**6),
        first: check.Number = Fraction(1, 100),
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> None:
        self.delta = check.probability(delta=delta)
        self.first = check.positive(first=first)
        self.neighbours = Neighbours(neighbours)
        self._basic: ApproxDP | None = ApproxDP(0, 0)
        self._concentrated: ZCDP | None = ZCDP(0)
        self._lock = threading.Lock()

    def charge(self, event: Event) -> None:
        """Counts one event; an odometer never refuses, unless it has no price for it."""
        released = terms(check.instance(Event, event=event), self.neighbours, calibrated=True)
        sums, rhos = _try(composition.compose, released), _try(_concentrated, released)
        with self._lock:
            after = _add(self._basic, sums), _add(self._concentrated, rhos)
            if after == (None, None):
                raise UnsupportedEvent(event, "An odometer", "Describe the release by an event with a zCDP price.")
            self._basic, self._concentrated = after

    @property
    def spent(self) -> ApproxDP:
        """Returns the bound so far; the smaller epsilon of the two valid ones."""
        candidates = []
        if self._basic is not None:
            candidates.append(self._basic)
        if self._concentrated is not None:
            candidates.append(self._tail(self._concentrated))
        return min(candidates, key=lambda loss: loss.epsilon)

    def _tail(self, total: ZCDP) -> ApproxDP:
        threshold, j = self.first, 0
        while threshold < total.rho:
            threshold, j = threshold * 2, j + 1
        share = 6 * float_below(self.delta) / (math.pi * (j + 1)) ** 2 * (1 - 2.0**-40)
        rho = float_above(threshold)
        bound = (rho + 2 * math.sqrt(rho * -math.log(share))) * (1 + 2.0**-40)
        return ApproxDP(Fraction(bound), self.delta + total.delta)
