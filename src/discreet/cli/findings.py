"""Findings and comparisons in a terminal, as JSON, or as a page with charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from discreet.cli.words import json_text
from discreet.errors import InvalidParameter
from discreet.report.display import printable
from discreet.report.finding import COLUMNS, Comparison, Finding, comparison_row, finding_page

Outcome = Finding | Comparison
Made = TypeVar("Made", bound=Outcome)


def attacked(run: Callable[[], Made], *, as_json: bool, html: Path | None) -> Made:
    """Runs an attack under a progress bar, and prints what it found.

    Args:
        run: the attack.
        as_json: print JSON.
        html: also write a page.
    """
    with _working():
        found = run()
    if html is not None:
        write_page(found, html)
    if as_json:
        typer.echo(json_text(_plain(found)))
    else:
        show(found, Console())
    return found


def show(found: Outcome, console: Console) -> None:
    """The words of a finding; a table of a comparison."""
    if isinstance(found, Finding):
        console.print(Text(printable(found.summary())))
        return
    drawn = Table(highlight=False, title=Text(printable(found.headline)), title_justify="left")
    for place, heading in enumerate(COLUMNS):
        drawn.add_column(heading, justify="right" if place else "left")
    for trial in found:
        drawn.add_row(*(Text(printable(cell)) for cell in comparison_row(trial)))
    console.print(drawn)
    console.print(Text(f"Shares of {found.raw.targets:,} {found.raw.goal}.", style="dim"))


def write_page(found: Outcome, path: Path) -> None:
    """Writes a page that stands alone, over an older one.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
        InvalidParameter: if the file cannot be written.
    """
    text = finding_page(found)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        raise InvalidParameter("html", str(path), "to be a file that can be written", "Name another.") from None


@contextmanager
def _working() -> Iterator[None]:
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task("Attacking", total=None)
        yield


def _plain(value: Any) -> Any:
    """As JSON: dataclasses as objects, arrays as lists, what is not finite as null."""
    if isinstance(value, Comparison):
        value = {"trials": value.trials, "ceiling": value.ceiling}
    elif hasattr(value, "__dataclass_fields__"):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
