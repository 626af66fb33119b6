"""What a service did to people and keys: entries of a newer kind; old code refuses a ledger that has them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter, LedgerError, NotPermitted
from discreet.ledger import Ledger, changes
from discreet.ledger.store import sqlite
from tests.ledger.ledgers import TENTH, opened
from tests.ledger.test_chain import thawed


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_an_act_is_an_entry_and_changes_no_account() -> None:
    ledger = opened()
    before = ledger.balance("patients")
    ledger.stewardship.record("revoke key", about="ana", facts={"key": "3f9a2b1c"})
    entry = ledger.history()[-1]
    assert (entry.kind, entry.who, entry.account) == ("service", "owner", "")
    assert entry.content == {"act": "revoke key", "about": "ana", "key": "3f9a2b1c"}
    assert ledger.history(analyst="ana") == (entry,)
    assert ledger.history(analyst="ben") == ()
    assert ledger.balance("patients") == before
    ledger.verify()


def test_stewards_act_on_others_and_everybody_on_themselves() -> None:
    ledger = opened()
    ledger.stewardship.appoint("sue", "steward")
    ledger.stewardship.record("make key", about="ana", by="sue")
    ledger.stewardship.record("rotate key", about="ana", by="ana")
    with pytest.raises(NotPermitted):
        ledger.stewardship.record("make key", about="ben", by="ana")
    assert [entry.who for entry in ledger.history()[-2:]] == ["sue", "ana"]


@pytest.mark.parametrize("bad", [{"about": "a\nb"}, {"about": ""}, {"by": "a\rb"}, {"facts": {"key": "a\nb"}}])
def test_names_are_on_one_line(bad: dict[str, str]) -> None:
    ledger, head = (made := opened()), made.head()
    with pytest.raises(InvalidParameter):
        ledger.stewardship.record("make key", **{"about": "ana", **bad})  # type: ignore[arg-type]
    assert ledger.head() == head


def test_an_old_ledger_becomes_a_new_one_with_its_first_such_entry(tmp_path: Path) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as ledger:
        ledger.charge("patients", TENTH, analyst="ana")
        ledger.verify()
    assert version(path) == 1  # nothing in it that old code does not know
    with Ledger(str(path)) as ledger:
        anchor = ledger.head()
        ledger.stewardship.record("make key", about="ana")
        ledger.stewardship.record("revoke key", about="ana")
        ledger.verify()
        ledger.check_anchor(anchor)
    assert version(path) == 2


def test_old_code_refuses_it_politely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as ledger:
        ledger.stewardship.record("make key", about="ana")
    monkeypatch.setattr(sqlite, "VERSION", 1)
    monkeypatch.delitem(changes._CHANGES, "service")
    with pytest.raises(LedgerError, match=r"newer version \(schema 2\). Upgrade discreet"):
        Ledger(str(path))


def test_an_act_that_is_undone_leaves_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as ledger:
        head = ledger.head()
        monkeypatch.setattr(changes, "apply", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ledger.stewardship.record("make key", about="ana")
        assert ledger.head() == head
    assert version(path) == 1


def test_a_copy_is_of_the_version_of_what_it_holds(tmp_path: Path) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as ledger:
        ledger.stewardship.record("make key", about="ana")
        ledger.backup(str(tmp_path / "copy"))
        ledger.move(str(tmp_path / "moved"))
    assert version(tmp_path / "copy") == version(tmp_path / "moved") == 2
