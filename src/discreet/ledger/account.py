"""What an account is: declared once, then only charged, amended, renewed, locked and unlocked.

`Account` never changes. `Standing` and `Member` are values too: every act makes a new one, and `verify` makes them
again from the entries alone.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from discreet.errors import InvalidParameter
from discreet.ledger.serialization import canonical, loss_text, parsed, read_loss, read_unit, write_loss, write_unit
from discreet.ledger.tallies import CURRENCIES, Price, Tallies, rules
from discreet.privacy import Loss, Neighbours, Unit

_new = tuple.__new__  # makes a named tuple without the function around it
FAILURE_CREDITS = 3
"""Failed questions until a name is stopped: failing is one bit about the data that nobody paid for."""

FAILURE_CEILING = 3 * FAILURE_CREDITS
"""Credits of all names together, until everybody who had a failure is stopped."""


class Role(Enum):
    """What somebody may do on an account.

    Raises:
        InvalidParameter: from ``Role(text)`` if the text names no role.
    """

    STEWARD = "steward"
    """Amends, renews, appoints, unlocks, and may ask."""

    ANALYST = "analyst"
    """Asks."""

    AUDITOR = "auditor"
    """Reads the book; asks nothing."""

    @classmethod
    def _missing_(cls, value: object) -> Role:
        raise InvalidParameter("role", value, "to be 'steward', 'analyst' or 'auditor'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who is protected, in which relation, and the budget it was opened with; fixed for ever.

    Attributes:
        salt: a secret of the account, by which rows of one unit are chosen; it never leaves the curator.
    """

    name: str
    unit: Unit
    neighbours: Neighbours
    budget: Loss
    salt: bytes = dataclasses.field(repr=False)

    def __hash__(self) -> int:
        """Of the name, which is one in a book: prices are looked up by account with every charge."""
        return hash(self.name)

    def write(self) -> str:
        """The account as canonical JSON."""
        return canonical(
            {
                "budget": write_loss(self.budget),
                "name": self.name,
                "neighbours": self.neighbours.value,
                "salt": self.salt.hex(),
                "unit": write_unit(self.unit),
            }
        )

    @classmethod
    def read(cls, text: str) -> Account:
        """The account that `write` wrote."""
        fields = parsed(text)
        return cls(
            name=fields["name"],
            unit=read_unit(fields["unit"]),
            neighbours=Neighbours(fields["neighbours"]),
            budget=read_loss(fields["budget"]),
            salt=bytes.fromhex(fields["salt"]),
        )


class Standing(NamedTuple):
    """Where an account stands: budget, sums of this period and of its whole life, failures.

    >>> from discreet.ledger.tallies import prices
    >>> from discreet.privacy import Budget, events
    >>> budget = Budget(epsilon=1)
    >>> after = Standing.opened(budget).charged(Price(prices(events.Pure(0.4), budget, Neighbours.ADD_REMOVE)))
    >>> print(after.spent.remaining(budget), "|", after.renewed(budget).spent.remaining(budget))
    epsilon=0.6 | epsilon=1
    """

    budget: Loss
    period: int
    spent: Tallies
    lifetime: Tallies
    failures: int = 0
    """Of everybody, since the account was last unlocked; `ledger.failures` tells whose."""
    listed: bool = False
    """Whether analysts were appointed: from then on only they may ask."""

    @classmethod
    def opened(cls, budget: Loss) -> Standing:
        """A new account's."""
        return cls(budget=budget, period=1, spent=Tallies.zero(budget), lifetime=Tallies.zero(budget))

    def charged(self, price: Price) -> Standing:
        """After one more charge; whether any rule still holds is for the caller to ask."""
        budget, period, spent, lifetime, failures, listed = self
        after = price.added(spent)
        life = after if lifetime is spent else price.added(lifetime)
        return _new(Standing, (budget, period, after, life, failures, listed))

    def amended(self, budget: Loss) -> Standing:
        """With another budget of the same currency, and everything spent so far still counted."""
        return self._replace(budget=same_currency(self.budget, budget))

    def renewed(self, budget: Loss) -> Standing:
        """A new period that starts with nothing spent; the lifetime goes on."""
        budget = same_currency(self.budget, budget)
        return self._replace(budget=budget, period=self.period + 1, spent=Tallies.zero(budget))

    def write(self) -> str:
        """The standing as canonical JSON, put together by hand: others wait while it is written."""
        budget, period, spent, lifetime, failures, listed = self
        text = spent.text
        life = text if lifetime is spent else lifetime.text
        return (
            f'{{"budget":{loss_text(budget)},"failures":{failures},"lifetime":{life},'
            f'"listed":{"true" if listed else "false"},"period":{period},"spent":{text}}}'
        )

    @staticmethod
    def read(text: str) -> Standing:
        """The standing that `write` wrote."""
        fields = parsed(text)
        return Standing(
            budget=read_loss(fields["budget"]),
            period=fields["period"],
            spent=Tallies.read(fields["spent"]),
            lifetime=Tallies.read(fields["lifetime"]),
            failures=fields["failures"],
            listed=fields["listed"],
        )


class Member(NamedTuple):
    """One person on one account: a role and a cap if a steward gave them, and what they have spent in any case."""

    period: int
    spent: Tallies
    lifetime: Tallies
    role: Role | None = None
    cap: Loss | None = None

    @classmethod
    def of(cls, standing: Standing) -> Member:
        """Somebody new."""
        zero = Tallies.zero(standing.budget)
        return cls(period=standing.period, spent=zero, lifetime=zero)

    def in_period(self, standing: Standing) -> Member:
        """The same person after the account's renewals."""
        if self.period == standing.period:
            return self
        return self._replace(period=standing.period, spent=Tallies.zero(standing.budget))

    def charged(self, price: Price) -> Member:
        """After one more charge."""
        period, spent, lifetime, role, cap = self
        after = price.added(spent)
        return _new(Member, (period, after, after if lifetime is spent else price.added(lifetime), role, cap))

    def write(self) -> str:
        """The member as canonical JSON, put together by hand as well."""
        period, spent, lifetime, role, cap = self
        text = spent.text
        life = text if lifetime is spent else lifetime.text
        limit = "null" if cap is None else loss_text(cap)
        given = "null" if role is None else f'"{role.value}"'
        return f'{{"cap":{limit},"lifetime":{life},"period":{period},"role":{given},"spent":{text}}}'

    @staticmethod
    def read(text: str) -> Member:
        """The member that `write` wrote."""
        fields = parsed(text)
        return Member(
            period=fields["period"],
            spent=Tallies.read(fields["spent"]),
            lifetime=Tallies.read(fields["lifetime"]),
            role=None if fields["role"] is None else Role(fields["role"]),
            cap=None if fields["cap"] is None else read_loss(fields["cap"]),
        )


def same_currency(old: Loss, new: Loss) -> Loss:
    """The new amount, if it is one of the account's currency.

    Raises:
        InvalidParameter: otherwise: what was spent in one currency cannot be counted in another.
    """
    rules(new)
    if type(new) is not type(old):
        raise InvalidParameter(
            "budget",
            new,
            f"to be {CURRENCIES[type(old)]} like {old}",
            "The currency is fixed when an account is opened.",
        )
    return new
