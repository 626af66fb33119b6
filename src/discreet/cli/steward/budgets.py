"""`discreet budget`: what accounts, analysts and projects may spend, have spent and have left."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from discreet.cli.output import OutputFormat, draw_table, print_json, say
from discreet.cli.verbs.verb_commands import CommandCall, command, show_details
from discreet.curator.config.enrolment import declared_ledger
from discreet.curator.config.toml_file import load
from discreet.ledger import Ledger, Standing
from discreet.presentation.documents.ledger_documents import account_document
from discreet.presentation.documents.result_documents import Document
from discreet.requests.ledger_requests import GetBudget

_HEADINGS = ("who", "role", "cap", "spent", "remaining")


@command(GetBudget, optional=("name",))
def budget(call: CommandCall) -> None:
    """Show what each account, analyst and project may spend and has spent, what remains, and lifetime spending."""
    with read_ledger(call.config) as ledger:
        accounts = [account_of(ledger, call.values["name"])] if call.values["name"] else ledger.accounts()
        standings = [ledger.standing(name) for name in accounts]
        told = [_document(ledger, standing) for standing in standings]
    if call.form is OutputFormat.JSON:
        print_json({"budgets": told})
        return
    for one in standings:
        show(one)
        show_details(call, one.computed)


def read_ledger(config: Path) -> Ledger:
    """Returns the ledger that a file declares, to be read; see `declared_ledger`."""
    return declared_ledger(load(config), read_only=True)


def account_of(ledger: Ledger, name: str) -> str:
    """Returns the account of a table, or the account of that name.

    Raises:
        InvalidParameter: if there is neither.
    """
    return ledger.account(ledger.tables().get(name, name)).name


def show(standing: Standing) -> None:
    """Prints an account, and below it all people and projects on it; cells fold on narrow terminals."""
    say(f"Account {standing.account}")
    console = Console(highlight=False)
    console.print(_grid(("", ""), standing.facts.items()))
    if standing.lines:
        console.print()
        console.print(_grid(_HEADINGS, standing.lines))
    if standing.listed:
        say("Only appointed people may ask.")


def _grid(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    columns = [Column(heading, overflow="fold") for heading in headings]
    return draw_table(columns, rows, box=None, pad_edge=False, show_header=any(headings), padding=(0, 2, 0, 0))


def _document(ledger: Ledger, standing: Standing) -> Document:
    tables = [table for table, account in ledger.tables().items() if account == standing.account]
    return account_document(ledger.account(standing.account), tables, own=None, standing=standing)
