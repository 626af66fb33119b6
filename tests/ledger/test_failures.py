"""Failure credits: whose question failed is stopped, nobody else; names that anybody can make up share one set."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import AccountLocked, LedgerError, LedgerTampered
from discreet.ledger import FAILURE_CEILING, FAILURE_CREDITS, OWNER, Ledger, Receipt
from discreet.ledger.store.transaction import _seal
from discreet.privacy import Budget
from tests.ledger.books import PATIENTS, TENTH, opened, spoil, tamper

EARLIER = Path(__file__).parent / "ledger_v1_failures.sql"


def plenty(path: str | Path = ":memory:", *analysts: str) -> Ledger:
    book = opened(path, Budget(epsilon=100))
    for analyst in analysts:
        book.stewardship.appoint(analyst, "analyst", account="patients")
    return book


def fail(book: Ledger, who: str, times: int = 1, account: str = "patients") -> None:
    for _ in range(times):
        book.fail(book.charge(account, TENTH, analyst=who))


def may_ask(book: Ledger, who: str, account: str = "patients") -> bool:
    try:
        book.charge(account, TENTH, analyst=who)
    except AccountLocked:
        return False
    return True


def test_an_analyst_who_used_up_all_credits_stops_nobody_else() -> None:
    book = plenty(":memory:", "ana", "ben")
    fail(book, "ana", FAILURE_CREDITS)
    with pytest.raises(AccountLocked, match=r"'ana' may ask nothing new .* unlock\('patients'\)") as caught:
        book.charge("patients", TENTH, analyst="ana")
    told = caught.value
    assert (told.account, told.analyst, told.failures, told.total) == ("patients", "ana", 3, 3)
    assert may_ask(book, "ben")
    assert may_ask(book, OWNER)
    assert book.balance("patients").stopped == ("ana",)
    assert book.balance("patients", analyst="ana").locked
    assert not book.balance("patients", analyst="ben").locked
    book.admit("patients", "ana")  # what was released is still theirs to ask again
    book.stewardship.unlock("patients", note="a full disk")
    assert may_ask(book, "ana")
    assert book.balance("patients", analyst="ana").failures == 0
    book.verify()


def test_names_without_a_role_share_one_set() -> None:
    book = plenty()
    for place in range(FAILURE_CREDITS):
        fail(book, f"name {place}")
    with pytest.raises(AccountLocked, match="Names without a role, such as 'another'") as caught:
        book.charge("patients", TENTH, analyst="another")
    assert caught.value.failures == FAILURE_CREDITS
    assert book.balance("patients").stopped == ("",)
    assert may_ask(book, OWNER)
    book.stewardship.appoint("sue", "steward")  # a role on the whole book counts on every account
    assert may_ask(book, "sue")
    fail(book, "sue")
    assert book.balance("patients", analyst="sue").failures == 1
    book.verify()


def test_the_ceiling_stops_those_who_had_failures_and_nobody_else() -> None:
    book = plenty(":memory:", *"abcdef")
    for analyst in "abcd":
        fail(book, analyst, 2)
    assert all(may_ask(book, analyst) for analyst in "abcdef")
    fail(book, "e")
    assert book.balance("patients").failures == FAILURE_CEILING
    with pytest.raises(AccountLocked, match="2 of their questions failed, 9 of everybody's"):
        book.charge("patients", TENTH, analyst="a")
    assert [analyst for analyst in "abcdef" if may_ask(book, analyst)] == ["f"]
    fail(book, "f")
    assert not may_ask(book, "f")
    assert may_ask(book, OWNER)
    book.stewardship.unlock("patients")
    assert all(may_ask(book, analyst) for analyst in "abcdef")
    book.verify()


def test_one_alone_never_reaches_the_ceiling() -> None:
    """Also not with questions that were all charged before the first of them failed."""
    book = plenty(":memory:", "ana", "ben")
    fail(book, "ben")
    at_once = [book.charge("patients", TENTH, analyst="ana") for _ in range(2 * FAILURE_CEILING)]
    book.fail(*at_once)
    assert book.balance("patients").failures == 1 + 2 * FAILURE_CEILING
    assert not may_ask(book, "ana")
    assert may_ask(book, "ben")


def test_a_failure_on_two_accounts_uses_a_credit_on_each() -> None:
    book = plenty()
    book.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=9))
    for _ in range(FAILURE_CREDITS):
        book.fail(*book.charge_all({"patients": TENTH, "staff": TENTH}))
    assert not may_ask(book, OWNER)
    assert not may_ask(book, OWNER, "staff")
    book.stewardship.unlock("staff")
    assert may_ask(book, OWNER, "staff")
    assert not may_ask(book, OWNER)


def test_a_renewal_gives_no_credits_back() -> None:
    book = plenty()
    fail(book, OWNER, FAILURE_CREDITS)
    book.stewardship.renew("patients")
    assert not may_ask(book, OWNER)


def test_a_crash_leaves_the_charge_and_uses_no_credit_or_one(tmp_path: Path) -> None:
    path = tmp_path / "book"
    with plenty(path, "ana") as book:
        receipt = book.charge("patients", TENTH, analyst="ana")
    with plenty(path) as book:
        assert (book.balance("patients").failures, str(book.balance("patients").spent)) == (0, "epsilon=0.1")
        spoil(book, "INSERT INTO states")  # its entry is written by then
        with pytest.raises(LedgerError):
            book.fail(receipt)
    with plenty(path) as book:
        assert book.balance("patients", analyst="ana").failures == 0
        book.fail(receipt)
        book.fail(receipt)
        assert book.balance("patients", analyst="ana").failures == 1
        book.verify()


@pytest.mark.parametrize(
    "change", ['body = \'{"credit":"ben"}\'', "body = '{}'", "who = 'ben'", "kind = 'answer'", "about = 2"]
)
def test_a_changed_failure_is_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / "book"
    with plenty(path, "ana", "ben") as book:
        fail(book, "ana")
        place = book.head().sequence
    tamper(path, f"UPDATE entries SET {change} WHERE sequence = {place}")
    with Ledger(str(path)) as book, pytest.raises(LedgerTampered) as caught:
        book.verify()
    assert caught.value.sequence == place


@pytest.mark.parametrize("text", ['{"ben":1}', "{}", '{"ana":2}'])
def test_counts_that_no_entry_made_are_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "book"
    with plenty(path, "ana", "ben") as book:
        fail(book, "ana")
    seal = _seal("failures", "patients", text)
    tamper(path, f"UPDATE states SET text = '{text}', seal = '{seal}' WHERE scope = 'failures'")
    with Ledger(str(path)) as book, pytest.raises(LedgerTampered, match="stored failures"):
        book.verify()


# ---------------------------------------------------------------------------------------------------- earlier versions


def earlier(tmp_path: Path) -> Ledger:
    """A book in which all failures were counted by account, three to a lock; written once and never made again."""
    path = tmp_path / "book"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(EARLIER.read_text())
    return Ledger(str(path))


def test_failures_of_earlier_versions_verify_and_count_for_whoever_had_them(tmp_path: Path) -> None:
    with earlier(tmp_path) as book:
        assert str(book.verify()) == EARLIER.read_text().splitlines()[0].removeprefix("-- head ")
        assert {name: book.balance(name).failures for name in book.accounts()} == {
            "guests": 3,
            "patients": 3,
            "staff": 3,
        }
        assert book.balance("patients", analyst="ana").failures == 2  # three more were forgiven
        assert [may_ask(book, who) for who in ("ana", "ben", "sue", OWNER)] == [True] * 4
        assert [may_ask(book, who, "guests") for who in ("cid", "dan", OWNER)] == [False, True, True]
        assert [may_ask(book, who, "staff") for who in ("eve", "new", "sue")] == [False, False, True]
        book.verify()


def test_old_and_new_failures_add_up_until_a_steward_unlocks(tmp_path: Path) -> None:
    with earlier(tmp_path) as book:
        fail(book, "ana")
        assert book.balance("patients", analyst="ana").failures == 3
        assert book.balance("patients").stopped == ("ana",)
        book.stewardship.unlock("patients", by="sue")
        book.stewardship.unlock("guests", by="sue")
        assert may_ask(book, "ana")
        assert may_ask(book, "cid", "guests")
        fail(book, "ana")
        assert book.balance("patients", analyst="ana").failures == 1
        book.verify()
        head: Receipt = book.charge("patients", TENTH, analyst="ana")
        assert head.sequence == book.verify().sequence
