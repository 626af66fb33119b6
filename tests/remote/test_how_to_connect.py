"""docs/http_api.md: its programs run, and every route and status is in it."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from discreet.service.api.http_responses import STATUS
from docs.generators.http_routes import page_with_table, route_table
from docs.generators.terminal import Terminal
from docs.site.code_blocks import blocks
from docs.site.navigation import DOCS
from tests.postgres_server import absent
from tests.remote.served import Served
from tests.service.api.offices import office

PAGE = DOCS / "http_api.md"
DOCUMENT = PAGE.read_text(encoding="utf-8")


def test_programs_run(service: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("key").write_text(service.keys["ana"])
    known: dict[str, object] = {}
    *programs, command = [block for block in blocks(PAGE) if block.is_run]
    for program in programs:
        here = program.body.replace("https://data.example", service.url)
        here = here.replace("dk_3f9a2b1c_5ec7e7", service.keys["ana"])
        exec(compile(here, "docs/http_api.md", "exec"), known)
        program.ran()
    assert known["stages"]
    if shutil.which("curl") is None:
        absent("curl is not installed")
    with Terminal({"https://data.example": service.url}) as terminal:
        answer = json.loads(terminal.type(command.body))
    assert [row[0] for row in answer["rows"]] == ["A", "B", "C"]
    command.ran()


@pytest.mark.ci
def test_every_route_is_documented() -> None:
    routes = {
        f"{method.upper()} {path}" for path, methods in office().app.openapi()["paths"].items() for method in methods
    }
    assert {route for route in routes if f"`{route}`" not in DOCUMENT} == set()


def test_the_table_of_verbs_is_that_of_today() -> None:
    if os.environ.get("DISCREET_WRITE_TABLES"):
        PAGE.write_text(page_with_table(DOCUMENT), encoding="utf-8")
    assert page_with_table(PAGE.read_text(encoding="utf-8")) == PAGE.read_text(encoding="utf-8")
    assert route_table() in PAGE.read_text(encoding="utf-8")


def test_every_status_is_documented() -> None:
    told = {
        int(number) for line in re.findall(r"^\| ([0-9, ]+) \|", DOCUMENT, re.MULTILINE) for number in line.split(",")
    }
    assert set(STATUS.values()) <= told
