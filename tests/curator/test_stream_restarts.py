"""Streams whose process is killed: opened again under the same charge, and no period is ever released in two ways."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.curator.streams.curated_stream import MOST_RUNS, CuratedStream
from discreet.engines import Memory
from discreet.errors import AccountLocked, StreamError
from discreet.ledger import Ledger
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.plan.model.readings import Reading
from discreet.privacy import Budget
from discreet.stream import RunningSum, state_file
from discreet.stream.state_file import FileWitness, StateFile
from tests.cases import every
from tests.effort import some

START = dt.date(2026, 1, 1)
DAILY = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
ROWS = [{"person": p, "day": START + dt.timedelta(days=d)} for p in range(5) for d in range(4) if (p + d) % 3]
HALF = Budget(rho="0.5")


def declared(folder: Path | None, engine: Memory | None = None, *, day: int = 0) -> Curator:
    ledger = ":memory:" if folder is None else folder / "book"
    curator = Curator(ledger, engine=engine or Memory(), today=START + dt.timedelta(days=day))
    types = {"person": "int", "day": "date"}
    curator.protect(ROWS, name="visits", unit="person", types=types, budget=Budget(rho=1), max_groups=2)
    return curator


def opened(folder: Path, engine: Memory | None = None, *, day: int = 0) -> tuple[Curator, CuratedStream]:
    """A stream without a declared start, which then is the day on which it is opened first."""
    curator = declared(folder, engine, day=day)
    return curator, curator.stream(DAILY, every="day", horizon=4, rho="0.5", name="daily")


def die(*_: Any, **__: Any) -> Any:
    """Ends the process as `kill -9` does: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str, *, calls: int = 0) -> None:
    """Lets the process die in a call of a function: before it does anything, and after so many calls that it does."""
    _patch(owner, name, calls, die)


def after(owner: Any, name: str, *, calls: int = 0) -> None:
    """Lets the process die when a function has done what it does."""
    _patch(owner, name, calls, lambda function, *arguments, **named: die(function(*arguments, **named)))


def _patch(owner: Any, name: str, calls: int, last: Callable[..., Any]) -> None:
    function, seen = getattr(owner, name), []

    def call(*arguments: Any, **named: Any) -> Any:
        seen.append(name)
        return function(*arguments, **named) if len(seen) <= calls else last(function, *arguments, **named)

    setattr(owner, name, call)


def torn(*, calls: int = 0) -> None:
    """Lets the process die when half of a line is in the file."""

    def half(_: Any, self: StateFile, entry: dict[str, Any], at: int) -> None:
        line = json.dumps(entry, separators=(",", ":")).encode()
        os.pwrite(self._descriptor, line[: len(line) // 2], at)
        die()

    _patch(StateFile, "_write", calls, half)


MOMENTS: dict[str, tuple[Callable[[], None], int]] = {
    "before the charge": (lambda: before(Ledger, "charge_all"), 0),
    "after the charge": (lambda: after(Ledger, "charge_all"), 0),
    "before the state is made": (lambda: before(state_file, "_open_file"), 0),
    "an empty state": (lambda: after(state_file, "_open_file"), 0),
    "half of the first line": (torn, 0),
    "after the first line": (lambda: after(StateFile, "_write"), 0),
    "before the first period is read": (lambda: before(Memory, "read"), 0),
    "after the first period is read": (lambda: after(Memory, "read"), 0),
    "before the first period is saved": (lambda: before(StateFile, "append"), 0),
    "half of the first period": (lambda: torn(calls=1), 0),
    "after the first period is saved": (lambda: after(StateFile, "_write", calls=1), 1),
    "before the first period is in the ledger": (lambda: before(Ledger, "store_beside"), 1),
    "after the first period is in the ledger": (lambda: after(Ledger, "store_beside"), 1),
    "before the second period is read": (lambda: before(Memory, "read", calls=1), 1),
    "before the second period is saved": (lambda: before(StateFile, "append", calls=1), 1),
    "half of the second period": (lambda: torn(calls=2), 1),
    "after the second period is saved": (lambda: after(StateFile, "_write", calls=2), 2),
    "before the second period is in the ledger": (lambda: before(Ledger, "store_beside", calls=1), 2),
    "after the second period is in the ledger": (lambda: after(Ledger, "store_beside", calls=1), 2),
}
"""Moments while a stream is started and releases two periods, each with how many periods its state then has."""


def killed(work: Callable[[], Any]) -> None:
    """Runs some work in a process of its own, which must die of SIGKILL in the midst of it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the process ended with {status} and was not killed"
    assert os.WTERMSIG(status) == signal.SIGKILL


def saved(folder: Path) -> list[Any]:
    """The noise of every period that the state holds whole."""
    return [
        json.loads(line)["noisy"]
        for path in (folder / "book.streams").glob("*.state")
        for line in path.read_bytes().split(b"\n")[1:-1]
    ]


QUICK = (
    "before the charge",
    "after the charge",
    "half of the first line",
    "after the first period is saved",
    "half of the second period",
)


@every("moment", some(QUICK, 4))
def test_a_stream_whose_process_was_killed_goes_on_under_its_charge(moment: str, tmp_path: Path) -> None:
    check_killed(moment, tmp_path / moment.replace(" ", "-"))


@pytest.mark.slow
@every("moment", MOMENTS)
def test_a_stream_goes_on_whenever_its_process_was_killed(moment: str, tmp_path: Path) -> None:
    check_killed(moment, tmp_path / moment.replace(" ", "-"))


def check_killed(moment: str, folder: Path) -> None:
    """The next processes, on later days, open the stream where it stood, by its name or by the call that started it."""
    folder.mkdir()
    arrange, kept = MOMENTS[moment]

    def work() -> None:
        arrange()
        _, stream = opened(folder)
        stream.release()
        stream.release()

    killed(work)
    noisy = saved(folder)
    assert len(noisy) == kept
    if moment != "before the charge":  # which says how the stream was started, where its state says nothing yet
        with declared(folder, day=2) as curator:
            assert curator.stream(name="daily").next_period == START + dt.timedelta(days=kept)
            assert curator._streams.names() == ("daily",)
    curator, stream = opened(folder, day=0 if moment == "before the charge" else 1)
    with curator:
        assert stream.released == kept
        assert stream.next_period == START + dt.timedelta(days=kept)
        shown = [stream.release() for _ in range(kept, 4)]
        assert [answer.records[0]["day"] for answer in shown] == [START + dt.timedelta(days=t) for t in range(kept, 4)]
        assert saved(folder) == stream._witness.read_releases()
        assert saved(folder)[:kept] == noisy
        assert curator.budget("visits").remaining.loss == HALF
        assert curator.verify()
    again, last = opened(folder, day=3)
    with again:
        assert list(last.answers())[kept:] == [record for answer in shown for record in answer]


def test_a_stream_is_opened_as_often_as_it_takes(tmp_path: Path) -> None:
    for day in range(12):
        curator, stream = opened(tmp_path, day=day)
        with curator:
            assert stream.next_period == START
            assert curator.budget("visits").remaining.loss == HALF


class Crash(BaseException):
    """The process dies."""


class Fragile(Memory):
    """An engine in which the process dies, as often as is said."""

    deaths = 0

    def read(self, reading: Reading) -> ExactGroups:
        """Reads, or dies."""
        if Fragile.deaths:
            Fragile.deaths -= 1
            raise Crash
        return super().read(reading)


def test_a_period_that_is_cut_off_again_and_again_uses_up_failure_credits(tmp_path: Path) -> None:
    """Three runs are free; whoever cuts off more of them is stopped as by other failures, until a steward acts."""
    failures = []
    for _ in range(MOST_RUNS + 3):
        Fragile.deaths = 1
        curator, stream = opened(tmp_path, Fragile())
        with curator, pytest.raises(Crash):
            stream.release()
        failures.append(
            [entry.kind for entry in Ledger(str(tmp_path / "book"), read_only=True).history("visits")].count("fail")
        )
    assert failures == [0, 0, 0, 1, 2, 3]
    Fragile.deaths = 0
    curator, stream = opened(tmp_path, Fragile())
    with curator:
        assert stream.released == 0
        with pytest.raises(AccountLocked):
            stream.release()
        curator.unlock("visits")
        for _ in range(4):
            stream.release()
        assert curator.budget("visits").remaining.loss == HALF


def test_what_is_no_state_is_refused_before_it_is_charged_and_stays_as_it_is(tmp_path: Path) -> None:
    for place, content in enumerate((b"my notes", b"my notes\n", b'{"format":"another"}\n', b"\0x")):
        path = tmp_path / f"{place}.state"
        path.write_bytes(content)
        curator = declared(None)
        with pytest.raises(StreamError):
            curator.stream(DAILY, horizon=4, rho="0.5", state=str(path))
        assert curator.budget("visits").remaining.loss == Budget(rho=1)
        assert path.read_bytes() == content
        with pytest.raises(StreamError):
            RunningSum(horizon=4, budget=HALF, state=path)
        assert path.read_bytes() == content


@every("torn_at", [0, 1, 40, -1])
def test_a_first_line_that_is_not_whole_is_written_anew(torn_at: int, tmp_path: Path) -> None:
    """Also where the new one is shorter, and after a crash of the machine that left zeros."""
    path = tmp_path / f"{torn_at}.state"
    RunningSum(horizon=40_000, budget=Budget(rho="0.123456789"), state=path, sensitivity="1/1024").close()
    (tmp_path / f"{torn_at}.state.witness").unlink()
    content = path.read_bytes()[:-1]
    path.write_bytes(content[: torn_at if torn_at >= 0 else len(content)] + b"\0" * (torn_at % 2) * 9)
    with RunningSum(horizon=4, budget=HALF, state=path) as stream:
        stream.release(1)
        stream.release(2)
    with RunningSum(horizon=4, budget=HALF, state=path) as again:
        assert again.released == 2
    assert len(path.read_text().splitlines()) == 3


def test_a_witness_that_knows_periods_is_believed(tmp_path: Path) -> None:
    """A state that is lost after its first release is not begun anew, whoever the witness is."""
    curator, stream = opened(tmp_path)
    with curator:
        stream.release()
    (path,) = (tmp_path / "book.streams").glob("*.state")
    whole = path.read_bytes()
    for content in (b"", whole[:30], whole[: whole.index(b"\n") + 1]):
        path.write_bytes(content)
        with declared(tmp_path) as curator, pytest.raises(StreamError, match=r"empty|old copy"):
            curator.stream(DAILY, horizon=4, rho="0.5", name="daily")
    own = FileWitness(tmp_path / "lone.witness")
    assert own.count_periods("any") is None
