"""Every learner of this library is trained by a curator: planned, paid once, kept, and given again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.tree import DecisionTreeClassifier as ForeignTree

from discreet.curator import Curator
from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.learn import DecisionTreeClassifier, GridSearchCV, to_json
from discreet.noise import SeededBits
from discreet.privacy import Budget
from tests.curator.clinic import visits
from tests.curator.spies import OPTIONS
from tests.learn.specimens import SPECIMENS, Specimen

each = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)


def curated(patients: int, **declared: Any) -> Curator:
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(4))
    options = {**OPTIONS, "unit": None, **declared}
    curator.protect(visits(3, patients=patients), name="visits", budget=Budget(epsilon=50, delta=1e-3), **options)
    return curator


def asked(specimen: Specimen) -> tuple[str, str | None]:
    """Rows for a learner, and their target."""
    model = specimen.make()
    if is_classifier(model):
        return "SELECT age, charge, ward FROM visits", "ward"
    return "SELECT age, ward, charge FROM visits", "charge" if is_regressor(model) else None


def bare(specimen: Specimen) -> Any:
    """A learner that was told nothing of the data."""
    own = specimen.make().get_params()
    unknown = {name: None for name in (*specimen.public, "label_bounds") if name in own}
    delta = 0 if specimen.params.get("delta") == 0 else "1e-7"
    return specimen.make(epsilon=2, delta=delta, **unknown)


@pytest.mark.sampled(4)
@each
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_a_learner_that_knows_nothing_is_told_what_is_declared(specimen: Specimen, neighbours: str) -> None:
    curator = curated(60, neighbours=neighbours)
    question, target = asked(specimen)
    plan = curator.plan_fit(bare(specimen), question, target=target)
    model = curator.fit(bare(specimen), question, target=target)
    assert (plan.event, plan.cost) == (model.event_, model.cost_)
    assert model.neighbours == neighbours
    assert len(model.columns_) == model.n_features_in_
    again = curator.fit(bare(specimen), question, target=target)
    assert again.replayed_
    row = np.zeros((1, model.n_features_in_))
    for name in ("predict", "transform"):
        if hasattr(model, name):
            assert np.array_equal(getattr(model, name)(row), getattr(again, name)(row))


@pytest.mark.sampled(3)
@each
def test_no_rows_are_a_fit_like_any_other(specimen: Specimen) -> None:
    curator = curated(5)
    question, target = asked(specimen)
    none = curator.fit(bare(specimen), f"{question} WHERE age > 1000", target=target)
    some = curator.fit(bare(specimen), question, target=target)
    assert none.event_ == some.event_
    shapes = [{name: np.shape(value) for name, value in vars(model).items()} for model in (none, some)]
    assert shapes[0].keys() == shapes[1].keys()


@pytest.mark.sampled(4)
@each
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_are_no_failure(specimen: Specimen, rows: int) -> None:
    curator = curated(rows)
    question, target = asked(specimen)
    curator.fit(bare(specimen), question, target=target)
    assert curator.budget("visits").failures == 0


TREE = DecisionTreeClassifier(epsilon=1)
PURE: dict[str, Any] = {"epsilon": 1, "delta": 0}


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (GridSearchCV(DecisionTreeClassifier(random_state=1), {"max_depth": [1]}, **PURE), "random_state"),
        (GridSearchCV(TREE, {"random_state": [1]}, **PURE), "random_state"),
        (GridSearchCV(TREE, [{"max_depth": [1]}, {"random_state": [1, 2]}], **PURE), "random_state"),
        (GridSearchCV(TREE, {"epsilon": [100]}, **PURE), "param_grid"),
        (GridSearchCV(TREE, {"neighbours": ["replace"]}, **PURE), "param_grid"),
        (GridSearchCV(TREE, {"max_depth": [lambda: 1]}, **PURE), "param_grid"),
        (GridSearchCV(ForeignTree(), {"max_depth": [1]}, **PURE), "estimator"),
        (GridSearchCV(TREE, {"estimator": [ForeignTree()]}, **PURE), "estimator"),
    ],
)
def test_nothing_hides_in_a_search(estimator: Any, name: str) -> None:
    with Curator(engine=Memory()) as real:
        real.protect(visits(3), name="visits", budget=Budget(epsilon=4), **OPTIONS)
        with pytest.raises(InvalidParameter) as refused:
            real.fit(estimator, "SELECT age, charge, ward FROM visits", target="ward")
        assert refused.value.name == name
        assert not [entry for entry in real.history("visits") if entry.kind == "charge"]


def test_a_search_tells_its_candidates_what_is_declared() -> None:
    curator = curated(30, unit="patient")
    model = curator.fit(GridSearchCV(TREE, {"max_depth": [1, 2]}, **PURE), asked(SPECIMENS[1])[0], target="ward")
    assert model.best_estimator_.bounds == ([0.0, 0.0], [120.0, 1000.0])
    assert list(model.classes_) == ["A", "B", "C"]
    assert (str(model.cost_.details), model.best_params_["max_depth"] in (1, 2)) == ("epsilon=1", True)


def test_a_kept_model_has_nothing_of_the_account() -> None:
    """Neither what is left, nor what was charged, nor rows: what a file holds is public once it is released."""
    curator = curated(30)
    model = curator.fit(TREE, "SELECT age, charge, ward FROM visits", target="ward")
    text = json.loads(to_json(model))
    assert not {"cost_", "remaining_", "replayed_", "notes_"} & text["model"]["fitted"].keys()
    assert text["model"]["fitted"]["columns_"] == ["age", "charge"]
    assert "patient" not in to_json(model)
