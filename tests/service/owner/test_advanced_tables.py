"""Workers follow a table that moves on: each request is asked at the version that the ledger has."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.requests.version_requests import Advance
from discreet.service.acts import StewardActions
from discreet.service.identity import Identities
from discreet.service.owner.worker_executor import WorkerExecutor
from tests.service.owner.clinics import ANA, STELLA, ask, desk, kinds, run, write


def version_of(made: WorkerExecutor) -> str:
    return next(str(facts["version"]) for facts in made.tables(ANA) if facts["name"] == "visits")


@pytest.mark.ci
def test_workers_follow_an_advance(tmp_path: Path) -> None:
    write(tmp_path)

    async def day() -> None:
        async with desk(tmp_path, workers=2) as (made, ledger):
            ledger.stewardship.appoint("stella", "steward")
            acts = StewardActions(ledger, Identities(":memory:"))
            first = await made.perform(ANA, ask(epsilon="0.2"))
            assert (await made.perform(ANA, ask(epsilon="0.2")))["replayed"]
            told = acts.perform(STELLA, Advance.of(table="visits", version="2026-12"))
            assert (told["kind"], told["asked_anew"], version_of(made)) == ("advance", 1, "2026-12")
            answers = [await made.perform(ANA, ask(epsilon="0.2")) for _ in range(3)]
            assert [answer["replayed"] for answer in answers] == [False, True, True]
            assert {answer["versions"][0]["version"] for answer in answers} == {"2026-12"}
            assert {answer["versions"][0]["since"] for answer in answers} == {told["since"]}
            assert first["versions"] == []
            assert kinds(ledger).count("charge") == 2
            ledger.verify()
        async with desk(tmp_path) as (made, ledger):  # the file has no label, and the service asks at the advance
            entries = ledger.head().sequence
            assert (await made.perform(ANA, ask(epsilon="0.2")))["replayed"]
            assert (version_of(made), ledger.head().sequence) == ("2026-12", entries)

    run(day())
