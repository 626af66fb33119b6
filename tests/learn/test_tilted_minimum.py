"""Pure objective perturbation: the density of what it releases, points that are certain, the noise that is drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet import accounting
from discreet.errors import InvalidParameter
from discreet.learn import LogisticRegression
from discreet.learn.linear import tilted_minimum as tilted
from discreet.learn.linear.loss_functions import EmpiricalRisk, capped_bends, capped_logistic, logistic
from discreet.learn.linear.surveyed_fit import PURE_COMPARISON_SHARE, SURVEY_SHARE
from discreet.learn.linear.tilted_minimum import BALL, SETTLING, BallObjective, TiltedMinimum, chosen_ridge
from discreet.mechanisms import KNorm
from discreet.noise import SeededBits
from discreet.noise.experiment import normals
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Row = tuple[tuple[float, float], int]

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
UNITS = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.6, -0.8), (0.99, 0.14)]
ROWS: list[Row] = [(x, code) for x, code in product(UNITS, (0, 1))]
FEW: list[Row] = [((0.3, 0.2), 0), ((-0.5, 0.5), 1), ((1.0, 0.0), 1)]
WRONG: list[Row] = [((0.99, 0.14), 0)] * 8  # at (0, 0.7) they pull along the first axis, and do not bend


def budget(epsilon: float | Fraction, relation: Neighbours, ridge: float | None = None) -> TiltedMinimum:
    return TiltedMinimum(part=Spending.of(epsilon), neighbours=relation, ridge=ridge)


def ball(ridge: float, features: int = 2, origin: float = 0.0) -> BallObjective:
    return BallObjective(loss=capped_logistic(), ridge=ridge, features=features, origin=origin)


# ------------------------------------------------------------------------------- the density of the exact minimiser


def moved(row: Row, v: Floats) -> tuple[Floats, Floats]:
    """What a row adds to the tilt that leads to v, and to the Jacobian there."""
    x, code = row
    margin, label = np.array([[float(np.dot(x, v))]]), np.array([code])
    slope, bend = capped_logistic().value(margin, label)[1][0, 0], capped_bends(margin, label)[0, 0]
    return -slope * np.array(x), bend * np.outer(x, x)


def worst_ratio(relation: Neighbours, epsilon: float, ridge: float) -> float:
    """The largest log ratio of densities of v* for neighbours at many points, margins of 0 among them.

    The density at v is that of the tilt that leads there, times the Jacobian.
    """
    noise = budget(epsilon, relation).tilt(Fraction(epsilon), ball(ridge))
    decay = float(noise.epsilon / noise.sensitivity)
    points = [*(2 * normals((30, 2), bits=SeededBits(1))), np.zeros(2), np.array([0.0, 0.7]), np.array([3.0, 0.0])]
    worst = 0.0
    for base, v in product(([], FEW, WRONG), points):
        parts = [moved(row, v) for row in base]
        tilt = -ridge * v + sum((part[0] for part in parts), np.zeros(2))
        hessian = ridge * np.eye(2) + sum((part[1] for part in parts), np.zeros((2, 2)))
        found = [
            float(-decay * np.linalg.norm(tilt + more) + np.log(np.linalg.det(hessian + bent)))
            for more, bent in [(np.zeros(2), np.zeros((2, 2))), *(moved(row, v) for row in ROWS)]
        ]
        apart = max(found[1:]) - min(found[1:]) if relation is REPLACE else max(abs(x - found[0]) for x in found)
        worst = max(worst, apart)
    return worst


CASES = [(ADD, 1.0, 0.5), (ADD, 4.0, 0.5), (REPLACE, 1.0, 0.5), (REPLACE, 3.0, 0.5)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("relation", "epsilon", "ridge"), CASES)
def test_no_row_changes_the_density_of_the_minimiser_by_more_than_its_epsilon(
    relation: Neighbours, epsilon: float, ridge: float
) -> None:
    allowed = epsilon * float(1 - SETTLING)
    assert 0.9 * allowed < worst_ratio(relation, epsilon, ridge) <= allowed + 1e-9


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("relation", "epsilon", "ridge"), CASES)
def test_a_jacobian_that_is_forgotten_would_be_seen(
    relation: Neighbours, epsilon: float, ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tilted, "left_over", lambda budget, **_: budget)
    assert worst_ratio(relation, epsilon, ridge) > epsilon * float(1 - SETTLING) + 1e-9


def test_a_replaced_row_that_counts_once_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = TiltedMinimum.tilt

    def halved(made: TiltedMinimum, *given: Any) -> KNorm:
        noise = honest(made, *given)
        return KNorm(epsilon=noise.epsilon, sensitivity=noise.sensitivity / 2, dimension=noise.dimension)

    monkeypatch.setattr(TiltedMinimum, "tilt", halved)
    assert worst_ratio(REPLACE, 1.0, 0.5) > 1.0


def test_a_cap_that_is_not_kept_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant whose rows pull with the plain logistic slope, up to 1, where noise is made for 1/2."""
    swapped = replace(capped_logistic(), value=logistic(2).value)
    monkeypatch.setitem(globals(), "capped_logistic", lambda: swapped)
    assert worst_ratio(ADD, 1.0, 0.5) > 1.0


# --------------------------------------------------------------------------------------------- points that are certain


def test_the_capped_loss_is_the_logistic_one_on_the_right_side_and_its_tangent_on_the_wrong_one() -> None:
    margins = np.linspace(-6, 6, 25)[:, None]
    losses, slopes = capped_logistic().value(margins, np.ones(25, dtype=np.int64))
    right = margins[:, 0] >= 0
    assert losses[right] == pytest.approx(np.log1p(np.exp(-margins[right, 0])))
    assert losses[~right] == pytest.approx(np.log(2) - margins[~right, 0] / 2)
    assert np.all(np.abs(slopes) <= 0.5)
    nothing = capped_logistic().value(margins, np.full(25, -1))
    assert not np.any(nothing[0])
    assert not np.any(nothing[1])
    step = 1e-6
    for code, each in product((0, 1), (-2.0, 0.5, 3.0)):
        ends = [capped_logistic().value(np.array([[each + move]]), np.array([code])) for move in (step, -step)]
        middle = capped_logistic().value(np.array([[each]]), np.array([code]))
        assert (ends[0][0] - ends[1][0])[0] / (2 * step) == pytest.approx(middle[1][0, 0], abs=1e-6)
        bend = capped_bends(np.array([[each]]), np.array([code]))[0, 0]
        assert (ends[0][1] - ends[1][1])[0, 0] / (2 * step) == pytest.approx(bend, abs=1e-6)


def root(tilt: float, ridge: float, count: int) -> float:
    """The exact minimiser for rows of length 1 and class 1 in one dimension, by bisection."""
    low, high = -1e30, 1e30
    for _ in range(400):
        middle = (low + high) / 2
        slope = ridge * middle + tilt - count * (0.5 if middle < 0 else 1 / (1 + math.exp(min(middle, 700))))
        low, high = (middle, high) if slope < 0 else (low, middle)
    return (low + high) / 2


@pytest.mark.parametrize("tilt", [0.0, 0.4, -3.0, 50.0, -1e3, 1e6, -1e12])
def test_the_point_is_the_projection_of_the_minimiser_however_long_the_tilt(tilt: float) -> None:
    made = ball(0.5, features=1)
    rows, codes = np.full((3, 1), float(RADIUS)), np.ones(3, dtype=np.int64)
    found = made.within_ball(rows, codes, np.zeros((1, 1)), np.array([[tilt]]))
    exact = min(max(root(tilt, 0.5, 3), -BALL), BALL)
    assert abs(found[0, 0] - exact) <= made.tolerance / made.ridge


@pytest.mark.parametrize("length", [1.0, 400.0])
def test_a_lost_optimiser_ends_at_the_same_point(length: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Newton's steps are of no use, plain descent keeps to the promise."""
    made = ball(2.0)
    rows = np.rint(RADIUS * np.array(UNITS))
    codes, tilt = np.array([0, 1, 1, 0, 1]), length * np.array([[0.6, 0.8]])
    start = np.array([[0.0, 0.3]])
    quick = made.within_ball(rows, codes, start, tilt)
    monkeypatch.setattr(EmpiricalRisk, "quick", lambda _: np.full((1, 2), np.nan))
    slow = made.within_ball(rows, codes, start, tilt)
    assert np.linalg.norm(quick - slow) <= 2 * made.tolerance / made.ridge
    monkeypatch.setattr(BallObjective, "_is_near", lambda *_: True)
    monkeypatch.setattr(EmpiricalRisk, "quick", lambda _: np.zeros((1, 2)))
    lost = made.within_ball(rows, codes, start, tilt)  # the mutant without a certificate
    assert np.linalg.norm(quick - lost) > 2 * made.tolerance / made.ridge


rows_of_a_kind = st.tuples(st.floats(-3.2, 3.2), st.floats(0, 1), st.integers(-1, 1), st.integers(1, 5000))


@given(
    table=st.lists(rows_of_a_kind, max_size=6),
    tilt=st.tuples(st.floats(-40, 40), st.floats(-40, 40)),
    ridge=st.sampled_from([0.5, 3.0]),
)
def test_every_point_is_found_quickly(table: list[Any], tilt: tuple[float, float], ridge: float) -> None:
    """Rows of any length, many times over, of any class: the certificate is reached without plain descent."""
    polar = np.array([each[:2] for each in table], dtype=np.float64).reshape(-1, 2)
    kinds = RADIUS * polar[:, 1:] * np.stack([np.cos(polar[:, 0]), np.sin(polar[:, 0])], axis=1)
    copies = [each[3] for each in table]
    whole = np.repeat(np.trunc(kinds), copies, axis=0)
    codes = np.repeat(np.array([each[2] for each in table], dtype=np.int64), copies)
    made = ball(ridge)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EmpiricalRisk, "slow", lambda *_: pytest.fail("plain descent"))
        made.within_ball(whole, codes, np.zeros((1, 2)), np.array([tilt]))


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilted, "MOST", 2)
    with pytest.raises(InvalidParameter, match="rows"):
        ball(1.0).within_ball(np.zeros((3, 2)), np.zeros(3, dtype=np.int64), np.zeros((1, 2)), np.zeros((1, 2)))


# ----------------------------------------------------------------------------------------------------- what is drawn


def test_more_rows_than_a_minimiser_is_certain_for_are_fitted_by_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the released number of rows, for the same price."""
    drawn = Drawn(monkeypatch)
    monkeypatch.setattr(tilted, "MOST", 40)
    model = LogisticRegression(epsilon=50, delta=0, norm_bound=3, classes=[0, 1], random_state=1).fit(*simulated(400))
    assert len(drawn.made) > 7  # a survey, scales, a comparison, and steps
    assert sum(each.epsilon for each in drawn.made) == 50
    assert model.event_ == model.plan_event(2)


class Drawn:
    """Keeps every K-norm release."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[KNorm] = []
        honest = KNorm.release

        def release(mechanism: KNorm, value: Any, **named: Any) -> Any:
            self.made.append(mechanism)
            return honest(mechanism, value, **named)

        monkeypatch.setattr(KNorm, "release", release)


def simulated(count: int = 60) -> tuple[Floats, Integers]:
    X = normals((count, 2), bits=SeededBits(4))
    return X, (X[:, 0] > 0).astype(np.int64)


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("C", [None, 0.5])
@pytest.mark.parametrize("epsilon", [1, 400])
def test_the_event_of_a_fit_is_what_is_drawn(
    relation: Neighbours, C: float | None, epsilon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Survey, scaling of entries where rows are heard, tilt and Jacobian, settling, comparison: nothing else."""
    drawn = Drawn(monkeypatch)
    common: dict[str, Any] = {"delta": 0, "norm_bound": 3, "classes": [0, 1], "method": "objective", "random_state": 1}
    model = LogisticRegression(epsilon=epsilon, C=C, neighbours=relation, **common).fit(*simulated())
    survey, *scaled, tilt, settling, comparison = drawn.made
    assert len(scaled) == (epsilon == 400)
    part = sum((each.epsilon for each in scaled), Fraction(0))
    rest = Fraction(epsilon) * (1 - SURVEY_SHARE - PURE_COMPARISON_SHARE) - part
    ridge = chosen_ridge(rest, 3) if C is None else 1 / C
    jacobian = math.log1p(0.25 / ridge)
    total = float(survey.epsilon + part + tilt.epsilon + settling.epsilon + comparison.epsilon) + jacobian
    assert total == pytest.approx(epsilon, rel=1e-12)
    assert total <= epsilon * (1 + 1e-15)
    assert float(accounting.epsilon(model.event_, 0, neighbours=relation)) == pytest.approx(epsilon)
    assert tilt.sensitivity == (Fraction(1, 2) if relation is ADD else 1)
    made = ball(ridge, features=3)
    rounding = float(tilt.grid.step) * math.sqrt(3) / 2
    assert settling.sensitivity >= Fraction(2 * (made.tolerance + rounding) / ridge)
    assert settling.sensitivity < 1e-3


def test_the_jacobian_takes_a_quarter_at_most() -> None:
    for epsilon, size in product([Fraction(1, 100), Fraction(1), Fraction(20)], [1, 30, 1000]):
        taken = math.log1p(0.25 / chosen_ridge(epsilon, size))
        assert taken <= float(epsilon) / 4 * (1 + 1e-12)


def test_what_leaves_nothing_for_the_noise_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        LogisticRegression(epsilon=0.1, delta=0, norm_bound=1, classes=[0, 1], method="objective", C=1).plan_event(2)
    with pytest.raises(InvalidParameter, match="C="):
        LogisticRegression(epsilon=1, delta=0, norm_bound=1, classes=[0, 1], method="objective", C=9).plan_event(2)
    with pytest.raises(InvalidParameter, match="classes"):
        LogisticRegression(epsilon=1, delta=0, norm_bound=1, method="objective").plan_event(2)


@pytest.mark.parametrize("told", [{}, {"steps": 5}, {"C": 1.0}, {"class_weight": {0: 2}}, {"classes": [0, 1, 2]}])
def test_auto_is_the_objective_where_nothing_else_was_asked_for(
    told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Drawn(monkeypatch)
    common: dict[str, Any] = {"epsilon": 1, "delta": 0, "norm_bound": 3, "classes": [0, 1], "random_state": 1}
    LogisticRegression(**(common | told)).fit(*simulated())
    assert any(each.sensitivity < 1 for each in drawn.made) == (not told)  # gradients are integers


def test_without_an_intercept_there_is_no_prior_and_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(monkeypatch)
    X, y = simulated(2000)
    model = LogisticRegression(
        epsilon=1, delta=0, norm_bound=3, classes=[0, 1], fit_intercept=False, random_state=1
    ).fit(X, y)
    assert len(drawn.made) == 4  # with the scaling of entries
    assert model.intercept_ == 0
    assert model.score(X, y) > 0.9
