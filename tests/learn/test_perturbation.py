"""Output and objective perturbation: minimisers that are certain, their sensitivity, and the noise that is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from discreet import accounting
from discreet.accounting.objective_perturbation import objective_sigma
from discreet.errors import InvalidParameter
from discreet.learn.linear import loss_functions as minimise
from discreet.learn.linear import perturbation as output
from discreet.learn.linear import perturbation as tilted
from discreet.learn.linear.loss_functions import MarginLoss, Objective, hinge, logistic
from discreet.learn.linear.perturbation import ObjectivePerturbation, OutputPerturbation, sensitivity
from discreet.mechanisms import Gaussian, KNorm, Laplace
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOSSES = [logistic(2), logistic(3), hinge(2), hinge(3)]
NAMES = ["logistic", "softmax", "hinge", "one against the rest"]
CORNERS = [(RADIUS, 0), (-RADIUS, 0), (0, RADIUS), (2896, 2896), (2896, -2896), (100, 0), (0, 0)]


def table(*rows: tuple[int, int]) -> Integers:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def test_the_minimiser_of_one_row_is_the_root_of_its_gradient() -> None:
    objective = Objective(loss=logistic(2), ridge=1.0, features=1)
    found = objective.minimiser(np.array([[RADIUS]]), np.array([1]))
    root = brentq(lambda w: w - expit(-w), 0, 1)
    assert abs(found[0, 0] - root) <= objective.tolerance


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_the_slow_way_is_as_certain_as_the_quick_one(loss: MarginLoss, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, codes = table(*CORNERS), np.arange(len(CORNERS)) % 4 - 1
    objective = Objective(loss=loss, ridge=2.0, features=2)
    quick = objective.minimiser(rows, codes)
    monkeypatch.setattr(minimise.EmpiricalRisk, "quick", lambda _: np.full((loss.outputs, 2), 7.0))
    slow = objective.minimiser(rows, codes)
    assert np.linalg.norm(quick - slow) <= 2 * objective.tolerance / objective.ridge
    monkeypatch.setattr(minimise.EmpiricalRisk, "quick", lambda _: np.full((loss.outputs, 2), np.nan))
    assert (objective.minimiser(rows, codes) == slow).all()


def test_the_error_of_gradients_is_far_above_what_is_seen() -> None:
    codes = np.arange(5000) % 2
    rows = np.stack([np.arange(5000) % 2897, -np.arange(5000) % 2890], axis=1).astype(np.int64)
    objective = Objective(loss=logistic(2), ridge=1.0, features=2)
    weights = np.array([[3.0, -2.0]])
    problem = minimise.EmpiricalRisk(objective, rows / RADIUS, codes, 0.0)
    backwards = minimise.EmpiricalRisk(objective, rows[::-1] / RADIUS, codes[::-1], 0.0)
    gap = float(np.linalg.norm(problem.gradient(weights) - backwards.gradient(weights)))
    assert gap <= objective.error(4.0, 5000) < 1e-5
    assert objective.tolerance >= 2 * objective.error(2 * objective.furthest, minimise.MOST_ROWS)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_no_row_moves_the_minimiser_by_more_than_the_sensitivity(loss: MarginLoss) -> None:
    objective = Objective(loss=loss, ridge=1.0, features=2)
    added, replaced = float(sensitivity(objective, None)), float(sensitivity(objective, 2))
    classes = range(max(2, loss.outputs))
    found = {
        (row, code): objective.minimiser(table((RADIUS, 0), row), np.array([0, code]))
        for row, code in product(CORNERS, classes)
    }
    alone = objective.minimiser(table((RADIUS, 0)), np.array([0]))
    moved = [float(np.linalg.norm(each - alone)) for each in found.values()]
    swapped = [float(np.linalg.norm(a - b)) for a, b in product(found.values(), repeat=2)]
    assert max(moved) <= added
    assert max(swapped) <= replaced
    assert max(swapped) > 0.4 * replaced  # so that a sensitivity of half the size would be seen here or nearly


def test_replaced_rows_of_a_logistic_loss_have_the_tight_constant() -> None:
    objective = Objective(loss=logistic(2), ridge=100.0, features=2)
    assert float(sensitivity(objective, 100)) == pytest.approx(1.0991 / 100, rel=3e-3)  # 2 tau on top of it
    assert float(sensitivity(objective, None)) == pytest.approx(1 / 100, rel=3e-3)
    other = Objective(loss=hinge(2), ridge=100.0, features=2)
    assert float(sensitivity(other, 100)) == pytest.approx(2 / 100, rel=3e-3)


class Drawn:
    """Keeps every mechanism that is asked for a release, and what it was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mechanisms: list[Any] = []
        for kind in (Gaussian, Laplace, KNorm):
            self._watch(kind, monkeypatch)

    def _watch(self, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        honest = kind.release

        def release(mechanism: Any, value: Any, **named: Any) -> Any:
            self.mechanisms.append(mechanism)
            return honest(mechanism, value, **named)

        monkeypatch.setattr(kind, "release", release)


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("ridge", [None, 5.0])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_event_of_output_perturbation_is_what_is_drawn(
    relation: Neighbours, ridge: float | None, delta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = OutputPerturbation(spending=Spending.of(1, delta), neighbours=relation, ridge=ridge)
    drawn = Drawn(monkeypatch)
    made.run(table(*CORNERS), np.array([0, 1] * 3 + [0]), logistic(2), SeededBits(1))
    prices = [each.event for each in drawn.mechanisms]
    assert made.event in (events.Composed(prices), prices[0])
    assert len(prices) == (2 if ridge is None and relation is Neighbours.ADD_REMOVE else 1)
    assert accounting.epsilon(made.event, delta or 0, neighbours=relation) <= 1 + 1e-12
    objective = Objective(loss=logistic(2), ridge=5.0, features=2)
    if ridge is not None:
        count = len(CORNERS) if relation is Neighbours.REPLACE else None
        assert drawn.mechanisms[-1].sensitivity == sensitivity(objective, count)


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("ridge", [None, 5.0])
def test_the_event_of_objective_perturbation_is_what_is_drawn(
    relation: Neighbours, ridge: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ObjectivePerturbation(spending=Spending.of(1, 1e-6), neighbours=relation, ridge=ridge)
    drawn = Drawn(monkeypatch)
    made.run(table(*CORNERS), np.array([0, 1] * 3 + [0]), logistic(2), SeededBits(1))
    assert isinstance(made.event, events.Composed)
    *counted, minimum, settled = made.event.events
    *first, tilt, settle = drawn.mechanisms
    assert [each.event for each in first] == counted
    assert settle.event == settled
    assert accounting.epsilon(made.event, 1e-6, neighbours=relation) <= 1
    assert isinstance(minimum, events.Approx)
    if ridge is not None:
        sigma = objective_sigma(
            minimum.epsilon,
            minimum.delta - Fraction(1, 1 << 100),
            gradient=1,
            curvature=Fraction(1, 4),
            regularisation=5,
            one_signed=True,
            neighbours=relation,
        )
        assert tilt.sigma == sigma
        assert float(tilt.grid.step) * math.sqrt(2) <= minimise.TOLERANCE
        floor = 2 * Objective(loss=logistic(2), ridge=5.0, features=2).tolerance / 5
        assert settle.sensitivity >= Fraction(floor)


def test_what_the_theorem_does_not_cover_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        ObjectivePerturbation(spending=Spending.of(1), neighbours=Neighbours.REPLACE, ridge=None)
    with pytest.raises(InvalidParameter, match="epsilon"):
        ObjectivePerturbation(spending=Spending.of("0.1", 1e-6), neighbours=Neighbours.REPLACE, ridge=1.0)
    for loss in (logistic(3), hinge(2)):
        with pytest.raises(InvalidParameter, match="two classes"):
            tilted.two_smooth_classes(loss)


def test_too_loose_a_minimiser_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that skips the certificate: a point that is far away passes for the minimiser."""
    objective = Objective(loss=logistic(2), ridge=1.0, features=2)
    rows, codes = table((RADIUS, 0)), np.array([1])
    monkeypatch.setattr(minimise.EmpiricalRisk, "quick", lambda _: np.array([[0.0, 0.0]]))
    honest = objective.minimiser(rows, codes)
    monkeypatch.setattr(Objective, "error", lambda *_: -10.0)
    broken = objective.minimiser(rows, codes)
    assert np.linalg.norm(honest - broken) > 2 * objective.tolerance


def test_the_ridge_follows_from_a_released_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.RowCountPlan, "release", lambda *_: 1000.0)
    ridges: list[float] = []
    honest = output.sensitivity

    def watched(objective: Objective, count: int | None) -> Fraction:
        ridges.append(objective.ridge)
        return honest(objective, count)

    monkeypatch.setattr(output, "sensitivity", watched)
    for rows in (table(*CORNERS), table((RADIUS, 0))):
        made = OutputPerturbation(spending=Spending.of(1, 1e-6), neighbours=Neighbours.ADD_REMOVE, ridge=None)
        made.run(rows, np.zeros(len(rows), dtype=np.int64), logistic(2), SeededBits(1))
    assert ridges[0] == ridges[1]
