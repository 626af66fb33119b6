"""A ledger knows by its first entry that it has an anchor: where that is gone, no older copy gets its budget back."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import (
    AnchorMismatch,
    AnchorMissing,
    AnchorNotKept,
    InvalidParameter,
    LedgerError,
    NotPermitted,
)
from discreet.ledger import AnchoredLedger, Head, Ledger, accept_missing_anchor, changes, is_anchored, join_anchor
from discreet.ledger.anchor.anchor_file import LedgerCheckpoint, read_anchor, write_anchor
from discreet.ledger.store.place import is_there
from discreet.noise import SeededBits
from discreet.presentation.ledger_report.report_page import ledger_report
from discreet.privacy import Budget
from tests.ledger.ledgers import PATIENTS, TENTH
from tests.ledger.test_chain import thawed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder for each test: what lies there is looked at."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "discreet" / "anchors"


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return str(tmp_path / "clinic.ledger")


def opened(ledger: str) -> AnchoredLedger:
    book = AnchoredLedger(ledger)
    book.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=1))
    return book


def answered(ledger: Ledger, *, analyst: str = "ana") -> None:
    ledger.store_answer(ledger.charge("patients", TENTH, analyst=analyst), "count", b"5")


def spent(ledger: str, *, old: str) -> None:
    """A ledger with one answer, a copy of it, and one more answer since."""
    with opened(ledger) as book:
        answered(book)
        book.backup(old)
        answered(book)


def put_back(old: str, ledger: str) -> None:
    for path in Path(ledger).parent.glob(Path(ledger).name + "*"):
        path.unlink()
    shutil.copy(old, ledger)


def anchors(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if path.is_file()]


# ------------------------------------------------------------------------------------------------------- where it lies


def test_it_is_the_first_entry_and_lies_in_the_state_folder(ledger: str, home: Path) -> None:
    opened(ledger).close()
    with Ledger(ledger, read_only=True) as book:
        first = book.history()[0]
        assert (first.sequence, first.kind, first.content["how"]) == (1, "anchor", "begun")
    (file,) = anchors(home)
    assert file.name == first.content["id"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    found = read_anchor(str(file))
    assert found is not None
    assert found.head.sequence == 2


def test_a_plain_curator_finds_it(ledger: str, home: Path) -> None:
    rows = [{"ward": "A"}] * 3
    with Curator(ledger, engine=Memory()) as curator:
        curator.protect(rows, name="visits", types={"ward": "text"}, budget=Budget(epsilon=1))
        curator.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.5)
    (file,) = anchors(home)
    with Curator(ledger) as curator:
        assert str(curator.budget("visits").remaining.loss) == "epsilon=0.5"
    file.unlink()
    with pytest.raises(AnchorMissing):
        Curator(ledger)


def test_a_ledger_in_memory_and_one_for_tests_have_none(ledger: str, home: Path, tmp_path: Path) -> None:
    Curator().close()
    Curator.for_tests(ledger, bits=SeededBits(1)).close()
    assert not home.exists()
    assert not is_anchored(ledger)
    other = str(tmp_path / "other.ledger")
    Curator(other).close()
    (file,) = anchors(home)
    file.unlink()
    with pytest.raises(AnchorMissing):  # it is no way around
        Curator.for_tests(other, bits=SeededBits(1))


def test_another_place_is_named(ledger: str, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "disk" / "anchor"
    file.parent.mkdir()
    Curator(ledger, anchor=file).close()
    assert not home.exists()
    with pytest.raises(AnchorMissing, match="anchor=FILE"):
        Curator(ledger)
    Curator(ledger, anchor=str(file)).close()
    with pytest.raises(LedgerError, match="has an anchor"):  # and it cannot be switched off any more
        Curator(ledger, anchor="")


def test_a_plain_ledger_does_not_write_to_it(ledger: str) -> None:
    opened(ledger).close()
    with pytest.raises(LedgerError, match="AnchoredLedger"):
        Ledger(ledger)
    with Ledger(ledger, read_only=True) as book:
        book.verify()


def test_a_folder_that_cannot_be_written_is_told_before_there_is_a_ledger(
    ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    with pytest.raises(LedgerError, match=r'Curator\(ledger, anchor="') as refused:
        Curator(ledger)
    assert "XDG_STATE_HOME" in str(refused.value)
    assert not os.path.exists(ledger)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))  # one of the remedies
    Curator(ledger).close()


# --------------------------------------------------------------------------------------------- deleted, and set back


def test_an_older_copy_without_its_anchor_gets_nothing_back(ledger: str, home: Path, tmp_path: Path) -> None:
    old = str(tmp_path / "old")
    spent(ledger, old=old)
    for file in anchors(home):
        file.unlink()
    put_back(old, ledger)
    for read_only in (False, True):
        with pytest.raises(AnchorMissing) as refused:
            AnchoredLedger(ledger, read_only=read_only)
    for told in (
        "--join SEQ:HASH",
        "--accept-missing --by NAME --reason TEXT",
        "older copy",
        refused.value.anchor_file,
    ):
        assert told in str(refused.value)
    assert anchors(home) == []


@pytest.mark.ci
def test_the_remedy_works_as_it_is_written(ledger: str, home: Path, tmp_path: Path) -> None:
    old = str(tmp_path / "old")
    spent(ledger, old=old)
    anchors(home)[0].unlink()
    put_back(old, ledger)
    with pytest.raises(AnchorMissing) as refused:
        Curator(ledger)
    told = str(refused.value).split("a steward runs `")[1].split("`")[0]
    command = shlex.split(told.replace("NAME", "owner").replace("TEXT", "'its disk broke'"))
    done = CliRunner().invoke(app, command[1:])
    assert done.exit_code == 0, done.output
    with AnchoredLedger(ledger) as book:
        last = book.history()[-1]
        assert (last.kind, last.who, last.content["reason"]) == ("anchor", "owner", "its disk broke")
        assert "its disk broke" in ledger_report(book).text.split('id="account-patients"')[0]
    Curator(ledger).close()


def test_every_report_shows_that_it_was_missing(ledger: str, home: Path) -> None:
    opened(ledger).close()
    for reason in ("first loss", "second loss"):
        anchors(home)[0].unlink()
        accept_missing_anchor(ledger, by="owner", reason=reason)
    with AnchoredLedger(ledger) as book:
        text = ledger_report(book).text
        assert text.index("second loss") < text.index("first loss")


def test_a_charge_from_before_a_missing_anchor_is_not_run_again(ledger: str, home: Path, tmp_path: Path) -> None:
    """In the ledger it may have been answered: with another noise, both answers would tell more than was paid for."""
    old = str(tmp_path / "old")
    with opened(ledger) as book:
        book.charge("patients", TENTH, analyst="ana", key="k")
        book.backup(old)
        book.store_answer(book.charge("patients", TENTH, analyst="ana", key="k2"), "count", b"5")
    anchors(home)[0].unlink()
    put_back(old, ledger)
    accept_missing_anchor(ledger, by="owner", reason="its disk broke")
    with AnchoredLedger(ledger) as book:
        again = book.charge("patients", TENTH, analyst="ana", key="k")
        assert again.repeated
        with pytest.raises(LedgerError, match="restored from a copy"):
            book.claim(again)


def test_accepting_needs_a_steward_a_reason_and_a_missing_anchor(ledger: str, home: Path) -> None:
    with opened(ledger) as book:
        book.stewardship.appoint("ada", "auditor")
        head = book.head()
    with pytest.raises(LedgerError, match="no new anchor"):
        accept_missing_anchor(ledger, by="owner", reason="why not")
    anchors(home)[0].unlink()
    with pytest.raises(NotPermitted):
        accept_missing_anchor(ledger, by="ada", reason="its disk broke")
    with pytest.raises(InvalidParameter, match="reason"):
        accept_missing_anchor(ledger, by="owner", reason="  ")
    for given in (["--accept-missing"], ["--accept-missing", "--by", "owner"], ["--accept-missing", "--reason", "x"]):
        assert CliRunner().invoke(app, ["anchor", ledger, *given]).exit_code == 2
    assert anchors(home) == []
    with Ledger(ledger, read_only=True) as book:
        assert book.head() == head


def test_a_copied_file_shares_the_anchor_and_the_one_behind_is_refused(ledger: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.ledger")
    opened(ledger).close()
    shutil.copy(ledger, copy)
    with AnchoredLedger(copy) as book:
        answered(book)
    with pytest.raises(AnchorMismatch) as refused:
        AnchoredLedger(ledger)
    assert refused.value.missing == 2
    command = shlex.split(str(refused.value).split("`")[1])
    done = CliRunner().invoke(app, command[1:])  # what is proposed works: the ledger counts what the copy spent
    assert done.exit_code == 0, done.output
    with AnchoredLedger(ledger) as book:
        assert str(book.balance("patients").spent) == "epsilon=0.1"


def test_a_ledger_that_is_gone_is_not_begun_anew(ledger: str, tmp_path: Path) -> None:
    old = str(tmp_path / "old")
    spent(ledger, old=old)
    Path(ledger).unlink()
    with pytest.raises(AnchorMismatch, match="is gone") as refused:
        Curator(ledger)
    assert not os.path.exists(ledger)
    done = CliRunner().invoke(app, ["restore", old, "--ledger", ledger, "--accept-loss"])
    assert done.exit_code == 0, done.output
    with AnchoredLedger(ledger) as book:
        assert str(book.balance("patients").spent) == "epsilon=0.2"
    Path(ledger).unlink()
    away = str(refused.value).split("move ")[1].split(" away")[0]  # for other people's data
    shutil.move(away, tmp_path / "away")
    Curator(ledger).close()


def test_restoring_by_a_head_that_was_printed_makes_an_anchor(ledger: str, home: Path, tmp_path: Path) -> None:
    old = str(tmp_path / "old")
    spent(ledger, old=old)
    with Ledger(old, read_only=True) as copy:
        head = copy.head()
    Path(ledger).unlink()
    shutil.rmtree(home)
    done = CliRunner().invoke(app, ["restore", old, "--ledger", ledger, "--anchor", str(head)])
    assert done.exit_code == 0, done.output
    with AnchoredLedger(ledger) as book:
        assert book.history()[-1].content["how"] == "joined"
        answered(book)


# ----------------------------------------------------------------------------------------------------- another machine


def test_another_machine_joins_by_the_head_that_the_first_prints(
    ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = str(tmp_path / "old")
    spent(ledger, old=old)
    printed = CliRunner().invoke(app, ["anchor", ledger]).stdout.strip().splitlines()[-1]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "second machine"))
    with pytest.raises(AnchorMissing) as refused:
        Curator(ledger)
    command = str(refused.value).split("Then run `")[1].split("`")[0]
    done = CliRunner().invoke(app, shlex.split(command.replace("SEQ:HASH", printed))[1:])
    assert done.exit_code == 0, done.output
    with AnchoredLedger(ledger) as book:
        assert book.history()[-1].content == {**book.history()[-1].content, "how": "joined", "head": printed}
        assert "joined on another machine" in ledger_report(book).text
    put_back(old, ledger)
    with pytest.raises(AnchorMismatch):
        Curator(ledger)


def test_a_wrong_head_joins_nothing(ledger: str, home: Path, tmp_path: Path) -> None:
    old = str(tmp_path / "old")
    spent(ledger, old=old)
    with Ledger(ledger, read_only=True) as book:
        newest = book.head()
    shutil.rmtree(home)
    put_back(old, ledger)
    for head in (newest, Head(2, "f" * 64), Head(0, "0" * 64)):
        with pytest.raises(InvalidParameter, match="older than the other machine's"):
            join_anchor(ledger, head)
    assert CliRunner().invoke(app, ["anchor", ledger, "--join", str(newest)]).exit_code == 2
    assert CliRunner().invoke(app, ["anchor", ledger, "--join", "7:nonsense"]).exit_code == 2
    assert not home.exists() or anchors(home) == []
    with Ledger(ledger, read_only=True) as book:
        assert {entry.content.get("how") for entry in book.history() if entry.kind == "anchor"} == {"begun"}


# ----------------------------------------------------------------------------------------- ledgers of earlier versions


def earlier(ledger: str) -> None:
    """A ledger as earlier versions wrote it, without an entry about an anchor."""
    with Ledger(ledger) as book:
        book.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=1))
        answered(book)


def test_a_ledger_of_an_earlier_version_gets_one_by_an_entry(ledger: str, home: Path, tmp_path: Path) -> None:
    earlier(ledger)
    shutil.copy(ledger, tmp_path / "before")
    with AnchoredLedger(ledger) as book:
        assert (book.history()[-1].kind, book.history()[-1].content["how"]) == ("anchor", "marked")
        answered(book)
        book.verify()
    put_back(str(tmp_path / "before"), ledger)  # also a copy that says nothing has the same id, and finds the anchor
    with pytest.raises(AnchorMismatch):
        AnchoredLedger(ledger)
    assert len(anchors(home)) == 1


def test_a_ledger_of_the_first_version_goes_on(tmp_path: Path) -> None:
    path = thawed(tmp_path)
    with AnchoredLedger(str(path)) as ledger:
        ledger.verify()
    with AnchoredLedger(str(path)) as ledger:
        assert [entry.kind for entry in ledger.history()].count("anchor") == 1


def test_the_anchor_that_an_earlier_version_kept_beside_it_is_taken_over(
    ledger: str, home: Path, tmp_path: Path
) -> None:
    earlier(ledger)
    beside, old = Path(f"{ledger}.anchor"), tmp_path / "old"
    shutil.copy(ledger, old)
    with Ledger(ledger) as book:
        answered(book)
    with AnchoredLedger(ledger) as book:
        pass
    shutil.move(anchors(home)[0], beside)
    shutil.copy(old, ledger)
    with pytest.raises(AnchorMismatch, match=r"clinic\.ledger\.anchor"):
        AnchoredLedger(ledger)
    assert beside.exists()


def test_an_anchor_beside_a_ledger_that_has_another_is_not_taken(ledger: str, home: Path, tmp_path: Path) -> None:
    """Who deletes the anchor cannot put an older one in its former place either."""
    old = str(tmp_path / "old")
    with opened(ledger) as book:
        answered(book)
        book.backup(old)
    shutil.copy(anchors(home)[0], f"{ledger}.anchor")
    with AnchoredLedger(ledger) as book:
        answered(book)
    anchors(home)[0].unlink()
    put_back(old, ledger)
    shutil.copy(old, ledger)
    with pytest.raises(AnchorMissing):
        AnchoredLedger(ledger)


# --------------------------------------------------------------------------------------------------- killed in between

KILLED = """
import os, sys
from discreet.ledger import AnchoredLedger
from discreet.ledger.anchor import anchored_ledger
real, place = getattr(anchored_ledger, sys.argv[2]), sys.argv[3]
def killed(*given, **named):
    if place == "after":
        real(*given, **named)
    os._exit(9)
setattr(anchored_ledger, sys.argv[2], killed)
AnchoredLedger(sys.argv[1])
"""


@pytest.mark.sampled(4)  # each starts a process
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("step", ["write_anchor", "enter"])
@pytest.mark.parametrize("first", ["nothing", "earlier version"])
def test_a_process_that_is_killed_on_opening_refuses_nobody(ledger: str, step: str, place: str, first: str) -> None:
    """Between the anchor and the first entry, before and after both: the next one opens the ledger all the same."""
    if first != "nothing":
        earlier(ledger)
    done = subprocess.run([sys.executable, "-c", KILLED, ledger, step, place], check=False)
    assert done.returncode == 9
    with AnchoredLedger(ledger) as book:
        book.verify()
        assert [entry.kind for entry in book.history()].count("anchor") == 1
    AnchoredLedger(ledger).close()


ANSWERING = """
import os, sys
from discreet.ledger import AnchoredLedger
from discreet.ledger.anchor import anchored_ledger
from discreet.privacy import events
ledger = AnchoredLedger(sys.argv[1])
anchored_ledger.write_anchor = lambda *_: os._exit(9)
ledger.store_answer(ledger.charge("patients", events.Pure("0.1")), "count", b"5")
print("shown")
"""


def test_a_process_that_is_killed_between_ledger_and_anchor_loses_nothing(ledger: str) -> None:
    opened(ledger).close()
    done = subprocess.run([sys.executable, "-c", ANSWERING, ledger], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (9, "")  # nobody has seen the answer
    with AnchoredLedger(ledger) as book:
        assert str(book.balance("patients").spent) == "epsilon=0.1"


def test_a_ledger_that_another_process_begins_meanwhile_is_not_gone(
    ledger: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AnchoredLedger(ledger).close()
    looks = iter([False])  # it was not there yet
    monkeypatch.setattr("discreet.ledger.anchor.anchored_ledger.is_there", lambda path: next(looks, is_there(path)))
    with AnchoredLedger(ledger) as book:
        assert [book.anchor_file] == [str(path) for path in anchors(home)]


def test_an_empty_file_where_a_ledger_was_is_no_new_ledger(ledger: str, home: Path) -> None:
    AnchoredLedger(ledger).close()
    Path(ledger).write_bytes(b"")
    for beside in ("-wal", "-shm"):
        Path(f"{ledger}{beside}").unlink(missing_ok=True)
    with pytest.raises(AnchorMismatch, match="is gone"):
        AnchoredLedger(ledger)
    assert len(anchors(home)) == 1


def test_processes_that_begin_one_ledger_at_once_share_one_anchor(ledger: str, home: Path) -> None:
    def begin(_: int) -> str:
        with AnchoredLedger(ledger) as book:
            return book.anchor_file

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(begin, range(8)))
    assert [str(path) for path in anchors(home)] == list(found)
    with Ledger(ledger, read_only=True) as book:
        assert [entry.kind for entry in book.history()] == ["anchor"]


def test_an_anchor_that_is_removed_while_the_ledger_is_open_is_written_again_and_told(ledger: str, home: Path) -> None:
    with opened(ledger) as book:
        book.keep_anchor(backup=book.head())
        (file,) = anchors(home)
        file.unlink()
        with pytest.warns(AnchorNotKept, match="was missing"):
            answered(book)
        again = read_anchor(str(file))
        assert again is not None
        assert again.head == book.head()
        assert [head.sequence for head in again.backups] == [2]


def test_a_ledger_that_is_moved_goes_on_at_its_new_place(ledger: str, tmp_path: Path) -> None:
    target = str(tmp_path / "moved.ledger")
    with opened(ledger) as book:
        answered(book)
        book.move(target)
    AnchoredLedger(ledger).close()  # it takes no charges any more, and its last entry is not the anchor's
    with AnchoredLedger(target) as book:
        answered(book)
    Path(target).unlink()
    with pytest.raises(AnchorMismatch, match="is gone"):
        AnchoredLedger(target)


# ------------------------------------------------------------------------------------------------------------- mutants


def remakes_it(patch: pytest.MonkeyPatch) -> None:
    """A missing anchor is no error, as it was once: it is made again from whatever is there."""
    honest = AnchoredLedger._open

    def silent(self: AnchoredLedger, path: str, given: str | None, former: str) -> None:
        try:
            honest(self, path, given, former)
        except AnchorMissing as error:
            with self._journal.reading() as rows:
                write_anchor(error.anchor_file, LedgerCheckpoint.of(rows))
            honest(self, path, given, former)

    patch.setattr(AnchoredLedger, "_open", silent)


def forgets_the_entry(patch: pytest.MonkeyPatch) -> None:
    """The ledger does not know that it has an anchor."""
    patch.setattr(changes, "find_anchored_id", lambda _: None)


@pytest.mark.parametrize("mutate", [remakes_it, forgets_the_entry])
def test_mutants_give_an_older_copy_its_budget_back_and_are_noticed(
    ledger: str,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
) -> None:
    mutate(monkeypatch)
    with pytest.raises(pytest.fail.Exception):
        test_an_older_copy_without_its_anchor_gets_nothing_back(ledger, home, tmp_path)
    with AnchoredLedger(ledger) as book:
        assert str(book.balance("patients").spent) == "epsilon=0.1"  # a tenth is forgotten


def test_what_is_altered_is_not_accepted(ledger: str, home: Path) -> None:
    spent(ledger, old=f"{ledger}.old")
    anchors(home)[0].unlink()
    with sqlite3.connect(ledger) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE entries SET who = 'eve' WHERE sequence = 3")
    connection.close()
    with pytest.raises(LedgerError):
        accept_missing_anchor(ledger, by="owner", reason="its disk broke")
    assert anchors(home) == []
