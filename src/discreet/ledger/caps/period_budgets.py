"""Budgets of rows: what was charged for the rows of each period, by their dates.

On an account of this kind a unit is one person's rows of one period. Every charge names the periods whose rows it may
depend on, and must fit the budget of each of them.

Formal guarantee: let a release depend on rows of the named periods alone. Neighbours that differ in one person's rows
of one period then differ for those releases alone that were charged to this period, and these sums are kept within the
budget. Nothing renews by a clock, so it holds for ever.

What the account itself has spent counts in every period: amounts that are set aside, and what a lost ledger had spent.
The account's lifetime is of one person over all periods: a release about k of them costs that person as much as a
group of k units (`Loss.group`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from discreet.errors import InternalError, InvalidParameter
from discreet.hint_text import Hint
from discreet.ledger.account import Account, AccountMember, AccountState
from discreet.ledger.serialization import NAMES, Amounts, parse_canonical
from discreet.ledger.store.ledger_store import Kept, Place, StateStore, Transaction
from discreet.ledger.tallies import CURRENCIES, ChargePrice, Tallies, loss, share_used
from discreet.privacy import Loss, RenewalSchedule
from discreet.report.display import share_spent

KIND = "rows"
"""How the entry of a charge names a period of rows among what it counts against."""

MOST_PERIODS = 1000
"""The most periods that one charge may name: each has a state in the ledger."""


_CURRENCY = {kind: currency for currency, kind in CURRENCIES.items()}


class PeriodSums(NamedTuple):
    """The rows of one period, and what was charged for them.

    Attributes:
        first_day: of the period, in ISO 8601.
        state: what was spent on its rows.
    """

    first_day: str
    state: AccountMember


@lru_cache(maxsize=1024)
def place_of_period(account: str, first_day: str) -> Place:
    """Returns the place of what was spent on the rows of a period."""
    return KIND, f"{account}\n{first_day}"


def require_periods(account: Account, periods: Sequence[str]) -> tuple[str, ...]:
    """Returns the periods that a charge names, each once; of an account whose rows share one budget none.

    Raises:
        InvalidParameter: if rows have budgets by period and the charge names none: whatever it is for reads all rows.
        InternalError: if it names what is no period of the account.
    """
    if account.rows is None:
        return ()
    if not periods:
        hint = Hint(
            "Ask with SQL that names the periods in WHERE, such as "
            f"{account.rows.of} >= DATE '2026-11-01' AND {account.rows.of} < DATE '2026-12-01'."
        )
        told = f"to name the periods of {account.rows.of} whose rows it is about: each has a budget of its own"
        raise InvalidParameter("account", account.name, told, hint)
    named = tuple(sorted(set(periods)))
    if len(named) > MOST_PERIODS or any(not _is_period(account.rows, day) for day in named):
        raise InternalError("A charge names periods that its account does not have.")
    return named


def _is_period(schedule: RenewalSchedule, day: str) -> bool:
    try:
        return schedule.period_of(dt.date.fromisoformat(day)).isoformat() == day
    except ValueError:
        return False


def find_periods(states: StateStore, account: str, now: AccountState, days: Iterable[str]) -> list[PeriodSums]:
    """Returns what was spent on the rows of some periods."""
    found = []
    for day in days:
        known = states.read(place_of_period(account, day), AccountMember.read)
        found.append(PeriodSums(day, AccountMember.of(now) if known is None else known.in_period(now)))
    return found


def all_periods(rows: Transaction, account: str, now: AccountState) -> list[PeriodSums]:
    """Returns the periods on whose rows anything was spent, in their order."""
    places = [place.split("\n", 1) for _, place, _ in rows.states(KIND)]
    return find_periods(rows, account, now, sorted(day for name, day in places if name == account))


def as_seen_by(now: AccountState, period: PeriodSums) -> AccountState:
    """Returns the account with what counts in one period as what is spent."""
    return now._replace(spent=now.spent + period.state.spent)


def fullest(now: AccountState, periods: Sequence[PeriodSums]) -> AccountState:
    """Returns the account as the period sees it that has the largest share spent; as it is where there is none."""
    return max((as_seen_by(now, period) for period in periods), key=_share, default=now)


def _share(now: AccountState) -> Fraction | float:
    share = share_used(now.spent, now.budget)
    return float("inf") if share is None else share


class RowCharge(NamedTuple):
    """A charge for the rows of some periods.

    Attributes:
        before: the account as the period sees it that is the fullest after the charge.
        after: the same with the charge. If this is within the budget, every period is.
        named: the periods, as the entry of the charge names them.
        written: all changed states.
    """

    before: AccountState
    after: AccountState
    named: str
    written: list[tuple[Place, Kept]]


def add_row_charge(  # noqa: PLR0917 - all that a charge is, positional like its other steps
    states: StateStore, account: Account, now: AccountState, days: Iterable[str], price: Tallies, reserve: str = ""
) -> RowCharge:
    """Returns a charge for the rows of some periods; whether they have room for it is for the caller to ask.

    What is paid from a reserve adds to no period: the whole of the reserve counts in each of them already.
    """
    periods, once = find_periods(states, account.name, now, days), ChargePrice(price)
    lifetime = ChargePrice(_group_price(price.text, max(len(periods), 1))).add_to(now.lifetime)
    charged = periods if reserve else [one._replace(state=one.state.with_charge(once)) for one in periods]
    written: list[tuple[Place, Kept]] = [(place_of_period(account.name, one.first_day), one.state) for one in charged]
    kept = now.with_reserved_charge(reserve, once) if reserve else now
    kept = kept._replace(lifetime=lifetime)
    views = [(as_seen_by(now, one), as_seen_by(kept, after)) for one, after in zip(periods, charged, strict=True)]
    before, after = max(views, key=lambda view: _share(view[1]), default=(now, kept))
    named = ",".join(f'["{KIND}","{period.first_day}",""]' for period in periods)
    return RowCharge(before, after, named, [(("standing", account.name), kept), *written])


@lru_cache(maxsize=256)
def _group_price(price_text: str, size: int) -> Tallies:
    """Returns what a release costs a group of units that change together, from its price as text (`Loss.group`)."""
    found: dict[str, Amounts | None] = {}
    for kind, spent in Tallies.read(parse_canonical(price_text)).sums.items():
        try:
            grouped = None if spent is None else loss(_CURRENCY[kind], spent).group(size)
        except InvalidParameter:  # a delta that reaches 1, or a rule that says nothing of groups
            grouped = None
        found[kind] = None if grouped is None else _amounts(grouped)
    return Tallies(found)


def _amounts(amount: Loss) -> Amounts:
    return tuple(getattr(amount, name).as_integer_ratio() for name in NAMES[type(amount)])


def describe_periods(now: AccountState, periods: Sequence[PeriodSums]) -> tuple[tuple[str, str], ...]:
    """Returns how much of the budget of each period is spent, by its first day."""
    shares = ((period.first_day, share_used((now.spent + period.state.spent), now.budget)) for period in periods)
    return tuple((day, "not bounded" if share is None else share_spent(share)) for day, share in shares)
