"""Networks with scikit-learn's interface: conformance, what meets the noise, what is refused, what is kept."""

from __future__ import annotations

import inspect
import math
import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="Deep learning needs torch, which is an extra.")

import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from torch import Tensor, nn

from discreet import accounting, deep, learn
from discreet.deep.check_surroundings import ModelState
from discreet.deep.clipping import PerExampleGradients
from discreet.deep.estimators import private_run
from discreet.deep.estimators.network_learner import NetworkLearner
from discreet.deep.estimators.private_run import at_least_one_of
from discreet.errors import InvalidParameter, MissingExtra
from discreet.learn.persistence import store
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import events
from tests.cases import every
from tests.learn.specimens import CLASSES, NO_ROWS, QUIET
from tests.learn.spying import Told, told

ROWS = 40
X = np.clip(normals((ROWS, 3), bits=SeededBits(5)), -3, 3)
LABELS = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
AMOUNTS = np.clip(2 * X[:, 0], -4, 4)
COMMON: dict[str, Any] = {
    "epsilon": 50,
    "bounds": (-3.0, 3.0),
    "size": 40,
    "batch_size": 20,
    "epochs": 2,
    "hidden": (4,),
}
NUMBERS = {"check_supervised_y_no_nan": QUIET, "check_estimators_empty_data_messages": NO_ROWS}
KINDS = ("Classifier", "Regressor")
each = pytest.mark.parametrize("kind", KINDS)


def made(kind: str, **changed: Any) -> Any:
    public = {"classes": ["no", "yes"]} if kind == "Classifier" else {"label_bounds": (-4, 4)}
    return getattr(deep, kind)(**{**COMMON, **public, "random_state": 7, **changed})


def target(kind: str) -> Any:
    return LABELS if kind == "Classifier" else AMOUNTS


def fitted(kind: str, rows: Any = X, y: Any = None, **changed: Any) -> Any:
    return made(kind, **changed).fit(rows, target(kind) if y is None else y)


@pytest.fixture(scope="module", autouse=True)
def priced() -> None:
    """Noise is calibrated once in a process, which takes seconds: no test is the first."""
    for kind in ("Classifier", "Regressor"):
        fitted(kind)


# ------------------------------------------------------------------------------------------------------- conformance


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "excused"), [("Classifier", CLASSES), ("Regressor", NUMBERS)])
def test_scikit_learn_accepts_it(kind: str, excused: Any) -> None:
    changed: dict[str, Any] = {"epsilon": 1000, "size": 50, "batch_size": 50, "epochs": 30, "hidden": (32,)}
    model = made(kind, **changed, optimizer="adam", learning_rate=0.05, random_state=None)
    if kind == "Classifier":
        model.set_params(classes=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that are skipped
        results = check_estimator(model, expected_failed_checks=dict(excused), on_fail=None)
    assert [one for one in results if one["status"] == "failed"] == []
    known = {one["check_name"] for one in results}
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(excused) & known


@pytest.mark.ci
@each
def test_a_constructor_only_stores_and_a_fit_changes_no_parameter(kind: str) -> None:
    model = made(kind)
    given = model.get_params(deep=False)
    again = type(model)(**given)
    assert all(again.get_params(deep=False)[name] is value for name, value in given.items())
    assert set(vars(again)) == set(given)
    own = inspect.signature(type(model)).parameters
    assert all(own[name].kind is inspect.Parameter.KEYWORD_ONLY for name in given if name != "model")
    before = str(store.write_parameters(model))
    model.fit(X, target(kind))
    assert str(store.write_parameters(model)) == before
    assert not hasattr(clone(model), "event_")


@pytest.mark.ci
@each
def test_what_was_planned_is_what_was_released(kind: str) -> None:
    model = made(kind, epsilon=2.0)
    planned = model.plan_event(3)
    model.fit(X, target(kind))
    assert model.event_ == planned == events.from_json(events.to_json(planned))
    assert 1.9 < model.privacy_spent_.epsilon <= 2
    assert accounting.epsilon(planned, 1e-6) <= 2
    assert isinstance(planned, events.Repeated)
    assert planned.count == 4


@pytest.mark.ci
@each
def test_the_event_is_what_meets_the_noise(kind: str) -> None:
    """Four steps on halves of the rows; every sum has one deviation, and the event tells the same."""
    seen = told(lambda: fitted(kind, clip="1/2"))
    event: Any = made(kind, clip="1/2").plan_event(3)
    assert len(seen) == event.count == 4
    assert event.event.probability == Fraction(1, 2)
    assert {one.sigma * 2 for one in seen} == {event.event.event.noise_multiplier}


def moves(kind: str, rows: Any, other: Any, **changed: Any) -> list[float]:
    """How far one row moves what meets the noise, in deviations; all rows are in all batches, outputs are the same."""
    y = target(kind)
    size = sum(array.size for array in fitted(kind, **changed).weights_.values())
    outputs = [normals(size, bits=SeededBits(step)) for step in range(2)]
    options = {"size": ROWS, "batch_size": ROWS, "physical_batch": 1, **changed}

    def run(given: Any) -> list[Told]:
        return told(lambda: fitted(kind, given, y[: len(given)], **options), outputs)

    pairs = zip(run(rows), run(other), strict=True)
    return [float(np.linalg.norm(a.value - b.value)) / float(a.sigma) for a, b in pairs]


@pytest.mark.ci
@pytest.mark.sampled(2)
@each
@pytest.mark.parametrize("row", [[1e300, math.nan, -math.inf], [3.0, -3.0, 3.0]])
def test_one_row_moves_no_more_than_the_event_says(kind: str, row: list[float]) -> None:
    whole = np.vstack([X[:-1], [row]])
    event: Any = made(kind, size=ROWS, batch_size=ROWS).plan_event(3)
    most = 1 / float(event.event.event.noise_multiplier)
    found = moves(kind, whole, X[:-1])
    assert len(found) == 2
    assert max(found) <= most
    assert max(found) > most / 100  # the test would see more


@pytest.mark.ci
def test_a_mutant_that_does_not_clip_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def unclipped(self: PerExampleGradients, clip: Any) -> dict[str, Tensor]:
        del clip
        squared = self.squared_norms()
        return self.weighted_sums({name: torch.full_like(values, 9.0) for name, values in squared.items()})

    event: Any = made("Classifier", size=ROWS, batch_size=ROWS).plan_event(3)
    most = 1 / float(event.event.event.noise_multiplier)
    assert max(moves("Classifier", X, X[:-1], physical_batch=256)) <= most
    monkeypatch.setattr(PerExampleGradients, "clipped_sum", unclipped)
    assert max(moves("Classifier", X, X[:-1], physical_batch=256)) > most


CHECKED = 25  # more calls than the check of a model makes


class Keeping(nn.Module):
    """Keeps rows where nobody adds noise, once it was called more often than it is checked."""

    def __init__(self, features: int, outputs: int) -> None:
        super().__init__()
        self.layer, self.frozen = nn.Linear(features, outputs), nn.Linear(features, 1).requires_grad_(False)
        self.register_buffer("kept", torch.zeros(features))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > CHECKED:
            self.kept.copy_(x[0])
            with torch.no_grad():
                self.frozen.weight.copy_(x[:1])
        return self.layer(x)


@pytest.mark.ci
def test_a_network_that_keeps_rows_releases_none() -> None:
    with pytest.raises(InvalidParameter, match="to keep nothing from batch to batch"):
        fitted("Classifier", model=Keeping, epochs=10)


@pytest.mark.ci
def test_what_no_noisy_step_changes_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if nothing had looked at it."""
    monkeypatch.setattr(ModelState, "check", lambda _: None)
    model = fitted("Classifier", model=Keeping, epochs=10)
    assert not model.weights_["kept"].any()
    assert not any(np.allclose(model.weights_["frozen.weight"], np.float32(row / 3)) for row in X)
    assert set(model.weights_) == {"kept", "layer.weight", "layer.bias", "frozen.weight", "frozen.bias"}


@each
def test_neighbours_have_models_of_one_shape(kind: str) -> None:
    y = target(kind)
    outlier = np.vstack([X[1:], [[1e300, math.nan, -math.inf]]])
    models = [fitted(kind), fitted(kind, X[1:], y[1:]), fitted(kind, outlier, y), fitted(kind, X[:1], y[:1])]
    shapes = [{name: array.shape for name, array in model.weights_.items()} for model in models]
    assert all(shape == shapes[0] for shape in shapes)
    assert len({model.event_ for model in models}) == 1
    assert all(np.isfinite(array).all() for model in models for array in model.weights_.values())
    assert all(len(np.atleast_1d(value)) != ROWS for value in vars(models[0]).values())


def test_rows_without_a_label_that_counts_count_nowhere() -> None:
    again = np.vstack([X[5:6], X])
    assert same(fitted("Classifier"), fitted("Classifier", again, np.append("maybe", LABELS)))
    assert same(fitted("Regressor"), fitted("Regressor", again, np.append(math.nan, AMOUNTS)))


def same(one: Any, other: Any) -> bool:
    return all(np.array_equal(one.weights_[name], other.weights_[name]) for name in one.weights_)


@each
def test_a_seed_repeats_and_is_marked_and_leaves_others_numbers_alone(kind: str) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    one, other = fitted(kind), fitted(kind)
    assert torch.equal(before, torch.get_rng_state())
    assert same(one, other)
    assert (one.private_, fitted(kind, random_state=None).private_) == (False, True)
    assert not same(one, fitted(kind, random_state=8))


# --------------------------------------------------------------------------------------------------------- learning


@pytest.mark.slow
def test_it_learns() -> None:
    rows = np.clip(normals((2000, 2), bits=SeededBits(1)), -3, 3)
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(int)  # no line tells these apart
    options: dict[str, Any] = {
        "bounds": (-3, 3),
        "size": 2000,
        "batch_size": 200,
        "optimizer": "adam",
        "random_state": 1,
    }
    model = deep.Classifier(epsilon=8, classes=[0, 1], epochs=15, learning_rate=0.05, **options).fit(rows, labels)
    assert model.score(rows, labels) > 0.9
    regressor = deep.Regressor(epsilon=8, label_bounds=(-3, 3), epochs=15, learning_rate=0.03, **options)
    assert regressor.fit(rows, rows[:, 0]).score(rows, rows[:, 0]) > 0.8


def test_what_is_predicted() -> None:
    model = fitted("Classifier")
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert list(model.predict(X)) == [model.classes_[place] for place in chances.argmax(axis=1)]
    assert np.allclose(model.predict_proba(X[5:6]), chances[5:6])
    assert np.array_equal(model.predict_proba([[99.0, 0.0, 0.0]]), model.predict_proba([[3.0, 0.0, 0.0]]))
    assert np.array_equal(model.predict_proba([[math.nan] * 3]), model.predict_proba([[0.0] * 3]))
    assert isinstance(model.network(), nn.Module)
    assert np.abs(fitted("Regressor").predict(1e9 * X)).max() <= 4


def test_tables_with_names() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    bounds = {"c": (-3, 3), "a": (-3, 3), "b": (-3, 3)}
    content = dict(zip("abc", X.T, strict=True))
    models = [fitted("Classifier", frame(content), bounds=bounds) for frame in (pandas.DataFrame, polars.DataFrame)]
    assert same(*models)
    assert same(models[0], fitted("Classifier"))
    assert list(models[0].predict(pandas.DataFrame(content))) == list(models[1].predict(polars.DataFrame(content)))


@pytest.mark.slow
def test_classes_that_are_not_public_are_found_and_paid() -> None:
    model = fitted("Classifier", classes=None)
    assert list(model.classes_) == ["no", "yes"]
    assert isinstance(model.event_, events.Composed)
    assert model.event_ == made("Classifier", classes=None).plan_event(3)
    alone = fitted("Classifier", X[:1], LABELS[:1], classes=None, epsilon=0.5)
    assert (alone.constant_, alone.weights_, len(alone.predict(X))) == (True, {}, ROWS)
    assert alone.predict_proba(X).shape == (ROWS, 1)


@pytest.mark.slow
def test_several_rows_of_a_person() -> None:
    """Both rows of a person in one batch are what the event of a person covers; the price is that of the event."""
    one, two = (made("Classifier", epsilon=1, rows_per_unit=rows).plan_event(3) for rows in (1, 2))
    assert isinstance(two, events.Repeated)
    assert isinstance(two.event, events.PoissonSampled)
    assert two.event.probability == 1 - Fraction(1, 2) ** 2
    assert accounting.epsilon(two, 1e-6) <= 1

    def sigmas(rows: int) -> set[Fraction]:
        return {one.sigma for one in told(lambda: fitted("Classifier", epsilon=1, rows_per_unit=rows))}

    (alone,), (sigma,) = sigmas(1), sigmas(2)
    inner: Any = two.event.event
    assert sigma == 2 * inner.noise_multiplier
    assert sigma > 2 * alone
    assert one != two
    assert fitted("Classifier", epsilon=1, rows_per_unit=2).event_ == two


@every(("rows", "rate"), [(1, Fraction(1, 3)), (3, Fraction(1, 7)), (1000, Fraction(1, 10**6))])
def test_the_chance_of_a_person_is_rounded_up(rows: int, rate: Fraction) -> None:
    exact = 1 - (1 - rate) ** rows
    assert exact <= at_least_one_of(rows, rate) <= exact + Fraction(1, 1 << 60)


# ---------------------------------------------------------------------------------------------------------- refusals


class Batchwise(nn.Module):
    """Mixes examples without saying so."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x - x.mean(0))


def failing(*_: Any) -> nn.Module:
    raise RuntimeError("no such network")


@every(
    ("kind", "changed", "name"),
    [
        ("Classifier", {"bounds": None}, "bounds"),
        ("Classifier", {"bounds": (3, -3)}, "bounds"),
        ("Classifier", {"bounds": ([0.0] * 4, [1.0] * 4)}, "bounds"),
        ("Classifier", {"size": None}, "size"),
        ("Classifier", {"size": 0}, "size"),
        ("Classifier", {"batch_size": 41}, "batch_size"),
        ("Classifier", {"epochs": 0}, "epochs"),
        ("Classifier", {"epochs": 10**9}, "epochs"),
        ("Classifier", {"epsilon": -1}, "epsilon"),
        ("Classifier", {"delta": 0}, "delta"),
        ("Classifier", {"delta": None}, "delta"),
        ("Classifier", {"classes": ["no"]}, "classes"),
        ("Classifier", {"classes": None, "rows_per_unit": 2}, "classes"),
        ("Classifier", {"rows_per_unit": 0}, "rows_per_unit"),
        ("Classifier", {"neighbours": "replace"}, "neighbours"),
        ("Classifier", {"optimizer": "lbfgs"}, "optimizer"),
        ("Classifier", {"learning_rate": -1}, "learning_rate"),
        ("Classifier", {"clip": 0}, "bound"),
        ("Classifier", {"clipping": "none"}, "clipping"),
        ("Classifier", {"shape": (2, 2)}, "shape"),
        ("Classifier", {"hidden": (0,)}, "hidden"),
        ("Classifier", {"hidden": (2,) * 17}, "hidden"),
        ("Classifier", {"random_state": "x"}, "random_state"),
        ("Classifier", {"model": "nobody"}, "model"),
        ("Classifier", {"model": failing}, "model"),
        ("Classifier", {"model": 3}, "model"),
        ("Classifier", {"model": lambda _, __: "a text"}, "model"),
        ("Classifier", {"model": lambda features, classes: nn.Linear(features + 1, classes)}, "model"),
        ("Classifier", {"model": nn.Linear(3, 3)}, "model"),
        ("Classifier", {"model": nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))}, "BatchNorm1d"),
        ("Classifier", {"model": Batchwise()}, "losses"),
        ("Classifier", {"model": lambda *_: nn.Sequential(nn.Linear(3, 2)).requires_grad_(False)}, "model"),
        ("Regressor", {"label_bounds": None}, "label_bounds"),
        ("Regressor", {"model": nn.Linear(3, 2)}, "model"),
    ],
)
def test_what_is_refused_is_refused_before_any_noise(kind: str, changed: dict[str, Any], name: str) -> None:
    seen: list[Told] = []
    with pytest.raises(InvalidParameter) as caught:
        seen += told(lambda: fitted(kind, **changed))
    assert seen == []
    assert name in (caught.value.name, str(caught.value.value)) or name in str(caught.value)


def test_a_function_that_fails_says_why() -> None:
    with pytest.raises(InvalidParameter, match="no such network"):
        fitted("Classifier", model=failing)


def test_the_number_of_rows_is_never_read_for_the_plan() -> None:
    y = target("Classifier")
    assert fitted("Classifier", X[:3], y[:3]).event_ == fitted("Classifier").event_
    assert fitted("Classifier", np.zeros((0, 3)), y[:0]).event_ == fitted("Classifier").event_


def test_a_run_that_plans_something_else_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Callable[..., Any] = private_run._price

    def wrong(run: Any) -> Any:
        price = honest(run)
        return private_run.TrainingPrice(price.event, price.planned, price.noise / 2)

    monkeypatch.setattr(private_run, "_price", wrong)
    with pytest.raises(Exception, match="something else than it planned"):
        fitted("Classifier")


# ------------------------------------------------------------------------------------------------------------- kept


@each
def test_it_is_kept_as_text_and_is_the_same_again(kind: str, tmp_path: Path) -> None:
    model = fitted(kind)
    learn.save(model, tmp_path / "model.json")
    again = learn.load(tmp_path / "model.json")
    assert type(again) is type(model)
    assert (again.event_, again.privacy_spent_, again.private_) == (model.event_, model.privacy_spent_, False)
    assert (again.epsilon, again.delta) == (model.epsilon, model.delta)
    assert same(model, again)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_code_is_kept_by_name_only(tmp_path: Path) -> None:
    one = fitted("Classifier", model=nn.Linear)
    for model in (one, fitted("Classifier", model=nn.Linear(3, 2))):
        with pytest.raises(InvalidParameter, match="register_model"):
            learn.save(model, tmp_path / "model.json")
    deep.register_model("line_for_tests", nn.Linear)
    deep.register_model("line_for_tests", nn.Linear)
    named = fitted("Classifier", model="line_for_tests")
    text = learn.to_json(named)
    assert same(named, learn.from_json(text))
    forgotten = learn.from_json(text.replace("line_for_tests", "line_of_nobody"))
    with pytest.raises(InvalidParameter, match="line_of_nobody"):
        forgotten.predict(X)
    with pytest.raises(InvalidParameter) as caught:
        deep.register_model("line_for_tests", failing)
    assert caught.value.name == "name"


def test_a_text_with_others_weights_is_refused() -> None:
    model = learn.from_json(learn.to_json(fitted("Classifier")))
    model.weights_ = {"1.weight": np.zeros((4, 3), np.float32)}
    with pytest.raises(InvalidParameter, match="weights"):
        model.predict(X)


def test_a_subclass_is_no_learner_of_ours() -> None:
    class Sly(deep.Classifier):
        pass

    with pytest.raises(InvalidParameter):
        store.name_of(Sly())
    assert issubclass(Sly, NetworkLearner)
    assert [store.kind_named(f"deep.{kind}") for kind in KINDS] == [getattr(deep, kind) for kind in KINDS]


@pytest.mark.slow
def test_images_go_through_a_convolution() -> None:
    images = np.zeros((30, 64))
    images[::2, :32] = 255
    model = deep.Classifier(
        "cnn", epsilon=20, bounds=(0, 255), classes=[0, 1], shape=(1, 8, 8), size=30, batch_size=15, random_state=1
    )
    model.fit(images, np.arange(30) % 2)
    assert model.score(images, np.arange(30) % 2) == 1
    assert model.weights_["0.weight"].shape == (16, 1, 5, 5)


def test_without_scikit_learn_the_trainer_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str, what: str) -> Any:
        raise MissingExtra("sklearn", what, "learn")

    monkeypatch.setattr(deep, "load", missing)
    assert issubclass(deep.Trainer, object)
    with pytest.raises(MissingExtra):
        _ = deep.Classifier
    with pytest.raises(AttributeError):
        _ = deep.Nothing
