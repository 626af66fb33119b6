"""`discreet protect` after discreet.toml was edited: the difference is shown, confirmed and entered, or nothing is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli import app, declaration_commands
from discreet.ledger import Ledger
from docs.site.code_blocks import blocks
from docs.site.navigation import DOCS
from tests.cli.clinic import BY_WARD, COUNT, CSV, TOML, run, write

NARROWER = "bounds of age: 0 to 120 -> 0 to 110"
HEADER = "patient_id,ward,age,charge"


def edit(folder: Path, *changes: tuple[str, str]) -> None:
    path = folder / "discreet.toml"
    text = path.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)


def head(folder: Path) -> str:
    with Ledger(str(folder / "clinic.ledger"), read_only=True) as ledger:
        return str(ledger.verify())


BOUNDS = ("age = [0, 120]", "age = [0, 110]")
LIMITS = ("max_groups = 2", "max_groups = 3")


def test_a_script_says_yes(clinic: Path) -> None:
    before = head(clinic)
    edit(clinic, BOUNDS, LIMITS)
    refused = run("protect")
    assert refused.code == 2
    assert [line.strip() for line in refused.out.splitlines()[1:]] == [NARROWER, "max_groups: 2 -> 3"]
    assert "--yes" in refused.error["Hint"]
    assert head(clinic) == before
    done = run("protect", "--yes")
    assert (done.code, NARROWER in done.out) == (0, True)
    shown = run("history")
    assert f"attach visits 1, new declaration: {NARROWER}; max_groups: 2 -> 3" in shown.out
    assert run("verify").code == 0
    assert run("ask", BY_WARD, "--epsilon", "0.5").code == 0
    again = run("protect")
    assert (again.code, "differs" in again.out) == (0, False)


@pytest.mark.parametrize("said", ["y\n", "n\n", "\n"])
def test_a_steward_at_a_terminal_is_asked(clinic: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    edit(clinic, BOUNDS)
    before = head(clinic)
    monkeypatch.setattr(declaration_commands, "is_asked", lambda: True)
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["protect"], input=said)
    assert NARROWER in done.stdout
    assert (done.exit_code, head(clinic) != before) == ((0, True) if said == "y\n" else (2, False))
    assert ("Nothing was changed." in done.stdout) == (said != "y\n")


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Next month's file has a column more, and the steward is asked as docs/command_line.md says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(declaration_commands, "is_asked", lambda: True)
    write(tmp_path, TOML.replace('version = "1"', 'version = "2026-11"'))
    assert run("protect").code == 0
    header, *rows = CSV.splitlines()
    (tmp_path / "december.csv").write_text("\n".join([f"{header},pain", *(f"{row},3" for row in rows), ""]))
    later = ('"visits.csv"', '"december.csv"'), ('charge = "float"', 'charge = "float", pain = "int"')
    edit(tmp_path, BOUNDS, ("max_rows = 1", "max_rows = 3"), ("2026-11", "2026-12"), *later)
    page = blocks(DOCS / "command_line.md")
    (block,) = (block for block in page if block.is_run and "december.csv" in block.body)
    command, *shown = block.body.splitlines()
    told = CliRunner(env={"COLUMNS": "200"}).invoke(app, command.split()[2:], input="n\n")
    assert [line.rstrip() for line in told.stdout.splitlines()][: len(shown)] == [*shown[:-1], f"{shown[-1]} n"]
    block.ran()


def test_other_commands_name_the_difference_and_the_way(clinic: Path) -> None:
    edit(clinic, BOUNDS)
    before = head(clinic)
    commands = [
        ("ask", COUNT, "--epsilon", "0.1"),
        ("explain", COUNT, "--epsilon", "0.1"),
        ("profile", "visits", "--epsilon", "0.1"),
    ]
    for command in commands:
        refused = run(*command)
        assert refused.code == 2
        assert NARROWER in refused.err
        assert "discreet protect" in refused.error["Hint"]
    for name in ("budget", "history", "verify"):  # the ledger is as it was, and so is what they tell
        assert run(name).code == 0
    assert head(clinic) == before


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (('unit = "patient_id"', 'unit = "ward"'), "tables.visits.unit"),
        (('unit = "patient_id"', 'unit = ""'), "tables.visits.unit"),
        (('patient_id = "text"', 'patient_id = "int"'), "tables.visits.types['patient_id']"),
        (("max_rows = 1", 'neighbours = "replace"'), "tables.visits.neighbours"),
        (("epsilon = 2", "epsilon = 3"), "budgets.patients"),
    ],
)
def test_who_is_protected_and_how_well_is_not_for_a_file_to_change(
    clinic: Path, change: tuple[str, str], key: str
) -> None:
    before = head(clinic)
    edit(clinic, change, BOUNDS)
    refused = run("protect", "--yes")
    assert (refused.code, f"Expected {key}=" in refused.err) == (2, True)
    assert head(clinic) == before


def test_moving_a_table_to_another_account_is_refused(clinic: Path) -> None:
    before = head(clinic)
    edit(clinic, ('account = "patients"', 'account = "fresh"'), ("[budgets.patients]", "[budgets.fresh]"))
    refused = run("protect", "--yes")
    assert (refused.code, "tables.visits.account" in refused.err) == (2, True)
    assert head(clinic) == before


def test_next_month(clinic: Path) -> None:
    """Another file and another version under the same table, with a column more: shown, entered, asked anew."""
    run("ask", COUNT, "--epsilon", "0.1")
    assert "replayed" in run("ask", COUNT, "--epsilon", "0.1").out.lower()
    lines = CSV.splitlines()
    (clinic / "december.csv").write_text("\n".join([f"{HEADER},pain", *(f"{line},3" for line in lines[1:])]) + "\n")
    edit(clinic, ('source = "visits.csv"', 'source = "december.csv"'), ('version = "1"', 'version = "2"'))
    shown = run("protect")  # nothing is declared otherwise: nobody has to be asked
    assert shown.code == 0
    assert "version: 1 -> 2" in shown.out
    assert "source: december.csv is read from now on" in shown.out
    edit(clinic, ('charge = "float" }', 'charge = "float", pain = "int" }'))
    assert run("protect").code == 2
    assert "column pain (int): added" in run("protect", "--yes").out
    fresh = run("ask", COUNT, "--epsilon", "0.1")
    assert (fresh.code, "replayed" in fresh.out.lower()) == (0, False)
    with Ledger(str(clinic / "clinic.ledger"), read_only=True) as ledger:
        assert ledger.origins()["visits"]["versions"] == ["1", "2"]
        assert len(ledger.origins()["visits"]["files"]) == 2


def test_another_file_under_the_same_version_is_remarked(clinic: Path) -> None:
    (clinic / "december.csv").write_text(CSV)
    edit(clinic, ('source = "visits.csv"', 'source = "december.csv"'))
    assert "the version is the same" in run("protect").out


@pytest.mark.ci
def test_keys_of_a_public_table_that_grew_are_a_change(folder: Path) -> None:
    (folder / "wards.csv").write_text("ward\nA\nB\n")
    edit(folder, ('keys = { ward = ["A", "B", "C"] }', 'keys = { ward = "wards.ward" }'))
    with (folder / "discreet.toml").open("a") as out:
        out.write('\n[public.wards]\nsource = "wards.csv"\ntypes = { ward = "text" }\n')
    assert run("protect").code == 0
    (folder / "wards.csv").write_text("ward\nA\nB\nC\n")
    assert "keys of ward: added C" in run("protect").out
    assert run("protect", "--yes").code == 0
    assert run("ask", BY_WARD, "--epsilon", "0.5").code == 0


def test_standard_input_that_is_no_terminal_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert not declaration_commands.is_asked()
