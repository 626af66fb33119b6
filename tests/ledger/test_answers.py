"""One charge, one outcome: keys that repeat, answers kept before they are sent, failures that use up credits."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import (
    AccountLocked,
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    LedgerError,
    NotPermitted,
    RunsUsedUp,
)
from discreet.ledger import FAILURE_CREDITS, Ledger, Receipt, RemainingBudget, changes, charges
from discreet.ledger.entry import digest
from discreet.ledger.outcomes import MOST_RUNS
from discreet.ledger.serialization import canonical, parse_canonical
from discreet.privacy import Budget, PureDP, events
from tests.ledger.ledgers import PATIENTS, TENTH, opened

CANARY = "Herr-Geheim-1954"


def test_a_key_returns_the_stored_receipt() -> None:
    ledger = opened()
    first = ledger.charge("patients", TENTH, analyst="ana", question='{"q":1}', key="k")
    again = ledger.charge("patients", TENTH, analyst="ana", question='{"q":1}', key="k")
    assert (first.repeated, again.repeated) == (False, True)
    assert (again.sequence, again.event, again.cost, again.remaining, again.hash) == (
        first.sequence,
        TENTH,
        first.cost,
        first.remaining,
        first.hash,
    )
    assert ledger.balance("patients").spent == PureDP("0.1")
    assert ledger.answer(again) is None
    ledger.store_answer(first, "replay", "text")
    assert ledger.answer(again) == b"text"
    other = ledger.charge("patients", TENTH, analyst="bob", question='{"q":2}', key="k")
    assert not other.repeated  # keys belong to people


def test_a_charge_says_how_to_go_on_with_it_and_is_reopened_until_it_has_ended(tmp_path: Path) -> None:
    path = str(tmp_path / "book")
    with opened(path) as ledger:
        first = ledger.charge("patients", TENTH, analyst="ana", key="k", terms="t", restart='{"start":1}')
        ledger.charge("patients", TENTH, analyst="ana", key="plain")
    with Ledger(path) as ledger:
        assert ledger.restart("ana", "k") == '{"start":1}'
        assert ledger.restart("ana", "plain") == ""
        assert ledger.restart("bob", "k") is None
        found = ledger.charge("patients", TENTH, analyst="ana", key="k", terms="t")
        head = ledger.head()
        with pytest.raises(LedgerError, match="found under its key"):
            ledger.store_beside(found, "part 1", "a", question="{}")
        assert all(ledger.reopen(found) for _ in range(5))
        assert ledger.head() == head  # nothing is noted: nothing is run again
        reopened = ledger.reopen(found)
        assert reopened is not None
        assert ledger.store_beside(reopened, "part 1", "a", question="{}") == b"a"
        assert ledger.store_beside(first, "part 1", "b", question="{}") == b"a"
        assert ledger.balance("patients").spent == PureDP("0.2")
        ledger.store_answer(reopened, "replay", "text")
        assert ledger.reopen(found) is None
        other = ledger.charge("patients", TENTH, analyst="ana", key="plain")
        ledger.stewardship.renew("patients")
        with pytest.raises(LedgerError, match="renewed"):
            ledger.reopen(other)
        assert ledger.verify()


@pytest.mark.parametrize(
    ("event", "question"), [(TENTH, '{"q":2}'), (events.Pure("0.2"), '{"q":1}'), (events.Laplace(10), '{"q":1}')]
)
def test_a_key_with_another_request_is_a_conflict(event: events.Event, question: str) -> None:
    ledger = opened()
    first = ledger.charge("patients", TENTH, question='{"q":1}', key="k")
    before = ledger.head()
    with pytest.raises(KeyConflict) as caught:
        ledger.charge("patients", event, question=question, key="k")
    assert caught.value.sequence == first.sequence
    assert ledger.head() == before


def test_a_key_stands_for_a_question_and_a_replay_key() -> None:
    ledger = opened()
    assert not ledger.is_charged("ana", "k")
    first = ledger.charge("patients", TENTH, analyst="ana", key="k", replay_key="version 1")
    assert (ledger.is_charged("ana", "k"), ledger.is_charged("bob", "k"), ledger.is_charged("ana", "x")) == (
        True,
        False,
        False,
    )
    ledger.charge("patients", TENTH, analyst="bob")
    again = ledger.charge("patients", TENTH, analyst="ana", key="k", replay_key="version 1")
    assert again.repeated
    assert (first.account_remaining, again.account_remaining.loss) == (
        RemainingBudget(PureDP("0.9"), Fraction(9, 10), Fraction(9, 10)),
        PureDP("0.8"),
    )  # then and now
    for other in ("", "version 2"):
        with pytest.raises(KeyConflict):
            ledger.charge("patients", TENTH, analyst="ana", key="k", replay_key=other)


def test_a_request_with_terms_is_the_same_whatever_its_event_is_by_now() -> None:
    """What was found out since may have changed the event; what may be spent, and on what, is the request."""
    ledger = opened()
    request: dict[str, Any] = {"question": '{"q":1}', "key": "k", "replay_key": "r", "terms": "1/10 0"}
    first = ledger.charge("patients", TENTH, **request)
    again = ledger.charge("patients", events.Laplace(10), **request)
    assert (again.repeated, again.sequence, again.event) == (True, first.sequence, TENTH)
    others: list[dict[str, Any]] = [
        {"question": "{}"},
        {"replay_key": "s"},
        {"replay_key": ""},
        {"terms": "1/5 0"},
        {"terms": None},
    ]
    for other in others:
        with pytest.raises(KeyConflict):
            ledger.charge("patients", TENTH, **{**request, **other})
    assert ledger.balance("patients").spent == PureDP("0.1")


@pytest.mark.parametrize("replay_key", ["", "r"])
def test_a_digest_of_an_earlier_version_is_compared_by_what_its_entry_tells(
    replay_key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It covered the event that was charged, and no terms."""
    ledger = opened()

    def former(orders: Any, question: str, replay_key: str, _terms: object) -> str:
        spent = [[order.account.name, parse_canonical(order.event_text)] for order in orders]
        return digest(canonical([spent, question, *filter(None, [replay_key])]).encode())

    request: dict[str, Any] = {"question": '{"q":1}', "key": "k", "replay_key": replay_key}
    with monkeypatch.context() as patch:
        patch.setattr(charges, "_mark", former)
        first = ledger.charge("patients", TENTH, **request)
    for event in (TENTH, events.Laplace(10), events.Pure("0.5")):
        assert ledger.charge("patients", event, **request, terms="any").sequence == first.sequence
    assert ledger.charge("patients", TENTH, **request).repeated
    with pytest.raises(KeyConflict):
        ledger.charge("patients", events.Pure("0.5"), **request)  # without terms, the event stands for them
    for other in ({"question": "{}"}, {"replay_key": "s"}):
        with pytest.raises(KeyConflict):
            ledger.charge("patients", TENTH, **{**request, **other}, terms="any")
    ledger.stewardship.open_account("staff", unit=PATIENTS, budget=Budget(epsilon=1))
    with pytest.raises(KeyConflict):
        ledger.charge("staff", TENTH, **request, terms="any")
    with pytest.raises(KeyConflict):
        ledger.charge_all({"patients": TENTH, "staff": TENTH}, **request, terms="any")


def test_who_is_admitted_learns_where_the_account_stands() -> None:
    ledger = opened()
    receipt = ledger.charge("patients", TENTH)
    assert ledger.admit("patients", "ana") == receipt.state
    ledger.stewardship.appoint("bob", "analyst", account="patients")
    for stranger in ("ana", "otto"):
        with pytest.raises(NotPermitted):
            ledger.admit("patients", stranger)
    for name in ("", "a\nb", None):
        with pytest.raises(InvalidParameter):
            ledger.admit("patients", name)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        ledger.admit("nobody", "bob")


def test_a_hundred_threads_with_one_key(tmp_path: Path) -> None:  # RT-061
    with opened(tmp_path / "book") as ledger, opened(tmp_path / "book") as second:
        gate = threading.Barrier(100)

        def ask(place: int) -> tuple[Receipt, bytes | None]:
            mine = ledger if place % 2 else second
            gate.wait()
            receipt = mine.charge("patients", TENTH, analyst="ana", question="{}", key="k")
            if not receipt.repeated:
                mine.store_answer(receipt, "replay", f"from {place}")
            return receipt, mine.answer(receipt, wait=20)

        with ThreadPoolExecutor(100) as pool:
            found = list(pool.map(ask, range(100)))
        assert len({receipt.sequence for receipt, _ in found}) == 1
        assert sum(not receipt.repeated for receipt, _ in found) == 1
        assert len({payload for _, payload in found}) == 1
        assert found[0][1] is not None
        assert ledger.balance("patients").spent == PureDP("0.1")
        ledger.verify()


def test_a_charge_has_one_answer() -> None:
    ledger = opened()
    receipt = ledger.charge("patients", TENTH, key="k")
    ledger.store_answer(receipt, "replay", b"one")
    before = ledger.head()
    ledger.store_answer(receipt, "replay", b"one")
    assert ledger.head() == before
    with pytest.raises(LedgerError):
        ledger.store_answer(receipt, "replay", b"two")
    with pytest.raises(LedgerError):
        ledger.fail(receipt)
    repeated = ledger.charge("patients", TENTH, key="k")
    with pytest.raises(LedgerError):
        ledger.store_answer(repeated, "replay", b"one")
    assert [answer.payload for answer in ledger.read_answers("replay")] == [b"one"]
    assert ledger.read_answers("other") == ()


def test_answers_under_one_replay_key_come_in_order() -> None:
    ledger = opened()
    for payload in (b"b", b"a", b"b"):
        ledger.store_answer(ledger.charge("patients", TENTH), "replay", payload)
    assert [answer.payload for answer in ledger.read_answers("replay")] == [b"b", b"a", b"b"]
    ledger.verify()


def test_receipts_of_another_ledger_are_refused() -> None:
    mine, other = opened(), opened()
    receipt = other.charge("patients", TENTH)
    with pytest.raises(LedgerError):
        mine.store_answer(receipt, "replay", b"")
    mine.charge("patients", TENTH)
    for act in (mine.fail, lambda forged: mine.store_answer(forged, "replay", b"")):
        with pytest.raises(LedgerError):
            act(receipt)


def test_three_failures_stop_whoever_had_them_and_the_charges_stay() -> None:
    ledger = opened()
    for failures in range(1, FAILURE_CREDITS + 1):
        receipt = ledger.charge("patients", TENTH)
        ledger.fail(receipt)
        ledger.fail(receipt)  # the same failure is counted once
        assert ledger.balance("patients").failures == failures
        assert ledger.answer(receipt, wait=5) is None
        with pytest.raises(LedgerError):
            ledger.store_answer(receipt, "replay", b"too late")
    assert ledger.balance("patients").locked
    with pytest.raises(AccountLocked) as caught:
        ledger.charge("patients", TENTH)
    assert (caught.value.account, caught.value.failures) == ("patients", FAILURE_CREDITS)
    assert ledger.balance("patients").spent == PureDP("0.3")
    ledger.stewardship.unlock("patients", note="looked at it")
    ledger.charge("patients", TENTH)
    ledger.verify()


def test_no_error_repeats_a_question_an_answer_or_a_key(tmp_path: Path) -> None:
    with opened(tmp_path / "book") as ledger:
        question = f'{{"where":"name = {CANARY}"}}'
        receipt = ledger.charge("patients", TENTH, question=question, key=CANARY)
        ledger.store_answer(receipt, CANARY, CANARY)
        told: list[str] = [repr(receipt), repr(ledger.history()), repr(ledger.read_answers(CANARY))]
        for act in (
            lambda: ledger.charge("patients", events.Pure(5), question=question),
            lambda: ledger.charge("patients", TENTH, question=question + " ", key=CANARY),
            lambda: ledger.charge("patients", TENTH, question=question, key=CANARY + "\n"),
            lambda: ledger.charge("patients", TENTH, question=[question]),  # type: ignore[arg-type]
            lambda: ledger.charge("patients", TENTH, question=question * 100_000),
            lambda: ledger.store_answer(receipt, CANARY, CANARY * 2),
            lambda: ledger.fail(receipt),
        ):
            with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is, its text is looked at
                act()
            told.append(f"{caught.value} {caught.value!r}")
        ledger._journal.store._writer.execute("PRAGMA query_only=ON")  # type: ignore[attr-defined]
        with pytest.raises(LedgerError) as refused:
            ledger.charge("patients", TENTH, question=question)
        told.append(f"{refused.value} {refused.value.__cause__} {refused.value.__context__}")
    assert not [text for text in told if CANARY in text]


def test_refused_charges_leave_no_trace() -> None:
    ledger = opened()
    before = ledger.head()
    with pytest.raises(InsufficientBudget):
        ledger.charge("patients", events.Pure(2), analyst="stranger", key="k")
    assert ledger.head() == before
    assert ledger.balance("patients", analyst="stranger").spent == PureDP(0)
    assert not ledger.charge("patients", TENTH, analyst="stranger", key="k").repeated


def test_history_pages_in_order() -> None:
    ledger = opened()
    for _ in range(4):
        ledger.charge("patients", TENTH)
    assert [entry.sequence for entry in ledger.history("patients", after=2, limit=2)] == [3, 4]
    assert ledger.history("nobody") == ()
    assert Ledger().history() == ()


# --------------------------------------------------------------------------------------------------------------- runs


def claim(path: Path, *, interrupt: bool) -> Receipt | None:
    """Somebody claims the charge of a key, in a ledger that they open for it."""
    with Ledger(str(path)) as ledger:
        mine = ledger.claim(ledger.charge("patients", TENTH, key="k"))
        if interrupt and mine is not None:
            ledger.interrupt(mine)
        return mine


@pytest.mark.parametrize("interrupt", [True, False])
def test_a_charge_is_claimed_twice_and_then_refused(tmp_path: Path, interrupt: bool) -> None:
    """With the charge itself these are three runs, whether their ends were noted or not: the killed note nothing."""
    path = tmp_path / "book"
    with opened(path) as ledger:
        first = ledger.charge("patients", TENTH, key="k")
    assert [found and found.claim for found in (claim(path, interrupt=interrupt) for _ in range(2))] == [1, 2]
    with Ledger(str(path)) as ledger:
        before = ledger.head()
    for _ in range(3):
        with pytest.raises(RunsUsedUp) as refused:
            claim(path, interrupt=interrupt)
        assert (refused.value.sequence, refused.value.runs) == (first.sequence, MOST_RUNS)
    with Ledger(str(path)) as ledger:
        assert (ledger.head(), ledger.balance("patients").spent) == (before, PureDP("0.1"))
        assert ledger.balance("patients").failures == 0
        ledger.verify()


def test_the_last_run_may_still_store_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "book"
    with opened(path) as ledger:
        ledger.charge("patients", TENTH, key="k")
        claim(path, interrupt=True)
        mine = ledger.claim(ledger.charge("patients", TENTH, key="k"))
        assert mine is not None
        with pytest.raises(RunsUsedUp):
            claim(path, interrupt=False)
        assert ledger.store_answer(mine, "r", "answer")
        again = ledger.charge("patients", TENTH, key="k")
        assert ledger.claim(again) is None  # it has ended
        assert ledger.answer(again) == b"answer"


def test_claims_at_once_are_two(tmp_path: Path) -> None:
    path = tmp_path / "book"
    with opened(path) as ledger:
        ledger.charge("patients", TENTH, key="k")

    def tried(_: int) -> int:
        try:
            mine = claim(path, interrupt=False)
        except RunsUsedUp:
            return 0
        return 0 if mine is None else mine.claim

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(tried, range(8))) == [0] * 6 + [1, 2]


def test_claims_of_earlier_versions_count(tmp_path: Path) -> None:
    """A ledger in which a charge was claimed more often, before there was a limit, verifies, and refuses it."""
    path = tmp_path / "book"
    with opened(path) as ledger:
        receipt = ledger.charge("patients", TENTH, key="k")
        with ledger._journal.acting() as rows:
            for number in range(1, 9):
                body = {"charge": receipt.sequence, "number": number}
                changes.apply(rows, rows.add("claim", body, who=receipt.analyst, account=receipt.account))
        ledger.verify()
    with pytest.raises(RunsUsedUp) as refused:
        claim(path, interrupt=False)
    assert refused.value.runs == 9
