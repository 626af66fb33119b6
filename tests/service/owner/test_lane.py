from __future__ import annotations

import asyncio

import pytest

from discreet.errors import ServiceUnavailable, TooManyRequests
from discreet.service.owner.job_queue import JobQueue
from discreet.service.owner.open_request import last_release_time, release_time


def test_callers_take_turns() -> None:
    order: list[str] = []

    async def request(lane: JobQueue, caller: str) -> None:
        async with lane.slot(caller):
            order.append(caller)
            await asyncio.sleep(0)

    async def crowd() -> None:
        lane = JobQueue(slots=1, waiting=20, per_caller=20)
        await asyncio.gather(*(request(lane, who) for who in ("ana",) * 5 + ("ben", "cid", "ben")))

    asyncio.run(crowd())
    assert order == ["ana", "ana", "ben", "cid", "ana", "ben", "ana", "ana"]


def test_queues_are_bounded() -> None:
    async def crowd() -> None:
        lane = JobQueue(slots=1, waiting=3, per_caller=2)
        held = asyncio.Event()

        async def request(caller: str) -> None:
            async with lane.slot(caller):
                await held.wait()

        tasks = [asyncio.ensure_future(request(who)) for who in ("ana", "ana", "ana", "ben")]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests) as own:
            lane.require_room("ana")
        assert own.value.retry_after > 0
        with pytest.raises(ServiceUnavailable):
            lane.require_room("cid")
        held.set()
        await asyncio.gather(*tasks)
        assert lane.length == 0

    asyncio.run(crowd())


def test_whoever_goes_away_leaves_no_slot_taken() -> None:
    async def crowd() -> None:
        lane = JobQueue(slots=1, waiting=9, per_caller=9)
        held, through = asyncio.Event(), []

        async def request(name: str) -> None:
            async with lane.slot(name):
                await held.wait()
                through.append(name)

        first, second, third = (asyncio.ensure_future(request(name)) for name in ("a", "b", "c"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        assert lane.length == 1
        held.set()
        await asyncio.gather(first, third)
        async with lane.slot("d"):  # one slot is free again, and one only
            assert through == ["a", "c"]

    asyncio.run(crowd())


@pytest.mark.parametrize("tick", [0.25, 1.0, 8.0])
def test_outcomes_leave_at_few_moments(tick: float) -> None:
    """log2(deadline / tick) + 2 of them, for outcomes ready at any time up to the deadline."""
    deadline = 8.0
    moments = {release_time(100.0, 100.0 + deadline * i / 1000, tick) for i in range(1001)}
    assert len(moments) == {0.25: 6, 1.0: 4, 8.0: 1}[tick]
    assert all(release_time(100.0, moment, tick) == moment for moment in moments)


def test_what_is_told_is_what_was_so_at_the_last_moment() -> None:
    assert last_release_time(5.0, 5.1, 0.25) is None
    assert [last_release_time(0.0, now, 0.25) for now in (0.25, 0.49, 0.5, 3.9)] == [0.25, 0.25, 0.5, 2.0]
