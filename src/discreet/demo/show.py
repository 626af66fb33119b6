"""The whole performance: the story in the terminal, then its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from discreet.demo import terminal
from discreet.demo.attack import TRIALS
from discreet.demo.clinic import PATIENTS
from discreet.demo.pages import write_report
from discreet.demo.story import tell
from discreet.errors import MissingExtra
from discreet.noise import Bits


def show(
    console: Console, folder: Path, *, bits: Bits | None = None, patients: int = PATIENTS, trials: int = TRIALS
) -> Path | None:
    """Tells the story and writes its report.

    Args:
        console: where it is told.
        folder: where the report goes.
        bits: the source of all noise; None is the secure one.
        patients: how many people the clinic has.
        trials: of the attack, at each epsilon.

    Returns:
        The report; None if charts cannot be drawn here, which is then said.
    """
    story = tell(console, bits=bits, patients=patients, trials=trials)
    terminal.heading(console, "5. The report")
    try:
        with console.status("Drawing charts"):
            path = write_report(story, folder)
    except MissingExtra as error:
        terminal.say(console, f"Not written: {error}")
        return None
    console.print(Text(str(path.resolve())), soft_wrap=True)
    terminal.say(console, "Open it in a browser; it needs no network.")
    return path
