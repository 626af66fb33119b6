"""Mistakes that ledgers have made, each put into the code and caught by a check that the real code passes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet.errors import AccountLocked, InsufficientBudget, LedgerError, RunsUsedUp
from discreet.ledger import FAILURE_CREDITS, Ledger, Receipt, changes, charges, outcomes, policy
from discreet.ledger.account import AccountState
from discreet.ledger.entry import Head
from discreet.ledger.store import sqlite
from discreet.ledger.store.ledger_store import Deferral, Places, Transaction
from discreet.ledger.store.sqlite import SqliteTransaction
from discreet.ledger.tallies import Tallies
from discreet.privacy import Budget, PureDP, events
from tests.ledger.crowds import check, run
from tests.ledger.ledgers import PATIENTS, TENTH, opened, spend
from tests.ledger.test_faults import check_whole, signalled_at_line

Patch = pytest.MonkeyPatch


@pytest.mark.ci
@pytest.mark.parametrize("mutant", ["uncharged", "race"])
def test_a_crowd_kills(tmp_path: Path, mutant: str) -> None:
    """The check of `test_spending_at_once_answers_exactly_what_the_budget_allows`."""
    path = tmp_path / "book"
    opened(path, Budget(epsilon=3)).close()
    command = ("killed", path, 8, 3) if mutant == "uncharged" else ("crowd", path, 3, 2)
    lines = run(*command, mutant=mutant)
    with pytest.raises(AssertionError):
        assert check(path, lines, 30) == 30


@pytest.mark.ci
def test_kills_kill_an_acknowledgement_before_the_commit(tmp_path: Path) -> None:
    """The check of `test_kills_lose_nothing_that_was_promised`."""
    path = tmp_path / "book"
    opened(path, Budget(epsilon=10**6)).close()
    lines = run("killed", path, 5, 1, mutant="late")  # three of them die at a chosen statement, whatever the clock says
    with pytest.raises(AssertionError):
        check(path, lines, 10**7)


def check_synced(path: Path) -> None:
    with opened(path) as ledger:
        assert ledger._journal.store._writer.execute("PRAGMA synchronous").fetchone() == (2,)  # type: ignore[attr-defined]


def check_caps(_: Path) -> None:
    ledger = opened()
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon=5))
    with pytest.raises(InsufficientBudget):
        ledger.charge("patients", events.Pure(2), analyst="ana")
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon="0.1"))
    with pytest.raises(InsufficientBudget):
        ledger.charge("patients", events.Pure("0.2"), analyst="ana")


def check_exact(_: Path) -> None:
    assert spend(opened()) == 10


def check_lifetime(_: Path) -> None:
    ledger = opened()
    ledger.charge("patients", TENTH)
    assert ledger.stewardship.renew("patients").lifetime == PureDP("0.1")


def check_one_answer(_: Path) -> None:
    ledger = opened()
    receipt = ledger.charge("patients", TENTH, key="k")
    again = ledger.charge("patients", TENTH, key="k")
    ledger.store_answer(receipt, "r", b"one")
    with pytest.raises(Exception, match="Charge 2"):
        ledger.store_answer(again, "r", b"two")


def unsynced(patch: Patch) -> None:
    def configure(connection: sqlite3.Connection, timeout: float, *, durable: bool) -> None:
        if durable:
            sqlite._write_ahead(connection, timeout)
        connection.execute("PRAGMA synchronous=NORMAL")

    patch.setattr(sqlite, "_configure", configure)


def no_cap(patch: Patch) -> None:
    patch.setattr(charges, "_within_cap", lambda _charged: True)


def cap_instead_of_account(patch: Patch) -> None:
    honest = charges._admit_analyst

    def admitted(rows: Transaction, account: str, who: str) -> AccountState:
        now = honest(rows, account, who)
        person = changes.member(rows, account, who, now)
        return now.with_budget(person.cap) if person.cap else now

    patch.setattr(charges, "_admit_analyst", admitted)


def floats(patch: Patch) -> None:
    honest = Tallies.__add__

    def add(self: Tallies, other: Tallies) -> Tallies:
        exact = honest(self, other).sums
        return Tallies(
            {k: v and tuple((a / b * (1 + 1e-12)).as_integer_ratio() for a, b in v) for k, v in exact.items()}
        )

    patch.setattr(Tallies, "__add__", add)


def check_undone(_: Path) -> None:
    ledger = opened()
    ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon="0.05"))
    ledger.charge("patients", TENTH)
    with pytest.raises(InsufficientBudget):
        ledger.charge_all({"patients": TENTH, "staff": TENTH})
    assert ledger.charge("patients", TENTH).remaining == PureDP("0.8")


def remembered_too_much(patch: Patch) -> None:
    """Keeps states of a transaction that was rolled back."""
    honest = sqlite.SqliteStore.begin

    def begin(store: sqlite.SqliteStore, places: Places = list) -> Transaction:
        before, rows = store._remembered, honest(store, places)
        store._remembered = before
        return rows

    patch.setattr(sqlite.SqliteStore, "begin", begin)


def check_others(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        for place in range(6):
            assert (one, other)[place % 2].charge("patients", TENTH).remaining == PureDP(f"0.{9 - place}")


def remembered_from_before(patch: Patch) -> None:
    """Trusts states although somebody else has written since."""
    honest = SqliteTransaction.tail

    def tail(rows: SqliteTransaction) -> Head:
        found = honest(rows)
        if rows._remembered is not None:
            rows._known = rows._remembered[1]
        return found

    patch.setattr(SqliteTransaction, "tail", tail)


def forgotten_life(patch: Patch) -> None:
    patch.setattr(AccountState, "with_new_period", lambda _self, budget, _: AccountState.open_account(budget))


def check_credits(_: Path) -> None:
    ledger = opened()
    ledger.stewardship.appoint("ana", "analyst", account="patients")
    ledger.stewardship.appoint("ben", "analyst", account="patients")
    for _failed in range(FAILURE_CREDITS):
        ledger.fail(ledger.charge("patients", TENTH, analyst="ana"))
    try:
        ledger.charge("patients", TENTH, analyst="ben")
    except AccountLocked:
        pytest.fail("ben had no failure")


def check_made_up_names(_: Path) -> None:
    ledger = opened()
    for place in range(FAILURE_CREDITS):
        ledger.fail(ledger.charge("patients", TENTH, analyst=f"name {place}"))
    with pytest.raises(AccountLocked):
        ledger.charge("patients", TENTH, analyst="another")


def credits_by_account(patch: Patch) -> None:
    for module in (policy, outcomes):
        patch.setattr(module, "find_credit_owner", lambda *_: "everybody")


def credits_by_name(patch: Patch) -> None:
    for module in (policy, outcomes):
        patch.setattr(module, "find_credit_owner", lambda _rows, _account, who: who)


def check_signals(path: Path) -> None:
    opened(path).close()
    try:
        check_whole(path, signalled_at_line, 7)
    except LedgerError as held:  # by a transaction that was left open
        raise AssertionError from held


def interrupted_anywhere(patch: Patch) -> None:
    """Hears Ctrl-C in the middle of a transaction."""
    patch.setattr(Deferral, "begin", lambda _self: None)


def check_claims(_: Path) -> None:
    ledger = opened()
    ledger.charge("patients", TENTH, key="k")
    again = ledger.charge("patients", TENTH, key="k")
    mine, late = ledger.claim(again), outcomes._claim
    assert mine is not None
    assert [entry.kind for entry in ledger.history()][-1] == "claim"
    with ledger._journal.acting() as rows:  # who has seen the charge without a claim
        assert late(rows, again, 0) is None


def check_runs(path: Path) -> None:
    """Of eight who want to run a charge at once, and of all who come later, two may; the count is in the file."""
    with opened(path) as ledger:
        ledger.charge("patients", TENTH, key="k")

    def claim(_: int) -> Receipt | None:
        with Ledger(str(path)) as ledger:
            try:
                return ledger.claim(ledger.charge("patients", TENTH, key="k"))
            except RunsUsedUp:
                return None

    with ThreadPoolExecutor(8) as threads:
        claimed = [found.claim for found in threads.map(claim, range(8)) if found is not None]
    assert sorted(claimed) == [1, 2]
    with Ledger(str(path)) as ledger:
        assert claim(0) is None
        assert ledger.balance("patients").spent == PureDP("0.1")
        ledger.verify()


def uncounted(patch: Patch) -> None:
    patch.setattr(outcomes, "MOST_RUNS", 10**9)


def unclaimed(patch: Patch) -> None:
    """Lets everybody run a charge again who finds it."""
    patch.setattr(outcomes, "claim_run", lambda _journal, receipt, _wait: receipt._replace(repeated=False))


def claimed_by_all(patch: Patch) -> None:
    """Grants the next claim to whoever wants one, however many others were faster."""
    patch.setattr(changes, "claims", lambda _rows, _charge: (0, False))


def answered_twice(patch: Patch) -> None:
    patch.setattr(outcomes, "store_answer", lambda *_: None)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("mutate", "judge"),
    [
        (unsynced, check_synced),
        (no_cap, check_caps),
        (cap_instead_of_account, check_caps),
        (floats, check_exact),
        (remembered_too_much, check_undone),
        (remembered_from_before, check_others),
        (forgotten_life, check_lifetime),
        (answered_twice, check_one_answer),
        (credits_by_account, check_credits),
        (credits_by_name, check_made_up_names),
        (interrupted_anywhere, check_signals),
        (unclaimed, check_claims),
        (claimed_by_all, check_claims),
        (uncounted, check_runs),
    ],
)
def test_mutants_die(
    mutate: Callable[[Patch], None], judge: Callable[[Path], None], monkeypatch: Patch, tmp_path: Path
) -> None:
    judge(tmp_path / "honest")
    mutate(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        judge(tmp_path / "mutant")
