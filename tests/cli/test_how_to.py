"""The pages about servers and clusters, followed line by line: what they tell to type is typed, as it stands there."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from docs.generators.terminal import Terminal
from docs.site.code_blocks import Block, blocks
from docs.site.navigation import DOCS
from tests.cli.clinic import run
from tests.postgres_server import PostgresServer, absent

DAY = dt.date(2026, 11, 1)
VISITS = "patient_id,ward,age,charge,day\n" + "".join(
    f"p{i % 200},{'ABC'[i % 3]},{20 + i % 70},{i % 40}.50,{DAY + dt.timedelta(i % 30)}\n" for i in range(400)
)


class Follower:
    """Somebody who has a file, an empty folder and a page.

    Args:
        page: what is read.
        names: what the page calls something, and what it is called here.
    """

    def __init__(self, page: str, names: dict[str, str]) -> None:
        self._page = DOCS / page
        self._terminal = Terminal(names)
        self.answers: list[str] = []

    def follow(self, heading: str) -> None:
        """Does what one section tells: types commands, runs Python, and changes lines of discreet.toml."""
        text = self._page.read_text(encoding="utf-8")
        before, _, rest = text.partition(f"\n## {heading}\n")
        end = len(text) - len(rest.partition("\n## ")[2])
        for block in blocks(self._page):
            if len(before) < block.start < end:
                self._do(block)

    def first_program(self) -> dict[str, Any]:
        """Runs the program that stands above all others; returns what it has made."""
        return self._run(next(block for block in blocks(self._page) if block.language == "python"))

    def _do(self, block: Block) -> None:
        if block.language == "sh":
            self.answers += [printed for line in block.body.splitlines() for printed in self._typed(line)]
            block.ran()
        elif block.language == "toml":
            self._terminal.declare(block.body)
        elif block.language == "python":
            made = self._run(block)
            if "curator" in made:
                made["curator"].close()

    def _run(self, block: Block) -> dict[str, Any]:
        """Runs a program; one that protects a table does so in a folder of its own, beside the command line's."""
        folder = Path(f"program_{block.line}" if "protect(" in block.body else ".")
        folder.mkdir(exist_ok=True)
        made: dict[str, Any] = {}
        with contextlib.chdir(folder):
            exec(self._terminal.here(block.body), made)
        block.ran()
        return made

    def _typed(self, line: str) -> list[str]:
        """What was printed, if it is an answer."""
        printed = self._terminal.type(line)
        return [printed] if line.startswith("discreet ask") else []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(VISITS)
    return tmp_path


@pytest.fixture
def server(postgres_server: PostgresServer) -> PostgresServer:
    """The server, for somebody who has psql."""
    if shutil.which("psql") is None:
        absent("psql is not installed, e.g. apt-get install postgresql-client")
    return postgres_server


def on_a_server(server: PostgresServer, name: str) -> Follower:
    """Somebody who has followed the page up to a table of a server; the database is called by that name."""
    here = {"db.example": f"127.0.0.1:{server.port}", "discreet_reader": f"{name}_reader"}
    here |= {"/clinic": f"/{name}", "DATABASE clinic": f"DATABASE {name}"}
    reader = Follower("scaling.md", here)
    reader.follow("The file")
    reader.follow("PostgreSQL")
    made = reader.first_program()
    made["curator"].close()
    return reader


@pytest.mark.ci
def test_from_a_file_to_a_server(folder: Path, server: PostgresServer) -> None:
    reader = on_a_server(server, "how_to")
    assert ["free" in answer for answer in reader.answers] == [False, True, False]
    assert "engine = " in (folder / "discreet.toml").read_text()
    again = run("ask", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5")  # with the engine at the top of the file
    assert again.code == 0, again
    assert run("audit", "visits").code == 2
    secret = server.url("ana:secret", "how_to/visits")
    for command in (("check", secret), ("attack", "uniqueness", secret, "--on", "age")):
        refused = run(*command)
        assert refused.code == 2
        assert "psql" in refused.error["Hint"]
        assert "secret" not in f"{refused}"


@pytest.mark.slow
def test_what_needs_a_file_says_how_to_get_one(folder: Path, server: PostgresServer) -> None:
    """And what it says is done."""
    on_a_server(server, "audited")
    database = server.url("audited_reader", "audited")
    asked = ("--sql", "SELECT COUNT(*) AS n FROM visits", "--neighbours", "2", "--rows", "60")
    refused = run("audit", "visits", *asked)
    assert refused.code == 2
    told = refused.error["Hint"].partition("From PostgreSQL: ")[2]
    columns = "patient_id, ward, age, charge, day"
    copy = told.replace("ADDRESS", database).replace("FILE", "copy").replace("* FROM TABLE", f"{columns} FROM visits")
    subprocess.run(shlex.split(copy), check=True, capture_output=True)
    lines = [line for line in (folder / "discreet.toml").read_text().splitlines() if not line.startswith("engine")]
    (folder / "audit.toml").write_text(re.sub("(?m)^source = .*$", 'source = "copy.csv"', "\n".join(lines)))
    audited = run("audit", "visits", *asked, "--config", "audit.toml")
    assert audited.code == 0, audited


@pytest.mark.ci
def test_from_a_ledger_file_to_one_that_machines_share(folder: Path, server: PostgresServer) -> None:
    names = {role: f"how_to_{role}" for role in ("ledger_owner", "curators", "auditors")}
    names |= {"ledger.example": f"127.0.0.1:{server.port}", "/ledger": "/how_to_ledger"}
    names |= {"roles ledger ": "roles how_to_ledger --owner how_to_ledger_owner "}
    Follower("scaling.md", {}).follow("The file")
    head = run("verify").out.splitlines()[-1]
    names |= {"/restored": "/how_to_restored", "DATABASE restored": "DATABASE how_to_restored", "SEQ:HASH": head}
    names |= {"?sslmode=verify-full": ""}
    page = Follower("shared_ledger.md", names)
    page.follow("Roles")
    page.follow("Moving a ledger file there")
    assert run("verify", "--anchor", head).code == 0
    with page.first_program()["curator"] as curator:
        assert curator.accounts() == ("visits",)
    assert run("ask", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5").code == 0
    copied = run("ledger", "copy", server.url("how_to_auditors", "how_to_ledger"), "copy.ledger")
    assert copied.code == 0
    assert int(copied.out.splitlines()[-1].partition(":")[0]) > int(head.partition(":")[0])
    page.follow("Backups")
    assert "how_to_restored" in (folder / "discreet.toml").read_text()
    assert run("ask", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5").out.count("free") == 1


@pytest.mark.slow
@pytest.mark.page
def test_from_a_file_to_spark(folder: Path) -> None:
    if find_spec("pyspark") is None or shutil.which("java") is None:
        absent("PySpark or Java is not installed")
    names = {"local[4]": "local[2]", "spark://head.example:7077": "local[2]"}
    reader = Follower("scaling.md", names | {"hdfs://head.example/clinic/visits": str(folder / "visits.parquet")})
    reader.follow("The file")
    reader.follow("Spark")
    assert (folder / "visits.parquet").exists()
    assert ["free" in answer for answer in reader.answers] == [False, True, False]
