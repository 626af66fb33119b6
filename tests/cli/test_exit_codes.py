"""Exit codes mean what they say: a table of commands that end in every way there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from discreet.ledger import AnchoredLedger, Ledger
from discreet.privacy import events
from tests.cli.clinic import COUNT, TOML, run, write

ANA = ("--analyst", "ana")
ENDINGS: dict[int, list[list[str]]] = {
    0: [
        ["ask", COUNT, "--epsilon", "0.1", *ANA],
        ["ask", COUNT, "--epsilon", "0.1", *ANA],
        ["explain", COUNT, "--epsilon", "9", *ANA],
        ["protect"],
        ["budget"],
        ["history"],
        ["verify"],
        ["unlock", "patients"],
        ["backup", "copy"],
        ["check", "visits.csv"],
    ],
    2: [
        ["nonsense"],
        ["ask"],
        ["ask", COUNT, "--epsilon", "much", *ANA],
        ["ask", COUNT, "--epsilon", "-1", *ANA],
        ["ask", COUNT, "--epsilon", "0.1", "--nonsense"],
        ["ask", COUNT, "--epsilon", "0.1", "--analyst", "eve"],
        ["ask", f"{COUNT} WHERE age > 2", "--epsilon", "0.1", "--project", "none", *ANA],
        ["ask", f"{COUNT} WHERE age > 1", "--epsilon", "0.1", "--key", "k1", *ANA],
        ["ask", COUNT, "--epsilon", "0.1", "--config", "nowhere.toml", *ANA],
        ["ask", "--file", "nowhere.sql", "--epsilon", "1", *ANA],
        ["budget", "--account", "nobody"],
        ["history", "--since", "always"],
        ["verify", "--anchor", "1"],
        ["amend", "patients"],
        ["grant", "ana", "--account", "patients"],  # the file says otherwise
        ["renew", "patients", "--by", "ana"],
        ["backup", "copy"],
        ["restore", "nowhere"],
        ["check", "nowhere.csv"],
        ["init"],
        ["profile", "visits", "--epsilon", "0", *ANA],
        ["ledger", "copy", "nowhere", "there"],
    ],
    3: [
        ["ask", f"{COUNT} WHERE age > 30", "--epsilon", "1", *ANA],
        ["ask", f"{COUNT} WHERE age > 30", "--epsilon", "9"],
        ["profile", "visits", "--epsilon", "9", *ANA],
    ],
    4: [
        ["ask", "SELECT age FROM visits", "--epsilon", "0.1", *ANA],
        ["ask", "SELECT COUNT(*) FROM nowhere", "--epsilon", "0.1", *ANA],
        ["ask", "not sql", "--epsilon", "0.1", *ANA],
        ["explain", "SELECT * FROM visits", "--epsilon", "0.1", *ANA],
    ],
}


@pytest.fixture
def capped(folder: Path) -> Path:
    """The clinic with an analyst, a cap and a key that was used."""
    write(folder, f'{TOML}\n[analysts.ana.patients]\nepsilon = "0.5"\ndelta = "1e-7"\n')
    assert run("protect").code == 0
    assert run("ask", f"{COUNT} WHERE age > 50", "--epsilon", "0.1", "--key", "k1", *ANA).code == 0
    return folder


@pytest.mark.ci
@pytest.mark.usefixtures("capped")
def test_every_command_ends_as_the_table_says() -> None:
    found = [(code, command, run(*command)) for code, commands in ENDINGS.items() for command in commands]
    wrong = [(command, ended.code, ended.err) for code, command, ended in found if ended.code != code]
    assert wrong == []
    silent = [command for code, command, ended in found if code and not ended.err]
    assert silent == []


def test_what_failed_ends_with_5(capped: Path) -> None:
    """A source that cannot be read, a ledger that was altered or is gone; failure credits are a budget."""
    (capped / "visits.csv").unlink()
    (capped / "visits.csv").mkdir()
    assert run("verify", "--anchor", f"1:{'0' * 64}").code == 5
    assert run("ask", COUNT, "--epsilon", "0.1", *ANA).code in (2, 5)
    with (capped / "clinic.ledger").open("r+b") as file:
        file.write(b"no ledger any more")
    assert run("verify").code == 5
    (capped / "clinic.ledger").unlink()
    assert run("budget").code == 5


def test_used_up_failure_credits_are_a_budget_that_is_refused(capped: Path) -> None:
    with AnchoredLedger(str(capped / "clinic.ledger")) as ledger:
        for _ in range(3):
            ledger.fail(ledger.charge("patients", events.Pure("0.01"), analyst="ana"))
    refused = run("ask", COUNT, "--epsilon", "0.1", *ANA)
    assert (refused.code, "AccountLocked" in refused.error) == (3, True)
    assert "ana was stopped" in run("unlock", "patients").out
    assert run("ask", COUNT, "--epsilon", "0.1", *ANA).code == 0


def test_an_anchor_that_cannot_be_written_is_a_warning(capped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        answered = run("ask", COUNT, "--epsilon", "0.1", *ANA)
    assert answered.code == 0
    assert "Cost: epsilon=0.1" in answered.out
    assert "Warning: The anchor" in answered.err
    with Ledger(str(capped / "clinic.ledger"), read_only=True) as ledger:
        newest = str(ledger.head())
    assert run("budget").code == 0
    assert run("anchor").out.splitlines()[-1] == newest
