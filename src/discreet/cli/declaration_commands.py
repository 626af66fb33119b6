"""`discreet init` and `protect`: the declarations of tables, budgets and analysts, and what is made of them."""

from __future__ import annotations

import datetime as dt
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import WRONG_USAGE, create_file, draw_table, say
from discreet.curator.config.declared_changes import TableChange, declared_changes
from discreet.curator.config.enrolment import check_budgets, check_sources, declared_ledger
from discreet.curator.config.toml_file import FILE, Config, load
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.lazy import rich_console, rich_table
from discreet.ledger.cost import meaning
from discreet.privacy import AnyBudget
from discreet.privacy.budget import split
from discreet.report.display import printable
from discreet.sql.examples import quote_name

ConfigFile = Annotated[Path, typer.Option("--config", help="The declarations.", dir_okay=False)]
HERE = Path(FILE)

TEMPLATE = Path(__file__).with_name("new_discreet.toml")
"""The discreet.toml that `discreet init` writes: every key, explained, nothing switched on."""


def init(*, config: ConfigFile = HERE) -> None:
    """Write a commented discreet.toml to fill in. An existing file is never overwritten."""
    hint = "Edit that file, or name another file with --config."
    create_file(config, TEMPLATE.read_text("utf-8"), mode=0o666, name="config", hint=hint)
    say(f"Wrote {config}. Declare your tables in it, then run: discreet protect")


Yes = Annotated[bool, typer.Option("--yes", help="Enter changed declarations without asking.")]


def protect(*, yes: Yes = False, config: ConfigFile = HERE) -> None:
    """Open accounts, attach tables and give analysts access, as declared. Shows and enters changed declarations."""
    declared = load(config)
    check_sources(declared)
    check_budgets(declared)
    changes = declared_changes(declared)
    _show(changes)
    replacing = {change.table: change.before for change in changes if change.declared}
    if replacing and not yes:
        _confirm(len(replacing))
    Curator.from_config(config, replacing=replacing).close()
    rich_console.Console().print(_draw_declarations(declared, check_budgets(declared)))
    with declared_ledger(declared, read_only=True) as ledger:
        for name in declared.budgets:
            now = ledger.balance(name)
            told = meaning(ledger.account(name), now.total, now.period, renews=bool(now.renews))
            say(f"Account {name}: {told}")
    say(f"Protected. Ask with: {_first_question(declared)}")


def _first_question(declared: Config) -> str:
    """Returns a question about the first table, quoted for a shell."""
    first = quote_name(printable(declared.tables[0].name)) if declared.tables else "..."
    question = shlex.quote(f"SELECT COUNT(*) AS n FROM {first}{_dates(declared)}")  # noqa: S608 - printed, never run
    return f"discreet ask {question} --epsilon 0.1"


def _dates(declared: Config) -> str:
    """Returns the condition of a question about the first table that its budget needs; empty if it needs none."""
    table = declared.tables[0] if declared.tables else None
    budget = None if table is None else declared.budgets.get(table.account or table.name)
    schedule = None if budget is None else split(budget)[1]
    if schedule is None or not schedule.of:
        return ""
    this = schedule.period_of(dt.date.today())
    column = quote_name(printable(schedule.of))
    return f" WHERE {column} >= DATE '{this}' AND {column} < DATE '{schedule.after(this)}'"


def _show(changes: Sequence[TableChange]) -> None:
    """Prints what is declared otherwise than in the ledger, or is about other data."""
    for change in changes:
        say(f"Table {change.table} differs from the ledger:")
        for line in (*change.declared, *change.data):
            say(f"  {line}")


def is_asked() -> bool:
    """Returns whether a person can answer at the terminal; a script is never waited for."""
    return sys.stdin.isatty()


def _confirm(tables: int) -> None:
    """Asks whether declarations shall be replaced.

    Raises:
        InvalidParameter: if there is no terminal to ask at.
        Exit: if the answer is no.
    """
    if not is_asked():
        hint = "Nothing was changed. Review the difference. To enter it in the ledger, run: discreet protect --yes"
        raise InvalidParameter("--yes", None, "to be given where no terminal can ask you", hint)
    what = "this declaration" if tables == 1 else f"these {tables} declarations"
    if not typer.confirm(f"Enter {what} in the ledger? Stored answers stay as they are."):
        say("Nothing was changed.")
        raise typer.Exit(WRONG_USAGE)


def _draw_declarations(declared: Config, budgets: Mapping[str, AnyBudget]) -> rich_table.Table:
    rows = []
    for table in declared.tables:
        unit = table.unit if isinstance(table.unit, str) else ", ".join(table.unit or ("each row",))
        rows.append((table.name, table.account, unit, str(budgets[table.account])))
    rows += [(public.name, "", "", "public") for public in declared.public]
    return draw_table(("table", "account", "unit", "budget"), rows)
