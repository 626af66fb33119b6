"""Learners are planned, paid, and only then trained; what is given is what was charged, and again it is free."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Foreign

from discreet import lazy
from discreet.curator import Curator, paid_release
from discreet.curator.paid_release import AGAIN, STAYS
from discreet.curator.training.trainer import FitPlan
from discreet.engines import Memory
from discreet.errors import (
    InsufficientBudget,
    InvalidParameter,
    KeyConflict,
    MissingExtra,
    NotPermitted,
    QueryFailed,
    UnsupportedQuery,
)
from discreet.learn.persistence import store
from discreet.noise import SecureBits, SeededBits
from discreet.presentation.ledger_view.query_text import plan_text as described
from discreet.privacy import Budget, events
from tests.cases import every
from tests.curator.clinic import visits
from tests.curator.spies import COUNT, OPTIONS, Broken, Spy, clinic
from tests.curator.test_keys import THREADS, announce
from tests.learn.tiny import TINY, TinyClassifier, TinyRegressor, TinyScaler

WARD = "SELECT age, charge, ward FROM visits"
CHARGE = "SELECT age, ward, charge FROM visits"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny learners are this library's own, for once."""
    monkeypatch.setattr(store, "kinds", lambda: dict(TINY))


def spied(budget: Any = None, **declared: Any) -> tuple[Curator, Spy]:
    spy = Spy()
    return clinic(budget or Budget(epsilon=4, delta=1e-6), engine=spy, **declared), spy


def charges(curator: Curator) -> int:
    return sum(entry.kind == "charge" for entry in curator.history("visits"))


# ----------------------------------------------------------------------------------------------------------- one fit


def test_a_fit_gives_a_fitted_copy_and_says_what_it_cost() -> None:
    curator, spy = spied()
    given = TinyClassifier(epsilon=1.5)
    before = dict(given.get_params())
    model = curator.fit(given, WARD, target="ward")
    assert given.get_params() == before
    assert not hasattr(given, "event_")
    assert type(model) is TinyClassifier
    assert list(model.classes_) == ["A", "B", "C"]
    assert model.columns_ == ["age", "charge"]
    assert model.predict([[30, 100.0]])[0] in "ABC"
    assert (str(model.cost_.details), str(model.remaining_.loss), model.replayed_) == (
        "epsilon=1.5",
        "epsilon=2.5",
        False,
    )
    assert model.bounds == ([0.0, 0.0], [120.0, 1000.0])
    assert (model.classes, model.neighbours) == (["A", "B", "C"], "add_remove")
    assert any("bounds=" in note for note in model.notes_)
    assert any("classes=" in note for note in model.notes_)
    assert (spy.reads, charges(curator)) == (1, 1)
    curator.verify()


def test_the_ledger_says_what_was_fitted() -> None:
    curator, _ = spied()
    curator.fit(TinyRegressor(epsilon=1), CHARGE, target="charge")
    asked = json.loads(curator.history("visits")[-2].content["question"])
    assert (asked["table"], [name for name, *_ in asked["outputs"]]) == ("visits", ["age", "ward", "charge"])
    assert (
        described(curator.history("visits")[-2].content["question"])
        == "TinyRegressor fitted to age, ward, charge of visits"
    )
    assert (asked["fit"]["class"], asked["fit"]["params"]["label_bounds"]["items"]) == ("TinyRegressor", [0.0, 1000.0])


def test_a_regressor_and_a_learner_without_a_target() -> None:
    curator, _ = spied()
    assert curator.fit(TinyRegressor(epsilon=1), CHARGE, target="CHARGE").columns_ == [
        "age",
        "ward=A",
        "ward=B",
        "ward=C",
    ]
    scaler = curator.fit(TinyScaler(epsilon=1), "SELECT age, charge FROM visits WHERE ward = 'A'")
    assert scaler.transform([[1.0, 2.0]]).shape == (1, 2)


def test_a_plan_reads_nothing_costs_nothing_and_is_what_happens() -> None:
    curator, spy = spied()
    plan = curator.plan_fit(TinyClassifier(epsilon=1.5), WARD, target="ward")
    assert isinstance(plan, FitPlan)
    assert (spy.reads, charges(curator)) == (0, 0)
    model = curator.fit(TinyClassifier(epsilon=1.5), WARD, target="ward")
    assert (plan.event, plan.cost, plan.notes) == (model.event_, model.cost_, model.notes_)
    assert (plan.features, plan.limits) == (("age", "charge"), ((0.0, 120.0), (0.0, 1000.0)))
    assert (plan.classes, plan.free) == (("A", "B", "C"), False)
    assert "epsilon=1.5" in str(plan)
    assert curator.plan_fit(TinyClassifier(epsilon=1.5), WARD, target="ward").free


def test_the_charge_comes_before_the_first_row() -> None:
    curator, spy = spied()
    seen: list[int] = []
    spy.before = lambda: seen.append(charges(curator))
    curator.fit(TinyClassifier(epsilon=1), WARD, target="ward")
    assert seen == [1]


# -------------------------------------------------------------------------------------------------------------- free


def test_the_same_fit_again_is_free_and_the_same() -> None:
    curator, spy = spied()
    one = curator.fit(TinyClassifier(epsilon=1), WARD, target="ward")
    other = curator.fit(TinyClassifier(epsilon=1), "select AGE, charge, ward from visits", target="ward")
    assert (other.replayed_, str(other.cost_.details), str(other.remaining_.loss)) == (True, "epsilon=0", "epsilon=3")
    assert np.array_equal(one.centres_, other.centres_)
    assert (one.event_, spy.reads) == (other.event_, 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("estimator", "question", "target"),
    [
        (TinyClassifier(epsilon=0.5), WARD, "ward"),
        (TinyClassifier(epsilon=1, bounds=(0, 50)), WARD, "ward"),
        (TinyClassifier(epsilon=1), f"{WARD} WHERE age > 1", "ward"),
        (TinyClassifier(epsilon=1), "SELECT charge, age, ward FROM visits", "ward"),
        (TinyClassifier(epsilon=1, classes=["A", "B"]), WARD, "ward"),
        (TinyScaler(epsilon=1), "SELECT age, charge FROM visits", None),
    ],
)
def test_another_fit_is_paid(estimator: Any, question: str, target: str | None) -> None:
    curator, spy = spied()
    curator.fit(TinyClassifier(epsilon=1), WARD, target="ward")
    assert not curator.fit(estimator, question, target=target).replayed_
    assert spy.reads == 2


def test_another_version_is_paid(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    for version, replayed in (("1", False), ("1", True), ("2", False)):
        with clinic(Budget(epsilon=4), ledger=ledger, version=version) as curator:
            assert curator.fit(TinyClassifier(epsilon=1), WARD, target="ward").replayed_ is replayed


def test_a_model_of_seeded_noise_never_comes_back_as_private(tmp_path: Path) -> None:
    ledger = str(tmp_path / "book")
    with clinic(Budget(epsilon=4), ledger=ledger) as tests:
        assert tests.fit(TinyClassifier(epsilon=1), WARD, target="ward").private_ is False
    with Curator(ledger, engine=Memory()) as real:
        real.protect(visits(3, patients=200), name="visits", **OPTIONS)
        model = real.fit(TinyClassifier(epsilon=1), WARD, target="ward")
        assert (model.private_, model.replayed_, model.random_state) == (True, False, None)
        assert real.fit(TinyClassifier(epsilon=1), WARD, target="ward").replayed_


def test_a_key_is_charged_once_and_belongs_to_one_fit() -> None:
    curator, spy = spied()
    one = curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", key="k")
    other = curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", key="k")
    assert np.array_equal(one.centres_, other.centres_)
    assert (other.replayed_, charges(curator), spy.reads) == (True, 1, 1)
    with pytest.raises(KeyConflict):
        curator.fit(TinyClassifier(epsilon=2), WARD, target="ward", key="k")
    with pytest.raises(KeyConflict):
        curator.ask(COUNT, epsilon=1, key="k")


@pytest.mark.ci
def test_many_threads_with_one_key_fit_once(tmp_path: Path) -> None:
    """The one who reads waits until all others were told that somebody reads already, so that they must wait."""
    spy, told = Spy(), threading.Semaphore(0)
    ledger = str(tmp_path / "book")
    curators = [clinic(Budget(epsilon=4), ledger=ledger, engine=spy) for _ in range(2)]
    spy.before = lambda: [told.acquire(timeout=60) for _ in range(THREADS - 1)]
    for curator in curators:
        announce(curator, told)
    gate = threading.Barrier(THREADS)

    def fit(place: int) -> Any:
        gate.wait()
        return curators[place % 2].fit(TinyClassifier(epsilon=1), WARD, target="ward", analyst="ana", key="k")

    with ThreadPoolExecutor(THREADS) as pool:
        models = list(pool.map(fit, range(THREADS)))
    assert spy.reads == charges(curators[0]) == 1
    assert all(np.array_equal(model.centres_, models[0].centres_) for model in models)
    assert sum(not model.replayed_ for model in models) == 1
    curators[0].verify()


# ---------------------------------------------------------------------------------------------------------- failures


def test_a_failure_stays_charged_and_says_nothing() -> None:
    curator = clinic(Budget(epsilon=4), engine=Broken())
    for _ in range(3):
        with pytest.raises(QueryFailed) as failed:
            curator.fit(TinyClassifier(epsilon=1), WARD, target="ward")
        assert (failed.value.__cause__, failed.value.__context__) == (None, None)
    balance = curator.budget("visits")
    assert (str(balance.spent), balance.failures) == ("epsilon=3", 3)


def test_whatever_a_learner_raises_or_warns_of_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    curator, _ = spied()
    fit = TinyClassifier.fit

    def leaking(self: TinyClassifier, X: Any, y: Any) -> TinyClassifier:
        if len(X) > 20:  # not the rehearsal
            warnings.warn(f"ZZ-CANARY {X[0]}", stacklevel=1)
            raise ValueError(f"ZZ-CANARY {X[0]}")
        return fit(self, X, y)

    monkeypatch.setattr(TinyClassifier, "fit", leaking)
    with pytest.raises(QueryFailed) as failed:
        curator.fit(TinyClassifier(epsilon=1), WARD, target="ward")
    assert "ZZ" not in repr(failed.value)
    assert failed.value.__context__ is None
    assert curator.budget("visits").failures == 1


def test_a_learner_that_releases_something_else_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    curator, _ = spied()
    account = TinyClassifier._account

    def other(self: TinyClassifier, event: events.Event, bits: Any) -> None:
        account(self, event if self.random_state == 0 else events.Pure("1/2"), bits)  # 0 is the rehearsal's

    monkeypatch.setattr(TinyClassifier, "_account", other)
    with pytest.raises(QueryFailed):
        curator.fit(TinyClassifier(epsilon=1), WARD, target="ward")
    assert str(curator.budget("visits").spent) == "epsilon=1"


def test_what_fails_for_what_it_is_fails_before_it_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    curator, spy = spied()

    def refusing(*_: Any) -> None:
        raise InvalidParameter("a", 1, "> 1")

    monkeypatch.setattr(TinyClassifier, "fit", refusing)
    with pytest.raises(InvalidParameter):
        curator.fit(TinyClassifier(epsilon=1), WARD, target="ward")
    assert (spy.reads, charges(curator)) == (0, 0)


def test_a_fit_that_was_stopped_stays_charged_and_is_fitted_when_it_is_asked_again() -> None:
    curator, spy = spied()

    def vanish() -> None:
        raise KeyboardInterrupt

    spy.before = vanish
    with pytest.raises(KeyboardInterrupt) as stopped:
        curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", key="k")
    assert stopped.value.__notes__ == [STAYS, AGAIN]
    spy.before = lambda: None
    model = curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", key="k")
    assert (spy.reads, charges(curator), model.replayed_, str(model.cost_.details)) == (2, 1, False, "epsilon=1")
    again = curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", key="k")
    assert (again.replayed_, np.array_equal(again.centres_, model.centres_)) == (True, True)
    assert (spy.reads, curator.budget("visits").failures) == (2, 0)


def test_a_fit_that_somebody_else_ended_first_is_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paid_release, "WAIT", 0.0)
    ledger, spy, found = str(tmp_path / "book"), Spy(), []
    one = clinic(Budget(epsilon=4), ledger=ledger, engine=spy)
    other = clinic(Budget(epsilon=4), ledger=ledger)

    def overtake() -> None:
        found.append(other.fit(TinyClassifier(epsilon=1), WARD, target="ward", key="k"))

    spy.before = overtake
    model = one.fit(TinyClassifier(epsilon=1), WARD, target="ward", key="k")
    assert np.array_equal(model.centres_, found[0].centres_)
    assert charges(one) == 1
    one.verify()


@pytest.mark.parametrize("where", ["age > 1000", "charge > 999999 AND age < 0"])
def test_no_rows_are_no_error(where: str) -> None:
    curator, _ = spied()
    model = curator.fit(TinyScaler(epsilon=1), f"SELECT age, charge FROM visits WHERE {where}")
    assert model.centre_.shape == (2,)
    assert curator.fit(TinyClassifier(epsilon=1), f"{WARD} WHERE {where}", target="ward").centres_.shape == (3, 2)


# ---------------------------------------------------------------------------------------------------------- refusals


class Sly(TinyClassifier):
    """Another fit under an honest name."""

    def fit(self, X: Any, y: Any) -> Any:
        raise AssertionError(len(X), len(y))


def refused(call: Callable[[Curator], object], error: type[Exception]) -> Any:
    curator, spy = spied(Budget(epsilon=2, delta=1e-6))
    curator.appoint("otto", "auditor", account="visits")
    curator.appoint("ana", "analyst", account="visits")
    with pytest.raises(error) as caught:
        call(curator)
    assert (spy.reads, charges(curator)) == (0, 0)
    return caught.value


@pytest.mark.ci
@every(
    ("estimator", "target", "name"),
    [
        (Sly(epsilon=1), "ward", "estimator"),
        (Foreign(), "ward", "estimator"),
        ("TinyClassifier", "ward", "estimator"),
        (TinyClassifier, "ward", "estimator"),
        (TinyClassifier(epsilon=lambda: 1), "ward", "epsilon"),
        (TinyClassifier(epsilon=1, bounds=compile("1", "x", "eval")), "ward", "bounds"),
        (TinyClassifier(epsilon=1, bounds=(0, [1.0] * 400_000)), "ward", "estimator"),
        (TinyClassifier(epsilon=1, bounds=np.array([object()])), "ward", "bounds"),
        (TinyClassifier(epsilon=1, bounds=np.zeros((2, 3, 4))), "ward", "bounds"),
        (TinyClassifier(epsilon=1, bounds=(0, 0)), "ward", "bounds"),
        (TinyClassifier(epsilon=1, bounds=([0, 0, 0], [1, 1, 1])), "ward", "bounds"),
        (TinyClassifier(epsilon=1, classes=[0, 1]), "ward", "classes"),
        (TinyClassifier(epsilon=1, classes=["A"]), "ward", "classes"),
        (TinyClassifier(epsilon=1, neighbours="replace"), "ward", "neighbours"),
        (TinyClassifier(epsilon=1, neighbours="other"), "ward", "neighbours"),
        (TinyClassifier(epsilon=-1), "ward", "epsilon"),
        (TinyClassifier(epsilon=float("nan")), "ward", "epsilon"),
        (TinyClassifier(epsilon=1), None, "target"),
        (TinyClassifier(epsilon=1), "wards", "target"),
        (TinyClassifier(epsilon=1), 3, "target"),
        (TinyScaler(epsilon=1), "ward", "target"),
    ],
)
def test_a_learner_that_is_refused_costs_nothing(estimator: Any, target: Any, name: str) -> None:
    error = refused(lambda curator: curator.fit(estimator, WARD, target=target), InvalidParameter)
    assert error.name == name
    assert refused(lambda curator: curator.plan_fit(estimator, WARD, target=target), InvalidParameter).name == name


def test_what_hangs_on_an_instance_is_left_behind() -> None:
    curator, _ = spied()
    given = TinyClassifier(epsilon=1)
    given.fit = lambda *_: pytest.fail("somebody else's fit")  # type: ignore[method-assign]
    given.get_params = lambda **_: {"epsilon": 0.001}
    given.__sklearn_clone__ = lambda: Sly(epsilon=1)
    assert str(curator.fit(given, WARD, target="ward").cost_.details) == "epsilon=1"


def test_a_learner_whose_plan_needs_the_number_of_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def needy(self: TinyScaler, n_features: int, n_samples: int) -> events.Event:
        raise AssertionError(self, n_features, n_samples)

    monkeypatch.setattr(TinyScaler, "plan_event", needy)
    fit = TinyScaler(epsilon=1)
    error = refused(lambda curator: curator.fit(fit, "SELECT age FROM visits"), InvalidParameter)
    assert "n_samples" in error.condition


def test_what_no_engine_reads_is_refused_before_it_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.plan.validation.DEEPEST", 1)
    refused(lambda curator: curator.fit(TinyScaler(epsilon=1), "SELECT charge FROM visits"), InvalidParameter)


def test_several_rows_of_a_person_only_where_the_learner_accounts_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    curator, _ = spied()
    monkeypatch.setattr(TinyClassifier, "accounts_rows_per_unit", False)
    with pytest.raises(InvalidParameter) as caught:
        curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", rows_per_unit=2)
    assert caught.value.name == "rows_per_unit"
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(InvalidParameter):
            curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", rows_per_unit=wrong)  # type: ignore[arg-type]
    assert charges(curator) == 0


@every(
    ("question", "target", "reason"),
    [
        ("SELECT age, COUNT(*) AS n FROM visits", "n", "aggregate"),
        ("SELECT age, ward FROM visits GROUP BY age, ward", "ward", "GROUP BY"),
        ("SELECT age, ward FROM visits ORDER BY age", "ward", "order"),
        ("SELECT age, ward FROM visits LIMIT 3", "ward", "LIMIT"),
        ("SELECT DISTINCT age, ward FROM visits", "ward", "DISTINCT"),
        ("SELECT *, ward FROM visits", "ward", "one by one"),
        ("SELECT patient, ward FROM visits", "ward", "whose row"),
        ("SELECT kind, ward FROM visits", "ward", "without public keys"),
        ("SELECT CAST('2020-01-01 10:00' AS TIMESTAMP) AS t, ward FROM visits", "ward", "moment"),
        ("SELECT age, charge FROM visits", "charge", "A class is"),
        ("SELECT ward FROM visits", "ward", "nothing to learn"),
        ("SELECT age, ward FROM nowhere", "ward", "nowhere"),
        ("SELECT age / charge AS x, ward FROM visits", "ward", "no public bounds"),
        ("DELETE FROM visits", "ward", "SELECT"),
        ("SELECT age, ward FROM visits; DROP TABLE visits", "ward", "one"),
        ("SELECT random() AS age, ward FROM visits", "ward", "random"),
    ],
)
def test_rows_that_are_refused_cost_nothing(question: str, target: str, reason: str) -> None:
    error = refused(lambda curator: curator.fit(TinyClassifier(epsilon=1), question, target=target), Exception)
    assert reason.casefold() in str(error).casefold()
    if isinstance(error, UnsupportedQuery):
        assert error.hint
        assert error.position is not None
        curator, _ = spied()
        for proposed in re.findall(r"`([^`]*)`", error.hint):
            curator.plan_fit(TinyScaler(epsilon=1), proposed)


def test_an_epsilon_of_the_call_is_the_learners() -> None:
    """It is charged and explained, and the estimator keeps its own."""
    curator, _ = spied()
    estimator = TinyClassifier(epsilon=3)
    plan = curator.plan_fit(estimator, WARD, target="ward", epsilon="0.5")
    model = curator.fit(estimator, WARD, target="ward", epsilon="0.5")
    assert (plan.cost.epsilon, model.cost_.epsilon, model.epsilon) == (Fraction(1, 2),) * 3
    assert (estimator.epsilon, str(curator.budget("visits").spent)) == (3, "epsilon=0.5")
    with pytest.raises(InvalidParameter, match="epsilon"):
        curator.fit(estimator, WARD, target="ward", epsilon=-1)


def test_those_who_may_not_ask_and_cannot_pay_read_nothing() -> None:
    estimator = TinyClassifier(epsilon=1)
    refused(lambda curator: curator.fit(estimator, WARD, target="ward", analyst="otto"), NotPermitted)
    refused(lambda curator: curator.fit(estimator, WARD, target="ward", analyst="nobody"), NotPermitted)
    error = refused(lambda curator: curator.fit(TinyClassifier(epsilon=3), WARD, target="ward"), InsufficientBudget)
    assert str(error.remaining) == "epsilon=2"


def test_a_cap_holds_for_fits() -> None:
    curator, spy = spied(Budget(epsilon=4))
    curator.appoint("ana", "analyst", account="visits", cap=Budget(epsilon=1))
    curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", analyst="ana")
    with pytest.raises(InsufficientBudget):
        curator.fit(TinyScaler(epsilon=1), "SELECT age FROM visits", analyst="ana")
    assert curator.fit(TinyClassifier(epsilon=1), WARD, target="ward", analyst="ana").replayed_
    assert spy.reads == 1


def test_a_public_table_needs_no_private_learner() -> None:
    curator, _ = spied()
    curator.public([{"age": 1}], name="ages", types={"age": "int"})
    with pytest.raises(UnsupportedQuery, match="public"):
        curator.fit(TinyScaler(epsilon=1), "SELECT age FROM ages")


def test_seeds_are_for_tests() -> None:
    with Curator(engine=Memory()) as real:
        real.protect(visits(3), name="visits", budget=Budget(epsilon=4), **OPTIONS)
        with pytest.raises(InvalidParameter) as caught:
            real.fit(TinyClassifier(epsilon=1, random_state=1), WARD, target="ward")
        assert caught.value.name == "random_state"
    secure = Curator.for_tests(engine=Memory(), bits=SecureBits())
    secure.protect(visits(3), name="visits", budget=Budget(epsilon=4), **OPTIONS)
    with pytest.raises(InvalidParameter):
        secure.fit(TinyClassifier(epsilon=1, random_state=1), WARD, target="ward")
    one, other = (
        clinic(unit=None).fit(TinyClassifier(epsilon=1, random_state=1), WARD, target="ward") for _ in range(2)
    )
    assert np.array_equal(one.centres_, other.centres_)
    assert one.private_ is False


def test_seeded_curators_repeat() -> None:
    models = [clinic(unit=None).fit(TinyScaler(epsilon=1), "SELECT age FROM visits") for _ in range(2)]
    assert np.array_equal(models[0].centre_, models[1].centre_)
    other = Curator.for_tests(engine=Memory(), bits=SeededBits(12))
    other.protect(visits(3, patients=200), name="visits", budget=Budget(epsilon=2), **{**OPTIONS, "unit": None})
    assert not np.array_equal(other.fit(TinyScaler(epsilon=1), "SELECT age FROM visits").centre_, models[0].centre_)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name, name="sklearn")

    curator, _ = spied()
    monkeypatch.setattr(lazy, "import_module", missing)
    with pytest.raises(MissingExtra, match="learn"):
        curator.plan_fit(TinyScaler(epsilon=1), "SELECT age FROM visits")


@pytest.mark.ci
def test_a_curator_alone_loads_no_learners() -> None:
    """The extra is optional, and importing it takes time."""
    code = "import sys, discreet.curator.curator; print('sklearn' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
