"""Reaches of many equal draws, held to the exact law of their sum: never too short, and not far too long."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.mechanisms.sums import Floats, repeated_gaussian_reach, repeated_laplace_reach

FAR = 600  # of one draw; what lies beyond has a chance below 10^-9 for the scales here


def laplace(scale: float) -> Floats:
    mass = np.exp(-np.abs(np.arange(-FAR, FAR + 1)) / scale)
    return np.asarray(mass / np.sum(mass))


def gaussian(sigma: float) -> Floats:
    mass = np.exp(-(np.arange(-FAR, FAR + 1) ** 2) / (2 * sigma**2))
    return np.asarray(mass / np.sum(mass))


def summed(law: Floats, count: int) -> Floats:
    """The law of the sum of so many draws."""
    total = np.ones(1)
    for _ in range(count):
        total = np.convolve(total, law)
    return total


def tail(total: Floats, reach: float) -> float:
    """The chance that the sum is further than a distance from zero."""
    places = np.arange(len(total)) - len(total) // 2
    return float(np.sum(total[np.abs(places) > reach]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [1, 4, 30])
@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_laplace_draws(count: int, scale: float) -> None:
    total = summed(laplace(scale), count)
    for outside in (0.5, 0.05, 1e-4):
        reach = repeated_laplace_reach(np.ones(1), np.array([scale]), count, outside)
        assert tail(total, reach) <= outside
        assert tail(total, reach / 2 - 1) >= outside / 10, outside  # half of it would miss often


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [1, 4, 30])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 20.0])
def test_gaussian_draws(count: int, sigma: float) -> None:
    total = summed(gaussian(sigma), count)
    for outside in (0.5, 0.05, 1e-4):
        reach = repeated_gaussian_reach(np.ones(1), np.array([sigma]), count, outside)
        assert tail(total, reach) <= outside
        assert tail(total, reach / 2 - 1) >= outside / 10, outside


def test_weights_scale_the_distance() -> None:
    one = repeated_laplace_reach(np.array([1.0, 0.5]), np.array([3.0, 6.0]), 7, 0.05)
    two = repeated_laplace_reach(np.array([2.0, 1.0]), np.array([3.0, 6.0]), 7, 0.05)
    assert math.isclose(two, 2 * one, rel_tol=1e-9)
