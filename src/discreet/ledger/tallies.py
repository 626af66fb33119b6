"""Exact running sums of what was charged, one for each rule of an account, and what they leave.

An account's budget is kept by the best of several filters (`accounting.filters.rules`): a charge passes while at least
one rule still holds after it. Here the sums are values that can be written down and read again, so that a charge costs
the same after ten entries as after a hundred thousand.

Formal guarantee: sums only grow, and a rule holds if its sum is known and at most its cap; that is the state of an
`accounting.Filter` charged with the same events, so its theorem applies (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse,
Ramdas, Rogers, Wu 2023).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from discreet import check
from discreet.accounting import filters
from discreet.accounting.composition import terms
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.exact import root_below
from discreet.ledger.serialization import (
    NAMES,
    ZERO,
    Amount,
    Amounts,
    add_pairs,
    are_within,
    by_identity,
    read_pairs,
    remainder,
    remainders,
    repeat_pair,
    write_pairs,
)
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP
from discreet.privacy.events import Event
from discreet.report.display import share_left, share_spent

PARTS = 10**12
"""In how many parts shares of a budget are counted."""

CURRENCIES: dict[type[Loss], str] = {PureDP: "pure", ApproxDP: "approximate", ZCDP: "concentrated"}


RULE_NAMES: dict[type[Loss], str] = {
    PureDP: "sums of epsilon",
    ApproxDP: "sums of epsilon and delta",
    ZCDP: "sums of rho (zCDP)",
}
"""What the rules of a budget are called."""


@dataclass(frozen=True, slots=True)
class RuleUse:
    """What was spent by one of the rules under which an account is counted.

    Attributes:
        rule: its name.
        spent: what was spent; None once something was released that has no price under it.
        cap: what may be spent under it.

    >>> print(RuleUse(RULE_NAMES[PureDP], PureDP(1), PureDP(4)))
    sums of epsilon: epsilon=1 of epsilon=4, 25 %
    """

    rule: str
    spent: Loss | None
    cap: Loss

    @property
    def share(self) -> Fraction | None:
        """Returns the larger part of the amounts that is used; None where nothing bounds it."""
        if self.spent is None:
            return None
        parts: list[tuple[Fraction, Fraction]] = [
            (getattr(self.spent, name), getattr(self.cap, name)) for name in NAMES[type(self.cap)]
        ]
        if any(spent and not cap for spent, cap in parts):
            return None
        return max(spent / cap for spent, cap in parts if cap)

    @property
    def figures(self) -> str:
        """Returns what was spent of the cap."""
        if self.share is None:
            return "not usable, because something was released that it cannot count"
        return f"{self.spent} of {self.cap}, {share_spent(self.share)}"

    def __str__(self) -> str:
        return f"{self.rule}: {self.figures}"


@dataclass(slots=True)
class Tallies:
    """One sum for each rule, by the name of its currency in order; None where a charge had no price under that rule.

    Nothing changes one; it is not frozen only because every charge makes one, and a frozen one takes longer to make.

    >>> from discreet.privacy.events import Pure
    >>> (Tallies.zero(PureDP(1)) + prices(Pure(0.1), PureDP(1), Neighbours.ADD_REMOVE)).write()
    {'pure': '1/10'}
    """

    sums: dict[str, Amounts | None]
    _written: str | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def zero(cls, budget: Loss) -> Tallies:
        """Returns nothing spent, under each rule of a budget; the same object for the same budget."""
        return _zero(type(budget), _amounts(budget))

    def __add__(self, other: Tallies) -> Tallies:
        sums, more = self.sums.copy(), other.sums
        for kind in sums:
            sums[kind] = _sum(sums[kind], more[kind])
        return Tallies(sums)

    def __sub__(self, other: Tallies) -> Tallies:
        """Returns what is left of a sum without a part of it; never negative, although long sums are rounded up."""
        less = {kind: difference(spent, other.sums[kind]) for kind, spent in self.sums.items()}
        return Tallies(less)

    def __mul__(self, count: int) -> Tallies:
        return Tallies({kind: _times(spent, count) for kind, spent in self.sums.items()})

    def write(self) -> dict[str, str | None]:
        """Returns the sums as JSON fields: for each rule its amounts, with spaces between them."""
        return {kind: None if spent is None else write_pairs(spent) for kind, spent in self.sums.items()}

    @property
    def text(self) -> str:
        """The canonical JSON of `write`, built by hand and cached, because every charge writes several."""
        written = self._written
        if written is None:
            written, apart = "{", ""
            for kind, spent in self.sums.items():
                if spent is None:
                    written += f'{apart}"{kind}":null'
                elif len(spent) == 1:
                    written += f'{apart}"{kind}":"{spent[0][0]}/{spent[0][1]}"'
                else:
                    (top, bottom), (delta, below) = spent
                    written += f'{apart}"{kind}":"{top}/{bottom} {delta}/{below}"'
                apart = ","
            written = self._written = written + "}"
        return written

    @classmethod
    def read(cls, fields: dict[str, str | None]) -> Tallies:
        """Reads the sums that `write` wrote; the same object for the same text, as long as it is remembered."""
        return _read(tuple(fields.items()))

    def is_covered_by(self, promise: Tallies) -> bool:
        """Returns whether these sums are at most those promised, under every rule that has a sum for the promise."""
        return all(
            cap is None or (spent is not None and are_within(spent, cap))
            for spent, cap in ((self.sums[kind], cap) for kind, cap in promise.sums.items())
        )

    def holding(self, budget: Loss) -> filters.Rule | None:
        """Returns the first rule of a budget that these sums keep, or None if they keep none."""
        held = self.find_holding_rule(budget)
        return None if held is None else held[0]

    def find_holding_rule(self, budget: Loss) -> tuple[filters.Rule, Amounts, Amounts] | None:
        """Returns the same rule with its sum and its cap."""
        for kind, rule, limits in _limits(budget):
            spent = self.sums[kind]
            if spent is not None and are_within(spent, limits):
                return rule, spent, limits
        return None

    def of(self, rule: filters.Rule) -> Loss | None:
        """Returns the sum that a rule looks at."""
        spent = self._sum(rule)
        return None if spent is None else loss(type(rule.cap), spent)

    def spent_under(self, budget: Loss) -> Loss | None:
        """Returns what was spent, in the currency of the first rule that holds; else of the first that can tell."""
        rule = self.holding(budget)
        told = [self.of(other) for other in rules(budget) if self._sum(other) is not None]
        return self.of(rule) if rule is not None else next(iter(told), None)

    def remaining(self, budget: Loss) -> Loss:
        """Returns the remaining budget under the first rule that holds; zero if none does."""
        rule = self.holding(budget)
        return budget * 0 if rule is None else self.remaining_under(rule)

    def remaining_under(self, rule: filters.Rule) -> Loss:
        """Returns what one rule leaves; never negative, and below the smallest amount there is it counts as nothing."""
        limits = _amounts(rule.cap)
        return loss(type(rule.cap), remainders(limits, self._sum(rule) or limits))

    def largest_pure(self, budget: Loss) -> Fraction:
        """Returns the largest epsilon that a single pure question may still have; rounded down where it is irrational.

        A pure question costs its epsilon, or half its square in rho; deltas must hold already but do not grow.
        """
        return self._largest(budget, {})

    @property
    def needs_delta(self) -> bool:
        """Returns whether a delta is part of this price under every rule that has one."""
        return all(cost is None or (len(cost) > 1 and cost[1][0] > 0) for cost in self.sums.values())

    def largest_like(self, price: Tallies, budget: Loss) -> Fraction:
        """Returns the largest epsilon of a question that needs as much delta as one of this price."""
        deltas = {kind: None if cost is None else (ZERO, *cost[1:]) for kind, cost in price.sums.items()}
        return self._largest(budget, deltas)

    def _largest(self, budget: Loss, deltas: Mapping[str, Amounts | None]) -> Fraction:
        largest = Fraction(0)
        for kind, rule, limits in _limits(budget):
            spent, delta = self.sums[kind], deltas.get(kind, ())
            if delta:
                spent = _sum(spent, delta)
            if delta is not None and spent is not None and are_within(spent, limits):
                rest = Fraction(*remainder(limits[0], spent[0]))
                concentrated = isinstance(rule.cap, ZCDP) and rest > 0
                largest = max(largest, root_below(2 * rest) if concentrated else rest)
        return largest

    def under_rules(self, budget: Loss) -> tuple[RuleUse, ...]:
        """Returns these sums under each rule of a budget."""
        return tuple(RuleUse(RULE_NAMES[type(rule.cap)], self.of(rule), rule.cap) for rule in rules(budget))

    def _sum(self, rule: filters.Rule) -> Amounts | None:
        return self.sums[CURRENCIES[type(rule.cap)]]


class ChargePrice:
    """A price to be added to several sums; those that are the same are added to once, and stay one object.

    The sums of a period and of a life mostly are, and those of an account and of a person who asks alone.
    """

    __slots__ = ("_added", "_price")

    def __init__(self, price: Tallies) -> None:
        self._price = price
        self._added: list[tuple[Tallies, Tallies]] = []

    def add_to(self, spent: Tallies) -> Tallies:
        """Sums after one more charge of this price."""
        for known, after in self._added:
            if known is spent or known.sums == spent.sums:
                return after
        total = spent + self._price
        self._added.append((spent, total))
        return total


def rules(budget: Loss) -> tuple[filters.Rule, ...]:
    """Returns the rules of a budget in one of the ledger's currencies, worked out once.

    Raises:
        InvalidParameter: for other currencies and for budgets with an amount of zero.
    """
    if type(budget) not in CURRENCIES:
        hint = "Build it with Budget(...), e.g. Budget(epsilon=1)."
        raise InvalidParameter("budget", budget, "to be a PureDP, ApproxDP or ZCDP", hint)
    return _rules(budget)


@lru_cache(maxsize=256)
def _rules(budget: Loss) -> tuple[filters.Rule, ...]:
    if budget.is_zero or (isinstance(budget, ApproxDP) and not (budget.epsilon and budget.delta)):
        raise InvalidParameter("budget", budget, "to have amounts above 0", "Pass larger amounts.")
    return filters.rules(budget)


@lru_cache(maxsize=4096)
def prices(event: Event, budget: Loss, neighbours: Neighbours) -> Tallies:
    """Returns what one event costs under each rule of a budget.

    Raises:
        UnsupportedEvent: if no rule has a price for it.
    """
    released = terms(check.instance(Event, event=event), neighbours, calibrated=True)
    found: dict[str, Amounts | None] = {}
    for rule in rules(budget):
        try:
            found[CURRENCIES[type(rule.cap)]] = _amounts(rule.price(released))
        except (UnsupportedEvent, InvalidParameter):  # no price, or deltas that reach 1
            found[CURRENCIES[type(rule.cap)]] = None
    if all(price is None for price in found.values()):
        hint = f"A budget of {budget} cannot price it. Open the account with a rho or a delta."
        raise UnsupportedEvent(event, "This account", hint)
    return Tallies(dict(sorted(found.items())))


def share_of(event: Event, budget: Loss, neighbours: Neighbours) -> Fraction | float:
    """Returns the share of an unspent budget that one event takes, by the rule that asks the least.

    >>> from discreet.privacy.events import Approx
    >>> share_of(Approx(1, "1e-7"), ApproxDP(4, "1e-6"), Neighbours.ADD_REMOVE)
    Fraction(1, 4)
    """
    share = share_used(prices(event, budget, neighbours), budget)
    return math.inf if share is None else share


def share_used(spent: Tallies, budget: Loss) -> Fraction | None:
    """Returns which share of a budget is used: the one number in which everything that was spent adds up for people.

    An account is kept by the best of several rules, and a charge passes while one of them holds. Of each rule that
    still has a sum, the larger part of its amounts (epsilon or rho, and delta) is used; the smallest of these counts.
    It grows with every charge and is at most 1 while a rule holds, so what each charge adds to it adds up. It is
    rounded up to a part in 10^12, which keeps the shares of charges short texts.

    Returns:
        The share; above 1 for sums beyond a budget. None if no rule has a sum.

    >>> from discreet.privacy.events import Calibrated, Concentrated, Pure
    >>> budget, noise = ApproxDP(10, "1e-6"), Calibrated(Concentrated("0.01"), 1, "1e-8")
    >>> one, other = (prices(event, budget, Neighbours.ADD_REMOVE) for event in (Pure(1), noise))
    >>> share_used(one, budget), share_used(one + other, budget)
    (Fraction(1, 10), Fraction(1, 5))
    """
    least: Amount | None = None
    for kind, _, caps in _limits(budget):
        amounts = spent.sums[kind]
        if amounts is None:
            continue
        top, bottom = 0, 1
        for (paid, below), (cap, under) in zip(amounts, caps, strict=True):
            if paid and not cap:
                break
            if paid * under * bottom > top * below * cap:
                top, bottom = paid * under, below * cap
        else:
            if least is None or top * least[1] < least[0] * bottom:
                least = top, bottom
    return None if least is None else Fraction(-(-least[0] * PARTS // least[1]), PARTS)


def loss(currency: type[Loss], spent: Amounts) -> Loss:
    """Returns amounts as a loss of their currency."""
    return currency(*(Fraction(*amount) for amount in spent))


@lru_cache(maxsize=256)
def _read(fields: tuple[tuple[str, str | None], ...]) -> Tallies:
    return Tallies({kind: None if text is None else read_pairs(text) for kind, text in fields})


@lru_cache(maxsize=256)
def _zero(currency: type[Loss], budget: Amounts) -> Tallies:
    limits = _limits(loss(currency, budget))
    nothing: dict[str, Amounts | None] = {kind: (ZERO,) * len(cap) for kind, _, cap in limits}
    return Tallies(dict(sorted(nothing.items())))


@by_identity
def _limits(budget: Loss) -> tuple[tuple[str, filters.Rule, Amounts], ...]:
    """Returns the rules of a budget, each with the name of its currency and the amounts of its cap."""
    return tuple((CURRENCIES[type(rule.cap)], rule, _amounts(rule.cap)) for rule in rules(budget))


def _amounts(amount: Loss) -> Amounts:
    return tuple([getattr(amount, name).as_integer_ratio() for name in NAMES[type(amount)]])


def _sum(spent: Amounts | None, more: Amounts | None) -> Amounts | None:
    if spent is None or more is None:
        return None
    first = add_pairs(spent[0], more[0])
    if len(spent) == 1:
        return (first,)
    delta = more[1]
    return _bound_amounts(first, add_pairs(spent[1], delta)) if delta[0] else (first, spent[1])


def difference(spent: Amounts | None, part: Amounts | None) -> Amounts | None:
    """Returns the exact difference; sums that were rounded up differently never make it negative."""
    if spent is None or part is None:
        return None
    pairs = zip(spent, part, strict=True)
    return tuple([max(Fraction(*one) - Fraction(*other), Fraction(0)).as_integer_ratio() for one, other in pairs])


def _times(spent: Amounts | None, count: int) -> Amounts | None:
    if spent is None:
        return None
    first = repeat_pair(spent[0], count)
    return (first,) if len(spent) == 1 else _bound_amounts(first, repeat_pair(spent[1], count))


def _bound_amounts(first: Amount, delta: Amount) -> Amounts | None:
    """None where a delta has reached 1: nothing is bounded any more."""
    return None if delta[0] >= delta[1] else (first, delta)


class RemainingBudget:
    """The remaining budget, in three figures; printed, it is the share.

    Every answer has one, and few are looked at: the figures are worked out when the first of them is.

    >>> from discreet.privacy import Budget
    >>> remaining_under = RemainingBudget.of(Tallies.zero(Budget(rho="1/2")), Budget(rho="1/2"))
    >>> print(remaining_under, "| a pure question of", remaining_under.epsilon)
    100 % | a pure question of 1
    """

    def __init__(self, loss: Loss, epsilon: Fraction, share: Fraction) -> None:
        self.figures = loss, epsilon, share

    @classmethod
    def of(cls, spent: Tallies, budget: Loss) -> RemainingBudget:
        """Returns what sums leave of a budget."""
        made = cls.__new__(cls)
        made._sums = spent, budget  # both never change
        return made

    _sums: tuple[Tallies, Loss]

    @cached_property
    def figures(self) -> tuple[Loss, Fraction, Fraction]:
        """The loss, the epsilon and the share."""
        spent, budget = self._sums
        used = share_used(spent, budget)
        left = Fraction(0) if used is None else max(1 - used, Fraction(0))
        return spent.remaining(budget), spent.largest_pure(budget), left

    @property
    def loss(self) -> Loss:
        """What the rule in force leaves, in its own currency."""
        return self.figures[0]

    @property
    def epsilon(self) -> Fraction:
        """The largest epsilon that a single pure question may still have, under whichever rule allows most."""
        return self.figures[1]

    @property
    def share(self) -> Fraction:
        """The part of the budget that is left, see `share_used`."""
        return self.figures[2]

    @property
    def delta(self) -> Fraction:
        """The delta of the loss; 0 if it is pure."""
        return self.loss.delta if isinstance(self.loss, ApproxDP | ZCDP) else Fraction(0)

    def __eq__(self, other: object) -> bool:
        return self.figures == other.figures if isinstance(other, RemainingBudget) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.figures)

    def __reduce__(self) -> tuple[type[RemainingBudget], tuple[Loss, Fraction, Fraction]]:
        """Pickles the figures, and not the sums that they come from."""
        return RemainingBudget, self.figures

    def __repr__(self) -> str:
        return f"RemainingBudget({self})"

    def __str__(self) -> str:
        return share_left(self.share)


class Reserve(NamedTuple):
    """An amount that is set aside: a part of an account's budget that nothing else may spend.

    Formal guarantee: what is set aside counts as spent from that moment on, under every rule that can price it. A
    charge from it is accepted only if all charges from it together cost no more than it, under each of these rules.
    So the sums that an account is held to are at least those of everything that was released, in whatever order:
    plain composition, with no theorem about nested filters. What is given back is the difference, and it stays what
    it was under a rule that could not price the whole.

    Attributes:
        name: what it is for.
        who: the person who may spend it; empty for all who may ask on the account.
        promise: what it costs as a whole, under each rule.
        spent: what was charged to it so far.
    """

    name: str
    who: str
    promise: Tallies
    spent: Tallies

    def covers(self, price: Tallies) -> bool:
        """Returns whether one more charge fits, under every rule that can price the whole."""
        return (self.spent + price).is_covered_by(self.promise)

    def write(self) -> dict[str, Any]:
        """Returns the reserve as JSON fields."""
        return {"promise": self.promise.write(), "spent": self.spent.write(), "who": self.who}

    @classmethod
    def read(cls, name: str, fields: Mapping[str, Any]) -> Reserve:
        """Returns the reserve that `write` wrote."""
        return cls(name, fields["who"], Tallies.read(fields["promise"]), Tallies.read(fields["spent"]))
