"""A service without workers: real people and keys, a desk that answers from a table, acts that are written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from discreet.curator import Answer
from discreet.errors import DiscreetError, UnknownJob
from discreet.ledger import Ledger, RemainingBudget
from discreet.ledger.cost import Cost
from discreet.presentation.documents.answer_documents import ANSWER
from discreet.presentation.documents.error_documents import error_document
from discreet.privacy import Budget
from discreet.privacy.events import Pure
from discreet.requests.request import Request
from discreet.service.acts import PEOPLE_VERBS, StewardActions
from discreet.service.api.application import create_api
from discreet.service.api.route_access import ServiceContext
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.identity import Identities, RateLimits
from discreet.service.metrics import Metrics
from discreet.service.request_executor import OPERATIONS, Document, JobRequest, JobState, JobStatus, Operation
from discreet.service.settings import Settings

HOST = "localhost"
ROLES = (ServiceRole.OWNER, ServiceRole.STEWARD, ServiceRole.ANALYST, ServiceRole.AUDITOR)


def answer() -> Answer:
    return Answer(
        columns=("ward", "n", "n_low", "n_high"),
        records=({"ward": "=A", "n": 3, "n_low": 1, "n_high": 5}, {"ward": "B", "n": 7, "n_low": 5, "n_high": 9}),
        cost=Cost(Fraction(1, 10), Fraction(1, 10), Budget(epsilon="0.1")),
        remaining=RemainingBudget(Budget(epsilon="0.9"), Fraction(9, 10), Fraction(9, 10)),
        event=Pure(Fraction(1, 10)),
        replayed=False,
        notes=("A note.",),
        confidence=Fraction(19, 20),
        private=True,
    )


@dataclass
class FakeDesk:
    """Remembers what it was asked, and gives one answer or raises one error."""

    error: Exception | None = None
    document: Document = field(default_factory=lambda: ANSWER.write(answer()))
    seen: list[tuple[ServiceCaller, JobRequest]] = field(default_factory=list)
    jobs: dict[str, tuple[str, JobStatus]] = field(default_factory=dict)
    hold: asyncio.Event | None = None
    ready: bool = True
    ledger: bool = True

    async def perform(self, caller: ServiceCaller, work: JobRequest) -> Document:
        self.seen.append((caller, work))
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        return self.document

    def begin(self, caller: ServiceCaller, work: JobRequest) -> JobStatus:
        self.seen.append((caller, work))
        status = JobStatus(id=f"job{len(self.jobs)}", operation=work.operation, state=JobState.QUEUED)
        self.jobs[status.id] = caller.name, status
        return status

    def job(self, caller: ServiceCaller, job: str) -> JobStatus:
        owner, status = self.jobs.get(job, ("", None))
        if status is None or owner != caller.name:
            raise UnknownJob
        return status

    async def follow(self, caller: ServiceCaller, job: str) -> AsyncIterator[JobStatus]:
        status = self.job(caller, job)
        yield status
        yield replace(status, state=JobState.RUNNING, stage="Reading visits")
        if self.hold is not None:
            await self.hold.wait()
        if isinstance(self.error, DiscreetError):
            yield replace(status, state=JobState.FAILED, error=error_document(self.error))
        else:
            yield replace(status, state=JobState.DONE, document=self.document)

    def cancel(self, caller: ServiceCaller, job: str) -> JobStatus:
        status = replace(self.job(caller, job), state=JobState.CANCELLED)
        self.jobs[job] = caller.name, status
        return status

    async def check_ledger(self) -> bool:
        """Tells whether the ledger answers."""
        return self.ledger

    def tables(self, caller: ServiceCaller) -> list[Document]:
        known: list[Document] = [{"name": name, "protected": True, "columns": []} for name in ("visits", "wards")]
        return [each for each in known if caller.sees(str(each["name"]))]

    def gauges(self) -> dict[str, int]:
        return {"waiting": 3}


class FakeActs:
    """Gives back what it was told, as documents; people and keys are real."""

    def __init__(self, identities: Identities) -> None:
        self.people = StewardActions(Ledger(), identities)

    def __getattr__(self, name: str) -> Any:
        def told(caller: ServiceCaller, *values: Any, **named: Any) -> Any:
            if name == "anchor":
                return "3:" + "ab" * 32
            if name == "budgets":
                return [{"account": "patients"}]
            if name == "history":
                return {"entries": [], "next": None}
            return {"act": name, "by": caller.name, "values": list(values), **named}

        return told

    def perform(self, caller: ServiceCaller, request: Request[Any]) -> Document:
        if request.verb in PEOPLE_VERBS:
            return self.people.perform(caller, request)
        if request.verb == "verify":
            return {"head": "3:" + "ab" * 32}
        return {"act": request.verb, "by": caller.name, **request.document()}


class Keys(dict[ServiceRole, str]):
    """A key for each role, made when it is first shown: what proves one on the wire takes a while."""

    def __init__(self, identities: Identities) -> None:
        super().__init__()
        self.identities, self.ids = identities, dict[ServiceRole, str]()

    def __missing__(self, role: ServiceRole) -> str:
        if role is not ServiceRole.OWNER:
            self.identities.make_person(self.identities.local, role.value, role)
        self.ids[role], self[role] = self.identities.make_key(self.identities.local, role.value)
        return self[role]


@dataclass
class Office:
    """A service, and a key for each role."""

    desk: FakeDesk
    identities: Identities
    metrics: Metrics
    app: FastAPI
    keys: Keys
    ids: dict[ServiceRole, str]

    def client(self, role: ServiceRole | None = ServiceRole.ANALYST, **headers: str) -> AsyncClient:
        shown = {} if role is None else {"Authorization": f"Bearer {self.keys[role]}"}
        return AsyncClient(
            transport=ASGITransport(self.app), base_url=f"http://{HOST}", headers={**shown, **headers}, timeout=30
        )


def office(
    *, requests_per_minute: int = 100_000, failures_per_minute: int = 100_000, settings: Settings | None = None
) -> Office:
    identities, desk = Identities(":memory:"), FakeDesk()
    limits = RateLimits(
        identities,
        requests_per_minute=requests_per_minute,
        questions_per_day=100_000,
        failures_per_minute=failures_per_minute,
        all_failures_per_minute=100_000,
    )
    metrics = Metrics(desk.gauges)
    acts: Any = FakeActs(identities)
    app = create_api(ServiceContext(desk, identities, acts, limits, settings or Settings()), metrics=metrics)
    keys = Keys(identities)
    return Office(desk, identities, metrics, app, keys, keys.ids)


def work(operation: Operation) -> dict[str, Any]:
    """A body that is good for an operation."""
    question: dict[str, Any] = {"sql": "SELECT COUNT(*) AS n FROM visits"}
    bodies: dict[Operation, dict[str, Any]] = {
        OPERATIONS["ask"]: {**question, "epsilon": "0.1"},
        OPERATIONS["ask_many"]: {"questions": [question["sql"]], "epsilon": "0.1"},
        OPERATIONS["profile"]: {"table": "visits", "epsilon": "0.1"},
        OPERATIONS["fit"]: {**question, "learner": "LogisticRegression"},
        OPERATIONS["plan_fit"]: {**question, "learner": "LogisticRegression"},
        OPERATIONS["explain"]: {**question, "epsilon": "0.1"},
        OPERATIONS["request_approval"]: {**question, "epsilon": "0.1", "reason": "a paper"},
        OPERATIONS["rehearse"]: question,
        OPERATIONS["choose_epsilon"]: question,
        OPERATIONS["synthesize"]: {"table": "visits", "epsilon": "1"},
        OPERATIONS["synthesize_tables"]: {"people": "people", "events": "visits", "epsilon": "1"},
        OPERATIONS["plan_synthesize"]: {"table": "visits", "epsilon": "1"},
        OPERATIONS["plan_synthesize_tables"]: {"people": "people", "events": "visits", "epsilon": "1"},
    }
    return bodies[operation]
