"""Mistakes in training under a ledger: which rows a learner gets, and with which settings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from discreet.curator.training import learners
from discreet.curator.training.training_plan import TrainingPlan
from discreet.errors import InvalidParameter, QueryFailed
from discreet.learn import DecisionTreeClassifier
from discreet.learn import learner as labels_module
from discreet.learn.learner import ClassPlan
from discreet.plan.model.readings import Reading
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.curator.handing import Fit, Given, apart, curated, handed

TREE: Fit = (DecisionTreeClassifier(epsilon=1, max_depth=1), "SELECT age, ward FROM visits", "ward")
OTHERS = [{"patient": who, "ward": "B", "age": 40} for who in range(3)]
DECLARED: dict[str, Any] = {"types": {"patient": "int", "ward": "text", "age": "int"}, "bounds": {"age": (0, 120)}}


@catcher("record and replay")
def one_person_is_one_row_of_a_learner() -> None:
    crowd = [{"patient": 9, "ward": "A", "age": age} for age in range(20)]
    assert apart(handed(OTHERS, TREE, **DECLARED), handed([*OTHERS, *crowd], TREE, **DECLARED)) == 1


@catcher("record and replay")
def a_learner_without_rows_is_like_any_other() -> None:
    """Checks that neighbours differ by one row, even if one of them has no rows."""
    without_ward = [{"patient": 0, "ward": None, "age": 1}]
    assert apart(handed(OTHERS[:1], TREE, **DECLARED), handed(without_ward, TREE, **DECLARED)) == 1


@catcher("the charged event")
def a_learner_protects_the_relation_of_its_account() -> None:
    curator = curated(OTHERS, unit=None, neighbours="replace", **DECLARED)
    plan = curator.plan_fit(TREE[0], TREE[1], target=TREE[2])
    assert plan.params["neighbours"] == "replace"


def _all_rows(patch: pytest.MonkeyPatch) -> None:
    reading = TrainingPlan.reading.fget  # type: ignore[attr-defined]

    def unbounded(self: TrainingPlan) -> Reading:
        found: Reading = reading(self)
        return replace(found, bounding=replace(found.bounding, groups=10**6))  # type: ignore[type-var]

    patch.setattr(TrainingPlan, "reading", property(unbounded))


def _only_where_there_is_none(patch: pytest.MonkeyPatch) -> None:
    decode = TrainingPlan.decode

    def conditional(self: TrainingPlan, groups: Any) -> Given:
        X, y = decode(self, groups)
        assert y is not None
        return (X, y) if len(X) == 1 else (X[y != ""], y[y != ""])

    patch.setattr(TrainingPlan, "decode", conditional)


@catcher("the failures of an account")
def too_few_classes_are_an_answer() -> None:
    curator = curated(OTHERS, keys={}, **DECLARED)
    with suppress(QueryFailed):
        curator.fit(DecisionTreeClassifier(epsilon=0.001, delta=1e-9), TREE[1], target=TREE[2])
    assert curator.balance("visits").failures == 0


@catcher("attributes on neighbours")
def a_label_that_is_not_found_leaves_no_trace() -> None:
    """Checks that even the type of the array of found labels is the same."""
    rows = [[float(place % 2)] for place in range(401)]
    labels = ["no", "yes"] * 200 + ["a name that only one person has"]
    models = [
        DecisionTreeClassifier(epsilon=60, delta=1e-3, bounds=(0, 1), max_depth=1, random_state=1).fit(
            rows[:n], labels[:n]
        )
        for n in (400, 401)
    ]
    assert [model.classes_.tolist() for model in models] == [["no", "yes"]] * 2
    assert models[0].classes_.dtype == models[1].classes_.dtype


def _two_or_an_error(patch: pytest.MonkeyPatch) -> None:
    read = ClassPlan.read

    def strict(self: ClassPlan, y: Any, bits: Any) -> Any:
        found = read(self, y, bits)
        if len(found) < 2:
            raise InvalidParameter("classes", "fewer", "to be at least two")
        return found

    patch.setattr(ClassPlan, "read", strict)


MUTANTS = [
    Mutant(
        "too few classes are an error",
        "A fit that finds fewer than two classes raises an error after its charge, and uses up a failure credit.",
        _two_or_an_error,
        too_few_classes_are_an_answer,
    ),
    Mutant(
        "the width of all labels",
        "The array of found classes is as wide as the longest label, whether or not that label was found.",
        setting(labels_module, "_of_their_own", lambda found: found),
        a_label_that_is_not_found_leaves_no_trace,
    ),
    Mutant(
        "all rows of a person for a learner",
        "A learner that accounts for one row per person gets all of a person's rows.",
        _all_rows,
        one_person_is_one_row_of_a_learner,
    ),
    Mutant(
        "a placeholder row for empty data only",
        "A placeholder row is added only if there are no other rows, so that one person changes two rows.",
        _only_where_there_is_none,
        a_learner_without_rows_is_like_any_other,
    ),
    Mutant(
        "a learner of another relation",
        "A learner keeps its own neighbour relation, but the account is charged for the other one.",
        setting(learners, "_set_neighbours", lambda *_: iter(())),
        a_learner_protects_the_relation_of_its_account,
    ),
]
