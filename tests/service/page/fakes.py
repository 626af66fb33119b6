"""A small clinic behind a desk without workers: a real curator and ledger in this process, and browsers to visit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import httpx

from discreet.attacks import uniqueness
from discreet.curator import Curator
from discreet.demo import clinic
from discreet.errors import UnknownJob
from discreet.noise import SeededBits
from discreet.presentation.inspection.file_check import check_file
from discreet.presentation.inspection.proposed_config import table_name
from discreet.privacy import Budget
from discreet.service.acts import StewardActions, recorder
from discreet.service.api.http_guard import HttpGuard
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import Identities, RateLimits
from discreet.service.metrics import Metrics
from discreet.service.page import VERB_PAGES, create_page
from discreet.service.page.routes.verb_pages import VerbPage
from discreet.service.request_executor import OPERATIONS, Document, JobRequest
from discreet.service.settings import Settings
from discreet.service.worker import operations

HOST = "localhost:8642"
ORIGIN = f"http://{HOST}"


@dataclass
class FakeDesk:
    """Does all work at once, in this process; `done` is what it was asked for."""

    curator: Curator
    facts: list[Document]
    sources: dict[str, Any]
    done: list[tuple[ServiceCaller, JobRequest]] = field(default_factory=list)
    failing: Exception | None = None
    given: Document | None = None

    async def perform(self, caller: ServiceCaller, work: JobRequest) -> Document:
        self.done.append((caller, work))
        if self.failing is not None:
            raise self.failing
        if self.given is not None:
            return self.given
        return self._perform(caller, work, dict(work.arguments))

    def _perform(self, caller: ServiceCaller, work: JobRequest, given: dict[str, Any]) -> Document:
        own: dict[str, Callable[[], Document]] = {
            "inspect": lambda: _inspected(given["path"]),
            "protect": lambda: self._protect(given),
            "attack": lambda: self._attack(given),
        }
        if work.operation.value in own:
            return own[work.operation.value]()
        who = {"analyst": caller.name, "project": work.project, "key": work.key}
        found = operations.perform(self.curator, work.operation, given, who)
        return {**found, "receipt": self._receipt(caller)} if work.operation is OPERATIONS["ask"] else found

    def _attack(self, given: dict[str, Any]) -> Document:
        found = uniqueness(self.sources[given["table"]], given["columns"])
        names = ("attack", "goal", "success", "baseline", "targets")
        return {name: getattr(found, name) for name in names} | {"summary": found.summary(), "text": str(found)}

    def _receipt(self, caller: ServiceCaller) -> Document:
        mine = [entry for entry in self.curator.entries() if entry.kind == "charge" and entry.who == caller.name]
        return {"sequence": mine[-1].sequence, "hash": mine[-1].hash}

    def _protect(self, given: dict[str, Any]) -> Document:
        path, budget = given.pop("path"), given.pop("budget", None)
        bounds = {name: tuple(ends) for name, ends in given.pop("bounds", {}).items()}
        self.curator.protect(path, budget=None if budget is None else Budget(**budget), bounds=bounds, **given)
        columns = dict(given["types"])
        self.facts.append(table_facts(given["name"], columns, account=given.get("account") or given["name"]))
        self.sources[given["name"]] = path
        return {"kind": "protected", "table": given["name"]}

    def begin(self, *_: Any) -> NoReturn:
        raise UnknownJob

    job = cancel = follow = begin

    async def check_ledger(self) -> bool:
        """Tells that the ledger answers."""
        return True

    def tables(self, caller: ServiceCaller) -> list[Document]:
        return [facts for facts in self.facts if caller.sees(facts["name"])]


def _inspected(path: str) -> Document:
    found = check_file(path)
    columns = [{"name": name, "type": column.proposal.type.value} for name, column in found.columns.items()]
    return {"name": table_name(found.path), "unit": found.unit, "remarks": list(found.remarks), "columns": columns}


def table_facts(name: str, columns: dict[str, str], *, account: str, **more: Any) -> Document:
    bounds, keys = more.get("bounds", {}), more.get("keys", {})
    return {
        "name": name,
        "protected": True,
        "account": account,
        "unit": more.get("unit", "Each row is one person."),
        "neighbours": "add_remove",
        "version": "",
        "limits": "up to 2 groups per unit, up to 2 rows in each group",
        "max_groups": 2,
        "max_rows": 2,
        "columns": [
            {"name": column, "type": kind, "bounds": bounds.get(column), "keys": keys.get(column)}
            for column, kind in columns.items()
        ],
    }


BOUNDS = {"age": [0, 120], "days": [0, 10], "charge": [0, 2000]}
KEYS = {"ward": list(clinic.WARDS)}


@dataclass
class Clinic:
    """Everything behind the page, and the page."""

    folder: Path
    settings: Settings
    curator: Curator
    desk: FakeDesk
    identities: Identities
    acts: StewardActions
    app: HttpGuard

    def browser(self, name: str | None = None) -> Browser:
        """Returns a browser in which somebody is signed in, or nobody."""
        browser = Browser(clinic=self)
        if name is not None:
            link = self.identities.make_link(self.identities.local, name)
            assert browser.send("POST", "/sign-in", data={"token": link}, headers={"origin": ORIGIN}).status_code == 303
        return browser


@dataclass
class Browser:
    """Sends what a browser sends with a form of ours, and keeps cookies."""

    clinic: Clinic
    cookies: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"host": HOST, **more.pop("headers", {})}
        if self.cookies:
            headers.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        response = asyncio.run(self._send(method, path, headers, more))
        for told in response.headers.get_list("set-cookie"):
            name, _, rest = told.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return response

    async def _send(self, method: str, path: str, headers: dict[str, str], more: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self.clinic.app)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            return await client.request(method, path, headers=headers, **more)

    @property
    def csrf(self) -> str:
        token = self.cookies.get("discreet-session", "")
        return self.clinic.identities.authenticate_session(token)[1] if token else ""

    def get(self, path: str) -> httpx.Response:
        return self.send("GET", path)

    def post(self, path: str, data: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        given = {"csrf": self.csrf, **(data or {})}
        return self.send("POST", path, data=given, headers={"origin": ORIGIN, **headers})

    def htmx(self, path: str, data: dict[str, Any] | None = None) -> httpx.Response:
        headers = {"origin": ORIGIN, "hx-request": "true", "x-csrf-token": self.csrf}
        return self.send("POST", path, data=data or {}, headers=headers)

    def upload(self, name: str, content: bytes, csrf: str | None = None) -> httpx.Response:
        files: Any = {"csrf": (None, self.csrf if csrf is None else csrf), "file": (name, content)}
        return self.send("POST", "/protect/upload", files=files, headers={"origin": ORIGIN})


PEOPLE = {
    "sue": ServiceRole.STEWARD,
    "ana": ServiceRole.ANALYST,
    "ben": ServiceRole.ANALYST,
    "ada": ServiceRole.AUDITOR,
}


@contextmanager
def clinic_at(
    folder: Path, patients: int = 60, pages: Sequence[VerbPage] = VERB_PAGES, **settings: Any
) -> Iterator[Clinic]:
    """Opens a page on a clinic of so many patients."""
    roots, uploads = folder / "data", folder / "uploads"
    roots.mkdir()
    rows = clinic.visits(patients)
    clinic.write(roots / "visits.csv", rows)
    curator = Curator.for_tests(folder / "book.ledger", bits=SeededBits(7))
    given: dict[str, Any] = {
        "types": dict(clinic.TYPES),
        "bounds": {name: tuple(ends) for name, ends in BOUNDS.items()},
        "keys": KEYS,
    }
    budget = Budget(epsilon=3, delta="1e-6")
    curator.protect(
        roots / "visits.csv",
        name="visits",
        unit="patient",
        account="patients",
        budget=budget,
        max_groups=2,
        max_rows=2,
        **given,
    )
    facts = table_facts("visits", dict(clinic.TYPES), account="patients", bounds=BOUNDS, keys=KEYS, unit="One patient.")
    desk = FakeDesk(curator=curator, facts=[facts], sources={"visits": roots / "visits.csv"})
    identities = Identities(folder / "identities", record=recorder(curator._ledger))
    for name, role in PEOPLE.items():
        identities.make_person(identities.local, name, role)
    curator.appoint("ana", "analyst", account="patients", cap=Budget(epsilon=2, delta="1e-6"))
    used = replace(Settings(folder=folder, roots=(roots,), uploads=uploads), **settings)
    acts = StewardActions(curator._ledger, identities)
    limits = RateLimits(identities, requests_per_minute=10_000)
    page = create_page(ServiceContext(desk, identities, acts, limits, used), pages=pages)
    app = HttpGuard(page, settings=used, metrics=Metrics())
    try:
        yield Clinic(folder, used, curator, desk, identities, acts, app)
    finally:
        identities.close()
        curator.close()
