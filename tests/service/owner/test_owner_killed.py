"""The owner is killed at any step: nothing that was charged is lost, nothing unpaid is answered, no credit is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from tests.service.owner.clinics import ANA, ask, desk, kinds, run, write

PROGRAM = """
import os, signal, sys
from pathlib import Path
from discreet.service.owner.ledger_gateway import LedgerGateway
from tests.service.owner.clinics import ANA, ask, desk, run
folder, step, after = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True"
calls, serve = [0], LedgerGateway.serve

def deadly(door, method, arguments):
    calls[0] += 1
    if calls[0] == step and not after:
        os.kill(os.getpid(), signal.SIGKILL)
    found = serve(door, method, arguments)
    if calls[0] == step:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

async def day():
    async with desk(folder) as (made, ledger):
        await made._pool.take()  # both workers have started, so that the calls that follow are the question's
        made._pool.give_back(await made._pool.take())
        LedgerGateway.serve = deadly
        answer = await made.perform(ANA, ask(key="k"))
        print("answered" if answer["rows"] else "")

run(day())
"""


def killed(folder: Path, step: int, after: bool) -> str:
    """What the owner has said before it was killed."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(step), str(after)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
        timeout=300,
    )
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", range(1, 10))
def test_an_owner_killed_at_any_step_loses_nothing(tmp_path: Path, step: int, after: bool) -> None:
    write(tmp_path)
    said = killed(tmp_path, step, after)
    with Ledger(str(tmp_path / "discreet.ledger")) as ledger:
        ledger.verify()
        before = kinds(ledger)
    assert "fail" not in before
    if "answered" in said:
        assert before[-2:] == ["charge", "answer"]

    async def again() -> None:
        async with desk(tmp_path) as (made, ledger):
            answer = await made.perform(ANA, ask(key="k"))
            assert len(answer["rows"]) == 3
            assert kinds(ledger).count("charge") == 1
            assert kinds(ledger).count("answer") == 1
            assert ledger.balance("visits", analyst="ana").failures == 0
            ledger.verify()

    run(again())
