"""Samples against their laws, two-sided: the true law fits, one with a scale 30 % off does not.

With the scale off by 30 % the distribution functions are about 0.05 apart somewhere (wide Laplace: 0.048, Gaussian:
0.055). A sample of n sees that at p < 2 exp(-2 n (0.048 - noise)^2): with n = 30000 and a noise of 1 / sqrt(n) = 0.006
this is 10^-45. At scale 1/3 the narrow Gaussians differ by 0.011 only, and n = 2 * 10^6 makes 10^-180 of that. The true
law's p is below 10^-9 for one seed in 10^9.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.noise import (
    SecureBits,
    SeededBits,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    uniform_below,
)
from tests.exact.reference import exp_minus
from tests.noise.judges import SAMPLERS, digit_threshold, judge_sample, scalar_draws
from tests.statistical.laws import (
    FALSE_ALARM,
    BernoulliLaw,
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    UniformLaw,
    p_value,
    share_p_value,
)

LAWS: dict[str, Any] = {
    "geometric": GeometricLaw,
    "discrete_laplace": DiscreteLaplaceLaw,
    "discrete_gaussian": DiscreteGaussianLaw,
}
# A Gaussian below 1/2 is nearly always 0: at 1/3 a change of 30 % moves P(0) from 0.978 to 0.878 or 0.9998.
SCALES = [Fraction(1, 3), 1, 17, 1000, 10**6, 2.7]
SCALARS, ARRAY, MANY = 30_000, 100_000, 1_000_000

names = pytest.mark.parametrize("name", LAWS)
scales = pytest.mark.parametrize("scale", SCALES, ids=str)


@pytest.mark.ci
@pytest.mark.sampled(3)
@names
@scales
def test_arrays_follow_the_law(name: str, scale: Any, bits: SeededBits) -> None:
    count = ARRAY if scale != Fraction(1, 3) else 2 * MANY  # differences of 0.01 ask for more
    judge_sample(SAMPLERS[name](scale, count, bits=bits), LAWS[name], Fraction(scale))


@pytest.mark.sampled(6)
@names
@pytest.mark.parametrize("scale", [1, 17, 10**6], ids=str)
def test_scalars_follow_the_law(name: str, scale: Any, bits: SeededBits) -> None:
    judge_sample(scalar_draws(SAMPLERS[name], scale, SCALARS, bits), LAWS[name], Fraction(scale))


@pytest.mark.slow
@names
@scales
def test_a_million_secure_draws_follow_the_law(name: str, scale: Any) -> None:
    """RT-004, second half. The only draws of this suite that differ from run to run: one false alarm in 10^9 runs."""
    judge_sample(SAMPLERS[name](scale, 2 * MANY, bits=SecureBits()), LAWS[name], Fraction(scale))


@pytest.mark.slow
@names
@pytest.mark.parametrize("scale", [1000, 2.7, 10**12], ids=str)
def test_many_scalars_follow_the_law(name: str, scale: Any, bits: SeededBits) -> None:
    judge_sample(scalar_draws(SAMPLERS[name], scale, ARRAY, bits), LAWS[name], Fraction(scale))


@pytest.mark.parametrize("scale", [1, 1000, 10**6])
def test_every_digit_has_its_own_chance(scale: int, bits: SeededBits) -> None:
    """The distribution function at scale 10^6 cannot see the low digits; their shares can."""
    draws = geometric(scale, ARRAY, bits=bits)
    for k in range(18):
        chance = float(digit_threshold(Fraction(scale), k).ends[0])
        hits = int((draws >> k & 1).sum())
        assert share_p_value(hits, ARRAY, chance) > FALSE_ALARM
        assert share_p_value(hits, ARRAY, chance + 0.02) < FALSE_ALARM  # 2 exp(-2 * 10^5 * 0.02^2) = 10^-34


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian"])
def test_low_digits_of_signed_noise_are_even(name: str, bits: SeededBits) -> None:
    """At scale 1000 the residues modulo 8 are uniform to 10^-6 (Fourier coefficient 1 / (1 + (2 pi 1000 / 8)^2))."""
    draws = SAMPLERS[name](1000, ARRAY, bits=bits)
    assert p_value(draws % 8, UniformLaw(8)) > FALSE_ALARM
    assert p_value(draws % 8, UniformLaw(9)) < FALSE_ALARM


@pytest.mark.ci
def test_moments_of_theory_4_2_and_4_7(bits: SeededBits) -> None:
    """Means of n = 10^6, seven deviations: 0.0005 for the Laplace's P(0), about sqrt(E z^4 / n) for variances."""
    laplace = discrete_laplace(1, MANY, bits=bits)
    assert np.mean(laplace == 0) == pytest.approx(0.46211716, abs=7 * 0.0005)
    assert np.mean(laplace**2) == pytest.approx(1.841347, abs=7 * 0.0045)  # E z^4 < 6 * 1.84^2 -> deviation of z^2 4.5
    for sigma, variance in ((Fraction(1, 2), 0.2150126751), (Fraction(1), 0.9999997888)):
        squares = discrete_gaussian(sigma, MANY, bits=bits) ** 2
        assert np.mean(squares) == pytest.approx(variance, abs=7 * 0.0015)  # E z^4 = 3 variance^2 or less


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bound", [2, 10, 1000, 2**40 + 1, 2**63])
def test_uniform(bound: int, bits: SeededBits) -> None:
    for draws in (uniform_below(bound, ARRAY, bits=bits), [uniform_below(bound, bits=bits) for _ in range(SCALARS)]):
        assert p_value(draws, UniformLaw(bound)) > FALSE_ALARM
        assert p_value(draws, UniformLaw(max(bound + 1, bound * 13 // 10))) < FALSE_ALARM
        assert np.max(draws) < bound


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(9, 10), 0.25, Fraction(10**30, 3 * 10**30 + 1)], ids=str)
def test_rational_coins(p: Any, bits: SeededBits) -> None:
    for draws in (bernoulli(p, SCALARS, bits=bits), [bernoulli(p, bits=bits) for _ in range(SCALARS)]):
        assert p_value(draws, BernoulliLaw(float(p))) > FALSE_ALARM
        assert p_value(draws, BernoulliLaw(float(p) * 0.7)) < FALSE_ALARM


@pytest.mark.sampled(2)
@pytest.mark.parametrize("x", [Fraction(1, 3), 1, 1.5, 0.001], ids=str)
def test_exponential_coins(x: Any, bits: SeededBits) -> None:
    chance = float(exp_minus(Fraction(x), 60)[0])
    for draws in (bernoulli_exp(x, ARRAY, bits=bits), [bernoulli_exp(x, bits=bits) for _ in range(SCALARS)]):
        assert p_value(draws, BernoulliLaw(chance)) > FALSE_ALARM
        assert p_value(draws, BernoulliLaw(chance * 0.7)) < FALSE_ALARM


def test_draws_of_one_array_are_independent_of_their_neighbours(bits: SeededBits) -> None:
    """The correlation of n pairs has deviation 1 / sqrt(n) = 0.0032: 7 of them."""
    for draws in (discrete_laplace(5, ARRAY, bits=bits), discrete_gaussian(5, ARRAY, bits=bits)):
        for lag in (1, 2, 16, 8192):
            assert abs(np.corrcoef(draws[:-lag], draws[lag:])[0, 1]) < 7 * ARRAY**-0.5
