"""Amounts that are set aside: what they cost, and the charges that are paid from them."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from discreet.errors import InsufficientBudget, InternalError, InvalidParameter, NotPermitted
from discreet.hint_text import Hint
from discreet.ledger.account import AccountState
from discreet.ledger.tallies import Tallies, prices, rules, share_used
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP
from discreet.privacy.events import Approx, Concentrated, Pure
from discreet.report.display import share_left


def require_reserve(asked: str, account: str, who: str, now: AccountState, price: Tallies) -> None:
    """Checks that a charge may come from a reserve, and fits it.

    Raises:
        InvalidParameter: if nothing of that name is set aside.
        NotPermitted: if it is set aside for somebody else.
        InsufficientBudget: if too little of it is left.
    """
    reserve = now.reserve(asked)
    if reserve is None:
        hint = Hint("Ask a steward to set an amount aside under this name, or leave {reserve} out.")
        raise InvalidParameter("reserve", asked, f"to be set aside on account {account!r}", hint)
    if reserve.who not in ("", who):
        raise NotPermitted(who, f"spend from reserve {asked!r}", f"It is set aside for {reserve.who}.")
    if not reserve.covers(price):
        requested, remaining = amounts_refused(price, reserve.spent, now.budget)
        whole, used = share_used(reserve.promise, now.budget), share_used(reserve.spent, now.budget)
        left = "" if whole is None or used is None else share_left(max(whole - used, Fraction(0)))
        hint = Hint(
            f"Nothing was spent from reserve {asked!r} of account {account!r}. Leave {{reserve}} out, or ask a "
            "steward to set more aside under another name."
        )
        raise InsufficientBudget(requested, remaining, hint, left=f"{left} of the budget, in the reserve")


def amounts_refused(price: Tallies, spent: Tallies, cap: Loss) -> tuple[Loss, Loss]:
    """Returns a price and what sums leave of a cap, in a currency that has both."""
    for rule in rules(cap):
        cost = price.of(rule)
        if cost is not None and spent.of(rule) is not None:
            return cost, spent.remaining_under(rule)
    return price.spent_under(cap) or cap * 0, cap * 0


@lru_cache(maxsize=256)
def reserve_price(amount: Loss, budget: Loss, neighbours: Neighbours) -> Tallies:
    """Returns what it costs to set an amount aside, under each rule of a budget.

    An epsilon has a price in rho as well, epsilon^2 / 2, which covers all pure charges that add up to it (epsilon-DP is
    epsilon^2 / 2-zCDP; Bun and Steinke 2016, Proposition 1.4).
    """
    if isinstance(amount, PureDP):
        return prices(Pure(amount.epsilon), budget, neighbours)
    if isinstance(amount, ApproxDP):
        return prices(Approx(amount.epsilon, amount.delta), budget, neighbours)
    if not isinstance(amount, ZCDP):
        raise InternalError("A reserve is of a currency that no account has.")
    return prices(Concentrated(amount.rho, amount.delta), budget, neighbours)
