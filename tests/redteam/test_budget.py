"""Class E: money. Charged before anything is read, never given back, never twice, never beyond the cap."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.curator.asking import answer as answer_module
from discreet.curator.asking import performer as perform_module
from discreet.engines import Memory
from discreet.errors import (
    AccountLocked,
    DiscreetError,
    InsufficientBudget,
    InvalidParameter,
    LedgerError,
    NotPermitted,
    QueryFailed,
)
from discreet.ledger import Ledger
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.noise import SeededBits
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Reading
from discreet.privacy import Budget, PureDP
from tests.cases import every
from tests.redteam.clinics import APPROXIMATE, CROWD, DECLARED, Untouchable, clinic, row, spent

COUNT = "SELECT COUNT(*) AS n FROM visits"


def numbered(i: int) -> str:
    """A question that nobody asked before."""
    return f"{COUNT} WHERE age > {i}"


def charges(curator: Curator) -> int:
    return [entry.kind for entry in curator.history("visits")].count("charge")


# -------------------------------------------------------------------------------------------------- absurd amounts

ABSURD: list[Any] = [
    *(-1, -0.0, math.nan, math.inf, -math.inf, 1e-320, "1e999", "-1", True, False, 10**400, "nan", "abc", "", "1/0"),
    *(Fraction(-1, 3), [1], {"epsilon": 1}, 1j, b"1", object(), "0x1"),
]


@every("amount", [*ABSURD, 0, None])
def test_absurd_epsilons_are_refused_before_anything(amount: Any) -> None:
    """RT-064."""
    curator = clinic(engine=Untouchable(), budget=APPROXIMATE)
    before = spent(curator)
    for ask in (curator.ask, curator.explain):
        with pytest.raises(InvalidParameter):
            ask(COUNT, epsilon=amount)
    with pytest.raises(InvalidParameter):
        Budget(epsilon=amount)
    assert spent(curator) == before


@every("amount", ABSURD)
def test_absurd_deltas_are_refused_before_anything(amount: Any) -> None:
    """RT-064."""
    curator = clinic(engine=Untouchable(), budget=APPROXIMATE)
    before = spent(curator)
    with pytest.raises(InvalidParameter):
        curator.ask(COUNT, epsilon=1, delta=amount)
    with pytest.raises(InvalidParameter):
        curator.ask(COUNT, epsilon=1, confidence=amount)
    assert spent(curator) == before


@pytest.mark.parametrize("delta", [1, 2, 10**6])
def test_a_delta_is_below_one(delta: int) -> None:
    """RT-064: Gaussian noise for epsilon=1 and delta=1 would be next to nothing, at rho=22.7: refused as a mistake."""
    curator = clinic(engine=Untouchable(), budget=Budget(epsilon=1000, delta=1e-3))
    before = spent(curator)
    for ask in (curator.ask, curator.explain):
        with pytest.raises(InvalidParameter):
            ask(COUNT, epsilon=1, delta=delta)
    assert spent(curator) == before


# ------------------------------------------------------------------------------------------- faults after the charge


class Failing(Memory):
    """Fails while it reads."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def _prepare(self, reading: Reading) -> Callable[[], GroupColumns]:
        del reading
        return self._fail

    def _fail(self) -> Any:
        raise self.error


ERRORS: list[BaseException] = [MemoryError(), ValueError("x"), RecursionError(), KeyboardInterrupt(), SystemExit(1)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_fault_while_reading_stays_charged(error: BaseException) -> None:
    """RT-058, RT-078: whatever ends the read, the charge is in the ledger and stays there."""
    curator = clinic(engine=Failing(error))
    with pytest.raises((QueryFailed, KeyboardInterrupt, SystemExit)):
        curator.ask(COUNT, epsilon=1)
    assert curator.budget("visits").spent == PureDP(1)


def test_faults_after_reading_stay_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """RT-058: a fault in the noise, in storing, in finishing: charged at each of them."""

    def fails(*_: Any, **__: Any) -> Any:
        raise ValueError("after data were touched")

    places: list[tuple[Any, str]] = [
        (AdditiveNoise, "release"),
        (Ledger, "store_answer"),
        (perform_module, "pack"),
        (answer_module, "plain_rows"),
        (answer_module, "notes"),
    ]
    curator = clinic()
    for i, (owner, name) in enumerate(places):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fails)
            with pytest.raises((ValueError, DiscreetError)):
                curator.ask(numbered(i), epsilon=1)
        assert curator.budget("visits").spent == PureDP(i + 1)


def test_failures_are_not_refunded_and_lock_the_account() -> None:
    """The peers' refund of failed questions: three failures cost three questions, and then there are no more."""
    curator = clinic(engine=Failing(ValueError()))
    for i in range(3):
        with pytest.raises(QueryFailed):
            curator.ask(numbered(i), epsilon=1)
    with pytest.raises(AccountLocked):
        curator.ask(numbered(9), epsilon=1)
    assert curator.budget("visits").spent == PureDP(3)


class Ordered(Memory):
    """Says what was spent when it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.curator: Curator | None = None
        self.seen: list[str] = []

    def read(self, reading: Reading) -> ExactGroups:
        assert self.curator is not None
        self.seen.append(spent(self.curator))
        return super().read(reading)


def test_charged_before_and_not_after(tmp_path: Path) -> None:
    """The peers' answer that is charged afterwards: at the moment of reading the charge is in the file."""
    engine = Ordered()
    curator = clinic(engine=engine, ledger=str(tmp_path / "book"))
    engine.curator = curator
    curator.ask(COUNT, epsilon=Fraction(1, 4))
    (seen,) = engine.seen
    assert seen.startswith("epsilon=0.25 in")
    with Ledger(str(tmp_path / "book")) as ledger:
        assert str(ledger.balance("visits").spent) == "epsilon=0.25"


# --------------------------------------------------------------------------------------------------- many at once


def crowd(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What so many threads that start together come to: results, or errors of ours."""
    results: list[Any] = [None] * count
    gate = threading.Barrier(count)

    def run(i: int) -> None:
        gate.wait()
        try:
            results[i] = work(i)
        except DiscreetError as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.ci
def test_many_threads_and_curators_spend_exactly_the_cap(tmp_path: Path) -> None:
    """RT-059: 64 threads, 8 curators, one ledger, a cap of 40 questions: 40 answers, 24 refusals."""
    ledger = str(tmp_path / "book")
    curators = [clinic(ledger=ledger, budget=Budget(epsilon=4), seed=i) for i in range(8)]
    results = crowd(64, lambda i: curators[i % 8].ask(numbered(i), epsilon=Fraction(1, 10)))
    refused = [found for found in results if isinstance(found, InsufficientBudget)]
    answered = [found for found in results if not isinstance(found, DiscreetError)]
    assert (len(answered), len(refused)) == (40, 24)
    assert charges(curators[0]) == 40
    assert curators[0].budget("visits").spent == PureDP(4)
    curators[0].verify()


def test_one_key_is_one_charge(tmp_path: Path) -> None:
    """RT-061: the same idempotency key from many threads: one charge, and the same numbers for all."""
    ledger = str(tmp_path / "book")
    curators = [clinic(ledger=ledger, seed=i) for i in range(4)]
    results = crowd(24, lambda i: curators[i % 4].ask(COUNT, epsilon=1, key="mine"))
    assert not [found for found in results if isinstance(found, DiscreetError)]
    assert len({repr(found.records) for found in results}) == 1
    assert charges(curators[0]) == 1
    with pytest.raises(LedgerError):
        curators[0].ask(numbered(1), epsilon=1, key="mine")
    assert charges(curators[0]) == 1


def test_colluders_share_the_cap_of_the_data(tmp_path: Path) -> None:
    """RT-072: ten analysts with a cap of 1 each on an account of 3: three questions of 1, whoever asks."""
    ledger = str(tmp_path / "book")
    curator = clinic(ledger=ledger, budget=Budget(epsilon=3))
    names = [f"analyst{i}" for i in range(10)]
    with Ledger(ledger) as book:
        for name in names:
            book.stewardship.appoint(name, "analyst", account="visits", cap=Budget(epsilon=1))

    results = [_error(partial(curator.ask, numbered(i), epsilon=1, analyst=names[i])) for i in range(10)]
    assert [isinstance(found, InsufficientBudget) for found in results] == [False] * 3 + [True] * 7
    with pytest.raises(InsufficientBudget):
        curator.ask(numbered(50), epsilon=Fraction(1, 100), analyst=names[0])
    with pytest.raises(NotPermitted):
        curator.ask(numbered(51), epsilon=Fraction(1, 100), analyst="nobody")


def _error(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except DiscreetError as error:
        return error


def test_disjoint_groups_are_no_discount() -> None:
    """RT-067: a person can be in both wards, so that two questions about them cost twice."""
    curator = clinic([*CROWD, row(1, ward="A"), row(1, ward="B")])
    for ward in "ABC":
        curator.ask(f"{COUNT} WHERE ward = '{ward}'", epsilon=1)
    assert curator.budget("visits").spent == PureDP(3)
    curator.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    assert curator.budget("visits").spent == PureDP(4)


def test_questions_that_mean_the_same_in_other_words_are_not_averaged_for_free() -> None:
    """A repeated question is the stored answer; one that only means the same is paid for like any other."""
    curator = clinic()
    first = curator.ask(f"{COUNT} WHERE age > 30", epsilon=1)
    same = [curator.ask(f"select count( * ) AS n FROM visits WHERE {c}", epsilon=1) for c in ("age > 30", '"AGE" > 30')]
    assert [repr(answer.records) for answer in same] == [repr(first.records)] * 2
    assert charges(curator) == 1
    follows = curator.ask(f"{COUNT} WHERE age > 30 AND TRUE", epsilon=1)
    assert repr(follows.records) == repr(first.records)
    assert charges(curator) == 1
    for condition in ("NOT (age <= 30)", "age >= 31", "30 < age"):
        assert not curator.ask(f"{COUNT} WHERE {condition}", epsilon=1).replayed
    assert charges(curator) == 4


def test_no_ledger_no_answer(tmp_path: Path) -> None:
    """RT-077: a ledger that cannot be written or read answers nothing, and nothing is read for it."""
    curator = clinic(engine=Untouchable(), ledger=str(tmp_path / "book"))
    curator.close()
    with pytest.raises(LedgerError):
        curator.ask(COUNT, epsilon=1)
    broken = tmp_path / "broken"
    broken.write_bytes(b"not a ledger at all, but long enough to be looked at" * 100)
    with pytest.raises(LedgerError):
        Curator.for_tests(str(broken), engine=Memory(), bits=SeededBits(1))


def test_a_new_name_or_version_is_no_new_budget(tmp_path: Path) -> None:
    """The same table under the same account with another version goes on with what is left."""
    ledger = str(tmp_path / "book")
    clinic(ledger=ledger, budget=Budget(epsilon=1)).ask(COUNT, epsilon=1)
    again = clinic(ledger=ledger, budget=Budget(epsilon=1), version="2")
    with pytest.raises(InsufficientBudget):
        again.ask(COUNT, epsilon=Fraction(1, 10))
    with pytest.raises(InvalidParameter):
        clinic(ledger=ledger, budget=Budget(epsilon=5))
    options: dict[str, Any] = DECLARED | {"account": "visits"}
    again.protect(CROWD, name="copies", **options)
    with pytest.raises(InsufficientBudget):
        again.ask("SELECT COUNT(*) AS n FROM copies", epsilon=Fraction(1, 10))
