"""What a question would cost and how wrong its answer would be, as tables."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.words import number
from discreet.curator import Explanation
from discreet.report.display import percent, printable


def show(told: Explanation, console: Console) -> None:
    """Prints the noise of every column, the cost, the limits and what they mean."""
    console.print(columns(told))
    facts = Table(highlight=False, show_header=False)
    for label, line in told.facts.items():
        facts.add_row(label, Text(printable(line)))
    console.print(facts)
    for note in told.notes:
        console.print(Text(f"- {printable(note)}", style="dim"))
    console.print(Text("Nothing was read and nothing was spent."))


def columns(told: Explanation) -> Table:
    """How far each released number may be from the truth."""
    drawn = Table(highlight=False)
    drawn.add_column("column")
    drawn.add_column(f"error at {percent(told.confidence)}, in a group of {told.rows:,} rows", justify="right")
    for name, error in told.errors.items():
        drawn.add_row(Text(printable(name)), Text("unbounded" if math.isinf(error) else f"± {number(error)}"))
    return drawn
