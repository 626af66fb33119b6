"""Fits whose classes nobody declared: too few of them are a model, charged and kept like any other, and no failure."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier

from discreet.curator import Curator
from discreet.curator.training.column_features import LONGEST_LABEL, ClassLabels
from discreet.curator.training.trainer import CONSTANT
from discreet.engines import Memory
from discreet.errors import InvalidParameter
from discreet.learn import DecisionTreeClassifier, GaussianNB, LogisticRegression, from_json, to_json
from discreet.learn import learner as learner_base
from discreet.noise import SeededBits
from discreet.plan.model.nodes import ColumnRef
from discreet.plan.model.types import Type
from discreet.privacy import Budget
from tests.curator.spies import COUNT, clinic
from tests.learn.specimens import SPECIMENS, Specimen

KIND = "SELECT age, charge, kind FROM visits"
TINY: dict[str, Any] = {"epsilon": 0.001, "delta": 1e-9}
BUDGET = Budget(epsilon=3, delta=1e-6)

each = pytest.mark.parametrize(
    "specimen",
    [
        pytest.param(one, id=one.name, marks=pytest.mark.slow if one.slow else ())
        for one in SPECIMENS
        if is_classifier(one.make())
    ],
)


def bare(specimen: Specimen) -> Any:
    """A learner that was told nothing of the data."""
    known = specimen.make().get_params()
    amounts = {"epsilon": 0.5, "delta": 1e-7} if specimen.slow else TINY  # a search cannot be done for less
    return specimen.make(**amounts, **{name: None for name in specimen.public if name in known})


def test_three_fits_that_find_no_classes_lock_nobody() -> None:
    """What one analyst could do to all others for next to nothing."""
    curator = clinic(BUDGET)
    for steps in (1, 2, 3):
        model = curator.fit(LogisticRegression(**TINY, steps=steps), KIND, target="kind", analyst="eve")
        assert model.constant_
        assert model.notes_[-1] == CONSTANT
        assert not model.replayed_
    assert sum(entry.kind == "charge" for entry in curator.history("visits")) == 3
    balance = curator.balance("visits")
    assert (balance.failures, balance.stopped) == (0, ())
    assert len(curator.ask(COUNT, epsilon=0.1, analyst="eve").records) == 1
    curator.verify()


@pytest.mark.sampled(2)
@each
def test_a_constant_model_is_kept_and_given_again(specimen: Specimen) -> None:
    curator = clinic(BUDGET)
    model = curator.fit(bare(specimen), KIND, target="kind")
    again = curator.fit(bare(specimen), KIND, target="kind")
    assert (model.replayed_, again.replayed_) == (False, True)
    rows = np.zeros((3, 2))
    for told in (model, again, from_json(to_json(model))):
        assert told.constant_
        assert told.predict(rows).tolist() == [""] * 3
    assert again.notes_ == model.notes_
    assert CONSTANT in model.notes_
    assert curator.balance("visits").failures == 0


def test_classes_that_are_found_are_no_constant_and_nothing_is_said() -> None:
    curator = clinic(Budget(epsilon=50, delta=1e-3))
    model = curator.fit(DecisionTreeClassifier(epsilon=40, delta=1e-4), KIND, target="kind")
    assert (model.constant_, model.classes_.tolist()) == (False, ["check", "fever", "fracture", "other"])
    assert CONSTANT not in model.notes_


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (LogisticRegression(**TINY, method="objective"), "classes"),
        (GaussianNB(**TINY, priors=[0.5, 0.5]), "priors"),
    ],
)
def test_what_a_fit_would_refuse_is_refused_before_it_is_paid(learner: Any, name: str) -> None:
    curator = clinic(BUDGET)
    with pytest.raises(InvalidParameter) as caught:
        curator.fit(learner, KIND, target="kind")
    assert caught.value.name == name
    assert str(curator.balance("visits").spent) == "epsilon=0"


def test_a_plan_that_would_cost_more_than_it_may_is_refused_before_it_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """None does, up to a rounding; so the prices of this one are raised."""
    for price in (learner_base._find_epsilon, learner_base._apart):
        monkeypatch.setattr(learner_base, price.__name__, lambda *_: Fraction(1, 900))
    curator = clinic(BUDGET)
    with pytest.raises(InvalidParameter) as caught:
        curator.fit(GaussianNB(**TINY), KIND, target="kind")
    assert caught.value.name == "epsilon"
    assert str(curator.balance("visits").spent) == "epsilon=0"


# --------------------------------------------------------------------------------------------------------- long labels


def test_one_long_label_takes_the_room_of_one_label() -> None:
    """An array of texts would have taken 32 GB for these."""
    labels = ClassLabels(value=ColumnRef("kind", Type.TEXT), classes=None)
    found = labels.decode(["x" * (1 << 20), "y" * LONGEST_LABEL, None, *("a" * 8000)])
    assert found[:3].tolist() == ["", "y" * LONGEST_LABEL, ""]
    assert found.nbytes == 8 * len(found)
    public = ClassLabels(value=ColumnRef("kind", Type.TEXT), classes=("a", "b"))
    assert public.decode(["a", "x" * (1 << 20), None]).tolist() == ["a", "", ""]


@pytest.mark.parametrize("length", [LONGEST_LABEL, LONGEST_LABEL + 1])
def test_a_label_of_any_length_is_no_failure(length: int) -> None:
    rows = [{"age": place % 90, "kind": "x" * length if place % 2 else "y"} for place in range(80)]
    curator = Curator.for_tests(engine=Memory(), bits=SeededBits(2))
    types = {"age": "int", "kind": "text"}
    curator.protect(rows, name="visits", types=types, bounds={"age": (0, 90)}, budget=Budget(epsilon=50, delta=1e-2))
    model = curator.fit(DecisionTreeClassifier(epsilon=40, delta=1e-3), "SELECT age, kind FROM visits", target="kind")
    assert model.classes_.tolist() == (["x" * length, "y"] if length == LONGEST_LABEL else ["", "y"])
