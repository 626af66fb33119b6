"""`discreet report`: a page from the ledger, exit codes, and a ledger that is not as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.ledger import Ledger
from tests.cli.clinic import COUNT, run, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_before_anything_is_protected_there_is_no_ledger(folder: Path) -> None:
    told = run("report")
    assert told.code == 2
    assert "discreet protect" in told.err
    assert not (folder / "report.html").exists()


@pytest.mark.ci
def test_the_page_is_written_and_the_head_printed(folder: Path) -> None:
    assert run("protect").code == 0
    assert run("ask", COUNT, "--epsilon", "0.5").code == 0
    (folder / "visits.csv").unlink()  # no data are read
    told = run("report", "monday.html")
    assert told.code == 0, told.err
    with Ledger("clinic.ledger", read_only=True) as ledger:
        assert told.out.splitlines()[-1] == str(ledger.head())
    page = (folder / "monday.html").read_text(encoding="utf-8")
    assert "Verified" in page
    assert COUNT in page
    assert run("report", "--anchor", told.out.splitlines()[-1]).code == 0


def test_a_folder_is_a_target_as_of_backup(folder: Path) -> None:
    assert run("protect").code == 0
    (folder / "pages").mkdir()
    assert run("report", "pages").out.startswith("Wrote pages/report.html")
    assert (folder / "pages" / "report.html").exists()
    assert run("backup", "pages").out.startswith("Copied 3 entries to pages/clinic.ledger.3")


def test_the_former_option_works_and_warns(folder: Path) -> None:
    assert run("protect").code == 0
    told = run("report", "--out", "my page.html")
    assert (told.code, (folder / "my page.html").exists()) == (0, True)
    assert "`--out` is now `discreet report 'my page.html'`. It works until version 0.4." in told.err
    assert "--out" not in run("report", "--help").out
    assert run("report", "other.html").err == ""


def test_a_ledger_that_lacks_its_anchor_ends_with_5_and_is_told(folder: Path) -> None:
    assert run("protect").code == 0
    told = run("report", "--anchor", f"1:{'f' * 64}")
    assert told.code == 5
    assert "Anchor not found" in (folder / "report.html").read_text(encoding="utf-8")
    assert run("budget").code == 0  # nothing is frozen by looking
    assert run("report", "--anchor", "nothing").code == 2
