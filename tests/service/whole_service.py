"""A whole service in one process: real people, acts, limits, API, page and wire before a curator whose noise is frozen.

What a curator releases is taken down on one table and comes out again on its neighbour, and all that is random or a
clock is fixed, so that whatever still differs between two runs of the same requests was not covered by noise.
"""

from __future__ import annotations

import asyncio
import shutil
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, patch

import httpx
import pandas as pd
from fastapi import FastAPI

from discreet.curator import Curator
from discreet.curator.observation import engine_of, observe_curator
from discreet.curator.served import restrict_curator, table_facts
from discreet.errors import DiscreetError, InternalError, UnknownJob
from discreet.noise import SeededBits
from discreet.presentation.documents.error_documents import error_document
from discreet.privacy import Budget
from discreet.service.acts import StewardActions, recorder
from discreet.service.api.application import create_api
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import Identities, RateLimits
from discreet.service.metrics import Metrics
from discreet.service.page import create_page
from discreet.service.request_executor import OPERATIONS, Document, JobRequest, JobState, JobStatus
from discreet.service.settings import Settings
from discreet.service.wire import startup_exchange
from discreet.service.wire.startup_exchange import StartupMessage
from discreet.service.wire.wire_server import WireServer
from discreet.service.worker import operations
from tests.faces.tape import NOW, SALT, Tape, still

HOST = "localhost:8642"
ORIGIN = f"http://{HOST}"
CANARY = "ZZ-CANARY-7"
PEOPLE = {
    "olga": ServiceRole.OWNER,
    "stella": ServiceRole.STEWARD,
    "ana": ServiceRole.ANALYST,
    "otto": ServiceRole.AUDITOR,
}
"""Of every role somebody; who has the first is called `owner` by the ledger."""

REMOVED = 7
"""The person whom the neighbouring table does not have."""


def visits(*, without: int | None = None) -> pd.DataFrame:
    """Visits of made-up patients, some of whom come twice; the values of one column are not to be seen anywhere."""
    numbers = [i % 40 for i in range(60)]
    rows = pd.DataFrame(
        {
            "patient": numbers,
            "ward": ["ABC"[i % 3] for i in numbers],
            "age": [20 + i for i in numbers],
            "remark": [CANARY] * 60,
        }
    )
    return rows if without is None else rows[rows.patient != without].reset_index(drop=True)


TYPES = {"patient": "int", "ward": "text", "age": "int", "remark": "text"}


@dataclass
class TapedDesk:
    """Does work at once, as a worker would; `failing` is raised instead, if it is set."""

    curator: Curator
    done: list[tuple[ServiceCaller, JobRequest]] = field(default_factory=list)
    jobs: dict[str, tuple[str, JobStatus]] = field(default_factory=dict)
    failing: Exception | None = None

    async def perform(self, caller: ServiceCaller, work: JobRequest) -> Document:
        self.done.append((caller, work))
        if self.failing is not None:
            raise self.failing
        caller.require(work.operation.permission)
        who = {"analyst": caller.name, "project": work.project, "key": work.key}
        part = self.curator if caller.tables is None else restrict_curator(self.curator, caller.tables)
        try:
            found = operations.perform(part, work.operation, work.arguments, who)
        except DiscreetError:
            raise
        except Exception as error:
            raise InternalError("The service failed. Please report it.") from error
        if work.operation is OPERATIONS["protect"]:
            found.pop("tables")
        return found

    def begin(self, caller: ServiceCaller, work: JobRequest) -> JobStatus:
        name, operation = f"{len(self.jobs):032x}", work.operation
        try:
            document = _now(self.perform(caller, work))
            status = JobStatus(id=name, operation=operation, state=JobState.DONE, document=document)
        except DiscreetError as error:
            status = JobStatus(id=name, operation=operation, state=JobState.FAILED, error=error_document(error))
        self.jobs[name] = caller.name, status
        return status

    def job(self, caller: ServiceCaller, job: str) -> JobStatus:
        owner, status = self.jobs.get(job, ("", None))
        if status is None or owner != caller.name:
            raise UnknownJob
        return status

    async def follow(self, caller: ServiceCaller, job: str) -> AsyncIterator[JobStatus]:
        yield self.job(caller, job)

    def cancel(self, caller: ServiceCaller, job: str) -> JobStatus:
        return self.job(caller, job)

    async def check_ledger(self) -> bool:
        """Tells that the ledger answers."""
        return True

    def tables(self, caller: ServiceCaller) -> list[Document]:
        return [facts for facts in table_facts(self.curator) if caller.sees(facts["name"])]


def _now(work: Any) -> Any:
    """What a coroutine that waits for nothing returns."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError


@dataclass
class Browser:
    """Somebody's browser, signed in."""

    cookie: str
    csrf: str


@dataclass
class Whole:
    """A service, and for each role somebody with a key and a browser."""

    desk: TapedDesk
    identities: Identities
    limits: RateLimits
    acts: StewardActions
    metrics: Metrics
    settings: Settings
    app: FastAPI
    keys: dict[ServiceRole, tuple[str, str]]
    links: list[str]
    wires: list[WireServer] = field(default_factory=list)

    @property
    def ledger(self) -> Any:
        return self.desk.curator._ledger

    def entries(self) -> list[str]:
        """The hashes of all entries of the ledger: nothing has changed if they have not."""
        return [entry.hash for entry in self.desk.curator.entries()]

    def name(self, role: ServiceRole) -> str:
        return "owner" if role is ServiceRole.OWNER else next(n for n, r in PEOPLE.items() if r is role)

    def browser(self, role: ServiceRole) -> Browser:
        link = self.identities.make_link(self.identities.local, self.name(role))
        self.links.append(link)
        session = self.identities.sign_in(link)
        return Browser(f"discreet-session={session}", self.identities.authenticate_session(session)[1])

    async def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Sends a request to the API and the page."""
        headers = {"host": HOST, **(more.pop("headers", None) or {})}
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            return await client.request(method, path, headers=headers, **more)

    async def call(self, role: ServiceRole | None, method: str, path: str, **more: Any) -> httpx.Response:
        """Sends a request to the API with the key of a role."""
        shown = {} if role is None else {"authorization": f"Bearer {self.keys[role][1]}"}
        return await self.send(method, path, headers={**shown, **more.pop("headers", {})}, **more)

    async def visit(self, browser: Browser | None, method: str, path: str, **more: Any) -> httpx.Response:
        """Sends what a browser sends: a form with its token and its origin."""
        headers = {} if browser is None else {"cookie": browser.cookie, "x-csrf-token": browser.csrf}
        if method == "POST":
            headers["origin"] = ORIGIN
        return await self.send(method, path, headers={**headers, **more.pop("headers", {})}, **more)

    def wire(self) -> WireServer:
        """A server of the wire, without a socket; it is closed by `closed`."""
        made = WireServer(self.desk, self.identities, self.acts, self.limits, self.settings)
        self.wires.append(made)
        return made

    async def closed(self) -> None:
        for each in self.wires:
            await each.close()


@contextmanager
def whole(folder: Path, kept: list[Any], *, again: bool, **chosen: Any) -> Iterator[Whole]:
    """Opens a service in an empty folder: on the table, or `again` on its neighbour; the clock stands still."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    rows = visits(without=REMOVED if again else None)
    rows.to_csv(folder / "data" / "stays.csv", index=False)
    with still("whole service"):
        curator = _curator(folder, rows, Tape(kept, again=again))
        made = _assembled(folder, curator, chosen)
        try:
            yield made
        finally:
            made.identities.close()
            curator.close()


def _curator(folder: Path, rows: pd.DataFrame, tape: Tape) -> Curator:
    curator = Curator.for_tests(folder / "book.ledger", bits=SeededBits(3))
    curator.protect(
        rows,
        name="visits",
        unit="patient",
        budget=Budget(epsilon=1000, delta="1e-4"),
        types=TYPES,
        bounds={"age": (0, 120)},
        keys={"ward": ["A", "B", "C"]},
        max_rows=2,
    )
    for name, role in {"ana": "analyst", "stella": "steward", "otto": "analyst"}.items():
        curator.appoint(name, role, account="visits")
    return observe_curator(curator, engine=engine_of(curator), releaser=tape, salt=SALT)


def _assembled(folder: Path, curator: Curator, chosen: dict[str, Any]) -> Whole:
    settings = Settings(
        folder=folder, roots=(folder / "data",), uploads=folder / "uploads", planning_deadline=60, **chosen
    )
    identities = Identities(folder / "identities", record=recorder(curator._ledger), clock=lambda: float(NOW))
    limits = RateLimits(
        identities,
        requests_per_minute=100_000,
        questions_per_day=100_000,
        failures_per_minute=100_000,
        all_failures_per_minute=100_000,
    )
    desk, acts = TapedDesk(curator), StewardActions(curator._ledger, identities)
    keys = {}
    for name, role in PEOPLE.items():
        known = "owner" if role is ServiceRole.OWNER else name
        keys[role] = identities.make_key(identities.local, known, role)
    offices: Any = ServiceContext(desk, identities, acts, limits, settings)
    metrics = Metrics()
    app = create_api(offices, metrics=metrics)
    app.mount("/", create_page(offices))
    return Whole(desk, identities, limits, acts, metrics, settings, app, keys, [])


# ------------------------------------------------------------------------------------------------------- the wire


class Output:
    """What a connection writes, kept."""

    def __init__(self) -> None:
        self.data, self.written = bytearray(), asyncio.Event()

    def write(self, data: bytes) -> None:
        self.data += data
        self.written.set()

    async def drain(self) -> None: ...

    def close(self) -> None: ...

    @property
    def transport(self) -> Any:
        return SimpleNamespace(abort=self.close)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default


class Connection:
    """A client on the wire: sends statements, and gets bytes; `opened` makes one that has signed in."""

    def __init__(self, server: WireServer) -> None:
        self.reader, self.output = asyncio.StreamReader(), Output()
        writer: Any = self.output
        self.task = asyncio.ensure_future(server._serve_connection(self.reader, writer))

    @classmethod
    async def opened(cls, server: WireServer, key_id: str) -> tuple[Connection, bytes]:
        """A connection of whoever has a key, and what it is greeted with."""
        begun: Any = AsyncMock(return_value=StartupMessage(user="", database="clinic", settings={}))
        with (
            patch.object(startup_exchange, "begin", begun),
            patch.object(startup_exchange, "prove", AsyncMock(return_value=key_id)),
        ):
            made = cls(server)
            return made, await made.said()

    async def said(self) -> bytes:
        """All bytes until the server waits for the next message, or has ended."""
        while not self.task.done() and bytes(self.output.data[-6:-1]) != _READY:
            self.output.written.clear()
            news = asyncio.ensure_future(self.output.written.wait())
            await asyncio.wait([news, self.task], return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        found = bytes(self.output.data)
        self.output.data.clear()
        return found

    async def send(self, text: str) -> bytes:
        """What comes back for a simple query."""
        return await self.exchange((b"Q", text.encode() + b"\0"))

    async def exchange(self, *messages: tuple[bytes, bytes]) -> bytes:
        """What comes back for messages, the last of which makes the server ready again."""
        for kind, body in messages:
            self.reader.feed_data(kind + struct.pack("!i", len(body) + 4) + body)
        return await self.said()

    async def close(self) -> None:
        self.reader.feed_data(b"X" + struct.pack("!i", 4))
        await asyncio.wait([self.task])


_READY = b"Z" + struct.pack("!i", 5)
