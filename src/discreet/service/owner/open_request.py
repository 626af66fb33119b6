"""A request while it lasts: what may be told of it, and to whom."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from discreet.errors import DiscreetError, ServiceUnavailable
from discreet.presentation.documents.error_documents import error_document
from discreet.service.caller import Caller
from discreet.service.desk import Document, JobState, JobStatus, Work
from discreet.service.owner.release_times import last_release_time


@dataclass(eq=False, slots=True, kw_only=True)
class OpenRequest:
    """One request, from when it is taken until its outcome may be told.

    Attributes:
        id: a random name, which only its caller knows.
        admitted: when a worker took it; None before.
        stages: the names of stages with the times at which they began.
        stop: stops it before it is charged; afterwards it runs to its end, so that stopping measures no read.
        halt: stops it at once, for whoever stops the service.
        task: that does it; it may last longer than anybody is told of it.
        changed: is set whenever there may be news.
    """

    id: str
    caller: Caller
    work: Work
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
            return self._ended()
        if self.admitted is None:
            return JobStatus(id=self.id, operation=self.work.operation, state=JobState.QUEUED)
        seen = last_release_time(self.admitted, time.monotonic(), self.tick)
        told = [name for began, name in self.stages if seen is not None and began <= seen]
        stage = told[-1] if told else ""
        return JobStatus(id=self.id, operation=self.work.operation, state=JobState.RUNNING, stage=stage)

    def _ended(self) -> JobStatus:
        found = self.outcome.exception()
        if found is None:
            document = self.outcome.result()
            return JobStatus(id=self.id, operation=self.work.operation, state=JobState.DONE, document=document)
        state = JobState.CANCELLED if self.cancelled else JobState.FAILED
        return JobStatus(id=self.id, operation=self.work.operation, state=state, error=error_document(found))

    def abandon(self) -> None:
        """Tells the caller nothing more, whatever comes of it: the same, whether it was nearly done or not begun."""
        self.cancelled = True
        if self.stop is not None:
            self.stop()
        self.finish(ServiceUnavailable("The request was stopped", "What was charged stays charged; see the history."))

    def finish(self, found: Document | DiscreetError) -> None:
        """Lets everybody who waits have the outcome."""
        self.ended = time.monotonic()
        if not self.outcome.done():
            if isinstance(found, DiscreetError):
                self.outcome.set_exception(found)
                self.outcome.exception()  # whether or not anybody waits for it
            else:
                self.outcome.set_result(found)
        self.changed.set()
