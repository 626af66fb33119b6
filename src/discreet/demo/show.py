"""The whole performance: the story in the terminal, then its report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from discreet.demo import terminal
from discreet.demo.attack import TRIALS
from discreet.demo.clinic import PATIENTS
from discreet.demo.lab import SHOWN, Exhibit, exhibits
from discreet.demo.lab_page import write_lab
from discreet.demo.pages import write_report
from discreet.demo.robust import contaminated, write_robust
from discreet.demo.story import progress, tell
from discreet.errors import MissingExtra
from discreet.noise import Bits


def show(
    console: Console, folder: Path, *, bits: Bits | None = None, patients: int = PATIENTS, trials: int = TRIALS
) -> Path | None:
    """Tells the story, attacks in the lab and writes a page about each.

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
    shown = _lab(console, bits)
    terminal.heading(console, "6. The report")
    try:
        with console.status("Drawing charts"):
            paths = write_report(story, folder), write_lab(shown, folder), write_robust(contaminated(bits=bits), folder)
    except MissingExtra as error:
        terminal.say(console, f"Not written: {error}")
        return None
    for path in paths:
        console.print(Text(str(path.resolve())), soft_wrap=True)
    terminal.say(console, "Open them in a browser; they need no network.")
    return paths[0]


def _lab(console: Console, bits: Bits | None) -> tuple[Exhibit, ...]:
    """Attacks on other releases, printed while they happen."""
    terminal.heading(console, "5. The lab: three releases that name nobody")
    shown = []
    with progress(console) as bar:
        task = bar.add_task("Attacking", total=len(SHOWN))
        for exhibit in exhibits(bits=bits):
            terminal.exhibit(console, exhibit)
            shown.append(exhibit)
            bar.advance(task)
    return tuple(shown)
