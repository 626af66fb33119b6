"""From the declarations of a file to what a curator holds: accounts, tables and analysts; again, it changes nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from discreet.curator.catalog.catalog import Catalog
from discreet.curator.catalog.public_tables import Unique
from discreet.curator.config.toml_file import (
    Analyst,
    Config,
    DeclaredTeam,
    ProtectedTable,
    PublicTable,
    as_given,
    load,
)
from discreet.engines.duckdb.sources import Csv, named_table, source_of
from discreet.engines.folders.folder import Folder
from discreet.engines.lakes.lake_table import lake_place
from discreet.errors import DeclarationChanged, InvalidParameter, LedgerMissing
from discreet.ledger import Ledger, Role, is_anchored, is_there, open_ledger, require_never_there, require_there
from discreet.ledger.account import cap_in
from discreet.ledger.serialization import read_loss, write_loss
from discreet.privacy import AnyBudget, Loss, RenewalSchedule, RenewingBudget
from discreet.privacy.budget import split, write_calendar

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEYS = {"type": "types", "groups": "max_groups", "rows": "max_rows"}  # as the curator calls them, and as the file does


def declared_in(path: str | os.PathLike[str], *, opening: bool) -> Config:
    """Returns the declarations of a file, unless something can be seen to be wrong before there is a ledger.

    Args:
        path: the file.
        opening: whether tables may be new to the ledger.

    Raises:
        InvalidParameter: naming the key of the file that does not fit.
    """
    declared = load(path)
    check_sources(declared)
    if not opening:
        check_known(declared)
    return declared


Kept = str | os.PathLike[str] | None
"""The file of a ledger's anchor; None to find it by the ledger's id, "" to keep none for a new ledger."""


def ledger_at(ledger: str | os.PathLike[str] | Ledger, anchor: Kept = None, *, for_tests: bool = False) -> Ledger:
    """Opens the ledger of a curator, with its anchor.

    A new ledger for tests has none, so that copies of it can be charged side by side; one that has an anchor is
    always compared with it.
    """
    if isinstance(ledger, Ledger):  # open already, which tests do
        return ledger
    place = os.fspath(ledger)
    if for_tests and not is_anchored(place):
        return open_ledger(place, anchor="")
    return open_ledger(place, anchor=None if anchor is None else os.fspath(anchor))


def declared_ledger(config: Config, *, read_only: bool = False, new: bool = False) -> Ledger:
    """Opens the ledger that is declared.

    Args:
        config: the declarations.
        read_only: refuses every write.
        new: whether it may be made, if there is none and never was.

    Raises:
        AnchorMismatch: if it is older than its anchor, another one, or gone.
        AnchorMissing: if it has an anchor, which is not there.
        InvalidParameter: if there is none, and it may not be made.
        LedgerError: if it cannot be used.
    """
    if config.anchor:
        require_there(config.ledger, config.anchor)
    elif config.anchor is None and not is_there(config.ledger):
        require_never_there(config.ledger)
    if not new and not is_there(config.ledger):
        raise InvalidParameter("ledger", config.ledger, "to exist", "Run `discreet protect` first.")
    return open_ledger(config.ledger, anchor=config.anchor, former=config.former_anchor, read_only=read_only)


def check_sources(config: Config) -> None:
    """Refuses what can be seen to be wrong before there is a ledger.

    Raises:
        InvalidParameter: if no table is declared, a file is not there, or a CSV comes without types.
    """
    if not config.tables:
        raise InvalidParameter("tables", None, "to declare a table", "Add [tables.NAME] to discreet.toml.")
    for public in config.public:
        _check_types(f"public.{public.name}", public, typed=bool(public.types))
    for table in config.tables:
        _check_types(f"tables.{table.name}", table, typed=bool(table.declared.get("types")))


def check_known(config: Config) -> None:
    """Refuses tables that would be new to the ledger, and a ledger that would be new itself.

    Raises:
        InvalidParameter: naming the first of them.
    """
    hint = "Run `discreet protect` first."
    with declared_ledger(config, read_only=True) as ledger:
        known = ledger.tables()
    for table in config.tables:
        if table.name not in known:
            raise InvalidParameter(f"tables.{table.name}", table.name, "to be protected already", hint)


Replacing = Mapping[str, str]
"""Of tables that are declared anew, by name, the declarations in the ledger that a steward has seen."""

NOTHING: Replacing = {}
"""No table is declared anew."""


def enrol(
    config: Config,
    catalog: Catalog,
    ledger: Ledger,
    *,
    ledger_decides: bool = False,
    replacing: Replacing = NOTHING,
) -> None:
    """Hands every declaration of a file to a catalog and its ledger.

    Caps of analysts and projects are changed as the file says. The budget of an account is not: the file has its first
    amount, with which it is opened, and every other one is an act of a steward (`check_budgets`).

    Args:
        config: what is declared.
        catalog: of the tables.
        ledger: of the accounts.
        ledger_decides: whether caps that are in the ledger stay as they are, whatever the file says: stewards change
            them elsewhere, and the file has their first values.
        replacing: tables that may be declared anew.

    Raises:
        DeclarationChanged: if another table is declared otherwise than in the ledger.
        InvalidParameter: if a declaration does not fit its table, or what was declared before.
    """
    known = ledger.accounts()
    for public in config.public:
        register(catalog, public)
    for table in config.tables:
        with naming(f"tables.{table.name}", account=table.account):
            own = None if table.account in known else config.budgets[table.account]
            _protect(catalog, table, own, replacing.get(table.name))
    for analyst in config.analysts:
        if not (ledger_decides and ledger.role(analyst.account, analyst.name)):
            _appoint(ledger, analyst)
    for project in config.projects:
        present = ledger.project_cap(project.name, account=project.account)
        if ledger_decides and present:
            continue
        if present != _cap(ledger, project.account, project.cap):  # every allotment is an entry
            ledger.stewardship.allot(project.name, account=project.account, cap=project.cap)
    _enrol_teams(config, ledger, ledger_decides=ledger_decides)


class Registry(Protocol):
    """The protocol of what takes public tables: a catalog, or a curator."""

    def public(
        self,
        source: Any,
        *,
        name: str,
        types: Mapping[str, str] | None = None,
        unique: Unique = (),
        table: str | None = None,
    ) -> None:
        """Registers a public table, which has no account."""


def register(registry: Registry, public: PublicTable) -> None:
    """Registers a public table of a file."""
    with naming(f"public.{public.name}"):
        registry.public(
            as_given(public.source), name=public.name, types=public.types, unique=public.unique, table=public.table
        )


def _protect(catalog: Catalog, table: ProtectedTable, budget: AnyBudget | None, replacing: str | None = None) -> None:
    catalog.protect(
        _folder(table) or as_given(table.source),
        name=table.name,
        unit=table.unit,
        account=table.account,
        budget=budget,
        replacing=replacing,
        **table.declared,
    )


def _folder(table: ProtectedTable) -> Folder | None:
    """Returns the folder that a table is; None if it is none."""
    if table.files is None:
        return None
    if isinstance(table.source, tuple):
        hint = 'Name the folder, like source = "scans/".'
        raise InvalidParameter("source", list(as_given(table.source)), "to be one folder", hint)
    try:
        return Folder(path=table.source, **table.files)
    except InvalidParameter as error:
        key = "source" if error.name == "path" else f"files.{error.name}"
        raise InvalidParameter(key, error.value, error.condition, error.hint) from None


def check_budgets(config: Config) -> dict[str, AnyBudget]:
    """Returns the budgets of a file as they are in the ledger, which has the last word, for a steward.

    Raises:
        InvalidParameter: for a budget that an account never had: somebody may have meant to change it in the file.
    """
    if not is_there(config.ledger):
        return dict(config.budgets)
    try:
        with Ledger(config.ledger, read_only=True) as ledger:
            known = ledger.accounts()
            return {
                account: _budget_in_force(ledger, account, declared) if account in known else declared
                for account, declared in config.budgets.items()
            }
    except LedgerMissing:  # a server reports it only when it is asked
        return dict(config.budgets)


def _budget_in_force(ledger: Ledger, account: str, declared: AnyBudget) -> AnyBudget:
    amounts, schedules = _budgets_so_far(ledger, account)
    amount, schedule = split(declared)
    present = amounts[-1] if schedules[-1] is None else RenewingBudget(amounts[-1], schedules[-1])
    if amount not in amounts or schedule not in schedules:
        raise _changed_budget(account, declared, present)
    return present


def _budgets_so_far(ledger: Ledger, account: str) -> tuple[list[Loss], list[RenewalSchedule | None]]:
    """Returns the amounts and the calendars that an account had, those in force last."""
    opened = ledger.account(account)
    amounts, schedules = [opened.budget], list[RenewalSchedule | None]()
    for entry in ledger.history(account):
        content = entry.content
        if entry.kind in ("amend", "renew"):
            amounts.append(read_loss(content["budget"]))
        if entry.kind == "open" or "renews" in content:
            schedules.append(RenewalSchedule.read(content["renews"]) if "renews" in content else opened.rows)
    return amounts, [None if one is not None and one.per == "never" else one for one in schedules]


def _changed_budget(account: str, declared: AnyBudget, present: AnyBudget) -> InvalidParameter:
    """Returns the refusal, with the line that would amend the budget."""
    amount, schedule = split(declared)
    present_amount, present_schedule = split(present)
    by_rows = [one if one is not None and one.of else None for one in (schedule, present_schedule)]
    if by_rows[0] != by_rows[1]:
        how = "Which rows share a budget is fixed when an account is opened. To change it, open another account."
    elif type(amount) is type(present_amount):
        amounts = {name: Fraction(one) for name, one in write_loss(amount).items()}
        told = {**{name: one for name, one in amounts.items() if one}, **write_calendar(schedule)}
        options = " ".join(f"--{name} {one}" for name, one in told.items())
        how = f"To change it, run: discreet amend {shlex.quote(account)} {options}"
    else:
        how = "The currency is fixed when an account is opened. To change it, open another account."
    hint = f"The file has the first amount of an account, and every change is a ledger entry. {how}"
    return InvalidParameter(f"budgets.{account}", declared, f"to be {present}, as in the ledger", hint)


@contextmanager
def naming(place: str, *, account: str = "") -> Iterator[None]:
    """Makes errors name the key of the file, not the argument of a function."""
    try:
        yield
    except DeclarationChanged as error:
        hint = "Run `discreet protect` to review the change and enter it in the ledger. Nothing else enters it."
        raise DeclarationChanged(error.table, error.differences, hint) from None
    except InvalidParameter as error:
        key = _KEYS.get(error.name, error.name)
        name = f"budgets.{account}" if key == "budget" else f"{place}.{key}"
        raise InvalidParameter(name, error.value, error.condition, error.hint) from None


def _appoint(ledger: Ledger, analyst: Analyst) -> None:
    """Appoints an analyst if that is new: every appointment is an entry of the ledger."""
    account, cap = analyst.account, ledger.analyst_cap(analyst.name, account=analyst.account)
    declared = None if analyst.cap is None else _cap(ledger, account, analyst.cap)
    if ledger.role(account, analyst.name) is not Role.ANALYST or cap != declared:
        ledger.stewardship.appoint(analyst.name, Role.ANALYST, account=account, cap=analyst.cap)


def _enrol_teams(config: Config, ledger: Ledger, *, ledger_decides: bool) -> None:
    for team in config.teams:
        _set_team(ledger, team, ledger_decides=ledger_decides)
    for account, count in config.approvals.items():
        if ledger.caps.needed(account) != count and not ledger_decides:
            ledger.caps.require_approvals(account, count=count)


def _set_team(ledger: Ledger, declared: DeclaredTeam, *, ledger_decides: bool) -> None:
    """Gives a team its cap and members if they are new: every change is an entry of the ledger."""
    account, present = declared.account, ledger.caps.team(declared.name, account=declared.account)
    if present is not None and ledger_decides:
        return
    members, groups = (tuple(sorted(names)) for names in (declared.members, declared.groups))
    if present != (_cap(ledger, account, declared.cap), members, groups):
        ledger.caps.set_team(declared.name, account=account, cap=declared.cap, members=members, groups=groups)


def _cap(ledger: Ledger, account: str, cap: AnyBudget) -> AnyBudget:
    return cap_in(ledger.balance(account).total, cap)


def _check_types(place: str, table: ProtectedTable | PublicTable, *, typed: bool) -> None:
    """Checks that CSV comes with types; the refusal proposes a line from the public header alone."""
    if isinstance(table.source, str):  # a database knows its types; whether it has the table, its engine finds out
        return
    if lake_place(table.source) is not None:  # its types are carried, and a snapshot in the ledger may be all it has
        return
    with naming(place):
        if isinstance(table, ProtectedTable) and _folder(table) is not None:
            return
        named = table.declared.get("table") if isinstance(table, ProtectedTable) else table.table
        source = source_of(named_table(as_given(table.source), named))
    if isinstance(source, Csv) and not typed:
        path = from_here(Path(str(source.paths[0])))
        look = f"`discreet check {shlex.quote(str(path))} --write` reads the file and adds them"
        pasted = f"paste this under [{place}] and correct it:\n{types_line(source.header)}"
        hint = f"CSV has no column types. {look} at the end of discreet.toml. The rest stays unchanged. Or {pasted}"
        raise InvalidParameter(f"{place}.types", None, "to be given", hint)


def from_here(path: Path) -> Path:
    """Returns the path of a file relative to the current folder, if it is in there."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def types_line(header: tuple[str, ...]) -> str:
    """Returns a line of TOML that declares every column as text.

    >>> types_line(("age", "ward no"))
    'types = { age = "text", "ward no" = "text" }'
    """
    pairs = ", ".join(f'{toml_key(name)} = "text"' for name in header)
    return f"types = {{ {pairs} }}"


def toml_key(name: str) -> str:
    """Returns a name as a key of TOML, quoted where it must be."""
    if _BARE.fullmatch(name):
        return name
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
