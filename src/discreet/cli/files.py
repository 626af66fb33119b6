"""`discreet check` and `public`: a steward looks into a file before it is protected, or declares it public."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.declaration_commands import HERE, ConfigFile
from discreet.cli.output import create_file, file_argument, say, stages
from discreet.presentation.inspection.config_addition import account_of, addition, read_declarations, write_addition
from discreet.presentation.inspection.file_check import FileCheck, check_file, mend_file
from discreet.presentation.inspection.proposed_config import proposed_config, table_name
from discreet.presentation.inspection.public_addition import public_addition

File = Annotated[Path, file_argument(metavar="FILE", help="A CSV file (also .csv.gz) or a Parquet file.")]
Unit = Annotated[str | None, typer.Option(help="The column of people's ids; '' if each row is one person.")]
Name = Annotated[str | None, typer.Option(help="The table's name in questions. Default: the file's name.")]
Mended = Annotated[Path | None, typer.Option("--mend", metavar="COPY", help="Write a repaired copy, and check it.")]
Account = Annotated[
    str, typer.Option(help="With --write: the account whose budget the table shares. Default: a new account.")
]
Table = Annotated[str | None, typer.Option(help="The table to inspect, if the file is a DuckDB database.")]
Write = Annotated[
    bool, typer.Option("--write", help="Write a discreet.toml, or add the table or its types to an existing one.")
]

Source = Annotated[str, typer.Argument(metavar="SOURCE", help="A CSV or Parquet file, or the address of a table.")]
Unique = Annotated[list[str] | None, typer.Option(help="A column in which no two rows agree, or A,B. Repeatable.")]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="COLUMN=TYPE", help="The type of a column. Repeatable. Default: as in the file."),
]


def public(
    source: Source, *, name: Name = None, unique: Unique = None, types: Types = None, config: ConfigFile = HERE
) -> None:
    """Add a public table to discreet.toml. Queries can join it, and its values can be keys. It needs no budget."""
    with stages("Reading"):
        folder, declared = config.absolute().parent, {"unique": unique or (), "types": types or ()}
        more = public_addition(read_declarations(config), source, folder=folder, name=name, **declared)
    write_addition(config, more)
    say(f"Added {more.what} to {config}. Queries can join the table.")


def check(
    file: File,
    *,
    unit: Unit = None,
    name: Name = None,
    table: Table = None,
    mend: Mended = None,
    write: Write = False,
    account: Account = "",
    config: ConfigFile = HERE,
) -> None:
    """Inspect a file before you protect it, for the steward's eyes only: types, unreadable cells, and whose rows."""
    with stages("Reading"):
        path = file if mend is None else mend_file(file, mend)
        found = check_file(path, unit=unit, table=table)
    typer.echo(str(found))
    if mend is not None:
        say(f"Wrote {path}, readable by its owner only.")
    elif found.mends:
        again = f"discreet check {shlex.quote(str(file))} --mend {_copy_name(file)}{' --write' if write else ''}"
        say(f"To write a repaired copy, run: {again}")
    if write:
        _write(config, found, name, account or _account_of_original(config, file, path))
    elif found.columns:
        again = f"discreet check {shlex.quote(str(path))} {_unit_option(found)}--write"
        what = "add it to" if config.exists() else "write"
        say(f"To {what} {'a discreet.toml for it' if what == 'write' else config}, run: {again}")


def _write(config: Path, found: FileCheck, name: str | None, account: str) -> None:
    """Writes a file readable by its owner only (comments may be private), or appends sections to an existing one."""
    folder = config.absolute().parent
    if config.exists():
        more = addition(read_declarations(config), found, folder=folder, name=name, account=account)
        write_addition(config, more)
        shown = " Only its owner may read the file now." if more.private else ""
        say(f"Added {more.what} in {config}.{shown} Read it, change it, then run: discreet protect")
        return
    text = proposed_config(found, name=name or table_name(found.named_after), folder=folder, account=account)
    create_file(config, text, mode=0o600, name="config", hint="Run it again.")
    say(f"Wrote {config}, readable by its owner only. Read it, change it, then run: discreet protect")


def _account_of_original(config: Path, original: Path, path: Path) -> str:
    """Whose budget a mended copy shares: the people in it are those of the file that it was made of."""
    if path == original or not config.exists():
        return ""
    shared = account_of(read_declarations(config), original, config.absolute().parent)
    if shared:
        say(f"The copy shares the budget of account {shared!r}, because {original} is declared there: same people.")
    return shared


def _unit_option(found: FileCheck) -> str:
    table = "" if found.table is None else f"--table {shlex.quote(found.table)} "
    if found.unit is None:
        return f"{table}--unit COLUMN (or '', if each row is one person) "
    return table if found.guessed else f"{table}--unit {shlex.quote(found.unit)} "


def _copy_name(file: Path) -> str:
    return shlex.quote(f"{file.name.split('.')[0]}-mended.csv")
