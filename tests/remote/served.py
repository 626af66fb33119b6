"""A service on loopback around a curator in memory, for clients that speak HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import DiscreetError
from discreet.noise import SeededBits
from discreet.presentation.documents.error_documents import error_document
from discreet.privacy import Budget
from discreet.service.acts import StewardActions
from discreet.service.api.application import create_api
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import Identities, RateLimits
from discreet.service.request_executor import Document, JobRequest, JobState, JobStatus
from discreet.service.settings import Settings
from discreet.service.worker.operations import perform
from tests.curator.clinic import DECLARED, visits
from tests.service.api.offices import FakeDesk


def clinic(bits: SeededBits) -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=bits)
    declared = {**DECLARED, "unit": "patient", "max_rows": 3, "max_groups": 2}
    curator.protect(visits(3, 60), name="visits", account="patients", budget=Budget(epsilon=50), **declared)
    curator.appoint("ana", "analyst", account="patients")
    return curator


@dataclass
class CuratorDesk(FakeDesk):
    """Does work in this process, one request after the other."""

    curator: Curator = field(default_factory=Curator)
    drop: int = 0

    async def perform(self, caller: ServiceCaller, work: JobRequest) -> Document:
        self.seen.append((caller, work))
        if self.error is not None:
            raise self.error
        return self.done(caller, work)

    def done(self, caller: ServiceCaller, work: JobRequest) -> Document:
        who = {"analyst": caller.name, "project": "", "key": work.key}
        return perform(self.curator, work.operation, work.arguments, who)

    def begin(self, caller: ServiceCaller, work: JobRequest) -> JobStatus:
        status = super().begin(caller, work)
        try:
            ended = replace(status, state=JobState.DONE, document=self.done(caller, work))
        except DiscreetError as error:
            ended = replace(status, state=JobState.FAILED, error=error_document(error))
        self.jobs[status.id] = caller.name, ended
        return status

    async def follow(self, caller: ServiceCaller, job: str) -> Any:
        ended = self.job(caller, job)
        yield replace(ended, state=JobState.RUNNING, stage="Reading visits", document=None, error=None)
        yield replace(ended, state=JobState.RUNNING, stage="Adding noise", document=None, error=None)
        if self.drop:
            self.drop -= 1
            return
        yield ended

    async def check_ledger(self) -> bool:
        """Tells that the ledger answers."""
        return True

    def tables(self, caller: ServiceCaller) -> list[Document]:
        known = [{"name": "visits", "protected": True, "account": "patients", "columns": []}]
        return [each for each in known if caller.sees("visits")]


@dataclass
class Served:
    """A service that runs, and keys for it."""

    url: str
    desk: CuratorDesk
    identities: Identities
    keys: dict[str, str]


@contextmanager
def served(bits: SeededBits) -> Iterator[Served]:
    curator, identities = clinic(bits), Identities(":memory:")
    people = {"ana": ServiceRole.ANALYST, "stella": ServiceRole.STEWARD}
    keys = {who: identities.make_key(identities.local, who, role)[1] for who, role in people.items()}
    curator.appoint("stella", "steward")
    desk = CuratorDesk(curator=curator)
    limits = RateLimits(identities, requests_per_minute=100_000, questions_per_day=100_000)
    app = create_api(ServiceContext(desk, identities, StewardActions(curator._ledger, identities), limits, Settings()))
    with running(app) as url:
        yield Served(url, desk, identities, keys)
    curator.close()


@contextmanager
def running(app: Any) -> Iterator[str]:
    """Serves an application on a free port of loopback."""
    started = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started.set()

    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, ws="none")
    server = Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    assert started.wait(60)
    (port,) = {socket.getsockname()[1] for each in server.servers for socket in each.sockets}
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(60)
