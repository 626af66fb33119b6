"""A small clinic with an owner of its ledger, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from discreet.ledger import Ledger
from discreet.privacy import Budget, Unit
from discreet.service.caller import ServiceCaller, ServiceRole
from discreet.service.owner.worker_executor import WorkerExecutor
from discreet.service.request_executor import OPERATIONS, JobRequest
from discreet.service.settings import Settings

ANA = ServiceCaller(name="ana", role=ServiceRole.ANALYST, credential="key of ana")
BEN = ServiceCaller(name="ben", role=ServiceRole.ANALYST, credential="key of ben")
STELLA = ServiceCaller(name="stella", role=ServiceRole.STEWARD, credential="key of stella")
AUDITOR = ServiceCaller(name="otto", role=ServiceRole.AUDITOR, credential="key of otto")
COUNT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
TOML = """
[tables.visits]
source = "visits.csv"
unit = "patient"
max_rows = 1
types = { patient = "int", ward = "text", age = "int" }
bounds = { age = [0, 120] }
keys = { ward = ["A", "B", "C"] }
[tables.staff]
source = "staff.csv"
unit = ""
types = { grade = "int" }
bounds = { grade = [0, 9] }
[budgets.visits]
epsilon = 10
[budgets.staff]
epsilon = 1
[analysts.ana.visits]
epsilon = 5
"""


def write(folder: Path) -> Path:
    """A table of people, one of staff for whom nobody is appointed, and their declarations."""
    rows = [f"{i % 40},{'ABC'[i % 3]},{i % 90}" for i in range(120)]
    (folder / "visits.csv").write_text("patient,ward,age\n" + "\n".join(rows) + "\n")
    (folder / "staff.csv").write_text("grade\n" + "\n".join(str(i % 9) for i in range(30)) + "\n")
    (folder / "discreet.toml").write_text(TOML)
    return folder / "discreet.toml"


def ask(sql: str = COUNT, epsilon: str = "0.1", key: str | None = None, **more: Any) -> JobRequest:
    return JobRequest(operation=OPERATIONS["ask"], arguments={"sql": sql, "epsilon": epsilon, **more}, key=key)


@asynccontextmanager
async def desk(folder: Path, **chosen: Any) -> AsyncIterator[tuple[WorkerExecutor, Ledger]]:
    """A desk with one worker, one planner and short ticks."""
    config = folder / "discreet.toml"
    settings = Settings(folder=folder, **{"workers": 1, "tick": 0.01, **chosen})
    with Ledger(str(folder / "discreet.ledger")) as ledger:
        made = WorkerExecutor(ledger, settings, config=str(config))
        try:
            await made.open()
            yield made, ledger
        finally:
            await made.close(grace=0.1)


def ledger_of_ana() -> Ledger:
    """A ledger in memory in which ana is appointed on one account, and nobody on another."""
    ledger = Ledger()
    for account in ("visits", "staff"):
        ledger.stewardship.open_account(account, unit=Unit("person", "id"), budget=Budget(epsilon=2))
    ledger.stewardship.appoint("ana", "analyst", account="visits", cap=Budget(epsilon=1))
    return ledger


def kinds(ledger: Ledger) -> list[str]:
    """What happened, in order."""
    return [entry.kind for entry in ledger.history()]


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)
