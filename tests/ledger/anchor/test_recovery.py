"""A copy that has forgotten something becomes the ledger only on purpose, and never with less spent than was."""

from __future__ import annotations

import datetime as dt
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import AnchorMismatch, InsufficientBudget, LedgerError, LedgerTampered, NotPermitted
from discreet.ledger import AnchoredLedger, Head, Ledger, RestoreReport, restore_anchored
from discreet.ledger.anchor.anchor_actions import UncheckedLedger
from discreet.ledger.anchor.anchor_file import read_anchor
from discreet.ledger.serialization import are_within, ratio
from discreet.ledger.tallies import Tallies
from discreet.privacy import Budget, events
from tests.ledger.ledgers import PATIENTS, tamper
from tests.ledger.renewal.machines import Machine

ROOM = Budget(epsilon=100, delta="1e-2")
DRAWS = (events.Pure("1/3"), events.Pure("1/10"), events.Gaussian(noise_multiplier=9), events.Approx("1/7", "1e-9"))


def at(folder: Path) -> AnchoredLedger:
    return AnchoredLedger(str(folder / "book"), anchor_file=str(folder / "anchor"))


def begun(folder: Path) -> AnchoredLedger:
    ledger = at(folder)
    ledger.stewardship.open_account("patients", unit=PATIENTS, budget=ROOM)
    ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon=50, delta="1e-3"))
    ledger.stewardship.allot("asthma", account="patients", cap=Budget(epsilon=40, delta="1e-3"))
    return ledger


def restored(folder: Path, copy: str = "copy", **options: Any) -> RestoreReport:
    return restore_anchored(str(folder / copy), str(folder / "book"), anchor_file=str(folder / "anchor"), **options)


def lose(folder: Path) -> None:
    """The ledger is gone, with all that SQLite keeps beside it."""
    for path in folder.glob("book*"):
        path.unlink()


def covers(now: Tallies, then: Tallies) -> bool:
    """Tells whether sums are at least others under every rule; what is not bounded is at least everything."""
    pairs = ((then.sums[kind], more) for kind, more in now.sums.items())
    return all(more is None or (less is not None and are_within(less, more)) for less, more in pairs)


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A folder with an older copy and an anchor; between them, 3.7 and not 3.9 of 4 were left."""
    with begun(tmp_path) as ledger:
        ledger.charge("patients", events.Pure("0.1"), analyst="ana")
        ledger.keep_anchor(backup=ledger.backup(str(tmp_path / "copy")))
        ledger.charge("patients", events.Pure("0.2"), analyst="ana", project="asthma")
    lose(tmp_path)
    return tmp_path


def test_a_whole_copy_is_put_back(tmp_path: Path) -> None:
    with begun(tmp_path) as ledger:
        head = ledger.backup(str(tmp_path / "copy"))
    lose(tmp_path)
    assert restored(tmp_path) == RestoreReport(head=head, missing=0, lost={})
    with at(tmp_path) as ledger:
        assert ledger.verify() == head


def test_a_copy_that_has_forgotten_is_refused_and_nothing_is_made(lost: Path) -> None:
    before = (lost / "anchor").read_bytes()
    with pytest.raises(AnchorMismatch) as refused:
        restored(lost)
    assert refused.value.missing == 1
    assert (refused.value.head or "").startswith("5:")
    assert refused.value.anchor.startswith("6:")
    assert not (lost / "book").exists()
    assert (lost / "anchor").read_bytes() == before


def test_what_the_anchor_knows_counts_as_spent(lost: Path) -> None:
    done = restored(lost, accept_loss=True, note="the disk died")
    assert (done.missing, str(done.lost["patients"])) == (1, "epsilon=0.2")
    with at(lost) as ledger:
        assert ledger.verify() == done.head
        found = ledger.standing("patients")
        assert str(found.spent) == str(found.lifetime) == "epsilon=0.3"
        assert str(found.people[0].balance.spent) == "epsilon=0.3"
        assert str(found.projects[0].balance.spent) == "epsilon=0.2"
        entry = ledger.history()[-1]
        assert (entry.kind, entry.content["note"], entry.content["cost"]) == (
            "recover",
            "the disk died",
            {"epsilon": "1/5"},
        )
        shares = [ratio(entry.content["share"]) for entry in ledger.history() if "share" in entry.content]
        assert sum(shares, Fraction(0)) == ledger.balance("patients").spent_share
        ledger.charge("patients", events.Pure(1), analyst="ana")


def test_only_stewards_accept_a_loss(lost: Path) -> None:
    with pytest.raises(NotPermitted):
        restored(lost, accept_loss=True, by="ana")


def test_a_copy_put_in_the_place_of_the_ledger_is_mended_there(lost: Path) -> None:
    shutil.copy(lost / "copy", lost / "book")
    with pytest.raises(AnchorMismatch):
        at(lost)
    assert str(restored(lost, "book", accept_loss=True).lost["patients"]) == "epsilon=0.2"
    at(lost).close()


def test_being_stopped_before_the_new_anchor_counts_nothing_twice(lost: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("discreet.ledger.anchor.recovery.write_anchor", stopped)
        with pytest.raises(KeyboardInterrupt):
            restored(lost, accept_loss=True)
    with pytest.raises(AnchorMismatch):
        at(lost)
    restored(lost, "book", accept_loss=True)
    with at(lost) as ledger:
        assert str(ledger.balance("patients").spent) == "epsilon=0.3"


def test_a_frozen_copy_goes_on(lost: Path) -> None:
    shutil.copy(lost / "copy", lost / "book")
    anchor = read_anchor(str(lost / "anchor"))
    assert anchor is not None
    with UncheckedLedger(str(lost / "book")) as ledger, pytest.raises(LedgerTampered):
        ledger.check_anchor(anchor.head)
    restored(lost, "book", accept_loss=True)
    with at(lost) as ledger:
        assert not ledger.is_frozen


def test_what_went_another_way_counts_twice(lost: Path) -> None:
    """Somebody has charged an older copy: nobody knows of it but the copy, which has both ways afterwards."""
    with UncheckedLedger(str(lost / "copy")) as other:
        other.charge("patients", events.Pure("0.5"), analyst="ana")
    restored(lost, accept_loss=True)
    with at(lost) as ledger:
        assert str(ledger.balance("patients").spent) == "epsilon=0.8"


def test_a_copy_that_nobody_knows_counts_from_the_last_common_head(lost: Path, tmp_path: Path) -> None:
    anchor = read_anchor(str(lost / "anchor"))
    assert anchor is not None
    with Ledger(str(lost / "copy"), read_only=True) as copy, copy._journal.reading() as rows:
        assert anchor.common(rows).sequence == 5
    (tmp_path / "other").mkdir()
    with Ledger(str(tmp_path / "other" / "book")) as stranger, stranger._journal.reading() as rows:
        assert anchor.common(rows).sequence == 0


def test_accounts_roles_caps_and_budgets_are_those_of_the_anchor(tmp_path: Path) -> None:
    with begun(tmp_path) as ledger:
        ledger.keep_anchor(backup=ledger.backup(str(tmp_path / "copy")))
        ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=2))
        ledger.charge("staff", events.Pure("0.5"), analyst="ben")
        ledger.stewardship.amend("patients", budget=Budget(epsilon=7, delta="1e-5"))
        ledger.stewardship.appoint("ana", "analyst", account="patients", cap=Budget(epsilon=1, delta="1e-7"))
        ledger.stewardship.appoint("sue", "steward")
        ledger.stewardship.allot("flu", account="patients", cap=Budget(epsilon=3, delta="1e-7"))
        for _ in range(3):
            ledger.fail(ledger.charge("patients", events.Pure("0.1"), analyst="ana"))
        before = {name: ledger.standing(name) for name in ledger.accounts()}
    lose(tmp_path)
    restored(tmp_path, accept_loss=True)
    with at(tmp_path) as ledger:
        assert {name: ledger.standing(name) for name in ledger.accounts()} == before
        assert ledger.standing("patients").stopped == ("ana",)
        assert ledger.role("", "sue") is not None
        ledger.verify()


def test_a_lost_renewal_stays_counted(tmp_path: Path) -> None:
    with begun(tmp_path) as ledger:
        ledger.charge("patients", events.Pure(1))
        ledger.keep_anchor(backup=ledger.backup(str(tmp_path / "copy")))
        ledger.stewardship.renew("patients")
        ledger.charge("patients", events.Pure(2))
    lose(tmp_path)
    restored(tmp_path, accept_loss=True)
    with at(tmp_path) as ledger:
        found = ledger.balance("patients")
        assert (found.period, str(found.spent), str(found.lifetime)) == (1, "epsilon=3", "epsilon=3")


def test_without_an_anchor_or_with_something_in_the_way_it_is_refused(lost: Path) -> None:
    (lost / "book-wal").write_bytes(b"of the lost ledger")
    with pytest.raises(LedgerError, match="cannot be restored to"):
        restored(lost, accept_loss=True)
    (lost / "book-wal").unlink()
    (lost / "anchor").unlink()
    with pytest.raises(LedgerError, match="no anchor"):
        restored(lost, accept_loss=True)


def test_an_altered_copy_is_refused(lost: Path) -> None:
    tamper(lost / "copy", "UPDATE entries SET who = 'ben' WHERE sequence = 4")
    with pytest.raises(LedgerTampered):
        restored(lost, accept_loss=True)
    assert not (lost / "book").exists()


Acts = st.lists(st.tuples(st.sampled_from(["ana", "ben"]), st.integers(0, len(DRAWS))), max_size=4)


def renewed(acts: list[tuple[str, int]]) -> bool:
    return any(which == len(DRAWS) for _, which in acts)


def play(ledger: Ledger, acts: list[tuple[str, int]]) -> None:
    """Charges, or renews where there is no such event."""
    for who, which in acts:
        if which == len(DRAWS):
            ledger.stewardship.renew("patients")
        else:
            ledger.stewardship.appoint("ben", "analyst", account="patients")
            ledger.charge("patients", DRAWS[which], analyst=who, project="asthma" if which == 0 else "")


@given(before=Acts, after=Acts, elsewhere=Acts, known=st.booleans())
@settings(max_examples=12, deadline=None)
def test_nothing_that_was_spent_is_forgotten(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, int]],
    after: list[tuple[str, int]],
    elsewhere: list[tuple[str, int]],
    known: bool,
) -> None:
    """Under every rule, for everybody: at least the lost ledger's lifetime, and the copy's own."""
    folder = tmp_path_factory.mktemp("book")
    with begun(folder) as ledger:
        play(ledger, before)
        head = ledger.backup(str(folder / "copy"))
        if known:
            ledger.keep_anchor(backup=head)
        play(ledger, after)
        ledger.charge("patients", events.Pure("1/9"), analyst="ana")  # something is always lost
    anchor = read_anchor(str(folder / "anchor"))
    assert anchor is not None
    lose(folder)
    with UncheckedLedger(str(folder / "copy")) as copy:
        play(copy, elsewhere)
        forked = copy.admit("patients", "owner").lifetime
    restored(folder, accept_loss=True)
    with at(folder) as ledger:
        ledger.verify()
        now = ledger.admit("patients", "owner")
        was = anchor.standing("patients")
        assert covers(now.lifetime, was.lifetime)
        assert covers(now.lifetime, forked)
        if not renewed(elsewhere):  # in the copy itself, a steward has decided so
            assert covers(now.spent, was.spent)
        found = read_anchor(str(folder / "anchor"))
        assert found is not None
        for scope in ("member", "project"):
            shares = found.shares(scope, "patients")
            assert all(
                covers(shares[who].lifetime, one.lifetime) for who, one in anchor.shares(scope, "patients").items()
            )
        if known and not elsewhere and not renewed(after):
            assert now.lifetime == was.lifetime  # nothing is counted that was not spent


def test_a_restored_ledger_renews_only_by_a_steward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a lost period had spent counts in the copy's period, which the next renewal would forget."""
    machine = Machine(monkeypatch, dt.datetime(2026, 11, 19, tzinfo=dt.UTC))
    with at(tmp_path) as ledger:
        ledger.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=3, per="month"))
        ledger.keep_anchor(backup=ledger.backup(str(tmp_path / "copy")))
        machine.pass_days(12)
        ledger.caps.set_team("heart", account="patients", cap=Budget(epsilon=2), members=["ana"], groups=["g"])
        ledger.charge("patients", events.Pure(2), analyst="ana")
    lose(tmp_path)
    restored(tmp_path, accept_loss=True)
    with at(tmp_path) as ledger:
        machine.pass_days(31)
        found = ledger.balance("patients")
        assert (str(found.spent), "restored from a copy" in found.renews) == ("epsilon=2", True)
        with pytest.raises(InsufficientBudget):
            ledger.charge("patients", events.Pure(2))
        assert ledger.caps.team("heart", account="patients") == (Budget(epsilon=2), ("ana",), ("g",))
        assert str(ledger.balance("patients", team="heart").spent) == "epsilon=2"
        ledger.stewardship.renew("patients")
        ledger.charge("patients", events.Pure(2))
        ledger.verify()


def test_resuming_a_frozen_ledger_stops_renewals(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, dt.datetime(2026, 11, 19, tzinfo=dt.UTC))
    ledger = Ledger()
    ledger.stewardship.open_account("patients", unit=PATIENTS, budget=Budget(epsilon=3, per="month"))
    with pytest.raises(LedgerTampered):
        ledger.check_anchor(Head(1, "f" * 64))
    ledger.resume(note="agreed")
    machine.pass_days(12)
    assert "restored from a copy" in ledger.balance("patients").renews
    ledger.verify()
