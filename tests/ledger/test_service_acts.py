"""What a service did to people and keys: entries of a newer kind, which make an old book one that old code refuses."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter, LedgerError, NotPermitted
from discreet.ledger import Ledger, changes
from discreet.ledger.store import sqlite
from tests.ledger.books import TENTH, opened
from tests.ledger.test_chain import thawed


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_an_act_is_an_entry_and_changes_no_account() -> None:
    book = opened()
    before = book.balance("patients")
    book.stewardship.record("revoke key", about="ana", facts={"key": "3f9a2b1c"})
    entry = book.history()[-1]
    assert (entry.kind, entry.who, entry.account) == ("service", "owner", "")
    assert entry.content == {"act": "revoke key", "about": "ana", "key": "3f9a2b1c"}
    assert book.history(analyst="ana") == (entry,)
    assert book.history(analyst="ben") == ()
    assert book.balance("patients") == before
    book.verify()


def test_stewards_act_on_others_and_everybody_on_themselves() -> None:
    book = opened()
    book.stewardship.appoint("sue", "steward")
    book.stewardship.record("make key", about="ana", by="sue")
    book.stewardship.record("rotate key", about="ana", by="ana")
    with pytest.raises(NotPermitted):
        book.stewardship.record("make key", about="ben", by="ana")
    assert [entry.who for entry in book.history()[-2:]] == ["sue", "ana"]


@pytest.mark.parametrize("bad", [{"about": "a\nb"}, {"about": ""}, {"by": "a\rb"}, {"facts": {"key": "a\nb"}}])
def test_names_are_on_one_line(bad: dict[str, str]) -> None:
    book, head = (made := opened()), made.head()
    with pytest.raises(InvalidParameter):
        book.stewardship.record("make key", **{"about": "ana", **bad})  # type: ignore[arg-type]
    assert book.head() == head


def test_an_old_book_becomes_a_new_one_with_its_first_such_entry(tmp_path: Path) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as book:
        book.charge("patients", TENTH, analyst="ana")
        book.verify()
    assert version(path) == 1  # nothing in it that old code does not know
    with Ledger(str(path)) as book:
        anchor = book.head()
        book.stewardship.record("make key", about="ana")
        book.stewardship.record("revoke key", about="ana")
        book.verify()
        book.check_anchor(anchor)
    assert version(path) == 2


def test_old_code_refuses_it_politely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as book:
        book.stewardship.record("make key", about="ana")
    monkeypatch.setattr(sqlite, "VERSION", 1)
    monkeypatch.delitem(changes._CHANGES, "service")
    with pytest.raises(LedgerError, match=r"newer version \(schema 2\). Upgrade discreet"):
        Ledger(str(path))


def test_an_act_that_is_undone_leaves_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as book:
        head = book.head()
        monkeypatch.setattr(changes, "apply", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            book.stewardship.record("make key", about="ana")
        assert book.head() == head
    assert version(path) == 1


def test_a_copy_is_of_the_version_of_what_it_holds(tmp_path: Path) -> None:
    path = thawed(tmp_path)
    with Ledger(str(path)) as book:
        book.stewardship.record("make key", about="ana")
        book.backup(str(tmp_path / "copy"))
        book.move(str(tmp_path / "moved"))
    assert version(tmp_path / "copy") == version(tmp_path / "moved") == 2
