"""An account's figures for people to read: what it may spend, what it has spent, what is left."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.ledger.account import Member, Standing
from discreet.ledger.failures import NONE, Failures
from discreet.ledger.tallies import Tallies
from discreet.privacy import ZCDP, ApproxDP, Loss


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left, in two figures; printed, it is the loss.

    Attributes:
        loss: what the rule in force leaves, in its own currency.
        epsilon: the largest epsilon that a single pure question may still have, under whichever rule allows most.

    >>> from discreet.privacy import Budget
    >>> left = Remaining.of(Tallies.zero(Budget(rho="1/2")), Budget(rho="1/2"))
    >>> print(left, "| a pure question of", left.epsilon)
    rho=0.5 | a pure question of 1
    """

    loss: Loss
    epsilon: Fraction

    @classmethod
    def of(cls, spent: Tallies, budget: Loss) -> Remaining:
        """What sums leave of a budget."""
        return cls(spent.remaining(budget), spent.largest_pure(budget))

    @property
    def delta(self) -> Fraction:
        """The delta of the loss; 0 if it is pure."""
        return self.loss.delta if isinstance(self.loss, ApproxDP | ZCDP) else Fraction(0)

    def __str__(self) -> str:
        return str(self.loss)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """An account's figures, or one person's on it.

    Attributes:
        total: the budget, or the person's cap.
        spent: of this period, in the currency of the rule that leaves most room to say so.
        remaining: what that rule leaves, and the largest pure question that is still possible.
        lifetime: everything ever spent, renewals or not; None if no rule can bound it any more.
        period: counted from 1; a renewal begins the next.
        failures: failed questions since the account was last unlocked: all of them, or those that use the same credits
            as the person's.
        stopped: whose failure credits are used up, until a steward unlocks the account; the empty name stands for all
            names without a role, which share theirs.
    """

    total: Loss
    spent: Loss | None
    remaining: Remaining
    lifetime: Loss | None
    period: int
    failures: int = 0
    stopped: tuple[str, ...] = ()

    @property
    def locked(self) -> bool:
        """Whether the person is stopped, or somebody on the account is."""
        return bool(self.stopped)

    @classmethod
    def of(cls, standing: Standing, found: Failures) -> Balance:
        """An account's balance."""
        return _balance(standing.budget, standing, standing.failures, found.stopped)

    @classmethod
    def of_member(cls, member: Member, standing: Standing, found: Failures = NONE, name: str = "") -> Balance:
        """A person's; without a cap the account's budget is theirs as well. `name` is whose failures count for them."""
        stopped = (name,) if found.stops(name) else ()
        return _balance(member.cap or standing.budget, member.in_period(standing), found.counts.get(name, 0), stopped)


def _balance(total: Loss, spender: Standing | Member, failures: int, stopped: tuple[str, ...]) -> Balance:
    return Balance(
        total=total,
        spent=spender.spent.spent(total),
        remaining=Remaining.of(spender.spent, total),
        lifetime=spender.lifetime.spent(total),
        period=spender.period,
        failures=failures,
        stopped=stopped,
    )
