"""A steward's week on the command line, from an empty folder: what is typed, and what is printed.

``python -m tests.cli.week`` plays it and writes ``week.txt`` anew: read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

from tests.cli.clinic import COUNT, CSV, TOML, run

TRANSCRIPT = Path(__file__).with_name("week.txt")

BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
OLDER = f"{COUNT} WHERE age > 30"
OLDEST = f"{COUNT} WHERE age > 60"
BY_FLOOR = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor"
CAP = ("--epsilon", "0.5", "--delta", "1e-7")

Step = list[str] | Callable[[], str]
"""A command, or something that happens to the folder, with what it is called."""


def _next_month() -> str:
    Path("visits.csv").write_text(CSV + "p900,A,44,10.5\np901,B,61,21.0\n")
    config = Path("discreet.toml")
    config.write_text(config.read_text().replace('version = "2026-11"', 'version = "2026-12"'))
    return 'the file of the next month comes, and the steward writes version = "2026-12"'


def _declared() -> str:
    Path("discreet.toml").write_text(TOML.replace('version = "1"', 'version = "2026-11"'))
    return "the steward reads the proposal and declares bounds, keys, limits and a budget in discreet.toml"


def _lost() -> str:
    for path in Path().glob("clinic.ledger*"):
        path.unlink()
    return "the disk with the ledger dies"


WEEK: tuple[tuple[str, list[Step]], ...] = (
    (
        "Monday: a file comes, and is protected",
        [
            ["check", "visits.csv", "--unit", "patient_id", "--write"],
            _declared,
            ["public", "wards.csv", "--unique", "ward"],
            ["protect"],
            ["grant", "ana", "--account", "patients", *CAP],
            ["grant", "ben", "patients"],
            ["set-cap", "asthma", "patients", "--epsilon", "0.3", "--delta", "1e-8"],
        ],
    ),
    (
        "Tuesday: questions",
        [
            ["explain", BY_WARD, "--epsilon", "0.2", "--analyst", "ana"],
            ["ask", BY_WARD, "--epsilon", "0.2", "--analyst", "ana", "--project", "asthma"],
            ["ask", BY_WARD, "--epsilon", "0.2", "--analyst", "ana"],
            ["ask", OLDER, "--epsilon", "0.25", "--analyst", "ben"],
            ["ask", COUNT, "--epsilon", "0.1", "--analyst", "eve"],
            ["ask", "SELECT age FROM visits", "--epsilon", "0.1", "--analyst", "ana"],
        ],
    ),
    (
        "Wednesday: a cap is reached, and changed",
        [
            ["ask", OLDER.replace("30", "40"), "--epsilon", "0.4", "--analyst", "ana"],
            ["budget"],
            ["grant", "ana", "--account", "patients", "--epsilon", "1", "--delta", "1e-7"],
            ["ask", OLDER.replace("30", "40"), "--epsilon", "0.4", "--analyst", "ana"],
            ["amend", "--epsilon", "3", "--delta", "1e-6", "--note", "agreed by the board"],
            ["ask", OLDEST, "--epsilon", "0.1", "--analyst", "ben"],
            ["explain", BY_FLOOR, "--epsilon", "0.1", "--analyst", "ben"],
            ["backup", "kept"],
        ],
    ),
    (
        "Thursday: the file of the next month",
        [
            _next_month,
            ["protect"],
            ["ask", BY_WARD, "--epsilon", "0.2", "--analyst", "ben"],
            ["history", "--analyst", "ben"],
        ],
    ),
    (
        "Friday: the ledger is lost, and comes back",
        [
            _lost,
            ["budget"],
            ["protect"],
            ["restore", "kept/clinic.ledger.16"],
            ["restore", "kept/clinic.ledger.16", "--accept-loss", "--note", "the disk died"],
            ["budget"],
            ["ask", BY_WARD, "--epsilon", "0.2", "--analyst", "ben"],
            ["history"],
            ["report", "kept"],
            ["verify"],
        ],
    ),
)

_ALIKE = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"-?\d+ \(-?\d+ to -?\d+\)"), "NUMBER (LOW to HIGH)"),
    (re.compile(r"[-─━┄]{3,}"), "---"),
    (re.compile(r"[ \t]+"), " "),
)
"""What is different each time, or depends on the width of something that is."""


def played(folder: Path) -> Iterator[str]:
    """Plays the week in an empty folder, and yields its transcript line by line."""
    state = os.environ.get("XDG_STATE_HOME")
    with chdir(folder):
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        Path("visits.csv").write_text(CSV)
        Path("wards.csv").write_text("ward,floor\nA,1\nB,2\nC,2\n")
        os.mkdir("kept")
        for day, steps in WEEK:
            yield f"# {day}"
            for step in steps:
                yield from _told(step, folder)
    os.environ.pop("XDG_STATE_HOME")
    os.environ.update({} if state is None else {"XDG_STATE_HOME": state})


def _told(step: Step, folder: Path) -> Iterator[str]:
    if not isinstance(step, list):
        yield f"* {step()}"
        return
    yield f"$ discreet {' '.join(step)}"
    outcome = run(*step)
    yield from alike(f"{outcome.out}{outcome.err}".replace(str(folder), "FOLDER")).splitlines()
    yield f"[{outcome.code}]"


def alike(text: str) -> str:
    """Returns a text without what is different each time."""
    for pattern, word in _ALIKE:
        text = pattern.sub(word, text)
    return "\n".join(filter(None, (line.strip() for line in text.splitlines())))


if __name__ == "__main__":
    place = Path(tempfile.mkdtemp()).resolve()
    TRANSCRIPT.write_text("\n".join(played(place)) + "\n", encoding="utf-8")
    shutil.rmtree(place)
