"""Requests about the ledger, each with its handler: what was spent and what remains, proof of it, steward actions.

Who acts is the caller: `by=` of the curator's methods is the analyst of its `Caller`. Handlers need nothing but the
ledger, so that the process of a service that owns it runs them without a curator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, UnknownTable
from discreet.hint_text import Hint
from discreet.ledger import Appointment, Balance, Caller, Head, Ledger, LedgerEntries, Role, Share, Standing
from discreet.privacy import AnyBudget, Loss
from discreet.requests.request import Arg, ArgumentKind, Request

_ROLES = tuple(role.value for role in Role)

Name = Annotated[str, Arg(ArgumentKind.NAME, "A table, or an account.", example="visits", option="account")]
_MOST_NAMED = 3
Account = Annotated[str, Arg(ArgumentKind.NAME, "The account. Default: the only one.", example="patients")]
Note = Annotated[str, Arg(ArgumentKind.TEXT, "The reason, kept in the ledger.")]


@dataclass(frozen=True, kw_only=True)
class GetBudget(Request[Standing]):
    """Show what each account, analyst and project may spend and has spent, what remains, and lifetime spending."""

    verb: ClassVar[str] = "budget"
    name: Name


def get_budget(ledger: Ledger, request: GetBudget, _: Caller) -> Standing:
    """Returns the figures of an account, and of every person and project on it."""
    return ledger.standing(account_of(ledger, request.name))


@dataclass(frozen=True, kw_only=True)
class GetHistory(Request[LedgerEntries]):
    """List the entries of the ledger: sequence, time, person, query or action, and cost."""

    verb: ClassVar[str] = "history"
    name: Annotated[
        str | None, Arg(ArgumentKind.NAME, "Only of this table or account.", example="visits", option="account")
    ] = None
    analyst: Annotated[str | None, Arg(ArgumentKind.NAME, "Only what this person did, and what was done to them.")] = (
        None
    )
    project: Annotated[str | None, Arg(ArgumentKind.NAME, "Only of this project.")] = None


def get_history(ledger: Ledger, request: GetHistory, _: Caller) -> LedgerEntries:
    """Returns the entries that a request asks for."""
    account = None if request.name is None else account_of(ledger, request.name)
    return LedgerEntries(ledger.history(account, analyst=request.analyst, project=request.project))


def account_of(ledger: Ledger, name: str) -> str:
    """Returns the account of a table in the ledger, or the account of that name.

    Raises:
        UnknownTable: if there is neither.
    """
    tables, accounts = ledger.tables(), ledger.accounts()
    if name not in tables and name not in accounts:
        raise UnknownTable(name, dict.fromkeys((*tables, *accounts)))
    return tables.get(name, name)


@dataclass(frozen=True, kw_only=True)
class Verify(Request[Head]):
    """Verify the whole ledger and return its head."""

    verb: ClassVar[str] = "verify"


def verify(ledger: Ledger, _: Verify, __: Caller) -> Head:
    """Walks the whole ledger."""
    return ledger.verify()


@dataclass(frozen=True, kw_only=True)
class Amend(Request[Balance]):
    """Change the budget of an account, in its currency. What was spent stays spent. The ledger keeps both budgets."""

    verb: ClassVar[str] = "amend"
    account: Account = ""
    budget: Annotated[AnyBudget, Arg(ArgumentKind.BUDGET, "The new budget.", example="Budget(epsilon=2)")]
    note: Note = ""


def amend(ledger: Ledger, request: Amend, caller: Caller) -> Balance:
    """Changes the budget of an account and returns its balance."""
    account = account_or_only_one(ledger, request.account)
    return ledger.stewardship.amend(account, budget=request.budget, by=caller.analyst, note=request.note)


@dataclass(frozen=True, kw_only=True)
class Renew(Request[Balance]):
    """Begin a new period of an account with nothing spent. Only for data about other people, or a decided renewal."""

    verb: ClassVar[str] = "renew"
    account: Account = ""
    budget: Annotated[
        AnyBudget | None, Arg(ArgumentKind.BUDGET, "The budget of the new period. Default: the same as before.")
    ] = None
    note: Note = ""


def renew(ledger: Ledger, request: Renew, caller: Caller) -> Balance:
    """Begins a new period of an account."""
    account = account_or_only_one(ledger, request.account)
    return ledger.stewardship.renew(account, budget=request.budget, by=caller.analyst, note=request.note)


@dataclass(frozen=True, kw_only=True)
class Unlock(Request[Balance]):
    """Restore the failure credits of all people on an account. First find out why queries failed."""

    verb: ClassVar[str] = "unlock"
    account: Account = ""
    note: Note = ""


def unlock(ledger: Ledger, request: Unlock, caller: Caller) -> Balance:
    """Gives back the failure credits of an account."""
    account = account_or_only_one(ledger, request.account)
    ledger.stewardship.unlock(account, by=caller.analyst, note=request.note)
    return ledger.balance(account)


@dataclass(frozen=True, kw_only=True)
class Appoint(Request[Appointment]):
    """Give a person a role on an account, and perhaps a cap. From the first analyst on, all others lose access."""

    verb: ClassVar[str] = "appoint"
    who: Annotated[str, Arg(ArgumentKind.NAME, "The person.", example="ana")]
    role: Annotated[str, Arg(ArgumentKind.NAME, "analyst, steward or auditor.", choices=_ROLES, example="analyst")] = (
        Role.ANALYST.value
    )
    account: Annotated[
        str, Arg(ArgumentKind.NAME, "The account. Default: the whole ledger; with a cap, the only account.")
    ] = ""
    cap: Annotated[Loss | None, Arg(ArgumentKind.BUDGET, "A cap on the account. Default: no cap.")] = None


def appoint(ledger: Ledger, request: Appoint, caller: Caller) -> Appointment:
    """Gives a person a role, and returns their part of the account; on the whole ledger, the role alone."""
    role, cap = request.role, request.cap
    account = request.account if cap is None else account_or_only_one(ledger, request.account)
    ledger.stewardship.appoint(request.who, role, account=account, cap=cap, by=caller.analyst)
    if not account:
        return Appointment(name=request.who, role=Role(role), cap=None)
    return next(one for one in ledger.standing(account).people if one.name == request.who)


@dataclass(frozen=True, kw_only=True)
class Allot(Request[Share]):
    """Give a project a cap on an account. Queries for the project count against both."""

    verb: ClassVar[str] = "allot"
    project: Annotated[str, Arg(ArgumentKind.NAME, "The project.", example="asthma")]
    cap: Annotated[
        Loss, Arg(ArgumentKind.BUDGET, "What the project may spend of the account.", example="Budget(epsilon=1)")
    ]
    account: Account = ""
    note: Note = ""


def allot(ledger: Ledger, request: Allot, caller: Caller) -> Share:
    """Gives a project a cap, and returns its part of the account."""
    account, cap, note = account_or_only_one(ledger, request.account), request.cap, request.note
    ledger.stewardship.allot(request.project, account=account, cap=cap, by=caller.analyst, note=note)
    return next(one for one in ledger.standing(account).projects if one.name == request.project)


def account_or_only_one(ledger: Ledger, account: str) -> str:
    """Returns the account that is named; if none is, the only one in the ledger.

    Raises:
        InvalidParameter: if it is not there, or none is named, and there are several, or none.
    """
    accounts = ledger.accounts()
    if account and accounts and account not in accounts:
        raise InvalidParameter("account", account, "to be an account of this ledger", _one_of(accounts))
    return account or only_account(accounts)


def only_account(accounts: Sequence[str]) -> str:
    """Returns the only one of some accounts.

    Raises:
        InvalidParameter: if there are several, or none.
    """
    if len(accounts) != 1:
        raise InvalidParameter("account", "", "to be named, because there is not exactly one", _one_of(accounts))
    return accounts[0]


def _one_of(accounts: Sequence[str]) -> Hint:
    """Returns the hint to name one of some accounts, those that come first."""
    several = " or ".join(f"{{account:{name}}}" for name in accounts[:_MOST_NAMED])
    return Hint(f"Pass {several}." if several else "Open an account first: protect a table.")
