"""Budgets side by side, as a table, JSON, CSV, or a page with a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli import curating
from discreet.cli.words import csv_text, json_text, number
from discreet.curator.asking.choices import Candidate, Choice, Choices, choose_epsilon
from discreet.curator.curator import Curator
from discreet.errors import InvalidParameter
from discreet.ledger import OWNER
from discreet.plan.model.schema import Limits
from discreet.report import page
from discreet.report.display import percent, printable

_RISKS = ("found, of 100", "suspicion of 50 %, then")


def compared(
    question: str | None,
    candidates: Sequence[Candidate],
    config: Path,
    *,
    delta: str | None,
    bounds: tuple[str, str] | None,
    rows: int,
    limits: tuple[int | None, int | None],
    confidence: str,
    analyst: str = OWNER,
) -> Choices:
    """Of a question about the tables of a file, or of a plain count and mean, which need none."""
    groups, each = limits
    if question is None:
        usual = Limits(groups or 1, each or 1)
        return choose_epsilon(
            candidates, delta=delta or 0, bounds=bounds, rows=rows, limits=usual, confidence=confidence
        )
    if bounds is not None:
        raise InvalidParameter("--bounds", bounds, "without a question", "A table declares its own bounds.")
    curator = Curator.from_config(config, opening=False)
    own = curating.limits(curator, question, delta, groups=groups, rows=each, analyst=analyst)
    return curator.choose_epsilon(
        question, candidates, delta=delta, limits=own, analyst=analyst, rows=rows, confidence=confidence
    )


def show(choices: Choices, console: Console) -> None:
    """Prints the budgets, and what the figures of the attacker mean."""
    drawn = Table(highlight=False)
    for heading in headings(choices):
        drawn.add_column(Text(printable(heading)), justify="left" if heading == "budget" else "right")
    for choice in choices.choices:
        drawn.add_row(*(Text(printable(cell)) for cell in cells(choice)))
    console.print(drawn)
    console.print(Text(about(choices)))
    for choice in choices.choices:
        console.print(Text(f"- {choice.budget}: {choice.words}", style="dim"))
    console.print(Text("Nothing was read and nothing was spent."))


def about(choices: Choices) -> str:
    """What the errors are errors of."""
    return f"Errors are those of {percent(choices.confidence)} intervals in a group of {choices.rows:,} rows."


def headings(choices: Choices) -> list[str]:
    """The columns of the table."""
    return ["budget", *(f"error of {name}" for name in choices.columns), *_RISKS]


def cells(choice: Choice) -> list[str]:
    """One row of the table."""
    found = ["unbounded" if math.isinf(error) else f"± {number(error)}" for error in choice.errors.values()]
    return [str(choice.budget), *found, number(100 * choice.risk.power), f"{number(100 * choice.risk.posterior)} %"]


def as_json(choices: Choices) -> str:
    """The whole comparison as one JSON object."""
    fields = {"confidence": float(choices.confidence), "rows": choices.rows, "choices": list(choices.records)}
    return json_text(fields)


def as_csv(choices: Choices) -> str:
    """A row for each budget."""
    return csv_text(list(choices.records[0]), choices.records)


def write_page(choices: Choices, path: Path) -> None:
    """Writes a page that stands alone, over an older one.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
        InvalidParameter: if the file cannot be written.
    """
    titles = headings(choices)
    rows = [cells(choice) for choice in choices.choices]
    text = page.document(
        "Choosing a budget",
        page.table(titles, rows, caption="Budgets side by side", numbers=titles[1:]),
        page.figure(choices.spec(), caption="Error and risk by budget", description="Bars for each budget."),
        page.bullets(*(f"{choice.budget}: {choice.words}" for choice in choices.choices)),
        lead=about(choices),
    )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        raise InvalidParameter("html", str(path), "to be a file that can be written", "Name another.") from None
