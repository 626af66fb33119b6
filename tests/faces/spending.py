"""One ledger behind four faces that spend from it: Python, the command line, HTTP and the page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.cli.output import BUDGET_REFUSED
from discreet.curator import Curator
from discreet.errors import InsufficientBudget
from discreet.service.acts import StewardActions
from discreet.service.api.application import create_api
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import ServiceRole
from discreet.service.identity import Identities, RateLimits
from discreet.service.page import create_page
from discreet.service.settings import Settings
from tests.cli.clinic import CSV, run
from tests.remote.served import CuratorDesk, running
from tests.service.page.fakes import Browser, Clinic

BUDGETS = {
    "sums": "epsilon = 40",
    "both": 'epsilon = 40\ndelta = "1e-4"',
    "squares": 'rho = 2\ndelta = "1e-5"',
    "again": 'epsilon = 30\ndelta = "1e-5"',
}
"""Accounts counted by sums of epsilon, by the better of these and zCDP, by zCDP alone, and one that is renewed."""

_TABLE = """
[tables.{name}]
source = "{name}.csv"
unit = "patient_id"
account = "{name}"
types = {{ patient_id = "text", ward = "text", age = "int", charge = "float" }}
bounds = {{ age = [0, 120], charge = [0, 500] }}
keys = {{ ward = ["A", "B", "C"] }}
max_groups = 2
max_rows = 1

[budgets.{name}]
{budget}
"""
_COST = re.compile(r"<dt>Cost</dt><dd>(.*?)</dd>")
_REFUSED = '<div class="refusal" role="alert"><p>The charge needs epsilon='


@dataclass(frozen=True)
class Face:
    """How a face tells what a query would cost, and how it asks it; None where the budget does not allow it."""

    explain: Callable[[str, Fraction], str]
    ask: Callable[[str, Fraction], str | None]


@dataclass
class Spending:
    """The curator, and its faces by their names."""

    curator: Curator
    faces: dict[str, Face]


@contextmanager
def spending(folder: Path) -> Iterator[Spending]:
    """Opens a folder with four tables of one clinic, each in an account of its own, behind all faces."""
    for name in BUDGETS:
        (folder / f"{name}.csv").write_text(CSV)
    tables = "".join(_TABLE.format(name=name, budget=budget) for name, budget in BUDGETS.items())
    (folder / "discreet.toml").write_text(f'ledger = "clinic.ledger"\n{tables}')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        assert run("protect", "--yes").code == 0
        with Curator.from_config(folder / "discreet.toml") as curator:
            identities = Identities(folder / "identities")
            identities.make_person(identities.local, "stella", ServiceRole.STEWARD)
            curator.appoint("stella", "steward")
            _, key = identities.make_key(identities.local, "stella")
            limits = RateLimits(identities, requests_per_minute=100_000, questions_per_day=100_000)
            desk, acts = CuratorDesk(curator=curator), StewardActions(curator._ledger, identities)
            context = ServiceContext(desk, identities, acts, limits, Settings(folder=folder))
            page: Any = create_page(context)
            clinic = Clinic(folder, Settings(folder=folder), curator, desk, identities, acts, page)  # type: ignore[arg-type]
            keyed = {"Authorization": f"Bearer {key}"}
            with running(create_api(context)) as url, httpx.Client(base_url=url, headers=keyed, timeout=60) as client:
                faces = {
                    "Python": _python(curator),
                    "command line": _command_line(),
                    "HTTP": _http(client),
                    "page": _page(clinic.browser("stella")),
                }
                yield Spending(curator, faces)
            identities.close()


def _python(curator: Curator) -> Face:
    def ask(sql: str, epsilon: Fraction) -> str | None:
        try:
            return str(curator.ask(sql, epsilon=epsilon).cost)
        except InsufficientBudget:
            return None

    return Face(lambda sql, epsilon: str(curator.explain(sql, epsilon=epsilon).cost), ask)


def _command_line() -> Face:
    def explain(sql: str, epsilon: Fraction) -> str:
        told = run("explain", sql, "--epsilon", written(epsilon), "--json")
        assert told.code == 0, told.err
        return str(json.loads(told.out)["cost"]["text"])

    def ask(sql: str, epsilon: Fraction) -> str | None:
        told = run("ask", sql, "--epsilon", written(epsilon), "--json")
        assert told.code in (0, BUDGET_REFUSED), told.err
        return None if told.code else str(json.loads(told.out)["cost"]["text"])

    return Face(explain, ask)


def _http(client: httpx.Client) -> Face:
    def explain(sql: str, epsilon: Fraction) -> str:
        told = client.post("/v1/explain", json={"sql": sql, "epsilon": written(epsilon)}).raise_for_status().json()
        return str(told["cost"]["text"])

    def ask(sql: str, epsilon: Fraction) -> str | None:
        told = client.post("/v1/ask", json={"sql": sql, "epsilon": written(epsilon)})
        assert told.status_code in (httpx.codes.OK, httpx.codes.PAYMENT_REQUIRED), told.text
        return None if told.is_error else str(told.json()["cost"]["text"])

    return Face(explain, ask)


def _page(browser: Browser) -> Face:
    def explain(sql: str, epsilon: Fraction) -> str:
        shown = browser.htmx("/explain", {"sql": sql, "epsilon": written(epsilon)}).text
        return _cost(shown)

    def ask(sql: str, epsilon: Fraction) -> str | None:
        shown = browser.htmx("/ask", {"sql": sql, "epsilon": written(epsilon)}).text
        return None if _REFUSED in shown else _cost(shown)

    return Face(explain, ask)


def _cost(shown: str) -> str:
    found = _COST.search(shown)
    assert found is not None, shown
    return html.unescape(found[1])


def written(epsilon: Fraction) -> str:
    """An amount of a few digits as somebody types it."""
    return f"{float(epsilon):.12g}"
