"""A ledger that does not answer: nobody's question is at fault, nothing is lost, and the service stops in time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from discreet.errors import DiscreetError, LedgerUnavailable, QueryFailed, ServiceUnavailable
from discreet.ledger import Ledger
from discreet.privacy import events
from discreet.service.api.http_responses import status_of
from discreet.service.owner import supervision
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.owner.ledger_health import LedgerHealth
from discreet.service.owner.open_request import OpenRequest
from discreet.service.owner.supervision import Deadlines, SupervisedRequest
from discreet.service.owner.worker_executor import WorkerExecutor
from discreet.service.owner.worker_process import WorkerLost
from discreet.service.settings import Settings
from discreet.service.wire.sqlstates import wire_error
from tests.postgres_server import PostgresServer
from tests.service.owner.clinics import ANA, ask, kinds, ledger_of_ana, write

CHARGE = {
    "events_by_account": {"visits": events.to_json(events.Pure("0.1"))},
    "question": "{}",
    "replay_key": "",
    "terms": None,
}
GONE = LedgerUnavailable("The ledger's server cannot be used (connection refused)", "Nothing was written.")

Script = Callable[[LedgerGateway, Ledger], Awaitable[dict[str, Any]]]


# ------------------------------------------------------------------------------------------------------- one request


def outcome(script: Script, ledger: Ledger) -> Any:
    """How a request ends whose worker follows a script."""

    class Worker:
        async def perform(self, _: Any, door: LedgerGateway, __: Any) -> dict[str, Any]:
            return await script(door, ledger)

        def kill(self) -> None: ...

    async def supervised() -> Any:
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        running = OpenRequest(id="j", caller=ANA, work=ask(), tick=0.01, outcome=future)
        door = LedgerGateway(ledger, analyst="ana", spending=True)
        with ThreadPoolExecutor(2) as threads:
            request = SupervisedRequest(
                cast("Any", Worker()), door, running, Deadlines(planning=0.05, whole=0.1), threads
            )
            return (await request.run_to_end())[0]

    return asyncio.run(supervised())


def unavailable(ledger: Ledger, method: str) -> None:
    """The ledger's server is gone, for one method."""

    def gone(*_: Any, **__: Any) -> Any:
        raise GONE

    vars(ledger)[method] = gone


def require_outage(found: Any) -> None:
    assert isinstance(found, ServiceUnavailable)
    assert (status_of(found), found.retry_after > 0) == (503, True)
    assert "ledger" in str(found)
    assert wire_error(found).sqlstate == "57P03"


async def charging(door: LedgerGateway, _: Ledger) -> dict[str, Any]:
    door.serve("charge", CHARGE)
    return {"n": 1}


def test_a_charge_that_the_server_did_not_take_is_no_failure() -> None:
    ledger = ledger_of_ana()
    before = kinds(ledger)
    unavailable(ledger, "charge_all")
    require_outage(outcome(charging, ledger))
    assert kinds(ledger) == before


async def waiting(door: LedgerGateway, _: Ledger) -> dict[str, Any]:
    with door.asking():  # as the owner does for every call of a worker
        await asyncio.Event().wait()
    return {}


def test_a_plan_that_waits_for_the_ledger_is_not_too_complex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "OUTAGE", 0.01)
    ledger = ledger_of_ana()
    before = kinds(ledger)
    require_outage(outcome(waiting, ledger))
    assert kinds(ledger) == before


async def waiting_after_charge(door: LedgerGateway, ledger: Ledger) -> dict[str, Any]:
    await charging(door, ledger)
    return await waiting(door, ledger)


def test_an_answer_that_cannot_be_stored_uses_no_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "OUTAGE", 0.01)
    ledger = ledger_of_ana()
    require_outage(outcome(waiting_after_charge, ledger))
    assert kinds(ledger)[-2:] == ["charge", "interrupt"]
    assert ledger.balance("visits", analyst="ana").failures == 0


def storing(then: str) -> Script:
    async def script(door: LedgerGateway, ledger: Ledger) -> dict[str, Any]:
        receipt = door.serve("charge", CHARGE)
        try:
            door.serve("store_answer", {"sequence": receipt["sequence"], "replay_key": "r", "payload": "{}"})
        except LedgerUnavailable:
            vars(ledger).pop("store_answer")  # the server is back
            if then == "fail":  # as the curator does when anything goes wrong
                door.serve("fail", {"sequence": receipt["sequence"]})
                raise QueryFailed from None
            raise
        return {"n": 1}

    return script


@pytest.mark.parametrize("then", ["raise", "fail"])
def test_a_server_that_is_back_finds_an_interrupted_charge(then: str) -> None:
    ledger = ledger_of_ana()
    unavailable(ledger, "store_answer")
    require_outage(outcome(storing(then), ledger))
    assert kinds(ledger)[-2:] == ["charge", "interrupt"]
    assert ledger.balance("visits", analyst="ana").failures == 0


async def lost_after_charge(door: LedgerGateway, ledger: Ledger) -> dict[str, Any]:
    await charging(door, ledger)
    raise WorkerLost


def test_a_failure_that_cannot_be_written_is_told_as_an_outage() -> None:
    ledger = ledger_of_ana()
    unavailable(ledger, "fail")
    require_outage(outcome(lost_after_charge, ledger))


def test_without_an_outage_a_failure_uses_a_credit() -> None:
    ledger = ledger_of_ana()
    assert isinstance(outcome(lost_after_charge, ledger), QueryFailed)
    assert ledger.balance("visits", analyst="ana").failures == 1


# ------------------------------------------------------------------------------------------------------------ health


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow:
    """A ledger that answers when it is told to, or fails."""

    def __init__(self) -> None:
        self.go, self.looks, self.error = threading.Event(), 0, False

    def head(self) -> None:
        self.looks += 1
        self.go.wait(30)
        if self.error:
            raise GONE


def test_one_look_serves_all_and_is_believed_for_a_moment() -> None:
    async def act() -> None:
        ledger, clock = Slow(), Clock()
        health = LedgerHealth(cast("Any", ledger), patience=0.01, fresh=1.0, clock=clock)
        assert not await health.check()  # no answer in time
        with pytest.raises(ServiceUnavailable, match="ledger"):
            health.require()
        assert not any(await asyncio.gather(*(health.check() for _ in range(20))))
        assert ledger.looks == 1
        ledger.go.set()
        health._patience = 30.0
        clock.now = 2.0
        assert await health.check()
        health.require()
        looks = ledger.looks
        assert all(await asyncio.gather(*(health.check() for _ in range(20))))
        assert ledger.looks == looks
        ledger.error, clock.now = True, 4.0
        assert not await health.check()
        health.close()

    asyncio.run(act())


# -------------------------------------------------------------------------------------------------- a server that goes


async def require_refusals(desk: WorkerExecutor) -> None:
    """While the server is gone: first after the deadline of planning, then at once."""
    for _ in range(2):
        with pytest.raises(DiscreetError) as refused:
            await desk.perform(ANA, ask(epsilon="0.2", key="second"))
        require_outage(refused.value)
    assert not await desk.check_ledger()


async def require_recovery(desk: WorkerExecutor, ledger: Ledger, before: list[str]) -> None:
    """Once the server is back, the ledger is as it was, and the question is answered."""
    while not await desk.check_ledger():
        await asyncio.sleep(0.05)
    assert kinds(ledger) == before
    assert ledger.balance("visits", analyst="ana").failures == 0
    assert (await desk.perform(ANA, ask(epsilon="0.2", key="second")))["receipt"]


async def served_without(server: PostgresServer, folder: Path) -> float:
    """How long a desk takes to close whose server has gone twice."""
    settings = Settings(folder=folder, workers=1, tick=0.01, planning_deadline=2.0)
    with Ledger(server.url(database=server.make_database())) as ledger:
        desk = WorkerExecutor(ledger, settings, config=str(write(folder)))
        await desk.open()
        try:
            await desk.perform(ANA, ask(key="first"))
            before = kinds(ledger)
            await asyncio.to_thread(server.stop)
            await require_refusals(desk)
            await asyncio.to_thread(server.start)
            await require_recovery(desk, ledger, before)
            await asyncio.to_thread(server.stop)
            hanging = asyncio.ensure_future(desk.perform(ANA, ask(epsilon="0.3")))
            await asyncio.sleep(0)
        finally:
            began = time.monotonic()
            await desk.close(grace=5.0)
        with pytest.raises(ServiceUnavailable):
            await hanging
        return time.monotonic() - began


@pytest.mark.slow
def test_a_server_that_goes_and_comes_back(tmp_path: Path) -> None:
    """A real server: refused as an outage without it, answered when it is back, stopped in time without it."""
    server = PostgresServer()
    try:
        assert asyncio.run(served_without(server, tmp_path)) < 10
    finally:
        server.close()
