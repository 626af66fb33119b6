"""The state of a stream: a restart goes on where it stood, whatever interrupted it, and nothing is drawn twice."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.errors import StreamError
from discreet.noise import SeededBits
from discreet.privacy import Budget
from discreet.stream import RunningSum, SlidingWindow
from discreet.stream.state_file import FileWitness, StateFile
from tests.cases import every

RHO = Budget(rho="0.5")
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("square root", {"horizon": 12, "budget": RHO}),
    ("bounded memory", {"horizon": None, "budget": RHO}),
    ("tree", {"horizon": 12, "budget": Budget(epsilon=1)}),
    ("lines", {"horizon": 12, "budget": RHO, "size": 2}),
]


def value_of(kind: str, t: int) -> Any:
    return [t, 2 * t] if kind == "lines" else 3 * t


def shown(estimate: Any) -> list[Any]:
    return [np.ravel(part).tolist() for part in (estimate.value, estimate.low, estimate.high)]


@every(("kind", "parameters"), KINDS)
def test_a_restart_goes_on_where_it_stood(kind: str, parameters: dict[str, Any], tmp_path: Path) -> None:
    """With a restart before every period, the same bits give the same releases as without."""
    path = tmp_path / f"{kind}.state"
    parts: list[Any] = []
    stream = RunningSum(**parameters, bits=SeededBits(5), confidence=0.9)
    lone = [stream.release(value_of(kind, t)) for t in range(12)]
    with RunningSum(**parameters, state=path, bits=SeededBits(5), confidence=0.9) as saved:
        whole = [shown(saved.release(value_of(kind, t))) for t in range(6)]
    for t in range(6, 12):
        with RunningSum(**parameters, state=path, bits=SeededBits(t), confidence=0.9) as again:
            assert again.released == t
            assert shown(again.last) == (parts or whole)[-1]
            parts.append(shown(again.release(value_of(kind, t))))
    assert whole == [shown(estimate) for estimate in lone[:6]]
    with RunningSum(**parameters, state=path, bits=SeededBits(5), confidence=0.9) as last:
        assert shown(last.last) == parts[-1]
    with pytest.raises(StreamError, match="private"):  # seeded noise stays what it is
        RunningSum(**parameters, state=path)


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    with RunningSum(horizon=3, budget=RHO, state=tmp_path / "s"):
        for name in ("s", "s.witness"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    program = (
        "import sys; from discreet.stream import RunningSum; from discreet.privacy import Budget\n"
        "try: RunningSum(horizon=3, budget=Budget(rho='0.5'), state=sys.argv[1])\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    with RunningSum(horizon=3, budget=RHO, state=path) as stream:
        stream.release(1)
        with pytest.raises(StreamError, match="Another process"):
            RunningSum(horizon=3, budget=RHO, state=path)
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.stdout.startswith("StreamError Another process")
        stream.release(1)
    with pytest.raises(StreamError, match="closed"):
        stream.release(1)


def test_other_parameters_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    RunningSum(horizon=3, budget=RHO, state=path).close()
    for other in ({"horizon": 4}, {"budget": Budget(rho=1)}, {"sensitivity": 2}, {"bounds": (0, 5)}, {"size": 2}):
        with pytest.raises(StreamError, match="other parameters"):
            RunningSum(**({"horizon": 3, "budget": RHO, "state": path} | other))  # type: ignore[arg-type] # one of them
    with pytest.raises(StreamError, match="other parameters"):
        SlidingWindow(window=2, horizon=3, budget=RHO, state=path)
    (tmp_path / "t").write_text("{}\n")
    with pytest.raises(StreamError, match="no state"):
        RunningSum(horizon=3, budget=RHO, state=tmp_path / "t")
    (tmp_path / "u").write_text("not json\n")
    with pytest.raises(StreamError, match="damaged"):
        RunningSum(horizon=3, budget=RHO, state=tmp_path / "u")


def test_old_copies_are_refused(tmp_path: Path) -> None:
    path, old = tmp_path / "s", tmp_path / "old"
    with RunningSum(horizon=9, budget=RHO, state=path) as stream:
        stream.release(1)
        shutil.copy(path, old)
        shutil.copy(tmp_path / "s.witness", tmp_path / "old.witness")
        stream.release(1)
        stream.release(1)
    for source, match in ((old, "old copy: it has 1 of the 3"), (tmp_path / "none", "state is gone")):
        kept = path.read_bytes()
        path.write_bytes(source.read_bytes() if source.exists() else b"")
        with pytest.raises(StreamError, match=match):
            RunningSum(horizon=9, budget=RHO, state=path)
        path.write_bytes(kept)
    shutil.copy(tmp_path / "old.witness", tmp_path / "s.witness")
    with pytest.raises(StreamError, match="witness is an old copy"):
        RunningSum(horizon=9, budget=RHO, state=path)
    (tmp_path / "s.witness").unlink()
    with pytest.raises(StreamError, match="missing"):
        RunningSum(horizon=9, budget=RHO, state=path)
    (tmp_path / "s.witness").write_text(json.dumps({"stream": "another", "periods": 3}))
    with pytest.raises(StreamError, match="another stream"):
        RunningSum(horizon=9, budget=RHO, state=path)


class Crash(BaseException):
    """The process dies."""


STEPS = ["draw", "before write", "torn write", "after write", "before witness", "after witness"]


def crash_at(step: str, monkeypatch: pytest.MonkeyPatch, stream: RunningSum) -> None:
    """Makes the next release die at a step."""

    def die(*_: Any, **__: Any) -> Any:
        raise Crash

    def after(function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            function(*arguments, **named)
            raise Crash

        return call

    def torn(self: StateFile, entry: dict[str, Any], at: int) -> None:
        os.pwrite(self._descriptor, json.dumps(entry).encode()[:-3], at)
        raise Crash

    if step == "draw":
        monkeypatch.setattr(stream, "_noise", die)
    else:
        owner, part = (FileWitness, "testify") if "witness" in step else (StateFile, "_write")
        made = {"before": die, "after": after(getattr(owner, part)), "torn": torn}[step.split(maxsplit=1)[0]]
        monkeypatch.setattr(owner, part, made)


@every("step", STEPS)
def test_a_crash_at_any_step_repeats_and_loses_nothing(step: str, tmp_path: Path) -> None:
    """After a crash the period is either saved whole, with its noise, or was never drawn; nothing was shown of it."""
    path = tmp_path / step.replace(" ", "-")
    with pytest.MonkeyPatch.context() as monkeypatch:
        stream = RunningSum(horizon=9, budget=RHO, state=path)
        first = stream.release(10)
        crash_at(step, monkeypatch, stream)
        with pytest.raises(Crash):
            stream.release(20)
    with pytest.raises(StreamError, match="interrupted"):
        stream.release(20)
    assert isinstance(stream._keeper, StateFile)
    stream._keeper.close()  # what the end of a process does
    saved = step not in ("draw", "before write", "torn write")
    with RunningSum(horizon=9, budget=RHO, state=path) as again:
        assert again.released == (2 if saved else 1)
        assert saved or shown(again.last) == shown(first)
        second = again.release(20, period=2)  # the same call works after either
        assert again.released == 2
        kept = again.last
        again.release(30, period=3)
    with RunningSum(horizon=9, budget=RHO, state=path) as last:
        assert last.released == 3
    assert shown(kept) == shown(second)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [entry["values"] for entry in lines[1:]] == [[10], [20], [30]]
