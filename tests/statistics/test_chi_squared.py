"""Chi-squared tests: levels that know of the noise, a classical critical value that does not, and sensitivities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from discreet import statistics as st
from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.statistics.tests.chi_squared import multinomials
from tests.statistics.recorded import overruns, watched

RELATIONS = ["add_remove", "replace"]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 0.5}], ids=["pure", "gaussian"])
def test_neighbours_move_the_table_by_its_sensitivity_at_most(relation: str, budget: Any) -> None:
    def seen(rows: list[tuple[str, int]]) -> Any:
        with watched(lambda index: 5 + index) as kept:
            st.chi_squared_test(
                [a for a, _ in rows],
                [b for _, b in rows],
                categories=(["u", "v"], [0, 1, 2]),
                neighbours=relation,
                simulations=19,
                bits=SeededBits(1),
                **budget,
            )
        kept.mechanisms, kept.values = kept.mechanisms[:1], kept.values[:1]  # the others are simulations
        return kept

    base = [("u", 0), ("v", 2), ("u", 1)]
    rest = base if relation == "add_remove" else base[:-1]
    cells = [("u", 1), ("v", 0), ("v", 2), ("w", 0), ("u", 9)]
    found = [overruns(seen(base), seen([*rest, cell]))[0] for cell in cells]
    assert max(found) == pytest.approx(1)
    assert max(found) <= 1 + 1e-12


def test_the_event_is_the_noise_drawn() -> None:
    table = [[5, 6], [7, 8]]
    pure = st.chi_squared_test(table, epsilon=1, neighbours="replace", simulations=19, bits=SeededBits(1))
    assert pure.event == Laplace(epsilon=1, sensitivity=2).event
    normal = st.chi_squared_test(table, rho=0.5, simulations=19, bits=SeededBits(1))
    assert normal.event == Gaussian.for_rho(rho=0.5, sensitivity=1).event


def test_simulated_tables_have_the_multinomial_law() -> None:
    chances = np.array([0.5, 0.2, 0.3])
    tables = multinomials(40, chances, 4000, SeededBits(1))
    assert (tables.sum(axis=1) == 40).all()
    assert (tables >= 0).all()
    assert tables.mean(axis=0) == pytest.approx(40 * chances, abs=0.2)  # four deviations of a mean
    assert np.cov(tables.T)[0, 1] == pytest.approx(-40 * 0.5 * 0.2, abs=0.6)
    assert tables.var(axis=0) == pytest.approx(40 * chances * (1 - chances), rel=0.1)


def rejected(runs: int, table: Any, level: float = 0.1, **options: Any) -> tuple[float, float]:
    """The share of rejections with the simulated law, and of those with the classical critical value."""
    ours, classical = 0, 0
    for seed in range(runs):
        bits = SeededBits(50 + seed)
        counts, null, freedom = table(bits)
        found = st.chi_squared_test(counts, null=null, simulations=99, bits=bits, **options)
        ours += found.reject(level)
        noise = Laplace(epsilon=options["epsilon"], sensitivity=2 if options["neighbours"] == "replace" else 1)
        noisy = np.maximum(noise.release(counts, bits=bits), 0.5)
        expected = noisy.sum() * null if null is not None else np.outer(noisy.sum(1), noisy.sum(0)) / noisy.sum()
        classical += np.sum((noisy - expected) ** 2 / expected) >= chi2.isf(level, freedom)
    return ours / runs, classical / runs


def fit_table(bits: SeededBits) -> Any:
    null = np.array([0.4, 0.3, 0.2, 0.1])
    return multinomials(150, null, 1, bits)[0], null, 3


def independent_table(bits: SeededBits) -> Any:
    chances = np.outer([0.6, 0.4], [0.5, 0.3, 0.2]).ravel()
    return multinomials(300, chances, 1, bits)[0].reshape(2, 3), None, 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("table", [fit_table, independent_table])
def test_the_level_is_kept_and_the_classical_one_is_not(relation: str, table: Any) -> None:
    """80 tests at level 0.1: 18 or more rejections has a chance of 0.001."""
    ours, classical = rejected(80, table, epsilon=0.2, neighbours=relation)
    assert 0.01 < ours < 0.22
    assert classical > 0.2  # twice the level and more


@pytest.mark.slow
@pytest.mark.parametrize("table", [fit_table, independent_table])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_level_is_kept_closely(table: Any, epsilon: float) -> None:
    """1500 tests at level 0.1: a deviation of 0.008, so within 0.03."""
    ours, _ = rejected(1500, table, epsilon=epsilon, neighbours="add_remove")
    assert ours == pytest.approx(0.1, abs=0.03)


def test_dependence_and_misfit_are_found() -> None:
    assert st.chi_squared_test([[150, 50], [60, 140]], epsilon=1, bits=SeededBits(1)).reject(0.01)
    assert st.chi_squared_test([400, 200, 200, 200], epsilon=1, bits=SeededBits(1)).reject(0.01)
    fair = st.chi_squared_test([200, 201, 199, 200], epsilon=1, neighbours="replace", bits=SeededBits(2))
    assert not fair.reject(0.01)


def test_columns_are_counted_like_tables() -> None:
    u = uniforms(400, bits=SeededBits(9))
    x = np.where(u < 0.5, "a", "b").tolist()
    y = (u > 0.4).astype(int).tolist()
    table = [[x.count("a"), 0], [0, 0]]
    table = [[sum(1 for p, q in zip(x, y, strict=True) if (p, q) == (a, b)) for b in (0, 1)] for a in "ab"]
    one = st.chi_squared_test(x, y, categories=(["a", "b"], [0, 1]), epsilon=1, bits=SeededBits(2))
    other = st.chi_squared_test(table, epsilon=1, bits=SeededBits(2))
    assert (one.statistic, one.p_value) == (other.statistic, other.p_value)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"epsilon": None}, "epsilon"),
        ({"null": [0.5, 0.5, 0.5]}, "null"),
        ({"null": [1.0, 0.0, 0.0]}, "null"),
        ({"simulations": 3}, "simulations"),
        ({"y": [1, 2, 3]}, "categories"),
        ({"categories": [1]}, "categories"),
    ],
)
def test_wrong_parameters_are_refused(options: Any, name: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        st.chi_squared_test([3, 4, 5], **({"epsilon": 1} | options))
    assert caught.value.name == name


def test_independence_has_no_null_chances() -> None:
    with pytest.raises(InvalidParameter):
        st.chi_squared_test([[3, 4], [5, 6]], null=[0.5, 0.5], epsilon=1)
    with pytest.raises(InvalidValue):
        st.chi_squared_test([[3.5, 4], [5, 6]], epsilon=1)
    with pytest.raises(InvalidValue):
        st.chi_squared_test([1, 2], [1], categories=([1, 2], [1, 2]), epsilon=1)
