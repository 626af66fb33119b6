"""A key that is revoked stops within a second: requests that run or wait, and the next statement of a connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.service import server
from discreet.service.api.verb_routes import LOOK_AGAIN
from discreet.service.caller import ServiceRole
from discreet.service.identity import Identities
from discreet.service.owner.worker_executor import WorkerExecutor
from discreet.service.owner.worker_pool import WorkerPool
from discreet.service.request_executor import JobState
from discreet.service.settings import Settings
from tests.service.owner.clinics import ask
from tests.service.whole_service import Connection, Whole, whole


def test_looks_are_less_than_a_second_apart() -> None:
    assert max(server._LOOK, LOOK_AGAIN) <= 0.5


@pytest.mark.parametrize("by", ["key", "session", "person"])
def test_a_job_stops_with_what_its_caller_has_shown(tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is to be had, so that all jobs go on until somebody stops them."""
    monkeypatch.setattr(server, "_LOOK", 0)
    monkeypatch.setattr(WorkerPool, "take", lambda _: asyncio.get_running_loop().create_future())
    identities = Identities(":memory:")

    async def test() -> None:
        with Ledger() as ledger:
            desk = WorkerExecutor(ledger, Settings(folder=tmp_path), config="")
            kept = identities.authenticate_key(identities.make_key(identities.local, "ben", ServiceRole.ANALYST)[1])
            key_id, text = identities.make_key(identities.local, "ana", ServiceRole.ANALYST)
            token = identities.sign_in_with_key(text)
            caller = identities.authenticate_session(token)[0] if by == "session" else identities.authenticate_key(text)
            ended, other = desk.begin(caller, ask()), desk.begin(kept, ask())
            watch = asyncio.ensure_future(server._watching(desk, identities))
            await _looks()
            assert not desk.job(caller, ended.id).state.has_ended
            if by == "person":
                identities.disable_person(identities.local, "ana")
            else:
                identities.revoke_key(identities.local, key_id)
            await _looks()
            assert desk.job(caller, ended.id).state is JobState.CANCELLED
            assert not desk.job(kept, other.id).state.has_ended
            watch.cancel()
            await desk.close(grace=0)

    try:
        asyncio.run(test())
    finally:
        identities.close()


async def _looks() -> None:
    """Lets the watch look several times."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_next_statement_of_an_open_connection_is_refused(tmp_path: Path) -> None:
    async def test(made: Whole) -> None:
        connection, _ = await Connection.opened(made.wire(), made.keys[ServiceRole.ANALYST][0])
        await connection.send("SET discreet.epsilon = 0.1")
        made.identities.revoke_key(made.identities.local, made.keys[ServiceRole.ANALYST][0])
        before, done = made.entries(), len(made.desk.done)
        for text in ("SHOW discreet.remaining", "SELECT COUNT(*) AS n FROM visits"):
            said = await connection.send(text)
            assert (b"C28000\0" in said) is (text[:4] == "SHOW")
        assert connection.task.done()
        assert (made.entries(), len(made.desk.done)) == (before, done)
        await made.closed()

    with whole(tmp_path / "service", [], again=False) as made:
        asyncio.run(test(made))


def test_the_next_click_of_a_session_is_refused(tmp_path: Path) -> None:
    async def test(made: Whole) -> None:
        browser = made.browser(ServiceRole.ANALYST)
        assert (await made.visit(browser, "GET", "/ask")).status_code == 200
        made.identities.end_sessions(made.identities.local, "ana")
        assert (await made.visit(browser, "GET", "/ask")).headers["location"] == "/sign-in?next=/ask"

    with whole(tmp_path / "service", [], again=False) as made:
        asyncio.run(test(made))
