"""The acts of stewards: open, attach, amend, renew, appoint, unlock. Each is an entry, and none erases another."""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidParameter, NotPermitted
from discreet.ledger import changes, policy
from discreet.ledger.account import Account, Role, same_currency
from discreet.ledger.origin import Origin, require_one_budget, tables
from discreet.ledger.serialization import write_loss, write_unit
from discreet.ledger.store.base import Rows
from discreet.ledger.tallies import rules
from discreet.noise import system_bits
from discreet.privacy import Loss, Neighbours, Unit

SALT_BITS = 256


def open_account(rows: Rows, name: str, *, unit: Unit, neighbours: Neighbours, budget: Loss | None, by: str) -> Account:
    """Opens an account; one that exists with the same declarations is left as it is.

    Raises:
        InvalidParameter: if it exists with another unit, relation or budget, or a new one has no budget.
        NotPermitted: if somebody else than a steward would open a new one.
    """
    known = rows.get("account", name)
    if known is not None:
        return _same(rows, Account.read(known), unit, neighbours, budget)
    policy.require_steward(rows, "", by, "open accounts")
    if budget is None:
        raise InvalidParameter("budget", None, f"for the new account {name!r}", "Pass e.g. Budget(epsilon=1).")
    rules(budget)
    salt = system_bits().integer(SALT_BITS).to_bytes(SALT_BITS // 8, "big")
    account = Account(name=name, unit=unit, neighbours=neighbours, budget=budget, salt=salt)
    body = {
        "account": {
            "budget": write_loss(budget),
            "name": name,
            "neighbours": neighbours.value,
            "salt": salt.hex(),
            "unit": write_unit(unit),
        }
    }
    changes.apply(rows, rows.add("open", body, who=by, account=name))
    return account


def _same(rows: Rows, known: Account, unit: Unit, neighbours: Neighbours, budget: Loss | None) -> Account:
    hint = "An account keeps what it was opened with; open another account, or amend its budget."
    if unit != known.unit:
        raise InvalidParameter("unit", unit, f"to be {known.unit}, the unit of account {known.name!r}", hint)
    if neighbours is not known.neighbours:
        raise InvalidParameter("neighbours", neighbours.value, f"to be {known.neighbours.value}", hint)
    now = changes.standing(rows, known.name)
    if budget is not None and budget != known.budget and (now is None or budget != now.budget):
        raise InvalidParameter("budget", budget, f"to be {known.budget}, as declared before", hint)
    return known


def attach(rows: Rows, table: str, *, account: str, declaration: str, version: str, origin: Origin, by: str) -> None:
    """Puts a table under an account; the same declaration again is left as it is, what is new is noted.

    Raises:
        InvalidParameter: if the account is unknown, the table has another account, declaration or identity, or its data
            are those of a table in another account.
        NotPermitted: if somebody else than a steward would attach something new.
    """
    if rows.get("account", account) is None:
        raise unknown(account)
    known = changes.table(rows, table)
    if known is not None:
        _same_table(known, table, account, declaration)
        if version in known["versions"] and origin.is_told(known):
            return
    require_one_budget(tables(rows), table, account, origin)
    policy.require_steward(rows, account, by, "attach tables")
    body = {"declaration": declaration, "table": table, "version": version, **origin.fields}
    changes.apply(rows, rows.add("attach", body, who=by, account=account))


def _same_table(known: dict[str, Any], table: str, account: str, declaration: str) -> None:
    if known["account"] != account:
        raise InvalidParameter(
            "account",
            account,
            f"to be {known['account']!r}, the account of table {table!r}",
            "Every version of a table stays in its account.",
        )
    if known["declaration"] != declaration:
        raise InvalidParameter(
            "declaration",
            f"of table {table!r}",
            "to be as it was declared before",
            "Use the same declarations, or another name for another table in the same account.",
        )


def amend(rows: Rows, account: str, *, budget: Loss, by: str, note: str) -> None:
    """Gives an account another budget; what was spent stays spent."""
    _change_budget(rows, "amend", account, budget=budget, by=by, note=note)


def renew(rows: Rows, account: str, *, budget: Loss | None, by: str, note: str) -> None:
    """Starts a new period with nothing spent; the lifetime sums go on."""
    _change_budget(rows, "renew", account, budget=budget, by=by, note=note)


def _change_budget(rows: Rows, kind: str, account: str, *, budget: Loss | None, by: str, note: str) -> None:
    now = changes.standing(rows, account)
    if now is None:
        raise unknown(account)
    policy.require_steward(rows, account, by, f"{kind} account {account!r}")
    chosen = now.budget if budget is None else same_currency(now.budget, budget)
    changes.apply(rows, rows.add(kind, {"budget": write_loss(chosen), "note": note}, who=by, account=account))


def appoint(rows: Rows, who: str, role: Role, *, account: str, cap: Loss | None, by: str) -> None:
    """Gives somebody a role, on one account or (account "") on the whole book, and a cap of their own.

    Raises:
        InvalidParameter: if the account is unknown, the cap is of another currency, or there is a cap without account.
        NotPermitted: if somebody else than a steward appoints, or the owner is appointed.
    """
    if who == policy.OWNER:
        raise NotPermitted(by, "appoint the owner", "Whoever holds the file is a steward; use another name.")
    now = changes.standing(rows, account) if account else None
    if account and now is None:
        raise unknown(account)
    if cap is not None and now is None:
        raise InvalidParameter("cap", cap, "to come with an account")
    if cap is not None and now is not None:
        same_currency(now.budget, cap)
    policy.require_steward(rows, account, by, "appoint")
    body = {"cap": None if cap is None else write_loss(cap), "name": who, "role": role.value}
    changes.apply(rows, rows.add("appoint", body, who=by, account=account))


def allot(rows: Rows, project: str, *, account: str, cap: Loss, by: str, note: str) -> None:
    """Gives a project a cap on an account, under the account's own; what it has spent stays spent.

    Raises:
        InvalidParameter: if the account is unknown, or the cap is of another currency.
        NotPermitted: if somebody else than a steward allots.
    """
    now = changes.standing(rows, account)
    if now is None:
        raise unknown(account)
    same_currency(now.budget, cap)
    policy.require_steward(rows, account, by, "allot to projects")
    body = {"cap": write_loss(cap), "note": note, "project": project}
    changes.apply(rows, rows.add("allot", body, who=by, account=account))


def unlock(rows: Rows, account: str, *, by: str, note: str) -> None:
    """Gives an account its failure credits back."""
    if changes.standing(rows, account) is None:
        raise unknown(account)
    policy.require_steward(rows, account, by, f"unlock account {account!r}")
    changes.apply(rows, rows.add("unlock", {"note": note}, who=by, account=account))


def unknown(account: str) -> InvalidParameter:
    """The error for an account that was never opened."""
    return InvalidParameter("account", account, "to be an account of this book", "Open it first, with its budget.")
