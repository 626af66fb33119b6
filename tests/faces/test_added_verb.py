"""A verb is one file with its request and handler, and one line of `VERBS`: all faces follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faces.added_verb import run_with_the_verb

PROGRAM = """
import json
import httpx
import discreet
from discreet.errors import InvalidParameter
from typer.testing import CliRunner
from discreet.cli import app
from discreet.noise import SeededBits
from docs.generators.http_routes import route_table
from tests.remote.served import served

told = {}
with served(SeededBits(5)) as service:
    own = service.desk.curator.count_rows(table="visits", epsilon="0.5", analyst="ana")
    remote = discreet.connect(service.url, key=service.keys["ana"]).count_rows(table="visits", epsilon="0.5")
    told["equal"] = (own.table, own.rows, own.ends) == (remote.table, remote.rows, remote.ends)
    told["rows"] = type(remote.rows).__name__, type(remote.cost).__name__
    shown = {"Authorization": f"Bearer {service.keys['ana']}"}
    got = httpx.post(f"{service.url}/v1/count-rows", json={"table": "visits", "epsilon": 0.5}, headers=shown)
    told["http"] = got.status_code, got.json()
    told["own"] = own.rows, list(own.ends)
    bad = httpx.post(f"{service.url}/v1/count-rows", json={"table": "visits", "epsilon": -1}, headers=shown)
    told["bad"] = bad.status_code, bad.json()["name"]
    told["charges"] = [e.who for e in service.desk.curator.history("visits") if e.kind == "charge"]
    described = httpx.get(f"{service.url}/v1/openapi.json", headers=shown).json()
    told["openapi"] = described["paths"]["/v1/count-rows"]["post"]
    told["model"] = described["components"]["schemas"]["CountRowsModel"]["properties"]
told["docs"] = [line for line in route_table().splitlines() if "count-rows" in line]
told["commands"] = [CliRunner().invoke(app, each).stdout for each in (["--help"], ["count-rows", "--help"])]
print(json.dumps(told))
"""


@pytest.mark.ci
def test_python_commands_http_openapi_remote_and_docs_offer_it(tmp_path: Path) -> None:
    told = json.loads(run_with_the_verb(tmp_path, PROGRAM))
    assert told["equal"]
    assert told["rows"] == ["int", "Cost"]
    rows, ends = told["own"]
    status, document = told["http"]
    assert (status, document["kind"], document["rows"], document["ends"]) == (200, "count_rows", rows, ends)
    assert document["cost"]["epsilon"] == "0"  # the third of equal requests is free
    assert told["bad"] == [422, "epsilon"]
    assert told["charges"] == ["ana"]
    assert told["openapi"]["operationId"] == "count_rows"
    assert set(told["model"]) == {"kind", "table", "rows", "ends", "cost"}
    listed, own = told["commands"]
    assert "count-rows" in listed
    assert "Count the rows of a table, and pay for it." in own
    assert told["docs"] == [
        "| `POST /v1/count-rows` | analysts, stewards | Count the rows of a table, and pay for it. |"
    ]


PAGE = """
import json, pathlib, re
from tests.service.page.fakes import clinic_at

with clinic_at(pathlib.Path.cwd()) as clinic:
    ana = clinic.browser("ana")
    form = ana.get("/count-rows").text
    key = re.search(r'name="key" value="([^"]+)"', form)[1]
    sent = {"table": "visits", "epsilon": "0.5", "key": key}
    shown = [ana.post("/count-rows", sent).text for _ in range(2)]
    bad = ana.post("/count-rows", {**sent, "epsilon": "-1"})
    charges = [e.who for e in clinic.curator.history("visits") if e.kind == "charge"]
print(json.dumps({"form": form, "shown": shown, "bad": [bad.status_code, bad.text], "charges": charges}))
"""


@pytest.mark.ci
def test_the_page_offers_it(tmp_path: Path) -> None:
    told = json.loads(run_with_the_verb(tmp_path, PAGE))
    assert '<label for="epsilon">Epsilon</label>' in told["form"]
    assert all("<dt>Rows</dt>" in shown for shown in told["shown"])
    assert told["bad"][0] == 422
    assert "Expected Epsilon=" in told["bad"][1]
    assert told["charges"] == ["ana"]
