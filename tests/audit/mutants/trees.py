"""Mistakes in trees, boosting, holdouts and searches."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting import random_repetitions as tuning
from discreet.accounting.random_repetitions import Tries, tuned_epsilon
from discreet.learn import AdditiveClassifier, DecisionTreeClassifier, GridSearchCV
from discreet.learn.selection import search_plan
from discreet.learn.selection.holdout import Holdout
from discreet.learn.trees import boosting, decision_trees
from discreet.learn.trees.decision_trees import FINE, split_scores
from discreet.mechanisms import Gaussian
from discreet.privacy import events
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.learn.spying import replies, told

ROWS = [[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]]
LABELS = [0, 1, 1]


@catcher("neighbours of a fit")
def no_row_moves_a_boosted_model_by_more_than_its_noise_covers() -> None:
    """Each release moves by at most its sensitivity between neighbours that get the same noisy answers."""
    for neighbours, other in (("add_remove", (ROWS, LABELS)), ("replace", ([*ROWS, [0.9, 0.1]], [*LABELS, 1]))):
        model = AdditiveClassifier(
            bounds=(0, 1), classes=[0, 1], rounds=2, cells=4, neighbours=neighbours, random_state=1
        )

        def on(rows: list[list[float]], labels: list[int], model: Any = model) -> Any:
            return lambda: model.fit(np.array(rows), labels)

        here = on([*ROWS, [0.9, 0.1]], [*LABELS, 0])
        heard = replies(here)
        multipliers = _multipliers(model)
        for a, b, multiplier in zip(told(here, heard), told(on(*other), heard), multipliers, strict=True):
            move = sum(int(step) ** 2 for step in np.ravel(a.value - b.value))
            assert move <= (a.sigma / multiplier) ** 2


def _multipliers(model: AdditiveClassifier) -> list[Fraction]:
    event = model.plan_event(2)
    assert isinstance(event, events.Composed)
    rows, counts, visits = event.events
    assert isinstance(rows, events.Gaussian)
    assert isinstance(counts, events.Gaussian)
    assert isinstance(visits, events.Repeated)
    assert isinstance(visits.event, events.Gaussian)
    return [rows.noise_multiplier, counts.noise_multiplier, *[visits.event.noise_multiplier] * visits.count]


@catcher("neighbours of a fit")
def no_row_moves_the_scores_of_splits_by_more_than_two() -> None:
    rows = np.array([[0], [0], [1], [2], [2], [1]])
    labels = np.array([0, 0, 1, 1, 0, 1])
    root = np.zeros(6, dtype=np.int64)
    whole = split_scores(rows, labels, root, (1, 3, 2))
    less = split_scores(rows[:-1], labels[:-1], root[:-1], (1, 3, 2))
    assert (whole <= less).all()
    assert (less - whole).max() <= 2 * FINE


@catcher("the price of an event")
def the_best_of_many_tries_costs_more_than_one() -> None:
    one = [events.Gaussian(10)]
    assert tuned_epsilon(one, Tries.of_mean(10), 1e-6) > 1.5 * tuned_epsilon(one, Tries.of_mean(1), 1e-6)


@catcher("the price of an event")
def each_fit_of_a_search_gets_its_part_only() -> None:
    tree = DecisionTreeClassifier(bounds=(0, 1), classes=[0, 1])
    plan = GridSearchCV(tree, {"max_depth": [1, 2]}, epsilon=1, delta=0)._plan(1)
    assert 2 * plan.epsilon <= 1


@catcher("the price of an event")
def a_holdout_pays_for_its_tests_and_its_answers() -> None:
    holdout = Holdout(10_000, sigma="0.01", budget=100)
    assert isinstance(holdout.event, events.Repeated)
    parts = holdout.event.event
    assert isinstance(parts, events.Composed)
    assert len(parts.events) == 2
    assert holdout.spent().epsilon == 2


MUTANTS = [
    Mutant(
        "residuals without a limit",
        "The residual of a row in boosting is not clipped to the bound that the noise covers.",
        setting(boosting, "within", lambda residuals, _: 4 * residuals),
        no_row_moves_a_boosted_model_by_more_than_its_noise_covers,
    ),
    Mutant(
        "a replaced row that counts as an added one",
        "The noise of sums in boosting is made for an added row, although rows are replaced.",
        setting(
            boosting._Releases,
            "sums",
            lambda releases, bound: Gaussian.with_multiplier(noise_multiplier=releases.multiplier, sensitivity=bound),
        ),
        no_row_moves_a_boosted_model_by_more_than_its_noise_covers,
    ),
    Mutant(
        "impurity without its division",
        "Splits are scored by sums of squares, which one row can move by as much as the number of rows.",
        setting(decision_trees, "_impurity", lambda counts: FINE * (counts * counts).sum(axis=-1)),
        no_row_moves_the_scores_of_splits_by_more_than_two,
    ),
    Mutant(
        "only the winner is paid for",
        "The best of many tries is charged as if it were the only try.",
        setting(tuning, "best_of", lambda divergences, _: divergences),
        the_best_of_many_tries_costs_more_than_one,
    ),
    Mutant(
        "a search that fits at full price",
        "Every candidate of a grid search is fitted with the budget of the whole search.",
        setting(search_plan, "_with", lambda plan, _: plan),
        each_fit_of_a_search_gets_its_part_only,
    ),
    Mutant(
        "holdout numbers without a charge",
        "A holdout is charged for its tests, but not for the numbers that it returns.",
        setting(Holdout, "event", property(lambda holdout: events.Repeated(holdout._test.event, holdout.budget))),
        a_holdout_pays_for_its_tests_and_its_answers,
    ),
]
