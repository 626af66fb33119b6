"""Normal noise on a grid and the discrete Gaussian: calibration, law, rounding, dimensions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

from discreet import accounting
from discreet.errors import InvalidParameter, InvalidValue
from discreet.exact import Grid
from discreet.mechanisms import DiscreteGaussian, Gaussian
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.cases import every
from tests.conformance.nothing import NoBits
from tests.mechanisms.judges import discrete_gaussian_keeps_its_promise, has_scale, normal_cdf
from tests.statistical.laws import FALSE_ALARM, WRONG, p_value
from tests.statistical.laws import DiscreteGaussianLaw as Law


def profile(mu: float, epsilon: float) -> float:
    """The exact delta of a Gaussian shift by mu deviations."""
    return float(special.ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * special.ndtr(-mu / 2 - epsilon / mu))


# ------------------------------------------------------------------------------------------------------- normal noise
@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"), [(1, "1e-5", 3.7306316348), (0.1, "1e-5", 30.7495661320), (5, "1e-6", 0.9800490003)]
)
def test_test_vectors_of_sigma(epsilon: float, delta: str, sigma: float) -> None:
    mechanism = Gaussian(epsilon=epsilon, delta=delta, sensitivity=3)
    assert float(mechanism.sigma / 3) == pytest.approx(sigma, rel=1e-9)
    assert mechanism.event == events.Gaussian(noise_multiplier=mechanism.sigma / 3)
    assert profile(1 / float(mechanism.event.noise_multiplier), epsilon) <= float(delta) * (1 + 1e-9)


def test_the_event_is_that_of_the_noise() -> None:
    mechanism = Gaussian.with_multiplier(noise_multiplier=0.7, sensitivity="0.3")
    assert mechanism.sigma == Fraction(0.7) * Fraction(3, 10)
    assert mechanism.event == events.Gaussian(noise_multiplier=0.7)
    concentrated = Gaussian.for_rho(rho="0.1", sensitivity=2)
    rho = concentrated.sensitivity**2 / (2 * concentrated.sigma**2)
    assert Fraction(1, 10) * (1 - Fraction(1, 10**15)) < rho <= Fraction(1, 10)


@pytest.mark.parametrize("multiplier", [Fraction(1, 3), Fraction(1), Fraction(250)])
@pytest.mark.parametrize("grid", [None, Fraction(1, 4)])
def test_the_law_of_normal_noise(multiplier: Fraction, grid: Fraction | None, bits: SeededBits) -> None:
    mechanism = Gaussian.with_multiplier(noise_multiplier=multiplier, sensitivity=2, grid=grid)
    noise = mechanism.release(np.full(60_000, 0.1), bits=bits) - 0.1
    if grid is None:  # rounding to sigma / 1024 moves the curve by less than 0.0002; six deviations of it are 0.01
        has_scale(noise, normal_cdf, float(mechanism.sigma))
    variance = float(mechanism.sigma) ** 2 + float(mechanism.grid.step) ** 2 / 12
    if mechanism.sigma >= mechanism.grid.step:  # Sheppard's correction holds to 10^-8 there
        assert np.var(noise) == pytest.approx(variance, rel=6 * math.sqrt(2 / noise.size))


@pytest.mark.ci
def test_values_are_not_rounded_before_the_noise(bits: SeededBits) -> None:
    """On a grid as coarse as the noise the mean of many releases still is the value; rounding first would lose it."""
    mechanism = Gaussian.with_multiplier(noise_multiplier=1, sensitivity=1, grid=1)
    for value in (0.25, Fraction(1, 3)):
        many = [mechanism.release(value, bits=bits) for _ in range(800)]
        array = mechanism.release(np.full(50_000, float(value)), bits=bits)
        assert abs(np.mean(many) - float(value)) < 6 * 1.05 / math.sqrt(800)
        assert abs(np.mean(array) - float(value)) < 6 * 1.05 / math.sqrt(50_000)


@pytest.mark.parametrize("value", [0, 1])
def test_rt_003_all_outputs_are_multiples_of_the_step(value: int, bits: SeededBits) -> None:
    mechanism = Gaussian.with_multiplier(noise_multiplier=3.7, sensitivity=1)
    outputs = mechanism.release(np.full(4000, value + 0.3), bits=bits)
    assert mechanism.grid == Grid(-9)  # 3.7 / 1024 is between 2^-9 and 2^-8
    assert all((Fraction(output) * 512).denominator == 1 for output in outputs.tolist())


@pytest.mark.parametrize(
    "value",
    [
        np.array([2**60 + 1, -(2**60) - 1]),
        np.array([2**70, -(2**70)], dtype=object),
        np.array([Fraction(1, 3), 5], dtype=object),
        np.array([1e300, 5e-324]),
        np.array([1e18, 1.0], dtype=np.longdouble),
    ],
)
def test_extreme_entries_are_exact(value: Any, bits: SeededBits) -> None:
    mechanism = Gaussian.with_multiplier(noise_multiplier="1e-9", sensitivity=1, grid=1)
    released = mechanism.release(value, bits=bits)
    nearest = [math.floor(Fraction(*entry.as_integer_ratio()) + Fraction(1, 2)) for entry in value.ravel().tolist()]
    assert [int(entry) for entry in released] == nearest


def test_huge_noise_on_a_fine_grid_does_not_wrap(bits: SeededBits) -> None:
    released = Gaussian.with_multiplier(noise_multiplier=2**80, sensitivity=1, grid=1).release([1, 2, 3], bits=bits)
    assert released.dtype == object
    assert max(abs(int(entry)) for entry in released) > 2**70


@pytest.mark.parametrize("grid", [None, 1, 8])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_coverage_of_normal_noise(grid: int | None, confidence: float, bits: SeededBits) -> None:
    mechanism = Gaussian.with_multiplier(noise_multiplier=2, sensitivity=1, grid=grid)
    value = np.linspace(-4, 4, 40_000)
    low, high = mechanism.interval(mechanism.release(value, bits=bits), confidence=confidence)
    covered = float(np.mean((low <= value) & (value <= high)))
    assert covered >= confidence - 6 * math.sqrt(confidence * (1 - confidence) / value.size)
    if grid is None:
        assert covered < confidence + 0.02  # not wider than it need be


# -------------------------------------------------------------------------------------------------- discrete Gaussian
@pytest.mark.parametrize(("epsilon", "delta", "sensitivity"), [(1, 1e-5, 1), (0.5, 1e-6, 3), (3, 1e-8, 2)])
def test_delta_summed_from_the_definition_is_at_most_the_claimed_one(
    epsilon: float, delta: float, sensitivity: int
) -> None:
    discrete_gaussian_keeps_its_promise(DiscreteGaussian, epsilon, delta, sensitivity)


def test_test_vector_of_the_discrete_sigma() -> None:
    mechanism = DiscreteGaussian(epsilon=1, delta=1e-5, sensitivity=1)
    assert float(mechanism.sigma) == pytest.approx(3.740485, abs=1e-6)
    assert mechanism.event == events.DiscreteGaussian(sigma=mechanism.sigma, sensitivity=1)


@pytest.mark.parametrize(("square", "variance"), [("1/4", 0.2150126751), (1, 0.9999997888)])
def test_test_vectors_of_the_variance(square: str, variance: float, bits: SeededBits) -> None:
    mechanism = DiscreteGaussian.with_sigma(sigma=math.sqrt(Fraction(square)), sensitivity=1, dimension=200_000)
    assert Law(mechanism.sigma).variance() == pytest.approx(variance, abs=5e-11)
    draws = mechanism.release(np.zeros(200_000, dtype=int), bits=bits)
    assert p_value(draws, Law(mechanism.sigma)) > FALSE_ALARM
    assert all(p_value(draws, Law(mechanism.sigma * factor)) < FALSE_ALARM for factor in WRONG)


@pytest.mark.parametrize("step", [Fraction(1, 4), Fraction(1), Fraction(4)])
def test_the_noise_of_the_grid_is_that_of_the_event(step: Fraction, bits: SeededBits) -> None:
    mechanism = DiscreteGaussian.with_sigma(sigma=12, sensitivity=1, grid=step, dimension=50_000)
    draws = mechanism.release(np.zeros(50_000), bits=bits) / float(step)
    assert p_value(draws, Law(mechanism.event.sigma)) > FALSE_ALARM
    assert mechanism.event.sigma == 12 / step


def test_rounding_is_counted_once_for_a_number_and_by_the_root_for_real_arrays() -> None:
    single = DiscreteGaussian.for_rho(rho=0.5, sensitivity="5/2")
    assert single.event == events.DiscreteGaussian(sigma=3, sensitivity=3)
    whole = DiscreteGaussian.for_rho(rho=0.5, sensitivity="5/2", dimension=100)
    assert whole.event.sensitivity == Fraction(5, 2)
    real = DiscreteGaussian.for_rho(rho=0.5, sensitivity="5/2", dimension=100, real=True)
    assert real.event.sensitivity == Fraction(25, 2)
    short = DiscreteGaussian.for_rho(rho=0.5, sensitivity="1/10", dimension=100)
    assert short.event.sensitivity == 1  # integers that differ are at least 1 apart


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_real_arrays_are_never_further_apart_than_the_event_says(dimension: int) -> None:
    tiny = Fraction(1, 10**6)
    below = np.array([Fraction(1, 2) - tiny] * dimension, dtype=object)
    above = np.array([Fraction(1, 2)] * dimension, dtype=object)
    above[0] += 1
    steps = Grid.integers().steps(above) - Grid.integers().steps(below)
    mechanism = DiscreteGaussian.with_sigma(sigma=1, sensitivity=1 + dimension * tiny, dimension=dimension, real=True)
    assert int((steps**2).sum()) <= mechanism.sensitivity_steps**2


def test_arrays_keep_to_their_dimension_and_to_the_grid() -> None:
    mechanism = DiscreteGaussian.with_sigma(sigma=2, sensitivity=1, dimension=3)
    with pytest.raises(InvalidValue, match="dimension=4"):
        mechanism.release([1, 2, 3, 4], bits=NoBits())
    with pytest.raises(InvalidValue, match="real=True"):
        mechanism.release([1.5, 2.0], bits=NoBits())
    with pytest.raises(InvalidValue, match="real=True"):
        mechanism.release(1.5, bits=NoBits())
    assert mechanism.release([1.0, 2.0]).dtype.kind == "i"
    assert DiscreteGaussian.with_sigma(sigma=2, sensitivity=1).release(1.5) % 1 == 0


@every("sigma", [Fraction(1, 3), Fraction(2), Fraction(31), Fraction(100)])
@every("confidence", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
def test_the_interval_covers_and_is_tight(sigma: Fraction, confidence: Fraction) -> None:
    t = DiscreteGaussian.with_sigma(sigma=sigma, sensitivity=1).noise_steps(1 - confidence)
    z = np.arange(t + 1, t + 40 * math.ceil(sigma) + 2, dtype=np.float64)
    law = Law(sigma)

    def tail(k: int) -> float:
        return float(2 * law.pmf(z - t + k).sum())

    assert tail(t) <= float(1 - confidence) * (1 + 1e-9)
    if sigma <= 32:
        assert t == 0 or tail(t - 1) > float(1 - confidence)
    else:
        assert tail(t - 3) > float(1 - confidence)


def test_discrete_and_normal_calibrations_agree_on_fine_grids() -> None:
    normal = accounting.gaussian_sigma(1, 1e-6)
    fine = DiscreteGaussian(epsilon=1, delta=1e-6, sensitivity=1, grid=Fraction(1, 256)).sigma
    assert float(fine / normal) == pytest.approx(1, abs=2e-3)


def test_refusals_name_the_parameter() -> None:
    with pytest.raises(InvalidParameter) as refused:
        DiscreteGaussian.with_sigma(sigma=2, sensitivity=1, real=1)  # type: ignore[arg-type]
    assert refused.value.name == "real"
