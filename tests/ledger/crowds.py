"""Runs a nursery of spenders and judges what they acknowledged against what the ledger says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from discreet.ledger import Ledger
from discreet.ledger.entry import Entry
from discreet.privacy import PureDP

NURSERY = Path(__file__).parent / "nursery.py"


def run(*arguments: object, mutant: str = "") -> list[list[str]]:
    """The acknowledged lines of a nursery, perhaps one with a mistake in it."""
    command = [sys.executable, str(NURSERY), *map(str, arguments)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=1200, env={**os.environ, "MUTANT": mutant}
    )
    return [line.split() for line in done.stdout.splitlines()]


def entries_of(path: Path) -> list[Entry]:
    with Ledger(str(path)) as ledger:
        return list(ledger.history())


def check(path: Path, lines: list[list[str]], cap: int) -> int:
    """No overspending, no lost acknowledgement, no answer without a charge, no key charged twice."""
    assert not [line for line in lines if line[0] not in ("charged", "answered")]
    entries = entries_of(path)
    charges = {entry.sequence: entry.content["question"] for entry in entries if entry.kind == "charge"}
    written = {
        (entry.content["question"], str(entry.sequence), entry.hash) for entry in entries if entry.kind == "charge"
    }
    answers = {charges[entry.about] for entry in entries if entry.kind == "answer"}
    assert len(charges) <= cap
    assert len(set(charges.values())) == len(charges)
    assert {tuple(line[1:]) for line in lines if line[0] == "charged"} <= written
    sent = [line[1] for line in lines if line[0] == "answered"]
    assert len(set(sent)) == len(sent)
    assert set(sent) <= answers
    assert len(sent) <= len(charges)
    with Ledger(str(path)) as ledger:
        ledger.verify()
        assert ledger.balance("patients").spent == PureDP(f"{len(charges)}/10")
    return len(charges)
