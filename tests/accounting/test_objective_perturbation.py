"""Objective perturbation: test vectors, and the exact profile of small fits, computed by integration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from discreet.accounting.objective_perturbation import left_over, logistic_spread, objective_sigma, pure_regularisation
from discreet.errors import InvalidParameter
from discreet.privacy import Neighbours

Floats = NDArray[np.float64]

QUARTER = Fraction(1, 4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "ridge", "both", "one"),
    [
        (1, "1e-6", 1, 5.525226, 5.342058),
        (1, "1e-6", 10, 4.468061, 4.323841),
        ("0.5", "1e-5", 1, 12.692675, 12.097637),
    ],
)
def test_noise_of_the_objective(epsilon: str, delta: str, ridge: int, both: float, one: float) -> None:
    for sign, expected in ((False, both), (True, one)):
        found = objective_sigma(epsilon, delta, gradient=1, curvature=QUARTER, regularisation=ridge, one_signed=sign)
        assert float(found) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("sign", "expected"), [(False, 11.050452), (True, 10.684116)])
def test_noise_of_the_objective_if_rows_are_replaced(sign: bool, expected: float) -> None:
    found = objective_sigma(
        1, "1e-6", gradient=1, curvature=QUARTER, regularisation=1, one_signed=sign, neighbours=Neighbours.REPLACE
    )
    assert float(found) == pytest.approx(expected, abs=1e-6)


def test_what_the_jacobian_leaves() -> None:
    assert float(left_over(1, curvature=QUARTER, regularisation=1)) == pytest.approx(0.776856, abs=1e-6)
    ridge = pure_regularisation(1, curvature=QUARTER)
    assert float(left_over(1, curvature=QUARTER, regularisation=ridge)) == pytest.approx(0.5, abs=1e-12)
    with pytest.raises(InvalidParameter, match="epsilon"):
        left_over("0.1", curvature=QUARTER, regularisation=1)


def test_longer_gradients_need_noise_in_proportion() -> None:
    once = objective_sigma(1, "1e-6", gradient=1, curvature=QUARTER, regularisation=1)
    assert objective_sigma(1, "1e-6", gradient=3, curvature=QUARTER, regularisation=1) == 3 * once


@pytest.mark.parametrize(("penalty", "expected"), [(0.5, 1.0991), (0.05, 1.5045), (0.01, 1.7772), (2, 1.0077)])
def test_the_tight_constant_of_logistic_regression(penalty: float, expected: float) -> None:
    ridge = 2 * penalty
    found = logistic_spread(min(math.sqrt(2 * math.log(2) / ridge), 1 / ridge))
    assert found == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("length", [0.3, 1.0, 4.0])
def test_no_two_gradients_are_further_apart_than_the_tight_constant(length: float) -> None:
    angles = np.linspace(0, 2 * np.pi, 181)
    sizes = np.linspace(0, 1, 9)
    rows = np.stack([np.outer(sizes, np.cos(angles)).ravel(), np.outer(sizes, np.sin(angles)).ravel()], axis=1)
    slopes = expit(length * rows[:, :1]) * rows  # w points along the first axis
    furthest = np.sqrt(np.max(np.sum((slopes[:, None, :] - slopes[None, :, :]) ** 2, axis=2)))
    assert 0.99 * logistic_spread(length) <= furthest <= logistic_spread(length)


def profile_of_a_fit(rows: list[float], others: list[float], sigma: float, epsilon: float) -> float:
    """delta(epsilon) of the exact minimiser in one dimension: w is a bijection of b, so its density is explicit."""
    w = np.linspace(-60, 60, 400_001)

    def density(data: list[float]) -> Floats:
        tilt = -(w + sum(-x * expit(-w * x) for x in data))  # Lambda = 1
        slope = 1 + sum(x * x * expit(w * x) * expit(-w * x) for x in data)
        return np.asarray(norm.pdf(tilt, scale=sigma) * slope)

    return float(np.sum(np.maximum(density(rows) - math.exp(epsilon) * density(others), 0)) * (w[1] - w[0]))


@pytest.mark.parametrize(
    ("relation", "pairs"),
    [
        (Neighbours.ADD_REMOVE, [([1.0], []), ([], [1.0]), ([-1.0, 1.0], [1.0]), ([1.0], [1.0, -1.0])]),
        (Neighbours.REPLACE, [([1.0], [-1.0]), ([1.0, 0.5], [0.5, -1.0])]),
    ],
)
def test_the_exact_profile_keeps_to_delta(relation: Neighbours, pairs: list[tuple[list[float], list[float]]]) -> None:
    epsilon, delta = 1.0, 0.01
    sigma = float(
        objective_sigma(
            epsilon, delta, gradient=1, curvature=QUARTER, regularisation=1, one_signed=True, neighbours=relation
        )
    )

    def found(noise: float) -> float:
        return max(profile_of_a_fit(a, b, noise, epsilon) for a, b in pairs)

    assert found(sigma) <= delta
    # The integral sees too little noise. Replaced rows of one dimension move the gradient by G only, not by 2 G.
    assert found(sigma / (2 if relation is Neighbours.ADD_REMOVE else 4)) > delta
