"""Reaches of weighted sums of noise against exact convolutions: never too short, hardly too long."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InternalError
from discreet.mechanisms.sums import Floats, gaussian_reaches, laplace_reaches, laplace_sum_reach
from tests.cases import every
from tests.effort import some

REACH = 1 << 13


def laplace(scale: float) -> Floats:
    z = np.abs(np.arange(-REACH, REACH + 1))
    return np.asarray(np.exp(-z / scale) * math.tanh(1 / (2 * scale)))


def gaussian(sigma: float) -> Floats:
    z = np.arange(-REACH, REACH + 1)
    weights = np.exp(-(z**2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum())


def stretched(law: Floats, weight: int) -> Floats:
    """The law of a multiple."""
    middle = len(law) // 2
    spread = np.zeros(2 * middle * abs(weight) + 1)
    spread[:: abs(weight)] = law if weight > 0 else law[::-1]
    return spread


def tail(laws: list[Floats], weights: tuple[int, ...], t: float) -> float:
    """P(|weighted sum| > t), by convolution; what lies beyond the arrays has no mass a double could tell."""
    law = np.ones(1)
    for one, weight in zip(laws, weights, strict=True):
        if weight:
            law = np.convolve(law, stretched(one[np.abs(np.arange(-REACH, REACH + 1)) <= 800], weight))
    distance = np.abs(np.arange(len(law)) - len(law) // 2)
    return float(law[distance > t].sum())


def columns(weights: tuple[int, ...], scales: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Sizes and weights of one sum."""
    column = np.array(weights, dtype=float)[:, None]
    return column * np.array(scales)[:, None], column


@every("outside", ["0.3", "0.05", "1e-3"])
@every("count", [1, 2, 3])
@every("scale", [2, 17])
def test_sums_of_equal_laplace_noise(scale: int, count: int, outside: str) -> None:
    reach = laplace_sum_reach(Fraction(scale), count, Fraction(outside))
    laws, weights = [laplace(scale)] * count, (1,) * count
    assert tail(laws, weights, float(reach)) <= float(Fraction(outside)) * (1 + 1e-9)
    assert tail(laws, weights, float(reach) - 2 * count - 1) > float(Fraction(outside))  # a slack of one step each


def test_other_sums_have_no_certain_reach() -> None:
    with pytest.raises(InternalError):
        laplace_sum_reach(Fraction(1), 4, Fraction(1, 20))


WEIGHTS = [(1,), (3,), (1, 1), (2, -1), (1, 1, 1), (3, 2, 1), (3, 3, 1), (5, 1, -1), (1, 0, 0), (4, 4, -4)]


@pytest.mark.ci
@every("outside", [0.3, 0.05, 1e-3])
@every("weights", WEIGHTS)
@every("scales", some([(9.0, 9.0, 9.0), (20.0, 3.0, 11.0)], 4))
def test_weighted_sums_of_laplace_noise(scales: tuple[float, ...], weights: tuple[int, ...], outside: float) -> None:
    used = scales[: len(weights)]
    reach = laplace_reaches(*columns(weights, used), outside)[0]
    laws = [laplace(scale) for scale in used]
    assert tail(laws, weights, reach) <= outside
    slack = 2 * sum(abs(weight) for weight in weights) + 0.005 * reach + 1
    assert tail(laws, weights, reach - slack) > outside


@pytest.mark.ci
@every("outside", [0.3, 0.05, 1e-3])
@every("weights", WEIGHTS)
@every("sigmas", some([(12.0, 12.0, 12.0), (40.0, 5.0, 17.0)], 4))
def test_weighted_sums_of_gaussian_noise(sigmas: tuple[float, ...], weights: tuple[int, ...], outside: float) -> None:
    used = sigmas[: len(weights)]
    reach = gaussian_reaches(*columns(weights, used), np.array(used), outside)[0]
    laws = [gaussian(sigma) for sigma in used]
    assert tail(laws, weights, reach) <= outside
    price = 1 + 0.002 / outside  # of exchanging laws, for sigma = 12
    assert tail(laws, weights, reach / price - sum(abs(weight) for weight in weights) - 1) > outside


@pytest.mark.parametrize("sigma", [0.3, 0.7, 1.5, 3.0])
def test_narrow_gaussian_noise_is_added_up(sigma: float) -> None:
    for outside in (0.3, 0.05, 1e-4):
        reach = gaussian_reaches(*columns((1, 1), (sigma, sigma)), np.array([sigma, sigma]), outside)[0]
        assert tail([gaussian(sigma)] * 2, (1, 1), reach) <= outside


def test_tiny_risks_are_added_up() -> None:
    reach = laplace_reaches(*columns((1, 1), (3.0, 3.0)), 1e-12)[0]
    far = (reach - 2) / 3
    assert math.exp(-far) * (1 + far / 2) <= 1e-12


def test_columns_do_not_disturb_each_other() -> None:
    weights = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    many = laplace_reaches(5 * weights, weights, 0.05)
    alone = [laplace_reaches(5 * weights[:, [i]], weights[:, [i]], 0.05)[0] for i in range(3)]
    assert many == pytest.approx(alone)
    assert many[1] < many[0]  # an even mixture has lighter tails than one of its parts


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_sizes_are_relative(size: float) -> None:
    sizes, none = np.array([[3.0], [2.0]]), np.zeros((2, 1))
    assert laplace_reaches(size * sizes, none, 0.05) == pytest.approx(size * laplace_reaches(sizes, none, 0.05))
    sigmas = np.array([100.0, 100.0])
    assert gaussian_reaches(size * sizes, none, sigmas, 0.05) == pytest.approx(
        size * gaussian_reaches(sizes, none, sigmas, 0.05)
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("outside", [0.3, 0.05, 1e-3, 1e-8])
@pytest.mark.parametrize("weights", [(1,) * 4, (1,) * 12, (1, 1, 2, 2), (1, 1, 1, 2, 2, 2, 3, 3)])
def test_sums_of_many_laplace_draws(weights: tuple[int, ...], outside: float) -> None:
    """Equal ones have a tail of positive terms; unequal ones may need Chernoff's bound, at most twice as far."""
    sizes, steps = columns(weights, (9.0,) * len(weights))
    reach = float(laplace_reaches(sizes, steps, outside)[0])
    laws = [laplace(9.0)] * len(weights)
    assert tail(laws, weights, reach) <= outside * (1 + 1e-6)
    exact = len(set(weights)) == 1 and outside > 1e-6
    slack = sum(weights)
    assert tail(laws, weights, (reach - 2 * slack) * (1 if exact else 0.5)) > outside
