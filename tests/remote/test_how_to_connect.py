"""docs/http_api.md: its programs run, and every route and status is in it."""

import re
from pathlib import Path

from discreet.service.api.error_responses import STATUS
from tests.remote.served import Served
from tests.service.api.offices import office

DOCUMENT = (Path(__file__).parents[2] / "docs" / "http_api.md").read_text(encoding="utf-8")


def test_programs_run(service: Served) -> None:
    programs = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(programs) == 3
    known: dict[str, object] = {}
    for program in programs:
        here = program.replace("https://data.example", service.url).replace("dk_3f9a2b1c_5ec7e7", service.keys["ana"])
        exec(compile(here, "docs/http_api.md", "exec"), known)
    assert known["stages"]


def test_every_route_is_documented() -> None:
    routes = {
        f"{method.upper()} {path}" for path, methods in office().app.openapi()["paths"].items() for method in methods
    }
    assert {route for route in routes if f"`{route}`" not in DOCUMENT} == set()


def test_every_status_is_documented() -> None:
    told = {
        int(number) for line in re.findall(r"^\| ([0-9, ]+) \|", DOCUMENT, re.MULTILINE) for number in line.split(",")
    }
    assert set(STATUS.values()) <= told
