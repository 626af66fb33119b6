"""A ledger in which every verb was paid before goes on: it verifies, replays, and its keys are charged once.

How it was made is told, and can be read, in `tests.curator.paid_book`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet import Curator
from discreet.errors import KeyConflict, LedgerError, QueryFailed, RunsUsedUp
from discreet.ledger import Head, Ledger
from tests.curator import paid_ledger
from tests.curator.old_ledger import Hooked
from tests.curator.paid_ledger import ANSWERED, FAILED, STOPPED, USED_UP, VANISHED, Call

EXPECTED: dict[str, Any] = json.loads(paid_ledger.TOLD.read_text())
LAST = Head.parse(EXPECTED["head"]).sequence


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return paid_ledger.unpack(tmp_path)


@pytest.fixture
def engine() -> Hooked:
    return Hooked()


@pytest.fixture
def curator(path: Path, engine: Hooked) -> Iterator[Curator]:
    with Curator(path, engine=engine, anchor="") as found:
        paid_ledger.declare(found)
        engine.reads = 0
        yield found


def spent(curator: Curator) -> dict[str, str]:
    return {name: str(curator.balance(name).spent) for name in curator.accounts()}


def added(curator: Curator) -> list[str]:
    """The kinds of entries that the ledger has more than it had; releases on the way to an answer cost nothing."""
    entries = [entry for entry in curator.entries() if entry.sequence > LAST]
    free = {entry.sequence for entry in entries if "beside" in entry.content}
    return [entry.kind for entry in entries if entry.sequence not in free and entry.about not in free]


def test_it_verifies_and_holds_what_it_held(curator: Curator) -> None:
    assert str(curator.verify()) == EXPECTED["head"]
    assert spent(curator) == EXPECTED["spent"]
    assert str(curator.balance("patients", analyst="ana").spent) == EXPECTED["ana"]


@pytest.mark.ci
def test_every_release_is_given_again_for_nothing(curator: Curator, engine: Hooked) -> None:
    """Under its key, and to whoever asks without one; nothing is read, and nothing is written."""
    for call in ANSWERED:
        for key in ("", None):
            assert paid_ledger.told(call(curator, key)) == EXPECTED["answers"][call.name], call.name
    assert engine.reads == 0
    assert str(curator.verify()) == EXPECTED["head"]


@pytest.mark.parametrize("call", [*ANSWERED, *STOPPED, FAILED, VANISHED, USED_UP], ids=lambda call: call.name)
def test_a_key_with_another_request_is_a_conflict(curator: Curator, engine: Hooked, call: Call) -> None:
    with pytest.raises(KeyConflict):
        call.conflict(curator)
    assert engine.reads == 0
    assert str(curator.verify()) == EXPECTED["head"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("call", STOPPED, ids=lambda call: call.name)
def test_what_was_stopped_is_claimed_and_answered_once(curator: Curator, engine: Hooked, call: Call) -> None:
    first = call(curator)
    reads = engine.reads
    assert reads > 0
    assert added(curator) == ["claim", "answer"]
    assert paid_ledger.told(call(curator)) == paid_ledger.told(first)
    assert (engine.reads, spent(curator)) == (reads, EXPECTED["spent"])
    curator.verify()


def test_what_vanished_is_claimed_after_a_wait(
    curator: Curator, engine: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Ledger.claim
    monkeypatch.setattr(Ledger, "claim", lambda ledger, receipt, *, wait: claim(ledger, receipt, wait=0 * wait))
    first = VANISHED(curator)
    assert (added(curator), engine.reads) == (["claim", "answer"], 1)
    assert VANISHED(curator).records == first.records


def test_what_failed_has_failed_and_what_was_run_three_times_is_not_run_again(curator: Curator, engine: Hooked) -> None:
    with pytest.raises(QueryFailed):
        FAILED(curator)
    with pytest.raises(RunsUsedUp):
        USED_UP(curator)
    assert engine.reads == 0
    assert str(curator.verify()) == EXPECTED["head"]


def test_streams_go_on_where_they_were(curator: Curator) -> None:
    for daily in (paid_ledger.stream(curator, "daily"), curator.stream(name="daily")):
        assert daily.released == 2
        for place, period in enumerate(("2026-01-01", "2026-01-02")):
            assert paid_ledger.told(daily.release(period=period)) == EXPECTED["stream"][place]
    third = daily.release()
    assert (daily.released, third.replayed, spent(curator)) == (3, False, EXPECTED["spent"])
    unused = paid_ledger.stream(curator, "unused")
    assert (unused.released, unused.release().replayed, spent(curator)) == (0, False, EXPECTED["spent"])
    assert added(curator) == []
    curator.verify()


def test_charges_of_two_accounts_are_found_under_their_key(curator: Curator) -> None:
    ledger = curator._ledger
    receipts = paid_ledger.joined(ledger, "joined")
    assert [(one.account, one.repeated) for one in receipts] == [("patients", True), ("shop", True)]
    assert (ledger.claim(receipts[0]), ledger.answer(receipts[0])) == (None, b"{}")
    with pytest.raises(KeyConflict):
        ledger.charge("patients", paid_ledger.BESIDE["patients"], question='{"join":1}', key="joined", terms="1")
    stopped = paid_ledger.joined(ledger, "joined stopped")
    mine = ledger.claim(stopped[0])
    assert mine is not None
    assert ledger.store_answer(mine, "joined stopped", "{}")
    assert spent(curator) == EXPECTED["spent"]
    curator.verify()


def test_a_stopped_charge_of_two_accounts_is_none_of_a_later_period(curator: Curator) -> None:
    curator.renew("patients")
    with pytest.raises(LedgerError, match="renewed"):
        curator._ledger.claim(paid_ledger.joined(curator._ledger, "joined stopped")[0])
