"""`discreet check`: from a file to declarations that are accepted; what it tells is told nowhere else."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path

import pytest

from discreet.curator import Curator
from discreet.curator.inspection.file_check import WARNING
from tests.cli.clinic import BY_WARD, CSV, TOML, run, write


def test_from_a_file_to_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    told = run("check", "visits.csv.gz")
    assert told.code == 0
    assert told.out.startswith(WARNING)
    assert "patient_id (a guess)" in told.out
    assert told.out.splitlines()[-1] == "To write a discreet.toml for it, run: discreet check visits.csv.gz --write"
    assert run("check", "visits.csv.gz", "--write").code == 0
    assert stat.S_IMODE((tmp_path / "discreet.toml").stat().st_mode) == 0o600
    assert run("protect").code == 0
    assert run("ask", BY_WARD, "--epsilon", "1/2").code == 0
    again = run("check", "visits.csv.gz", "--write")
    assert again.code == 2
    assert "--config" in again.error["Hint"]


def test_a_file_that_needs_mending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "Kunde;Gr\u00f6\u00dfe;Tag\n" + "".join(f"k{i};1,{60 + i % 40};{13 + i % 10}.01.2024\n" for i in range(99))
    (tmp_path / "kunden.csv").write_bytes(text.encode("cp1252"))
    told = run("check", "kunden.csv")
    assert told.code == 0
    command = told.out.splitlines()[-1].partition("run: discreet ")[2].split()
    assert command == ["check", "kunden.csv", "--mend", "kunden-mended.csv"]
    mended = run(*command)
    assert mended.code == 0
    unit = mended.out.splitlines()[-1].partition("run: discreet ")[2]
    assert unit.startswith("check kunden-mended.csv --unit COLUMN")
    assert run("check", "kunden-mended.csv", "--unit", "Kunde", "--name", "kunden", "--write").code == 0
    assert run("protect").code == 0
    assert run("ask", 'SELECT COUNT(*) AS n FROM kunden WHERE "Gr\u00f6\u00dfe" > 1.7', "--epsilon", "0.5").code == 0


def test_nobody_guesses_whose_rows_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("age,sex\n40,F\n50,M\n")
    refused = run("check", "t.csv", "--write")
    assert (refused.code, "--unit ''" in refused.error["Hint"]) == (2, True)
    assert not (tmp_path / "discreet.toml").exists()
    assert run("check", "t.csv", "--write", "--unit", "").code == 0
    assert run("protect").code == 0


HEADER = "patient_id,ward,age,charge\n"
BROKEN = {
    "as it should be": CSV,
    "no rows": HEADER,
    "no types fit": HEADER + "x,A,old,much\n" * 50,
    "bytes that are not UTF-8": HEADER + "p\udce9,A,40,1\n" * 50,
    "a quote that never ends": CSV + '"open,A,40,1\n' + CSV,
    "cells missing and too many": HEADER + "p1\np2,A,40,1,2,3,4\n,,,\n\n" * 20,
    "decimal commas": HEADER + 'p1,A,"40,5","1.000,5"\n' * 50,
    "another delimiter below": HEADER + "p1;A;40;1\n" * 50,
    "NUL and controls": HEADER + "p1,A\0\x1b,40,1\n" * 50,
    "a second header": CSV + HEADER,
}


def test_broken_content_changes_nothing_in_what_protect_and_ask_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error or a note that depends on content would be a free bit about it."""
    said = {}
    for place, (name, content) in enumerate(BROKEN.items()):
        folder = tmp_path / str(place)
        folder.mkdir()
        monkeypatch.chdir(folder)
        write(folder)
        (folder / "visits.csv").write_bytes(content.encode("utf-8", errors="surrogateescape"))
        protected = run("protect")
        with Curator.from_config("discreet.toml", opening=False) as curator:
            answer = curator.ask(BY_WARD, epsilon="0.5")
        shape = answer.columns, len(answer), answer.notes, str(answer.cost), [row["ward"] for row in answer]
        said[name] = protected, shape
    assert {name: told for name, told in said.items() if told != said["as it should be"]} == {}
    assert said["as it should be"][0].code == 0


def test_a_header_without_types_points_to_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "\n".join(line for line in TOML.splitlines() if not line.startswith("types")))
    refused = run("protect")
    assert refused.code == 2
    assert "discreet check" in refused.err
