"""`discreet survey`: made, answered by one person and by a column, estimated; every mistake says what to do."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.clinic import run

MAKE = ("survey", "make", "s.json", "--question", "Do you smoke?", "--value", "yes", "--value", "no", "--epsilon", "2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run(*MAKE).code == 0
    return tmp_path


def test_a_survey_from_start_to_end(folder: Path) -> None:
    (folder / "people.csv").write_text("name,smokes\n" + "a,yes\n" * 300 + "b,no\n" * 700)
    assert (
        run("survey", "answer", "s.json", "--table", "people.csv", "--column", "smokes", "--out", "r.jsonl").code == 0
    )
    one = run("survey", "answer", "s.json", "--value", "no")
    (folder / "one.jsonl").write_text(one.out)
    found = run("survey", "estimate", "s.json", "r.jsonl", "one.jsonl")
    assert found.code == 0
    assert "Do you smoke?" in found.out
    assert "Reports: 1,001" in found.out
    told = json.loads(run("survey", "estimate", "s.json", "r.jsonl", "--json", "--project").out)
    assert [answer["value"] for answer in told["answers"]] == ["yes", "no"]
    assert sum(answer["share"] for answer in told["answers"]) == pytest.approx(1)
    as_csv = run("survey", "estimate", "s.json", "r.jsonl", "--csv", "--confidence", "0.9").out
    assert as_csv.startswith("value,share,share_low,share_high\nyes,")
    assert "no" not in (folder / "r.jsonl").read_text().replace('"report"', "")  # numbers, and the survey's mark


def test_asked_again_the_same_report_is_sent(folder: Path) -> None:
    options = ("survey", "answer", "s.json", "--remember", "mine.json", "--value")
    first = run(*options, "yes")
    assert first.code == 0
    assert {run(*options, value).out for value in ("yes", "no", "yes")} == {first.out}
    assert stat.S_IMODE((folder / "mine.json").stat().st_mode) == 0o600


def test_mistakes_are_explained(folder: Path) -> None:
    (folder / "people.csv").write_text("name,smokes\na,yes\nb,maybe\n")
    (folder / "other.json").write_text((folder / "s.json").read_text().replace("smoke", "drink"))
    assert run("survey", "answer", "other.json", "--value", "yes", "--out", "o.jsonl").code == 0
    (folder / "bad.jsonl").write_text("yes\n")
    (folder / "empty.jsonl").write_text("")
    (folder / "binary").write_bytes(b"\xff\xfe")
    cases = {
        MAKE: "not to exist yet",
        (*MAKE[:2], "t.json", *MAKE[3:5], "--value", "yes", "--epsilon", "1"): "at least two",
        ("survey", "answer", "s.json"): "--table with --column",
        ("survey", "answer", "s.json", "--value", "yes", "--table", "people.csv"): "--table with --column",
        ("survey", "answer", "s.json", "--table", "people.csv"): "--table with --column",
        ("survey", "answer", "s.json", "--value", "maybe"): "one of: yes, no",
        ("survey", "answer", "s.json", "--table", "people.csv", "--column", "smokes"): "one of: yes, no",
        ("survey", "answer", "s.json", "--table", "people.csv", "--column", "x"): "to be a column",
        ("survey", "answer", "s.json", "--table", "people.csv", "--column", "x", "--remember", "m"): "--value only",
        ("survey", "answer", "bad.jsonl", "--value", "yes"): "to hold a survey",
        ("survey", "answer", "none.json", "--value", "yes"): "to be usable",
        ("survey", "estimate", "s.json", "o.jsonl"): "to be for this survey",
        ("survey", "estimate", "s.json", "bad.jsonl"): "to be a report",
        ("survey", "estimate", "s.json", "empty.jsonl"): "at least one report",
        ("survey", "estimate", "s.json", "binary"): "UTF-8",
        ("survey", "estimate", "s.json", "o.jsonl", "--json", "--csv"): "without --json",
    }
    for arguments, part in cases.items():
        found = run(*arguments)
        assert found.code == 2, arguments
        assert part in found.err, found.err
        assert "maybe" not in found.err or "--value" in arguments
