"""Runs that are killed anywhere: what the files say they spent is what they spent, and what goes on adds to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch

from discreet import accounting
from discreet.privacy.events import Event, Repeated, from_json
from tests.deep.test_trainer import rows, train, trainer

KILLED = 5
CHILD = """
import os, signal, sys
import numpy as np, torch
from discreet.deep import private_trainer
from discreet.deep.gradient_noise import NoisySum
from discreet.deep.step_count import StepCount
from tests.deep.test_killed import KILLED, made_at
from tests.deep.test_trainer import losses

where, path, bands = sys.argv[1], sys.argv[2], int(sys.argv[3])
made = made_at(path, bands=bands)

def fatal(owner, name, before):
    honest = getattr(owner, name)
    def wrapped(*args, **options):
        if made.taken >= KILLED and before:
            os.kill(os.getpid(), signal.SIGKILL)
        found = honest(*args, **options)
        if made.taken >= KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    setattr(owner, name, wrapped)

if where == "after the count": fatal(StepCount, "take", False)
if where == "before the noise": fatal(NoisySum, "release", True)
if where == "before the optimizer": fatal(made._optimizer, "step", True)
if where == "before the weights are in place": fatal(private_trainer.Path, "replace", True)

release = NoisySum.release
def kept(self, bits=None):
    found = release(self, bits)
    with open(path + ".seen", "ab") as file:
        np.save(file, torch.cat(list(found.values())).numpy())
    return found
NoisySum.release = kept
for batch in made:
    made.step(losses(made.net, batch))
"""


def made_at(path: Any, bands: int = 1) -> Any:
    options: dict[str, Any] = {"size": 20, "epochs": 6, "save_every": 2, "physical_batch": 4, "bands": bands}
    return trainer(rows(20), checkpoint=path, **options)


def run_and_kill(where: str, path: Path, bands: int = 1) -> None:
    command = [sys.executable, "-c", CHILD, where, str(path), str(bands)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def told_by(path: Path, bands: int = 1) -> tuple[int, Event]:
    """What the count of steps says, read without the trainer: a line for each step after the first."""
    first, *lines = Path(f"{path}.steps").read_bytes().splitlines()
    planned = from_json(json.loads(first)["parameters"]["event"])
    assert isinstance(planned, Repeated)
    return len(lines), Repeated(planned.event, -(-len(lines) // bands))


def outputs(path: Path) -> list[Any]:
    found = []
    with Path(f"{path}.seen").open("rb") as file:
        while file.peek(1):
            found.append(np.load(file))
    return found


SLOW = pytest.mark.slow
PLACES = [
    "before the optimizer",
    pytest.param("after the count", marks=SLOW),
    pytest.param("before the noise", marks=SLOW),
    pytest.param("before the weights are in place", marks=SLOW),
]


@pytest.mark.ci
@pytest.mark.parametrize("where", PLACES)
def test_a_killed_run_spent_what_its_files_say(where: str, tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    run_and_kill(where, path)
    counted, event = told_by(path)
    at = 6 if where == "before the weights are in place" else KILLED  # weights are saved after every second step
    assert counted == at
    assert torch.load(path, weights_only=True)["taken"] == 4
    before = outputs(path)
    with made_at(path) as made:
        assert made.taken == counted
        assert made.event == event
        assert accounting.epsilon(made.event, 1e-5) == accounting.epsilon(event, 1e-5) == float(made.spent.epsilon)
        left = made.steps - made.taken
        released = released_by(made)
    assert len(released) == left  # steps that were begun are not made again
    assert not any(np.array_equal(a, b) for a in released for b in [*before, *released] if a is not b)  # fresh noise
    whole, event = told_by(path)
    assert (whole, event) == (made.steps, made.planned_event)
    with made_at(path) as again:
        assert accounting.epsilon(again.event, 1e-5) == accounting.epsilon(made.planned_event, 1e-5)
        assert released_by(again) == []


@SLOW
@pytest.mark.parametrize("where", ["before the optimizer", "after the count"])
def test_a_killed_run_with_correlated_noise_begins_new_windows(where: str, tmp_path: Path) -> None:
    path, bands = tmp_path / "run.pt", 2
    run_and_kill(where, path, bands)
    counted, event = told_by(path, bands)
    assert counted == KILLED
    with made_at(path, bands) as made:
        assert (made.taken, made.event) == (counted, event)
        released = released_by(made)
        assert len(released) == made.steps - 6  # the sixth is given up
    assert told_by(path, bands) == (made.steps, made.planned_event)


def released_by(made: Any) -> list[Any]:
    """What goes into the optimizer from here on."""
    found: list[Any] = []
    honest = made._sum.release

    def kept(bits: Any = None) -> Any:
        noisy = honest(bits)
        found.append(torch.cat(list(noisy.values())).numpy())
        return noisy

    made._sum.release = kept
    train(made)
    return found
