"""`discreet audit`: verdicts and exit codes; no data, no charge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from discreet.cli import audits
from discreet.measurement.releases.additive import AdditiveNoise
from tests.cli.clinic import BY_WARD, COUNT, TOML, run, write

QUICK = ("--neighbours", "2", "--rows", "30")


@pytest.mark.ci
def test_a_sound_table_passes_and_nothing_is_charged(clinic: Path) -> None:
    ledger = (clinic / "clinic.ledger").read_bytes()
    told = run("audit", "visits", "--sql", COUNT, "--sql", BY_WARD, *QUICK)
    assert told.code == 0, told.err
    assert "Passed: 2 questions on 2 pairs" in told.out
    assert "cannot show" in told.out
    assert (clinic / "clinic.ledger").read_bytes() == ledger


@pytest.mark.ci
def test_no_ledger_is_needed_and_none_is_made(folder: Path) -> None:
    assert run("audit", "--sql", COUNT, *QUICK).code == 0
    assert not (folder / "clinic.ledger").exists()


@pytest.mark.ci
def test_no_data_is_shown(clinic: Path) -> None:
    """Ids, and values that are no declarations, stand nowhere in what is printed or written."""
    page = clinic / "report.html"
    told = run("audit", "--sql", BY_WARD, "--json", "--report", str(page), *QUICK)
    assert told.code == 0
    for text in (told.out, told.err, page.read_text()):
        assert not [who for who in ("p7", "p11", "p119", "399.0", "10.5") if f'"{who}"' in text or f" {who}" in text]


@pytest.mark.ci
def test_json_and_page(clinic: Path) -> None:
    page = clinic / "report.html"
    told = run("audit", "--sql", COUNT, "--epsilon", "1/2", "--delta", "0", "--json", "--report", str(page), *QUICK)
    found = json.loads(told.out)
    assert found["passed"] is True
    (audited,) = found["audits"]
    assert (audited["table"], audited["epsilon_claimed"], audited["epsilon_lower"]) == ("visits", 0.5, 0.5)
    assert audited["questions"][0]["sql"] == COUNT
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "Readers of this system" in text
    assert "What this cannot show" in text
    assert "<script" not in text


@pytest.mark.slow
def test_a_standard_set_of_questions(clinic: Path) -> None:
    del clinic
    told = run("audit", "--json", *QUICK)
    assert told.code == 0
    asked = [each["sql"] for each in json.loads(told.out)["audits"][0]["questions"]]
    assert len(asked) >= 15
    for word in (
        "COUNT(*)",
        "SUM(",
        "AVG(",
        "MEDIAN(",
        "QUANTILE(",
        "MODE(",
        "VARIANCE(",
        "GROUP BY ward",
        "GROUP BY age",
    ):
        assert any(word in sql for sql in asked), word


@pytest.mark.ci
def test_a_violation_ends_with_five(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = AdditiveNoise.laplace.__func__  # type: ignore[attr-defined]

    def halved(cls: type[AdditiveNoise], *arguments: Any) -> AdditiveNoise:
        found: AdditiveNoise = right(cls, *arguments)
        return replace(found, scales=tuple(scale / 2 for scale in found.scales))

    monkeypatch.setattr(AdditiveNoise, "laplace", classmethod(halved))
    page = clinic / "report.html"
    told = run("audit", "--sql", COUNT, "--report", str(page), *QUICK)
    assert told.code == 5
    assert "FAILED" in told.out
    assert "movement: expected at most 1 epsilon, found 2" in told.out
    assert "Violations" in page.read_text()


@pytest.mark.ci
def test_mistakes(clinic: Path) -> None:
    assert run("audit", "nobody").code == 4
    assert run("audit", "--sql", "SELECT * FROM visits", *QUICK).code == 4
    assert run("audit", "--epsilon", "0", *QUICK).code == 2
    assert run("audit", "--neighbours", "0").code == 2
    assert run("audit", "--sql", COUNT, "--report", str(clinic), *QUICK).code == 2
    assert run("audit", "--config", "nowhere.toml").code == 2


MORE = """
[tables.stays]
source = "visits.csv"
unit = "patient_id"
max_rows = 1
account = "patients"
types = { patient_id = "text", age = "int" }
bounds = { age = [0, 120] }

[tables.notes]
source = "visits.csv"
unit = "age -> stays.age"
max_rows = 1
types = { age = "int" }
"""


@pytest.mark.ci
def test_tables_on_a_way_and_questions_about_several(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question may be about all tables of an account; without one, every table is audited."""
    write(folder, TOML + MORE)
    both = "SELECT COUNT(*) AS n FROM notes JOIN stays USING (age)"
    few = ("--neighbours", "2", "--rows", "20")
    told = run("audit", "notes", "--sql", both, *few)
    assert told.code == 0, told.out
    assert "notes: Passed" in told.out
    named: list[str] = []
    monkeypatch.setattr(audits, "audit_table", lambda _config, name, **_: named.append(name))
    audits.audit_tables(folder / "discreet.toml", None, (), epsilon="1", delta=None, neighbours=2, rows=20)
    assert named == ["visits", "stays", "notes"]


@pytest.mark.ci
def test_a_question_names_the_account_where_there_are_several(folder: Path) -> None:
    write(folder, TOML + MORE.replace('"patients"', '"guests"') + "[budgets.guests]\nepsilon = 1\n")
    told = run("audit", "--sql", COUNT, *QUICK)
    assert told.code == 2
    assert "visits, stays" in told.err
    assert run("audit", "stays", "--sql", "SELECT AVG(age) AS m FROM stays", "--neighbours", "2").code == 0
