"""`discreet history`, `verify` and `report`: what happened, and whether the ledger is as it was written."""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Column
from rich.text import Text

from discreet.cli.declaration_commands import HERE, ConfigFile
from discreet.cli.output import FAILED, OutputFormat, draw_table, say, show_warning, stages
from discreet.cli.steward.budgets import account_of, read_ledger
from discreet.cli.verbs.verb_commands import CommandCall, command, print_result
from discreet.curator.config.enrolment import declared_ledger
from discreet.curator.config.toml_file import load
from discreet.errors import InvalidParameter
from discreet.ledger import Head, LedgerEntries
from discreet.ledger.serialization import write_loss
from discreet.presentation.ledger_report.report_page import write_report
from discreet.presentation.ledger_view.entry_view import EntryView, view_entry
from discreet.report.csv_text import csv_text
from discreet.report.display import printable
from discreet.requests.ledger_requests import GetHistory, Verify

_PAGE = "report.html"
_WIDE = 100  # columns from which a table is readable; below it every entry is a few lines of its own
_AGO = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}
_COLUMNS = ("sequence", "time", "kind", "account", "who", "project", "what", "sql", "epsilon", "share", "delta", "rho")

Anchor = Annotated[str | None, typer.Option(metavar="SEQ:HASH", help="A head that was printed earlier.")]
Target = Annotated[
    Path | None, typer.Argument(metavar="[TARGET]", help=f"A file, or a folder. Default: {_PAGE} in this folder.")
]
Out = Annotated[Path | None, typer.Option(hidden=True)]
Since = Annotated[
    str | None,
    typer.Option(metavar="DATE|7d", help="Only entries since this day (UTC), or from the last hours, days or weeks."),
]


@command(GetHistory)
def history(call: CommandCall, *, since: Since = None) -> None:
    """List the entries of the ledger: sequence, time, person, query or action, and cost."""
    start, wanted = "" if since is None else _start(since), call.request(GetHistory)
    with read_ledger(call.config) as ledger:
        account = wanted.name and account_of(ledger, wanted.name)
        entries = ledger.history(account, analyst=wanted.analyst, project=wanted.project)
    found = LedgerEntries(entry for entry in entries if entry.time >= start)
    if call.form is OutputFormat.JSON:
        print_result(GetHistory, found, call.form)
    elif call.form is OutputFormat.CSV:
        typer.echo(csv_text(_COLUMNS, map(_record, map(view_entry, found))), nl=False)
    else:
        _show([view_entry(entry) for entry in found])


@command(Verify)
def verify(call: CommandCall, *, anchor: Anchor = None) -> None:
    """Verify the whole ledger and print its head. Keep the head elsewhere, and pass it as --anchor the next time."""
    kept = None if anchor is None else parsed_head(anchor)
    with read_ledger(call.config) as ledger:
        head = ledger.verify()
    if kept is not None:
        # Not only to read: a ledger that lacks its anchor is frozen, which is an entry.
        with declared_ledger(load(call.config)) as ledger:
            ledger.check_anchor(kept)
    if call.form is OutputFormat.TABLE:
        say(f"The ledger is unchanged: {head.sequence} entries.")
        if kept is not None:
            say(f"It contains the anchor, entry {kept.sequence}.")
    print_result(Verify, head, call.form)


def report(target: Target = None, *, anchor: Anchor = None, out: Out = None, config: ConfigFile = HERE) -> None:
    """Write a page from the ledger alone: budgets over time, queries, and releases. Spends nothing."""
    if out is not None:
        show_warning(f"`--out` is now `discreet report {shlex.quote(str(out))}`. It works until version 0.4.")
    wanted = target or out or Path(_PAGE)
    page = wanted / _PAGE if wanted.is_dir() else wanted
    kept = None if anchor is None else parsed_head(anchor)
    with stages("Reading the ledger"), read_ledger(config) as ledger:
        found = write_report(ledger, page, anchor=kept)
    say(f"Wrote {page}, readable by its owner only.")
    typer.echo(str(found.head))
    if not found.passed:
        say(f"Verification failed: {found.problem or 'the ledger does not contain the anchor'}")
        raise typer.Exit(FAILED)


def parsed_head(text: str) -> Head:
    """Returns the head that was passed as --anchor.

    Raises:
        InvalidParameter: if it is none.
    """
    try:
        return Head.parse(text)
    except InvalidParameter as error:
        hint = "Pass the last line that an earlier `discreet verify` or `discreet backup` printed."
        raise InvalidParameter("anchor", text, error.condition, hint) from None


def _start(since: str) -> str:
    """Returns the first moment to show, in the ledger's format; moments are for people and do not order entries."""
    ago = _AGO.fullmatch(since)
    try:
        if ago is not None:
            moment = dt.datetime.now(dt.UTC) - dt.timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
        else:
            moment = dt.datetime.combine(dt.date.fromisoformat(since), dt.time())
    except (ValueError, OverflowError):
        hint = "Write e.g. --since 2026-11-01, --since 7d, --since 12h or --since 4w."
        raise InvalidParameter("--since", since, "to be a day, or a number of hours, days or weeks", hint) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def _show(entries: Sequence[EntryView]) -> None:
    """Prints a table, or on a narrow terminal a few lines for each entry."""
    console = Console(highlight=False)
    if console.width >= _WIDE:
        columns = [Column("sequence", justify="right"), Column("time", no_wrap=True)]
        columns += [Column(heading, overflow="fold") for heading in ("account", "who", "what", "cost")]
        rows = ((str(e.sequence), e.moment, e.account, e.who, e.what, e.cost_text) for e in entries)
        console.print(draw_table(columns, rows))
        return
    for entry in entries:
        parts = (str(entry.sequence), entry.moment, entry.account, entry.who, entry.cost_text)
        console.print(Text(printable("  ".join(filter(None, parts))), style="bold"))
        console.print(Padding(Text(printable(entry.what)), (0, 0, 0, 4)))


def _record(entry: EntryView) -> dict[str, Any]:
    """Returns an entry for a spreadsheet: amounts as exact fractions in columns of their own."""
    told = {name: getattr(entry, name, None) or None for name in _COLUMNS}
    return told | ({} if entry.cost is None else write_loss(entry.cost.details))
