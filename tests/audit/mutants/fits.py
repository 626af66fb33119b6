"""Mistakes in training under a ledger: whose rows a learner gets, and what it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from discreet.curator import learners
from discreet.curator.models import Training
from discreet.learn import DecisionTreeClassifier
from discreet.plan.reading import Reading
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
    """Of two neighbours one has a row more, also if the other has none."""
    nobody = [{"patient": 0, "ward": None, "age": 1}]
    assert apart(handed(OTHERS[:1], TREE, **DECLARED), handed(nobody, TREE, **DECLARED)) == 1


@catcher("the charged event")
def a_learner_protects_the_relation_of_its_account() -> None:
    curator = curated(OTHERS, unit=None, neighbours="replace", **DECLARED)
    plan = curator.plan_fit(TREE[0], TREE[1], target=TREE[2])
    assert plan.params["neighbours"] == "replace"


def _all_rows(patch: pytest.MonkeyPatch) -> None:
    reading = Training.reading.fget  # type: ignore[attr-defined]

    def unbounded(self: Training) -> Reading:
        found: Reading = reading(self)
        return replace(found, bounding=replace(found.bounding, groups=10**6))  # type: ignore[type-var]

    patch.setattr(Training, "reading", property(unbounded))


def _only_where_there_is_none(patch: pytest.MonkeyPatch) -> None:
    decode = Training.decode

    def conditional(self: Training, groups: Any) -> Given:
        X, y = decode(self, groups)
        assert y is not None
        return (X, y) if len(X) == 1 else (X[y != ""], y[y != ""])

    patch.setattr(Training, "decode", conditional)


MUTANTS = [
    Mutant(
        "all rows of a person for a learner",
        "A learner that accounts for one row of each person is given all of them.",
        _all_rows,
        one_person_is_one_row_of_a_learner,
    ),
    Mutant(
        "a stand-in for no rows",
        "A made-up row is handed over only if there is no other, so that one person changes two rows.",
        _only_where_there_is_none,
        a_learner_without_rows_is_like_any_other,
    ),
    Mutant(
        "a learner of another relation",
        "A learner keeps its own neighbour relation, and the account pays for the other one.",
        setting(learners, "_related", lambda *_: iter(())),
        a_learner_protects_the_relation_of_its_account,
    ),
]
