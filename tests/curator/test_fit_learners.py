"""Every learner of this library is trained by a curator: planned, paid once, kept, and given again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

from discreet.curator import Curator
from discreet.engines import Memory
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
    own = specimen.make().get_params(deep=False)
    unknown = {name: None for name in (*specimen.public, "label_bounds") if name in own}
    return specimen.make(epsilon=2, delta="1e-7", **unknown)


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


@each
def test_no_rows_are_a_fit_like_any_other(specimen: Specimen) -> None:
    curator = curated(5)
    question, target = asked(specimen)
    none = curator.fit(bare(specimen), f"{question} WHERE age > 1000", target=target)
    some = curator.fit(bare(specimen), question, target=target)
    assert none.event_ == some.event_
    shapes = [{name: np.shape(value) for name, value in vars(model).items()} for model in (none, some)]
    assert shapes[0].keys() == shapes[1].keys()


@each
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_are_no_failure(specimen: Specimen, rows: int) -> None:
    curator = curated(rows)
    question, target = asked(specimen)
    curator.fit(bare(specimen), question, target=target)
    assert curator.budget("visits").failures == 0
