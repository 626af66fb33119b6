"""Classes that nobody declared: whatever is found is an answer, also fewer than two, and tells of nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import is_classifier

from discreet import learn
from discreet.errors import InvalidParameter
from discreet.learn import from_json, to_json
from discreet.learn.learner import ClassPlan
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from tests.learn.specimens import SPECIMENS, Specimen

CLASSIFIERS = [one for one in SPECIMENS if is_classifier(one.make())]
X = np.linspace(-3, 3, 1200).reshape(400, 3)
ONE, BOTH = np.full(400, "yes"), np.where(X[:, 0] > 0, "yes", "no")

each = pytest.mark.parametrize(
    "specimen", [pytest.param(one, id=one.name, marks=pytest.mark.slow if one.slow else ()) for one in CLASSIFIERS]
)
relation = pytest.mark.parametrize("neighbours", ["add_remove", "replace"])


def finding(specimen: Specimen, y: NDArray[Any], **changed: Any) -> Any:
    """A model that was told no classes, with an epsilon at which 400 rows of a label suffice and 1 does not."""
    return specimen.make(**{"epsilon": 20, "delta": 1e-3, "random_state": 3, **changed}).fit(X[: len(y)], y)


@pytest.mark.sampled(4)
@each
@relation
@pytest.mark.parametrize(("y", "predicted"), [(ONE, "yes"), (ONE[:1], ""), (ONE[:0], "")])
def test_fewer_than_two_classes_are_a_constant_model(
    specimen: Specimen, neighbours: str, y: NDArray[Any], predicted: str
) -> None:
    model = finding(specimen, y, neighbours=neighbours)
    for told in (model, from_json(to_json(model))):
        assert told.constant_
        assert told.classes_.tolist() == [predicted]
        assert told.predict(X[:5]).tolist() == [predicted] * 5
        assert told.event_ == specimen.make(epsilon=20, delta=1e-3, neighbours=neighbours).plan_event(3)
        if hasattr(told, "predict_proba"):
            assert told.predict_proba(X[:5]).tolist() == [[1.0]] * 5
        if hasattr(told, "predict_log_proba"):
            assert told.predict_log_proba(X[:5]).tolist() == [[0.0]] * 5
        if hasattr(told, "decision_function"):
            assert told.decision_function(X[:5]).tolist() == [0.0] * 5
        assert told.score(X[:5], ONE[:5]) == (predicted == "yes")


@pytest.mark.sampled(2)
@each
def test_two_classes_that_are_found_are_told_apart(specimen: Specimen) -> None:
    model = finding(specimen, BOTH, epsilon=200)
    assert (model.constant_, model.classes_.tolist()) == (False, ["no", "yes"])
    assert model.score(X, BOTH) > 0.8


@pytest.mark.parametrize(
    ("labels", "zero"),
    [
        (np.array([4, 5]), 0),
        (np.array([4.5, 5.5]), 0.0),
        (np.array([True]), False),
        (np.array(["no", "yes"]), ""),
        (np.array([b"no"]), b""),
        (np.array(["no", "yes"], dtype=object), ""),
    ],
)
def test_without_any_class_the_zero_of_their_type_is_predicted(labels: NDArray[Any], zero: object) -> None:
    found = plan().read(labels, SeededBits(1))
    assert found.tolist() == [zero]
    assert type(found.tolist()[0]) is type(zero)


@pytest.mark.parametrize("longest", ["x" * 50, "yes, and more"])
def test_a_label_that_is_not_found_does_not_show_in_the_type_of_those_that_are(longest: str) -> None:
    """The width of an array of texts is that of the longest among them: one person's, unless it is cut."""
    labels = np.array(["no", "yes"] * 500 + [longest])
    found, without = (plan(8).read(y, SeededBits(1)) for y in (labels, labels[:-1]))
    assert found.tolist() == without.tolist() == ["no", "yes"]
    assert found.dtype == without.dtype == np.dtype("<U3")
    nothing = [plan().read(np.array([label]), SeededBits(1)) for label in (longest, "no")]
    assert nothing[0].dtype == nothing[1].dtype


def plan(epsilon: int = 1) -> ClassPlan:
    return ClassPlan.of(None, epsilon=epsilon, delta=1e-6, neighbours=Neighbours.ADD_REMOVE)


def test_what_needs_to_know_how_many_there_are_is_refused_before_anything_is_read() -> None:
    objective = learn.LogisticRegression(bounds=(-3, 3), method="objective")
    priors = learn.GaussianNB(bounds=(-3, 3), priors=[0.5, 0.5])
    for model, name in ((objective, "classes"), (priors, "priors")):
        for act in (lambda: model.plan_event(3), lambda: model.fit(X, BOTH)):  # noqa: B023 - called at once
            with pytest.raises(InvalidParameter, match=r"classes=\[0, 1\]") as caught:
                act()
            assert caught.value.name == name
    wrong = learn.GaussianNB(bounds=(-3, 3), classes=["no", "yes"], priors=[0.5, 0.25, 0.25])
    with pytest.raises(InvalidParameter, match="one positive number for each class"):
        wrong.plan_event(3)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (learn.RandomForestClassifier(bounds=(-3, 3), classes=[0, 1], n_estimators=0), "n_estimators"),
        (learn.AdditiveClassifier(classes=[0, 1]), "bounds"),
    ],
)
def test_what_a_fit_refuses_its_plan_refuses(model: Any, name: str) -> None:
    """So that a search finds it out before it is paid, whichever candidates it draws."""
    with pytest.raises(InvalidParameter) as caught:
        model.plan_event(3)
    assert caught.value.name == name
