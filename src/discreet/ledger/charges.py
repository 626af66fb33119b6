"""The one way to spend: check, write and acknowledge a charge inside a single transaction.

Formal guarantee: the sums that are checked are read in the same exclusive transaction that writes the entry, so no two
charges, in whatever threads or processes, can both rely on the same rest of a budget. A refused charge writes nothing.
A charge is never given back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple

from discreet.accounting.filters import Rule
from discreet.dataclass import dataclass
from discreet.errors import InsufficientBudget, InternalError, InvalidParameter, KeyConflict
from discreet.hint_text import Hint
from discreet.ledger import changes, policy
from discreet.ledger.account import Account, AccountMember, AccountState
from discreet.ledger.caps.approvals import find_approval, used_request
from discreet.ledger.caps.period_budgets import add_row_charge, place_of_period, require_periods
from discreet.ledger.caps.reserves import amounts_refused, require_reserve
from discreet.ledger.caps.teams import place_of_membership
from discreet.ledger.cost import Cost
from discreet.ledger.entry import Entry, digest
from discreet.ledger.policy import CappedSpender, capped_spenders, require_credit
from discreet.ledger.serialization import (
    Amounts,
    amounts_text,
    at_most,
    canonical,
    loss_text,
    name,
    parse_canonical,
    quoted,
    ratio,
    read_loss,
    remainders,
    text,
    write_ratio,
)
from discreet.ledger.store.ledger_store import Kept, Place, Transaction
from discreet.ledger.tallies import CURRENCIES, ChargePrice, RemainingBudget, Tallies, loss, prices, share_used
from discreet.privacy import Loss, PureDP, events
from discreet.privacy.events import Event
from discreet.report.display import share_left

_new = tuple.__new__  # makes a named tuple without the function around it
_UNTOLD = ("rest", "state")
_MOST_ORDERS = 256
_ORDERS: dict[tuple[int, str], tuple[Event, AccountCharge]] = {}
"""Orders by event and name: a fraction in an event is slow to hash. Each event is kept, so its `id` is never reused."""


class Receipt(NamedTuple):
    """Proof that a charge is in the ledger, durably: data may be read once for it.

    Attributes:
        sequence: its place in the ledger; the order of everything.
        cost: what was charged: the epsilon that was asked for, the share of the account's budget, and the details.
        rest: what that rule left afterwards, as it is written in the ledger.
        hash: of the entry.
        repeated: True if the charge was found under its idempotency key. Then another caller reads data for it: only
            the stored answer may be given, unless the charge is claimed.
        state: the account's, right after the charge; of a repeated one, as it is now.
        claim: 0 for the caller who made the charge; else the number of the claim under which it is run again, see
            `ledger.outcomes`.
    """

    sequence: int
    account: str
    analyst: str
    event: Event
    cost: Cost
    rest: str
    hash: str
    state: AccountState
    repeated: bool = False
    claim: int = 0

    def __hash__(self) -> int:
        """Hashes the entry's hash: a state has none."""
        return hash(self.hash)

    def __repr__(self) -> str:
        """Leaves out the rest and the state, which tell of others' charges."""
        shown = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True) if name not in _UNTOLD]
        return f"Receipt({', '.join(shown)})"

    @property
    def remaining(self) -> Loss:
        """What the rule that holds left after the charge, read from `rest`."""
        return read_loss(parse_canonical(self.rest))

    @property
    def account_remaining(self) -> RemainingBudget:
        """The part of the account's budget that the state leaves."""
        return RemainingBudget.of(self.state.spent, self.state.budget)

    @classmethod
    def again(cls, entry: Entry, state: AccountState) -> Receipt:
        """Returns the receipt of a charge that is in the ledger already."""
        content = entry.content
        return cls(
            sequence=entry.sequence,
            account=entry.account,
            analyst=entry.who,
            event=events.from_json(content["event"]),
            cost=Cost.read(content),
            rest=canonical(content["remaining"]),
            hash=entry.hash,
            state=state,
            repeated=True,
        )


@dataclass(frozen=True, slots=True)
class AccountCharge:
    """One account's part of a request, priced before the ledger is locked."""

    account: Account
    event: Event
    event_text: str
    """As JSON of the event's own JSON: a text within the entry."""
    price: Tallies
    price_text: str


Held = tuple[Rule, Amounts, Amounts]
"""A rule that holds, its sum and its cap."""


class PricedRequest(NamedTuple):
    """A checked and priced request.

    Attributes:
        question: as JSON.
        digest: of what a request with an idempotency key is recognised by: its accounts, its question, its replay key
            and its terms. The events are not in it: they follow from these and from what was released before.
        beside: the charge that has paid for this one already, or 0.
        asked: the epsilon that the caller asked with, as "p/q", for people; empty if there is none.
        sql: the text as it was asked, for people; an entry has it if there is one. It is no part of the digest.
        restart: what a process needs to go on with the charge if it knows the key alone. The entry has it, too.
        reserve: what was set aside before, from which it is paid; empty for the account itself.
        periods: whose rows it is about, where rows have budgets by period.
    """

    orders: tuple[AccountCharge, ...]
    who: str
    question: str
    key: str
    digest: str
    project: str = ""
    beside: int = 0
    replay_key: str = ""
    terms: str | None = None
    sql: str = ""
    restart: str = ""
    asked: str = ""
    reserve: str = ""
    periods: tuple[str, ...] = ()

    def places(self) -> list[Place]:
        """Returns the places of the states that the charge will look at."""
        places: list[Place] = [changes.BOOK, ("role", self.who)]
        for order in self.orders:
            account = order.account.name
            places += ("standing", account), changes.place_of(account, self.who), place_of_membership(account, self.who)
            if self.project:
                places.append(changes.place_of_project(account, self.project))
            places += [place_of_period(account, day) for day in self.periods]
        return places

    def is_of(self, charged: Sequence[Entry], written: str) -> bool:
        """Returns whether entries with this digest were written for the same request.

        A digest of an earlier version covers the events that were charged in place of the terms. They are compared as
        the entries tell them, so that accounts, question and replay key decide.
        """
        if len(charged) != len(self.orders):
            return False
        return written == self.digest or written == self._former_digest(charged)

    def _former_digest(self, charged: Sequence[Entry]) -> str:
        told = [parse_canonical(order.event_text) for order in self.orders]
        if self.terms is not None:
            told = [entry.content["event"] for entry in charged]
        spent = [[order.account.name, event] for order, event in zip(self.orders, told, strict=True)]
        return digest(canonical([spent, parse_canonical(self.question), *filter(None, [self.replay_key])]).encode())


def request(
    charges: Mapping[str, Event],
    find: Callable[[str], Account],
    *,
    analyst: str,
    question: str = "{}",
    key: str | None = None,
    replay_key: str = "",
    terms: str | None = None,
    project: str = "",
    sql: str = "",
    restart: str = "",
    asked: str = "",
    reserve: str = "",
    periods: Sequence[str] = (),
) -> PricedRequest:
    """Checks and prices a request; touches no balance.

    Raises:
        InvalidParameter: if there is nothing to charge, an account is unknown, or a text is out of bounds.
        UnsupportedEvent: if an account has no price for its event.
    """
    if not charges:
        raise InvalidParameter("charges", "nothing", "to name at least one account")
    names = charges if len(charges) == 1 else sorted(charges)
    orders = tuple([_order(find(account), charges[account]) for account in names])
    who, told, sign, mark = name(analyst=analyst), text(question=question), "", ""
    if key is not None:
        sign, mark = name(key=key), _mark(orders, told, replay_key, terms)
    project = name(project=project) if project else ""
    dated = [order.account for order in orders if order.account.rows is not None]
    named = tuple(sorted({day for account in dated for day in require_periods(account, periods)}))
    words = text(sql=sql), text(restart=restart), text(asked=asked), name(reserve=reserve) if reserve else "", named
    return _new(PricedRequest, (orders, who, quoted(told), sign, mark, project, 0, replay_key, terms, *words))


def beside(receipt: Receipt, find: Callable[[str], Account], question: str) -> PricedRequest:
    """Returns a request that costs nothing, for what is released on the way to what a receipt has paid for."""
    order = _order(find(receipt.account), events.Composed([]))
    return PricedRequest((order,), receipt.analyst, quoted(text(question=question)), "", "", "", receipt.sequence)


def _mark(orders: tuple[AccountCharge, ...], question: str, replay_key: str, terms: str | None) -> str:
    """Returns the digest of a request; without terms, the events stand for them."""
    accounts = [order.account.name for order in orders]
    spent = [parse_canonical(order.event_text) for order in orders] if terms is None else terms
    return digest(canonical([accounts, question, replay_key, spent]).encode())


def _order(account: Account, event: Event) -> AccountCharge:
    """Returns what to charge an account for an event; cached, because it depends on nothing that changes."""
    known = _ORDERS.get((id(event), account.name))
    if known is not None and (known[1].account is account or known[1].account == account):
        return known[1]
    if len(_ORDERS) >= _MOST_ORDERS:
        _ORDERS.clear()
    order = _make_order(account, event)
    _ORDERS[id(event), account.name] = event, order
    return order


@lru_cache(maxsize=1024)
def _make_order(account: Account, event: Event) -> AccountCharge:
    price = prices(event, account.budget, account.neighbours)
    return AccountCharge(account, event, canonical(events.to_json(event)), price, price.text)


def charge(rows: Transaction, asked: PricedRequest) -> tuple[Receipt, ...]:
    """Charges every account of a request, or none.

    Raises:
        InsufficientBudget: if an account, or the analyst's cap on it, would not hold.
        AccountLocked: if the analyst's failure credits on an account are used up.
        NotPermitted: if the analyst may not ask.
    """
    if not asked.beside:
        for order in asked.orders:
            policy.open_due_period(rows, order.account.name)
    if len(asked.orders) == 1:
        return (_charge_one(rows, asked, 0),)
    return tuple([_charge_one(rows, asked, place) for place in range(len(asked.orders))])


def earlier(rows: Transaction, asked: PricedRequest) -> tuple[Receipt, ...]:
    """Returns the receipts of an earlier charge under the same key; none if the key is new or not given.

    Raises:
        KeyConflict: if the key belongs to another request.
    """
    first = rows.by_key(asked.who, asked.key) if asked.key else None
    if first is None:
        return ()
    content = first.content
    more = range(first.sequence + 1, first.sequence + content["joined"])
    charged = [first, *(entry for entry in map(rows.entry, more) if entry is not None)]
    if not asked.is_of(charged, content["request"]):
        raise KeyConflict(first.sequence)
    return tuple(Receipt.again(entry, policy.present_account(rows, entry.account)) for entry in charged)


def weigh(rows: Transaction, asked: PricedRequest) -> None:
    """Raises what `charge` would raise, and writes nothing."""
    for order in asked.orders:
        _weigh_charge(rows, asked, order)


def _charge_one(rows: Transaction, asked: PricedRequest, place: int) -> Receipt:
    order = asked.orders[place]
    account = order.account.name
    now, after, (rule, spent, limits), counted, written, approved = _weigh_charge(rows, asked, order)
    rows.put(*written)
    charged, cost_text = _cost(order.price_text, type(rule.cap))
    share = now.added_share(after)
    cost = Cost(None if not asked.asked else ratio(asked.asked), share, charged)
    rest = amounts_text(type(rule.cap), remainders(limits, spent))
    key = "" if place else asked.key
    mark = f',"request":"{asked.digest}"' if key else ""
    project = f'"project":{quoted(asked.project)},' if asked.project else ""
    beside = f'"beside":{asked.beside},' if asked.beside else ""
    epsilon = f'"asked":"{asked.asked}",' if asked.asked else ""
    caps = f'"caps":[{counted}],' if counted else ""
    epsilon = f'"approved":{approved},{epsilon}' if approved else epsilon
    moved = f',"share":"{write_ratio(share)}"'
    restart = f',"restart":{quoted(asked.restart)}' if asked.restart else ""
    words = f',"sql":{quoted(asked.sql)}' if asked.sql else ""
    body = (
        f'{{{epsilon}{beside}{caps}"cost":{cost_text},"event":{order.event_text},"joined":{len(asked.orders)},{project}'
        f'"question":{asked.question},"remaining":{rest}{mark}{restart}{moved}{words}}}'
    )
    entry = rows.add("charge", body, who=asked.who, account=account, price=order.price_text, key=key)
    return _new(Receipt, (entry[0], account, asked.who, order.event, cost, rest, entry[9], after, False, 0))


class WeighedCharge(NamedTuple):
    """A charge that fits, and what it will change.

    Attributes:
        now: the account's state before it.
        after: the account's state with it.
        held: the rule that holds then.
        caps: what it counts against, as its entry says; "" for the account alone.
        written: all changed states.
        approved: the request by which it may exceed caps; 0 if it exceeds none.
    """

    now: AccountState
    after: AccountState
    held: Held
    caps: str
    written: list[tuple[Place, Kept]]
    approved: int = 0


def _weigh_charge(rows: Transaction, asked: PricedRequest, order: AccountCharge) -> WeighedCharge:
    """Returns a charge that fits the account or a reserve of it, and all caps that it counts against."""
    account = order.account.name
    if asked.beside:
        return _weigh_beside(rows, asked, order)
    now = _admit_analyst(rows, account, asked.who)
    spenders = capped_spenders(rows, account, asked.who, now, project=asked.project)
    price = ChargePrice(order.price)
    if asked.reserve:
        require_reserve(asked.reserve, account, asked.who, now, order.price)
    if order.account.rows is not None:
        now, after, named, written = add_row_charge(rows, order.account, now, asked.periods, order.price, asked.reserve)
    else:
        after = now.with_reserved_charge(asked.reserve, price) if asked.reserve else now.with_charge(price)
        named, written = "", [(("standing", account), after)]
    refused = partial(_refusal, rows, asked, order, now, spenders)
    held = after.spent.find_holding_rule(now.budget)
    if held is None:
        raise refused()
    approved = 0
    for spender in spenders:
        charged = spender.state.with_charge(price)
        if not _within_cap(charged):
            found = approved or find_approval(rows, account, asked.who, asked.replay_key, order.price)
            if found is None:
                raise refused(spender)
            approved = found
        written.append((spender.place, charged))
    if approved:
        written.append(used_request(rows, approved))
    capped = [spender.text for spender in spenders if spender.has_cap]
    reserved = f'["reserve",{quoted(asked.reserve)},""]' if asked.reserve else ""
    caps = ",".join([*capped, *[told for told in (reserved, named) if told]])
    return _new(WeighedCharge, (now, after, held, caps, written, approved))


def _weigh_beside(rows: Transaction, asked: PricedRequest, order: AccountCharge) -> WeighedCharge:
    """Returns a charge of nothing that was admitted before, whatever has happened to the analyst or the caps since."""
    account = order.account.name
    now = policy.require_account(rows, account)  # as it is: what is free opens no period
    held = now.spent.find_holding_rule(now.budget)
    if held is None:
        raise _refusal(rows, asked, order, now, [])
    person = changes.member(rows, account, asked.who, now)
    written: list[tuple[Place, Kept]] = [(("standing", account), now), (changes.place_of(account, asked.who), person)]
    return _new(WeighedCharge, (now, now, held, "", written, 0))


def require_room(account: Account, now: AccountState, after: AccountState, amount: Loss) -> None:
    """Checks that an amount can be set aside.

    Raises:
        InsufficientBudget: if the account does not have so much left.
    """
    if after.spent.find_holding_rule(now.budget) is None:
        hint = Hint(f"Nothing was set aside on account {account.name!r}. {_advice(after.spent, now, ())}")
        raise InsufficientBudget(amount, RemainingBudget.of(now.spent, now.budget).loss, hint)


def require_admission(rows: Transaction, account: str, who: str) -> None:
    """Raises what `charge` would raise if this person may not charge the account."""
    _admit_analyst(rows, account, who)


def _admit_analyst(rows: Transaction, account: str, who: str) -> AccountState:
    now = policy.present_account(rows, account)
    policy.require_asking(rows, account, who, changes.member(rows, account, who, now), now)
    require_credit(rows, account, who, now)
    return now


def _within_cap(charged: AccountMember) -> bool:
    return charged.cap is None or charged.spent.holding(charged.cap) is not None


def _refusal(  # noqa: PLR0917 - all that a charge was weighed with
    rows: Transaction,
    asked: PricedRequest,
    order: AccountCharge,
    now: AccountState,
    spenders: Sequence[CappedSpender],
    capped: CappedSpender | None = None,
) -> InsufficientBudget:
    """Returns the error with what to do instead.

    People read the epsilon that was asked for, and percent of the budget or cap; its fields are in a currency that has
    both the cost and the remaining budget.
    """
    spent, cap, reason, whole = now.spent, now.budget, "Nothing was spent on account", "budget"
    renews, more = now.renews, ""
    if capped is not None and capped.state.cap is not None:
        spent, cap, whole = capped.state.spent, capped.state.cap, "cap"
        reason, renews = f"This counts against the cap of {capped.called!r} on account", capped.state.renews or renews
        more = " A steward can allow this query beyond the cap: request an approval."
    by_rows = "" if order.account.rows is None else f", budget {order.account.rows}"
    later = "" if renews is None else f" The {whole} renews {renews.describe(rows)}."
    advice = _advice(order.price, now, [spender.state for spender in spenders])
    hint = Hint(f"{reason} {order.account.name!r}{by_rows}. {advice}{later}{more}")
    requested, remaining = amounts_refused(order.price, spent, cap)
    before, after = (share_used(sums, cap) for sums in (spent, spent + order.price))
    if before is None or after is None:
        return InsufficientBudget(requested, remaining, hint)
    cost = Cost(ratio(asked.asked) if asked.asked else None, after - before, requested)
    left = share_left(max(1 - before, Fraction(0)))
    return InsufficientBudget(requested, remaining, hint, needs=f"{cost.brief} of the {whole}", left=left)


def _advice(price: Tallies, now: AccountState, caps: Sequence[AccountMember]) -> str:
    """Returns what can still be asked, as a template: the largest query of its kind, and all that was released.

    A question that cannot do without a delta, like one about private groups, is advised to keep it.
    """
    sums = [(now.spent, now.budget), *((capped.spent, capped.cap) for capped in caps if capped.cap is not None)]
    keeps = price.needs_delta
    largest = min(spent.largest_like(price, budget) if keeps else spent.largest_pure(budget) for spent, budget in sums)
    if not largest:
        kind = "questions that need a delta" if keeps else "new questions"
        return f"No budget remains for {kind}. You can repeat earlier questions for free: see history."
    pure = "" if keeps or isinstance(now.budget, PureDP) else " and {delta:0}"
    return f"Ask with {{epsilon:{at_most(largest)}}}{pure}, or repeat an earlier question for free: see history."


@lru_cache(maxsize=1024)
def _cost(price_text: str, currency: type[Loss]) -> tuple[Loss, str]:
    """Returns a price in one currency, and its text; cached for each."""
    spent = Tallies.read(parse_canonical(price_text)).sums[CURRENCIES[currency]]
    if spent is None:
        raise InternalError("A charge was accepted under a rule that has no price for it.")
    cost = loss(currency, spent)
    return cost, loss_text(cost)
