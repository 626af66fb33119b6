"""`discreet audit`: verdicts on the answers of declared tables, as a table, as JSON, as a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column
from rich.text import Text

from discreet.audit import QueryAudit, audit_table
from discreet.audit.queries.query_verdict import CANNOT_SHOW, audit_page
from discreet.cli.declaration_commands import HERE, ConfigFile
from discreet.cli.output import FAILED, Json, draw_table, file_option, print_json, stages, write_page
from discreet.curator.config.toml_file import Config, load
from discreet.errors import InvalidParameter
from discreet.progress import stage
from discreet.report.display import amount, percent, printable


def audit(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="A declared table. Default: all declared tables.")
    ] = None,
    *,
    sql: Annotated[list[str] | None, typer.Option(help="A question to audit. Repeatable.")] = None,
    epsilon: Annotated[str, typer.Option(help="What each question may cost.")] = "1",
    delta: Annotated[str | None, typer.Option(help="Delta of questions with private groups.")] = None,
    neighbours: Annotated[int, typer.Option(help="Pairs of neighbouring tables to try.")] = 20,
    rows: Annotated[int, typer.Option(help="Rows to take from a larger table, with all rows of each unit.")] = 2000,
    json: Json = False,
    report: Annotated[Path | None, file_option(help="Also write a page for all readers.")] = None,
    config: ConfigFile = HERE,
) -> None:
    """Test whether answers give a person away. Charges nothing and shows no data. Ends with 5 if they do."""
    found = audit_tables(config, table, sql or (), epsilon=epsilon, delta=delta, neighbours=neighbours, rows=rows)
    passed = all(each.passed for each in found)
    if report is not None:
        write_page(audit_page(found), report, "report")
    if json:
        print_json({"passed": passed, "audits": [each.record for each in found]})
    else:
        for each in found:
            _show(each, Console())
        _explain(Console())
    if not passed:
        raise typer.Exit(FAILED)


def audit_tables(
    config: Path, table: str | None, sql: Sequence[str], *, epsilon: str, delta: str | None, neighbours: int, rows: int
) -> list[QueryAudit]:
    """Audits one table, or all that are declared, and shows on a terminal how many of the pairs are done."""
    tried = partial(audit_table, config, sql=sql, epsilon=epsilon, delta=delta, neighbours=neighbours, rows=rows)
    found = []
    with stages("Auditing"):
        for name in _select_tables(load(config), table, sql):
            stage(f"Auditing {name}")
            found.append(tried(name, progress=partial(_show_progress, name)))
    return found


def _show_progress(name: str, done: int, wanted: int) -> None:
    stage(f"Auditing {name}: {done} of {wanted} pairs")


def _select_tables(config: Config, table: str | None, sql: Sequence[str]) -> list[str]:
    """Returns the tables to audit; with questions one, by which the account is known.

    Raises:
        InvalidParameter: if a question is given and no table, where there are several accounts.
    """
    if table is not None:
        return [table]
    names = [each.name for each in config.tables]
    if not sql:
        return names
    if len({each.account for each in config.tables}) > 1:
        raise InvalidParameter("TABLE", None, "to be named with --sql", f"Name one of: {', '.join(names)}.")
    return names[:1]


def _show(audit: QueryAudit, console: Console) -> None:
    """Prints the verdict, the questions, and what was found against them."""
    style = "bold green" if audit.passed else "bold red"
    console.print(Text(f"{printable(audit.table)}: {audit.headline}.", style=style), soft_wrap=True)
    numbers = [Column(heading, justify="right") for heading in ("share of price used", "epsilon at least")]
    rows = (
        (each.sql, percent(each.share) if each.answered else each.status, amount(round(each.epsilon_lower, 4)))
        for each in audit.questions
    )
    console.print(draw_table([Column("question", overflow="fold"), *numbers], rows))
    for violation in audit.violations[:10]:
        console.print(Text(f"- {printable(str(violation))}", style="red"), soft_wrap=True)


def _explain(console: Console) -> None:
    """Prints what an audit cannot show."""
    console.print(Text("What an audit cannot show:"))
    for line in CANNOT_SHOW:
        console.print(Text(f"- {line}", style="dim"), soft_wrap=True)
    console.print(Text("Nothing was charged. These figures depend on the data: show them to stewards only."))
