"""Mistakes in learners of linear classifiers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from discreet.learn import LinearSVC, LogisticRegression
from discreet.learn.linear import row_summary as survey
from discreet.learn.linear.loss_functions import Objective, logistic
from discreet.learn.linear.noisy_descent import Descent
from discreet.learn.linear.perturbation import sensitivity
from discreet.learn.linear.surveyed_fit import SurveyedFit
from discreet.privacy.events import Composed, Event, Repeated
from discreet.privacy.events import Gaussian as Release
from discreet.statistics import row_sums as glm
from discreet.statistics.inputs import RADIUS
from tests.audit.mutants.registry import Mutant, catcher, setting
from tests.learn.spying import replies, squared_distance, told

ROWS = [[0.5, 0.1], [-0.3, 0.2], [0.1, -0.9]]
LABELS = [1, 0, 0]
FAR = [1000.0, 0.0]
OPPOSITE = [-1000.0, 0.0]


@catcher("neighbours of a fit")
def no_row_moves_a_fit_by_more_than_its_event_says() -> None:
    """Compares what noise is added to, on neighbours that get the same noisy answers, in units of the noise."""
    plain: dict[str, Any] = {"epsilon": 100, "norm_bound": 1, "classes": [0, 1], "steps": 1, "random_state": 0}
    for kind, label in product((LogisticRegression, LinearSVC), (0, 1)):  # of one of them the prior thinks little
        _compare(kind(**plain), ROWS, label)
        _compare(kind(**plain, neighbours="replace"), [*ROWS, OPPOSITE], label)


def _compare(model: Any, other: list[list[float]], label: int) -> None:
    def on(rows: list[list[float]]) -> Any:
        return lambda: model.fit(np.array(rows), [*LABELS, label][: len(rows)])

    heard = replies(on([*ROWS, FAR]))
    moved = squared_distance(told(on([*ROWS, FAR]), heard), told(on(other), heard))
    assert moved <= _mu_squared(model.plan_event(2))


def _mu_squared(event: Event) -> Fraction:
    if isinstance(event, Composed):
        return sum((_mu_squared(each) for each in event.events), Fraction(0))
    if isinstance(event, Repeated):
        return event.count * _mu_squared(event.event)
    assert isinstance(event, Release)
    return 1 / event.noise_multiplier**2


@catcher("neighbours of a fit")
def no_row_moves_a_minimiser_by_more_than_its_sensitivity() -> None:
    objective = Objective(loss=logistic(2), ridge=1.0, features=1)
    one, none = np.array([[RADIUS]]), np.zeros((0, 1), dtype=np.int64)
    # In one dimension a row of length 1 moves the minimiser from 0 to the root of w = 1 / (1 + e^w), 0.4012.
    found = objective.minimiser(one, np.array([1])) - objective.minimiser(none, np.zeros(0, dtype=np.int64))
    assert abs(found[0, 0] - 0.40106) <= 2 * objective.tolerance
    assert np.linalg.norm(found) <= sensitivity(objective, None)


MUTANTS = [
    Mutant(
        "long rows",
        "Rows are not shrunk to the public norm bound before they are summed.",
        setting(survey, "within", lambda steps, *_: steps),
        no_row_moves_a_fit_by_more_than_its_event_says,
    ),
    Mutant(
        "gradients without a limit",
        "The gradients of rows are not clipped.",
        setting(glm, "_floor_root", lambda squares: np.full_like(squares, 1 << 20)),
        no_row_moves_a_fit_by_more_than_its_event_says,
    ),
    Mutant(
        "a replaced row that counts once",
        "The noise of gradients is made for an added row, although rows are replaced.",
        setting(Descent, "sensitivity", property(lambda descent: descent.clip)),
        no_row_moves_a_fit_by_more_than_its_event_says,
    ),
    Mutant(
        "a summary of rows without a charge",
        "A summary of the rows is released before the weights, but the event lists the weights only.",
        setting(SurveyedFit, "event", property(lambda fit: fit.method.event)),
        no_row_moves_a_fit_by_more_than_its_event_says,
    ),
    Mutant(
        "a minimiser that is not checked",
        "Whatever the optimiser returns is accepted as the minimum.",
        setting(Objective, "minimiser", lambda made, *_: np.zeros((made.loss.outputs, made.features))),
        no_row_moves_a_minimiser_by_more_than_its_sensitivity,
    ),
]
