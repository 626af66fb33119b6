"""What an account is: declared once, then only charged, amended, renewed, locked and unlocked.

`Account` never changes. `AccountState` and `AccountMember` are values too: every act makes a new one, and `verify`
makes them again from the entries alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.ledger.renewal.open_period import OpenPeriod
from discreet.ledger.serialization import (
    at_most,
    canonical,
    loss_text,
    parse_canonical,
    read_loss,
    read_unit,
    write_loss,
    write_unit,
)
from discreet.ledger.tallies import (
    CURRENCIES,
    ChargePrice,
    RemainingBudget,
    Reserve,
    RuleUse,
    Tallies,
    rules,
    share_used,
)
from discreet.privacy import AnyBudget, ApproxDP, Loss, Neighbours, PureDP, RenewalSchedule, RenewingBudget, Unit
from discreet.privacy.budget import split
from discreet.report.display import Display, DisplayMixin, share_spent

_new = tuple.__new__  # makes a named tuple without the function around it
FAILURE_CREDITS = 3
"""Failed questions until a name is stopped (`AccountLocked`): each failure reveals one bit about the data for free."""

FAILURE_CEILING = 3 * FAILURE_CREDITS
"""Credits of all names together, until all names with a failure are stopped: see `Ledger.fail`.

>>> Failures({"ana": 3, "ben": 3, "cid": 2, "dan": 1}).used_credits == FAILURE_CEILING
True
"""


class Role(Enum):
    """What a person may do on an account.

    Raises:
        InvalidParameter: from ``Role(text)`` if the text names no role.
    """

    STEWARD = "steward"
    """Amends, renews, appoints, unlocks, and may ask."""

    ANALYST = "analyst"
    """Asks."""

    AUDITOR = "auditor"
    """Reads the ledger; asks nothing."""

    @classmethod
    def _missing_(cls, value: object) -> Role:
        raise InvalidParameter("role", value, "to be 'steward', 'analyst' or 'auditor'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account: who is protected, in which relation, and the budget it was opened with; fixed for ever.

    Attributes:
        salt: a secret of the account, by which rows of one unit are chosen; it never leaves the curator.
        rows: by which periods of their dates rows have budgets of their own; None where all rows share one.
    """

    name: str
    unit: Unit
    neighbours: Neighbours
    budget: Loss
    salt: bytes = dataclasses.field(repr=False)
    rows: RenewalSchedule | None = None

    def __hash__(self) -> int:
        """Hashes the name, which is unique in a ledger: every charge looks prices up by account."""
        return hash(self.name)

    def write(self) -> str:
        """Returns the account as canonical JSON."""
        fields = {
            "budget": write_loss(self.budget),
            "name": self.name,
            "neighbours": self.neighbours.value,
            "salt": self.salt.hex(),
            "unit": write_unit(self.unit),
        }
        return canonical(fields if self.rows is None else {**fields, "rows": self.rows.write()})

    @classmethod
    def read(cls, text: str) -> Account:
        """Returns the account that `write` wrote."""
        fields = parse_canonical(text)
        return cls(
            name=fields["name"],
            unit=read_unit(fields["unit"]),
            neighbours=Neighbours(fields["neighbours"]),
            budget=read_loss(fields["budget"]),
            salt=bytes.fromhex(fields["salt"]),
            rows=RenewalSchedule.read(fields["rows"]) if "rows" in fields else None,
        )


class AccountState(NamedTuple):
    """The state of an account: its budget, the sums of this period and of its whole life, and its failures.

    >>> from discreet.ledger.tallies import prices
    >>> from discreet.privacy import Budget, events
    >>> budget = Budget(epsilon=1)
    >>> after = AccountState.open_account(budget).with_charge(
    ...     ChargePrice(prices(events.Pure(0.4), budget, Neighbours.ADD_REMOVE))
    ... )
    >>> print(after.spent.remaining(budget), "|", after.with_new_period(budget).spent.remaining(budget))
    epsilon=0.6 | epsilon=1
    """

    budget: Loss
    period: int
    spent: Tallies
    lifetime: Tallies
    failures: int = 0
    """Failures of all names since the account was last unlocked; `ledger.policy` decides who is stopped."""
    listed: bool = False
    """Whether analysts were appointed: from then on only they may ask."""
    renews: OpenPeriod | None = None
    """The open period of the calendar by which the budget renews; None if only a steward renews it."""
    reserves: tuple[Reserve, ...] = ()
    """Amounts that are set aside, by name. `spent` has each as a whole, since nothing else may spend it."""

    @classmethod
    def open_account(cls, budget: Loss, renews: OpenPeriod | None = None) -> AccountState:
        """Returns the state of a new account."""
        zero = Tallies.zero(budget)
        return cls(budget=budget, period=1, spent=zero, lifetime=zero, renews=renews)

    @property
    def remaining(self) -> RemainingBudget:
        """What is left of the budget in this period."""
        return RemainingBudget.of(self.spent, self.budget)

    def with_charge(self, price: ChargePrice) -> AccountState:
        """Returns the state after one more charge; whether any rule still holds is for the caller to ask."""
        budget, period, spent, lifetime, failures, listed, renews, reserves = self
        after = price.add_to(spent)
        life = after if lifetime is spent else price.add_to(lifetime)
        return _new(AccountState, (budget, period, after, life, failures, listed, renews, reserves))

    def reserve(self, name: str) -> Reserve | None:
        """Returns what is set aside under a name; None if nothing is."""
        return next((reserve for reserve in self.reserves if reserve.name == name), None)

    def with_reserve(self, reserve: Reserve) -> AccountState:
        """Returns the state with another amount set aside."""
        reserves = sorted((*self.reserves, reserve), key=lambda one: one.name)
        return self._replace(spent=self.spent + reserve.promise, reserves=tuple(reserves))

    def without_reserve(self, name: str) -> AccountState:
        """Returns the state after what is left of a reserve was given back."""
        kept = tuple(reserve for reserve in self.reserves if reserve.name != name)
        spent = self.spent
        for reserve in self.reserves:
            if reserve.name == name:
                spent = (spent - reserve.promise) + reserve.spent
        return self._replace(spent=spent, reserves=kept)

    def with_reserved_charge(self, name: str, price: ChargePrice) -> AccountState:
        """Returns the state after a charge that was paid from a reserve."""
        reserves = tuple(
            reserve._replace(spent=price.add_to(reserve.spent)) if reserve.name == name else reserve
            for reserve in self.reserves
        )
        return self._replace(lifetime=price.add_to(self.lifetime), reserves=reserves)

    def added_share(self, after: AccountState) -> Fraction:
        """Returns how far an act moves the share of the budget that is spent; below 0 where the budget grows."""
        spent, now = share_used(self.spent, self.budget), share_used(after.spent, after.budget)
        return Fraction(0) if spent is None or now is None else now - spent

    def with_budget(self, budget: Loss) -> AccountState:
        """Returns the state with another budget of the same currency, and everything spent so far still counted."""
        return self._replace(budget=same_currency(self.budget, budget))

    def with_new_period(self, budget: Loss, renews: OpenPeriod | None = None) -> AccountState:
        """Returns the state of a new period that starts with nothing spent; the lifetime goes on.

        Amounts that are set aside stay so, and count in each period as a whole.
        """
        budget, spent = same_currency(self.budget, budget), Tallies.zero(budget)
        for reserve in self.reserves:
            spent += reserve.promise
        return self._replace(budget=budget, period=self.period + 1, spent=spent, renews=renews)

    def write(self) -> str:
        """Returns the state as canonical JSON, put together by hand: others wait while it is written."""
        budget, period, spent, lifetime, failures, listed, renews, reserves = self
        text = spent.text
        life = text if lifetime is spent else lifetime.text
        calendar = "" if renews is None else f'"renews":{canonical(renews.write())},'
        if reserves:
            calendar += f'"reserves":{canonical({reserve.name: reserve.write() for reserve in reserves})},'
        return (
            f'{{"budget":{loss_text(budget)},"failures":{failures},"lifetime":{life},'
            f'"listed":{"true" if listed else "false"},"period":{period},{calendar}"spent":{text}}}'
        )

    @staticmethod
    def read(text: str) -> AccountState:
        """Returns the state that `write` wrote."""
        fields = parse_canonical(text)
        return AccountState(
            budget=read_loss(fields["budget"]),
            period=fields["period"],
            spent=Tallies.read(fields["spent"]),
            lifetime=Tallies.read(fields["lifetime"]),
            failures=fields["failures"],
            listed=fields["listed"],
            renews=None if fields.get("renews") is None else OpenPeriod.read(fields["renews"]),
            reserves=tuple(Reserve.read(name, fields["reserves"][name]) for name in fields.get("reserves", ())),
        )


class AccountMember(NamedTuple):
    """One person on one account: a role and a cap if a steward gave them, and what they have spent in any case."""

    period: int
    spent: Tallies
    lifetime: Tallies
    role: Role | None = None
    cap: Loss | None = None
    renews: OpenPeriod | None = None
    """The open period of the calendar by which the cap renews; None if it renews with the account."""

    @classmethod
    def of(cls, state: AccountState) -> AccountMember:
        """Returns a person who has spent nothing on an account yet."""
        zero = Tallies.zero(state.budget)
        return cls(period=state.period, spent=zero, lifetime=zero)

    @property
    def limit(self) -> AnyBudget | None:
        """The cap, with the calendar by which it renews if it has one of its own."""
        return self.cap if self.cap is None or self.renews is None else RenewingBudget(self.cap, self.renews.schedule)

    def in_period(self, state: AccountState) -> AccountMember:
        """Returns the same person after the account's renewals; a cap with a calendar of its own renews by that."""
        if self.period == state.period or self.renews is not None:
            return self
        return self._replace(period=state.period, spent=Tallies.zero(state.budget))

    def with_charge(self, price: ChargePrice) -> AccountMember:
        """Returns the person after one more charge."""
        period, spent, lifetime, role, cap, renews = self
        after = price.add_to(spent)
        life = after if lifetime is spent else price.add_to(lifetime)
        return _new(AccountMember, (period, after, life, role, cap, renews))

    def with_new_period(self, renews: OpenPeriod, budget: Loss) -> AccountMember:
        """Returns the person in a new period of their own cap, with nothing spent of it."""
        return self._replace(spent=Tallies.zero(budget), renews=renews)

    def write(self) -> str:
        """Returns the member as canonical JSON, put together by hand as well."""
        period, spent, lifetime, role, cap, renews = self
        text = spent.text
        life = text if lifetime is spent else lifetime.text
        limit = "null" if cap is None else loss_text(cap)
        given = "null" if role is None else f'"{role.value}"'
        calendar = "" if renews is None else f'"renews":{canonical(renews.write())},'
        return f'{{"cap":{limit},"lifetime":{life},"period":{period},{calendar}"role":{given},"spent":{text}}}'

    @staticmethod
    def read(text: str) -> AccountMember:
        """Returns the member that `write` wrote."""
        fields = parse_canonical(text)
        return AccountMember(
            period=fields["period"],
            spent=Tallies.read(fields["spent"]),
            lifetime=Tallies.read(fields["lifetime"]),
            role=None if fields["role"] is None else Role(fields["role"]),
            cap=None if fields["cap"] is None else read_loss(fields["cap"]),
            renews=None if fields.get("renews") is None else OpenPeriod.read(fields["renews"]),
        )


def same_currency(old: Loss, new: Loss, name: str = "budget") -> Loss:
    """Returns the new amount, if it is one of the account's currency; an error calls it by its name.

    Raises:
        InvalidParameter: otherwise: what was spent in one currency cannot be counted in another.
    """
    rules(new)
    if type(new) is not type(old):
        raise InvalidParameter(
            name,
            new,
            f"to be {CURRENCIES[type(old)]} like {old}",
            "The currency is fixed when an account is opened.",
        )
    return new


def cap_in(budget: Loss, cap: AnyBudget) -> AnyBudget:
    """Returns a cap in the currency of a budget; one of epsilon alone has the same share of the delta.

    >>> print(cap_in(ApproxDP(10, "1e-6"), PureDP(5)), "|", cap_in(PureDP(10), PureDP(5)))
    epsilon=5, delta=5e-07 | epsilon=5

    Raises:
        InvalidParameter: if the cap is of another currency.
    """
    if isinstance(cap, RenewingBudget):
        if cap.schedule.of:
            hint = Hint("A cap counts queries, whichever rows they are about. Leave {of} out.")
            raise InvalidParameter("cap.of", cap.schedule.of, "to be left out", hint)
        amount, _ = split(cap_in(budget, cap.amount))
        return RenewingBudget(amount, cap.schedule)
    if isinstance(budget, ApproxDP) and isinstance(cap, PureDP):
        share = min(cap.epsilon / budget.epsilon, Fraction(1))
        cap = ApproxDP(cap.epsilon, share * budget.delta)
    return same_currency(budget, cap, "cap")


SHARED = ""
"""The shared name of all names without a role; no person can have it."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed questions on an account since it was last unlocked.

    Attributes:
        counts: by name; `SHARED` for all names without a role.

    >>> used_credits = Failures({"ana": 3, "ben": 1})
    >>> (
    ...     used_credits.stopped_names,
    ...     used_credits.stops("ben"),
    ...     Failures({"ana": 3, "ben": 3, "cid": 2, "dan": 1}).stopped_names,
    ... )
    (('ana',), False, ('ana', 'ben', 'cid', 'dan'))
    """

    counts: Mapping[str, int]

    @property
    def used_credits(self) -> int:
        """Credits that were used up: questions that fail at once can be more than the credits of a name."""
        return sum(min(count, FAILURE_CREDITS) for count in self.counts.values())

    def stops(self, name: str) -> bool:
        """Returns whether a name, or `SHARED`, may charge nothing more."""
        own = self.counts.get(name, 0)
        return own >= FAILURE_CREDITS or (own > 0 and self.used_credits >= FAILURE_CEILING)

    @property
    def stopped_names(self) -> tuple[str, ...]:
        """The names that may charge nothing more."""
        return tuple(sorted(name for name in self.counts if self.stops(name)))


NO_FAILURES = Failures({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance(DisplayMixin):
    """An account's figures, or one person's on it.

    Attributes:
        total: the budget, or the person's cap.
        spent: of this period, in the currency of the rule that leaves most room to say so.
        remaining: what that rule leaves, and the largest query without delta that is still possible.
        lifetime: everything ever spent, renewals or not; None if no rule can bound it any more.
        spent_share: what was spent in this period as a share of the total (`tallies.share_used`): the share that people
            see, and to which the shares of charges add up. None if no rule can bound it any more.
        lifetime_share: everything ever spent as a share of the present total, which may be above 1.
        details: the same under each rule by which the account can be counted.
        period: counted from 1; a renewal begins the next.
        failures: failed questions since the account was last unlocked: all of them, or those that use the same credits
            as the person's.
        stopped: whose failure credits are used up, until a steward unlocks the account; the empty name means all
            names without a role, which share theirs.
        renews: by which calendar the budget or cap renews, and when next; empty if only a steward renews it.
        reserved: amounts set aside, which count as spent: the purpose of each, and how much of it is used.
        rows: by which dates rows have budgets of their own, in words; empty where all rows share one. With them, the
            figures are those of the period that has least left, and the lifetime is of one person over all periods.
        periods: the first day of each period on whose rows anything was spent, and how much.
    """

    total: Loss
    spent: Loss | None
    remaining: RemainingBudget
    lifetime: Loss | None
    spent_share: Fraction | None
    lifetime_share: Fraction | None
    details: tuple[RuleUse, ...]
    period: int
    failures: int = 0
    stopped: tuple[str, ...] = ()
    renews: str = ""
    reserved: tuple[tuple[str, str], ...] = ()
    rows: str = ""
    periods: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.total}; spent {describe_share(self.spent_share)})"

    @property
    def locked(self) -> bool:
        """Whether this person is stopped or, for an account, any person on it."""
        return bool(self.stopped)

    @property
    def computed(self) -> tuple[str, ...]:
        """How the share that is spent is computed: a line for each rule, and which of them counts."""
        counts = "Each rule alone bounds the total loss, so the smallest of these shares counts."
        return (*map(str, self.details), *((counts,) if len(self.details) > 1 else ()))

    @property
    def facts(self) -> dict[str, str]:
        """The figures for people, by their labels."""
        state = "; ".join((f"open, period {self.period}", *_describe_stopped(self.stopped)))
        return {
            "total": f"{self.total} {self.rows}".strip(),
            **({"renews": self.renews} if self.renews else {}),
            "spent of the fullest period" if self.rows else "spent": describe_share(self.spent_share),
            **{f"set aside for {purpose}": used for purpose, used in self.reserved},
            **{f"spent on rows from {day}": spent for day, spent in self.periods},
            "remaining": str(self.remaining),
            "largest query without delta": f"epsilon={at_most(self.remaining.epsilon)}",
            "spent of one person" if self.rows else "spent in its lifetime": describe_share(self.lifetime_share),
            "state": state,
        }

    def _display(self) -> Display:
        return Display(columns=("", ""), rows=list(self.facts.items()))

    @classmethod
    def of(cls, state: AccountState, found: Failures) -> Balance:
        """Returns an account's balance."""
        reserved = tuple((reserve.name, _describe_reserve(reserve, state.budget)) for reserve in state.reserves)
        whole = _balance(state.budget, state, state.failures, found.stopped_names)
        return dataclasses.replace(whole, reserved=reserved)

    @classmethod
    def of_member(
        cls, member: AccountMember, state: AccountState, found: Failures = NO_FAILURES, name: str = ""
    ) -> Balance:
        """Returns a person's balance; without a cap the account's budget is theirs. `name` is whose failures count."""
        stopped = (name,) if found.stops(name) else ()
        return _balance(member.cap or state.budget, member.in_period(state), found.counts.get(name, 0), stopped)


def describe_share(share: Fraction | None) -> str:
    """Returns a share that was spent, in words; None means one that no rule bounds."""
    return "not bounded" if share is None else share_spent(share)


def _describe_reserve(reserve: Reserve, budget: Loss) -> str:
    """Returns how much is set aside, for whom, and how much of it is used."""
    whole, used = (describe_share(share_used(amount, budget)) for amount in (reserve.promise, reserve.spent))
    return f"{whole}{f', for {reserve.who}' if reserve.who else ''}; {used} of the budget used"


def _describe_stopped(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a line about the people who may ask nothing new; none if there are no such people."""
    told = ", ".join(name or "names without a role" for name in names)
    return (f"stopped after failures: {told}",) if told else ()


def _balance(total: Loss, spender: AccountState | AccountMember, failures: int, stopped: tuple[str, ...]) -> Balance:
    return Balance(
        total=total,
        spent=spender.spent.spent_under(total),
        remaining=RemainingBudget.of(spender.spent, total),
        lifetime=spender.lifetime.spent_under(total),
        spent_share=share_used(spender.spent, total),
        lifetime_share=share_used(spender.lifetime, total),
        details=spender.spent.under_rules(total),
        period=spender.period,
        failures=failures,
        stopped=stopped,
    )
