"""Exact running sums of what was charged, one for each rule of an account, and what they leave.

An account's budget is kept by the best of several filters (`accounting.filters.rules`): a charge passes while at least
one rule still holds after it. Here the sums are values that can be written down and read again, so that a charge costs
the same after ten entries as after a hundred thousand.

Formal guarantee: sums only grow, and a rule holds if its sum is known and at most its cap; that is the state of an
`accounting.Filter` charged with the same events, so its theorem applies (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse,
Ramdas, Rogers, Wu 2023).
"""

from __future__ import annotations

import dataclasses
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from discreet import check
from discreet.accounting import filters
from discreet.accounting.terms import terms
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import root_below
from discreet.ledger.text import ratio
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP
from discreet.privacy.amounts import short
from discreet.privacy.events import Event

CURRENCIES: dict[type[Loss], str] = {PureDP: "pure", ApproxDP: "approximate", ZCDP: "concentrated"}
_SMALLEST = Fraction(1, 10**check.LARGEST_EXPONENT)


Amounts = tuple[Fraction, ...]
"""A loss as its amounts in the order of its class: (epsilon,), (epsilon, delta) or (rho, delta)."""


@dataclass(frozen=True, slots=True)
class Tallies:
    """One sum for each rule, by the name of its currency; None where a charge had no price under that rule.

    >>> from discreet.privacy.events import Pure
    >>> (Tallies.zero(PureDP(1)) + prices(Pure(0.1), PureDP(1), Neighbours.ADD_REMOVE)).write()
    {'pure': '1/10'}
    """

    sums: dict[str, Amounts | None]

    @classmethod
    def zero(cls, budget: Loss) -> Tallies:
        """Nothing spent, under each rule of a budget."""
        return cls({CURRENCIES[type(rule.cap)]: _amounts(rule.cap * 0) for rule in rules(budget)})

    def __add__(self, other: Tallies) -> Tallies:
        return Tallies({kind: _sum(spent, other.sums[kind]) for kind, spent in self.sums.items()})

    def __mul__(self, count: int) -> Tallies:
        return Tallies({kind: _times(amounts, count) for kind, amounts in self.sums.items()})

    def write(self) -> dict[str, str | None]:
        """The sums as JSON fields: for each rule its amounts, with spaces between them."""
        return {
            kind: None if amounts is None else " ".join([f"{a.numerator}/{a.denominator}" for a in amounts])
            for kind, amounts in self.sums.items()
        }

    @classmethod
    def read(cls, fields: dict[str, str | None]) -> Tallies:
        """The sums that `write` wrote; the same object for the same text, as long as it is remembered."""
        return _read(tuple(fields.items()))

    def holding(self, budget: Loss) -> filters.Rule | None:
        """The first rule of a budget that these sums keep, or None if they keep none."""
        for rule, limits in _limits(budget):
            spent = self._sum(rule)
            if spent is not None and all(map(operator.le, spent, limits)):
                return rule
        return None

    def of(self, rule: filters.Rule) -> Loss | None:
        """The sum that a rule looks at."""
        amounts = self._sum(rule)
        return None if amounts is None else type(rule.cap)(*amounts)

    def spent(self, budget: Loss) -> Loss | None:
        """What was spent, in the currency of the first rule that holds; else of the first that can still tell."""
        rule = self.holding(budget)
        told = [self.of(other) for other in rules(budget) if self._sum(other) is not None]
        return self.of(rule) if rule is not None else next(iter(told), None)

    def remaining(self, budget: Loss) -> Loss:
        """What is left under the first rule that holds; zero if none does."""
        rule = self.holding(budget)
        return budget * 0 if rule is None else self.left(rule)

    def left(self, rule: filters.Rule) -> Loss:
        """What one rule leaves; never negative, and a rest below the smallest amount there is counts as nothing."""
        spent, limits = self._sum(rule), _amounts(rule.cap)
        if spent is None:
            return rule.cap * 0
        rests = (limit - amount for limit, amount in zip(limits, spent, strict=True))
        return type(rule.cap)(*(rest if rest >= _SMALLEST else Fraction(0) for rest in rests))

    def largest_pure(self, budget: Loss) -> Fraction:
        """The largest epsilon that a single pure question may still have; rounded down where it is irrational.

        A pure question costs its epsilon, or half its square in rho; deltas must hold already but do not grow.
        """
        largest = Fraction(0)
        for rule, limits in _limits(budget):
            spent = self._sum(rule)
            if spent is not None and all(map(operator.le, spent, limits)):
                rest = limits[0] - spent[0]
                concentrated = isinstance(rule.cap, ZCDP) and rest > 0
                largest = max(largest, root_below(2 * rest) if concentrated else rest)
        return largest

    def _sum(self, rule: filters.Rule) -> Amounts | None:
        return self.sums[CURRENCIES[type(rule.cap)]]


@lru_cache(maxsize=256)
def rules(budget: Loss) -> tuple[filters.Rule, ...]:
    """The rules of a budget in one of the ledger's currencies, worked out once.

    Raises:
        InvalidParameter: for other currencies and for budgets with an amount of zero.
    """
    if type(budget) not in CURRENCIES:
        raise InvalidParameter("budget", budget, "to be a PureDP, ApproxDP or ZCDP", "Build it with Budget(...).")
    if budget.is_zero or (isinstance(budget, ApproxDP) and not (budget.epsilon and budget.delta)):
        raise InvalidParameter("budget", budget, "to have amounts above 0", "Build it with Budget(...).")
    return filters.rules(budget)


@lru_cache(maxsize=4096)
def prices(event: Event, budget: Loss, neighbours: Neighbours) -> Tallies:
    """What one event costs under each rule of a budget.

    Raises:
        UnsupportedEvent: if no rule has a price for it.
    """
    released = terms(check.instance(Event, event=event), neighbours)
    found: dict[str, Amounts | None] = {}
    for rule in rules(budget):
        try:
            found[CURRENCIES[type(rule.cap)]] = _amounts(rule.price(released))
        except (UnsupportedEvent, InvalidParameter):  # no price, or deltas that reach 1
            found[CURRENCIES[type(rule.cap)]] = None
    if all(amounts is None for amounts in found.values()):
        hint = f"A budget of {budget} has no price for it; open the account with a rho or a delta."
        raise UnsupportedEvent(event, "This account", hint)
    return Tallies(found)


@lru_cache(maxsize=256)
def _read(fields: tuple[tuple[str, str | None], ...]) -> Tallies:
    return Tallies({kind: None if text is None else tuple(map(ratio, text.split())) for kind, text in fields})


@lru_cache(maxsize=256)
def _limits(budget: Loss) -> tuple[tuple[filters.Rule, Amounts], ...]:
    return tuple((rule, _amounts(rule.cap)) for rule in rules(budget))


def _amounts(loss: Loss) -> Amounts:
    return tuple(getattr(loss, field.name) for field in dataclasses.fields(loss))  # type: ignore[arg-type]


def _sum(spent: Amounts | None, more: Amounts | None) -> Amounts | None:
    """Exact, or a little more if the numbers have become absurdly long (`privacy.amounts.short`)."""
    if spent is None or more is None:
        return None
    return _bounded(tuple([short(a + b) for a, b in zip(spent, more, strict=True)]))


def _times(amounts: Amounts | None, count: int) -> Amounts | None:
    return None if amounts is None else _bounded(tuple([amount * count for amount in amounts]))


def _bounded(amounts: Amounts) -> Amounts | None:
    """None where a delta has reached 1: nothing is bounded any more."""
    return None if len(amounts) == 2 and amounts[1] >= 1 else amounts
