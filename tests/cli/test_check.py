"""`discreet check`: from a file to declarations that are accepted; what it tells is told nowhere else."""

from __future__ import annotations

import gzip
import shlex
import stat
import tomllib
from pathlib import Path

import pytest

from discreet.curator import Curator
from discreet.presentation.inspection.file_check import WARNING
from tests.cli.clinic import BY_WARD, CSV, TOML, run, write


@pytest.mark.ci
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


@pytest.mark.ci
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


@pytest.mark.ci
def test_a_mended_copy_shares_the_budget_of_its_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same people under two names must not get two budgets."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"k{i};1,{60 + i % 40}\n" for i in range(99))
    (tmp_path / "guests.csv").write_text("member_id;height\n" + rows)
    told = run("check", "guests.csv", "--write")
    again = next(line for line in told.out.splitlines() if "--mend" in line).partition("run: discreet ")[2].split()
    assert again[-1] == "--write"
    mended = run(*again)
    assert (mended.code, "budget of account 'guests'" in mended.out) == (0, True)
    declared = tomllib.loads((tmp_path / "discreet.toml").read_text())
    assert declared["tables"]["guests_mended"]["account"] == "guests"
    assert list(declared["budgets"]) == ["guests"]
    protected = run("protect")
    question = protected.out.splitlines()[-1].partition("discreet ")[2]
    assert run(*shlex.split(question)).code == 0  # what is proposed can be pasted


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


@pytest.mark.ci
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


LAB = "patient_id,marker,level\n" + "".join(f"p{i},{'xy'[i % 2]},{i / 7:.3f}\n" for i in range(90))


@pytest.mark.ci
def test_a_second_table_is_added_and_nothing_else_is_touched(folder: Path) -> None:
    config = folder / "discreet.toml"
    before = f"# our own words stay\r\n{config.read_text()}# and these"
    config.write_bytes(before.encode())
    (folder / "lab.csv").write_text(LAB)
    told = run("check", "lab.csv")
    assert told.out.splitlines()[-1] == "To add it to discreet.toml, run: discreet check lab.csv --write"
    done = run("check", "lab.csv", "--write", "--account", "patients")
    assert done.code == 0, done.err
    text = config.read_bytes().decode()
    assert text.startswith(before)
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    added = tomllib.loads(text[len(before) :])
    assert added["tables"]["lab"]["types"] == {"patient_id": "text", "marker": "text", "level": "float"}
    assert (added["tables"]["lab"]["account"], "budgets" in added) == ("patients", False)
    assert "PRIVATE" in text[len(before) :]
    assert run("protect").code == 0
    assert run("ask", "SELECT COUNT(*) AS n FROM lab", "--epsilon", "0.1").code == 0
    again = run("check", "lab.csv", "--write")
    assert (again.code, "tables.lab" in again.err, "--config" in again.error["Hint"]) == (2, True, True)
    assert config.read_bytes().decode() == text
    assert sorted(path.name for path in folder.iterdir() if path.name.endswith(".new")) == []


def test_a_table_with_a_budget_of_its_own(folder: Path) -> None:
    (folder / "lab.csv").write_text(LAB)
    assert run("check", "lab.csv", "--write", "--name", "lab values").code == 0
    added = tomllib.loads((folder / "discreet.toml").read_text())
    assert set(added["budgets"]) == {"patients", "lab values"}
    assert run("protect").code == 0


@pytest.mark.ci
def test_types_of_many_columns_come_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody wrote the table by hand and left the types out; the command that is named adds them."""
    monkeypatch.chdir(tmp_path)
    names = [f"x{i}" for i in range(11)]
    rows = [",".join([f"p{i}", *(str(i * j) for j in range(11))]) for i in range(30)]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(["patient", *names]), *rows]) + "\n")
    config = tmp_path / "discreet.toml"
    declared = '[tables.people]\nsource = "wide.csv"\nunit = "patient"\nmax_rows = 1\n\n[budgets.people]\nepsilon = 1\n'
    config.write_text(declared)
    config.chmod(0o644)
    refused = run("protect")
    assert refused.code == 2
    command = refused.error["Hint"].partition("`discreet ")[2].partition("`")[0].split()
    assert command == ["check", "wide.csv", "--write"]
    done = run(*command)
    assert (done.code, "the types of 12 columns to [tables.people]" in done.out) == (0, True)
    assert config.read_text().startswith(declared)
    assert stat.S_IMODE(config.stat().st_mode) == 0o644  # nothing in it is private
    assert "PRIVATE" not in config.read_text()
    assert run("protect").code == 0
    (tmp_path / "wide.csv").write_text(
        "\n".join([",".join(["patient", *names, "new"]), *(f"{r},1" for r in rows)]) + "\n"
    )
    more = run(*command)
    assert (more.code, 'new = "int"' in more.err, 'x1 = "int"' in more.err) == (2, True, False)


def test_types_of_a_public_table(folder: Path) -> None:
    (folder / "wards.csv").write_text("ward,floor\nA,1\nB,2\n")
    with (folder / "discreet.toml").open("a") as out:
        out.write('\n[public.wards]\nsource = "wards.csv"\n')
    assert run("check", "wards.csv", "--write").code == 0
    types = tomllib.loads((folder / "discreet.toml").read_text())["public"]["wards"]["types"]
    assert types == {"ward": "text", "floor": "int"}
    assert run("protect").code == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text",
    [
        'tables = { visits = { source = "visits.csv", unit = "" } }\n',
        'tables = { lab = { source = "lab.csv", unit = "" } }\n',
        '[tables]\nlab = { source = "lab.csv", unit = "" }\n',
        "no toml at all",
        "tables = 3\n",
        "budgets = 3\n",
    ],
)
def test_a_file_that_cannot_take_a_section_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.csv").write_text(LAB)
    (tmp_path / "discreet.toml").write_text(text)
    assert run("check", "lab.csv", "--write").code == 2
    assert (tmp_path / "discreet.toml").read_text() == text


def test_a_link_stays_a_link(folder: Path) -> None:
    (folder / "lab.csv").write_text(LAB)
    (folder / "discreet.toml").rename(folder / "real.toml")
    (folder / "discreet.toml").symlink_to("real.toml")
    assert run("check", "lab.csv", "--write").code == 0
    assert (folder / "discreet.toml").is_symlink()
    assert "[tables.lab]" in (folder / "real.toml").read_text()
