"""What front ends ask of the process that owns the ledger: work for a caller, and its outcome as a JSON document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from enum import Enum
from typing import Any, Protocol

from discreet.dataclass import dataclass
from discreet.requests.verb_table import VERBS, Queue
from discreet.service.caller import Permission, ServiceCaller

Document = dict[str, Any]
"""Plain JSON; `presentation.documents` writes and reads those of answers, explanations and errors."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What workers do; most operations are verbs of a curator, and take their arguments as JSON.

    Attributes:
        value: its name.
        permission: what a caller needs for it.
        queue: where it waits for a worker.
        charges: whether it spends: then its outcome leaves at a tick, and a killed one uses a failure credit.
    """

    value: str
    permission: Permission
    queue: Queue
    charges: bool = False


OPERATIONS: Mapping[str, Operation] = {
    **{
        verb.name: Operation(verb.name, verb.permission, verb.queue, verb.charges)
        for verb in VERBS.values()
        if verb.queue in (Queue.ASKING, Queue.PLANNING, Queue.LONG)
    },
    "inspect": Operation("inspect", Permission.PROTECT, Queue.STEWARD),  # the report of `discreet check`, for stewards
    "protect": Operation("protect", Permission.PROTECT, Queue.STEWARD),
    "attack": Operation("attack", Permission.ATTACK, Queue.LONG),
}
"""All operations by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One request for work.

    Attributes:
        operation: what to do.
        arguments: of the curator's method, as JSON; never `analyst`, `key` or `project`, which the owner fixes.
        key: the caller's idempotency key: equal work under an equal key is done and charged once.
        project: whose cap it counts against, too.
    """

    operation: Operation
    arguments: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    project: str = ""


class JobState(Enum):
    """The state of a job; the last three are final."""

    QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"

    @property
    def has_ended(self) -> bool:
        """Returns whether nothing more will happen."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job at one moment, as far as its caller may know.

    Attributes:
        stage: the name of the stage that runs; it changes at ticks only.
        document: the result, once it is done.
        error: the document of an error, once it has failed.
    """

    id: str
    operation: Operation
    state: JobState
    stage: str = ""
    document: Document | None = None
    error: Document | None = None


class RequestExecutor(Protocol):
    """Takes work of callers whose permission was checked, and knows the public facts about tables."""

    async def perform(self, caller: ServiceCaller, work: JobRequest) -> Document:
        """Does work, and returns its document when it may leave.

        Raises:
            DiscreetError: as the curator would, nothing being spent unless it is a `QueryFailed`; `TooManyRequests` and
                `ServiceUnavailable` if the queues are full.
        """

    def begin(self, caller: ServiceCaller, work: JobRequest) -> JobStatus:
        """Starts work that is waited for elsewhere; raises as `perform` does for what is wrong at once."""

    def job(self, caller: ServiceCaller, job: str) -> JobStatus:
        """Returns a job of the caller's own.

        Raises:
            UnknownJob: for all others, as if there were none.
        """

    def follow(self, caller: ServiceCaller, job: str) -> AsyncIterator[JobStatus]:
        """Yields a job now and after each change, until it has ended."""

    def cancel(self, caller: ServiceCaller, job: str) -> JobStatus:
        """Stops a job; what was charged stays charged."""

    async def check_ledger(self) -> bool:
        """Returns whether the ledger answers; without it nothing is charged, and nothing is asked."""

    def tables(self, caller: ServiceCaller) -> list[Document]:
        """Returns the public facts about all tables that the caller may see, protected and public ones.

        Of each: ``name``, ``protected``, ``account``, ``unit`` (a sentence), ``neighbours``, ``version``, ``limits`` (a
        sentence), ``max_groups``, ``max_rows``, and ``columns``: each a ``name``, a ``type`` (int, float, text, bool,
        date, timestamp), ``bounds`` ([low, high] or null) and ``keys`` (a list or null).
        """
