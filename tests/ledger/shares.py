"""Shares of a budget from their definition, and a check that those of a ledger's entries add up to what is spent."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.accounting.composition import terms
from discreet.accounting.filters import rules
from discreet.errors import InvalidParameter, UnsupportedEvent
from discreet.ledger import Entry, Ledger
from discreet.ledger.serialization import ratio
from discreet.ledger.tallies import PARTS
from discreet.privacy import ZCDP, ApproxDP, Loss, Neighbours, PureDP
from discreet.privacy.events import from_json


def amounts(loss: Loss) -> tuple[Fraction, ...]:
    """The amounts of a loss that a rule looks at."""
    if isinstance(loss, PureDP):
        return (loss.epsilon,)
    if isinstance(loss, ApproxDP):
        return loss.epsilon, loss.delta
    assert isinstance(loss, ZCDP)
    return loss.rho, loss.delta


def share_by_rules(charged: Sequence[Entry], budget: Loss) -> Fraction:
    """The share of a budget that charges have used, from its definition, without the sums that the ledger keeps."""
    released = [terms(from_json(entry.content["event"]), Neighbours.ADD_REMOVE, calibrated=True) for entry in charged]
    shares = []
    for rule in rules(budget):
        try:
            paid = [amounts(rule.price(one)) for one in released]
        except (UnsupportedEvent, InvalidParameter):
            continue
        caps = amounts(rule.cap)
        used = [sum((one[place] for one in paid), Fraction(0)) for place in range(len(caps))]
        if not any(spent and not cap for spent, cap in zip(used, caps, strict=True)):
            shares.append(max(spent / cap for spent, cap in zip(used, caps, strict=True) if cap))
    return min(shares)


def check_sums(ledger: Ledger, account: str) -> None:
    """The shares of the entries since the last renewal add up to what is spent, which is what the rules say."""
    period: list[Entry] = []
    for entry in ledger.history(account):
        period = [] if entry.kind == "renew" else [*period, entry]
    balance = ledger.balance(account)
    total = sum((ratio(entry.content["share"]) for entry in period if entry.content.get("share")), Fraction(0))
    assert total == balance.spent_share == 1 - balance.remaining.share
    exact = share_by_rules([entry for entry in period if entry.kind == "charge"], balance.total)
    assert exact <= total <= exact + Fraction(1, PARTS)
