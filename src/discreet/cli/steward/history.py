"""`discreet history` and `verify`: what happened, and whether the book is as it was written."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discreet.cli.declarations import HERE, ConfigFile
from discreet.cli.output import Csv, Form, Json, form, json_text, say
from discreet.cli.steward.budgets import Account, opened
from discreet.curator.config.enrolment import declared_book
from discreet.curator.config.toml_file import load
from discreet.errors import InvalidParameter
from discreet.ledger import Entry, Head
from discreet.ledger.redeclaration import attached
from discreet.ledger.serialization import read_loss
from discreet.presentation.documents.query_text import asked_text, outputs_text
from discreet.presentation.ledger_report.entry_words import anchor_words
from discreet.report.csv_text import csv_text
from discreet.report.display import printable

_WIDE = 100  # columns from which a table is readable; below it every entry is a few lines of its own
_AGO = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}
_COLUMNS = ("sequence", "time", "kind", "account", "who", "project", "what", "sql", "epsilon", "delta", "rho")

Since = Annotated[
    str | None, typer.Option(metavar="DATE|7d", help="Only from this day (UTC) on, or of so many hours, days or weeks.")
]


def history(
    *,
    account: Account = None,
    analyst: Annotated[str | None, typer.Option(help="Only what this name did, and what was done to it.")] = None,
    project: Annotated[
        str | None, typer.Option(help="Only what was charged for this project or allotted to it.")
    ] = None,
    since: Since = None,
    json: Json = False,
    csv: Csv = False,
    config: ConfigFile = HERE,
) -> None:
    """List the entries of the book: sequence, time, who, what was asked or done, cost."""
    chosen, start = form(as_json=json, as_csv=csv), "" if since is None else _start(since)
    with opened(load(config)) as book:
        entries = book.history(account and book.account(account).name, analyst=analyst, project=project)
    found = [entry for entry in entries if entry.time >= start]
    if chosen is Form.JSON:
        typer.echo(json_text([_fields(entry) for entry in found]))
    elif chosen is Form.CSV:
        typer.echo(csv_text(_COLUMNS, map(_record, found)), nl=False)
    else:
        _show(found)


def verify(
    *,
    anchor: Annotated[str | None, typer.Option(metavar="SEQ:HASH", help="A head that was printed earlier.")] = None,
    config: ConfigFile = HERE,
) -> None:
    """Walk the whole book and print its head; keep that elsewhere, and pass it as --anchor the next time."""
    kept = None if anchor is None else parsed_head(anchor)
    declared = load(config)
    with opened(declared) as book:
        head = book.verify()
    if kept is not None:
        with declared_book(declared) as book:  # a book that lacks its anchor is frozen, which is an entry
            book.check_anchor(kept)
    say(f"The book is as it was written: {head.sequence} entries.")
    if kept is not None:
        say(f"It contains the anchor, entry {kept.sequence}.")
    typer.echo(str(head))


def parsed_head(text: str) -> Head:
    """Returns the head that somebody passed as --anchor.

    Raises:
        InvalidParameter: if it is none.
    """
    try:
        return Head.parse(text)
    except InvalidParameter as error:
        hint = "Pass the last line that an earlier `discreet verify` or `discreet backup` printed."
        raise InvalidParameter("anchor", text, error.condition, hint) from None


def _start(since: str) -> str:
    """The first moment that is shown, as the book writes moments; they are there for people, and order no entries."""
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


def _show(entries: Sequence[Entry]) -> None:
    """Prints a table, or on a narrow terminal a few lines for each entry."""
    console = Console(highlight=False)
    if console.width >= _WIDE:
        console.print(_table(entries))
        return
    for entry in entries:
        heading = "  ".join(filter(None, (str(entry.sequence), _time(entry), entry.account, entry.who, _cost(entry))))
        console.print(Text(printable(heading), style="bold"))
        console.print(Padding(Text(printable(_what(entry))), (0, 0, 0, 4)))


def _table(entries: Sequence[Entry]) -> Table:
    """Returns a table with a line for each entry."""
    drawn = Table(highlight=False)
    drawn.add_column("sequence", justify="right")
    drawn.add_column("time", no_wrap=True)
    for heading in ("account", "who", "what", "cost"):
        drawn.add_column(heading, overflow="fold")
    for entry in entries:
        cells = str(entry.sequence), _time(entry), entry.account, entry.who, _what(entry), _cost(entry)
        drawn.add_row(*(Text(printable(cell)) for cell in cells))
    return drawn


def _fields(entry: Entry) -> dict[str, Any]:
    """An entry for programs: the question also as a plan, in full."""
    content = entry.content
    return {
        "sequence": entry.sequence,
        "time": entry.time,
        "kind": entry.kind,
        "account": entry.account,
        "who": entry.who,
        "project": content.get("project"),
        "what": _what(entry),
        "sql": content.get("sql"),
        "question": content.get("question"),
        "cost": content.get("cost"),
        "about": entry.about or None,
        "hash": entry.hash,
    }


def _record(entry: Entry) -> dict[str, Any]:
    """The same for a spreadsheet: amounts as exact fractions in columns of their own."""
    return dict.fromkeys(_COLUMNS) | _fields(entry) | (entry.content.get("cost") or {})


def _time(entry: Entry) -> str:
    return entry.time[:19].replace("T", " ")


def _what(entry: Entry) -> str:
    """Returns what an entry is about, in a few words; of a charge, what was asked, on one line."""
    said = _WORDS.get(entry.kind, _nothing)(entry.content) if entry.about == 0 else f"of entry {entry.about}"
    return " ".join(f"{entry.kind} {said}".split())


def _cost(entry: Entry) -> str:
    """Returns the cost of a charge, or of charges that were lost; nothing of other entries."""
    cost = entry.content.get("cost") if entry.kind in ("charge", "recover") else None
    return "" if cost is None else str(read_loss(cost))


def _nothing(_: dict[str, Any]) -> str:
    return ""


def _budget(content: dict[str, Any]) -> str:
    return str(read_loss(content["budget"]))


def _noted(words: str, content: dict[str, Any]) -> str:
    note = content.get("note")
    return f"{words}: {note}" if note else words


def _capped(words: str, content: dict[str, Any]) -> str:
    cap = content.get("cap")
    return f"{words}, cap {read_loss(cap)}" if cap else words


def _charged(content: dict[str, Any]) -> str:
    if "beside" in content:
        return f"beside entry {content['beside']}: {outputs_text(content['question'])}"
    return asked_text(content)


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "open": lambda content: f"with {_budget(content['account'])}",
    "attach": attached,
    "amend": lambda content: _noted(f"to {_budget(content)}", content),
    "renew": lambda content: _noted(f"with {_budget(content)}", content),
    "unlock": lambda content: _noted("", content),
    "appoint": lambda content: _capped(f"{content['name']} as {content['role']}", content),
    "allot": lambda content: _noted(_capped(f"to project {content['project']}", content), content),
    "anchor": anchor_words,
    "service": lambda content: " ".join(filter(None, (content["act"], content.get("key"), "of", content["about"]))),
    "charge": _charged,
    "recover": lambda content: _noted(f"what was lost up to entry {content['anchor'].split(':')[0]}", content),
    "claim": lambda content: f"entry {content['charge']}, to run it again",
    "interrupt": lambda content: f"of entry {content['charge']}, whose charge stays",
}
