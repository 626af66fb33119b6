"""Mistakes in learners: what they add up, what they pay for, what they keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet import audit
from discreet.learn import DecisionTreeClassifier, LogisticRegression, RandomForestClassifier, StandardScaler
from discreet.learn.learner import ClassPlan
from discreet.learn.linear import row_summary as survey
from discreet.learn.linear.noisy_descent import Descent
from discreet.learn.trees import decision_trees as trees
from discreet.mechanisms import Gaussian
from tests.audit.held import clinic
from tests.audit.mutants.registry import Mutant, catcher
from tests.audit.mutants.several import by_order
from tests.audit.several import THE_SHOP, of_family, shopping
from tests.curator.clinic import visits

BALL = "SELECT age / 60.0 - 1 AS a, charge / 500.0 - 1 AS c, ward FROM visits"
SOME: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def _audited(estimator: Any, sql: str, target: str | None) -> None:
    found = audit.fit(clinic(), estimator, sql, visits(3), target=target, neighbours=2)
    assert found.passed, found.summary()


@catcher("audit.fit")
def gradients_are_those_of_rows_within_their_bounds() -> None:
    _audited(LogisticRegression(**SOME, steps=2, norm_bound=1), BALL, "ward")


@catcher("audit.fit")
def moments_are_all_that_is_told_of_rows() -> None:
    _audited(StandardScaler(**SOME), "SELECT age, charge FROM visits", None)


@catcher("audit.fit")
def a_row_is_in_one_tree() -> None:
    forest = RandomForestClassifier(epsilon=1, n_estimators=3, max_depth=1, cells=4)
    _audited(forest, "SELECT age, charge, ward FROM visits", "ward")


@catcher("audit.fit")
def labels_of_one_person_stay_hidden() -> None:
    tree = DecisionTreeClassifier(epsilon=60, delta=1e-2, max_depth=1, cells=4)
    _audited(tree, "SELECT age, kind FROM visits", "kind")


@catcher("audit.fit")
def one_person_is_one_row_on_a_way() -> None:
    tree = DecisionTreeClassifier(epsilon=1, max_depth=1, cells=4)
    sql = "SELECT price, kind FROM items"
    found = audit.fit(of_family(THE_SHOP), tree, sql, shopping(), target="kind", neighbours=2)
    assert found.passed, found.summary()


# ------------------------------------------------------------------------------------------------------------- mistakes


def _clipped_late(patch: pytest.MonkeyPatch) -> None:
    """Rows are added up as long as they are; the sum is held to what it could be."""
    right = survey.RowSummary.sums

    def sums(self: survey.RowSummary, fine: Any, *given: Any) -> Any:
        most = survey.COUNTED * survey.FINE * len(fine)
        return np.clip(right(self, fine, *given), -most, most)

    patch.setattr(survey, "within", lambda steps, _radius: steps)
    patch.setattr(survey.RowSummary, "sums", sums)


def _one_more_step(patch: pytest.MonkeyPatch) -> None:
    """A descent makes a step that its event does not count."""
    right = Descent.run

    def run(self: Descent, *given: Any, **options: Any) -> Any:
        return right(replace(self, steps=self.steps + 1), *given, **options)

    patch.setattr(Descent, "run", run)


def _exact_mean(patch: pytest.MonkeyPatch) -> None:
    right = StandardScaler.fit

    def fit(self: StandardScaler, X: Any, y: Any = None) -> StandardScaler:
        found: StandardScaler = right(self, X, y)
        found.mean_ = np.nanmean(X, axis=0)
        return found

    patch.setattr(StandardScaler, "fit", fit)


def _noiseless(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gaussian, "release", lambda _self, value, **_: np.asarray(value, dtype=np.float64))


def _all_trees(patch: pytest.MonkeyPatch) -> None:
    """Every tree is grown on all rows, and paid for as if they were divided."""
    right = trees._Recipe.grow
    kept: list[Any] = []

    def grow(self: Any, places: Any, labels: Any, classes: int, bits: Any) -> Any:
        kept.append((places, labels))
        before = kept[-(1 + (len(kept) - 1) % 3) :]
        rows, codes = (np.concatenate(parts) for parts in zip(*before, strict=True))
        return right(self, rows, codes, classes, bits)

    patch.setattr(trees._Recipe, "grow", grow)


def _twice_as_many(patch: pytest.MonkeyPatch) -> None:
    """Every row counts as two, so that one person seems to be two."""
    right = ClassPlan.read
    patch.setattr(ClassPlan, "read", lambda self, y, bits: right(self, np.repeat(y, 2), bits))


MUTANTS = [
    Mutant(
        "clipped after summing",
        "A learner adds up rows as long as they are, and clips the sum.",
        _clipped_late,
        gradients_are_those_of_rows_within_their_bounds,
    ),
    Mutant(
        "a step that nobody paid for",
        "A descent makes one step more than its event says.",
        _one_more_step,
        gradients_are_those_of_rows_within_their_bounds,
    ),
    Mutant(
        "an exact mean in a model",
        "A scaler keeps the mean of its rows beside what it released.",
        _exact_mean,
        moments_are_all_that_is_told_of_rows,
    ),
    Mutant(
        "a fit without noise",
        "Mechanisms of a learner release what they are given.",
        _noiseless,
        moments_are_all_that_is_told_of_rows,
    ),
    Mutant(
        "rows in several trees",
        "The trees of a forest share rows, and are paid for as if they did not.",
        _all_trees,
        a_row_is_in_one_tree,
    ),
    Mutant(
        "a label counted twice",
        "One row counts as two where classes are found.",
        _twice_as_many,
        labels_of_one_person_stay_hidden,
    ),
    Mutant(
        "a learner's rows by order",
        "A customer has a row for a learner in each order, and not one for all of them.",
        by_order,
        one_person_is_one_row_on_a_way,
    ),
]
