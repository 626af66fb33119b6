"""`discreet choose-epsilon`: with a question or without, as a table, JSON, CSV and a page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.clinic import BY_WARD, TOML, run, write


def test_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = run("choose-epsilon", "--epsilon", "0.1", "--epsilon", "1", "--bounds", "0", "100")
    assert told.code == 0
    for word in ("epsilon=0.1", "± 30", "13.591", "73.106 %", "error of mean", "Nothing was read"):
        assert word in told.out


@pytest.mark.usefixtures("clinic")
def test_a_question_in_three_forms() -> None:
    before = run("verify").out
    arguments = ("choose-epsilon", BY_WARD, "--epsilon", "0.25", "--epsilon", "1/2", "--limits-rows", "2")
    assert "error of cost" in run(*arguments).out
    told = json.loads(run(*arguments, "--json").out)
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv").out)))
    assert [float(row["n_error"]) for row in rows] == [choice["errors"]["n"] for choice in told["choices"]]
    assert [choice["budget"]["epsilon"] for choice in told["choices"]] == ["1/4", "1/2"]
    assert run("verify").out == before


@pytest.mark.ci
def test_a_page(tmp_path: Path) -> None:
    path = tmp_path / "budgets.html"
    assert run("choose-epsilon", "--html", str(path)).code == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.count("<svg") == 12  # three panels, light and dark, wide and narrow
    assert "epsilon=0.03" in text


@pytest.mark.ci
@pytest.mark.usefixtures("clinic")
def test_mistakes(tmp_path: Path) -> None:
    for arguments, word in (
        (("--epsilon", "-1"), "--epsilon"),
        ((BY_WARD, "--bounds", "0", "1"), "--bounds"),
        (("--json", "--csv"), "--csv"),
        (("--html", str(tmp_path / "no" / "where.html")), "--html"),
    ):
        told = run("choose-epsilon", *arguments)
        assert told.code == 2
        assert f"Expected {word}=" in told.error["InvalidParameter"]


def test_bounds_and_limits_nobody_declared(folder: Path) -> None:
    write(folder, TOML.replace(", charge = [0, 500]", "").replace("epsilon = 2", "epsilon = 200"))
    assert run("protect").code == 0
    sql = "SELECT AVG(charge) AS cost FROM visits"
    told = run("explain", sql, "--epsilon", "40", "--choose-limits")
    assert "Bounds of charge will be chosen privately for epsilon 4, then remembered." in told.out
    assert "a scale that depends on what is chosen" in told.out
    answered = run("ask", sql, "--epsilon", "40", "--choose-limits")
    assert answered.code == 0
    assert "bounds that were chosen privately" in answered.out
    assert "Cost: epsilon=40" in answered.out
    assert "magnitude of charge, people" in run("history").out
    assert run("ask", sql, "--epsilon", "1", "--choose-limits", "--limits-rows", "2").code == 2


@pytest.mark.usefixtures("clinic")
def test_an_error_instead_of_an_epsilon() -> None:
    count = "SELECT COUNT(*) AS n FROM visits"
    assert "epsilon=0.118" in run("explain", count, "--within", "25", "--max-epsilon", "1", "--delta", "0").out
    answered = run("ask", count, "--within", "25", "--max-epsilon", "1", "--delta", "0")
    assert "Cost: epsilon=0.118" in answered.out
    refused = run("ask", count, "--within", "1", "--max-epsilon", "0.01")
    assert refused.code == 2
    assert "--max-epsilon " in refused.error["Hint"]
    assert run("ask", count).code == 2
