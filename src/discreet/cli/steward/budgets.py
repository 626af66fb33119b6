"""`discreet budget`: what accounts, analysts and projects may spend, have spent and have left."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.output import Form, json_text, say
from discreet.cli.verbs.verb_commands import Call, command
from discreet.curator.config.enrolment import declared_book
from discreet.curator.config.toml_file import Config, load
from discreet.ledger import Book, Standing
from discreet.presentation.documents.json_values import Document
from discreet.presentation.documents.ledger_documents import account_document
from discreet.report.display import printable
from discreet.requests.ledger_requests import GetBudget

_HEADINGS = ("who", "role", "cap", "spent", "remaining")


@command(GetBudget, optional=("name",))
def budget(call: Call) -> None:
    """Show what each account, analyst and project may spend, has spent and has left, and lifetime spending."""
    with opened(load(call.config)) as book:
        accounts = [account_of(book, call.values["name"])] if call.values["name"] else book.accounts()
        standings = [book.standing(name) for name in accounts]
        told = [_document(book, standing) for standing in standings]
    if call.form is Form.JSON:
        typer.echo(json_text({"budgets": told}))
        return
    for one in standings:
        show(one)


def opened(config: Config) -> Book:
    """Returns the ledger that is declared, to be read; see `declared_book`."""
    return declared_book(config, read_only=True)


def account_of(book: Book, name: str) -> str:
    """Returns the account of a table, or the account of that name.

    Raises:
        InvalidParameter: if there is neither.
    """
    return book.account(book.tables().get(name, name)).name


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
