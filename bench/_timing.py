"""CPU time of small pieces of code, and one way to print measured ratios next to their targets."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.table import Table

REPEATS = 5


def cpu(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of processor time, the least of several runs: everything that disturbs a run makes it longer."""
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def cpu_of_python(code: str, repeats: int = REPEATS) -> float:
    """User and system seconds of a fresh interpreter that runs the code, the least of several runs."""
    best = math.inf
    for _ in range(repeats):
        before = _children()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        best = min(best, _children() - before)
    return best


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Row:
    """One claim: our cost over a peer's, and the most it may be. Without a peer there is nothing to compare."""

    what: str
    ours: float
    peer: float | None
    target: Fraction | None

    @property
    def ratio(self) -> str:
        if self.peer is None:
            return "not installed"
        share = self.ours / self.peer
        return f"1/{1 / share:.0f}" if share < 0.1 else f"{share:.2f}x"

    @property
    def verdict(self) -> str:
        if self.target is None or self.peer is None:
            return ""
        return "[green]met[/]" if self.ours / self.peer <= self.target else "[red]missed[/]"

    @property
    def wanted(self) -> str:
        if self.target is None:
            return ""
        return f"<= {self.target}" if self.target < 1 else f"<= {float(self.target):g}x"


def show(title: str, rows: list[Row], unit: str = "us", per: float = 1e-6) -> None:
    """Prints the rows; timing is never asserted, so nothing here fails."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    for heading in (f"ours ({unit})", f"peer ({unit})", "ratio", "target", ""):
        table.add_column(heading, justify="right")
    for row in rows:
        peer = "" if row.peer is None else f"{row.peer / per:.3f}"
        table.add_row(row.what, f"{row.ours / per:.3f}", peer, row.ratio, row.wanted, row.verdict)
    Console(width=None if sys.stdout.isatty() else 110).print(table)
