"""What a question would cost and how wrong its answer would be, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.words import number, percent, printable
from discreet.curator.measure import Measure
from discreet.curator.notes import notes
from discreet.curator.program import Program
from discreet.curator.run import Released
from discreet.ledger import Account
from discreet.ledger.tallies import prices
from discreet.plan.finish import Noisy
from discreet.plan.reading import Statistic
from discreet.privacy import Loss


def show(
    program: Program, account: Account, remaining: Loss, console: Console, *, confidence: Fraction, rows: int
) -> None:
    """Prints the noise of every column, the cost, the limits and what they mean."""
    console.print(columns(program, confidence=confidence, rows=rows))
    console.print(facts(program, account, remaining))
    for note in notes(program):
        console.print(Text(f"- {printable(note)}", style="dim"))
    console.print(Text("Nothing was read and nothing was spent."))


def columns(program: Program, *, confidence: Fraction, rows: int) -> Table:
    """How far each released number may be from the truth, in a group of so many imagined rows."""
    drawn = Table(highlight=False)
    drawn.add_column("column")
    drawn.add_column(f"error at {percent(confidence)}, in a group of {rows:,} rows", justify="right")
    for name, cell in imagined(program, confidence=confidence, rows=rows).items():
        drawn.add_row(Text(printable(name)), Text(_error(cell)))
    return drawn


def facts(program: Program, account: Account, remaining: Loss) -> Table:
    """Cost, noise and limits, a line each."""
    limits = program.contribution.limits
    price = prices(program.event, account.budget, account.neighbours).spent(account.budget)
    lines = {
        "cost": f"{price}; remaining on account {account.name!r}: {remaining}",
        "noise": "; ".join(_noise(measure) for measure in program.measures),
        "limits": f"groups per unit: {limits.groups}; rows per unit and group: {limits.rows}",
        "unit": f"{account.unit}, {account.neighbours.value}",
        "groups": "public" if program.selection is None else "private",
    }
    drawn = Table(highlight=False, show_header=False)
    for label, line in lines.items():
        drawn.add_row(label, Text(printable(line)))
    return drawn


def imagined(program: Program, *, confidence: Fraction, rows: int) -> dict[str, Any]:
    """The answer for a group of so many rows that lie in the middle of their bounds, before noise: nobody's data."""
    question = replace(program.question, having=None, order=(), limit=None)
    key = (None,) * len(question.keys)
    statistics = [_middle(statistic, rows) for m in program.measures for statistic in m.form.statistics]
    (answer,) = Released(replace(program, question=question), [key], np.array([statistics], dtype=object)).rows(
        confidence
    )
    return dict(answer)


def _middle(statistic: Statistic, rows: int) -> int:
    """Of rows that all have a value, half way between its bounds."""
    each = (statistic.low + statistic.high) // 2 - statistic.shift if statistic.kind == "sum" else 1
    return 0 if statistic.kind == "nulls" else rows * statistic.times * each


def _error(cell: object) -> str:
    if not isinstance(cell, Noisy):
        return "no interval"
    if cell.value is None or math.isinf(cell.low) or math.isinf(cell.high):
        return "unbounded"
    return f"± {number(max(cell.high - cell.value, cell.value - cell.low))}"


def _noise(measure: Measure) -> str:
    name = "scale" if measure.law == "laplace" else "sigma"
    scales = ", ".join(dict.fromkeys(number(scale) for scale in measure.scales))
    return f"discrete {measure.law.capitalize()}, {name} {scales} steps"
