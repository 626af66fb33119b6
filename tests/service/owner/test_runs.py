"""Runs behind the service: jobs tell planned stages alone, and a charge is run three times, whoever stops them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import LedgerError, RunsUsedUp
from discreet.ledger import Ledger
from discreet.ledger.outcomes import MOST_RUNS
from discreet.service.api.http_responses import STATUS, status_of
from discreet.service.owner.ledger_gateway import LedgerGateway
from discreet.service.owner.worker_executor import WorkerExecutor
from discreet.service.request_executor import OPERATIONS, JobRequest, JobState, Operation
from discreet.service.wire.sqlstates import sqlstate
from tests.service.owner.clinics import ANA, COUNT, desk, kinds, ledger_of_ana, run, write
from tests.service.owner.test_supervision import CHARGE

TREE = {"learner": "DecisionTreeClassifier", "parameters": {"epsilon": 1}}
PAID: dict[Operation, dict[str, Any]] = {
    OPERATIONS["ask"]: {"sql": COUNT, "epsilon": "0.1"},
    OPERATIONS["ask_many"]: {"questions": [COUNT, "SELECT SUM(age) AS s FROM visits"], "epsilon": "0.1"},
    OPERATIONS["profile"]: {"table": "visits", "epsilon": "0.1"},
    OPERATIONS["fit"]: {**TREE, "sql": "SELECT age, ward FROM visits", "target": "ward"},
    OPERATIONS["synthesize"]: {"table": "SELECT age, ward FROM visits", "epsilon": "1", "generator": "independent"},
}
PLANNED = [
    "",
    "Reading the question",
    "Planning",
    "Charging the account",
    "Reading visits and adding noise",
    "Reading visits and fitting DecisionTreeClassifier",
    "Reading visits and fitting Independent",
]


def test_every_paid_operation_is_listed() -> None:
    linked = {OPERATIONS["synthesize_tables"]}  # which runs as `synthesize` does, on two tables that are not here
    assert {operation for operation in OPERATIONS.values() if operation.charges} == PAID.keys() | linked


def test_the_fourth_claim_is_refused_and_nothing_is_written() -> None:
    ledger = ledger_of_ana()
    for _ in range(MOST_RUNS):
        door = LedgerGateway(ledger, analyst="ana", key="k", spending=True)
        receipt = door.serve("charge", CHARGE)
        if receipt["repeated"]:
            door.serve("claim", {"sequence": receipt["sequence"]})
        door.close(failed=False)  # the service was stopped
    before, spent = ledger.head(), ledger.balance("visits").spent
    door = LedgerGateway(ledger, analyst="ana", key="k", spending=True)
    receipt = door.serve("charge", CHARGE)
    with pytest.raises(RunsUsedUp) as refused:
        door.serve("claim", {"sequence": receipt["sequence"]})
    assert not door.close(failed=True)  # it is nobody's to end: no credit is used
    assert (ledger.head(), ledger.balance("visits").spent) == (before, spent)
    assert ledger.balance("visits", analyst="ana").failures == 0
    assert (STATUS[RunsUsedUp], status_of(refused.value), sqlstate(refused.value)) == (409, 409, "55000")


class Halting:
    """Stops the service's requests when a worker stores an answer: all is drawn, and nothing of it is stored."""

    def __init__(self, made: WorkerExecutor, patch: pytest.MonkeyPatch) -> None:
        self.drawn: list[str] = []
        self._made, self._loop, self._serve = made, asyncio.get_running_loop(), LedgerGateway.serve
        halting = self

        def serve(door: LedgerGateway, method: str, arguments: Any) -> Any:
            if method != "store_answer":
                return halting._serve(door, method, arguments)
            halting.drawn.append(arguments["payload"])
            halted = threading.Event()
            halting._loop.call_soon_threadsafe(halting._halt, halted)
            halted.wait(10)
            raise LedgerError("The service stops")

        patch.setattr(LedgerGateway, "serve", serve)

    def _halt(self, halted: threading.Event) -> None:
        for running in self._made._jobs.values():
            if not running.outcome.done() and running.halt is not None:
                running.halt()
        halted.set()


async def followed(made: WorkerExecutor, work: JobRequest) -> tuple[list[str], str]:
    """The stages that a job told, and the error with which it ended."""
    job = made.begin(ANA, work)
    statuses = [status async for status in made.follow(ANA, job.id)]
    assert statuses[-1].state is JobState.FAILED
    assert statuses[-1].error is not None
    return [status.stage for status in statuses[:-1]], statuses[-1].error["error"]


async def check_runs(folder: Path, patch: pytest.MonkeyPatch, operation: Operation) -> None:
    work = JobRequest(operation=operation, arguments=PAID[operation], key="k")
    async with desk(folder) as (made, ledger):
        halting = Halting(made, patch)
        for _ in range(MOST_RUNS):
            stages, error = await followed(made, work)
            assert error == "ServiceUnavailable"
            assert [PLANNED.index(stage) for stage in stages] == sorted(PLANNED.index(stage) for stage in stages)
        patch.undo()
        spent, before = ledger.balance("visits").spent, kinds(ledger)
        stages, error = await followed(made, work)
        assert error == "RunsUsedUp"
        assert not any(stage.startswith("Reading visits") for stage in stages)
        assert (ledger.balance("visits").spent, kinds(ledger)) == (spent, before)
        assert (before.count("claim"), before.count("fail"), before.count("answer")) == (
            MOST_RUNS - 1,
            0,
            _beside(ledger),
        )
        assert len(halting.drawn) == MOST_RUNS
        if operation is not OPERATIONS["ask_many"]:  # whose answer tells where its releases are, which are stored
            assert len(set(halting.drawn)) == MOST_RUNS
        ledger.verify()


def _beside(ledger: Ledger) -> int:
    """How many releases are stored on the way to an answer."""
    return sum("beside" in entry.content for entry in ledger.history() if entry.kind == "charge")


@pytest.mark.slow
@pytest.mark.parametrize("operation", PAID)
def test_a_job_tells_planned_stages_and_is_run_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    config = write(tmp_path)
    if operation is OPERATIONS["synthesize"]:  # whose noise is normal
        text = config.read_text().replace("epsilon = 10\n", 'epsilon = 10\ndelta = "1e-6"\n')
        config.write_text(text.replace("epsilon = 5\n", 'epsilon = 5\ndelta = "5e-7"\n'))
    run(check_runs(tmp_path, monkeypatch, operation))
