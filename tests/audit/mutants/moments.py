"""Mistakes in what learners hand to noise: sums over rows, and how far one row moves them."""

from __future__ import annotations

from fractions import Fraction

from discreet.learn import noisy_moments
from discreet.learn.clusters import coreset
from discreet.learn.noisy_moments import NumericLabels, shares
from discreet.privacy import Neighbours
from discreet.statistics.inputs import RADIUS
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.learn import test_columns, test_kmeans, test_linear_regression

TOOL = "neighbouring tables"


@catcher(TOOL)
def no_row_moves_a_regression_more_than_was_paid() -> None:
    assert all(test_linear_regression.worst(relation.value) <= 1 for relation in Neighbours)


@catcher(TOOL)
def no_row_moves_classes_more_than_was_paid() -> None:
    assert all(test_columns.worst(test_columns.bayes, relation.value) <= 1 for relation in Neighbours)


@catcher(TOOL)
def no_row_moves_clusters_more_than_was_paid() -> None:
    assert all(test_kmeans.worst(relation.value) <= 1 for relation in Neighbours)


MUTANTS = [
    Mutant(
        "labels not clipped",
        "Features are shrunk to their norm and labels enter a regression as they are.",
        setting(NumericLabels, "clip_steps", lambda _self, steps: steps),
        no_row_moves_a_regression_more_than_was_paid,
    ),
    Mutant(
        "labels left out of the norm",
        "The sensitivity of second moments counts features only, and labels are part of them.",
        setting(noisy_moments, "squared_norm", lambda _labels: RADIUS**2),
        no_row_moves_a_regression_more_than_was_paid,
    ),
    Mutant(
        "a replaced row stays in its class",
        "Sums of classes are calibrated for rows that come or go, and a replaced row may also move between classes.",
        setting(
            noisy_moments,
            "shares",
            lambda features, groups, _relation: shares(features, groups, Neighbours.ADD_REMOVE),
        ),
        no_row_moves_classes_more_than_was_paid,
    ),
    Mutant(
        "counts of cells with too little noise",
        "Cells of a tree are counted as if a row moved their counts by a half.",
        setting(coreset, "level_sensitivity", lambda _relation: Fraction(1, 2)),
        no_row_moves_clusters_more_than_was_paid,
    ),
]
