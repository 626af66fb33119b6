"""One request under supervision: killed at its deadlines, and each of its charges ended before anything leaves."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import Any

from discreet.dataclass import dataclass
from discreet.errors import (
    DiscreetError,
    InternalError,
    InvalidParameter,
    LedgerUnavailable,
    QueryFailed,
    ServiceUnavailable,
    UnsupportedQuery,
)
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.owner.ledger_health import no_answer
from discreet.service.owner.open_request import OpenRequest
from discreet.service.owner.worker_process import WorkerLost, WorkerProcess
from discreet.service.request_executor import OPERATIONS, Document

TOO_COMPLEX = "The query is too complex to be planned in time."
SIMPLER = "Ask for fewer numbers at once, or in several queries. Nothing was spent."
OUTAGE = 1.0  # seconds after which a ledger that has not answered is taken to be out of order
STORED = "The answer is stored, but could not be sent"
_FILES = (OPERATIONS["inspect"], OPERATIONS["protect"], OPERATIONS["attack"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds from when a worker takes a request.

    Attributes:
        whole: until it must be done.
        planning: until it must be charged, or done; None if only the whole counts.
    """

    whole: float
    planning: float | None = None


@dataclass(frozen=True, slots=True)
class SupervisedRequest:
    """A request that a worker is about to do."""

    worker: WorkerProcess
    door: LedgerGateway
    running: OpenRequest
    deadlines: Deadlines
    ledger_threads: Executor

    async def run_to_end(self) -> tuple[Document | DiscreetError, bool]:
        """Has the worker do it, and returns the outcome, and whether the worker may be asked again.

        A caller stops it before the charge only. Afterwards data are read, and whether a stop came before or after
        their end would reveal how long that took, at any moment that the caller likes; so it goes on to its end or its
        deadline, and a failure counts. When the service stops, it stops at any time, and uses no one's credit.
        """
        talk = asyncio.get_running_loop().create_task(
            self.worker.perform(_request(self.running), self.door, self.running.tell)
        )
        stop = asyncio.Event()
        self.running.stop = lambda: None if self.door.has_charged else stop.set()
        self.running.halt = stop.set
        await self._wait_for_end(talk, stop)
        if not talk.done():  # too late, or stopped
            self.worker.kill()
            talk.cancel()
        said = await _receive_reply(talk)
        left = await self._close_gateway(failed=not stop.is_set())
        if self.door.outage:
            return self._without_ledger(said), False
        if left or said is None:
            return self._build_worker_error(left=left, stopped=stop.is_set()), False
        if isinstance(said, dict):
            said = {**said, "receipt": self._receipt()}
        return said, not isinstance(said, QueryFailed | InternalError)

    async def _close_gateway(self, *, failed: bool) -> bool:
        """Closes the gateway, and returns whether a charge was open; does not wait for a ledger that does not answer.

        What is open then is ended, or noted as interrupted, as soon as the ledger answers: that uses up no credit.
        """
        closing = asyncio.get_running_loop().run_in_executor(
            self.ledger_threads, lambda: self.door.close(failed=failed)
        )
        closing.add_done_callback(_overlook)
        await asyncio.wait({closing}, timeout=OUTAGE)
        if not closing.done() or isinstance(closing.exception(), LedgerUnavailable):
            self.door.outage = True
            return True
        return closing.result()

    def _without_ledger(self, said: Document | DiscreetError | None) -> Document | DiscreetError:
        """Returns the outcome of a request during which the ledger did not answer: an answer only if it is stored."""
        if isinstance(said, dict) and self.door.has_all_outcomes:
            return {**said, "receipt": self._receipt()}
        if self.door.has_charged:
            return no_answer("What was charged stays charged. Ask again with the same key: the query is charged once.")
        return no_answer("Try again later. With an idempotency key, the query is charged once, whatever happened.")

    def _receipt(self) -> Document | None:
        """Returns where the charge is in the ledger, for a certificate; None for what was free."""
        charges = self.door.charges
        return {"sequence": charges[0].sequence, "hash": charges[0].hash} if charges else None

    async def _wait_for_end(self, talk: asyncio.Task[Document], stop: asyncio.Event) -> None:
        """Waits for the end, for the deadline of planning if nothing is charged by then, for the deadline."""
        watch = asyncio.get_running_loop().create_task(stop.wait())
        both: set[asyncio.Task[Any]] = {talk, watch}
        whole, planning = self.deadlines.whole, self.deadlines.planning
        first = whole if planning is None else min(planning, whole)
        done, _ = await asyncio.wait(both, timeout=first, return_when=asyncio.FIRST_COMPLETED)
        if not done and self.door.has_charged:
            done, _ = await asyncio.wait(both, timeout=whole - first, return_when=asyncio.FIRST_COMPLETED)
        if not done and self.door.seconds_waited > OUTAGE:  # late because of the ledger, not of its work
            self.door.outage = True
        watch.cancel()

    def _build_worker_error(self, *, left: bool, stopped: bool) -> DiscreetError:
        """Returns the error of a request whose worker is gone, or that has left a charge without an outcome."""
        if stopped:
            hint = "What was charged stays charged." if self.door.has_charged else "Nothing was spent."
            return ServiceUnavailable("The request was stopped", hint)
        if left:
            return QueryFailed()
        if self.door.has_charged:
            return ServiceUnavailable(STORED, "Ask again: it costs nothing.", retry_after=1)
        if self.running.work.operation in _FILES:
            hint = "Check that it is not damaged, split it, or raise memory or fit_deadline in [service]."
            return InvalidParameter("file", "this one", "to be read within the limits of the service", hint)
        return UnsupportedQuery(TOO_COMPLEX, SIMPLER)


def _request(running: OpenRequest) -> dict[str, Any]:
    caller, work = running.caller, running.work
    return {
        "do": work.operation.value,
        "with": dict(work.arguments),
        "who": {"analyst": caller.name, "project": work.project, "key": work.key},
        "tables": None if caller.tables is None else sorted(caller.tables),
    }


def _overlook(closing: asyncio.Future[bool]) -> None:
    """Marks an error as seen that no caller waits for any more."""
    if not closing.cancelled():
        closing.exception()


async def _receive_reply(talk: asyncio.Task[Document]) -> Document | DiscreetError | None:
    """Returns what a worker has said; None if it was lost or killed."""
    try:
        return await talk
    except DiscreetError as error:
        return error
    except (WorkerLost, asyncio.CancelledError, OSError):
        return None
