"""`discreet ledger`: make a ledger that several machines share, and move or copy a ledger from one place to another."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.output import say
from discreet.cli.steward.backups import AnchorFile, require_ledger, write_copy
from discreet.engines.postgres.roles import silent_statements
from discreet.ledger import Ledger, is_anchored, open_ledger
from discreet.ledger.store import postgres_tables

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def ledger() -> None:
    """Keep the ledger on a PostgreSQL server: print the SQL for it, move a ledger there, or copy a ledger."""


Source = Annotated[str, typer.Argument(metavar="FROM", help="A ledger file, or postgresql://host/database.")]
Target = Annotated[str, typer.Argument(metavar="TO", help="A new file, or a database without a ledger.")]
Schema = Annotated[str, typer.Option(help="The schema of the tables.")]
Writers = Annotated[list[str] | None, typer.Option("--writer", help="A role that writes the ledger. Repeatable.")]
Readers = Annotated[list[str] | None, typer.Option("--reader", help="A role that only reads the ledger. Repeatable.")]


@app.command()
def roles(
    database: Annotated[str, typer.Argument(metavar="DATABASE", help="A new database for the ledger.")],
    *,
    owner: Annotated[str, typer.Option(help="The role that owns the ledger, and does nothing else.")] = "ledger_owner",
    writer: Writers = None,
    reader: Readers = None,
) -> None:
    """Print the SQL that makes roles and a database, and keeps questions out of the log. A superuser runs it."""
    others = [postgres_tables.check_identifier(role) for role in (*(writer or ()), *(reader or ()))]
    for role in (postgres_tables.check_identifier(owner), *others):
        typer.echo(f"CREATE ROLE {role} LOGIN;")
    typer.echo(f"CREATE DATABASE {postgres_tables.check_identifier(database)} OWNER {owner};")
    for role in others:
        for line in silent_statements(role):
            typer.echo(f"{line};")


@app.command()
def sql(
    *,
    writer: Writers = None,
    reader: Readers = None,
    schema: Schema = postgres_tables.SCHEMA,
    tables: Annotated[bool, typer.Option(help="Also make the tables.")] = True,
) -> None:
    """Print the SQL that makes a ledger and grants roles their rights. The owner runs it once, with psql."""
    made = postgres_tables.tables_sql(postgres_tables.check_identifier(schema)) if tables else ""
    for role in writer or ():
        made += postgres_tables.grants_sql(role, schema=schema)
    for role in reader or ():
        made += postgres_tables.grants_sql(role, schema=schema, only_read=True)
    typer.echo(f"BEGIN;\n{made}COMMIT;")


@app.command()
def move(source: Source, target: Target, *, file: AnchorFile = None) -> None:
    """Move a ledger with its chain. The old ledger becomes read-only, so that no budget is spent twice."""
    require_ledger("FROM", source)
    with open_ledger(source, anchor=file if is_anchored(source) else "") as ledger:
        head = ledger.move(target)
    say(f"The ledger was moved and is unchanged: {head.sequence} entries. The old ledger takes no more charges.")
    say(f'Write this into discreet.toml: ledger = "{target}"')
    typer.echo(str(head))


@app.command()
def copy(source: Source, target: Target) -> None:
    """Write a verified copy of a ledger and print its head. Keep the copy, but never charge it."""
    require_ledger("FROM", source)
    with Ledger(source, read_only=True) as ledger:
        ledger.verify()
        head = write_copy(ledger, target)
    say(f"The copy has all entries of the ledger, unchanged: {head.sequence} entries.")
    typer.echo(str(head))
