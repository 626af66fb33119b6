"""What every learner promises, whichever it is."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils.estimator_checks import check_estimator

from discreet import learn
from discreet.errors import InvalidParameter
from discreet.learn.learner import Learner
from discreet.learn.persistence import store
from discreet.privacy import events
from tests.learn.specimens import SPECIMENS, Specimen

each = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)


def shapes(model: Learner) -> dict[str, Any]:
    """The names of fitted attributes, with types and shapes; which learner was chosen follows from a released count."""
    own = {name: value for name, value in vars(model).items() if name not in {*model.get_params(), "model_"}}
    return {name: (type(value).__name__, np.shape(value)) for name, value in own.items() if name != "privacy_spent_"}


def planned(specimen: Specimen, model: Learner) -> events.Event:
    """The event before any data, from public facts."""
    given = {"classes": getattr(model, "classes_", None), "n_classes": len(getattr(model, "classes_", ()))}
    wanted = inspect.signature(type(model).plan_event).parameters
    X, _ = specimen.data
    event: events.Event = model.plan_event(
        X.shape[1], **{name: value for name, value in given.items() if name in wanted and value is not None}
    )
    return event


def outputs(model: Any, X: Any) -> list[Any]:
    """Everything that a fitted model tells about rows."""
    names = ("predict", "predict_proba", "decision_function", "transform")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


def test_every_exported_learner_has_a_specimen() -> None:
    assert set(store.kinds()) == {specimen.name for specimen in SPECIMENS} | {"Pipeline"}  # which is tested apart


def test_whatever_is_exported_is_called_by_its_own_name() -> None:
    assert all(kind.__name__ == name for name, kind in store.kinds().items())
    assert all(getattr(learn, name) is kind for name, kind in store.kinds().items())


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "specimen",
    [pytest.param(one, id=one.name, marks=pytest.mark.slow if one.slow else ()) for one in SPECIMENS],
)
def test_scikit_learn_accepts_it(specimen: Specimen) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that are skipped
        model = specimen.make(**specimen.checked)
        results = check_estimator(model, expected_failed_checks=dict(specimen.excused), on_fail=None)
    failed = [f"{one['check_name']}: {one['exception']!r}" for one in results if one["status"] == "failed"]
    assert failed == []
    known = {one["check_name"] for one in results}  # versions of scikit-learn add checks
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(specimen.excused) & known


@each
def test_a_constructor_only_stores(specimen: Specimen) -> None:
    model = specimen.make()
    given = model.get_params(deep=False)
    again = type(model)(**given)
    assert all(again.get_params(deep=False)[name] is value for name, value in given.items())
    assert set(vars(again)) == set(given)
    assert clone(model).get_params(deep=False).keys() == given.keys()
    signature = inspect.signature(type(model)).parameters
    common = [signature[name] for name in ("epsilon", "delta", "neighbours", "random_state")]
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in common)


@each
def test_a_fit_changes_no_parameter(specimen: Specimen) -> None:
    model = specimen.ready()
    before = str(store.write_parameters(model))
    X, y = specimen.data
    model.fit(X) if y is None else model.fit(X, y)
    assert str(store.write_parameters(model)) == before


@pytest.mark.sampled(4)
@each
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_what_was_planned_is_what_was_released(specimen: Specimen, neighbours: str) -> None:
    model = specimen.fit(epsilon=2.0, neighbours=neighbours)
    assert planned(specimen, model) == model.event_
    assert events.from_json(events.to_json(model.event_)) == model.event_


@each
def test_it_refuses_to_fit_without_public_bounds(specimen: Specimen) -> None:
    missing = {name: None for name in specimen.public if name in specimen.make().get_params()}
    assert missing
    with pytest.raises(InvalidParameter, match=r"[Pp]ass .*bound") as caught:
        specimen.fit(**missing)
    assert caught.value.name in {name.split("__")[-1] for name in missing}


@pytest.mark.sampled(4)
@each
def test_a_seed_is_marked_and_none_is_private(specimen: Specimen) -> None:
    assert specimen.fit(random_state=1).private_ is False
    assert specimen.fit(random_state=None).private_ is True


@pytest.mark.sampled(4)
@each
def test_the_same_seed_gives_the_same_model(specimen: Specimen) -> None:
    assert store.to_json(specimen.fit(epsilon=1.0)) == store.to_json(specimen.fit(epsilon=1.0))


@pytest.mark.sampled(4)
@each
def test_neighbours_have_models_of_one_shape(specimen: Specimen) -> None:
    X, y = specimen.data
    whole = specimen.fit(epsilon=1.0)
    less = specimen.fit(X[1:], None if y is None else y[1:], epsilon=1.0)
    outlier = np.vstack([X[1:], [[1e300, np.nan, -np.inf]]])
    odd = specimen.fit(outlier, y, epsilon=1.0)
    few = specimen.fit(X[:1], None if y is None else y[:1], epsilon=1.0)
    assert shapes(whole) == shapes(less) == shapes(odd) == shapes(few)
    assert whole.event_ == less.event_ == odd.event_ == few.event_


@pytest.mark.sampled(3)
@each
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_no_number_of_rows_is_an_error(specimen: Specimen, rows: int) -> None:
    X, y = specimen.data
    model = specimen.fit(X[:rows], None if y is None else y[:rows], epsilon=0.5)
    assert all(len(found) == len(X) for found in outputs(model, X))


@pytest.mark.sampled(4)
@each
def test_a_label_that_is_no_class_is_no_error(specimen: Specimen) -> None:
    X, y = specimen.data
    if y is None or not is_classifier(specimen.make()):
        pytest.skip("It has no classes.")
    one, other = specimen.fit(X, y), specimen.fit(np.vstack([X, X[:1]]), np.append(y, "maybe"))
    assert list(one.classes_) == list(other.classes_)
    assert shapes(one) == shapes(other)
    assert one.event_ == other.event_


@each
def test_it_is_kept_as_text_and_is_the_same_again(specimen: Specimen, tmp_path: Path) -> None:
    model = specimen.fit()
    store.save(model, tmp_path / "model.json")
    again = store.load(tmp_path / "model.json")
    X, _ = specimen.data
    assert type(again) is type(model)
    assert shapes(again) == shapes(model)
    assert (again.event_, again.privacy_spent_, again.private_) == (model.event_, model.privacy_spent_, False)
    assert str(store.write_parameters(again)) == str(store.write_parameters(model))
    pairs = list(zip(outputs(model, X), outputs(again, X), strict=True))
    assert pairs
    assert all(np.array_equal(a, b) for a, b in pairs)


@each
def test_a_kept_model_has_none_of_its_rows(specimen: Specimen) -> None:
    """No array of a model is as long as the data."""
    model = specimen.fit()
    assert all(len(np.atleast_1d(value)) != len(specimen.data[0]) for value in vars(model).values())
