"""Variances: what one value moves, what the noise costs, and how often their intervals cover."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import accounting
from discreet import statistics as st
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.privacy import Neighbours
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import column
from discreet.statistics.moments import power_sums as moments
from discreet.statistics.moments.variance import squares_sensitivity
from tests.cases import every
from tests.statistics.recorded import BOTH, given_to_noise, neighbouring, pure_loss, remembered, squared_mu
from tests.statistics.test_mean import beta_sample

POINTS = [0.0, 0.5, 2.0, 3.1, 4.0]
TRUTH = 100**2 * 10 / 392


def _costs(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch, cost: Any, **budget: Any) -> list[Fraction]:
    @remembered
    def seen(x: list[float]) -> Any:
        return given_to_noise(monkeypatch, lambda: st.variance(x, bounds=(0, 4), neighbours=neighbours, **budget))

    return [cost(seen(one), seen(other)) for one, other in neighbouring(POINTS, neighbours, 1)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("neighbours", "target"),
    [(Neighbours.ADD_REMOVE, "population"), (Neighbours.REPLACE, "sample"), (Neighbours.REPLACE, "population")],
)
def test_laplace_noise_costs_epsilon_and_no_less(
    neighbours: Neighbours, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = _costs(neighbours, monkeypatch, pure_loss, epsilon=1, target=target)
    assert max(costs) == 1


@pytest.mark.parametrize("neighbours", BOTH)
def test_normal_noise_costs_mu_and_no_less(neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = _costs(neighbours, monkeypatch, squared_mu, rho=0.5)
    assert 1 - Fraction(1, 10**9) <= max(costs) <= 1


def test_no_value_at_all_moves_the_four_numbers_by_more_than_one() -> None:
    """On a grid of 2^6 steps, in whole numbers: the j-th number is a multiple of w^-j."""
    width = 1 << 6
    for step in range(width + 1):
        c = Fraction(2 * step - width, width)
        rest = 1 - c * c
        assert c**2 + rest**2 + (c * rest) ** 2 + (c * c * rest) ** 2 <= 1


def test_a_larger_number_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of normal noise fails for moments that are not centred: 1 and c^2 in the place of 1 - c^2."""

    def plain(values: Any, degree: int) -> list[int]:
        centred = 2 * values.steps - values.width
        return [moments.exact_sum(centred**j) for j in range(1, degree + 1)]

    monkeypatch.setattr(moments, "_numbers", plain)
    assert max(_costs(Neighbours.ADD_REMOVE, monkeypatch, squared_mu, rho=0.5)) > 1


@pytest.mark.parametrize(("count", "width"), [(2, 3), (3, 4), (4, 6)])
def test_the_sensitivity_of_the_variance_is_what_brute_force_finds(count: int, width: int) -> None:
    """For four values from 0 to 6 it is 6.75 for the divisor n, and 9 for n - 1."""
    furthest = [0.0, 0.0]
    for rest in product(range(width + 1), repeat=count - 1):
        tables = np.array([[*rest, own] for own in range(width + 1)], dtype=float)
        for less in (0, 1):
            found = tables.var(axis=1, ddof=less)
            furthest[less] = max(furthest[less], float(found.max() - found.min()))
    assert furthest[0] == pytest.approx(squares_sensitivity(count, width) / count**2)
    assert furthest[1] == pytest.approx(width**2 / count)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.5}])
def test_without_noise_moments_are_the_moments(
    neighbours: Neighbours, budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Laplace", "Gaussian"):
        monkeypatch.setattr(f"discreet.mechanisms.{name}.release", lambda _, value, **__: value)
    values = column([-1.0, -0.5, 0.25, 1.0, 0.75], bounds=(-1, 1), neighbours=neighbours, fine=moments.COARSE)
    release = moments.bernstein if "epsilon" in budget else moments.gaussian
    found = release(values, Spending.of(**budget), SeededBits(1)).sums(np.eye(5))
    exact = np.array([-1.0, -0.5, 0.25, 1.0, 0.75])
    assert found == pytest.approx([np.sum(exact**power) for power in range(5)])


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_event_is_the_budget(neighbours: Neighbours, delta: float | None) -> None:
    found = st.variance([1, 2, 3], bounds=(0, 4), epsilon=0.5, delta=delta, neighbours=neighbours)
    assert 0.499 < accounting.epsilon([found.event], delta or 0, neighbours=neighbours) <= 0.5


CASES: list[tuple[int, dict[str, Any]]] = [
    (1000, {}),
    (1000, {"neighbours": "replace"}),
    (1000, {"delta": 1e-6}),
    (300, {"target": "sample"}),
    (300, {"target": "sample", "neighbours": "replace", "ddof": 0}),
]


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("count", "options"), CASES)
@pytest.mark.parametrize("runs", [20, pytest.param(400, marks=pytest.mark.slow)])
def test_intervals_cover_and_are_short(count: int, options: dict[str, Any], runs: int) -> None:
    """Of intervals that cover 95 % the count of those that do not is below its mean and five deviations."""
    bits, missed, lengths, errors, plain = SeededBits(count), 0, [], [], []
    for _ in range(runs):
        x = beta_sample(count, bits)
        exact = float(np.var(x, ddof=options.get("ddof", 1)))
        truth = exact if options.get("target") == "sample" else TRUTH
        found = st.variance(x, bounds=(0, 100), epsilon=1, bits=bits, **options)
        missed += not found.low <= truth <= found.high
        assert found.low <= found.value <= found.high
        lengths.append(found.high - found.low)
        errors.append(abs(found.value - exact))
        plain.append(exact)
    assert missed <= runs * 0.06 + 5 * np.sqrt(runs * 0.05 * 0.95) * (runs < 100)
    sampling = 0.0 if options.get("target") == "sample" else float(np.std(plain))
    assert np.mean(lengths) < 2 * (2 * 1.96 * sampling) + 4 * np.quantile(errors, 0.95)


@every("neighbours", BOTH)
@every("budget", [{"epsilon": 1}, {"rho": 0.1}])
@every("x", [[], [3], [np.nan, np.nan], [None, 2], [np.inf, -np.inf]])
def test_few_values_are_no_error(x: list[Any], budget: dict[str, Any], neighbours: Neighbours) -> None:
    for target in ("population", "sample"):
        found = st.standard_deviation(x, bounds=(-5, 5), neighbours=neighbours, target=target, **budget)
        assert 0 <= found.low <= found.value <= found.high <= 5 * np.sqrt(2)


def test_values_far_from_the_middle_do_not_wrap() -> None:
    """The largest grid: 2^15 steps, whose fourth powers add up beyond 2^63."""
    x = np.array([0.0, 1.0] * 1000)
    found = st.std(x, bounds=(0, 1), epsilon=100, target="sample", ddof=0)
    assert found.value == pytest.approx(0.5, abs=1e-3)


def test_what_is_wrong_is_refused_before_the_values_are_seen() -> None:
    with pytest.raises(InvalidParameter, match="ddof"):
        st.variance(["text"], bounds=(0, 1), epsilon=1, ddof=2)
    with pytest.raises(InvalidParameter, match="bounds"):
        st.std(["text"], bounds=None, epsilon=1)
