"""`discreet init` and `protect`: the declarations of tables, budgets and analysts, and what is made of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.output import WRONG_USAGE, create_file, draw_table, say
from discreet.curator.config.declared_changes import TableChange, declared_changes
from discreet.curator.config.enrolment import check_budgets, check_sources
from discreet.curator.config.toml_file import FILE, Config, load
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.lazy import rich_console, rich_table
from discreet.privacy import Loss
from discreet.report.display import printable
from discreet.sql.examples import quote_name

ConfigFile = Annotated[Path, typer.Option("--config", help="The declarations.", dir_okay=False)]
HERE = Path(FILE)

TEMPLATE = """\
# What is protected, for whom, and how much may be spent. Everything here is public; none of it is read from the data.
# Remove the leading "#" of what you need, then run: discreet protect

ledger = "discreet.ledger"      # the ledger; made by `discreet protect`, readable by its owner only; or
#                               # "postgresql://host/database", which several machines share
# anchor = "/elsewhere/discreet.anchor"   # remembers the end of the ledger, so that an older copy of it is refused.
#                               # By default in ~/.local/state/discreet. Keep it out of the ledger's backup.
# engine = "postgresql://db.example/clinic"   # optional: the database that holds all tables; `source` is a name there

# --- Tables -----------------------------------------------------------------------------------------------------------
# [tables.visits]
# source = "visits.csv"         # Parquet or CSV, relative to this file, or a table of a PostgreSQL server or a Spark
#                               # cluster, like "postgresql://db.example/clinic/visits", "spark://head:7077/visits"
# unit = "patient_id"           # the column of people's ids; "" if each row is one person;
#                               # ["person", "day"] if the id is in several columns;
#                               # "order_id -> orders.id" if the id is in another table, found by that key
# account = "patients"          # tables about the same people share one account; default: the table's own name
# max_groups = 3                # one person counts in at most this many groups of an answer ...
# max_rows = 1                  # ... with at most this many rows in each group
# identity = "visits of 2026"   # a name for the data. Tables of one identity share an account. Another identity says
#                               # that a file, which another table was read from, now holds other people.
# neighbours = "add_remove"     # or "replace"
# version = "2026-11"           # change it when the data change: stored answers are replayed within one version only
#
# [tables.visits.types]         # needed for CSV: int, float, bool, text, date, timestamp
# patient_id = "text"
# ward = "text"
# age = "int"
# charge = "float"
#
# [tables.visits.bounds]        # public limits of numbers and dates; without them, a question pays to find bounds
# age = [0, 120]
# charge = [0, 50000]
#
# [tables.visits.keys]          # public groups: all are shown, zeros included
# ward = ["A", "B", "C"]        # or "wards.ward": the values of a column of a public table

# --- Public tables: they need no protection ---------------------------------------------------------------------------
# [public.wards]
# source = "wards.csv"
# types = { ward = "text" }     # needed for CSV

# --- Budgets: one for each account, with which it is opened. Later, run: discreet amend -------------------------------
# [budgets.patients]
# epsilon = "2"                 # epsilon; epsilon and delta; rho; or rho and delta
# delta = "1e-6"                # needed for groups that are not declared as keys

# --- Analysts: without any, every name may ask ------------------------------------------------------------------------
# [analysts.ana.patients]       # ana may ask on the account "patients" ...
# epsilon = "0.5"               # ... and spend at most this, with the same share of delta; without, she has no cap

# --- Projects: questions asked with --project count against these caps, too -------------------------------------------
# [projects.asthma.patients]
# epsilon = "0.25"
"""
"""The discreet.toml that `discreet init` writes: every key, explained, nothing switched on."""


def init(*, config: ConfigFile = HERE) -> None:
    """Write a commented discreet.toml to fill in. An existing file is never overwritten."""
    hint = "Edit that file, or name another file with --config."
    create_file(config, TEMPLATE, mode=0o666, name="config", hint=hint)
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
    say(f"Protected. Ask with: {_first_question(declared)}")


def _first_question(declared: Config) -> str:
    """Returns a question about the first table, quoted for a shell."""
    first = quote_name(printable(declared.tables[0].name)) if declared.tables else "..."
    question = shlex.quote(f"SELECT COUNT(*) AS n FROM {first}")  # noqa: S608 - is printed, and never run here
    return f"discreet ask {question} --epsilon 0.1"


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


def _draw_declarations(declared: Config, budgets: Mapping[str, Loss]) -> rich_table.Table:
    rows = []
    for table in declared.tables:
        unit = table.unit if isinstance(table.unit, str) else ", ".join(table.unit or ("each row",))
        rows.append((table.name, table.account, unit, str(budgets[table.account])))
    rows += [(public.name, "", "", "public") for public in declared.public]
    return draw_table(("table", "account", "unit", "budget"), rows)
