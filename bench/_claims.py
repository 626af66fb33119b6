"""Measured shares and times next to what they should be: at least a target, or at most one or a bound."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Claim:
    """A measured number, with its 95 % interval where there is one, and where it should lie.

    A target counts as met if the whole interval reaches it; a bound is not contradicted if part of the interval keeps
    to it.
    """

    what: str
    value: float
    low: float | None = None
    high: float | None = None
    least: float | None = None
    most: float | None = None
    unit: str = "%"
    note: str = ""

    def written(self, value: float) -> str:
        return f"{value:.1%}" if self.unit == "%" else f"{value:.3g} {self.unit}"

    @property
    def measured(self) -> str:
        if self.low is None or self.high is None:
            return self.written(self.value)
        return f"{self.written(self.value)} ({self.written(self.low)} to {self.written(self.high)})"

    @property
    def target(self) -> str:
        if self.least is not None:
            return f">= {self.written(self.least)}"
        return "" if self.most is None else f"<= {self.written(self.most)}"

    @property
    def verdict(self) -> str:
        low = self.value if self.low is None else self.low
        high = self.value if self.high is None else self.high
        if self.least is not None:
            return "[green]met[/]" if low >= self.least else "[red]missed[/]"
        if self.most is None:
            return ""
        held = "[green]met[/]" if high <= self.most else "[green]not contradicted[/]"
        return held if low <= self.most else "[red]missed[/]"


def show(title: str, claims: list[Claim]) -> None:
    """Prints the claims; nothing here fails."""
    table = Table(title=title, title_justify="left")
    for heading in ("what", "measured", "target", "", "note"):
        table.add_column(heading)
    for claim in claims:
        table.add_row(claim.what, claim.measured, claim.target, claim.verdict, claim.note)
    Console(width=None if sys.stdout.isatty() else 150).print(table)
