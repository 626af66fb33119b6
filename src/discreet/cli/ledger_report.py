"""`discreet report`: what the book says, as a page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import FAILED, say, stages
from discreet.curator.book_report.report_page import write_report
from discreet.curator.config.toml_file import load
from discreet.errors import InvalidParameter
from discreet.ledger import Head, is_there

_PAGE = Path("report.html")


def report(
    *,
    out: Annotated[Path, typer.Option(help="The page, readable by its owner only.", dir_okay=False)] = _PAGE,
    anchor: Annotated[
        str | None, typer.Option(metavar="SEQ:HASH", help="A head that was printed earlier; the book must contain it.")
    ] = None,
    config: ConfigFile = HERE,
) -> None:
    """Write a page from the book alone: budgets over time, who asked what, what was released; spends nothing."""
    place, kept = load(config).ledger, None if anchor is None else Head.parse(anchor)
    if not is_there(place):
        raise InvalidParameter("ledger", place, "to exist", "Run `discreet protect` first.")
    with stages("Reading the book"):
        found = write_report(place, out, anchor=kept)
    say(f"Wrote {out}, readable by its owner only.")
    typer.echo(str(found.head))
    if not found.passed:
        say(f"The book is not as it was written: {found.problem or 'it does not contain the anchor'}")
        raise typer.Exit(FAILED)
