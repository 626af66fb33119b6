"""What an accomplice learns from waiting: two analysts of one service, one of whom times their own questions only.

Ana asks about a table in which one person has very many rows, or which lacks that person. Ben asks right after her,
about a table of his own, of the same service with one worker, and measures when his answer comes. A threshold is chosen
on one half of the runs and tried on the other. The share of right guesses is printed, for Ana's times and for Ben's,
with and without `hold_slots`; half of them is a guess. Nothing here is a promise: it is what the list of known
vulnerabilities says under "A service can be timed".

    python bench/service_timing.py [runs of each kind, default 40]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from discreet.ledger import Ledger
from discreet.service.caller import AuthenticatedCaller, ServiceRole
from discreet.service.owner.worker_executor import WorkerExecutor
from discreet.service.request_executor import JobRequest, Operation
from discreet.service.settings import Settings

PEOPLE_ROWS, HEAVY_ROWS = 200_000, 1_000_000
TICK = 0.25
TOML = """
[tables.visits]
source = "visits.parquet"
unit = "person"
max_rows = 1
bounds = { x = [0, 100] }
[tables.small]
source = "small.parquet"
unit = "person"
max_rows = 1
bounds = { x = [0, 100] }
[budgets.visits]
epsilon = 1000
[budgets.small]
epsilon = 1000
[analysts.ana.visits]
[analysts.ben.small]
"""
ANA = AuthenticatedCaller(name="ana", role=ServiceRole.ANALYST, credential="a")
BEN = AuthenticatedCaller(name="ben", role=ServiceRole.ANALYST, credential="b")


def write(folder: Path, heavy: int) -> Path:
    folder.mkdir()
    rows = f"SELECT range % 20000 AS person, range % 100 AS x FROM range({PEOPLE_ROWS})"
    heavy_rows = f"SELECT 99999 AS person, range % 100 AS x FROM range({heavy})"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows} UNION ALL {heavy_rows}) TO '{folder}/visits.parquet'")
        connection.execute(f"COPY ({rows} LIMIT 1000) TO '{folder}/small.parquet'")
    (folder / "discreet.toml").write_text(TOML)
    return folder / "discreet.toml"


def ask(table: str, number: int) -> JobRequest:
    sql = f"SELECT COUNT(*) AS n, SUM(x) AS s FROM {table} WHERE x + {number} > 3"
    return JobRequest(operation=Operation.ASK, arguments={"sql": sql, "epsilon": "0.01"})


async def timed(desk: WorkerExecutor, caller: AuthenticatedCaller, work: JobRequest) -> float:
    start = time.perf_counter()
    await desk.perform(caller, work)
    return time.perf_counter() - start


async def pair(desk: WorkerExecutor, number: int) -> tuple[float, float]:
    """Ana's time, and Ben's, who begins right after her."""
    ana = asyncio.ensure_future(timed(desk, ANA, ask("visits", number)))
    await asyncio.sleep(0.005)
    ben = await timed(desk, BEN, ask("small", number))
    return await ana, ben


async def measured(scratch: Path, runs: int, *, hold: bool) -> list[list[tuple[float, float]]]:
    """The times with the person and without, in turn."""
    async with AsyncExitStack() as stack:
        desks = []
        for name, heavy in (("with", HEAVY_ROWS), ("without", 0)):
            config = write(scratch / f"{name}-{hold}", heavy)
            ledger = stack.enter_context(Ledger(str(config.parent / "ledger")))
            settings = Settings(folder=config.parent, workers=1, tick=TICK, hold_slots=hold)
            desk = WorkerExecutor(ledger, settings, config=str(config))
            stack.push_async_callback(desk.close, grace=0.1)
            await desk.open()
            desks.append(desk)
        found: list[list[tuple[float, float]]] = [[], []]
        for number in range(-2, runs):
            for place, desk in enumerate(desks):
                times = await pair(desk, number)
                if number >= 0:  # the first ones are slower for other reasons
                    found[place].append(times)
    return found


def right_guesses(with_person: list[float], without: list[float]) -> float:
    """The share of right guesses by a threshold that was chosen on the other half."""
    half = len(with_person) // 2
    cuts = sorted(with_person[:half] + without[:half])

    def share(cut: float, above: list[float], below: list[float]) -> float:
        return (sum(x > cut for x in above) + sum(x <= cut for x in below)) / (len(above) + len(below))

    best = max(cuts, key=lambda cut: share(cut, with_person[:half], without[:half]))
    return share(best, with_person[half:], without[half:])


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    table = Table(title=f"Right guesses whether a person of {HEAVY_ROWS:,} rows is there; a guess: 50 %")
    for heading in ("setting", "by Ana's own times", "by Ben's, beside her"):
        table.add_column(heading)
    with tempfile.TemporaryDirectory() as scratch:
        for hold in (False, True):
            there, gone = asyncio.run(measured(Path(scratch), runs, hold=hold))
            shares = [right_guesses([t[who] for t in there], [t[who] for t in gone]) for who in (0, 1)]
            table.add_row(f"hold_slots = {str(hold).lower()}", *(f"{share:.0%}" for share in shares))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
