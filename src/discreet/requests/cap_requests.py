"""Requests about caps that several people share, amounts that are set aside, and queries beyond a cap."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, ClassVar

from discreet.dataclass import dataclass
from discreet.ledger import Balance, Caller, Ledger, Role, Share
from discreet.ledger.caps.approvals import ApprovalRequest
from discreet.privacy import AnyBudget
from discreet.requests.ledger_requests import Note, account_of, account_or_only_one
from discreet.requests.question_requests import Contribution, Delta, Other, Parameters, Sql
from discreet.requests.request import Arg, ArgumentKind, Request

_Account = Annotated[str, Arg(ArgumentKind.NAME, "The account. Default: the only one.", example="patients")]
_Purpose = Annotated[str, Arg(ArgumentKind.NAME, "What it is for.", example="weekly-report")]


@dataclass(frozen=True, kw_only=True)
class SetTeam(Request[Share]):
    """Give a team a cap on an account, and list its members. Their queries count against it besides their own caps."""

    verb: ClassVar[str] = "set_team"
    team: Annotated[str, Arg(ArgumentKind.NAME, "The team.", example="cardiology")]
    cap: Annotated[
        AnyBudget, Arg(ArgumentKind.BUDGET, "What the team may spend of the account.", example="Budget(epsilon=1)")
    ]
    members: Annotated[
        tuple[str, ...], Arg(ArgumentKind.NAMES, "The members, with commas between them.", example="ana,ben")
    ] = ()
    groups: Annotated[
        tuple[str, ...], Arg(ArgumentKind.NAMES, "Groups of the sign-in provider whose people belong to the team.")
    ] = ()
    account: _Account = ""
    note: Note = ""


def set_team(ledger: Ledger, request: SetTeam, caller: Caller) -> Share:
    """Gives a team a cap, and returns its part of the account."""
    account = account_or_only_one(ledger, request.account)
    told: dict[str, Any] = {"cap": request.cap, "members": request.members, "groups": request.groups}
    ledger.caps.set_team(request.team, account=account, by=caller.analyst, note=request.note, **told)
    return next(one for one in ledger.standing(account).teams if one.name == request.team)


@dataclass(frozen=True, kw_only=True)
class SetAside(Request[Balance]):
    """Set an amount of an account aside for a purpose. It counts as spent, and only queries for the purpose use it."""

    verb: ClassVar[str] = "set_aside"
    purpose: _Purpose
    budget: Annotated[AnyBudget, Arg(ArgumentKind.BUDGET, "How much.", example="Budget(epsilon=0.5)")]
    account: _Account = ""
    person: Annotated[str, Arg(ArgumentKind.NAME, "The only person who may spend it. Default: all who may ask.")] = ""
    note: Note = ""


def set_aside(ledger: Ledger, request: SetAside, caller: Caller) -> Balance:
    """Sets an amount aside, and returns the balance of the account."""
    account = account_or_only_one(ledger, request.account)
    told: dict[str, Any] = {"budget": request.budget, "analyst": request.person, "note": request.note}
    return ledger.caps.reserve(request.purpose, account=account, by=caller.analyst, **told)


@dataclass(frozen=True, kw_only=True)
class GiveBack(Request[Balance]):
    """Give back the rest of an amount that was set aside. What was spent of it stays spent."""

    verb: ClassVar[str] = "give_back"
    purpose: _Purpose
    account: _Account = ""
    note: Note = ""


def give_back(ledger: Ledger, request: GiveBack, caller: Caller) -> Balance:
    """Gives back the rest of an amount, and returns the balance of the account."""
    account = account_or_only_one(ledger, request.account)
    return ledger.caps.give_back(request.purpose, account=account, by=caller.analyst, note=request.note)


@dataclass(frozen=True, kw_only=True)
class RequestApproval(Request[ApprovalRequest]):
    """Ask the stewards to allow one query beyond a cap. It reads no data and spends nothing."""

    verb: ClassVar[str] = "request_approval"
    sql: Sql
    reason: Annotated[str, Arg(ArgumentKind.TEXT, "What the query is for.", example="for the board")]
    epsilon: Annotated[Fraction, Arg(ArgumentKind.AMOUNT, "What the answer may cost; kept exactly.", example="0.1")]
    parameters: Parameters = None
    delta: Delta = None
    limits: Contribution = None
    other: Other = None


@dataclass(frozen=True, kw_only=True)
class Approve(Request[ApprovalRequest]):
    """Allow the query of a request beyond a cap, once and for seven days. The account's budget still holds."""

    verb: ClassVar[str] = "approve"
    number: Annotated[int, Arg(ArgumentKind.COUNT, "The number of the request.", example="12")]
    account: Annotated[str, Arg(ArgumentKind.NAME, "The account of the request. Default: whichever it is.")] = ""
    note: Note = ""


def approve(ledger: Ledger, request: Approve, caller: Caller) -> ApprovalRequest:
    """Allows the query of a request."""
    account = request.account
    return ledger.caps.approve(request.number, account=account or None, by=caller.analyst, note=request.note)


@dataclass(frozen=True, kw_only=True)
class RequireApprovals(Request[list[ApprovalRequest]]):
    """Say how many stewards must approve each query beyond a cap, and list the requests that wait."""

    verb: ClassVar[str] = "require_approvals"
    count: Annotated[int, Arg(ArgumentKind.COUNT, "How many stewards.", most=100, example="2")]
    account: _Account = ""
    note: Note = ""


def require_approvals(ledger: Ledger, request: RequireApprovals, caller: Caller) -> list[ApprovalRequest]:
    """Says how many stewards must approve, and returns the requests that wait for them."""
    account = account_or_only_one(ledger, request.account)
    ledger.caps.require_approvals(account, count=request.count, by=caller.analyst, note=request.note)
    return [one for one in ledger.caps.requests(account) if one.state == "waiting"]


@dataclass(frozen=True, kw_only=True)
class GetApprovals(Request[list[ApprovalRequest]]):
    """List the requests for queries beyond a cap, the newest first: your own, or all if you are a steward."""

    verb: ClassVar[str] = "approvals"
    name: Annotated[
        str | None, Arg(ArgumentKind.NAME, "Only of this table or account.", example="visits", option="account")
    ] = None


def get_approvals(ledger: Ledger, request: GetApprovals, caller: Caller) -> list[ApprovalRequest]:
    """Returns the requests that a caller may see."""
    account = None if request.name is None else account_of(ledger, request.name)
    found = ledger.caps.requests(account)
    steward = {one.account: ledger.role(one.account, caller.analyst) is Role.STEWARD for one in found}
    return [one for one in found if steward[one.account] or one.analyst == caller.analyst]
