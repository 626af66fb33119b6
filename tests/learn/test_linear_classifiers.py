"""Logistic regression and support vectors as their users see them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone

from discreet.audit import distinguish
from discreet.errors import InvalidParameter
from discreet.learn import LinearSVC, LogisticRegression
from discreet.learn.linear.surveyed_fit import SurveyedFit
from discreet.mechanisms import Gaussian, KNorm
from discreet.noise import SeededBits
from discreet.noise.experiment import normals, uniforms
from discreet.privacy import ApproxDP, Neighbours, PureDP, events
from discreet.statistics.row_sums import UNIT

Floats = NDArray[np.float64]

KINDS: list[type[Any]] = [LogisticRegression, LinearSVC]
FAR = np.array([0.4, -0.3, 0.1])


def simulated(count: int, classes: int = 2, seed: int = 1) -> tuple[Floats, NDArray[np.int64]]:
    """Rows around a point away from zero, and labels of a linear model."""
    X = FAR + 0.25 * normals((count, 3), bits=SeededBits(seed))
    if classes == 2:
        return X, (uniforms(count, bits=SeededBits(seed + 1)) < expit((X - FAR) @ [12.0, -8.0, 0.0])).astype(np.int64)
    angles = np.arange(classes) * 2 * np.pi / classes
    scores = (X[:, :2] - FAR[:2]) @ np.stack([np.cos(angles), np.sin(angles)])
    return X, np.argmax(scores, axis=1)


def best(X: Floats, y: NDArray[np.int64]) -> float:
    """The accuracy of the model that the labels of two classes come from."""
    return float(np.mean(((X - FAR) @ [12.0, -8.0, 0.0] > 0) == y))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", list(Neighbours))
def test_a_fit_learns_what_there_is_to_learn(kind: type[Any], relation: Neighbours) -> None:
    X, y = simulated(5000)
    model = kind(epsilon=1, norm_bound=1, classes=[0, 1], neighbours=relation, random_state=1).fit(X, y)
    assert model.score(X, y) > best(X, y) - 0.01
    assert model.event_ == model.plan_event(3)
    assert isinstance(model.privacy_spent_, ApproxDP)
    assert model.privacy_spent_.epsilon <= 1
    assert model.private_ is False


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["output", "objective"])
def test_other_methods_learn_too(kind: type[Any], method: str) -> None:
    X, y = simulated(5000)
    model = kind(epsilon=2, norm_bound=1, classes=[0, 1], method=method, random_state=1)
    if kind is LinearSVC and method == "objective":
        with pytest.raises(InvalidParameter, match="method"):
            model.fit(X, y)
        return
    assert model.fit(X, y).score(X, y) > best(X, y) - 0.02
    assert model.event_ == model.plan_event(3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", list(Neighbours))
def test_without_a_delta_fits_are_pure(kind: type[Any], relation: Neighbours) -> None:
    X, y = simulated(5000)
    model = kind(epsilon=2, delta=0, norm_bound=1, classes=[0, 1], neighbours=relation, random_state=1).fit(X, y)
    assert model.privacy_spent_ == PureDP(2)
    assert model.event_ == model.plan_event(3)
    assert model.score(X, y) > best(X, y) - 0.01
    method = "objective" if kind is LogisticRegression else "gradient"
    assert clone(model).set_params(method=method).fit(X, y).coef_.tolist() == model.coef_.tolist()


def test_output_perturbation_without_a_delta_is_there_for_those_who_ask() -> None:
    X, y = simulated(5000)
    model = LogisticRegression(epsilon=2, delta=0, norm_bound=1, classes=[0, 1], method="output", random_state=1)
    assert model.fit(X, y).score(X, y) > best(X, y) - 0.03
    assert isinstance(model.privacy_spent_, PureDP)


@pytest.mark.parametrize("method", ["gradient", "output"])
def test_more_weights_than_noise_is_drawn_for_are_refused_before_anything_is_paid(method: str) -> None:
    model = LogisticRegression(delta=0, norm_bound=1, classes=list(range(200)), method=method)
    with pytest.raises(InvalidParameter, match="dimension"):
        model.plan_event(60)
    model.set_params(classes=[0, 1]).plan_event(9000)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_many_classes(kind: type[Any]) -> None:
    X, y = simulated(6000, classes=4)
    model = kind(epsilon=4, norm_bound=1, random_state=1).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.coef_.shape == (4, 3)
    assert model.score(X, y) > 0.85
    if kind is LogisticRegression:
        assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(len(X)))
    with pytest.raises(InvalidParameter, match="two classes"):
        LogisticRegression(norm_bound=1, classes=[0, 1, 2], method="objective").plan_event(3)


@pytest.mark.ci
def test_coefficients_are_in_the_units_of_the_data() -> None:
    X, y = simulated(20_000)
    shifted = X * [1, 10, 100] + [0, 5, -7]
    bounds = (np.array([-0.6, -8, -97]), np.array([1.4, 12, 103]))
    model = LogisticRegression(epsilon=20, bounds=bounds, classes=[0, 1], steps=400, random_state=1).fit(shifted, y)
    assert model.coef_[0] * [1, 10, 100] == pytest.approx([12, -8, 0], abs=2.5)  # clipped gradients pull to zero
    margins = shifted @ model.coef_[0] + model.intercept_[0]
    assert model.decision_function(shifted) == pytest.approx(margins)
    assert model.predict_proba(shifted)[:, 1] == pytest.approx(expit(margins))


def test_no_intercept_means_none() -> None:
    X, y = simulated(1000)
    model = LogisticRegression(norm_bound=1, classes=[0, 1], fit_intercept=False, random_state=1).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    wide = LogisticRegression(bounds=(-1, 2), classes=[0, 1], fit_intercept=False, random_state=1).fit(X, y)
    assert wide.intercept_.tolist() == [0.0]


class Spy:
    """Keeps every release of a vector and what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.drawn: list[Any] = []
        self.given: list[Any] = []
        for kind in (Gaussian, KNorm):
            monkeypatch.setattr(kind, "release", self._spied(kind.release))

    def _spied(self, honest: Any) -> Any:
        def release(mechanism: Any, value: Any, **named: Any) -> Any:
            self.drawn.append(mechanism)
            self.given.append(value)
            return honest(mechanism, value, **named)

        return release


def pays_for(event: events.Event, spy: Spy, steps: int) -> bool:
    """Whether an event is a survey, as many equal steps and a comparison, as mechanisms drew them, and no more."""
    assert isinstance(event, events.Composed)
    first, whole, last = event.events
    survey, *each, compared = (mechanism.event for mechanism in spy.drawn)
    if (survey, compared) != (first, last) or len(each) != steps or set(each) != {each[0]}:
        return False
    if isinstance(whole, events.Pure):
        return bool(whole.epsilon == steps * each[0].epsilon)
    assert isinstance(whole, events.Gaussian)
    used, paid = steps / each[0].noise_multiplier ** 2, 1 / whole.noise_multiplier**2  # of mu^2; roots are rounded up
    return bool(paid * Fraction(10**9 - 1, 10**9) < used <= paid)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("delta", [1e-6, 0])
def test_the_event_is_the_noise_that_was_drawn(
    kind: type[Any], relation: Neighbours, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = simulated(50)
    spy = Spy(monkeypatch)
    model = kind(delta=delta, norm_bound=1, classes=[0, 1], steps=7, neighbours=relation, random_state=1).fit(X, y)
    assert model.event_ == model.plan_event(3)
    assert pays_for(model.event_, spy, 7)


@pytest.mark.parametrize("count", [0, 50, 3000])
@pytest.mark.parametrize("intercept", [True, False])
def test_pure_steps_that_are_chosen_cost_what_was_planned(
    count: int, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = simulated(count)
    spy = Spy(monkeypatch)
    model = LogisticRegression(
        epsilon=3, delta=0, norm_bound=1, classes=[0, 1], method="gradient", fit_intercept=intercept, random_state=1
    ).fit(X, y)
    drawn = [mechanism.epsilon for mechanism in spy.drawn]
    last = drawn[-1:] if intercept else []
    steps = drawn[1 : len(drawn) - len(last)]
    assert model.event_ == events.Composed([events.Pure(each) for each in (drawn[0], sum(steps), *last)])
    assert sum(drawn) == 3


@pytest.mark.parametrize("norm_bound", [1.0, 1000.0])
def test_noise_is_right_for_any_norm(norm_bound: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """diffprivlib 0.6 has too little noise for norms above 1: at 1000 an epsilon of 1 is one of 5.5."""
    spy = Spy(monkeypatch)
    far = norm_bound * np.array([[1.0, 0.0], [0.0, 3.0]])
    sums = {}
    for name, rows in (("both", far), ("one", far[:1])):
        spy.drawn.clear()
        spy.given.clear()
        LogisticRegression(norm_bound=norm_bound, classes=[0, 1], steps=1, random_state=1).fit(
            rows, [1, 0][: len(rows)]
        )
        sums[name] = spy.given[0]
    moved = np.linalg.norm((sums["both"] - sums["one"]).astype(float))
    survey, step, _ = spy.drawn
    assert 0.9 * float(survey.sensitivity) <= moved <= float(survey.sensitivity)
    plan = LogisticRegression(norm_bound=1, classes=[0, 1], steps=1).plan_event(2)
    assert pays_for(plan, spy, 1)
    assert step.sensitivity == UNIT // 2


def test_nothing_but_the_release_tells_how_many_rows_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = simulated(40)
    calls = []
    for count in (40, 39, 1, 0):
        with monkeypatch.context() as patch:
            spy = Spy(patch)
            model = LogisticRegression(norm_bound=1, classes=[0, 1], steps=5, random_state=1).fit(X[:count], y[:count])
            calls.append(([(each.sigma, each.sensitivity, each.grid) for each in spy.drawn], model.event_))
            public = {name: value for name, value in vars(model).items() if name.endswith("_")}
            assert not any(isinstance(value, int) and value == count for value in public.values() if count > 5)
    assert all(each == calls[0] for each in calls)


def test_rows_that_are_missing_far_or_of_no_class_do_no_harm() -> None:
    X, y = simulated(2000)
    X[::50, 0], X[1::50, 1], X[2::50, 2] = np.nan, np.inf, 1e300
    y[3::50] = 7
    model = LogisticRegression(epsilon=2, norm_bound=1, classes=[0, 1], random_state=1).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert set(model.predict(X)) <= {0, 1}
    good = np.isfinite(X).all(axis=1) & (y < 2) & (np.abs(X) < 10).all(axis=1)
    assert model.score(X[good], y[good]) > best(X[good], y[good]) - 0.02


def test_missing_labels_are_no_class() -> None:
    X, y = simulated(300)
    labels = np.where(np.arange(300) % 3 == 0, np.nan, y.astype(float))
    model = LogisticRegression(epsilon=8, norm_bound=1, random_state=1).fit(X, labels)
    assert model.classes_.tolist() == [0.0, 1.0]


def test_a_fit_without_public_bounds_is_refused_and_parameters_are_kept() -> None:
    X, y = simulated(20)
    with pytest.raises(InvalidParameter, match="norm_bound"):
        LogisticRegression().fit(X, y)
    with pytest.raises(InvalidParameter, match="method"):
        LogisticRegression(norm_bound=1, method="magic").fit(X, y)
    with pytest.raises(InvalidParameter, match="steps"):
        LogisticRegression(norm_bound=1, steps=0).plan_event(3)
    with pytest.raises(InvalidParameter, match="C="):
        LogisticRegression(norm_bound=1, method="output", C=10).plan_event(3)
    model = LogisticRegression(norm_bound=1, classes=[0, 1], random_state=3)
    before = clone(model).get_params()
    assert model.fit(X, y).get_params() == before


def test_a_survey_that_is_not_paid_for_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that tells of a survey with the noise of a comparison: what was drawn is more than what was told."""
    X, y = simulated(50)

    def told(self: SurveyedFit) -> events.Event:
        assert self.comparison is not None
        return events.Composed([self.comparison.event, self.method.event, self.comparison.event])

    monkeypatch.setattr(SurveyedFit, "event", property(told))
    spy = Spy(monkeypatch)
    model = LogisticRegression(norm_bound=1, classes=[0, 1], steps=7, random_state=1).fit(X, y)
    assert not pays_for(model.event_, spy, 7)


def weights_of(model: Any) -> Any:
    """From a table to the weights that a fit releases for it."""

    def weights(table: tuple[Floats, NDArray[np.int64]]) -> list[float]:
        fitted = model.fit(*table)
        return [*fitted.coef_[0], *fitted.intercept_]

    return weights


def repeated(row: list[float], count: int) -> tuple[Floats, NDArray[np.int64]]:
    return np.array([row] * count), np.ones(count, dtype=np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("norm_bound", [1.0, 1000.0])
@pytest.mark.parametrize(
    ("kind", "method"), [(LogisticRegression, "gradient"), (LogisticRegression, "output"), (LinearSVC, "gradient")]
)
def test_nobody_tells_two_neighbours_apart(kind: type[Any], method: str, norm_bound: float) -> None:
    model = kind(norm_bound=norm_bound, classes=[0, 1], method=method, steps=2)
    far = [norm_bound, 0.0]
    found = distinguish(
        weights_of(model), repeated(far, 1), repeated(far, 2), event=model.plan_event(2), delta=1e-6, runs=600
    )
    assert found.passed


@pytest.mark.slow
def test_the_audit_of_weights_sees_tables_that_are_no_neighbours() -> None:
    model = LogisticRegression(norm_bound=1000, classes=[0, 1], steps=2)
    far = [1000.0, 0.0]
    found = distinguish(
        weights_of(model), repeated(far, 1), repeated(far, 300), event=model.plan_event(2), delta=1e-6, runs=300
    )
    assert not found.passed
