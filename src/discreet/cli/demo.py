"""`discreet demo`: the story of a small clinic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from discreet.demo import FOLDER, show

_REPORT = Path(FOLDER)


def demo(*, out: Annotated[Path, typer.Option(help="The folder for the pages.", file_okay=False)] = _REPORT) -> None:
    """Make a small clinic, protect it, ask, attack exact and private answers, and write an HTML report."""
    show(Console(), out)
