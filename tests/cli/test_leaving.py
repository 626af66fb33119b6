"""Text that leaves us is read and not executed: by a spreadsheet, by a terminal, by another program."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from pathlib import Path

import pytest

from discreet.cli.output import json_text
from discreet.report.csv_text import csv_text
from tests.cases import every
from tests.cli.clinic import CSV, TOML, records, run, write

FORMULAS = (
    "=1+1",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "=cmd|' /C calc'!A0",
    " =1+1",
    "\t=1+1",
    "\r=1+1",
    "\u00a0@x",
    "\uff1d1",
)
CONTROLS = (
    "\x1b[31mred",
    "a\x07",
    "\x9b2J",
    "line\nbreak",
    "a\rb",
    "\u202egnp.exe",
    "\u2066x",
    "a\u2028b",
    "\x7f",
    "\0",
)
PLAIN = ("A", "", "a,b", 'say "x"', "B-1", "x=1", "Zo\u00eb", "10\u00a0000", "a\u200db", "'quoted'", "2026-11-01")
NUMBERS = ("-3.5", "-7", "+7", "1e-3", "0")


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def steering(text: str) -> list[str]:
    """What would move a terminal's cursor or turn text round."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\u200d"]


def check_cells(cells: list[str]) -> None:
    for cell in cells:
        assert not steering(cell), cell
        assert "\n" not in cell
        number = re.fullmatch(r"[+-]?[0-9]+([.][0-9]+)?(e[+-]?[0-9]+)?", cell)
        assert number or not cell.strip().startswith(("=", "+", "-", "@", "\uff1d")), cell


@every("text", FORMULAS + CONTROLS)
def test_cells_are_not_executed(text: str) -> None:
    lines = read(csv_text([text, "n"], [{text: text, "n": -3.5}]))
    assert [len(line) for line in lines] == [2, 2]
    for line in lines:
        check_cells(line)
        assert line[0] != text
    assert lines[1][1] == "-3.5"


@every("text", PLAIN + NUMBERS)
def test_other_cells_are_as_they_are(text: str) -> None:
    assert read(csv_text(["k", "n"], [{"k": text, "n": 1}]))[1] == [text, "1"]


def test_values_that_are_no_texts_are_written_as_before() -> None:
    values = {"a": -7, "b": -0.5, "c": None, "d": True, "e": float("-inf")}
    assert read(csv_text(list(values), [values]))[1] == ["-7", "-0.5", "", "True", "-inf"]


@every("text", FORMULAS + CONTROLS + PLAIN)
def test_json_says_every_text_exactly(text: str) -> None:
    made = json_text({text: text})
    assert json.loads(made) == {text: text}
    assert made.replace("\n", "").isprintable()


@pytest.mark.parametrize("mistake", ["_FORMULA", "_NUMBER"])
def test_mistakes_are_noticed(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    wrong = {"_FORMULA": re.compile("[=+@]"), "_NUMBER": re.compile("[+-].*")}[mistake]
    monkeypatch.setattr(f"discreet.report.csv_text.{mistake}", wrong)
    with pytest.raises(AssertionError):
        check_cells([cell for text in FORMULAS for cell in read(csv_text(["k"], [{"k": text}]))[1]])


# ------------------------------------------------------------------------------------------------------ whole commands


@pytest.fixture
def hostile(folder: Path) -> Path:
    """A clinic whose public keys would be executed, and whose private ones too."""
    keys = ["=1+1", "-2+3", "\x1b[31mred", "\u202eB", "A"]
    written = ", ".join(json.dumps(key) for key in keys)
    write(folder, TOML.replace('keys = { ward = ["A", "B", "C"] }', f"keys = {{ ward = [{written}] }}"))
    (folder / "visits.csv").write_text(CSV.replace(",B,", ',"\x1b[2J@B",'))
    assert run("protect").code == 0
    return folder


BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.mark.usefixtures("hostile")
def test_no_command_prints_what_a_key_says() -> None:
    table = run("ask", BY_WARD, "--epsilon", "0.1")
    cells = run("ask", BY_WARD, "--epsilon", "0.1", "--csv")
    exact = run("ask", BY_WARD, "--epsilon", "0.1", "--json")
    for outcome in (table, cells, exact, run("explain", BY_WARD, "--epsilon", "0.1"), run("history")):
        assert outcome.code == 0
        assert not steering(outcome.out + outcome.err)
    check_cells([cell for line in read(cells.out) for cell in line])
    assert [row["ward"] for row in records(exact.out)] == ["=1+1", "-2+3", "\x1b[31mred", "\u202eB", "A"]


@pytest.mark.usefixtures("hostile")
def test_names_that_would_be_executed_are_refused_or_escaped() -> None:
    for arguments in (
        ("ask", 'SELECT COUNT(*) AS "n\nm" FROM visits', "--epsilon", "0.1"),
        ("ask", 'SELECT COUNT(*) AS "n\x1b[2J" FROM visits', "--epsilon", "0.1"),
        ("ask", BY_WARD, "--epsilon", "0.1", "--project", "a\x1b[2J"),
        ("ask", BY_WARD, "--epsilon", "0.1", "--analyst", "a\x1b[2J"),
        ("ask", BY_WARD, "--epsilon", "0.1", "--other", "a\x1b[2J"),
        ("ask", BY_WARD, "--epsilon", "0.1", "--config", "a\x1b[2J"),
        ("budget", "--account", "a\x1b[2J"),
    ):
        outcome = run(*arguments)
        assert outcome.code in (2, 4)
        assert not steering(outcome.out + outcome.err)
    formula = run("ask", 'SELECT COUNT(*) AS "=n" FROM visits', "--epsilon", "0.1", "--csv")
    assert read(formula.out)[0][0] == "'=n"
