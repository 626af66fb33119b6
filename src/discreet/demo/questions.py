"""The main job, told in tables: protect a clinic, ask, be refused, ask again for free, attack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from discreet.curator import Answer, Curator
from discreet.demo.clinic import RICH_CHARGE, TYPES, WARDS, Visit, visits, write
from discreet.errors import InsufficientBudget
from discreet.privacy import Budget

BY_WARD = "SELECT ward, COUNT(*) AS visits, AVG(charge) AS cost FROM visits GROUP BY ward"
SORTED = "SELECT ward, AVG(charge) AS cost, COUNT(*) AS visits FROM visits GROUP BY ward ORDER BY cost DESC LIMIT 2"
EVERYBODY = "SELECT SUM(charge) AS total FROM visits"
WITHOUT = "SELECT SUM(charge) AS total FROM visits WHERE patient <> 4242"


def main_job() -> Iterator[RenderableType]:
    """The pieces of the story, one by one."""
    rows = visits()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "visits.csv"
        write(path, rows)
        curator = protected(path, str(Path(folder) / "clinic.ledger"))
        first = curator.ask(BY_WARD, epsilon="0.5")
        yield answer_table(f"4. The curator: {BY_WARD}", first)
        yield answer_table(
            f"   The same release, sorted and cut, is free: {SORTED}", curator.ask(SORTED, epsilon="0.5")
        )
        yield differencing(curator, rows)
        yield refusal(curator)
        yield f"The ledger holds {curator.verify().sequence} chained entries; the data were read after each charge.\n"


def protected(path: Path, ledger: str) -> Curator:
    """The clinic under a budget of epsilon 2, patients protected, everything public declared."""
    curator = Curator(ledger)
    curator.protect(
        str(path),
        name="visits",
        unit="patient",
        account="patients",
        budget=Budget(epsilon=2),
        types=TYPES,
        bounds={"age": (0, 120), "charge": (0, 2_000)},
        keys={"ward": WARDS},
        max_groups=3,
        max_rows=2,
        version="demo",
    )
    return curator


def answer_table(title: str, answer: Answer) -> Table:
    """Rows with error bars, and what they cost."""
    cost = "free: replayed" if answer.replayed else f"cost {answer.cost}"
    table = Table(title=f"{title}\n   {cost}, {answer.remaining} remain", title_justify="left")
    names = [name for name in answer.columns if not name.endswith(("_low", "_high"))]
    for name in names:
        table.add_column(name, justify="left" if name == "ward" else "right")
    for row in answer:
        table.add_row(*(_cell(row, name) for name in names))
    return table


def _cell(row: dict[str, Any], name: str) -> str:
    if f"{name}_low" not in row:
        return str(row[name])
    value, low, high = (row[name + end] for end in ("", "_low", "_high"))
    return f"{value:,.0f}  ({low:,.0f} to {high:,.0f})"


def differencing(curator: Curator, rows: list[Visit]) -> Table:
    """Two sums that differ by one rich patient: exact ones give the charge away, private ones do not."""
    table = Table(title="5. A differencing attack on one rich patient", title_justify="left")
    for name in ("source", "everybody", "without one patient", "the attacker learns"):
        table.add_column(name, justify="left" if name == "source" else "right")
    total = sum(row.charge for row in rows)
    table.add_row("exact sums", f"{total:,}", f"{total - RICH_CHARGE:,}", f"{RICH_CHARGE:,}, exactly")
    everybody, without = (curator.ask(sql, epsilon="0.5")[0] for sql in (EVERYBODY, WITHOUT))
    difference = everybody["total"] - without["total"]
    reach = everybody["total_high"] - everybody["total"] + without["total_high"] - without["total"]
    table.add_row(
        "the curator",
        f"{everybody['total']:,.0f}",
        f"{without['total']:,.0f}",
        f"{difference:,.0f} ± {reach:,.0f}: nothing",
    )
    return table


def refusal(curator: Curator) -> str:
    """A question that the budget cannot pay."""
    try:
        curator.ask("SELECT COUNT(*) AS n FROM visits WHERE age >= 65", epsilon=1)
    except InsufficientBudget as error:
        return f"6. A question too many is refused before anything is read: [bold]{error}[/bold]\n"
    return "6. The budget was larger than expected.\n"
