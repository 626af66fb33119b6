"""Disks fill up, files vanish, processes fork: nothing is charged by halves and nothing is answered in doubt."""

from __future__ import annotations

import linecache
import os
import signal
import sqlite3
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from discreet.errors import InsufficientBudget, LedgerError, LedgerMissing, NotPermitted
from discreet.ledger import Ledger
from discreet.ledger.store import ledger_store, sqlite
from discreet.ledger.store.sqlite import SqliteTransaction
from discreet.privacy import Budget, PureDP, events
from tests.ledger.ledgers import PATIENTS, TENTH, opened, spend, spoil

pytestmark = pytest.mark.usefixtures("ctrl_c")

SMALL = events.Pure("1/100000")
SOON = 10.0  # seconds, a hundred times as long as it takes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    opened(tmp_path / "book").close()
    return tmp_path / "book"


def test_files_are_private(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        ledger.charge("patients", TENTH)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"book": 0o600, "book-wal": 0o600, "book-shm": 0o600}


def test_a_copied_file_becomes_private_again(path: Path) -> None:
    path.chmod(0o644)
    Ledger(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_commit_is_synced(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        connection = ledger._journal.store._writer  # type: ignore[attr-defined]
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_full_disk_refuses_and_recovers(path: Path) -> None:  # RT-076
    with Ledger(str(path)) as ledger:
        connection = ledger._journal.store._writer  # type: ignore[attr-defined]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(LedgerError) as caught:
            ledger.charge("patients", TENTH, question="x" * 20_000)
        assert "SQLITE_FULL" in caught.value.reason
        assert ledger.balance("patients").spent == PureDP(0)
        connection.execute("PRAGMA max_page_count=1000000")
        ledger.charge("patients", TENTH)
        ledger.verify()


@pytest.mark.parametrize("statement", ["BEGIN", "SELECT", "INSERT INTO entries", "INSERT INTO states"])
def test_an_error_before_the_commit_writes_nothing(path: Path, statement: str) -> None:
    with Ledger(str(path)) as ledger:
        spoil(ledger, statement)
        with pytest.raises(LedgerError):
            ledger.charge("patients", TENTH)
    with Ledger(str(path)) as ledger:
        assert spend(ledger) == 10
        ledger.verify()


@pytest.mark.parametrize("after", [False, True])
def test_after_a_failed_commit_this_process_writes_no_more(path: Path, after: bool) -> None:  # RT-063, RT-076
    with Ledger(str(path)) as ledger:
        spoil(ledger, "COMMIT", after=after)
        with pytest.raises(LedgerError, match="not known"):
            ledger.charge("patients", TENTH, key="k")
        with pytest.raises(LedgerError, match="earlier commit"):
            ledger.charge("patients", TENTH, key="k")
    with Ledger(str(path)) as again:
        with pytest.raises(LedgerError, match="earlier commit"):
            again.charge("patients", TENTH, key="k")
        again.verify()
        assert again.balance("patients").spent == PureDP("1/10" if after else 0)
    sqlite._BROKEN.discard(str(path))  # another process
    with Ledger(str(path)) as other:
        assert other.charge("patients", TENTH, key="k").repeated is after
        assert other.balance("patients").spent == PureDP("1/10")


def test_a_read_only_ledger_answers_nothing(path: Path) -> None:  # RT-077
    with Ledger(str(path), read_only=True) as ledger:
        assert ledger.balance("patients").remaining.loss == PureDP(1)
        ledger.verify()
        with pytest.raises(LedgerError, match="SQLITE_READONLY"):
            ledger.charge("patients", TENTH)


def test_unreachable_and_foreign_files_are_refused(tmp_path: Path, path: Path) -> None:
    for lost in (tmp_path / "no" / "where", tmp_path):
        with pytest.raises(LedgerError):
            Ledger(str(lost))
    with pytest.raises(LedgerMissing):
        Ledger(str(tmp_path / "missing"), read_only=True)
    assert not (tmp_path / "missing").exists()
    (tmp_path / "text").write_text("no database, but long enough to look like one " * 100)
    with pytest.raises(LedgerError):
        Ledger(str(tmp_path / "text"))
    with closing(sqlite3.connect(tmp_path / "other")) as connection:
        connection.execute("CREATE TABLE t (a)")
    before = (tmp_path / "other").read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(str(tmp_path / "other"))
    assert (tmp_path / "other").read_bytes() == before
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version={ledger_store.VERSION + 1}")
    with pytest.raises(LedgerError, match="newer"):
        Ledger(str(path))


def test_a_file_replaced_under_an_open_ledger_is_noticed(path: Path, tmp_path: Path) -> None:
    opened(tmp_path / "fresh").close()
    with Ledger(str(path)) as ledger:
        ledger.charge("patients", TENTH)
        os.replace(tmp_path / "fresh", path)
        for act in (lambda: ledger.charge("patients", TENTH), lambda: ledger.balance("patients")):
            with pytest.raises(LedgerError, match="moved or replaced"):
                act()
        path.unlink()
        with pytest.raises(LedgerError):
            ledger.charge("patients", TENTH)


def test_waiting_for_others_ends(path: Path) -> None:
    with Ledger(str(path), timeout=0.05) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="SQLITE_BUSY"):
            ledger.charge("patients", TENTH)
        assert ledger.balance("patients").spent == PureDP(0)  # readers do not wait
        other.execute("ROLLBACK")
        ledger.charge("patients", TENTH)


def test_two_ledgers_on_one_file(path: Path) -> None:
    with Ledger(str(path)) as one, Ledger(str(path)) as two:
        for _ in range(5):
            one.charge("patients", TENTH)
            two.charge("patients", TENTH)
        assert one.balance("patients") == two.balance("patients")
        assert spend(one) == spend(two) == 0
        one.verify()


def test_what_was_rolled_back_is_not_remembered(path: Path) -> None:
    with opened(path) as ledger:
        ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon="0.25"))
        ledger.charge_all({"patients": TENTH, "staff": TENTH})
        with pytest.raises(InsufficientBudget):  # the first of the two is written, then undone
            ledger.charge_all({"patients": TENTH, "staff": events.Pure("0.2")})
        assert ledger.charge("patients", TENTH).remaining == PureDP("0.8")
        ledger.verify()


def test_what_others_wrote_is_seen_by_the_next_charge(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        for place in range(8):
            assert (one, other)[place % 2].charge("patients", TENTH).remaining == PureDP(f"0.{9 - place}")
        other.stewardship.appoint("ana", "auditor", account="patients")
        with pytest.raises(NotPermitted):
            one.charge("patients", TENTH, analyst="ana")
        one.verify()


def test_an_interrupted_charge_is_undone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with Ledger(str(path)) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(SqliteTransaction, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.charge("patients", TENTH)
        assert ledger.balance("patients").spent == PureDP(0)
        assert spend(ledger) == 10
        ledger.verify()


class Signalling:
    """A connection during whose n-th statement Ctrl-C is pressed; Python hears it as soon as the statement is done."""

    def __init__(self, real: Any, left: list[int]) -> None:
        self._real, self._left = real, left

    def execute(self, *arguments: Any) -> Any:
        found = self._real.execute(*arguments)
        self._left[0] -= 1
        if self._left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def signalled_at(ledger: Ledger, step: int) -> Iterator[list[int]]:
    """Sends Ctrl-C during the n-th SQL statement; gives how many are still to come."""
    left, store = [step], cast("Any", ledger._journal.store)
    real = store._writer, store._cursor
    store._writer, store._cursor = (Signalling(each, left) for each in real)
    try:
        yield left
    finally:
        store._writer, store._cursor = real


@contextmanager
def signalled_at_line(_ledger: Ledger, step: int) -> Iterator[list[int]]:
    """Sends Ctrl-C before the n-th line of the ledger's own code; gives how many are still to come.

    A line with `with` comes twice: Python hears nothing between the end of its block and the call that leaves it.
    """
    left, room, inside = [step], str(Path(sqlite.__file__).parent), set[tuple[FrameType, int]]()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(room):
            return None
        place = frame, frame.f_lineno
        if event == "line" and place not in inside:
            if linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
                inside.add(place)
            left[0] -= 1
            if left[0] == 0:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield left
    finally:
        sys.settrace(before)


def check_whole(
    path: Path | str,
    signalled: Callable[[Ledger, int], AbstractContextManager[list[int]]],
    by: int = 1,
    *,
    patience: float = 0,
) -> int:
    """Whatever Ctrl-C meets, a charge is in the ledger or is not, nothing is held, and this process and others go on.

    Args:
        path: of the ledger.
        signalled: presses Ctrl-C at a step.
        by: how many steps to go on each time.
        patience: seconds that others wait, where a server needs some to see that a client has let go.

    Returns:
        How many steps a charge and an answer have.
    """
    step, left = 1 - by, [0]
    with Ledger(str(path)) as ledger, Ledger(str(path), timeout=patience) as other:
        while left[0] <= 0:
            step += by
            with signalled(ledger, step) as left, suppress(KeyboardInterrupt):
                ledger.store_answer(ledger.charge("patients", SMALL), "replay", b"bytes")
            before = len(other.history())
            other.charge("patients", SMALL)
            assert ledger.charge("patients", SMALL).state == ledger.admit("patients", "ana")
            entries = ledger.history()
            assert len(entries) == before + 2
            spent = sum(entry.kind == "charge" for entry in entries)
            assert ledger.balance("patients").spent == PureDP(SMALL.epsilon * spent)
            free = threading.Thread(target=ledger._journal.head)  # nor is a lock of this process held
            free.start()
            free.join(SOON)
            assert not free.is_alive()
        other.verify()
    return step


def test_ctrl_c_during_each_statement_leaves_the_ledger_whole(path: Path) -> None:
    assert check_whole(path, signalled_at) >= 8  # begin, states, entries, commit, twice


@pytest.mark.parametrize("by", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c_at_each_line_leaves_the_ledger_whole(path: Path, by: int) -> None:
    assert check_whole(path, signalled_at_line, by) > 100


def charge_until_signal(ledger: Ledger) -> None:
    """Charges a ledger that others write to; Ctrl-C, which any thread of the process may receive, ends the wait."""
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ledger.charge("patients", TENTH)
    assert time.monotonic() - started < SOON


def test_ctrl_c_is_heard_while_others_write(path: Path) -> None:
    with Ledger(str(path), timeout=2 * SOON) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        charge_until_signal(ledger)
        other.execute("ROLLBACK")
        assert spend(ledger) == 10


def test_ctrl_c_is_heard_while_other_threads_write(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        writing, done = threading.Event(), threading.Event()

        def write() -> None:
            with ledger._journal.acting():
                writing.set()
                done.wait(2 * SOON)

        writer = threading.Thread(target=write)
        writer.start()
        writing.wait()
        charge_until_signal(ledger)
        done.set()
        writer.join()
        assert spend(ledger) == 10


def test_a_handler_of_somebody_else_is_called_after_the_transaction(path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
    try:
        with Ledger(str(path)) as ledger, signalled_at(ledger, 2):
            assert ledger.charge("patients", TENTH).remaining == PureDP("0.9")
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def child(work: Any) -> int:
    """The exit code of a forked process that does some work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads
        process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - reported through the exit code
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_forked_process_opens_its_own_connection(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        ledger.charge("patients", TENTH)
        assert child(lambda: ledger.charge("patients", TENTH)) == 0
        assert ledger.charge("patients", TENTH).remaining == PureDP("0.7")
        ledger.verify()


def test_a_ledger_in_memory_does_not_survive_a_fork() -> None:
    ledger = opened()
    assert child(lambda: ledger.charge("patients", TENTH)) == 1
    assert ledger.charge("patients", TENTH).remaining == PureDP("0.9")


def test_ledgers_in_memory_are_apart() -> None:
    one, two = opened(), opened()
    one.charge("patients", TENTH)
    assert two.balance("patients").spent == PureDP(0)
    two.stewardship.open_account("more", unit=PATIENTS, budget=Budget(rho=1))
    assert one.accounts() == ("patients",)


def test_a_ledger_that_is_being_made_by_another_is_recognised(tmp_path: Path) -> None:
    """Whatever the other process does between two looks at a new file, they see one state of it."""
    path = str(tmp_path / "book")
    Path(path).touch()
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)

    def interfere(statement: str) -> None:
        if "sqlite_master" in statement:
            with suppress(LedgerError):
                sqlite.SqliteStore(path, timeout=0).close()

    connection.set_trace_callback(interfere)
    sqlite._recognise(connection)
    connection.close()
