"""Who may do what: roles on an account or on the whole ledger, under caps that never widen the account's own.

A person who opens the file in their own process is its owner and may act as a steward. Names and roles are for a
service between the ledger and other people. An account without appointed analysts answers to every name; once one
analyst is appointed, only those appointed may ask.

A failed question reveals something that was not paid for, so every name has credits. A name with a role, the owner
included, has `FAILURE_CREDITS` of its own on each account. All names without a role share one set, because any caller
can invent such names. A name that has used up its set charges nothing more. Once `FAILURE_CEILING` credits of an
account are used, several names may be working together: then all names with a failure are stopped, and no others. So a
name that has not failed is never stopped, and no name alone stops another. A steward's `unlock` gives all credits of an
account back.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from discreet.dataclass import dataclass
from discreet.errors import AccountLocked, InvalidParameter, NotPermitted
from discreet.ledger import changes
from discreet.ledger.account import NO_FAILURES, SHARED, Account, AccountMember, AccountState, Balance, Failures, Role
from discreet.ledger.caps import period_budgets, teams
from discreet.ledger.renewal.open_period import OpenPeriod
from discreet.ledger.serialization import parse_canonical, quoted, write_loss
from discreet.ledger.store.ledger_store import Place, StateStore, Transaction
from discreet.progress import Progress

_new = tuple.__new__  # makes a named tuple without the function around it

OWNER = "owner"
"""The name that acts when no other is given: see `Ledger.history`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of a request: who asks, for which project, under which key. The request does not depend on it.

    Args:
        analyst: who asks, and pays from their cap.
        project: whose cap a charge counts against, besides the analyst's and the account's; empty for none.
        key: an idempotency key of the analyst's own; the same key with another request is refused.
        progress: is called with the name of every stage that begins.
        reserve: the purpose for which an amount was set aside that pays; empty for the account.

    >>> Caller(analyst="ana", key="first")
    Caller(analyst='ana', project='', key='first')
    """

    analyst: str = OWNER
    project: str = ""
    key: str | None = None
    progress: Progress | None = None
    reserve: str = ""

    def __repr__(self) -> str:
        """Leaves out who listens, which says nothing about who is charged."""
        return f"Caller(analyst={self.analyst!r}, project={self.project!r}, key={self.key!r})"


def role(states: StateStore, account: str, who: str) -> Role | None:
    """Returns the role of a name on an account: given there, else on the whole ledger; the owner is a steward."""
    if who == OWNER:
        return Role.STEWARD
    now = changes.account_state(states, account) if account else None
    given = None if now is None else changes.member(states, account, who, now).role
    return given or _role_on_ledger(states, who)


def require_steward(states: StateStore, account: str, who: str, act: str) -> None:
    """Checks that a person is a steward.

    Raises:
        NotPermitted: if the person is not a steward.
    """
    if role(states, account, who) is not Role.STEWARD:
        raise NotPermitted(who, act, "Only a steward may.")


def require_asking(states: StateStore, account: str, who: str, person: AccountMember, now: AccountState) -> None:
    """Checks that a person may ask on an account.

    Raises:
        NotPermitted: for auditors, and for names without a role where analysts were appointed.
    """
    if who == OWNER:
        return
    given = person.role or _role_on_ledger(states, who)
    if given is Role.AUDITOR or (given is None and now.listed):
        raise NotPermitted(who, f"ask on account {account!r}")


def _role_on_ledger(states: StateStore, who: str) -> Role | None:
    text = states.get("role", who)
    return None if text is None else Role(parse_canonical(text)["role"])


def find_credit_owner(rows: Transaction, account: str, who: str) -> str:
    """Returns whose credits a person's failure uses: their own, or `SHARED`."""
    return SHARED if role(rows, account, who) is None else who


def failures(rows: Transaction, account: str, now: AccountState) -> Failures:
    """Returns the failures of an account, by whose credits they use.

    Entries of earlier versions say whose question failed and not whose credit that uses; they count for the same name.
    Such an account is walked through, until a steward unlocks it.
    """
    counts = Counter(changes.credits_used(rows, account) or {})
    if counts.total() < now.failures:
        counts.update(find_credit_owner(rows, account, who) for who in _earlier(rows, account))
    return Failures(dict(counts))


def require_credit(rows: Transaction, account: str, who: str, now: AccountState) -> None:
    """Checks that a person has failure credits.

    Raises:
        AccountLocked: if their credits are used up.
    """
    if not now.failures:
        return
    found, name = failures(rows, account, now), find_credit_owner(rows, account, who)
    if found.stops(name):
        raise AccountLocked(account, found.counts[name], analyst=who, total=found.used_credits, shared=name == SHARED)


def _earlier(rows: Transaction, account: str) -> list[str]:
    """Whose questions failed since the account was last unlocked, by entries that name no credit."""
    names: list[str] = []
    for entry in rows.entries(account=account):
        if entry.kind == "unlock":
            names.clear()
        elif entry.kind == "fail" and "credit" not in entry.content:
            names.append(entry.who)
    return names


def require_account(states: StateStore, account: str) -> AccountState:
    """Returns the state of an account.

    Raises:
        InvalidParameter: if there is none of that name.
    """
    now = changes.account_state(states, account)
    if now is None:
        raise unknown(account)
    return now


def require_account_opened(rows: Transaction, account: str) -> Account:
    """Returns what an account was opened as.

    Raises:
        InvalidParameter: if there is none of that name.
    """
    found = rows.get("account", account)
    if found is None:
        raise unknown(account)
    return Account.read(found)


def present_account(rows: Transaction, account: str) -> AccountState:
    """Returns the state of an account now: in a new period if one is due, which the next charge opens.

    Raises:
        InvalidParameter: if there is none of that name.
    """
    now = require_account(rows, account)
    period = None if now.renews is None else now.renews.due(rows)
    if now.renews is None or period is None:
        return now
    return now.with_new_period(now.budget, now.renews._replace(first_day=period))


def open_due_period(rows: Transaction, account: str) -> None:
    """Opens the period of an account that the clock is in, by an entry, if that is due.

    What is charged by a clock in doubt may belong to another period than its entry says. So an entry says that as well,
    and nothing renews until a steward does.
    """
    now = require_account(rows, account)
    if now.renews is None or now.renews.doubt:
        return
    doubt = now.renews.doubts(rows)
    period = None if doubt else now.renews.due(rows)
    if doubt:
        changes.apply(rows, rows.add("doubt", {"why": doubt}, who=OWNER, account=account))
    elif period is not None:
        body = {"budget": write_loss(now.budget), "note": "", "renews": now.renews.opening(rows, period)}
        changes.apply(rows, rows.add("renew", body, who=OWNER, account=account))


def doubt_calendars(rows: Transaction, *, by: str) -> None:
    """Stops all renewals until a steward renews: a copy of the ledger may have taken its place.

    What was spent in a period that the copy does not know is counted in an earlier one. A renewal would forget it.
    """
    for _, account, _ in list(rows.states("account")):
        now = require_account(rows, account)
        if now.renews is not None and not now.renews.doubt:
            body = {"why": "the ledger may have been restored from a copy"}
            changes.apply(rows, rows.add("doubt", body, who=by, account=account))


def present_cap(rows: Transaction, state: AccountMember, now: AccountState) -> AccountMember:
    """Returns the state of a person, project or team now: in a new period of its own cap if one is due."""
    period = None if state.renews is None else state.renews.due(rows)
    if state.renews is None or period is None:
        return state
    return state.with_new_period(state.renews._replace(first_day=period, since=rows.tail().sequence + 1), now.budget)


def unknown(account: str) -> InvalidParameter:
    """Returns the error for an account that was never opened."""
    return InvalidParameter("account", account, "to be an account of this ledger", "Open it first, with its budget.")


def balance(
    rows: Transaction, account: str, *, analyst: str | None = None, project: str | None = None, team: str | None = None
) -> Balance:
    """Returns the figures of an account, or of one analyst, project or team on it."""
    now = present_account(rows, account)
    if project is not None:
        allotted = changes.project(rows, account, project, now) or AccountMember.of(now)
        return _balance_of(rows, allotted, now)
    if team is not None:
        return _balance_of(rows, teams.find_team(rows, account, team, now) or AccountMember.of(now), now)
    found = failures(rows, account, now)
    if analyst is None:
        opened = require_account_opened(rows, account)
        if opened.rows is not None:
            return _balance_by_rows(rows, opened, now, found)
        return dataclasses.replace(Balance.of(now, found), renews=_describe(rows, now.renews))
    own = find_credit_owner(rows, account, analyst)
    return _balance_of(rows, changes.member(rows, account, analyst, now), now, found, own)


def _balance_by_rows(rows: Transaction, opened: Account, now: AccountState, found: Failures) -> Balance:
    """Returns the figures of the fullest period of rows, and what is spent of each."""
    periods = period_budgets.all_periods(rows, opened.name, now)
    whole = Balance.of(period_budgets.fullest(now, periods), found)
    return dataclasses.replace(whole, rows=str(opened.rows), periods=period_budgets.describe_periods(now, periods))


def _balance_of(
    rows: Transaction, state: AccountMember, now: AccountState, found: Failures = NO_FAILURES, name: str = ""
) -> Balance:
    present = present_cap(rows, state, now)
    renews = present.renews or (None if present.cap is None else now.renews)
    return dataclasses.replace(Balance.of_member(present, now, found, name), renews=_describe(rows, renews))


def _describe(rows: Transaction, renews: OpenPeriod | None) -> str:
    return "" if renews is None else renews.describe(rows)


class CappedSpender(NamedTuple):
    """A person, project or team whose own sums a charge adds to.

    Attributes:
        kind: "analyst", "project" or "team".
        name: whose cap it is.
        place: of the state in the ledger.
        state: what was spent, and the cap, in the period that is open now.
    """

    kind: str
    name: str
    place: Place
    state: AccountMember

    @property
    def called(self) -> str:
        """What messages call it."""
        return self.name if self.kind == "analyst" else f"{self.kind} {self.name}"

    @property
    def has_cap(self) -> bool:
        """Whether a cap of its own limits it."""
        return self.state.cap is not None

    @property
    def text(self) -> str:
        """How the entry of a charge names it: kind, name, and the period of its cap if that has a calendar."""
        renews = self.state.renews
        opened = "" if renews is None else renews.first_day.isoformat()
        return f'["{self.kind}",{quoted(self.name)},"{opened}"]'


def capped_spenders(
    rows: Transaction, account: str, who: str, now: AccountState, *, project: str = ""
) -> list[CappedSpender]:
    """Returns the person, the project and the teams that a charge on an account counts against.

    Raises:
        NotPermitted: if the project has no cap, or the groups of the person are more than a day old.
    """
    place, person = changes.place_of(account, who), changes.member(rows, account, who, now)
    if not project and person.renews is None and rows.get(*teams.place_of_membership(account, who)) is None:
        return [_new(CappedSpender, ("analyst", who, place, person))]
    found = [("analyst", who, place, person)]
    if project:
        allotted = _project(rows, account, project, now)
        found.append(("project", project, changes.place_of_project(account, project), allotted))
    found += _teams(rows, account, who, now)
    return [
        CappedSpender(kind, name, place, state if state.renews is None else present_cap(rows, state, now))
        for kind, name, place, state in found
    ]


def _project(rows: Transaction, account: str, project: str, now: AccountState) -> AccountMember:
    state = changes.project(rows, account, project, now)
    if state is None:
        hint = "Ask a steward to set a cap for it first."
        raise NotPermitted(f"project {project}", f"spend on account {account!r}", hint)
    return state


def _teams(
    rows: Transaction, account: str, who: str, now: AccountState
) -> Iterator[tuple[str, str, Place, AccountMember]]:
    belongs = teams.membership(rows, account, who)
    if belongs.until:
        belongs.require_known(who, rows.clock().moment)
    for name in belongs.teams:
        state = teams.find_team(rows, account, name, now)
        if state is not None:
            yield "team", name, teams.place_of_team(account, name), state
