"""What a charge costs, for people: the epsilon that was asked for, and the share of the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.dataclass import dataclass
from discreet.ledger.account import Account, AccountState
from discreet.ledger.serialization import ratio, read_loss, write_loss, write_ratio
from discreet.ledger.tallies import ChargePrice, prices, rules, share_used
from discreet.privacy import Loss, Neighbours
from discreet.privacy.amounts import decimal
from discreet.privacy.best_guess import best_guess
from discreet.privacy.events import Event
from discreet.report.display import share_spent

_NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a charge costs.

    Attributes:
        epsilon: what was asked for; None where nothing was asked in epsilon, as for a stream with a rho.
        share: of the account's budget at that time. Shares of charges add up to the share that is spent. None for a
            charge that was written before shares were.
        details: the same in the currency of the rule by which the account is counted: sums of epsilon, or of rho.

    >>> from discreet.privacy import PureDP
    >>> cost = Cost(Fraction(1), Fraction(1, 10), PureDP(1))
    >>> print(cost, "|", Cost.free(cost.details))
    epsilon=1, 10 % of the budget | nothing
    """

    epsilon: Fraction | None
    share: Fraction | None
    details: Loss

    @classmethod
    def free(cls, currency: Loss) -> Cost:
        """Returns the cost of what costs nothing."""
        return cls(_NOTHING, _NOTHING, currency * 0)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Cost:
        """Returns the cost that the entry of a charge tells."""
        asked, share = content.get("asked"), content.get("share")
        return cls(
            None if asked is None else ratio(asked),
            None if share is None else ratio(share),
            read_loss(content["cost"]),
        )

    def write(self) -> dict[str, Any]:
        """Returns the cost as JSON fields, which `read` takes, too."""
        known = {"asked": self.epsilon, "share": self.share}
        written = {name: write_ratio(amount) for name, amount in known.items() if amount is not None}
        return {**written, "cost": write_loss(self.details)}

    @property
    def is_zero(self) -> bool:
        """Whether nothing was charged."""
        return self.details.is_zero

    @property
    def brief(self) -> str:
        """Returns the cost for a column of a table, which does not say what the percent are of."""
        if self.is_zero:
            return "nothing"
        asked = str(self.details) if self.epsilon is None else f"epsilon={decimal(self.epsilon)}"
        return asked if self.share is None else f"{asked}, {share_spent(self.share)}"

    def __repr__(self) -> str:
        return f"Cost({self})"

    def __str__(self) -> str:
        return self.brief if self.is_zero or self.share is None else f"{self.brief} of the budget"


def cost_now(account: Account, state: AccountState, event: Event, asked: Fraction | None) -> Cost:
    """Returns what a charge of an event would cost now, also if no rule would hold after it.

    Raises:
        UnsupportedEvent: if no rule of the account has a price for it.
    """
    price = prices(event, account.budget, account.neighbours)
    after = state.with_charge(ChargePrice(price))
    rule = after.spent.holding(state.budget)
    details = (None if rule is None else price.of(rule)) or price.spent_under(state.budget) or state.budget * 0
    return Cost(asked, state.added_share(after), details)


def describe_cost(account: Account, state: AccountState, event: Event) -> tuple[str, ...]:
    """Returns how the cost of a charge is computed now, with the account's own numbers: a line for each rule.

    >>> from discreet.privacy import ApproxDP, Neighbours, Unit
    >>> from discreet.privacy.events import Pure
    >>> budget = ApproxDP(2, "1e-6")
    >>> account = Account(
    ...     name="a", unit=Unit("person"), neighbours=Neighbours.ADD_REMOVE, budget=budget, salt=bytes(32)
    ... )
    >>> for line in describe_cost(account, AccountState.open_account(budget), Pure("0.1")):
    ...     print(line)
    sums of epsilon: this charge epsilon=0.1; with it epsilon=0.1 of epsilon=2, 5 %
    sums of epsilon and delta: this charge epsilon=0.1, delta=0; with it ... of epsilon=2, delta=5e-07, 5 %
    sums of rho (zCDP): this charge rho=0.005; with it rho=0.005 of rho=0.0791934, delta=2.5e-07, 6.314 %
    Each rule alone bounds the total loss, so the smallest of these shares counts: 0 % is spent, and 5 % with ...
    """
    price = prices(event, account.budget, account.neighbours)
    after = state.with_charge(ChargePrice(price))
    uses = after.spent.under_rules(state.budget)
    lines = []
    for rule, use in zip(rules(state.budget), uses, strict=True):
        more = price.of(rule)
        told = use.figures if use.share is None else f"this charge {more}; with it {use.figures}"
        lines.append(f"{use.rule}: {told}")
    before, total = (share_used(one.spent, state.budget) for one in (state, after))
    if before is not None and total is not None:
        counts = f"{share_spent(before)} is spent, and {share_spent(total)} with this charge."
        several = "Each rule alone bounds the total loss, so the smallest of these shares counts: "
        lines.append(f"{several if len(uses) > 1 else ''}{counts}")
    return tuple(lines)


def meaning(account: Account, budget: Loss, period: int, answer: Loss | None = None, *, renews: bool = False) -> str:
    """Returns what a budget means, in a sentence: how often a guess about one person can be right.

    Args:
        account: whose people are protected.
        budget: all that the account may release in a period.
        period: the present one; what the periods before it released is not in these figures, and the sentence says so.
        answer: what one answer may release; None for the account alone.
        renews: whether later periods release as much again, about the same people.

    >>> from discreet.privacy import Neighbours, PureDP, Unit
    >>> account = Account(
    ...     name="a", unit=Unit("person", "id"), neighbours=Neighbours.ADD_REMOVE, budget=PureDP(2), salt=bytes(32)
    ... )
    >>> print(meaning(account, PureDP(2), 1))
    Someone guessing whether a person is in the data is right 50 % of the time without any answer, and at most 88.1 %...
    """
    one = "a person" if len(account.unit.columns) <= 1 else "a unit"
    what = f"whether {one} is in the data"
    if account.rows is not None:
        one = f"a person's part of one {account.rows.per}"
        what = f"whether {one} is in the data"
    if account.neighbours is Neighbours.REPLACE:
        what = f"which of two values {one} has"
    whole = f"at most {_percent_above(best_guess(budget))} with all that this account may release"
    if account.rows is not None:
        whole += f" about one {account.rows.per}"
    if period > 1 or renews:
        whole += " in this period"
    if renews:
        whole += ", and later periods add to that"
    if answer is None:
        return f"Someone guessing {what} is right 50 % of the time without any answer, and {whole}."
    with_it = f"at most {_percent_above(best_guess(answer))} with it"
    return f"Someone guessing {what} is right 50 % of the time without this answer, {with_it}, and {whole}."


def _percent_above(rate: float) -> str:
    return f"{math.ceil(round(1000 * rate, 9)) / 10:g} %"
