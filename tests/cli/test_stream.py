"""`discreet stream`: started, released period by period, shown; every mistake says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.clinic import records, run

CSV = "patient_id,day\n" + "".join(f"p{i},2026-01-0{1 + i % 3}\n" for i in range(90))
TOML = """\
ledger = "clinic.ledger"

[tables.visits]
source = "visits.csv"
unit = "patient_id"
max_rows = 1
types = { patient_id = "text", day = "date" }
version = "1"

[budgets.visits]
rho = 100
"""
DAILY = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
START = ("stream", "start", "daily", DAILY, "--horizon", "3", "--start", "2026-01-01", "--rho", "50")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(CSV)
    (tmp_path / "discreet.toml").write_text(TOML)
    assert run("protect").code == 0
    return tmp_path


@pytest.mark.ci
def test_a_stream_from_start_to_end(folder: Path) -> None:
    started = run(*START)
    assert started.code == 0
    assert "charged once" in started.err + started.out
    assert run(*START).code == 0  # again: nothing happens
    first = json.loads(run("stream", "release", "daily", "--json").out)
    assert run("stream", "release", "daily", "--csv").out.startswith("day,n,n_low,n_high\n2026-01-02,")
    again = json.loads(run("stream", "release", "daily", "--period", "2026-01-01", "--json").out)
    assert again["rows"] == first["rows"]
    assert run("stream", "release", "daily", "--confidence", "0.9").code == 0
    shown = run("stream", "show", "daily", "--json")
    assert [row["day"] for row in records(shown.out)] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    ended = run("stream", "release", "daily")
    assert ended.code == 5
    assert "All 3 periods" in ended.error["StreamError"]
    assert (folder / "clinic.ledger.streams").stat().st_mode & 0o777 == 0o700


def test_mistakes_say_what_to_do(folder: Path) -> None:
    assert folder.exists()
    assert "Start it first" in run("stream", "release", "weekly").error["Hint"]
    assert run("stream", "start", "n", "SELECT COUNT(*) AS n FROM visits", "--rho", "1").code == 4
    assert run("stream", "start", "n", DAILY, "--every", "7", "--start", "soon", "--rho", "1").code == 2
    assert run("stream", "start", "n", DAILY, "--horizon", "3", "--rho", "101").code == 3
