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

from collections import Counter

from discreet.dataclass import dataclass
from discreet.errors import AccountLocked, InvalidParameter, NotPermitted
from discreet.ledger import changes
from discreet.ledger.account import SHARED, AccountMember, AccountState, Balance, Failures, Role
from discreet.ledger.serialization import parse_canonical
from discreet.ledger.store.ledger_store import Transaction
from discreet.progress import Progress

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

    >>> Caller(analyst="ana", key="first")
    Caller(analyst='ana', project='', key='first')
    """

    analyst: str = OWNER
    project: str = ""
    key: str | None = None
    progress: Progress | None = None

    def __repr__(self) -> str:
        """Leaves out who listens, which says nothing about who is charged."""
        return f"Caller(analyst={self.analyst!r}, project={self.project!r}, key={self.key!r})"


def role(states: changes.StateStore, account: str, who: str) -> Role | None:
    """Returns the role of a name on an account: given there, else on the whole ledger; the owner is a steward."""
    if who == OWNER:
        return Role.STEWARD
    now = changes.account_state(states, account) if account else None
    given = None if now is None else changes.member(states, account, who, now).role
    return given or _role_on_ledger(states, who)


def require_steward(states: changes.StateStore, account: str, who: str, act: str) -> None:
    """Checks that a person is a steward.

    Raises:
        NotPermitted: if the person is not a steward.
    """
    if role(states, account, who) is not Role.STEWARD:
        raise NotPermitted(who, act, "Only a steward may.")


def require_asking(
    states: changes.StateStore, account: str, who: str, person: AccountMember, now: AccountState
) -> None:
    """Checks that a person may ask on an account.

    Raises:
        NotPermitted: for auditors, and for names without a role where analysts were appointed.
    """
    if who == OWNER:
        return
    given = person.role or _role_on_ledger(states, who)
    if given is Role.AUDITOR or (given is None and now.listed):
        raise NotPermitted(who, f"ask on account {account!r}")


def _role_on_ledger(states: changes.StateStore, who: str) -> Role | None:
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


def require_account(states: changes.StateStore, account: str) -> AccountState:
    """Returns the state of an account.

    Raises:
        InvalidParameter: if there is none of that name.
    """
    now = changes.account_state(states, account)
    if now is None:
        raise unknown(account)
    return now


def unknown(account: str) -> InvalidParameter:
    """Returns the error for an account that was never opened."""
    return InvalidParameter("account", account, "to be an account of this ledger", "Open it first, with its budget.")


def balance(rows: Transaction, account: str, *, analyst: str | None = None, project: str | None = None) -> Balance:
    """Returns the figures of an account, or of one analyst or project on it."""
    now = require_account(rows, account)
    if project is not None:
        return Balance.of_member(changes.project(rows, account, project, now) or AccountMember.of(now), now)
    found = failures(rows, account, now)
    if analyst is None:
        return Balance.of(now, found)
    own = find_credit_owner(rows, account, analyst)
    return Balance.of_member(changes.member(rows, account, analyst, now), now, found, own)
