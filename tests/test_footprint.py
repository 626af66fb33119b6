"""Which rooms of the source tree a query runs through: a COUNT enters no room of learners or of the service."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import discreet

NEEDED = {"curator", "engines", "ledger", "measurement", "mechanisms", "noise", "plan", "sql"}
ELSEWHERE = {"attacks", "audit", "cli", "deep", "demo", "learn", "local", "service", "stream", "synthetic", "workload"}
"""Rooms that a COUNT has no business in."""

_SOURCE = str(Path(discreet.__file__).parent)


def files_touched(work: Callable[[], object]) -> list[str]:
    """The files under src/discreet of which a function runs; what runs at import only does not count."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(_SOURCE):
            seen.add(str(Path(code.co_filename).relative_to(_SOURCE)))

    threading.setprofile(note)  # engines work in threads of their own
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return sorted(seen)


def test_a_count_runs_through_few_rooms(tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text("patient,ward\n1,A\n1,B\n2,A\n3,B\n")
    curator = discreet.Curator(str(tmp_path / "clinic.ledger"))
    types = {"patient": "int", "ward": "text"}
    curator.protect(
        str(table), name="visits", unit="patient", max_rows=1, budget=discreet.Budget(epsilon=1), types=types
    )
    found = files_touched(lambda: curator.ask("SELECT COUNT(*) FROM visits", epsilon=0.5))
    print(len(found), *found, sep="\n")  # noqa: T201 - shown when the test fails
    rooms = {name.partition("/")[0] for name in found}
    assert rooms >= NEEDED
    assert not rooms & ELSEWHERE
    assert all((Path(_SOURCE) / room).is_dir() for room in ELSEWHERE)  # the list only names what there is
