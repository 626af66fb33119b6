"""Intervals around centres: the laws of released errors over released scales, and how two of them add up."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import SeededBits
from discreet.noise.experiment import coins, normals, uniforms
from discreet.statistics.robust.centre import SmoothLogarithm, lomax_pivot, missed_by_each, student_pivot
from tests.cases import every
from tests.effort import some

COUNT = 40_000
MARGIN = 4 / math.sqrt(COUNT)  # deviations of a share, times its own


def laplace(scale: float, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    sign = 2.0 * coins(COUNT, bits=SeededBits(seed)) - 1
    return np.asarray(sign * -np.log(uniforms(COUNT, bits=SeededBits(seed + 1))) * scale)


def lomax(exponent: float, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    sign = 2.0 * coins(COUNT, bits=SeededBits(seed)) - 1
    return np.asarray(sign * (uniforms(COUNT, bits=SeededBits(seed + 1)) ** (-1 / (exponent - 1)) - 1))


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("outside", [0.2, 0.05, 0.01])
def test_each_pivot_has_its_law(scale: float, outside: float) -> None:
    noise = np.exp(laplace(scale, 10))
    margin = MARGIN * math.sqrt(outside)
    heavy = np.mean(np.abs(lomax(9, 20)) > lomax_pivot(-8.0, scale, outside) * noise)
    light = np.mean(np.abs(normals(COUNT, bits=SeededBits(30))) > student_pivot(10**6, scale, outside) * noise)
    assert abs(heavy - outside) < margin
    assert abs(light - outside) < margin
    assert np.mean(np.abs(lomax(9, 20)) > 0.7 * lomax_pivot(-8.0, scale, outside) * noise) > outside + margin / 2


@every("exponent", [4, 9, 15])
@every("scales", some([(0.1, 0.02), (0.5, 0.1), (1.0, 0.5)], 2))
@every("outside", [0.3, 0.2, 0.05, 0.01])
def test_two_errors_add_up_like_deviations(exponent: float, scales: tuple[float, float], outside: float) -> None:
    """Whatever the ratio of the two errors is, they are outside together no more often than they may."""
    missed = missed_by_each(Fraction(outside).limit_denominator(100))
    heavy, light = lomax_pivot(1 - exponent, scales[0], missed), student_pivot(10**6, scales[1], missed)
    first, second = lomax(exponent, 40) / heavy, normals(COUNT, bits=SeededBits(50)) / light
    noise, other = np.exp(laplace(scales[0], 60)), np.exp(laplace(scales[1], 70))
    for ratio in (0.1, 0.3, 1.0, 3.0, 10.0):
        half = np.hypot(ratio * noise, other)
        assert np.mean(np.abs(ratio * first + second) > half) < outside + MARGIN * math.sqrt(outside)


def test_the_logarithm_has_noise_for_beta() -> None:
    release = SmoothLogarithm.of(beta=Fraction(1, 10), epsilon=Fraction(1, 4))
    assert release.scale == pytest.approx(0.4, rel=2e-3)
    assert release.mechanism.sensitivity > Fraction(1, 10)
    drawn = [release.release(Fraction(5), SeededBits(seed)) - math.log(5) for seed in range(400)]
    assert 0.3 < np.mean(np.abs(drawn)) < 0.5  # the mean size is the scale, 0.4, with a deviation of 0.02
