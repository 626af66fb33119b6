"""`discreet audit`: verdicts on the answers of declared tables, as a table, as JSON, as a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from discreet.audit import QueryAudit, protected
from discreet.audit.queries.finding import CANNOT_SHOW, audit_page
from discreet.cli.words import number
from discreet.curator.config.toml_file import Config, load
from discreet.errors import InvalidParameter
from discreet.report.display import percent, printable


def audited(
    config: Path,
    table: str | None,
    sql: Sequence[str],
    *,
    epsilon: str,
    delta: str | None,
    neighbours: int,
    rows: int,
) -> list[QueryAudit]:
    """Audits one table, or all that are declared, with a bar that shows how many pairs are done."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    found = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        for name in _chosen(load(config), table, sql):
            task = bar.add_task(f"Auditing {printable(name)}", total=neighbours)

            def advance(done: int, total: int, task: object = task) -> None:
                bar.update(task, completed=done, total=total)  # type: ignore[arg-type]

            found.append(
                protected(
                    config,
                    name,
                    sql=sql,
                    epsilon=epsilon,
                    delta=delta,
                    neighbours=neighbours,
                    rows=rows,
                    progress=advance,
                )
            )
    return found


def _chosen(config: Config, table: str | None, sql: Sequence[str]) -> list[str]:
    """The tables to audit; with questions one, by which the account is known.

    Raises:
        InvalidParameter: if a question is given and no table, where there are several accounts.
    """
    if table is not None:
        return [table]
    names = [each.name for each in config.tables]
    if not sql:
        return names
    if len({each.account for each in config.tables}) > 1:
        raise InvalidParameter("TABLE", None, "to be named with --sql", f"Declared are: {', '.join(names)}.")
    return names[:1]


def show(audit: QueryAudit, console: Console) -> None:
    """Prints the verdict, the questions, and what was found against them."""
    style = "bold green" if audit.passed else "bold red"
    console.print(Text(f"{printable(audit.table)}: {audit.headline}.", style=style), soft_wrap=True)
    drawn = Table(highlight=False)
    drawn.add_column("question", overflow="fold")
    drawn.add_column("used of what was paid", justify="right")
    drawn.add_column("epsilon at least", justify="right")
    for each in audit.questions:
        share = percent(each.share) if each.answered else each.status
        drawn.add_row(Text(printable(each.sql)), Text(share), Text(number(round(each.epsilon_lower, 4))))
    console.print(drawn)
    for violation in audit.violations[:10]:
        console.print(Text(f"- {printable(str(violation))}", style="red"), soft_wrap=True)


def explain(console: Console) -> None:
    """Prints what an audit cannot show."""
    console.print(Text("What an audit cannot show:"))
    for line in CANNOT_SHOW:
        console.print(Text(f"- {line}", style="dim"), soft_wrap=True)
    console.print(Text("Nothing was charged. These figures depend on the data: they are for stewards."))


def as_json(audits: Sequence[QueryAudit]) -> str:
    """All audits as one JSON object."""
    return json.dumps({"passed": all(a.passed for a in audits), "audits": [a.record for a in audits]}, indent=2)


def write_page(audits: Sequence[QueryAudit], path: Path) -> None:
    """Writes a page that stands alone, over an older one.

    Raises:
        InvalidParameter: if the file cannot be written.
    """
    try:
        path.write_text(audit_page(audits), encoding="utf-8")
    except OSError:
        raise InvalidParameter("report", str(path), "to be a file that can be written", "Name another.") from None
