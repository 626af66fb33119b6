"""Blocks for a shell, typed as they stand on their pages: with a service that runs, a PostgreSQL server, and Spark."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from docs.generators.terminal import Terminal, discreet
from docs.generators.walkthroughs import DOCS, filled
from docs.site.code_blocks import Block, blocks
from docs.site.navigation import pages
from tests.cli.clinic import COUNT, run, write
from tests.postgres_server import PostgresServer, absent
from tests.test_walkthroughs import README, shape

REPORT = "/srv/clinic/.venv/bin/discreet report"


def need(*programs: str) -> None:
    """Skips where a program is not installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        absent(f"{', '.join(missing)}: not installed")


@pytest.mark.slow
@pytest.mark.page
def test_a_page_with_a_server_and_spark(postgres_server: PostgresServer) -> None:
    need("psql", "java")
    if find_spec("pyspark") is None:
        absent("PySpark is not installed")
    page = DOCS / "tutorials" / "servers.md"
    names = {"db.example": f"127.0.0.1:{postgres_server.port}", "discreet_reader": "tutorial_reader"}
    with Terminal({**names, "/clinic": "/tutorial", "DATABASE clinic": "DATABASE tutorial"}) as terminal:
        assert shape(filled(page, terminal)) == shape(page.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.page
@pytest.mark.parametrize("page", [README, DOCS / "tutorials" / "serve_a_team.md"], ids=lambda page: page.stem)
def test_a_page_with_a_service(page: Path) -> None:
    need("psql", "curl", "make")
    with Terminal() as terminal:
        assert shape(filled(page, terminal)) == shape(page.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.page
def test_what_pages_install_is_there() -> None:
    """Pip finds every distribution and extra of the pages' blocks, without asking another machine."""
    every = [block for page in (README, *pages()) for block in blocks(page) if block.language == "sh"]
    lines = [line for block in every for line in block.body.splitlines() if line.startswith("pip install ")]
    wanted = {f"discreet{word[1:]}" for line in lines for word in shlex.split(line, comments=True)[2:]}  # for "."
    assert {"discreet", "discreet[service]", "discreet[postgres]", "discreet[spark]"} <= wanted
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", *sorted(wanted)]
    subprocess.run(pip, check=True)
    for block in every:
        if all(line in lines for line in block.body.splitlines()):
            block.ran()


def shell_blocks(name: str) -> list[Block]:
    """The blocks of a page that are typed."""
    return [block for block in blocks(DOCS / name) if block.language == "sh"]


@pytest.mark.slow
@pytest.mark.page
def test_the_page_about_serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service is started, its folder is copied; then the ledger is lost, with one entry that the copy lacks."""
    start, backup, restore = shell_blocks("serving.md")
    monkeypatch.chdir(tmp_path)
    with Terminal() as terminal:
        terminal.type(start.body)
        start.ran()
    monkeypatch.chdir(tmp_path / "discreet-clinic")
    kept = tmp_path / "backup"
    kept.mkdir()
    with Terminal({"/backup": str(kept)}) as terminal:
        terminal.type(backup.body)
        backup.ran()
    (copy,) = kept.glob("*.ledger.*")
    assert (kept / "discreet.identities").read_bytes()[:6] == b"SQLite"
    assert run("ask", COUNT, "--epsilon", "0.5", "--analyst", "ana").code == 0
    Path("clinic.ledger").unlink()
    with Terminal({"/backup/discreet.ledger.52": str(copy)}) as terminal:
        first, second = restore.body.splitlines()
        with pytest.raises(RuntimeError, match="--accept-loss"):
            terminal.type(first)
        terminal.type(second)
        restore.ran()
    with Ledger("clinic.ledger", read_only=True) as ledger:
        ledger.verify()


@pytest.mark.ci
def test_the_report_of_every_morning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line for cron is run by a shell, as cron does, and systemd is told the same command."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    assert run("protect").code == 0
    Path("reports").mkdir()
    page = (DOCS / "reporting.md").read_text("utf-8")
    (line,) = re.findall(r"(?m)^15 6 \* \* \* (.*)$", page)
    assert line.count(REPORT) == 1
    assert re.findall(r"(?m)^ExecStart=(.*)$", page) == [line.partition(" && ")[2].partition(" >> ")[0]]
    program = f"{shlex.quote(sys.executable)} -c 'from discreet.cli import main; main()' report"
    here = line.replace(REPORT, program).replace("/srv/clinic", str(tmp_path))
    subprocess.run(["/bin/sh", "-c", here], check=True)
    head = Path("reports/heads.txt").read_text().splitlines()[-1]
    assert head == discreet(["verify"]).splitlines()[-1]
    assert "<html" in Path("reports/latest.html").read_text("utf-8")


def test_targets_for_contributors() -> None:
    need("make")
    (block,) = (block for block in blocks(DOCS.parent / "CONTRIBUTING.md") if block.is_run)
    with Terminal() as terminal:
        terminal.type(block.body)
    block.ran()


def test_a_command_that_fails_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Terminal() as terminal:
        for command in ("discreet budget", "false | cat", "make nothing"):
            with pytest.raises(RuntimeError, match="ended with"):
                terminal.type(command)
        assert terminal.type('WHO="ana"\necho "$WHO"  # and a comment\n') == "ana\n"
        assert terminal.type("python -c '\nprint(1)\n'") == "1\n"
