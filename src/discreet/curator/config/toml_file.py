"""discreet.toml: everything a steward declares, read without touching data; every mistake names its key."""

from __future__ import annotations

import datetime as dt
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from discreet import check
from discreet.curator.catalog.public_tables import Unique
from discreet.curator.catalog.unit_of_privacy import target_of
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.postgres_url import is_postgres, without
from discreet.privacy import AnyBudget, Budget

FILE = "discreet.toml"
File = str | os.PathLike[str]
EACH_ROW = ""  # as a unit: every row is one person

Read = Callable[[str, Any], Any]

Place = Path | str | tuple[Path | str, ...]
"""Where a table is: a file or a folder, a table of a database, or a list of files."""


def as_given(source: Place) -> str | list[str]:
    """Returns where a table is as `Curator.protect` takes it."""
    return [str(path) for path in source] if isinstance(source, tuple) else str(source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedTable:
    """A table to protect; `declared` holds the arguments of `Curator.protect`, and `files` those of a folder of files.

    Both are as they were written.
    """

    name: str
    source: Place
    account: str
    unit: str | tuple[str, ...] | None
    declared: Mapping[str, Any]
    files: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicTable:
    """A public table; it has no account."""

    name: str
    source: Place
    types: Mapping[str, str] | None
    unique: Unique = ()
    table: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyst:
    """A person who may ask on an account, perhaps up to a cap of their own."""

    name: str
    account: str
    cap: AnyBudget | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project that may spend from an account, up to a cap."""

    name: str
    account: str
    cap: AnyBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTeam:
    """A team that may spend from an account, up to a cap: its members, or groups of the sign-in provider."""

    name: str
    account: str
    cap: AnyBudget
    members: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A discreet.toml: the ledger, the tables, the budget of each account, who may ask, for what, and on which day.

    The ledger is a path, or the address of a PostgreSQL database. With an engine, the address of a server, sources are
    tables of it.
    """

    ledger: str
    tables: tuple[ProtectedTable, ...]
    public: tuple[PublicTable, ...]
    budgets: Mapping[str, AnyBudget]
    analysts: tuple[Analyst, ...]
    projects: tuple[Project, ...] = ()
    teams: tuple[DeclaredTeam, ...] = ()
    approvals: Mapping[str, int] = field(default_factory=dict)
    """How many stewards must approve a query beyond a cap, by account, where the file says so."""
    today: dt.date | None = None
    engine: str | None = None
    anchor: str | None = None
    """The file of the newest head that was seen of the ledger; None to find it by the ledger's id, "" to keep none."""
    former_anchor: str = ""
    """Where earlier versions kept it, if nothing was declared."""
    objects: tuple[str, ...] | None = None
    """Buckets and web servers that may be read; None for all, but for a service: it reads none that is not listed."""
    service: Mapping[str, Any] = field(default_factory=dict)
    """The table [service] as it was written; the service reads it."""


def load(path: str | os.PathLike[str]) -> Config:
    """Returns the declarations in a file; paths in it are relative to its folder.

    Raises:
        InvalidParameter: if it cannot be read, or something in it is not as it should be.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        hint = "Run `discreet check FILE.csv --write` here, run `discreet init` for an empty file, or pass --config."
        raise InvalidParameter("config", str(path), "to be a file that can be read", hint) from None
    return parse(text, Path(path).absolute().parent)


def parse(text: str, folder: Path) -> Config:
    """Returns the declarations in a text.

    >>> text = '''
    ... [budgets.visits]
    ... epsilon = 0.1
    ... [tables.visits]
    ... source = "visits.parquet"
    ... unit = "patient"
    ... '''
    >>> config = parse(text, Path("/data"))
    >>> print(config.ledger, config.tables[0].unit, config.budgets["visits"])
    /data/discreet.ledger patient epsilon=0.1
    """
    try:
        content = tomllib.loads(text, parse_float=Decimal)  # amounts are kept as they were written
    except tomllib.TOMLDecodeError as error:
        hint = f"{error}. Put texts in quotes, and write each table or key once."
        raise InvalidParameter(FILE, "this text", "to be TOML", hint) from None
    fields = _fields("", content, _TOP)
    place = folder if fields.get("engine") is None else None
    tables = _on_their_ways([_table(name, given, place) for name, given in fields.get("tables", {}).items()])
    public = tuple(_public(name, given, place) for name, given in fields.get("public", {}).items())
    _check_names(tables, public)
    approvals = {name: given.pop("approvals", None) for name, given in fields.get("budgets", {}).items()}
    budgets = {name: _budget(f"budgets.{name}", given) for name, given in fields.get("budgets", {}).items()}
    _check_budgets(tables, budgets)
    analysts = tuple(
        _analyst(who, account, cap, budgets)
        for who, caps in fields.get("analysts", {}).items()
        for account, cap in _tables(f"analysts.{who}", caps).items()
    )
    projects = tuple(
        _project(name, account, cap, budgets)
        for name, caps in fields.get("projects", {}).items()
        for account, cap in _tables(f"projects.{name}", caps).items()
    )
    teams = tuple(
        _team(name, account, told, budgets)
        for name, caps in fields.get("teams", {}).items()
        for account, told in _tables(f"teams.{name}", caps).items()
    )
    return Config(
        ledger=_ledger(fields.get("ledger", "discreet.ledger"), folder),
        tables=tables,
        public=public,
        budgets=budgets,
        analysts=analysts,
        projects=projects,
        teams=teams,
        approvals={
            name: check.integer(at_least=1, at_most=100, **{f"budgets.{name}.approvals": count})
            for name, count in approvals.items()
            if count is not None
        },
        today=fields.get("today"),
        engine=fields.get("engine"),
        anchor=str(folder / fields["anchor"]) if fields.get("anchor") else fields.get("anchor"),
        former_anchor=_former_anchor(fields.get("ledger", "discreet.ledger"), folder),
        objects=fields.get("objects"),
        service=fields.get("service", {}),
    )


def _ledger(given: str, folder: Path) -> str:
    if not is_postgres(given):
        return str(folder / given)
    without(given, called="ledger")
    return given


def _former_anchor(ledger: str, folder: Path) -> str:
    return str(folder / ("discreet.anchor" if is_postgres(ledger) else f"{ledger}.anchor"))


def _table(name: str, given: Mapping[str, Any], folder: Path | None) -> ProtectedTable:
    fields = _require_fields(f"tables.{name}", _fields(f"tables.{name}", given, _TABLE), "source", "unit")
    unit = fields.pop("unit")
    return ProtectedTable(
        name=name,
        source=_locate_source(fields.pop("source"), folder),
        account=fields.pop("account", ""),
        unit=None if unit == EACH_ROW else unit,
        files=fields.pop("files", None),
        declared=fields,
    )


def _locate_source(source: str | tuple[str, ...], folder: Path | None) -> Place:
    """Returns a file's path in a folder; the name or the address of a table stays as it is."""
    if isinstance(source, tuple):
        return source if folder is None else tuple(folder / path for path in source)
    return source if folder is None or "://" in source else folder / source


def _on_their_ways(tables: Sequence[ProtectedTable]) -> tuple[ProtectedTable, ...]:
    """Sorts tables so that each comes after the one that its unit's way leads to, and shares its account."""
    waiting, ready = list(tables), dict[str, ProtectedTable]()
    while waiting:
        table = next((t for t in waiting if target_of(t.unit) in (None, *ready)), None)
        if table is None:
            place, names = f"tables.{waiting[0].name}.unit", ", ".join(table.name for table in tables)
            hint = f"A unit leads to other tables of the file, never in a circle. Its tables are {names}."
            raise InvalidParameter(place, waiting[0].unit, "to lead to a table with ids", hint)
        waiting.remove(table)
        target = target_of(table.unit)
        shared = table.name if target is None else ready[target].account
        ready[table.name] = replace(table, account=table.account or shared)
    return tuple(ready.values())


def _public(name: str, given: Mapping[str, Any], folder: Path | None) -> PublicTable:
    fields = _require_fields(f"public.{name}", _fields(f"public.{name}", given, _PUBLIC), "source")
    return PublicTable(
        name=name,
        source=_locate_source(fields["source"], folder),
        types=fields.get("types"),
        unique=fields.get("unique", ()),
        table=fields.get("table"),
    )


def _require_fields(place: str, fields: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        if key not in fields:
            raise InvalidParameter(f"{place}.{key}", None, "to be given", _REQUIRED[key])
    return fields


def _budget(place: str, given: Mapping[str, Any]) -> AnyBudget:
    fields = _fields(place, given, _BUDGET)
    try:
        budget: AnyBudget = Budget(**fields)
        return budget
    except InvalidParameter as error:
        raise InvalidParameter(f"{place}.{error.name}", error.value, error.condition, error.hint) from None


def _analyst(who: str, account: str, cap: Mapping[str, Any], budgets: Mapping[str, AnyBudget]) -> Analyst:
    place = _on_account(f"analysts.{who}", account, budgets)
    return Analyst(name=who, account=account, cap=_budget(place, cap) if cap else None)


def _project(name: str, account: str, cap: Mapping[str, Any], budgets: Mapping[str, AnyBudget]) -> Project:
    place = _on_account(f"projects.{name}", account, budgets)
    return Project(name=name, account=account, cap=_budget(place, cap))


def _team(name: str, account: str, told: Mapping[str, Any], budgets: Mapping[str, AnyBudget]) -> DeclaredTeam:
    place = _on_account(f"teams.{name}", account, budgets)
    members, groups = (_list_of_texts(f"{place}.{key}", told.get(key, [])) for key in ("members", "groups"))
    cap = _budget(place, {key: value for key, value in told.items() if key not in ("members", "groups")})
    return DeclaredTeam(name=name, account=account, cap=cap, members=members, groups=groups)


def _list_of_texts(place: str, value: Any) -> tuple[str, ...]:
    return tuple(_text(f"{place}.{number}", one) for number, one in enumerate(_list(place, value), start=1))


def _on_account(place: str, account: str, budgets: Mapping[str, AnyBudget]) -> str:
    if account not in budgets:
        hint = f"Add [budgets.{account}], or correct the name."
        raise InvalidParameter(f"{place}.{account}", "this account", "to have a budget", hint)
    return f"{place}.{account}"


def _check_names(tables: tuple[ProtectedTable, ...], public: tuple[PublicTable, ...]) -> None:
    places = [(f"tables.{table.name}", table.name) for table in tables]
    places += [(f"public.{table.name}", table.name) for table in public]
    names = [name.casefold() for _, name in places]
    for place, name in places:
        if names.count(name.casefold()) > 1:
            hint = "Letter case does not matter in questions. Choose another name."
            raise InvalidParameter(place, name, "to be the name of one table only", hint)


def _check_budgets(tables: tuple[ProtectedTable, ...], budgets: Mapping[str, AnyBudget]) -> None:
    accounts = {table.account: table.name for table in tables}
    for account, table in accounts.items():
        if account not in budgets:
            hint = f'Add [budgets.{account}] with epsilon = "1", or rho = "0.1".'
            raise InvalidParameter(f"budgets.{account}", None, f"to be given, for table {table!r}", hint)
    for account in budgets:
        if account not in accounts:
            raise InvalidParameter(
                f"budgets.{account}", account, "to be the account of a table", _near(account, accounts)
            )


def _fields(place: str, given: Any, readers: Mapping[str, Read]) -> dict[str, Any]:
    """Returns the known keys of a TOML table, each through its reader; others are refused."""
    fields = {}
    for key, value in _mapping(place, given).items():
        full = f"{place}.{key}" if place else key
        if key not in readers:
            raise InvalidParameter(full, "this key", "to be a known one", _near(key, readers))
        fields[key] = readers[key](full, value)
    return fields


def _near(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.7)
    return f"Did you mean {close[0]}?" if close else f"Known here: {', '.join(known) or 'none'}."


def _text(place: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidParameter(place, value, "to be a text", 'Write it in quotes, like "visits".')
    return value


def _source(place: str, value: Any) -> str | tuple[str, ...]:
    """Returns the place of a table, or those of a list of files."""
    if not isinstance(value, list):
        return _text(place, value)
    paths = tuple(_text(f"{place}[{i}]", path) for i, path in enumerate(value))
    if not paths or any("://" in path for path in paths):
        hint = 'Write paths of files, like source = ["visits.parquet", "more.parquet"].'
        raise InvalidParameter(place, value, "to be a list of files", hint)
    return paths


def _unit(place: str, value: Any) -> str | tuple[str, ...]:
    """Returns a unit: a column or a way, or a list of columns."""
    if isinstance(value, list):
        return tuple(_text(f"{place}[{i}]", part) for i, part in enumerate(value))
    return _text(place, value)


def _unique(place: str, value: Any) -> list[str | tuple[str, ...]]:
    """Returns columns one by one, or lists of those that identify rows together."""
    return [_unit(f"{place}[{i}]", part) for i, part in enumerate(_list(place, value))]


def _mapping(place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidParameter(place, value, "to be a table", 'Write it like { age = "int" } or as a [section].')
    return value


def _tables(place: str, value: Any) -> dict[str, Any]:
    return {name: _mapping(f"{place}.{name}", inner) for name, inner in _mapping(place, value).items()}


def _texts(place: str, value: Any) -> dict[str, str]:
    return {name: _text(f"{place}.{name}", inner) for name, inner in _mapping(place, value).items()}


def _lists(place: str, value: Any) -> dict[str, list[Any]]:
    return {name: _list(f"{place}.{name}", inner) for name, inner in _mapping(place, value).items()}


def _addresses(place: str, value: Any) -> tuple[str, ...]:
    return tuple(_text(f"{place}[{i}]", one) for i, one in enumerate(_list(place, value)))


def _keys(place: str, value: Any) -> dict[str, list[Any] | str]:
    """Returns lists, or texts that name a column of a public table."""
    given = _mapping(place, value)
    return {name: inner if isinstance(inner, str) else _list(f"{place}.{name}", inner) for name, inner in given.items()}


def _list(place: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidParameter(place, value, "to be a list", "Write it in brackets, like [0, 120].")
    return value


def _files(place: str, value: Any) -> dict[str, Any]:
    """Returns what is declared of the files of a folder."""
    readers: dict[str, Read] = {**dict.fromkeys(("suffix", "person", "column"), _text), "shape": _list, "bounds": _list}
    return _require_fields(place, _fields(place, value, readers), "suffix", "shape")


def _sample(place: str, value: Any) -> dict[str, Any]:
    """Returns the numbers of a sample, by stratum if there are strata."""
    known: dict[str, Read] = {**dict.fromkeys(("population", "size"), _people), "by": _text}
    return _require_fields(place, _fields(place, value, known), "population", "size")


def _people(place: str, value: Any) -> int | dict[str, int]:
    if isinstance(value, dict):
        return {name: _count(f"{place}.{name}", inner) for name, inner in value.items()}
    return _count(place, value)


def _count(place: str, value: Any) -> int:
    return check.integer(at_least=1, **{place: value})


def _amount(place: str, value: Any) -> Any:
    check.rational(**{place: value})
    return value


def _day(place: str, value: Any) -> dt.date | None:
    return check.day(**{place: value})


_TOP: Mapping[str, Read] = {
    **dict.fromkeys(("ledger", "engine", "anchor"), _text),
    "today": _day,
    "objects": _addresses,
    **dict.fromkeys(("tables", "public", "budgets", "analysts", "projects", "teams"), _tables),
    "service": _mapping,
}
_BUDGET: Mapping[str, Read] = {
    **dict.fromkeys(("epsilon", "delta", "rho"), _amount),
    **dict.fromkeys(("per", "zone", "of"), _text),
    "start": lambda _, value: value,  # a date, or a text: `Budget` reads both
}
_TABLE: Mapping[str, Read] = {
    **dict.fromkeys(("account", "limits", "neighbours", "version", "identity", "table"), _text),
    "source": _source,
    "limits_epsilon": _amount,
    "unit": _unit,
    **dict.fromkeys(("max_groups", "max_rows", "most_rows"), _count),
    "types": _texts,
    **dict.fromkeys(("bounds", "domain"), _lists),
    "keys": _keys,
    "files": _files,
    "sample_of": _sample,
}
_PUBLIC: Mapping[str, Read] = {"source": _source, "table": _text, "types": _texts, "unique": _unique}
_REQUIRED = {
    "source": 'Name the file, like source = "visits.csv", or a table, like "postgresql://db.example/clinic/visits".',
    "population": "Write how many people there are, like population = 100000, or by stratum in a table.",
    "size": "Write how many of them were drawn, like size = 5000, or by stratum in a table.",
    "unit": 'Name the column with the ids of the protected people, or write unit = "" if each row is one person.',
    "suffix": 'Write how file names end, like suffix = ".png".',
    "shape": "Write the shape that all files have, like shape = [1, 28, 28]: channels, height and width.",
}
