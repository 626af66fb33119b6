"""A process that is killed between a charge and its answer was counted, and has told nothing that it drew."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from discreet.ledger.outcomes import MOST_RUNS
from discreet.privacy import PureDP

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, os, signal, sys
from discreet.curator import paid_release
from discreet.errors import RunsUsedUp
from discreet.ledger import Ledger
from tests.curator.paid_verbs import VERBS, hospital

paid_release.WAIT = 0.0
folder, verbs, runs = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
kept = {verb.name: verb for verb in VERBS}

def die(_book, _receipt, _key, payload, **_):
    with open(f"{folder}/drawn", "a") as file:
        file.write(payload.replace("\\n", " ") + "\\n")
    os.kill(os.getpid(), signal.SIGKILL)

def child(name, seed):
    for stream in (1, 2):
        os.dup2(os.open(f"{folder}/left {name} {seed}", os.O_CREAT | os.O_WRONLY | os.O_APPEND), stream)
    Ledger.store_answer = die
    try:
        with hospital(f"{folder}/{name}", seed=seed) as curator:
            kept[name].call(curator, key="k", progress=lambda stage: print(stage, flush=True))
    except RunsUsedUp:
        print("refused", flush=True)
        os._exit(7)
    os._exit(8)

ends = {}
for name in verbs:
    for seed in range(runs):
        process = os.fork()
        if not process:
            child(name, seed)
        ends.setdefault(name, []).append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
print(json.dumps(ends))
"""


def killed(folder: Path, verbs: list[str]) -> dict[str, list[int]]:
    """How each of four runs has ended: killed by itself when all was drawn, or refused."""
    command = [sys.executable, "-c", PROGRAM, str(folder), ",".join(verbs), str(MOST_RUNS + 1)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=300)
    return dict(json.loads(done.stdout))


def check(folder: Path, verbs: list[str]) -> None:
    ends = killed(folder, verbs)
    assert ends == {name: [-9] * MOST_RUNS + [7] for name in verbs}
    drawn = (folder / "drawn").read_text().splitlines()
    assert len(set(drawn)) == MOST_RUNS * len(verbs)  # all of them different
    for name in verbs:
        told = [(folder / f"left {name} {seed}").read_text() for seed in range(MOST_RUNS)]
        assert len(set(told)) == 1
        assert told[0].splitlines()[-2] == "Charging the account"
        assert told[0].splitlines()[-1].startswith("Reading visits and ")
        with Ledger(str(folder / name)) as ledger:
            kinds = [entry.kind for entry in ledger.history()]
            assert [kind for kind in kinds if kind in ("charge", "claim", "answer", "fail")] == [
                "charge",
                *["claim"] * 2,
            ]
            assert ledger.balance("patients").spent != PureDP(0)
            assert ledger.balance("patients").failures == 0
            ledger.verify()


@pytest.mark.ci
def test_a_killed_question_was_counted_and_told_nothing(tmp_path: Path) -> None:
    check(tmp_path, ["ask"])


@pytest.mark.slow
def test_every_killed_verb_was_counted_and_told_nothing(tmp_path: Path) -> None:
    check(tmp_path, ["profile", "fit", "synthesize by aim", "synthesize by mst", "ask for private groups"])
