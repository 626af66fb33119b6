"""The executor: takes work of callers, gives it to workers by queues, holds outcomes until they may leave.

Formal guarantee: an answer leaves this process only after its storage in the ledger was acknowledged, and at a moment
admission + tick x 2^k; a question that is killed after its charge has failed, says the fixed sentence and uses one of
its analyst's credits; one that is killed while it is planned has spent nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from discreet.curator.config.toml_file import load
from discreet.dataclass import dataclass
from discreet.errors import DiscreetError, InternalError, InvalidParameter, NotPermitted, ServiceUnavailable, UnknownJob
from discreet.ledger import OWNER, Ledger
from discreet.ledger.journal import current_facts
from discreet.noise import system_bits
from discreet.requests.verb_table import Queue
from discreet.service.admission import check_least
from discreet.service.caller import ServiceCaller
from discreet.service.owner.fork_server import ForkServer
from discreet.service.owner.job_queue import JobQueue
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.owner.ledger_health import LedgerHealth
from discreet.service.owner.open_request import OpenRequest, release_time
from discreet.service.owner.supervision import Deadlines, SupervisedRequest
from discreet.service.owner.worker_pool import WorkerPool
from discreet.service.owner.worker_process import WorkerProcess, WorkerStart
from discreet.service.request_executor import OPERATIONS, Document, JobRequest, JobStatus
from discreet.service.settings import Settings


class DeclaredTables:
    """The declarations in a file next to discreet.toml, each as a steward gave it.

    Args:
        path: of the file; it is made with mode 0600 when there is something to keep.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[Document, ...]:
        """Returns all declarations, in the order in which they were made.

        Raises:
            InvalidParameter: if the file is not as it was written.
        """
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict) or content.get("version") != 1:
            hint = "Restore it from a backup, or move it away and protect the tables again."
            raise InvalidParameter("tables", str(self._path), "to be unchanged since the service wrote it", hint)
        return tuple(content["tables"])

    def add(self, declared: Document) -> None:
        """Keeps one more declaration, durably, in the place of an earlier one of the same table.

        The budget is left out: it is in the ledger, and may have been amended since. What a change was, the ledger
        shows.
        """
        kept = {name: value for name, value in declared.items() if name not in ("budget", "change")}
        # A changed table keeps its place in the order, since later tables may be joined through it.
        known = {each["name"]: each for each in self.read()} | {declared["name"]: kept}
        text = json.dumps({"version": 1, "tables": list(known.values())}, indent=1)
        fresh = self._path.with_name(f"{self._path.name}.new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(self._path)


def require_of_the_service(table: str, config: str) -> None:
    """Refuses to declare a table anew here that the file declares: every worker would find two declarations.

    Raises:
        InvalidParameter: with the steps that change it.
    """
    if any(declared.name == table for declared in load(config).tables):
        hint = f"Change it in {Path(config).name}, run `discreet protect`, and start the service again."
        raise InvalidParameter("name", table, "to be a table that was protected through the service", hint)


_KEPT = 900.0  # seconds for which ended jobs can be looked at
_MOST_JOBS = 200  # of one caller
_THREADS = 4  # in which the ledger is used
_CPU_SHARE = 4  # a worker may use so many times its deadline of the processor, for each request of its life
_STARTING = 60.0  # seconds for a worker to start
_ENDING = 1.5  # seconds for requests that were stopped, or whose ledger was given up


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dispatch:
    """How requests of one kind are done: by a queue and its workers, within deadlines from their admission."""

    lane: JobQueue
    pool: WorkerPool
    deadlines: Deadlines


class WorkerExecutor:
    """Runs requests in workers: the `RequestExecutor` of a service.

    Args:
        ledger: the ledger; nothing else in this process writes charges to it.
        settings: of the service.
        config: the path of discreet.toml.
    """

    def __init__(self, ledger: Ledger, settings: Settings, *, config: str) -> None:
        self._ledger, self._settings, self._config = ledger, settings, config
        self._declared = DeclaredTables(settings.folder / "discreet.tables.json")
        self._ledger_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ledger")
        self._nursery = ForkServer()
        self._health = LedgerHealth(ledger)
        self._facts: list[Document] = []
        self._jobs: dict[str, OpenRequest] = {}
        self._by_key: dict[tuple[str, str], OpenRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        lifetime = settings.questions_per_worker
        self._pool = WorkerPool(size=settings.workers + 1, lifetime=lifetime, start=self._start)
        self._planners = WorkerPool(size=settings.planners, lifetime=lifetime, start=self._start)
        self._single = WorkerPool(size=1, lifetime=1, start=self._start)
        self._stewards = WorkerPool(size=1, lifetime=1, start=self._start_for_steward)
        self._ways = self._made_ways()

    def _made_ways(self) -> Mapping[Queue, _Dispatch]:
        chosen = self._settings
        room = {"waiting": chosen.queue, "per_caller": chosen.queue_per_caller}
        asking = _Dispatch(
            lane=JobQueue(slots=chosen.workers, **room),
            pool=self._pool,
            deadlines=Deadlines(planning=chosen.planning_deadline, whole=chosen.deadline),
        )
        planning = _Dispatch(
            lane=JobQueue(slots=chosen.planners, **room),
            pool=self._planners,
            deadlines=Deadlines(planning=chosen.planning_deadline, whole=chosen.planning_deadline),
        )
        long = _Dispatch(
            lane=JobQueue(slots=1, **room), pool=self._single, deadlines=Deadlines(whole=chosen.fit_deadline)
        )
        steward = replace(long, lane=JobQueue(slots=1, **room), pool=self._stewards)
        return {Queue.ASKING: asking, Queue.PLANNING: planning, Queue.LONG: long, Queue.STEWARD: steward}

    # ----------------------------------------------------------------------------------------------------- life

    async def open(self) -> None:
        """Enters what the file declares into the ledger, and starts the workers.

        Raises:
            DiscreetError: if a declaration does not fit; nothing is served then.
        """
        worker = await self._start_for_steward()
        self._facts = worker.facts
        worker.kill()
        for pool in (self._pool, self._planners):
            pool.open()

    async def drain(self, *, grace: float = 5.0) -> None:
        """Takes nothing more, waits a while for what runs, and stops the rest: that uses up no credit.

        A ledger that does not answer is not waited for: what it was about to write is written or not, as after a crash.
        """
        self._stopping = True
        if not await self._health.check():
            self._ledger.give_up()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for running in list(self._jobs.values()):
            if running.halt is not None:
                running.halt()
        for pool in (self._pool, self._planners, self._single, self._stewards):
            pool.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_ENDING)
        if self._tasks:
            self._ledger.give_up()
            await asyncio.wait(self._tasks, timeout=_ENDING)

    async def close(self, *, grace: float = 5.0) -> None:
        """Does what `drain` does, and ends the workers."""
        await self.drain(grace=grace)
        self._nursery.close()
        if not await self._health.check():
            self._ledger.give_up()
        self._health.close()
        self._ledger_threads.shutdown(wait=True)

    async def check_ledger(self) -> bool:
        """Returns whether the ledger answers."""
        return await self._health.check()

    @property
    def ready(self) -> bool:
        """Returns whether questions are answered, as long as the ledger answers."""
        return not self._stopping and not self._ledger.is_stopped and self._pool.ready

    @property
    def gauges(self) -> dict[str, int]:
        """Returns how many requests wait and run, for metrics."""
        return {
            "questions_waiting": self._ways[Queue.ASKING].lane.length,
            "plans_waiting": self._ways[Queue.PLANNING].lane.length,
            "requests_running": len(self._tasks),
        }

    async def _start(self, *, steward: bool = False) -> WorkerProcess:
        chosen = self._settings
        seconds = int(max(chosen.deadline * chosen.questions_per_worker, chosen.fit_deadline) * _CPU_SHARE)
        start = WorkerStart(
            config=self._config, memory=chosen.memory, seconds=seconds, tables=self._declared.read(), steward=steward
        )
        door = LedgerGateway(self._ledger, analyst=OWNER, steward=steward)
        return await asyncio.wait_for(WorkerProcess.start(self._nursery, start, door, self._ledger_threads), _STARTING)

    async def _start_for_steward(self) -> WorkerProcess:
        return await self._start(steward=True)

    # ----------------------------------------------------------------------------------------------------- work

    async def perform(self, caller: ServiceCaller, work: JobRequest) -> Document:
        """Does work and returns its document; a caller who goes away stops nothing."""
        return await asyncio.shield(self._accept_request(caller, work).outcome)

    def begin(self, caller: ServiceCaller, work: JobRequest) -> JobStatus:
        """Starts work and returns its status, without waiting."""
        return self._accept_request(caller, work).status

    def job(self, caller: ServiceCaller, job: str) -> JobStatus:
        """Returns a job of the caller's own."""
        return self._own(caller, job).status

    async def follow(self, caller: ServiceCaller, job: str) -> AsyncIterator[JobStatus]:
        """Yields a job after each change; it looks only at the moments at which anything may have changed."""
        running, last = self._own(caller, job), None
        while True:
            status = running.status
            if status != last:
                yield status
            if status.state.has_ended:
                return
            last = status
            await self._news(running)

    async def _news(self, running: OpenRequest) -> None:
        start = running.admitted
        moment = None if start is None else release_time(start, time.monotonic() + 1e-3, running.tick)
        running.changed.clear()
        try:
            await asyncio.wait_for(running.changed.wait(), None if moment is None else moment - time.monotonic())
        except TimeoutError:
            return

    def cancel(self, caller: ServiceCaller, job: str) -> JobStatus:
        """Stops a job; what was charged stays charged."""
        running = self._own(caller, job)
        if not running.outcome.done():
            running.abandon()
        return running.status

    def stop_ended(self, valid: Callable[[ServiceCaller], bool]) -> None:
        """Abandons what runs for callers whose key or session is not valid any more; what was charged stays charged."""
        for running in self._jobs.values():
            if not running.outcome.done() and not valid(running.caller):
                running.abandon()

    def tables(self, caller: ServiceCaller) -> list[Document]:
        """Returns the public facts about the tables that the caller may see."""
        return [current_facts(self._ledger.declared_table, each) for each in self._facts if caller.sees(each["name"])]

    def _own(self, caller: ServiceCaller, job: str) -> OpenRequest:
        found = self._jobs.get(job)
        if found is None or not _may_see(caller, found.caller):
            raise UnknownJob
        return found

    def _accept_request(self, caller: ServiceCaller, work: JobRequest) -> OpenRequest:
        """Returns the request, or the equal one under the same key that is at work already."""
        work = self._check_request(caller, work)
        place = None if work.key is None else (caller.name, work.key)
        other = None if place is None else self._by_key.get(place)
        if other is not None and other.work == work and other.caller.tables == caller.tables and not other.cancelled:
            return other
        running = self._register_request(caller, work)
        if place is not None:
            self._by_key[place] = running
        before = None if other is None else other.task
        task = running.task = asyncio.get_running_loop().create_task(self._run(running, before))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        running.stop = running.halt = lambda: _cancel(task)
        return running

    def _check_request(self, caller: ServiceCaller, work: JobRequest) -> JobRequest:
        caller.require(work.operation.permission)
        if self._stopping:
            raise ServiceUnavailable("The service is stopping", "Ask again later.", retry_after=10)
        self._require_ledger()
        self._health.require()
        if work.operation.charges:
            check_least(work.arguments, self._settings.least_epsilon)
        if caller.project and work.project not in ("", caller.project):
            hint = f"The key is for project {caller.project!r}."
            raise NotPermitted(caller.name, "spend for another project with this key", hint)
        self._ways[work.operation.queue].lane.require_room(caller.name)
        return replace(work, project=caller.project or work.project)

    def _require_ledger(self) -> None:
        """Refuses everything after a write that may or may not be on the disk, until a restart."""
        if self._ledger.is_stopped:
            raise ServiceUnavailable("The ledger cannot be relied on", "Ask the owner to restart the service.")

    def _register_request(self, caller: ServiceCaller, work: JobRequest) -> OpenRequest:
        """Registers a new request, and forgets the oldest that have ended."""
        now = time.monotonic()
        old = [job for job, each in self._jobs.items() if each.ended is not None and now - each.ended > _KEPT]
        own = [job for job, each in self._jobs.items() if each.caller.name == caller.name and each.ended is not None]
        for job in {*old, *own[: max(0, len(own) - _MOST_JOBS)]}:
            del self._jobs[job]
        outcome: asyncio.Future[Document] = asyncio.get_running_loop().create_future()
        name = f"{system_bits().integer(128):032x}"
        running = OpenRequest(id=name, caller=caller, work=work, tick=self._settings.tick, outcome=outcome)
        self._jobs[name] = running
        return running

    async def _run(self, running: OpenRequest, before: asyncio.Task[None] | None) -> None:
        """Does a request from its turn to its outcome."""
        found: Document | DiscreetError
        try:
            if before is not None:  # what comes second under a key meets the charge of the first
                await asyncio.wait({before})
            found = await self._run_request(running)
        except DiscreetError as error:
            found = error
        except asyncio.CancelledError:
            found = ServiceUnavailable("The request was stopped before it began", "Nothing was spent.")
        except Exception:  # noqa: BLE001 - whatever it says may hold data
            found = InternalError("The service failed. Please report it.")
        place = None if running.work.key is None else (running.caller.name, running.work.key)
        if place is not None and self._by_key.get(place) is running:
            del self._by_key[place]
        running.finish(found)

    async def _run_request(self, running: OpenRequest) -> Document:
        way, work = self._ways[running.work.operation.queue], running.work
        if work.operation is OPERATIONS["protect"] and work.arguments.get("change") is not None:
            require_of_the_service(str(work.arguments.get("name")), self._config)
        door = LedgerGateway(
            self._ledger,
            analyst=running.caller.name,
            project=work.project,
            key=work.key,
            reserve=str(work.arguments.get("reserve") or ""),
            steward=work.operation is OPERATIONS["protect"],
            spending=work.operation.charges,
            asking=work.operation is OPERATIONS["request_approval"],
            least=self._settings.least_epsilon,
        )
        async with way.lane.slot(running.caller.name):
            worker = await way.pool.take()
            running.admitted = time.monotonic()
            running.changed.set()
            found = await self._supervise_request(way, worker, door, running)
            if self._settings.hold_slots:
                await self._until_release(door, running)
        await self._until_release(door, running)
        self._require_ledger()
        if isinstance(found, DiscreetError):
            raise found
        if work.operation is OPERATIONS["protect"]:
            await self._register_table(work, found)
        return found

    async def _supervise_request(
        self, way: _Dispatch, worker: WorkerProcess, door: LedgerGateway, running: OpenRequest
    ) -> Document | DiscreetError:
        request, reusable = SupervisedRequest(worker, door, running, way.deadlines, self._ledger_threads), False
        try:
            found, reusable = await request.run_to_end()
        finally:
            (way.pool.give_back if reusable else way.pool.discard)(worker)
        if door.outage:
            self._health.note_outage()
        return found

    async def _until_release(self, door: LedgerGateway, running: OpenRequest) -> None:
        """Waits for a tick if anything was charged; else the outcome depends on nothing private, and leaves at once."""
        if door.has_charged and running.admitted is not None:
            moment = release_time(running.admitted, time.monotonic(), self._settings.tick)
            await asyncio.sleep(max(0.0, moment - time.monotonic()))

    async def _register_table(self, work: JobRequest, found: Document) -> None:
        """Keeps a new table's declaration, and lets workers start again that know it."""
        self._declared.add(dict(work.arguments))
        self._facts = found.pop("tables")
        for pool in (self._pool, self._planners, self._single, self._stewards):
            pool.renew()


def _may_see(caller: ServiceCaller, other: ServiceCaller) -> bool:
    """Returns whether a caller may see a request of theirs: a key for some tables sees those for the same tables."""
    return caller.name == other.name and caller.tables in (None, other.tables)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
