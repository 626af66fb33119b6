"""What was written stays as it was written: changes are found and named, a ledger of yesterday only by its anchor."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from discreet.accounting import Filter
from discreet.errors import LedgerError, LedgerTampered, NotPermitted
from discreet.ledger import Head, Ledger, restore
from discreet.ledger.entry import GENESIS, Entry, compute_entry_hash
from discreet.ledger.journal import Journal
from discreet.ledger.tallies import Tallies, prices
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import Budget, Neighbours, PureDP, events
from tests.ledger.ledgers import TENTH, busy_ledger, tamper

DELETE_ONE = "DELETE FROM entries WHERE sequence = 5"
COPIED = "time, kind, account, who, price"
FROZEN = Path(__file__).parent / "ledger_v1.sql"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    busy_ledger(tmp_path / "book")
    return tmp_path / "book"


def first_bad(path: Path) -> int:
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered) as caught:
        ledger.verify()
    with Ledger(str(path)) as ledger:
        with pytest.raises(LedgerTampered):
            ledger.verify()
        with pytest.raises(LedgerTampered):  # this process writes no more
            ledger.charge("patients", TENTH)
    return caught.value.sequence


def test_an_honest_ledger_verifies(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        assert ledger.verify() == ledger.head()
        ledger.check_anchor(ledger.head())
        ledger.check_anchor(Head(0, GENESIS))
        ledger.check_anchor(Head.parse(str(ledger.head())))


@pytest.mark.parametrize("column", ["time", "kind", "account", "who", "price", "key", "about", "body", "hash"])
def test_a_changed_field_is_found(path: Path, column: str) -> None:
    value = "77" if column == "about" else "'x'"
    tamper(path, f"UPDATE entries SET {column} = {value} WHERE sequence = 8")
    assert first_bad(path) == 8


@pytest.mark.parametrize(
    ("statements", "sequence"),
    [
        ((DELETE_ONE,), 5),
        ((DELETE_ONE, "UPDATE entries SET sequence = sequence - 1 WHERE sequence > 5"), 5),
        (
            (
                "UPDATE entries SET sequence = -6 WHERE sequence = 6",
                "UPDATE entries SET sequence = 6 WHERE sequence = 7",
                "UPDATE entries SET sequence = 7 WHERE sequence = -6",
            ),
            6,
        ),
        ((f"INSERT INTO entries SELECT 17, {COPIED}, '', 0, body, hash FROM entries WHERE sequence = 16",), 17),
    ],
    ids=["deleted", "closed up", "swapped", "inserted"],
)
def test_missing_moved_and_inserted_entries_are_named(path: Path, statements: tuple[str, ...], sequence: int) -> None:
    with Ledger(str(path)) as ledger:
        assert ledger.head().sequence == 16
    tamper(path, *statements)
    assert first_bad(path) == sequence


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries WHERE sequence = 16",  # the end, but the balances remember it
        "UPDATE answers SET payload = x'00'",
        "UPDATE answers SET payload = 'text'",
        "UPDATE answers SET replay_key = 'other'",
        "DELETE FROM answers",
        "INSERT INTO answers VALUES (3, 2, 'k', x'00')",
        "UPDATE states SET text = replace(text, '1/4', '1/5') WHERE scope = 'standing'",
        "DELETE FROM states WHERE scope = 'member'",
        "UPDATE states SET name = 'x' WHERE scope = 'table'",
    ],
)
def test_other_changes_are_found(path: Path, statement: str) -> None:
    tamper(path, statement)
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered):
        ledger.verify()


def test_a_changed_answer_is_never_given(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        assert ledger.read_answers("visits@2026-11/count")[0].payload == b"\x00answer\xff"
    tamper(path, "UPDATE answers SET payload = x'01'")
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered):
        ledger.read_answers("visits@2026-11/count")


def test_a_changed_balance_is_never_spent(path: Path) -> None:
    tamper(path, "UPDATE states SET text = replace(text, '1/4', '1/5') WHERE scope = 'standing'")
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered):
        ledger.charge("patients", TENTH)


def rows_of(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as connection:
        tables = ("entries", "states", "answers")
        return [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables]


@pytest.mark.ci
@pytest.mark.parametrize("flips", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_flipped_bit_is_found_or_changes_nothing(path: Path, bits: SeededBits, flips: int) -> None:
    before, original = rows_of(path), path.read_bytes()
    found = 0
    for place in uniform_below(8 * len(original), flips, bits=bits).tolist():
        data = bytearray(original)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        try:
            with Ledger(str(path)) as ledger:
                ledger.verify()
        except LedgerError:
            found += 1
        else:
            assert rows_of(path) == before
        for side in (path.with_name("book-wal"), path.with_name("book-shm")):
            side.unlink(missing_ok=True)
    assert found > flips / 8  # the rest fell into unused bytes of pages


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}'",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE sequence = 8",
        f"REPLACE INTO entries SELECT 17, {COPIED}, 'k1', 0, '', '' FROM entries WHERE key = 'k1'",
        f"REPLACE INTO entries SELECT 17, {COPIED}, '', about, '', '' FROM entries WHERE about > 0 LIMIT 1",
        f"INSERT INTO entries SELECT 99, {COPIED}, '', 0, body, hash FROM entries LIMIT 1",
        "UPDATE answers SET payload = x'00'",
        "DELETE FROM answers",
        "REPLACE INTO answers SELECT sequence, charge, 'x', x'00' FROM answers",
        "REPLACE INTO answers SELECT 99, charge, 'x', x'00' FROM answers",
        "DELETE FROM states",
    ],
)
def test_plain_sql_cannot_rewrite_the_ledger(path: Path, statement: str) -> None:
    before = rows_of(path)
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    assert rows_of(path) == before


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER entries_no_update",
        "CREATE TRIGGER refund AFTER INSERT ON entries BEGIN UPDATE states SET text = ''; END",
        "CREATE TABLE more (a)",
    ],
)
def test_altered_triggers_are_noticed_on_opening(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    with pytest.raises(LedgerTampered):
        Ledger(str(path))


def test_yesterdays_file_verifies_and_only_the_anchor_tells(path: Path) -> None:  # RT-073
    shutil.copy(path, path.with_name("yesterday"))
    with Ledger(str(path)) as ledger:
        ledger.charge("patients", TENTH)
        anchor = ledger.head()
    shutil.copy(path.with_name("yesterday"), path)
    with Ledger(str(path)) as ledger:
        ledger.verify()
        with pytest.raises(LedgerTampered) as caught:
            ledger.check_anchor(anchor)
        assert caught.value.sequence == anchor.sequence
        assert ledger.is_frozen
    with Ledger(str(path)) as ledger:  # also for everybody who opens it later
        for act in (
            lambda: ledger.charge("patients", TENTH),
            lambda: ledger.stewardship.renew("patients"),
            lambda: ledger.stewardship.appoint("eve", "steward"),
        ):
            with pytest.raises(LedgerError):
                act()
        with pytest.raises(LedgerTampered):
            ledger.check_anchor(anchor)
        with pytest.raises(NotPermitted):
            ledger.resume(by="ana")
        ledger.resume(note="compared with the log of the proxy; budget lowered")
        ledger.charge("patients", TENTH)
        assert [entry.kind for entry in ledger.history()][-3:] == ["freeze", "resume", "charge"]
        ledger.verify()
    for read_only in (False, True):
        with pytest.raises(LedgerTampered):
            Ledger(str(path), anchor=anchor, read_only=read_only)


def test_a_process_notices_that_its_ledger_grew_younger(path: Path, tmp_path: Path) -> None:
    with Ledger(str(path)) as ledger:
        ledger.backup(str(tmp_path / "copy"))
        ledger.charge("patients", TENTH)
        with closing(sqlite3.connect(tmp_path / "copy")) as old, closing(sqlite3.connect(path)) as file:
            old.backup(file)
        with pytest.raises(LedgerTampered):
            ledger.charge("patients", TENTH)


def freeze(ledger: Ledger) -> None:
    with pytest.raises(LedgerTampered):
        ledger.check_anchor(Head(1, "f" * 64))


def check_freezing_stops_who_just_charged(path: Path) -> None:
    with Ledger(str(path)) as ledger, Ledger(str(path)) as other:
        for freezer in (ledger, other):
            ledger.charge("patients", TENTH)
            freeze(freezer)
            for _ in range(2):
                with pytest.raises(LedgerError, match="read-only"):
                    ledger.charge("patients", TENTH)
            freezer.resume(note="compared")


def test_freezing_stops_who_just_charged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_freezing_stops_who_just_charged(path)
    honest = Journal.note

    def forgetful(journal: Journal, head: Head, *_: bool) -> None:
        honest(journal, head, acted=True)  # also after a freeze

    monkeypatch.setattr(Journal, "note", forgetful)
    with pytest.raises(pytest.fail.Exception):
        check_freezing_stops_who_just_charged(path)


def test_backup_and_restore(path: Path, tmp_path: Path) -> None:
    with Ledger(str(path)) as ledger:
        head = ledger.backup(str(tmp_path / "copy"))
        assert head == ledger.head()
        assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
        with pytest.raises(LedgerError):
            ledger.backup(str(tmp_path / "copy"))
        spent = ledger.balance("patients").spent
        with restore(str(tmp_path / "copy"), str(tmp_path / "same"), anchor=head) as same:
            assert not same.is_frozen
            assert same.balance("patients").spent == spent
            same.charge("patients", TENTH)
        ledger.charge("patients", TENTH)
        with restore(str(tmp_path / "copy"), str(tmp_path / "older"), anchor=ledger.head()) as older:
            assert older.is_frozen
            with pytest.raises(LedgerError):
                older.charge("patients", TENTH)
    with pytest.raises(LedgerError):
        restore(str(tmp_path / "copy"), str(tmp_path / "same"), anchor=head)
    tamper(tmp_path / "copy", "UPDATE entries SET who = 'x' WHERE sequence = 3")
    with pytest.raises(LedgerTampered):
        restore(str(tmp_path / "copy"), str(tmp_path / "third"), anchor=head)


@pytest.mark.parametrize("bad", ["", "1", "x:y", "1:" + "g" * 64, "-1:" + "0" * 64])
def test_heads_are_parsed_strictly(bad: str) -> None:
    with pytest.raises(ValueError, match="head"):
        Head.parse(bad)


def thawed(tmp_path: Path) -> Path:
    path = tmp_path / "v1"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FROZEN.read_text())
    return path


def test_a_ledger_of_version_1_verifies_for_ever(tmp_path: Path) -> None:
    """The file was written once and is never made again; its head stands here as its anchor."""
    with Ledger(str(thawed(tmp_path))) as ledger:
        head = ledger.verify()
        assert str(head) == FROZEN.read_text().splitlines()[0].removeprefix("-- head ")
        ledger.check_anchor(head)
        balance = ledger.balance("patients")
        assert (balance.total, balance.spent, balance.lifetime) == (PureDP(2), PureDP("1/4"), PureDP("41/60"))
        assert ledger.read_answers("visits@2026-11/count")[0].payload == b"\x00answer\xff"
        ledger.charge("patients", TENTH, analyst="ana")
        ledger.verify()


def test_the_charges_of_version_1_have_the_same_prices(tmp_path: Path) -> None:
    """Also with accounts of the other currencies, whose filters are asked again."""
    with Ledger(str(thawed(tmp_path))) as ledger:
        for name in ledger.accounts():
            account = ledger.account(name)
            reference = Filter(account.budget, neighbours=account.neighbours)
            for entry in ledger.history(name):
                if entry.kind != "charge":
                    continue
                event = events.from_json(entry.content["event"])
                price = prices(event, account.budget, account.neighbours)
                assert Tallies.read(json.loads(entry.price)) == price
                if name != "patients":  # that one was amended
                    reference.charge(event)
            if name != "patients":
                assert ledger.balance(name).spent == reference.spent


def test_the_hash_covers_every_field_and_the_entry_before(path: Path) -> None:
    with Ledger(str(path)) as ledger, ledger._journal.reading() as rows:  # as they are written, with the salt
        first, second = islice(rows.entries(), 2)
    assert first.hash == compute_entry_hash(GENESIS, first)
    assert second.hash == compute_entry_hash(first.hash, second)
    assert second.hash != compute_entry_hash(GENESIS, second)
    for place in range(9):
        changed = [*second]
        changed[place] = 9 if isinstance(changed[place], int) else "x"
        assert second.hash != compute_entry_hash(first.hash, Entry._make(changed))


def test_the_order_is_the_sequence_not_the_clock(path: Path) -> None:
    with Ledger(str(path)) as ledger:
        assert [entry.sequence for entry in ledger.history()] == list(range(1, 17))
        assert Neighbours.ADD_REMOVE is ledger.account("patients").neighbours
        assert ledger.account("patients").budget == Budget(epsilon=1)
