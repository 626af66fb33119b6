"""Mistakes in the sums that learners add noise to, and in how far one row moves them."""

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
def no_row_moves_a_regression_more_than_was_charged() -> None:
    assert all(test_linear_regression.worst(relation.value) <= 1 for relation in Neighbours)


@catcher(TOOL)
def no_row_moves_classes_more_than_was_charged() -> None:
    assert all(test_columns.worst(test_columns.bayes, relation.value) <= 1 for relation in Neighbours)


@catcher(TOOL)
def no_row_moves_clusters_more_than_was_charged() -> None:
    assert all(test_kmeans.worst(relation.value) <= 1 for relation in Neighbours)


MUTANTS = [
    Mutant(
        "labels not clipped",
        "Features are shrunk to their norm bound, but labels enter a regression unclipped.",
        setting(NumericLabels, "clip_steps", lambda _self, steps: steps),
        no_row_moves_a_regression_more_than_was_charged,
    ),
    Mutant(
        "labels left out of the norm",
        "The sensitivity of second moments covers features only, although labels are part of the moments.",
        setting(noisy_moments, "squared_norm", lambda _labels: RADIUS**2),
        no_row_moves_a_regression_more_than_was_charged,
    ),
    Mutant(
        "a replaced row stays in its class",
        "Sums per class are calibrated for added or removed rows, but a replaced row may also change its class.",
        setting(
            noisy_moments,
            "shares",
            lambda features, groups, _relation: shares(features, groups, Neighbours.ADD_REMOVE),
        ),
        no_row_moves_classes_more_than_was_charged,
    ),
    Mutant(
        "counts of cells with too little noise",
        "The noise of cell counts in a tree is made for a row that moves them by a half.",
        setting(coreset, "level_sensitivity", lambda _relation: Fraction(1, 2)),
        no_row_moves_clusters_more_than_was_charged,
    ),
]
