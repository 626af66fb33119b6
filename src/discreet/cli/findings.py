"""Findings and comparisons in a terminal, as JSON, or as a page with charts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import typer

from discreet.cli.output import json_text, stages, write_page
from discreet.report.finding import Comparison, Finding, finding_page

Outcome = Finding | Comparison


def attacked(run: Callable[[], Outcome], *, as_json: bool, html: Path | None) -> None:
    """Runs an attack, naming its stages on a terminal, and prints what it found.

    Args:
        run: the attack.
        as_json: print JSON.
        html: also write a page.
    """
    with stages("Attacking"):
        found = run()
    if html is not None:
        write_page(finding_page(found), html, "html")
    typer.echo(json_text(_plain(found)) if as_json else str(found))


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it: dataclasses as objects, arrays as lists, what is not finite as null."""
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
