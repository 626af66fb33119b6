"""The desk with real workers: processes that answer, are killed, and lose nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import (
    DeclarationChanged,
    DiscreetError,
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    NotPermitted,
    QueryFailed,
    ServiceUnavailable,
    UnknownJob,
    UnknownTable,
    UnsupportedQuery,
)
from discreet.ledger import Ledger
from discreet.privacy import PureDP
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.owner.worker_executor import WorkerExecutor
from discreet.service.request_executor import OPERATIONS, JobRequest, JobState
from tests.service.owner.clinics import ANA, AUDITOR, BEN, COUNT, STELLA, ask, desk, kinds, run, write

SCOPED = ServiceCaller(name="ana", role=ServiceRole.ANALYST, credential="scoped", tables=frozenset({"staff"}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path)
    return tmp_path


async def refused(made: WorkerExecutor, caller: ServiceCaller, work: JobRequest) -> DiscreetError:
    with pytest.raises(DiscreetError) as found:
        await made.perform(caller, work)
    return found.value


@pytest.mark.ci
def test_a_day_at_the_desk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def day() -> None:
        async with desk(folder) as (made, ledger):
            assert [facts["name"] for facts in made.tables(ANA)] == ["staff", "visits"]
            assert [facts["name"] for facts in made.tables(SCOPED)] == ["staff"]
            first = await made.perform(ANA, ask(key="k"))
            again = await made.perform(ANA, ask(key="k"))
            assert (first["rows"], again["replayed"]) == (again["rows"], True)
            assert kinds(ledger).count("charge") == 1
            await check_refusals(made, ledger)
            await check_jobs(made)
            told = await made.perform(
                ANA, JobRequest(operation=OPERATIONS["explain"], arguments={"sql": COUNT, "epsilon": 1})
            )
            assert [column["name"] for column in told["columns"]] == ["ward", "n", "n_low", "n_high"]
            alike = [made.perform(ANA, ask(epsilon="0.2", key="same")) for _ in range(5)]
            assert len({str(found["rows"]) for found in await asyncio.gather(*alike)}) == 1
            ledger.verify()
            ready = [made.ready]
            monkeypatch.setattr(type(ledger), "is_stopped", property(lambda _: True))  # a commit failed
            assert isinstance(await refused(made, ANA, ask(key="k")), ServiceUnavailable)  # not even what is stored
            assert [*ready, made.ready] == [True, False]
        assert kinds_of(folder).count("charge") == 4

    run(day())


@pytest.mark.ci
def test_limits_are_found_once_whoever_asks_first(folder: Path) -> None:
    """Two workers are asked at once: the account pays for the limits once, and no analyst's cap counts them."""
    text = (folder / "discreet.toml").read_text()
    (folder / "discreet.toml").write_text(text.replace("max_rows = 1\n", 'limits = "private"\nlimits_epsilon = 2\n'))

    async def day() -> None:
        async with desk(folder, workers=2) as (made, ledger):
            (facts,) = [facts for facts in made.tables(ANA) if facts["name"] == "visits"]
            assert facts["limits"] == "found privately, before the first query"
            asked = [made.perform(ANA, ask(sql, epsilon="0.5")) for sql in (COUNT, "SELECT AVG(age) AS a FROM visits")]
            answers = await asyncio.gather(*asked)
            assert all("per patient are counted." in answer["counted"] for answer in answers)
            charged = [entry for entry in ledger.history() if entry.kind == "charge"]
            assert sorted(entry.who for entry in charged) == ["ana", "ana", "owner"]
            assert ledger.balance("visits", analyst="ana").spent == PureDP(1)
            assert ledger.balance("visits").spent == PureDP(3)
            ledger.verify()

    run(day())


def kinds_of(folder: Path) -> list[str]:
    with Ledger(str(folder / "discreet.ledger")) as ledger:
        return kinds(ledger)


async def check_refusals(made: WorkerExecutor, ledger: Ledger) -> None:
    before = ledger.head()
    assert isinstance(await refused(made, BEN, ask()), NotPermitted)
    assert isinstance(await refused(made, AUDITOR, ask()), NotPermitted)
    assert isinstance(await refused(made, SCOPED, ask()), UnknownTable)
    assert isinstance(await refused(made, ANA, ask("SELECT AVG(grade) AS g FROM staff")), NotPermitted)
    assert isinstance(await refused(made, ANA, ask(analyst="owner")), InvalidParameter)
    assert isinstance(await refused(made, ANA, ask("SELECT * FROM visits")), UnsupportedQuery)
    assert isinstance(await refused(made, ANA, ask(epsilon="nan")), InvalidParameter)
    assert isinstance(await refused(made, ANA, ask("SELECT COUNT(*) AS n FROM visits", key="k")), KeyConflict)
    assert ledger.head() == before


async def check_jobs(made: WorkerExecutor) -> None:
    job = made.begin(ANA, ask("SELECT COUNT(*) AS n FROM visits", key="job"))
    seen = [status async for status in made.follow(ANA, job.id)]
    assert seen[-1].state is JobState.DONE
    assert seen[-1].document is not None
    for stranger in (BEN, STELLA, SCOPED):  # the last is a key of the same person, for another table
        with pytest.raises(UnknownJob):
            made.job(stranger, job.id)
    running = made.begin(ANA, ask("SELECT COUNT(*) AS n FROM visits WHERE age > 1", key="both"))
    with pytest.raises(UnknownTable):  # not what the other key is about to get
        await made.perform(SCOPED, ask("SELECT COUNT(*) AS n FROM visits WHERE age > 1", key="both"))
    assert [status async for status in made.follow(ANA, running.id)][-1].state is JobState.DONE


def killing(monkeypatch: pytest.MonkeyPatch, made: WorkerExecutor, step: int, *, after: bool) -> None:
    """Kills every worker at one of a request's calls to the ledger, before or after it is done."""
    calls, serve = [0], LedgerGateway.serve

    def deadly(door: LedgerGateway, method: str, arguments: Any) -> Any:
        calls[0] += 1
        found = serve(door, method, arguments) if after or calls[0] != step else None
        if calls[0] == step:
            for pid in list(made._pool._busy):
                os.kill(pid, signal.SIGKILL)
        return found

    monkeypatch.setattr(LedgerGateway, "serve", deadly)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", [pytest.param(step, marks=pytest.mark.slow) for step in range(1, 11)])
def test_a_worker_killed_at_any_step_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: int, after: bool
) -> None:
    async def killed() -> None:
        async with desk(folder) as (made, ledger):
            spare = await made._pool.take()  # so that the one that is killed is the one that works
            made._pool.discard(spare)
            killing(monkeypatch, made, step, after=after)
            try:
                answer = await made.perform(ANA, ask(key="k"))
            except DiscreetError as error:
                answer = {"error": type(error)}
            monkeypatch.undo()
            check_nothing_lost(ledger, answer)
            again = await made.perform(ANA, ask(key="k" if "fail" not in kinds(ledger) else "k2"))
            assert len(again["rows"]) == 3
            ledger.verify()

    run(killed())


def check_nothing_lost(ledger: Ledger, answer: dict[str, Any]) -> None:
    happened = kinds(ledger)
    if "rows" in answer:
        assert happened.count("charge") == happened.count("answer") == 1
    elif "charge" not in happened:
        assert answer["error"] is UnsupportedQuery
    elif "answer" in happened:
        assert answer["error"] is ServiceUnavailable
    else:
        assert answer["error"] is QueryFailed
        assert ledger.balance("visits", analyst="ana").failures == 1


@pytest.mark.slow
def test_a_table_is_protected_while_others_are_served(folder: Path) -> None:
    (folder / "beds.csv").write_text("bed,days\n1,3\n2,4\n")
    types = {"bed": "int", "days": "int"}
    declared = {"path": str(folder / "beds.csv"), "name": "beds", "types": types, "unit": "bed", "max_rows": 1}

    async def protecting() -> None:
        async with desk(folder) as (made, ledger):
            ledger.stewardship.appoint("stella", "steward")
            seen = await made.perform(
                STELLA, JobRequest(operation=OPERATIONS["inspect"], arguments={"path": declared["path"]})
            )
            assert [column["name"] for column in seen["columns"]] == ["bed", "days"]
            with_budget = {**declared, "budget": {"epsilon": "1"}, "bounds": {"days": [0, 30]}}
            await made.perform(STELLA, JobRequest(operation=OPERATIONS["protect"], arguments=with_budget))
            assert "beds" in [facts["name"] for facts in made.tables(STELLA)]
            assert [entry.who for entry in ledger.history("beds") if entry.kind == "open"] == ["stella"]
            assert isinstance(await refused(made, STELLA, ask("SELECT COUNT(*) AS n FROM beds")), NotPermitted)
            ledger.stewardship.appoint("ana", "analyst", account="beds")
            answer = await made.perform(STELLA, ask("SELECT COUNT(*) AS n FROM beds"))
            assert len(answer["rows"]) == 1
            await check_declaring_anew(made, ledger, {**declared, "bounds": {"days": [0, 60]}})
        async with desk(folder) as (made, ledger):  # it is there after a restart, as it was declared last
            assert "beds" in [facts["name"] for facts in made.tables(STELLA)]
            answer = await made.perform(STELLA, ask("SELECT SUM(days) AS n FROM beds WHERE days > 1"))
            assert len(answer["rows"]) == 1
            ledger.verify()

    run(protecting())


@pytest.mark.ci
def test_rows_of_each_month_have_a_budget(folder: Path) -> None:
    (folder / "days.csv").write_text("bed,day\n" + "".join(f"{bed},2026-0{1 + bed % 2}-03\n" for bed in range(20)))
    declared = {"path": str(folder / "days.csv"), "name": "days", "types": {"bed": "int", "day": "date"}, "unit": "bed"}
    by_month = declared | {"max_rows": 1, "budget": {"epsilon": "1", "per": "month", "of": "day"}}
    january = "SELECT COUNT(*) AS n FROM days WHERE day = '2026-01-03'"

    async def asking() -> None:
        async with desk(folder) as (made, ledger):
            ledger.stewardship.appoint("stella", "steward")
            await made.perform(STELLA, JobRequest(operation=OPERATIONS["protect"], arguments=by_month))
            ledger.stewardship.appoint("ana", "analyst", account="days")
            told = await made.perform(
                ANA, JobRequest(operation=OPERATIONS["explain"], arguments={"sql": january, "epsilon": "0.6"})
            )
            answer = await made.perform(ANA, ask(january, epsilon="0.6"))
            assert told["cost"]["text"] == answer["cost"]["text"] == "epsilon=0.6, 60 % of the budget"
            assert isinstance(
                await refused(made, ANA, ask(january + " AND bed > 3", epsilon="0.6")), InsufficientBudget
            )
            both = "SELECT COUNT(*) AS n FROM days WHERE day IN ('2026-02-03', '2026-03-03')"
            await made.perform(ANA, ask(both, epsilon="0.6"))
            shares = {"2026-01-01": "60 %", "2026-02-01": "60 %", "2026-03-01": "60 %"}
            assert dict(ledger.balance("days").periods) == shares
            assert isinstance(await refused(made, ANA, ask("SELECT COUNT(*) AS n FROM days")), UnsupportedQuery)
            ledger.verify()

    run(asking())


async def check_declaring_anew(made: WorkerExecutor, ledger: Ledger, wider: dict[str, Any]) -> None:
    """The difference must have been seen; then it is the steward's entry, and every worker that comes knows it."""

    def protect(**more: Any) -> JobRequest:
        return JobRequest(operation=OPERATIONS["protect"], arguments={**wider, **more})

    before = ledger.head()
    changed = await refused(made, STELLA, protect())
    assert isinstance(changed, DeclarationChanged)
    assert list(changed.differences) == ["bounds of days: 0 to 30 -> 0 to 60"]
    for seen in ([], ["bounds of days: 0 to 30 -> 0 to 40"], True):
        assert isinstance(await refused(made, STELLA, protect(change=seen)), DeclarationChanged)
    assert ledger.head() == before
    await made.perform(STELLA, protect(change=list(changed.differences)))
    entry = ledger.history("beds")[-1]
    assert (entry.kind, entry.who, "before" in entry.content) == ("attach", "stella", True)
    answer = await made.perform(STELLA, ask("SELECT SUM(days) AS n FROM beds"))
    assert len(answer["rows"]) == 1
    of_the_file = protect(name="visits", change=["max_rows: 1 -> 2"])
    assert "discreet protect" in (await refused(made, STELLA, of_the_file)).hint  # type: ignore[attr-defined]
