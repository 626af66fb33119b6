"""Robust location: exact sensitivities, the run's account, the known noise of the textbook run, and coverage."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtri

from discreet import accounting
from discreet import statistics as st
from discreet.accounting.composition import terms
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import coins, normals, uniforms
from discreet.privacy import Neighbours, events
from discreet.statistics.inputs import NumericColumn, column
from discreet.statistics.noise_errors import Path, deviation, half_width, number_noise, pure_part
from discreet.statistics.robust import m_estimators as location
from discreet.statistics.robust.m_estimators import LocationPlan
from discreet.statistics.robust.scores import Huber, Score, WholeScore
from tests.cases import every
from tests.effort import some
from tests.statistics.recorded import flat, overruns, watched

SCORES = [st.Huber(), st.Huber(0.2), st.Logistic(), st.Biweight()]
RELATIONS = ["add_remove", "replace"]
BASE = [-9.0, -1.0, 0.0, 0.3, 4.0]
EXTRA = [-10.0, -4.0, -1.3, 0.0, 0.11, 1.7, 10.0, np.inf]


def run(values: list[float], relation: str, psi: Score, **budget: Any) -> tuple[Any, Any]:
    with watched(lambda index: 3000 * (index + 1)) as seen:
        estimate = st.m_estimate(
            values, psi=psi, bounds=(-10, 10), scale=1.5, neighbours=relation, bits=SeededBits(1), **budget
        )
    return estimate, seen


def neighbours(relation: str) -> list[list[float]]:
    if relation == "add_remove":
        return [[*BASE, value] for value in EXTRA]
    return [[*BASE[:-1], value] for value in EXTRA]


def worst(relation: str, psi: Score, **budget: Any) -> float:
    base, seen = run(BASE, relation, psi, **budget)
    found = []
    for values in neighbours(relation):
        estimate, other = run(values, relation, psi, **budget)
        found += overruns(seen, other)
        ends = (estimate.value, estimate.low, estimate.high)
        assert ends == (base.value, base.low, base.high)  # nothing else is a function of the data
        assert estimate.event == base.event
    return max(found)


@every("relation", RELATIONS)
@every("psi", SCORES)
@every("budget", some([{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}], 3))
def test_neighbours_move_every_sum_by_its_sensitivity_at_most(relation: str, psi: Score, budget: Any) -> None:
    assert 0.5 < worst(relation, psi, **budget) <= 1


def test_a_sensitivity_without_its_factor_two_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "number_noise", lambda part, move: number_noise(part, max(1, move // 2)))
    assert worst("replace", st.Huber(0.2), epsilon=1) > 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("options", [{}, {"start": 0.5}, {"steps": 3, "start": 0}, {"target": "sample"}], ids=str)
def test_the_event_is_what_was_drawn(relation: str, options: Any) -> None:
    estimate, seen = run(BASE, relation, st.Huber(), epsilon=1, **options)
    assert flat(estimate.event) == [mechanism.event for mechanism in seen.mechanisms]
    assert accounting.epsilon(estimate.event, 0, neighbours=Neighbours(relation)) == 1


def test_a_step_nobody_paid_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        LocationPlan, "event", property(lambda self: events.Repeated(self.descent.event, self.path.steps - 1))
    )
    with pytest.raises(AssertionError):
        test_the_event_is_what_was_drawn("replace", {"start": 0.5})


@pytest.mark.parametrize("relation", RELATIONS)
def test_gaussian_budgets_are_kept(relation: str) -> None:
    estimate = st.huber_location(
        BASE, bounds=(-10, 10), scale=1, epsilon=1, delta=1e-6, neighbours=relation, bits=SeededBits(2)
    )
    assert 0.9 < accounting.epsilon(estimate.event, Fraction(1, 10**6), neighbours=Neighbours(relation)) <= 1
    assert not estimate.private


def test_a_pure_part_is_a_gaussian_one() -> None:
    """At most the mu of the part: mu = 2 Phi^-1(1 / (1 + e^-epsilon)), from nearly nothing to a large budget."""
    for rho in (1e-6, 0.01, 0.5, 8.0, 200.0):
        part = st.Spending.of(rho=rho)
        assert 2 * ndtri(expit(float(pure_part(part)))) <= np.sqrt(2 * rho)


def contaminated(bits: SeededBits) -> NumericColumn:
    """950 normal values around 3 and 50 at 50."""
    values = np.append(3 + normals(950, bits=bits), np.full(50, 50.0))
    return column(values, bounds=(-100, 100), neighbours="replace", fine=200 << 16)


def textbook(mechanism: Laplace | Gaussian, score: WholeScore, values: NumericColumn) -> LocationPlan:
    """20 steps of size 1 from the middle of the bounds, with all of the budget; the last iterate."""
    exact = Laplace(epsilon=1000, sensitivity=score.score_bound)
    path = Path(steps=20, last=1, rate=1.0)
    start = values.width // 2
    return LocationPlan(score=score, path=path, start=start, size=1000, descent=mechanism, slope=exact, square=None)


def textbook_noise(score: WholeScore, kind: str) -> Laplace | Gaussian:
    if kind == "pure":  # epsilon = 1 over 20 steps
        return Laplace(epsilon=Fraction(1, 20), sensitivity=2 * score.score_bound)
    multiplier = np.sqrt(20) / 0.3  # mu = 0.3 over 20 steps
    return Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=2 * score.score_bound)


@pytest.mark.parametrize(("kind", "expected"), [("pure", 0.077), ("gaussian", 0.041)])
def test_the_textbook_run_has_its_known_noise(kind: str, expected: float, bits: SeededBits) -> None:
    """80 runs tell a deviation within 25 %: its own relative deviation is 1 / sqrt(160) = 0.08."""
    values = contaminated(bits)
    score = WholeScore(Huber(), 1 << 16)
    plan = textbook(textbook_noise(score, kind), score, values)
    results = [plan.run(values, Fraction(19, 20), bits).value for _ in range(80)]
    assert np.std(results) == pytest.approx(expected, rel=0.25)
    assert np.mean(results) == pytest.approx(3.07, abs=0.06)
    weights = plan.path.weights(0.78)  # the share of values within k of the solution
    told = deviation(plan.descent) * np.sqrt(np.sum(weights**2)) / 1000 / score.scale
    assert told == pytest.approx(expected, abs=0.001)


def test_the_opposite_sign_runs_away(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    values = contaminated(bits)
    score = WholeScore(Huber(), 1 << 16)
    plan = textbook(textbook_noise(score, "gaussian"), score, values)
    real = WholeScore.psi
    monkeypatch.setattr(WholeScore, "psi", lambda self, differences: -real(self, differences))
    assert abs(plan.run(values, Fraction(19, 20), bits).value - 3) > 10


def test_averaged_noise_has_the_weights_of_a_simulated_run() -> None:
    """Noise of 1 in step s alone, on a line of slope -h, ends as weight s."""
    path, slope = Path(steps=7, last=3, rate=0.8), 0.6
    for step in range(1, 8):
        place, visited = 0.0, []
        for k in range(1, 8):
            place += path.rate * (-slope * place + (k == step))
            visited.append(place)
        assert path.weights(slope)[step - 1] == pytest.approx(np.mean(visited[-3:]))
    start = [(1 - path.rate * slope) ** k for k in (5, 6, 7)]
    assert path.memory(slope) == pytest.approx(np.mean(start))


def test_widths_are_quantiles() -> None:
    assert half_width(0.95, deviation=2.0) == pytest.approx(2 * 1.959964)
    assert half_width(0.99, scales=[3.0]) == pytest.approx(3 * np.log(100))
    # two Laplace errors of scale 1: P(|X| > x) = (1 + x / 2) e^-x
    width = half_width(0.9, scales=[1.0, 1.0])
    assert (1 + width / 2) * np.exp(-width) == pytest.approx(0.1)


def coverage(runs: int, size: int, seed: int, **options: Any) -> tuple[float, float]:
    hits, lengths = 0, []
    for index in range(runs):
        bits = SeededBits(seed + index)
        values = 3 + normals(size, bits=bits)
        wild = uniforms(size, bits=bits) < options.get("outliers", 0)
        values = np.where(wild, 3 + 40.0 * coins(size, bits=bits) - 20, values)
        found = st.huber_location(
            values, bounds=(-100, 100), scale=1, bits=bits, **{k: v for k, v in options.items() if k != "outliers"}
        )
        hits += found.low <= 3 <= found.high
        lengths.append(found.high - found.low)
    return hits / runs, float(np.mean(lengths))


@pytest.mark.ci
def test_intervals_cover_the_population() -> None:
    """0.95 covered: 89 or fewer of 100 runs has a chance of 0.01, and the seeds are fixed."""
    share, length = coverage(100, 1000, 100, epsilon=1, outliers=0.05)
    assert share >= 0.9
    alone = 2 * 1.96 * np.sqrt(1.05 / 1000)
    noise = half_width(0.95, scales=[1.345 / (1000 * 0.175)])
    assert alone < length < 2 * alone + 2 * noise


def test_an_interval_of_the_noise_alone_does_not_cover_the_population() -> None:
    share, _ = coverage(40, 1000, 100, epsilon=2, delta=1e-6, target="sample")
    assert share < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("outliers", [0, 0.05])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}], ids=["pure", "gaussian"])
def test_intervals_cover_the_population_closely(relation: str, outliers: float, budget: Any) -> None:
    """1000 runs: 0.95 gives 0.93 or less with a chance below 0.003; 0.92 is never seen."""
    share, _ = coverage(1000, 2000, 5000, neighbours=relation, outliers=outliers, **budget)
    assert share >= 0.93


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"bounds": None}, "bounds"),
        ({"scale": 0}, "scale"),
        ({"scale": 1e-12}, "scale"),
        ({"start": 11}, "start"),
        ({"steps": 0}, "steps"),
        ({"step_size": 3}, "step_size"),
        ({"target": "both"}, "target"),
        ({"size": 0}, "size"),
        ({"epsilon": None}, "epsilon"),
        ({"confidence": 1}, "confidence"),
        ({"psi": "huber"}, "psi"),
    ],
)
def test_wrong_parameters_are_refused_before_the_data_is_touched(options: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"psi": st.Huber(), "bounds": (-10, 10), "scale": 1, "epsilon": 1} | options
    with pytest.raises(InvalidParameter) as caught:
        st.m_estimate(object(), **given)
    assert caught.value.name == name


def test_no_values_are_no_error() -> None:
    for relation in RELATIONS:
        found = st.huber_location([], bounds=(0, 1), scale=0.1, epsilon=1, neighbours=relation, bits=SeededBits(3))
        assert found.low <= found.value <= found.high


def test_scores_whose_squares_would_not_fit_are_refused() -> None:
    class Steep(Score):
        @property
        def reach(self) -> float:
            return 16.0

        def psi(self, u: Any) -> Any:
            return 1000 * np.tanh(u)

        def slope(self, u: Any) -> Any:
            return 1000 / np.cosh(u) ** 2

    assert WholeScore(Steep(), 1 << 16).score_bound <= 1 << 30
    with pytest.raises(InvalidParameter) as caught:
        WholeScore(Steep(), 1 << 24)
    assert caught.value.name == "psi"
    with pytest.raises(InvalidParameter) as caught:
        WholeScore(Huber(65), 1 << 16)
    assert caught.value.name == "reach"


def test_a_score_of_ones_own() -> None:
    class Step(Score):
        @property
        def reach(self) -> float:
            return 2.0

        def psi(self, u: Any) -> Any:
            return np.clip(u, -1, 1) / 2

        def slope(self, u: Any) -> Any:
            return (np.abs(u) < 1) / 2

    found = st.m_estimate([5.0] * 2000, psi=Step(), bounds=(0, 10), scale=1, epsilon=1, bits=SeededBits(4))
    assert found.value == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}])
def test_a_scale_that_nobody_stated_is_paid_for(neighbours: Neighbours, budget: dict[str, Any]) -> None:
    bits = SeededBits(8)
    x = 50 + 10 * normals(2000, bits=bits)
    found = st.huber_location(x, bounds=(-100, 200), neighbours=neighbours, bits=bits, **budget)
    assert found.low < 50 < found.high
    assert found.high - found.low < 3
    if "rho" in budget:
        assert accounting.zcdp.compose(terms(found.event, neighbours)).rho <= Fraction(1, 10)
    else:
        assert accounting.epsilon(found.event, budget.get("delta", 0), neighbours=neighbours) <= 1


@pytest.mark.parametrize("x", [[], [7.0] * 5, [np.nan]])
def test_values_that_are_all_alike_have_a_scale(x: list[float]) -> None:
    found = st.huber_location(x, bounds=(0, 10), epsilon=1, bits=SeededBits(9))
    assert 0 <= found.low <= found.value <= found.high <= 10


def test_the_scale_is_read_through_its_two_draws_alone() -> None:
    """Neighbours whose quartiles were forced to the same points are asked the same sums from then on."""
    answers = [40.0, 60.0, 50.0, 3.0, *[0.0] * 20]
    seen = []
    for x in ([10.0, 20.0, 30.0], [10.0, 20.0, 30.0, 90.0]):
        with watched(lambda i: answers[min(i, 23)]) as record:
            st.huber_location(x, bounds=(0, 100), epsilon=1)
        seen.append(record)
    assert [mechanism.event for mechanism in seen[0].mechanisms] == [
        mechanism.event for mechanism in seen[1].mechanisms
    ]
    assert max(overruns(*seen)) <= 1


@pytest.mark.parametrize(
    ("options", "name"), [({"start": 11}, "start"), ({"steps": 0}, "steps"), ({"psi": "huber"}, "psi")]
)
def test_wrong_parameters_are_refused_before_a_scale_is_drawn(options: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"psi": st.Huber(), "bounds": (-10, 10), "epsilon": 1} | options
    with watched(lambda _: 0.0) as record, pytest.raises(InvalidParameter) as caught:
        st.m_estimate([1.0, 2.0], **given)
    assert caught.value.name == name
    assert record.values == []
