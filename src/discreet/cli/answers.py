"""An answer as a table with error bars, as JSON, as CSV."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.words import csv_text, json_text, shown
from discreet.curator.asking.answer import Answer
from discreet.ledger.serialization import write_loss
from discreet.report.display import percent, printable


def show(answer: Answer, console: Console) -> None:
    """Prints the rows, then what they cost and what they mean."""
    console.print(table(answer) if len(answer) else Text("No group was large enough to be shown."))
    console.print(Text(f"{_cost(answer)}; remaining: {answer.remaining}"))
    if not answer.private:
        console.print(Text("NOT PRIVATE: the noise was seeded, for tests.", style="bold red"))
    for note in answer.notes:
        console.print(Text(f"- {printable(note)}", style="dim"))


def table(answer: Answer) -> Table:
    """One column for each output, and one for the interval of each released number."""
    drawn = Table(highlight=False)
    names = [name for name in answer.columns if not _is_end(name, answer)]
    for name in names:
        drawn.add_column(Text(printable(name)), justify="right" if _has_interval(name, answer) else "left")
        if _has_interval(name, answer):
            drawn.add_column(f"{percent(answer.confidence)} interval", style="dim")
    for record in answer:
        drawn.add_row(*(Text(part) for name in names for part in _parts(name, record)))
    return drawn


def as_json(answer: Answer) -> str:
    """The whole answer as one JSON object; amounts are exact fractions, unbounded ends are null."""
    fields = {
        "columns": list(answer.columns),
        "rows": [{name: _plain(value) for name, value in record.items()} for record in answer],
        "confidence": float(answer.confidence),
        "cost": write_loss(answer.cost),
        "remaining": write_loss(answer.remaining.loss),
        "replayed": answer.replayed,
        "private": answer.private,
        "notes": list(answer.notes),
    }
    return json_text(fields)


def as_csv(answer: Answer) -> str:
    """The rows with `x`, `x_low` and `x_high` for every released number."""
    return csv_text(answer.columns, answer.records)


def _cost(answer: Answer) -> str:
    return "Replayed: a stored answer, free" if answer.replayed else f"Cost: {answer.cost}"


def _has_interval(name: str, answer: Answer) -> bool:
    """Names that end in _low or _high are refused in questions, so such a column is the end of an interval."""
    return f"{name}_low" in answer.columns


def _is_end(name: str, answer: Answer) -> bool:
    return any(name == f"{other}{end}" for other in answer.columns for end in ("_low", "_high"))


def _parts(name: str, record: dict[str, Any]) -> list[str]:
    if f"{name}_low" not in record:
        return [shown(record[name])]
    return [shown(record[name]), f"{shown(record[f'{name}_low'])} to {shown(record[f'{name}_high'])}"]


def _plain(value: Any) -> Any:
    if isinstance(value, dt.date):
        return value.isoformat()
    return None if isinstance(value, float) and not math.isfinite(value) else value
