"""An anchor knows how far a ledger had got: it is never ahead, never goes back, and notices every older copy."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from discreet.errors import AnchorMismatch, AnchorNotKept, InvalidParameter, LedgerError
from discreet.ledger import AnchoredLedger, Ledger
from discreet.ledger.anchor import anchor_file
from discreet.ledger.anchor.anchor_actions import UncheckedLedger
from discreet.ledger.anchor.anchor_file import LedgerCheckpoint, read_anchor
from discreet.privacy import Budget
from tests.ledger.ledgers import PATIENTS, TENTH


def begun(folder: Path) -> AnchoredLedger:
    ledger = at(folder)
    ledger.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=1, delta="1e-6"))
    return ledger


def at(folder: Path, *, read_only: bool = False) -> AnchoredLedger:
    return AnchoredLedger(str(folder / "book"), anchor_file=str(folder / "anchor"), read_only=read_only)


def known(folder: Path) -> LedgerCheckpoint:
    found = read_anchor(str(folder / "anchor"))
    assert found is not None
    return found


def answered(ledger: Ledger) -> None:
    ledger.store_answer(ledger.charge("patients", TENTH, analyst="ana"), "count", b"5")


def test_it_is_kept_when_a_ledger_is_closed_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    with begun(tmp_path) as ledger:
        assert known(tmp_path).head.sequence == 0  # it was there before the first entry said so
        ledger.charge("patients", TENTH)
        head = ledger.head()
    assert known(tmp_path).head == head
    assert stat.S_IMODE((tmp_path / "anchor").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anchor", "book"]
    with Ledger(str(tmp_path / "book"), read_only=True) as plain:
        assert plain.account("patients").salt.hex() not in (tmp_path / "anchor").read_text()


def test_it_knows_of_a_charge_before_its_answer_leaves(tmp_path: Path) -> None:
    with begun(tmp_path) as ledger:
        answered(ledger)
        found = known(tmp_path)
        assert (found.head, found.standing("patients").spent) == (ledger.head(), ledger.admit("patients", "ana").spent)
        assert found.shares("member", "patients")["ana"].spent == found.standing("patients").spent


def test_an_older_copy_is_refused_whoever_put_it_there(tmp_path: Path) -> None:
    begun(tmp_path).close()
    shutil.copy(tmp_path / "book", tmp_path / "copy")
    with at(tmp_path) as ledger:
        answered(ledger)
        newest = ledger.head()
    shutil.copy(tmp_path / "copy", tmp_path / "book")
    for read_only in (True, False):
        with pytest.raises(AnchorMismatch) as refused:
            at(tmp_path, read_only=read_only)
        assert (refused.value.anchor, refused.value.missing) == (str(newest), 2)
        assert refused.value.head is not None
        assert refused.value.head.startswith("2:")
    assert known(tmp_path).head == newest


def test_another_ledger_of_the_same_length_is_refused(tmp_path: Path) -> None:
    begun(tmp_path).close()
    other = tmp_path / "other"
    other.mkdir()
    begun(other).close()
    shutil.copy(other / "book", tmp_path / "book")
    with pytest.raises(AnchorMismatch, match="another ledger"):
        at(tmp_path)


def test_no_new_ledger_is_made_where_one_is_gone(tmp_path: Path) -> None:
    begun(tmp_path).close()
    (tmp_path / "book").unlink()
    with pytest.raises(AnchorMismatch, match="gone") as refused:
        at(tmp_path)
    assert (refused.value.head, refused.value.missing, (tmp_path / "book").exists()) == (None, 2, False)


def test_it_never_goes_back(tmp_path: Path) -> None:
    """A process that has seen less closes last, and one whose view is older than the anchor of another."""
    with begun(tmp_path) as first:
        with at(tmp_path) as second:
            answered(second)
            newest = second.head()
        first.keep_anchor()
    assert known(tmp_path).head == newest
    with at(tmp_path, read_only=True) as reader:
        with at(tmp_path) as writer:
            answered(writer)
            newest = writer.head()
        reader.keep_anchor()
    assert known(tmp_path).head == newest


def test_a_lagging_anchor_is_no_reason_to_refuse(tmp_path: Path) -> None:
    begun(tmp_path).close()
    with UncheckedLedger(str(tmp_path / "book")) as killed:  # before it could keep the anchor
        answered(killed)
    assert known(tmp_path).head.sequence == 2
    with at(tmp_path) as ledger:
        assert ledger.head().sequence == 4
    assert known(tmp_path).head.sequence == 4


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_crash_while_it_is_written_leaves_the_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    begun(tmp_path).close()
    before = (tmp_path / "anchor").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with at(tmp_path) as ledger:
        monkeypatch.setattr(os, step, full)
        with pytest.warns(AnchorNotKept, match="No space left"):
            answered(ledger)  # what was paid for is answered all the same
        assert (tmp_path / "anchor").read_bytes() == before
        monkeypatch.undo()
    assert known(tmp_path).head.sequence == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anchor", "book"]


@pytest.mark.parametrize("damage", ["", "{}", "[1]", "not json", "digest", "shorter"])
def test_a_damaged_anchor_is_no_missing_one(tmp_path: Path, damage: str) -> None:
    begun(tmp_path).close()
    path = tmp_path / "anchor"
    text = path.read_text()
    told = json.loads(text)
    written = {"digest": json.dumps({**told, "head": "0:" + "0" * 64}), "shorter": text[:-9]}.get(damage, damage)
    path.write_text(written)
    with pytest.raises(LedgerError, match="damaged"):
        at(tmp_path)


def test_a_disk_that_is_not_there_is_no_missing_anchor(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="folder") as refused:
        AnchoredLedger(str(tmp_path / "book"), anchor_file=str(tmp_path / "mnt" / "anchor"))
    assert (refused.value.name, (tmp_path / "book").exists()) == ("anchor", False)


def test_a_disk_that_goes_away_keeps_nobody_from_an_answer(tmp_path: Path) -> None:
    disk = tmp_path / "mnt"
    disk.mkdir()
    with AnchoredLedger(str(tmp_path / "book"), anchor_file=str(disk / "anchor")) as ledger:
        ledger.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=1, delta="1e-6"))
        away = disk.rename(tmp_path / "elsewhere")
        with pytest.warns(AnchorNotKept, match="folder that exists"):
            answered(ledger)
        assert len(ledger.read_answers("count")) == 1
        away.rename(disk)
    assert known(disk).head.sequence == 4


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_an_anchor_that_may_not_be_read_is_no_missing_one(tmp_path: Path) -> None:
    begun(tmp_path).close()
    (tmp_path / "anchor").chmod(0)
    with pytest.raises(LedgerError, match="cannot be read"):
        at(tmp_path)


def test_an_anchor_of_another_ledger_is_not_overwritten(tmp_path: Path) -> None:
    ledger = begun(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    begun(other).close()
    shutil.copy(other / "anchor", tmp_path / "anchor")
    before = (tmp_path / "anchor").read_bytes()
    with pytest.warns(AnchorNotKept, match="another ledger"):
        ledger.close()
    assert (tmp_path / "anchor").read_bytes() == before


def test_heads_that_are_known_do_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchor_file, "_MOST_HEADS", 3)
    with begun(tmp_path) as ledger:
        for _ in range(5):
            answered(ledger)
            ledger.keep_anchor(backup=ledger.head())
        found = known(tmp_path)
    assert [head.sequence for head in found.backups] == [8, 10, 12]
    assert [head.sequence for head in found.earlier] == [6, 8, 10]
