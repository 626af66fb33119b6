"""`discreet serve --demo` as somebody would start it: ready, asked in three ways, stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli.app import app
from discreet.curator.config.toml_file import load
from discreet.errors import NotAuthenticated, UnsupportedQuery
from discreet.ledger import Ledger
from discreet.service.demo_clinic import TEXT
from discreet.service.settings import require_anchor
from tests.postgres_server import PostgresServer

COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@contextmanager
def served(folder: Path) -> Iterator[tuple[dict[str, str], subprocess.Popen[str]]]:
    code = "from discreet.cli import main; main()"
    options = ["--demo", "--folder", str(folder), "--port", "0", "--pg", "0", "--metrics", "0", "--json"]
    command = [sys.executable, "-c", code, "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline()), process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.parametrize("declared", ["", 'anchor = ""\n'])
def test_a_service_needs_an_anchor_of_its_own(declared: str, tmp_path: Path) -> None:
    """Before anything is made; what is proposed is accepted."""
    config = tmp_path / "discreet.toml"
    config.write_text(f"{declared}{TEXT.replace('anchor =', '# anchor =')}")
    refused = CliRunner().invoke(app, ["serve", "--config", str(config), "--port", "0"])
    assert refused.exit_code == 2
    assert not (tmp_path / "clinic.ledger").exists()
    line = refused.output.replace("\n", " ").split("Add `")[1].split("`")[0]
    config.write_text(f"{line}\n{TEXT.replace('anchor =', '# anchor =')}")
    require_anchor(load(config).anchor)


@pytest.mark.slow
def test_the_demo_is_asked_in_three_ways_and_stops(tmp_path: Path) -> None:
    folder = tmp_path / "clinic"
    with served(folder) as (told, process):
        assert set(told) == {"url", "link", "analyst_key", "steward_key", "pg", "metrics"}
        curator = discreet.connect(told["url"], key=told["analyst_key"])
        over_http = curator.ask(COUNT, epsilon=0.1)
        with psycopg.connect(told["pg"], autocommit=True) as connection:
            connection.execute("SET discreet.epsilon = 0.1")
            rows = connection.execute(COUNT).fetchall()
        assert [row[1] for row in rows] == [row["n"] for row in over_http]  # the stored answer, for nothing
        with pytest.raises(UnsupportedQuery):
            curator.ask("SELECT * FROM visits", epsilon=1)
        with pytest.raises(NotAuthenticated):
            discreet.connect(told["url"], key=told["analyst_key"][:-1] + "x").ask(COUNT, epsilon=0.1)
        metrics = Request(told["metrics"], headers={"Authorization": f"Bearer {told['steward_key']}"})
        assert b"discreet_requests" in urlopen(metrics, timeout=60).read()
        page = urlopen(f"{told['url']}/sign-in", timeout=60).read().decode()
        assert "Sign in" in page
    assert process.returncode == 0
    with Ledger(str(folder / "clinic.ledger"), read_only=True) as ledger:
        kinds = [entry.kind for entry in ledger.history("patients")]
        assert (kinds.count("charge"), kinds.count("answer")) == (1, 1)
        ledger.verify()
    mode = os.stat(folder / "discreet.identities").st_mode & 0o777
    assert mode == 0o600


# ------------------------------------------------------------------------------------ folders that are there already

DECLARED = """
ledger = "{ledger}"
anchor = "{anchor}"
[tables.visits]
source = "visits.csv"
unit = "patient"
max_rows = 1
account = "patients"
types = {{ patient = "int", day = "int" }}
[budgets.patients]
epsilon = 10
[analysts.ana.patients]
epsilon = 5
"""
JOINED = "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.patient = b.patient"


def declared(folder: Path, ledger: str, rows: int) -> Path:
    """A folder with a table of ten people with one row each, and of one with so many."""
    folder.mkdir(mode=0o700)
    lines = [f"{who},1" for who in range(10)] + [f"10,{day}" for day in range(rows)]
    (folder / "visits.csv").write_text("patient,day\n" + "\n".join(lines) + "\n")
    (folder / "discreet.toml").write_text(DECLARED.format(ledger=ledger, anchor=folder / "clinic.anchor"))
    return folder


def posted(told: dict[str, str], sql: str) -> httpx.Response:
    who = {"Authorization": f"Bearer {told['analyst_key']}"}
    return httpx.post(f"{told['url']}/v1/ask", json={"sql": sql, "epsilon": "0.5"}, headers=who, timeout=60)


@pytest.mark.slow
def test_many_rows_of_one_person_change_no_status(tmp_path: Path) -> None:
    """A join multiplied 20,000 rows of one person to 400 million, and the request failed."""
    found = []
    for rows in (1, 20_000):
        with served(declared(tmp_path / str(rows), "clinic.ledger", rows)) as (told, _):
            response = posted(told, JOINED)
            found.append((response.status_code, response.json()["notes"], response.json()["cost"]))
    assert found[0][0] == 200
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_service_without_its_ledger_is_not_ready_and_stops_in_time(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        folder = declared(tmp_path / "clinic", server.url(database=server.make_database()), 1)
        with served(folder) as (told, process):
            assert posted(told, JOINED).status_code == 200
            assert httpx.get(f"{told['url']}/readyz", timeout=60).status_code == 200
            server.stop()
            assert posted(told, JOINED.replace("COUNT(*)", "COUNT(a.day)")).status_code == 503
            assert httpx.get(f"{told['url']}/readyz", timeout=60).status_code == 503
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            assert time.monotonic() - began < 10  # a promise to operators, not a speed
        assert process.returncode == 0
    finally:
        server.close()
