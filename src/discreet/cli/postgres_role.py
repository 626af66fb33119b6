"""`discreet postgres-role`: the SQL that lets a curator read declared tables of a server, and do nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.declaration_commands import HERE, ConfigFile
from discreet.curator.config.server_tables import tables_on_servers
from discreet.curator.config.toml_file import load
from discreet.engines.postgres.roles import ROLE, role_statements
from discreet.errors import InvalidParameter
from discreet.server_address import ServerTable


def postgres_role(
    table: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE", help="postgresql://host/database/table. Default: the tables of discreet.toml."),
    ] = None,
    *,
    role: Annotated[
        str | None, typer.Option(help="The role's name. Default: the user in the address, else discreet_reader.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A column that the role may read, with one TABLE. Repeatable.")
    ] = None,
    seconds: Annotated[int, typer.Option(help="Seconds after which the server stops a statement of the role.")] = 600,
    create: Annotated[bool, typer.Option(help="Also make the role.")] = True,
    config: ConfigFile = HERE,
) -> None:
    """Print SQL, for psql, that makes a role which can read tables of a PostgreSQL server and do nothing else."""
    if column and len(table or ()) != 1:
        hint = "Name one TABLE. Tables of discreet.toml declare their columns as types."
        raise InvalidParameter("--column", column[0], "to come with one TABLE", hint)
    tables = [(ServerTable.of(url), column or ()) for url in table] if table else tables_on_servers(load(config))
    if len({str(each.server) for each, _ in tables}) != 1:
        hint = "Name the tables one by one, like postgresql://db.example/clinic/visits."
        raise InvalidParameter("TABLE", table or str(config), "to name tables of one database", hint)
    lines: dict[str, None] = {}
    for each, columns in tables:
        who = role or each.server.user or ROLE
        lines |= dict.fromkeys(role_statements(each, columns, role=who, seconds=seconds))
    typer.echo("BEGIN;")
    for line in lines:
        if create or not line.startswith("CREATE ROLE"):
            typer.echo(f"{line};")
    typer.echo("COMMIT;")
