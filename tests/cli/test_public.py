"""`discreet public`: a public table at the end of discreet.toml, tested before anything is written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.cli.clinic import TOML, run, write

WARDS = "ward,beds,region\nA,10,n\nB,20,n\nC,5,s\n"
JOIN = "SELECT region, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY region"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path)
    (tmp_path / "wards.csv").write_text(WARDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _declared(path: str = "discreet.toml") -> dict[str, object]:
    found: dict[str, object] = tomllib.loads(Path(path).read_text(encoding="utf-8"))["public"]
    return found


@pytest.mark.ci
def test_a_public_table_is_added_and_joined(folder: Path) -> None:
    assert run("protect").code == 0
    before = (folder / "discreet.toml").read_text()
    told = run("public", "wards.csv", "--unique", "ward", "--unique", "beds,region", "--type", "region=text")
    assert told.out == "Added [public.wards] to discreet.toml. Queries can join the table.\n"
    assert (folder / "discreet.toml").read_text().startswith(before)
    types = {"ward": "text", "beds": "int", "region": "text"}
    unique = ["ward", ["beds", "region"]]
    assert _declared() == {"wards": {"source": "wards.csv", "unique": unique, "types": types}}
    answered = run("ask", JOIN, "--epsilon", "1")  # without another `protect`: a public table is no entry of the ledger
    assert answered.code == 0, answered.err
    assert run("verify").code == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "reason", "hint"),
    [
        (["--unique", "wrd"], "Expected --unique='wrd' to name columns of 'wards'", "Its columns are ward, beds"),
        (["--unique", "region"], "Expected --unique='region' to be unique", "Leave it out"),
        (["--type", "wrd=text"], "Expected --type='wrd' to be a column", "Its columns are ward, beds"),
        (["--type", "ward=txt"], "Expected --type='txt' to be one of", ""),
        (["--type", "ward"], "Expected --type='ward' to be COLUMN=TYPE", "For example --type ward=text"),
        (["--name", "Visits"], "Expected --name='Visits' not to be declared", "Pass another --name NAME"),
    ],
)
def test_what_does_not_fit_leaves_the_file_as_it_is(options: list[str], reason: str, hint: str) -> None:
    told = run("public", "wards.csv", *options)
    assert (told.code, reason in told.err, hint in told.err) == (2, True, True), told.err
    assert Path("discreet.toml").read_text() == TOML


@pytest.mark.ci
@pytest.mark.usefixtures("folder")
def test_a_table_is_declared_once() -> None:
    assert run("public", "wards.csv").code == 0
    before = Path("discreet.toml").read_text()
    told = run("public", "wards.csv")
    assert (told.code, "The file has [public.wards], and is unchanged." in told.err) == (2, True)
    assert Path("discreet.toml").read_text() == before
    assert run("public", "wards.csv", "--name", "places").code == 0
    assert run("public", "nothing.csv").code == 2


@pytest.mark.usefixtures("folder")
def test_a_new_file_is_written_in_another_folder() -> None:
    Path("sub").mkdir()
    assert run("public", "wards.csv", "--name", "all wards", "--config", "sub/discreet.toml").code == 0
    assert _declared("sub/discreet.toml")["all wards"] == {
        "source": "../wards.csv",
        "types": {"ward": "text", "beds": "int", "region": "text"},
    }


@pytest.mark.usefixtures("folder")
def test_a_file_that_cannot_be_read_is_refused_with_the_command_that_mends_it() -> None:
    Path("wards.csv").write_bytes("ward,beds\nZürich,1\n".encode("latin-1"))
    told = run("public", "wards.csv")
    assert (told.code, "discreet check wards.csv --mend COPY.csv" in told.err) == (2, True), told.err
    assert run("check", "wards.csv", "--mend", "COPY.csv").code == 0
    assert run("public", "COPY.csv", "--name", "wards").code == 0
