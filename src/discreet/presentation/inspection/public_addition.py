"""Adds a public table to a discreet.toml: its file may be read, so that types are proposed and declarations tested."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.curator.catalog.catalog import Catalog
from discreet.curator.config.enrolment import toml_key
from discreet.curator.config.toml_file import Config, as_given, parse
from discreet.engines.by_source import by_source, engine_at
from discreet.engines.duckdb.sources import PARQUET
from discreet.errors import InvalidParameter
from discreet.hint_text import Hint
from discreet.ledger import Ledger
from discreet.presentation.inspection.config_addition import Addition, join_sections, sections_of, toml_content
from discreet.presentation.inspection.file_check import EACH_ROW, check_file
from discreet.presentation.inspection.proposed_config import (
    quote_text,
    relative_path,
    require_columns,
    table_name,
    types_lines,
)


def public_addition(
    text: str, source: str, *, folder: Path, name: str | None, unique: Sequence[str], types: Sequence[str]
) -> Addition:
    """Returns a discreet.toml with one more public table, which was registered on trial.

    Args:
        text: the file as it is; "" if there is none.
        source: a file, or the address of a table.
        folder: where the discreet.toml is.
        name: of the table; as the file is called unless given.
        unique: columns in which no two rows agree; "year,region" for several together.
        types: of columns, such as "ward=text"; those of a CSV file are proposed unless given.

    Raises:
        InvalidParameter: if the table is declared already, or a declaration does not fit what is in it.
    """
    present, called = toml_content(text), name or table_name(Path(source))
    _check_new(present, called)
    declared = _types(source, dict(map(_type_of_column, types)))
    groups = [one.split(",") if "," in one and one not in declared else one for one in unique]
    added = _section(called, source if "://" in source else relative_path(Path(source), folder), groups, declared)
    wanted = {**present, "public": {**sections_of(present, "public"), **sections_of(tomllib.loads(added), "public")}}
    joined = join_sections(text, added, wanted)
    _register_on_trial(parse(joined, folder), called)
    return Addition(text=joined, what=f"[public.{toml_key(called)}]", private=False)


def _check_new(present: Mapping[str, Any], name: str) -> None:
    """Refuses the name of a table that the file declares; letter case does not matter in queries."""
    for kind in ("tables", "public"):
        for known in sections_of(present, kind):
            if known.casefold() == name.casefold():
                hint = Hint(f"The file has [{kind}.{toml_key(known)}], and is unchanged. Pass another {{name:NAME}}.")
                raise InvalidParameter("name", name, "not to be declared yet", hint)


def _types(source: str, given: Mapping[str, str]) -> dict[str, str]:
    """Returns the types of columns as given; of a CSV file also the others, after a look at its cells."""
    if "://" in source or Path(source).suffix.lower() in PARQUET:
        return dict(given)
    found = check_file(source, unit=EACH_ROW)
    require_columns(found)
    for column in given:
        if column not in found.types:
            known = ", ".join(found.types)
            raise InvalidParameter("types", column, "to be a column of the file", f"Its columns are {known}.")
    return dict(found.types) | dict(given)


def _section(name: str, source: str, unique: Sequence[Any], types: Mapping[str, str]) -> str:
    place = f"public.{toml_key(name)}"
    lines = ["# Public: queries can join it, and it needs no budget.", f"[{place}]", f"source = {quote_text(source)}"]
    lines += [f"unique = {json.dumps(unique, ensure_ascii=False)}"] if unique else []
    lines += ["", f"[{place}.types]", *types_lines(types)] if types else []
    return "\n".join((*lines, ""))


def _type_of_column(text: str) -> tuple[str, str]:
    """Returns a column with its type; its name may hold an equals sign, and no type does."""
    column, equals, kind = text.rpartition("=")
    if not equals or not column:
        raise InvalidParameter("types", text, "to be COLUMN=TYPE", Hint("For example {types:ward=text}."))
    return column, kind


def _register_on_trial(config: Config, name: str) -> None:
    """Registers a table of a file with a catalog and a ledger that exist in memory only."""
    (table,) = (one for one in config.public if one.name == name)
    engine = engine_at(config.engine) or by_source()
    try:
        with Ledger() as scratch:
            catalog = Catalog(scratch, engine, config.today)
            catalog.public(as_given(table.source), name=name, types=table.types, unique=table.unique, table=table.table)
    finally:
        engine.close()
