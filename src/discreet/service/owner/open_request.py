"""A request while it lasts: what its caller may learn, and when, so that the time reveals little of the data."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import field

from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, ServiceUnavailable
from discreet.presentation.documents.error_documents import error_document
from discreet.service.caller import ServiceCaller
from discreet.service.request_executor import Document, JobRequest, JobState, JobStatus


def release_time(admitted: float, ready: float, tick: float) -> float:
    """Returns the first moment admitted + tick x 2^k that is not before `ready`.

    Formal guarantee: with a deadline d at least as long as the tick t, an outcome that is ready by admitted + d leaves
    at one of at most log2(d / t) + 2 moments, whatever the data.

    >>> [release_time(10.0, 10.0 + seconds, 0.25) for seconds in (0.1, 0.25, 0.3, 1.1)]
    [10.25, 10.25, 10.5, 12.0]
    """
    wait = tick
    while admitted + wait < ready:
        wait *= 2
    return admitted + wait


def last_release_time(admitted: float, now: float, tick: float) -> float | None:
    """Returns the last such moment that has passed; None if none has. A status is that of the last such moment.

    >>> last_release_time(0.0, 0.2, 0.25), last_release_time(0.0, 0.9, 0.25)
    (None, 0.5)
    """
    if now < admitted + tick:
        return None
    wait = tick
    while admitted + 2 * wait <= now:
        wait *= 2
    return admitted + wait


@dataclass(eq=False, slots=True, kw_only=True)
class OpenRequest:
    """One request, from when it is taken until its outcome may leave.

    Attributes:
        id: a random name, which only its caller knows.
        admitted: when a worker took it; None before.
        stages: the names of stages with the times at which they began.
        stop: stops it before it is charged; afterwards it runs to its end, so that stopping measures no read.
        halt: stops it at once, when the service stops.
        task: does it; it may last longer than its caller can see.
        changed: is set whenever there may be news.
    """

    id: str
    caller: ServiceCaller
    work: JobRequest
    tick: float
    outcome: asyncio.Future[Document]
    admitted: float | None = None
    stages: list[tuple[float, str]] = field(default_factory=list)
    cancelled: bool = False
    stop: Callable[[], None] | None = None
    halt: Callable[[], None] | None = None
    task: asyncio.Task[None] | None = None
    ended: float | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, stage: str) -> None:
        """Notes that a stage has begun."""
        self.stages.append((time.monotonic(), stage))

    @property
    def status(self) -> JobStatus:
        """Returns what its caller may know now."""
        if self.outcome.done():
            return self._final_status()
        if self.admitted is None:
            return JobStatus(id=self.id, operation=self.work.operation, state=JobState.QUEUED)
        seen = last_release_time(self.admitted, time.monotonic(), self.tick)
        told = [name for began, name in self.stages if seen is not None and began <= seen]
        stage = told[-1] if told else ""
        return JobStatus(id=self.id, operation=self.work.operation, state=JobState.RUNNING, stage=stage)

    def _final_status(self) -> JobStatus:
        found = self.outcome.exception()
        if found is None:
            document = self.outcome.result()
            return JobStatus(id=self.id, operation=self.work.operation, state=JobState.DONE, document=document)
        state = JobState.CANCELLED if self.cancelled else JobState.FAILED
        return JobStatus(id=self.id, operation=self.work.operation, state=state, error=error_document(found))

    def abandon(self) -> None:
        """Ends it for its caller, whatever comes of it: the same, whether it was nearly done or not begun."""
        self.cancelled = True
        if self.stop is not None:
            self.stop()
        self.finish(ServiceUnavailable("The request was stopped", "What was charged stays charged. See the history."))

    def finish(self, found: Document | DiscreetError) -> None:
        """Gives the outcome to all who wait for it."""
        self.ended = time.monotonic()
        if not self.outcome.done():
            if isinstance(found, DiscreetError):
                self.outcome.set_exception(found)
                self.outcome.exception()  # marks it as seen, in case no caller waits
            else:
                self.outcome.set_result(found)
        self.changed.set()
