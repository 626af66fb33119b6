"""K-norm noise: densities, radii, marginals, and rounding that moves nothing."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

from discreet.errors import InvalidValue
from discreet.mechanisms import KNorm, Norm
from discreet.mechanisms.knorm import _reach
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.effort import some
from tests.mechanisms.judges import Floats, follows, has_scale, laplace_cdf, places
from tests.statistical.laws import FALSE_ALARM

NORMS = {Norm.L2: lambda z: np.sqrt((z * z).sum(axis=-1)), Norm.LINF: lambda z: np.abs(z).max(axis=-1)}


def sample(mechanism: KNorm, count: int, bits: SeededBits) -> Floats:
    zeros = np.zeros(mechanism.dimension)
    return np.array([mechanism.release(zeros, bits=bits) for _ in range(count)])


@pytest.mark.parametrize("norm", list(Norm))
def test_the_log_ratio_of_densities_is_at_most_epsilon(norm: Norm) -> None:
    """Far along random and axis directions, for moves of exactly the sensitivity in the norm."""
    directions = np.array([[1, 0, 0], [0, -1, 0], [1, 1, 1], [1, -2, 3], [-5, 0.1, 2]], dtype=float)
    moves = directions / NORMS[norm](directions)[:, None]
    for move in moves:
        for direction in directions:
            z = places([0.0, 1.0], 1.0)[:, None] * direction
            loss = NORMS[norm](z - move) - NORMS[norm](z)
            assert np.abs(loss).max() <= 1 + 1e-6  # floats lose 10^-7 at a distance of 10^9


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("norm", list(Norm))
def test_the_radius_has_the_gamma_law(norm: Norm, bits: SeededBits) -> None:
    """In any norm, the norm of a vector of density ~ exp(-||z||) has the law Gamma(d)."""
    d, epsilon, sensitivity = 4, Fraction(1, 2), 3
    mechanism = KNorm(epsilon=epsilon, sensitivity=sensitivity, dimension=d, norm=norm)
    radius = NORMS[norm](sample(mechanism, 800, bits))
    has_scale(radius, lambda x: stats.gamma.cdf(x, d), float(sensitivity / epsilon), symmetric=False)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("norm", list(Norm))
def test_one_dimension_is_the_laplace_law(norm: Norm, bits: SeededBits) -> None:
    mechanism = KNorm(epsilon=1, sensitivity=2, dimension=1, norm=norm)
    has_scale(sample(mechanism, 1700, bits).ravel(), laplace_cdf, 2.0)
    scalar = np.array([mechanism.release(0.0, bits=bits) for _ in range(300)])
    assert follows(scalar / 2, laplace_cdf) > FALSE_ALARM


@pytest.mark.ci
def test_directions_are_uniform(bits: SeededBits) -> None:
    """In the plane the angle is uniform; on the cube the share of the largest entry is."""
    plane = sample(KNorm(epsilon=1, sensitivity=1, dimension=2), 1500, bits)
    angle = np.arctan2(plane[:, 0], plane[:, 1]) / (2 * math.pi) + 0.5
    assert follows(angle, lambda x: np.clip(x, 0, 1)) > FALSE_ALARM
    cube = sample(KNorm(epsilon=1, sensitivity=1, dimension=2, norm="linf"), 1500, bits)
    ratio = np.abs(cube).min(axis=1) / np.abs(cube).max(axis=1)
    assert follows(ratio, lambda x: np.clip(x, 0, 1)) > FALSE_ALARM


@pytest.mark.ci
def test_test_vector_of_ten_dimensions(bits: SeededBits) -> None:
    """RMS 10.488 = sqrt(d (d + 1)); the radius has mean d and variance d, so 600 draws know its mean to 1.3 %."""
    count, d = 600, 10
    radius = NORMS[Norm.L2](sample(KNorm(epsilon=1, sensitivity=1, dimension=d), count, bits))
    assert math.sqrt(d * (d + 1)) == pytest.approx(10.488, abs=5e-4)
    assert radius.mean() == pytest.approx(d, abs=6 * math.sqrt(d / count))
    deviation = math.sqrt(d * (d + 1) * ((d + 2) * (d + 3) - d * (d + 1)) / count)
    assert (radius**2).mean() == pytest.approx(d * (d + 1), abs=6 * deviation)


@pytest.mark.slow
def test_the_mean_radius_is_known_to_one_percent(bits: SeededBits) -> None:
    """sqrt(d / n) / d = 0.22 %: one percent is four and a half deviations."""
    d, count, epsilon = 10, 20_000, Fraction(1, 10)
    radius = NORMS[Norm.L2](sample(KNorm(epsilon=epsilon, sensitivity=1, dimension=d), count, bits))
    assert radius.mean() == pytest.approx(d / epsilon, rel=0.01)
    assert (radius**2).mean() == pytest.approx(d * (d + 1) / epsilon**2, rel=0.02)


# -------------------------------------------------------------------------------------------------------- intervals
def sphere_tail(d: int, x: float) -> float:
    """P(|Z_1| > x): the share of a cap, averaged over the radius."""

    def outside(r: float) -> float:
        share = special.betainc((d - 1) / 2, 0.5, 1 - (x / r) ** 2) if d > 1 else 1.0
        return float(share * stats.gamma.pdf(r, d))

    return float(integrate.quad(outside, x, x + 400, limit=400)[0])


def cube_tail(d: int, x: float) -> float:
    return float(integrate.quad(lambda r: (1 - x / r) * stats.gamma.pdf(r, d + 1), x, x + 400, limit=400)[0])


@every("d", [1, 3, 7, 21])
@every("outside", some([Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**6)], 4))
def test_reach_is_the_quantile_of_an_entry(d: int, outside: Fraction) -> None:
    for norm, tail in ((Norm.L2, sphere_tail), (Norm.LINF, cube_tail)):
        x = float(_reach(norm, d, outside))
        assert tail(d, x) <= float(outside) * (1 + 1e-7)
        assert tail(d, x - 1e-5) >= float(outside) * (1 - 1e-7)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("d", [2, 4, 10])
def test_reach_is_on_the_safe_side_in_even_dimensions(d: int) -> None:
    for outside in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)):
        x = float(_reach(Norm.L2, d, outside))
        assert tail_ratio(d, x, outside) <= 1
        assert tail_ratio(d, x / 1.25, outside) > 1  # it is too wide by about sqrt((d + 2) / (d + 1))


def tail_ratio(d: int, x: float, outside: Fraction) -> float:
    return sphere_tail(d, x) / float(outside)


def test_many_dimensions_have_an_interval() -> None:
    """An entry has the variance d + 1: about 1.96 sqrt(d + 1) at 95 %."""
    assert float(_reach(Norm.L2, 999, Fraction(1, 20))) == pytest.approx(1.96 * math.sqrt(1000), rel=0.01)


# --------------------------------------------------------------------------------------------------- values and sizes
@pytest.mark.parametrize("norm", list(Norm))
def test_rt_003_outputs_are_multiples_of_the_step(norm: Norm, bits: SeededBits) -> None:
    mechanism = KNorm(epsilon=1, sensitivity=1, dimension=2, norm=norm)
    for value in ([0.0, 0.1], [1.0, 1e6 + 0.1]):
        outputs = np.array([mechanism.release(value, bits=bits) for _ in range(200)]).ravel()
        assert all((Fraction(output) * 1024).denominator == 1 for output in outputs.tolist())


@pytest.mark.ci
def test_the_value_is_not_rounded_before_the_noise(bits: SeededBits) -> None:
    mechanism = KNorm(epsilon=1, sensitivity=1, dimension=1, grid=4)
    outputs = [mechanism.release(1.0, bits=bits) for _ in range(1500)]
    edges = np.arange(2, 34, 4, dtype=np.float64)  # beyond which one step more is released
    expected = 4 * float(np.sum(laplace_cdf(1 - edges) - laplace_cdf(-edges - 1)))
    assert expected > 0.6  # rounding 1.0 to the grid first would give 0
    assert abs(np.mean(outputs) - expected) < 6 * np.std(outputs) / math.sqrt(1500)


@pytest.mark.parametrize("value", [[1.0], [1.0, 2.0, 3.0], 1.0, [[1.0, 2.0], [3.0, 4.0]]])
def test_the_number_of_entries_is_part_of_the_promise(value: Any) -> None:
    with pytest.raises(InvalidValue, match="dimension="):
        KNorm(epsilon=1, sensitivity=1, dimension=2).release(value, bits=NoBits())


def test_large_values_stay_exact(bits: SeededBits) -> None:
    mechanism = KNorm(epsilon=10**9, sensitivity=1, dimension=2, grid=1)
    assert mechanism.release([2**70, -(2**70)], bits=bits).tolist() == [2**70, -(2**70)]
    assert mechanism.event == events.Pure(10**9)
