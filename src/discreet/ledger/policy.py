"""Who may do what: roles on an account or on the whole book, under caps that never widen the account's own.

Whoever holds the file in their own process is its owner and may act as a steward; names and roles are for a service
that stands between the book and other people. An account without appointed analysts answers to every name; once one
analyst is appointed, only those appointed may ask.
"""

from __future__ import annotations

from discreet.errors import NotPermitted
from discreet.ledger import changes
from discreet.ledger.account import Member, Role, Standing
from discreet.ledger.serialization import parsed

OWNER = "owner"
"""The name that acts when no other is given."""


def role(states: changes.States, account: str, who: str) -> Role | None:
    """The role of a name on an account: given there, else on the whole book; the owner is a steward."""
    if who == OWNER:
        return Role.STEWARD
    now = changes.standing(states, account) if account else None
    given = None if now is None else changes.member(states, account, who, now).role
    return given or _role_on_book(states, who)


def require_steward(states: changes.States, account: str, who: str, act: str) -> None:
    """Lets only stewards pass.

    Raises:
        NotPermitted: for everybody else.
    """
    if role(states, account, who) is not Role.STEWARD:
        raise NotPermitted(who, act, "Only a steward may.")


def require_asking(states: changes.States, account: str, who: str, person: Member, now: Standing) -> None:
    """Lets pass who may ask on an account.

    Raises:
        NotPermitted: for auditors, and for names without a role where analysts were appointed.
    """
    if who == OWNER:
        return
    given = person.role or _role_on_book(states, who)
    if given is Role.AUDITOR or (given is None and now.listed):
        raise NotPermitted(who, f"ask on account {account!r}")


def _role_on_book(states: changes.States, who: str) -> Role | None:
    text = states.get("role", who)
    return None if text is None else Role(parsed(text)["role"])
