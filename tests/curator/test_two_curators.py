"""Several curators on one ledger, some of them killed, some of them on a broken disk: no answer without its charge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import paid_release as module
from discreet.errors import InsufficientBudget, LedgerError
from discreet.ledger import Ledger
from discreet.ledger.store import sqlite
from discreet.measurement.probes import probes
from discreet.privacy import Budget, PureDP
from tests.curator import nursery
from tests.curator.spies import COUNT, Spy, clinic, filtered
from tests.effort import rounds
from tests.ledger.ledgers import spoil

ROOT = Path(__file__).parents[2]
CAP = 20  # questions that the nursery's budget allows
VANISHED = 1  # the question of the one that dies while it reads


def run(*arguments: object) -> list[tuple[int, int]]:
    """What the askers of a nursery were answered: place and number."""
    command = [sys.executable, "-m", "tests.curator.nursery", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200, cwd=ROOT)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {word for word, *_ in lines} <= {"answered"}
    return [(int(place), int(number)) for _, place, number in lines]


def check(path: Path, answered: list[tuple[int, int]], patch: pytest.MonkeyPatch) -> int:
    """Charges within the budget, an answer in the ledger for all that was answered, and the same when asked again."""
    patch.setattr(module, "WAIT", 0.0)
    with nursery.curator(str(path)) as curator:
        head = curator.verify()
        entries = curator.entries()
        charges = {entry.key: entry.sequence for entry in entries if entry.kind == "charge"}
        kept = {entry.about for entry in entries if entry.kind == "answer"}
        assert len(charges) <= CAP
        assert curator.budget("people").spent == PureDP(f"{len(charges)}/10")
        for place, number in answered:
            assert charges[f"key-{place}"] in kept
            assert nursery.ask(curator, place) == number
        assert curator.verify() == head
        for key in charges:  # nobody has to be asked for what was charged and never answered
            if (place := int(key.partition("-")[2])) != VANISHED:
                nursery.ask(curator, place)
        assert curator.budget("people").spent == PureDP(f"{len(charges)}/10")
    return len(charges)


@pytest.mark.ci
def test_two_processes_spend_exactly_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "book"
    answered = run("crowd", path, 2)
    assert check(path, answered, monkeypatch) == len(answered) == len(set(answered)) == CAP


@pytest.mark.ci
def test_kills_while_bounds_are_found_lose_nothing_that_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One charge for each key, entries of probes that cost nothing, and the same answer when it is asked again."""
    path = tmp_path / "book"
    command = [sys.executable, "-m", "tests.curator.nursery", "probes", str(path), str(rounds(16, 5)), "5"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200, cwd=ROOT)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines
    assert {word for word, *_ in lines} == {"answered"}
    monkeypatch.setattr(module, "WAIT", 0.0)
    monkeypatch.setattr(probes, "threshold", nursery.certain)
    with nursery.curator(str(path)) as curator:
        head, entries = curator.verify(), curator.entries()
        charges = [entry.key for entry in entries if entry.kind == "charge" and entry.key]
        assert len(charges) == len(set(charges)) <= CAP
        assert len(charges) < len([entry for entry in entries if entry.kind == "charge"])  # what probes found is kept
        assert curator.budget("people").spent == PureDP(f"{len(charges)}/10")
        for _, place, number in lines:
            assert nursery.mean(curator, int(place)) == float(number)
        assert curator.verify() == head


@pytest.mark.ci
def test_a_kill_between_charge_and_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "book"
    assert run("vanish", path) == []
    assert check(path, [], monkeypatch) == 1
    with nursery.curator(str(path)) as curator:
        number = nursery.ask(curator, 1)  # charged once, and read by somebody else
        assert nursery.ask(curator, 1) == number
        assert nursery.ask(curator, 2) is not None
        assert curator.budget("people").remaining.loss == PureDP("1.8")


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("by", "mean"),
    [(5, 0), (9, 1), pytest.param(1, 0, marks=pytest.mark.slow), pytest.param(1, 1, marks=pytest.mark.slow)],
)
def test_a_kill_at_each_step_is_answered_once_and_charged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: int, mean: int
) -> None:
    """One process dies at a statement of SQL, the next one asks with the same key; later and later until none dies."""
    monkeypatch.setattr(module, "WAIT", 0.0)
    monkeypatch.setattr(probes, "threshold", nursery.certain)
    path = tmp_path / "book"
    answered = dict(run("steps", path, 1, by, mean))
    with nursery.curator(str(path)) as curator:
        entries = curator.entries()
        charges = [entry for entry in entries if entry.kind == "charge" and entry.key]
        outcomes = [entry.about for entry in entries if entry.kind in ("answer", "fail")]
        assert {int(entry.key.partition("-")[2]) for entry in charges} == set(answered)
        assert len(charges) == len(answered)
        assert curator.budget("people").spent == PureDP(f"{len(charges)}/10")
        assert sorted(set(outcomes)) == sorted(outcomes)
        assert {entry.sequence for entry in charges} <= set(outcomes)
        assert "claim" in {entry.kind for entry in entries}
        head = curator.verify()
        for place, number in answered.items():
            again = nursery.mean(curator, place) if mean else nursery.ask(curator, place)
            assert int(again) == number
        assert curator.verify() == head


@pytest.mark.ci
def test_a_race_for_a_charge_without_an_answer_has_one_answer(tmp_path: Path) -> None:
    path = tmp_path / "book"
    answered = run("race", path, 4)
    assert len(answered) == 4
    assert len(set(answered)) == 1
    with Ledger(str(path), read_only=True) as ledger:
        kinds = [entry.kind for entry in ledger.history()]
        assert (kinds.count("charge"), kinds.count("answer")) == (1, 1)
        ledger.verify()


def killed(path: Path, runs: int, seed: int, patch: pytest.MonkeyPatch) -> None:
    answered = run("killed", path, runs, seed)
    assert check(path, answered, patch) > runs / 10  # enough of them came far enough
    assert answered


@pytest.mark.ci
def test_kills_lose_no_charge_and_leave_no_answer_unpaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "book", rounds(16, 5), 1, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_kills(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(tmp_path / "book", 30, seed, monkeypatch)


def test_two_curators_in_one_process_see_each_other(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    one, two = clinic(Budget(epsilon=1), ledger=ledger), clinic(Budget(epsilon=1), ledger=ledger)
    one.ask(COUNT, epsilon=0.5)
    assert two.ask(COUNT, epsilon=0.5).replayed
    one.amend("visits", budget=Budget(epsilon="0.75"))
    with pytest.raises(InsufficientBudget) as refused:
        two.ask(filtered(1), epsilon=0.5)
    assert refused.value.remaining == PureDP("0.25")
    one.appoint("ana", "analyst", account="visits", cap=Budget(epsilon="0.125"))
    with pytest.raises(InsufficientBudget):
        two.ask(filtered(1), epsilon=0.25, analyst="ana")
    assert two.ask(filtered(1), epsilon=0.125, analyst="ana").cost.details == PureDP("0.125")
    assert one.budget("visits") == two.budget("visits")


def test_a_read_only_ledger_gives_no_answer_and_reads_nothing(tmp_path: Path) -> None:
    spy, ledger = Spy(), str(tmp_path / "book")
    curator = clinic(Budget(epsilon=1), ledger=ledger, engine=spy)
    curator.ask(COUNT, epsilon=0.25)
    for connection in (curator._ledger._journal.store._writer, curator._ledger._journal.store._reader):  # type: ignore[attr-defined]
        connection.execute("PRAGMA query_only=ON")  # as of a ledger that is opened to be read only
    with pytest.raises(LedgerError, match="SQLITE_READONLY"):
        curator.ask(filtered(1), epsilon=0.25)
    assert spy.reads == 1
    assert curator.ask(COUNT, epsilon=0.25).replayed  # what was released is still free


def test_a_full_disk_gives_no_answer_and_reads_nothing(tmp_path: Path) -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=1), ledger=str(tmp_path / "book"), engine=spy)
    connection: Any = curator._ledger._journal.store._writer  # type: ignore[attr-defined]
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages}")
    long = f"{COUNT} WHERE age IN ({', '.join(map(str, range(900)))})"
    with pytest.raises(LedgerError, match="SQLITE_FULL"):
        curator.ask(long, epsilon=0.25)
    assert (spy.reads, str(curator.budget("visits").spent)) == (0, "epsilon=0")
    connection.execute("PRAGMA max_page_count=1000000")
    assert not curator.ask(long, epsilon=0.25).replayed


@pytest.mark.parametrize("statement", ["INSERT INTO answers", "COMMIT"])
def test_an_answer_that_cannot_be_kept_is_not_given(tmp_path: Path, statement: str) -> None:
    """The disk fails after the charge: the charge stays, the answer is lost, and nothing more is read."""
    spy, path = Spy(), tmp_path / "book"
    curator = clinic(Budget(epsilon=1), ledger=str(path), engine=spy)
    spy.before = lambda: spoil(curator._ledger, statement)
    with pytest.raises(LedgerError):
        curator.ask(COUNT, epsilon=0.25)
    spy.before = lambda: None
    assert spy.reads == 1
    sqlite._BROKEN.discard(str(path))  # another process
    other = clinic(Budget(epsilon=1), ledger=str(path))
    assert str(other.budget("visits").spent) == "epsilon=0.25"
    assert not other.ask(COUNT, epsilon=0.25).replayed


def test_a_commit_that_fails_reads_nothing(tmp_path: Path) -> None:
    spy, path = Spy(), tmp_path / "book"
    curator = clinic(Budget(epsilon=1), ledger=str(path), engine=spy)
    spoil(curator._ledger, "COMMIT")
    for _ in range(2):
        with pytest.raises(LedgerError):
            curator.ask(COUNT, epsilon=0.25)
    assert spy.reads == 0
    sqlite._BROKEN.discard(str(path))
