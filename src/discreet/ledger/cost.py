"""What a charge costs, for people: the epsilon that was asked for, and the share of the budget."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.dataclass import dataclass
from discreet.ledger.account import Account, AccountState
from discreet.ledger.serialization import ratio, read_loss
from discreet.ledger.tallies import ChargePrice, prices, share_used
from discreet.privacy import Loss
from discreet.privacy.amounts import decimal
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
    return Cost(asked, added_share(state, after), details)


def added_share(before: AccountState, after: AccountState) -> Fraction:
    """Returns how far an act moves the share of the budget that is spent; below 0 where it gives a larger budget."""
    spent, now = share_used(before.spent, before.budget), share_used(after.spent, after.budget)
    return _NOTHING if spent is None or now is None else now - spent
