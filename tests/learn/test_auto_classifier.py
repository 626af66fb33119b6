"""The learner that works at a budget and a size: chosen by public numbers, and paid as planned whichever it is."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet.audit.queries.mechanism_recorder import MechanismCall, MechanismRecorder, watch_mechanisms
from discreet.errors import InvalidParameter
from discreet.learn import (
    AutoClassifier,
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    LogisticRegression,
    from_json,
    to_json,
)
from discreet.learn.selection import auto_classifier
from discreet.learn.selection.auto_classifier import loudness
from discreet.mechanisms import Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.privacy import Neighbours

X = uniforms((1500, 3), bits=SeededBits(1))
Y = X[:, 0] + X[:, 1] > 1
CASES = [(0.1, 0.0, 3), (1.0, 0.0, 3), (40.0, 0.0, 3), (0.01, 1e-6, 3), (3.0, 1e-6, 3)]


def fitted(epsilon: float, delta: float, **more: Any) -> AutoClassifier:
    common: dict[str, Any] = {"bounds": (0, 1), "classes": [False, True], "random_state": 1}
    return AutoClassifier(epsilon=epsilon, delta=delta, **(common | more)).fit(X, Y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("epsilon", "delta", "width"), CASES)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_all_that_is_released_costs_what_was_planned(epsilon: float, delta: float, width: int, neighbours: str) -> None:
    one = fitted(epsilon, delta, neighbours=neighbours)
    assert one.event_ == one.plan_event(width)
    assert accounting.epsilon(one.event_, delta, neighbours=Neighbours(neighbours)) <= epsilon * (1 + 1e-9)
    inner, counter = one.model_, one._counter(one._class_plan())
    relation = Neighbours(neighbours)
    spent = accounting.epsilon(inner.event_, delta, neighbours=relation)
    counted = 0.0 if counter is None else accounting.epsilon(counter.event, 0, neighbours=relation)
    assert spent + counted <= epsilon * (1 + 1e-9)


@pytest.mark.ci
def test_each_kind_is_chosen_somewhere() -> None:
    kinds = [type(fitted(epsilon, delta).model_) for epsilon, delta, _ in CASES]
    assert set(kinds) == {ExtraTreesClassifier, LogisticRegression}
    ring = np.abs(X[:, 0] - 0.5) < 0.25  # no line parts it
    one = AutoClassifier(epsilon=3, bounds=(0, 1), classes=[0, 1], random_state=1).fit(X, ring)
    assert type(one.model_) is DecisionTreeClassifier
    assert one.score(X, ring) > 0.85


def test_more_budget_or_rows_are_never_heard_less() -> None:
    for delta in (0.0, 1e-6):
        for width in (3, 60):
            found = [loudness(count, width, 2, 0.5, delta) for count in (10, 100, 10**3, 10**4, 10**6)]
            assert found == sorted(found)


def compared(table: Any, labels: Any, frozen: list[MechanismCall] | None = None, **more: Any) -> list[MechanismCall]:
    recorder = MechanismRecorder(SeededBits(4), frozen=frozen)
    common: dict[str, Any] = {"epsilon": 9, "delta": 0, "bounds": (0, 1), "classes": [0, 1]}
    with watch_mechanisms(recorder):
        AutoClassifier(**(common | more)).fit(table, labels)
    assert not recorder.strayed
    return recorder.made


def largest_verdict(neighbours: str) -> tuple[float, float]:
    """How far one row moves the last number, and how far it may."""
    worst, allowed = 0.0, 1.0
    for place in range(12):
        ends = ([place], []) if neighbours == "add_remove" else ([place], [place + 40])
        tables = [(np.vstack([X[100:900], X[kept]]), np.append(Y[100:900], Y[kept])) for kept in ends]
        one = compared(*tables[0], neighbours=neighbours)
        other = compared(*tables[1], one, neighbours=neighbours)
        last, moved = one[-1], other[-1]
        assert isinstance(last.mechanism, Laplace)
        worst = max(worst, abs(float(last.inputs[0]) - float(moved.inputs[0])))
        allowed = float(last.mechanism.sensitivity)
    return worst, allowed


@pytest.mark.ci
@pytest.mark.parametrize("neighbours", ["add_remove", pytest.param("replace", marks=pytest.mark.slow)])
def test_a_row_moves_the_verdict_by_no_more_than_is_told(neighbours: str) -> None:
    worst, allowed = largest_verdict(neighbours)
    assert 0 < worst <= allowed


@pytest.mark.ci
def test_a_verdict_that_counts_rows_double_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_classifier, "Laplace", partial(_halved, Laplace))
    worst, allowed = largest_verdict("add_remove")
    assert worst > allowed


def _halved(kind: Any, *, epsilon: Any, sensitivity: int) -> Any:
    return kind(epsilon=epsilon, sensitivity=Fraction(sensitivity, 2))


def test_integer_margins_predict_what_the_model_does() -> None:
    one = fitted(3.0, 1e-6)
    assert isinstance(one.model_, LogisticRegression)
    assert np.mean(one.classes_[one._places(one.model_, X)] == one.model_.predict(X)) > 0.998
    alone = [one._places(one.model_, X[[place]])[0] for place in range(50)]
    assert alone == one._places(one.model_, X)[:50].tolist()
    three = AutoClassifier(epsilon=9, bounds=(0, 1), classes=[0, 1, 2], random_state=1).fit(X, np.floor(3 * X[:, 0]))
    assert np.mean(three.classes_[three._places(three.model_, X)] == three.model_.predict(X)) > 0.998


def test_the_choice_follows_the_released_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Laplace, "release", lambda _, value, **__: np.zeros_like(value) + 7)
    few, many = (AutoClassifier(epsilon=3, delta=0, bounds=(0, 1), classes=[0, 1]).fit(X[:n], Y[:n]) for n in (3, 1500))
    assert few.count_ == many.count_ == 7
    assert type(few.model_) is type(many.model_) is ExtraTreesClassifier


def test_saved_and_loaded_it_predicts_the_same() -> None:
    for epsilon, delta, _ in CASES:
        one = fitted(epsilon, delta)
        again = from_json(to_json(one))
        assert (again.predict_proba(X) == one.predict_proba(X)).all()
        assert again.event_ == one.event_


def test_classes_that_are_found_and_a_constant_model() -> None:
    one = fitted(3.0, 1e-6, classes=None)
    assert one.classes_.tolist() == [False, True]
    assert one.event_ == one.plan_event(3)
    none = AutoClassifier(epsilon=1, bounds=(0, 1), random_state=1).fit(X[:1], Y[:1])
    assert none.constant_
    assert (from_json(to_json(none)).predict(X) == none.classes_[0]).all()


def test_bounds_are_needed_before_rows_are_read() -> None:
    with pytest.raises(InvalidParameter) as refused:
        AutoClassifier(classes=[0, 1]).plan_event(3)
    assert "bounds" in str(refused.value)
    assert auto_classifier.COUNT_SHARE < 1
