"""Files and questions that would take all memory or all time: a worker dies of them, and nobody else notices."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DiscreetError, QueryFailed
from discreet.service.request_executor import OPERATIONS, JobRequest
from tests.service.owner.clinics import ANA, STELLA, ask, desk, kinds, run, write

MEMORY = 512 << 20  # bytes of a worker
LONG, ROWS = 30_000_000, 3_000  # letters of a text, and rows that repeat it: 90 GB, in a file of some kilobytes
HEAVY = """
[tables.heavy]
source = "heavy.csv"
unit = "person"
max_rows = 1
types = { person = "int", x = "int" }
bounds = { x = [0, 9] }
[budgets.heavy]
epsilon = 1
[analysts.ana.heavy]
"""
ENDLESS = "SELECT SUM(a.x * b.x + c.x * d.x) AS n FROM heavy AS a" + "".join(
    f" JOIN heavy AS {name} ON {name}.person = a.person" for name in "bcd"
)


@pytest.fixture(autouse=True)
def plain_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's allocator takes memory ahead, and all that it takes counts against a worker's small limit."""
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_a_file_that_unpacks_to_more_than_memory(tmp_path: Path) -> None:
    write(tmp_path)
    bomb = tmp_path / "bomb.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array(["a" * LONG]))
    pq.write_table(pa.table({"id": list(range(ROWS)), "text": text}), bomb, compression="zstd")
    assert bomb.stat().st_size < 1 << 20

    async def inspected() -> None:
        async with desk(tmp_path, memory=MEMORY, fit_deadline=20.0) as (made, ledger):
            ledger.stewardship.appoint("stella", "steward")
            looking = asyncio.ensure_future(
                made.perform(STELLA, JobRequest(operation=OPERATIONS["inspect"], arguments={"path": str(bomb)}))
            )
            answer = await made.perform(ANA, ask())  # meanwhile
            assert len(answer["rows"]) == 3
            with pytest.raises(DiscreetError):
                await looking
            assert len((await made.perform(ANA, ask(epsilon="0.2")))["rows"]) == 3

    run(inspected())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 6 << 20  # kilobytes; it was never in this process


@pytest.mark.slow
def test_a_question_without_end_is_dead_at_its_deadline_and_others_are_answered(tmp_path: Path) -> None:
    config = write(tmp_path)
    config.write_text(config.read_text() + HEAVY)
    (tmp_path / "heavy.csv").write_text("person,x\n" + "".join(f"1,{i % 10}\n" for i in range(2_000)))

    async def asked() -> None:
        async with desk(tmp_path, workers=2, deadline=15.0, memory=MEMORY) as (made, ledger):
            endless = asyncio.ensure_future(made.perform(ANA, ask(ENDLESS)))
            for place in range(3):
                answer = await made.perform(ANA, ask(f"SELECT COUNT(*) AS n FROM visits WHERE age > {place}"))
                assert len(answer["rows"]) == 1
            with pytest.raises(QueryFailed):
                await endless
            assert kinds(ledger).count("fail") == 1
            assert ledger.balance("heavy", analyst="ana").failures == 1
            ledger.verify()

    run(asked())
