"""`discreet report`: what the ledger says, as a page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import FAILED, say, stages
from discreet.curator.config.enrolment import declared_book
from discreet.curator.config.toml_file import load
from discreet.ledger import Head
from discreet.presentation.ledger_report.report_page import write_report

_PAGE = Path("report.html")


def report(
    *,
    out: Annotated[Path, typer.Option(help="The page, readable by its owner only.", dir_okay=False)] = _PAGE,
    anchor: Annotated[
        str | None,
        typer.Option(metavar="SEQ:HASH", help="A head that was printed earlier, to compare."),
    ] = None,
    config: ConfigFile = HERE,
) -> None:
    """Write a page from the ledger alone: budgets over time, who asked what, what was released; spends nothing."""
    kept = None if anchor is None else Head.parse(anchor)
    with stages("Reading the ledger"), declared_book(load(config), read_only=True) as book:
        found = write_report(book, out, anchor=kept)
    say(f"Wrote {out}, readable by its owner only.")
    typer.echo(str(found.head))
    if not found.passed:
        say(f"The ledger is not as it was written: {found.problem or 'it does not contain the anchor'}")
        raise typer.Exit(FAILED)
