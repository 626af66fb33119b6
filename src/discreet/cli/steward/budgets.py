"""`discreet budget`: what accounts, analysts and projects may spend, have spent and have left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import Json, json_text, say
from discreet.curator.config.enrolment import declared_book
from discreet.curator.config.toml_file import Config, load
from discreet.ledger import Book, Standing
from discreet.presentation.documents import account_document
from discreet.presentation.documents.json_values import Document
from discreet.report.display import printable

Account = Annotated[str | None, typer.Option(help="Only this account.")]

_HEADINGS = ("who", "role", "cap", "spent", "remaining")


def budget(*, account: Account = None, json: Json = False, config: ConfigFile = HERE) -> None:
    """Show what each account, analyst and project may spend, has spent and has left, and lifetime spending."""
    with opened(load(config)) as book:
        standings = [book.standing(name) for name in ([account] if account else book.accounts())]
        told = [_document(book, standing) for standing in standings]
    if json:
        typer.echo(json_text({"budgets": told}))
        return
    for one in standings:
        show(one)


def opened(config: Config) -> Book:
    """Returns the ledger that is declared, to be read; see `declared_book`."""
    return declared_book(config, read_only=True)


def show(standing: Standing) -> None:
    """Prints an account, and below it everybody on it; cells fold on narrow terminals."""
    say(f"Account {standing.account}")
    console = Console(highlight=False)
    console.print(_grid(("", ""), list(standing.facts.items())))
    if standing.lines:
        console.print()
        console.print(_grid(_HEADINGS, standing.lines))
    if standing.listed:
        say("Only those who were appointed may ask.")


def _grid(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    drawn = Table(highlight=False, box=None, pad_edge=False, show_header=any(headings), padding=(0, 2, 0, 0))
    for heading in headings:
        drawn.add_column(heading, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    return drawn


def _document(book: Book, standing: Standing) -> Document:
    tables = [table for table, account in book.tables().items() if account == standing.account]
    return account_document(book.account(standing.account), tables, own=None, standing=standing)
