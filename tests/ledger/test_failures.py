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
from tests.ledger.ledgers import PATIENTS, TENTH, opened, spoil, tamper

EARLIER = Path(__file__).parent / "ledger_v1_failures.sql"


def plenty(path: str | Path = ":memory:", *analysts: str) -> Ledger:
    ledger = opened(path, Budget(epsilon=100))
    for analyst in analysts:
        ledger.stewardship.appoint(analyst, "analyst", account="patients")
    return ledger


def fail(ledger: Ledger, who: str, times: int = 1, account: str = "patients") -> None:
    for _ in range(times):
        ledger.fail(ledger.charge(account, TENTH, analyst=who))


def may_ask(ledger: Ledger, who: str, account: str = "patients") -> bool:
    try:
        ledger.charge(account, TENTH, analyst=who)
    except AccountLocked:
        return False
    return True


def test_an_analyst_who_used_up_all_credits_stops_nobody_else() -> None:
    ledger = plenty(":memory:", "ana", "ben")
    fail(ledger, "ana", FAILURE_CREDITS)
    with pytest.raises(AccountLocked, match=r"'ana' may ask no new questions .*unlock\('patients'\)") as caught:
        ledger.charge("patients", TENTH, analyst="ana")
    told = caught.value
    assert (told.account, told.analyst, told.failures, told.total) == ("patients", "ana", 3, 3)
    assert may_ask(ledger, "ben")
    assert may_ask(ledger, OWNER)
    assert ledger.balance("patients").stopped == ("ana",)
    assert ledger.balance("patients", analyst="ana").locked
    assert not ledger.balance("patients", analyst="ben").locked
    ledger.admit("patients", "ana")  # what was released is still theirs to ask again
    ledger.stewardship.unlock("patients", note="a full disk")
    assert may_ask(ledger, "ana")
    assert ledger.balance("patients", analyst="ana").failures == 0
    ledger.verify()


def test_names_without_a_role_share_one_set() -> None:
    ledger = plenty()
    for place in range(FAILURE_CREDITS):
        fail(ledger, f"name {place}")
    with pytest.raises(AccountLocked, match="Names without a role, such as 'another'") as caught:
        ledger.charge("patients", TENTH, analyst="another")
    assert caught.value.failures == FAILURE_CREDITS
    assert ledger.balance("patients").stopped == ("",)
    assert may_ask(ledger, OWNER)
    ledger.stewardship.appoint("sue", "steward")  # a role on the whole ledger counts on every account
    assert may_ask(ledger, "sue")
    fail(ledger, "sue")
    assert ledger.balance("patients", analyst="sue").failures == 1
    ledger.verify()


def test_the_ceiling_stops_those_who_had_failures_and_nobody_else() -> None:
    ledger = plenty(":memory:", *"abcdef")
    for analyst in "abcd":
        fail(ledger, analyst, 2)
    assert all(may_ask(ledger, analyst) for analyst in "abcdef")
    fail(ledger, "e")
    assert ledger.balance("patients").failures == FAILURE_CEILING
    with pytest.raises(AccountLocked, match="2 of their questions failed, and 9 of all people together"):
        ledger.charge("patients", TENTH, analyst="a")
    assert [analyst for analyst in "abcdef" if may_ask(ledger, analyst)] == ["f"]
    fail(ledger, "f")
    assert not may_ask(ledger, "f")
    assert may_ask(ledger, OWNER)
    ledger.stewardship.unlock("patients")
    assert all(may_ask(ledger, analyst) for analyst in "abcdef")
    ledger.verify()


def test_one_alone_never_reaches_the_ceiling() -> None:
    """Also not with questions that were all charged before the first of them failed."""
    ledger = plenty(":memory:", "ana", "ben")
    fail(ledger, "ben")
    at_once = [ledger.charge("patients", TENTH, analyst="ana") for _ in range(2 * FAILURE_CEILING)]
    ledger.fail(*at_once)
    assert ledger.balance("patients").failures == 1 + 2 * FAILURE_CEILING
    assert not may_ask(ledger, "ana")
    assert may_ask(ledger, "ben")


def test_a_failure_on_two_accounts_uses_a_credit_on_each() -> None:
    ledger = plenty()
    ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=9))
    for _ in range(FAILURE_CREDITS):
        ledger.fail(*ledger.charge_all({"patients": TENTH, "staff": TENTH}))
    assert not may_ask(ledger, OWNER)
    assert not may_ask(ledger, OWNER, "staff")
    ledger.stewardship.unlock("staff")
    assert may_ask(ledger, OWNER, "staff")
    assert not may_ask(ledger, OWNER)


def test_a_renewal_gives_no_credits_back() -> None:
    ledger = plenty()
    fail(ledger, OWNER, FAILURE_CREDITS)
    ledger.stewardship.renew("patients")
    assert not may_ask(ledger, OWNER)


def test_a_crash_leaves_the_charge_and_uses_no_credit_or_one(tmp_path: Path) -> None:
    path = tmp_path / "book"
    with plenty(path, "ana") as ledger:
        receipt = ledger.charge("patients", TENTH, analyst="ana")
    with plenty(path) as ledger:
        assert (ledger.balance("patients").failures, str(ledger.balance("patients").spent)) == (0, "epsilon=0.1")
        spoil(ledger, "INSERT INTO states")  # its entry is written by then
        with pytest.raises(LedgerError):
            ledger.fail(receipt)
    with plenty(path) as ledger:
        assert ledger.balance("patients", analyst="ana").failures == 0
        ledger.fail(receipt)
        ledger.fail(receipt)
        assert ledger.balance("patients", analyst="ana").failures == 1
        ledger.verify()


@pytest.mark.parametrize(
    "change", ['body = \'{"credit":"ben"}\'', "body = '{}'", "who = 'ben'", "kind = 'answer'", "about = 2"]
)
def test_a_changed_failure_is_found(tmp_path: Path, change: str) -> None:
    path = tmp_path / "book"
    with plenty(path, "ana", "ben") as ledger:
        fail(ledger, "ana")
        place = ledger.head().sequence
    tamper(path, f"UPDATE entries SET {change} WHERE sequence = {place}")
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered) as caught:
        ledger.verify()
    assert caught.value.sequence == place


@pytest.mark.parametrize("text", ['{"ben":1}', "{}", '{"ana":2}'])
def test_counts_that_no_entry_made_are_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "book"
    with plenty(path, "ana", "ben") as ledger:
        fail(ledger, "ana")
    seal = _seal("failures", "patients", text)
    tamper(path, f"UPDATE states SET text = '{text}', seal = '{seal}' WHERE scope = 'failures'")
    with Ledger(str(path)) as ledger, pytest.raises(LedgerTampered, match="stored failures"):
        ledger.verify()


# ---------------------------------------------------------------------------------------------------- earlier versions


def earlier(tmp_path: Path) -> Ledger:
    """A ledger in which all failures were counted by account, three to a lock; written once and never made again."""
    path = tmp_path / "book"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(EARLIER.read_text())
    return Ledger(str(path))


def test_failures_of_earlier_versions_verify_and_count_for_whoever_had_them(tmp_path: Path) -> None:
    with earlier(tmp_path) as ledger:
        assert str(ledger.verify()) == EARLIER.read_text().splitlines()[0].removeprefix("-- head ")
        assert {name: ledger.balance(name).failures for name in ledger.accounts()} == {
            "guests": 3,
            "patients": 3,
            "staff": 3,
        }
        assert ledger.balance("patients", analyst="ana").failures == 2  # three more were forgiven
        assert [may_ask(ledger, who) for who in ("ana", "ben", "sue", OWNER)] == [True] * 4
        assert [may_ask(ledger, who, "guests") for who in ("cid", "dan", OWNER)] == [False, True, True]
        assert [may_ask(ledger, who, "staff") for who in ("eve", "new", "sue")] == [False, False, True]
        ledger.verify()


def test_old_and_new_failures_add_up_until_a_steward_unlocks(tmp_path: Path) -> None:
    with earlier(tmp_path) as ledger:
        fail(ledger, "ana")
        assert ledger.balance("patients", analyst="ana").failures == 3
        assert ledger.balance("patients").stopped == ("ana",)
        ledger.stewardship.unlock("patients", by="sue")
        ledger.stewardship.unlock("guests", by="sue")
        assert may_ask(ledger, "ana")
        assert may_ask(ledger, "cid", "guests")
        fail(ledger, "ana")
        assert ledger.balance("patients", analyst="ana").failures == 1
        ledger.verify()
        head: Receipt = ledger.charge("patients", TENTH, analyst="ana")
        assert head.sequence == ledger.verify().sequence
