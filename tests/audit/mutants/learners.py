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
def gradients_are_sums_of_clipped_rows() -> None:
    _audited(LogisticRegression(**SOME, steps=2, norm_bound=1), BALL, "ward")


@catcher("audit.fit")
def models_keep_noisy_moments_only() -> None:
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
def linked_rows_make_one_row_per_person() -> None:
    tree = DecisionTreeClassifier(epsilon=1, max_depth=1, cells=4)
    sql = "SELECT price, kind FROM items"
    found = audit.fit(of_family(THE_SHOP), tree, sql, shopping(), target="kind", neighbours=2)
    assert found.passed, found.summary()


# ------------------------------------------------------------------------------------------------------------- mistakes


def _clipped_late(patch: pytest.MonkeyPatch) -> None:
    """Sums rows without clipping them, and clips the sum to what it could be."""
    right = survey.RowSummary.sums

    def sums(self: survey.RowSummary, fine: Any, *given: Any) -> Any:
        most = survey.COUNTED * survey.FINE * len(fine)
        return np.clip(right(self, fine, *given), -most, most)

    patch.setattr(survey, "within", lambda steps, _radius: steps)
    patch.setattr(survey.RowSummary, "sums", sums)


def _one_more_step(patch: pytest.MonkeyPatch) -> None:
    """Makes a step that the event does not count."""
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
    """Grows every tree on all rows, and charges as if they were divided."""
    right = trees._Recipe.grow
    kept: list[Any] = []

    def grow(self: Any, places: Any, labels: Any, classes: int, bits: Any) -> Any:
        kept.append((places, labels))
        before = kept[-(1 + (len(kept) - 1) % 3) :]
        rows, codes = (np.concatenate(parts) for parts in zip(*before, strict=True))
        return right(self, rows, codes, classes, bits)

    patch.setattr(trees._Recipe, "grow", grow)


def _twice_as_many(patch: pytest.MonkeyPatch) -> None:
    """Counts every row twice, so that one person seems to be two."""
    right = ClassPlan.read
    patch.setattr(ClassPlan, "read", lambda self, y, bits: right(self, np.repeat(y, 2), bits))


MUTANTS = [
    Mutant(
        "clipped after summing",
        "A learner sums rows without clipping them, and clips the sum.",
        _clipped_late,
        gradients_are_sums_of_clipped_rows,
    ),
    Mutant(
        "a step without a charge",
        "A descent makes one more step than its event lists.",
        _one_more_step,
        gradients_are_sums_of_clipped_rows,
    ),
    Mutant(
        "an exact mean in a model",
        "A scaler keeps the exact mean of its rows in addition to what it released.",
        _exact_mean,
        models_keep_noisy_moments_only,
    ),
    Mutant(
        "a fit without noise",
        "The mechanisms of a learner release their input without noise.",
        _noiseless,
        models_keep_noisy_moments_only,
    ),
    Mutant(
        "rows in several trees",
        "The trees of a forest share rows, but are charged as if they did not.",
        _all_trees,
        a_row_is_in_one_tree,
    ),
    Mutant(
        "a label counted twice",
        "Each row counts twice when classes are looked for.",
        _twice_as_many,
        labels_of_one_person_stay_hidden,
    ),
    Mutant(
        "a learner's rows by order",
        "A learner gets one row per order of a customer, and not one row per customer.",
        by_order,
        linked_rows_make_one_row_per_person,
    ),
]
