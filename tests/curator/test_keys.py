"""Idempotency keys: however often a question is asked with one, it is charged once and has one answer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Answer, Curator
from discreet.errors import InvalidParameter, KeyConflict, QueryFailed
from discreet.ledger import Receipt
from discreet.plan.model.schema import Limits
from discreet.privacy import Budget
from tests.curator.spies import BY_WARD, COUNT, Broken, Spy, clinic, filtered

THREADS = 64


def charges(curator: Curator) -> int:
    return sum(entry.kind == "charge" for entry in curator.history("visits"))


def test_a_key_is_charged_once_and_answered_alike() -> None:
    spy = Spy()
    curator = clinic(Budget(epsilon=2), engine=spy)
    first = curator.ask(BY_WARD, epsilon=0.25, key="k")
    better = curator.ask(BY_WARD, epsilon=0.5)
    again = curator.ask(BY_WARD, epsilon=0.25, key="k")
    assert again.records == first.records != better.records  # its own answer, not one that would serve as well
    assert (first.replayed, again.replayed) == (False, True)
    assert (str(again.cost.details), str(again.remaining.loss)) == ("epsilon=0", "epsilon=1.25")
    assert (spy.reads, charges(curator)) == (2, 2)


@pytest.mark.ci
def test_many_threads_with_one_key(tmp_path: Path) -> None:
    """The one who reads waits until all others were told that somebody reads already, so that they must wait."""
    spy, told = Spy(), threading.Semaphore(0)
    ledger = str(tmp_path / "book")
    curators = [clinic(Budget(epsilon=1), ledger=ledger, engine=spy) for _ in range(2)]
    spy.before = lambda: [told.acquire(timeout=60) for _ in range(THREADS - 1)]
    for curator in curators:
        announce(curator, told)
    gate = threading.Barrier(THREADS)

    def ask(place: int) -> Answer:
        gate.wait()
        return curators[place % 2].ask(BY_WARD, epsilon=0.25, analyst="ana", key="k")

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(ask, range(THREADS)))
    assert spy.reads == charges(curators[0]) == 1
    assert all(answer.records == answers[0].records for answer in answers)
    assert sum(not answer.replayed for answer in answers) == 1
    assert {str(answer.remaining.loss) for answer in answers} == {"epsilon=0.75"}
    curators[0].verify()


def announce(curator: Curator, told: threading.Semaphore) -> None:
    """Counts the charges that were found under their key."""
    charge_all = curator._ledger.charge_all

    def counting(*arguments: Any, **options: Any) -> tuple[Receipt, ...]:
        receipts = charge_all(*arguments, **options)
        if receipts[0].repeated:
            told.release()
        return receipts

    curator._ledger.charge_all = counting  # type: ignore[method-assign]


def test_a_failed_question_fails_again_and_is_charged_once() -> None:
    curator = clinic(Budget(epsilon=1), engine=Broken())
    for _ in range(5):
        with pytest.raises(QueryFailed):
            curator.ask(COUNT, epsilon=0.25, key="k")
    balance = curator.budget("visits")
    assert (str(balance.spent), balance.failures) == ("epsilon=0.25", 1)


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        (BY_WARD, {}),
        (f"{COUNT} LIMIT 1", {}),
        (COUNT, {"epsilon": 0.125}),
        (COUNT, {"limits": Limits(1, 1)}),
    ],
)
def test_a_key_with_another_question_is_a_conflict(sql: str, options: dict[str, Any]) -> None:
    curator = clinic()
    curator.ask(COUNT, epsilon=0.25, key="k")
    if sql == BY_WARD:
        curator.ask(sql, epsilon=0.25)  # what is stored is no way around it
    before = curator.verify()
    with pytest.raises(KeyConflict):
        curator.ask(sql, **{"epsilon": 0.25, "key": "k", **options})
    assert curator.verify() == before


def test_a_key_is_about_one_version_of_the_data(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    clinic(ledger=ledger).ask(COUNT, epsilon=0.25, key="k")
    with pytest.raises(KeyConflict):
        clinic(ledger=ledger, version="2").ask(COUNT, epsilon=0.25, key="k")


def test_keys_belong_to_people() -> None:
    curator = clinic(Budget(epsilon=1))
    curator.ask(COUNT, epsilon=0.25, analyst="ana", key="k")
    assert not curator.ask(filtered(3), epsilon=0.25, analyst="bob", key="k").replayed


@pytest.mark.parametrize("key", ["", " ", "a\nb", "x" * 201, 7])
def test_keys_are_short_words(key: str) -> None:
    curator = clinic(Budget(epsilon=1))
    with pytest.raises(InvalidParameter) as refused:
        curator.ask(COUNT, epsilon=0.25, key=key)
    assert refused.value.name == "key"
    assert charges(curator) == 0
