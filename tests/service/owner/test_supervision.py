"""Every way in which a request can end, with workers that follow a script."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from discreet.errors import DiscreetError, InsufficientBudget, QueryFailed, ServiceUnavailable, UnsupportedQuery
from discreet.ledger import Ledger
from discreet.privacy import events
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.owner.open_request import OpenRequest
from discreet.service.owner.supervision import STORED, TOO_COMPLEX, Deadlines, SupervisedRequest
from discreet.service.owner.worker_process import WorkerLost, WorkerProcess, WorkerStart
from discreet.service.request_executor import JobState
from tests.service.owner.clinics import ANA, ask, kinds, ledger_of_ana

Script = Callable[[LedgerGateway, asyncio.Event], Awaitable[dict[str, Any]]]
CHARGE = {
    "events_by_account": {"visits": events.to_json(events.Pure("0.1"))},
    "question": "{}",
    "replay_key": "",
    "terms": None,
}


class Worker:
    """Follows a script, and can be killed."""

    def __init__(self, script: Script) -> None:
        self._script, self.killed = script, False

    async def perform(self, _: Any, door: LedgerGateway, __: Any) -> dict[str, Any]:
        return await self._script(door, asyncio.Event())

    def kill(self) -> None:
        self.killed = True


def stopping(running: OpenRequest, way: str) -> None:
    """What stops a request is looked up when it is used: it is another one once a worker has the request."""
    getattr(running, way)()


def outcome(
    script: Script, *, planning: float = 0.05, whole: float = 0.1, stop: str = ""
) -> tuple[Any, bool, Ledger, Worker]:
    """How a request ends, whether its worker is kept, the ledger and the worker."""
    book, worker = ledger_of_ana(), Worker(script)

    async def supervised() -> tuple[Any, bool]:
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        running = OpenRequest(id="j", caller=ANA, work=ask(), tick=0.01, outcome=future)
        door = LedgerGateway(book, analyst="ana", spending=True)
        with ThreadPoolExecutor(1) as threads:
            request = SupervisedRequest(worker, door, running, Deadlines(planning=planning, whole=whole), threads)  # type: ignore[arg-type]
            if stop:
                asyncio.get_running_loop().call_later(0.01, stopping, running, stop)
            return await request.run_to_end()

    found, reusable = asyncio.run(supervised())
    return found, reusable, book, worker


async def answered(door: LedgerGateway, _: asyncio.Event) -> dict[str, Any]:
    receipt = door.serve("charge", CHARGE)
    door.serve("store_answer", {"sequence": receipt["sequence"], "replay_key": "r", "payload": "{}"})
    return {"n": 1}


async def unstored(door: LedgerGateway, _: asyncio.Event) -> dict[str, Any]:
    door.serve("charge", CHARGE)
    return {"n": 1}


async def dead_after_charge(door: LedgerGateway, _: asyncio.Event) -> dict[str, Any]:
    door.serve("charge", CHARGE)
    raise WorkerLost


async def dead_after_storing(door: LedgerGateway, never: asyncio.Event) -> dict[str, Any]:
    await answered(door, never)
    raise WorkerLost


async def dead_at_once(_: LedgerGateway, __: asyncio.Event) -> dict[str, Any]:
    raise WorkerLost


async def slow_plan(_: LedgerGateway, never: asyncio.Event) -> dict[str, Any]:
    await never.wait()
    return {}


async def slow_read(door: LedgerGateway, never: asyncio.Event) -> dict[str, Any]:
    door.serve("charge", CHARGE)
    await never.wait()
    return {}


async def refused(_: LedgerGateway, __: asyncio.Event) -> dict[str, Any]:
    raise InsufficientBudget("epsilon=1", "epsilon=0")


def test_an_answer_whose_storage_was_acknowledged() -> None:
    found, reusable, ledger, worker = outcome(answered)
    assert found["n"] == 1
    assert reusable
    assert not worker.killed
    assert kinds(ledger)[-2:] == ["charge", "answer"]
    (charge,) = [entry for entry in ledger.history() if entry.kind == "charge"]
    assert found["receipt"] == {"sequence": charge.sequence, "hash": charge.hash}


def test_a_refusal_costs_nothing_and_keeps_the_worker() -> None:
    found, reusable, ledger, _ = outcome(refused)
    assert isinstance(found, InsufficientBudget)
    assert reusable
    assert "charge" not in kinds(ledger)


@pytest.mark.parametrize("script", [unstored, dead_after_charge, slow_read])
def test_a_charge_without_an_answer_has_failed(script: Script) -> None:
    found, reusable, ledger, _ = outcome(script)
    assert isinstance(found, QueryFailed)
    assert not reusable
    assert kinds(ledger)[-2:] == ["charge", "fail"]
    assert ledger.balance("visits", analyst="ana").failures == 1
    assert str(found) == str(QueryFailed())  # one fixed sentence


@pytest.mark.parametrize("script", [dead_at_once, slow_plan])
def test_killed_while_it_is_planned_it_is_too_complex_and_costs_nothing(script: Script) -> None:
    found, reusable, ledger, _ = outcome(script)
    assert isinstance(found, UnsupportedQuery)
    assert found.reason == TOO_COMPLEX
    assert not reusable
    assert "charge" not in kinds(ledger)


def test_planning_has_its_own_deadline() -> None:
    *_, worker = outcome(slow_plan, planning=0.01, whole=3600)
    assert worker.killed


def test_what_is_stored_and_not_sent_may_be_asked_again() -> None:
    found, _, ledger, _ = outcome(dead_after_storing)
    assert isinstance(found, ServiceUnavailable)
    assert found.reason == STORED
    assert kinds(ledger)[-1] == "answer"


@pytest.mark.parametrize(("script", "last"), [(slow_read, "interrupt"), (slow_plan, "appoint")])
def test_stopping_the_service_uses_no_credit(script: Script, last: str) -> None:
    found, _, ledger, worker = outcome(script, planning=3600, whole=3600, stop="halt")
    assert isinstance(found, DiscreetError)
    assert worker.killed
    assert kinds(ledger)[-1] == last
    assert ledger.balance("visits", analyst="ana").failures == 0


def test_a_caller_stops_planning() -> None:
    found, _, ledger, worker = outcome(slow_plan, planning=3600, whole=3600, stop="stop")
    assert isinstance(found, ServiceUnavailable)
    assert worker.killed
    assert "charge" not in kinds(ledger)


def test_a_caller_does_not_stop_a_read() -> None:
    """Else stopping at a moment of one's choice would tell whether the read had ended by then; and failures count."""
    found, _, ledger, _ = outcome(slow_read, stop="stop")
    assert isinstance(found, QueryFailed)
    assert kinds(ledger)[-1] == "fail"


def test_what_is_told_of_an_abandoned_request_is_always_the_same() -> None:
    async def abandoned(found: Any) -> Any:
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        running = OpenRequest(id="j", caller=ANA, work=ask(), tick=0.01, outcome=future, admitted=0.0)
        running.abandon()
        running.finish(found)
        return running.status

    told = [asyncio.run(abandoned(found)) for found in ({"n": 1}, QueryFailed(), ServiceUnavailable(STORED))]
    assert told[0] == told[1] == told[2]
    assert told[0].state is JobState.CANCELLED


def test_a_worker_whose_start_is_cancelled_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service stops while a worker starts."""
    pairs, pair = list[socket.socket](), socket.socketpair
    forking, stopped = threading.Event(), threading.Event()

    def kept() -> tuple[socket.socket, socket.socket]:
        pairs.extend(pair())
        return pairs[0], pairs[1]

    class Slow:
        def fork(self, _: socket.socket) -> None:
            forking.set()
            stopped.wait(10)

    async def cancelled(threads: ThreadPoolExecutor) -> None:
        start = WorkerStart(config="", memory=1, seconds=1)
        monkeypatch.setattr("discreet.service.owner.worker_process.socket.socketpair", kept)
        gateway = LedgerGateway(Ledger(), analyst="ana")
        starting = asyncio.create_task(WorkerProcess.start(Slow(), start, gateway, threads))  # type: ignore[arg-type]
        await asyncio.to_thread(forking.wait, 10)
        monkeypatch.undo()
        starting.cancel()
        stopped.set()
        with pytest.raises(asyncio.CancelledError):
            await starting

    with ThreadPoolExecutor(1) as threads:
        asyncio.run(cancelled(threads))
    assert [one.fileno() for one in pairs] == [-1, -1]
