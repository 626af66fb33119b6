"""Requests about the ledger: what was spent and what remains, proof of it, and the actions of a steward.

Who acts is the caller: `by=` of the curator's methods is the analyst of its `Caller`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from discreet.ledger import Balance, Entry, Head, Role, Standing
from discreet.privacy import Loss
from discreet.requests.argument_kinds import Arg, Kind
from discreet.requests.request import Request

_ROLES = tuple(role.value for role in Role)

Name = Annotated[str, Arg(Kind.NAME, "A table, or an account.", example="visits", option="account")]
Account = Annotated[str, Arg(Kind.NAME, "The account.", example="patients")]
Note = Annotated[str, Arg(Kind.TEXT, "Why; kept in the book.")]


@dataclass(frozen=True, kw_only=True)
class GetBudget(Request[Standing]):
    """Show what each account, analyst and project may spend, has spent and has left, and lifetime spending."""

    verb: ClassVar[str] = "budget"
    name: Name


@dataclass(frozen=True, kw_only=True)
class GetHistory(Request[tuple[Entry, ...]]):
    """List the entries of the book: sequence, time, who, what was asked or done, cost."""

    verb: ClassVar[str] = "history"
    name: Annotated[
        str | None, Arg(Kind.NAME, "Only of this table or account.", example="visits", option="account")
    ] = None
    analyst: Annotated[str | None, Arg(Kind.NAME, "Only what this name did, and what was done to it.")] = None
    project: Annotated[str | None, Arg(Kind.NAME, "Only of this project.")] = None


@dataclass(frozen=True, kw_only=True)
class Verify(Request[Head]):
    """Walk the whole book and return its head."""

    verb: ClassVar[str] = "verify"


@dataclass(frozen=True, kw_only=True)
class Amend(Request[Balance]):
    """Give an account another budget of its currency; what was spent stays spent, and the book keeps both."""

    verb: ClassVar[str] = "amend"
    account: Account
    budget: Annotated[Loss, Arg(Kind.BUDGET, "The new budget.", example="Budget(epsilon=2)")]
    note: Note = ""


@dataclass(frozen=True, kw_only=True)
class Renew(Request[Balance]):
    """Begin a new period of an account with nothing spent; only for data about other people, or a decided renewal."""

    verb: ClassVar[str] = "renew"
    account: Account
    budget: Annotated[Loss | None, Arg(Kind.BUDGET, "Of the new period; the same as before unless given.")] = None
    note: Note = ""


@dataclass(frozen=True, kw_only=True)
class Unlock(Request[None]):
    """Give everybody's failure credits on an account back, after a look at why questions failed."""

    verb: ClassVar[str] = "unlock"
    account: Account
    note: Note = ""


@dataclass(frozen=True, kw_only=True)
class Appoint(Request[None]):
    """Give somebody a role on an account, and perhaps a cap; from the first analyst on, only those appointed ask."""

    verb: ClassVar[str] = "appoint"
    who: Annotated[str, Arg(Kind.NAME, "Who.", example="ana")]
    role: Annotated[str, Arg(Kind.NAME, "analyst, steward or auditor.", choices=_ROLES, example="analyst")]
    account: Annotated[str, Arg(Kind.NAME, "On which account; all of them, unless given.")] = ""
    cap: Annotated[Loss | None, Arg(Kind.BUDGET, "A cap on the account; no cap unless given.")] = None


@dataclass(frozen=True, kw_only=True)
class Allot(Request[None]):
    """Give a project a cap on an account: questions asked for the project count against both."""

    verb: ClassVar[str] = "allot"
    project: Annotated[str, Arg(Kind.NAME, "What questions are asked for.", example="asthma")]
    account: Account
    cap: Annotated[Loss, Arg(Kind.BUDGET, "What the project may spend of it.", example="Budget(epsilon=1)")]
    note: Note = ""
