"""Adds what `discreet check` proposes to an existing discreet.toml: sections at its end, and nothing before them."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from discreet.curator.config.enrolment import toml_key
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.presentation.inspection.file_check import FileCheck
from discreet.presentation.inspection.proposed_config import (
    proposed_budget,
    proposed_table,
    proposed_types,
    require_columns,
    table_name,
    types_lines,
)

_KINDS = "tables", "public"
_NEW_FILE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """The new text of a discreet.toml.

    Attributes:
        text: all of it.
        what: what is added, in a few words.
        private: whether lines among it were read from the data, so that only the owner may read the file.
    """

    text: str
    what: str
    private: bool


def addition(text: str, found: FileCheck, *, folder: Path, name: str | None = None, account: str = "") -> Addition:
    """Returns a discreet.toml with one more table, or with the types of a table that has none.

    Args:
        text: the file as it is.
        found: a data file that was looked through.
        folder: where the discreet.toml is.
        name: of the table; else that of the table that is read from the data file, else as the file is called.
        account: whose budget a new table shares; one of its own unless given.

    Raises:
        InvalidParameter: if the table has types already, or the file cannot be read, or cannot take another section.
    """
    present = toml_content(text)
    kind, called = _place(present, found, folder, name)
    known = sections_of(present, kind).get(called)
    wanted = deepcopy(present)
    if known is not None:
        _check_untyped(f"{kind}.{called}", known, found)
        require_columns(found)
        sections_of(wanted, kind)[called]["types"] = dict(found.types)
        added, what = proposed_types(found, f"{kind}.{toml_key(called)}"), f"the types of {len(found.types)} columns"
        return Addition(text=join_sections(text, added, wanted), what=f"{what} to [{kind}.{called}]", private=False)
    added, shared = proposed_table(found, name=called, folder=folder, account=account), account or called
    if shared not in sections_of(present, "budgets"):
        added += f"\n{proposed_budget(shared)}"
    for section in ("tables", "budgets"):
        wanted[section] = {**sections_of(tomllib.loads(added), section), **sections_of(present, section)}
    kept = {section: parts for section, parts in wanted.items() if parts or section in present}
    return Addition(text=join_sections(text, added, kept), what=f"[tables.{called}]", private=True)


def read_declarations(config: Path) -> str:
    """Returns the text of a discreet.toml, with its line ends; "" if there is none.

    Raises:
        InvalidParameter: if it is no text in UTF-8.
    """
    try:
        return config.read_bytes().decode("utf-8") if config.exists() else ""
    except UnicodeDecodeError:
        raise InvalidParameter("config", str(config), "to be a text in UTF-8", "Name another file.") from None


def toml_content(text: str) -> dict[str, Any]:
    """Returns what a discreet.toml says.

    Raises:
        InvalidParameter: if it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameter("config", "this text", "to be TOML", f"{error}.") from None


def account_of(text: str, path: Path, folder: Path) -> str:
    """Returns the account of the table that is read from a data file; "" if there is none, or the text is no TOML."""
    try:
        tables = sections_of(tomllib.loads(text), "tables")
    except tomllib.TOMLDecodeError:
        return ""
    found = (str(told.get("account", name)) for name, told in tables.items() if _is_read_from(told, path, folder))
    return next(found, "")


def _place(present: Mapping[str, Any], found: FileCheck, folder: Path, name: str | None) -> tuple[str, str]:
    """Returns where the file declares a data file, or would: the kind of the table, and its name."""
    declared = [(kind, called, told) for kind in _KINDS for called, told in sections_of(present, kind).items()]
    for kind, called, told in declared:
        if called == name or (name is None and _is_read_from(told, found.path, folder, found.table)):
            return kind, called
    return "tables", name or table_name(found.named_after)


def _is_read_from(told: Any, path: Path, folder: Path, table: str | None = None) -> bool:
    if not isinstance(told, dict) or told.get("table") != table:
        return False
    source = told.get("source")
    places = source if isinstance(source, list) else [source]
    named = [folder / place for place in places if isinstance(place, str) and "://" not in place]
    return path.resolve() in [place.resolve() for place in named]


def sections_of(content: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Returns the sections of a kind, such as "tables"; none if the file writes something else there."""
    found = content.get(kind, {})
    return found if isinstance(found, dict) else {}


def _check_untyped(place: str, known: Any, found: FileCheck) -> None:
    """Refuses a table that has types: what is there is never written over."""
    types = known.get("types", {}) if isinstance(known, dict) else {}
    if not types:
        return
    missing = {column: kind for column, kind in found.types.items() if column not in types}
    if missing:
        hint = "\n".join((f"The file is unchanged. Paste these lines under [{place}.types]:", *types_lines(missing)))
        raise InvalidParameter(place, f"{len(missing)} columns without a type", "to be declared", hint)
    hint = "The file is unchanged. Name another table with --name, or write to another file with --config."
    raise InvalidParameter(place, "this table", "not to be declared yet", hint)


def join_sections(text: str, added: str, wanted: Mapping[str, Any]) -> str:
    """Returns the text with sections at its end, if it then says what it said and what is added, and nothing else.

    Raises:
        InvalidParameter: if it would not, as where the tables are written in one line.
    """
    joined = "".join(_lines(text, added))
    try:
        says = tomllib.loads(joined)
    except tomllib.TOMLDecodeError:
        says = None
    if says != wanted:
        hint = "The file is unchanged. Write to another file with --config, and copy what you need."
        raise InvalidParameter("config", "this text", "to take another section at its end", hint)
    return joined


def _lines(text: str, added: str) -> Iterator[str]:
    yield text
    yield "" if not text or text.endswith("\n") else "\n"
    yield "\n" if text.strip() else ""
    yield added


def write_addition(path: Path, found: Addition) -> None:
    """Writes a file in the place of the one that may be there, at once; for its owner alone if lines are private."""
    there = path.resolve()
    mode = 0o600 if found.private else there.stat().st_mode & 0o777 if there.exists() else _NEW_FILE
    fresh = there.with_name(f".{there.name}.{os.getpid()}.new")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(found.text)
            out.flush()
            os.fsync(out.fileno())
        fresh.chmod(mode)
        fresh.replace(there)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
