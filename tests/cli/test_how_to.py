"""The pages about servers and clusters, followed line by line: what they tell to type is typed, as it stands there."""

from __future__ import annotations

import datetime as dt
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.clinic import run
from tests.postgres_server import PostgresServer, absent

DOCS = Path(__file__).parents[2] / "docs"
DAY = dt.date(2026, 11, 1)
VISITS = "patient_id,ward,age,charge,day\n" + "".join(
    f"p{i % 200},{'ABC'[i % 3]},{20 + i % 70},{i % 40}.50,{DAY + dt.timedelta(i % 30)}\n" for i in range(400)
)
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_LINE = re.compile(r'(?m)^(\w+) = ("[^"]*").*$')


class Follower:
    """Somebody who has a file, an empty folder and a page.

    Args:
        page: what is read.
        names: what the page calls something, and what it is called here.
    """

    def __init__(self, page: str, names: dict[str, str]) -> None:
        for name, here in names.items():
            page = page.replace(name, here)
        self._page = page
        self.answers: list[str] = []

    def follow(self, heading: str) -> None:
        """Does what one section tells: types commands, runs Python, and changes lines of discreet.toml."""
        section = self._page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        for kind, block in _BLOCK.findall(section):
            {"sh": self._type, "toml": _declare}.get(kind, _leave)(block)
            if kind == "python" and "import duckdb" in block:
                exec(block, {})

    def _type(self, block: str) -> None:
        for line in block.splitlines():
            if not line.startswith("pip "):
                self._pipe(line)

    def _pipe(self, line: str) -> None:
        out: str | None = None
        for command in re.split(r" \| (?=psql)", line):
            program, *arguments = shlex.split(command)
            if program == "discreet":
                told = run(*arguments)
                assert told.code == 0, (line, told)
                out = told.out
                self.answers += [out] if arguments[0] == "ask" else []
            else:
                assert program in ("psql", "pg_dump", "pg_restore")
                stop = ["-q", "-v", "ON_ERROR_STOP=1"] if program == "psql" else []
                subprocess.run([program, *stop, *arguments], input=out, text=True, check=True, capture_output=True)


def _leave(block: str) -> None:
    """SQL that a command prints, Python beside the command line: not to be typed."""
    assert block


def _declare(block: str) -> None:
    """Writes a whole file, or puts single lines of it right: those at the top before all sections."""
    config = Path("discreet.toml")
    if "[budgets" in block:
        config.write_text(block)
        return
    text = config.read_text()
    for name, value in _LINE.findall(block):
        changed, found = re.subn(rf"(?m)^{name} = .*$", f"{name} = {value}", text)
        text = changed if found else f"{name} = {value}\n{text}"
    config.write_text(text)


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
    reader = Follower((DOCS / "scaling.md").read_text(encoding="utf-8"), here)
    reader.follow("The file")
    reader.follow("PostgreSQL")
    return reader


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


def test_from_a_ledger_file_to_one_that_machines_share(folder: Path, server: PostgresServer) -> None:
    names = {role: f"how_to_{role}" for role in ("ledger_owner", "curators", "auditors")}
    names |= {"ledger.example": f"127.0.0.1:{server.port}", "/ledger": "/how_to_ledger"}
    names |= {"roles ledger ": "roles how_to_ledger --owner how_to_ledger_owner "}
    Follower((DOCS / "scaling.md").read_text(encoding="utf-8"), {}).follow("The file")
    head = run("verify").out.splitlines()[-1]
    names |= {"/restored": "/how_to_restored", "DATABASE restored": "DATABASE how_to_restored", "SEQ:HASH": head}
    page = Follower((DOCS / "shared_ledger.md").read_text(encoding="utf-8"), names)
    page.follow("Roles")
    page.follow("Moving a ledger file there")
    assert run("verify", "--anchor", head).code == 0
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
    reader = Follower((DOCS / "scaling.md").read_text(encoding="utf-8"), {"local[4]": "local[2]"})
    reader.follow("The file")
    reader.follow("Spark")
    assert (folder / "visits.parquet").exists()
    assert ["free" in answer for answer in reader.answers] == [False, True, False]
