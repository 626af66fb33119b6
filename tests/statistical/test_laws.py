"""The judge is judged: laws agree with their definitions, and p-values see what they should."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.statistical.laws import (
    BernoulliLaw,
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    Law,
    UniformLaw,
    p_value,
    share_p_value,
)


def test_variances_and_chances_of_theory_4_2_and_4_7() -> None:
    assert DiscreteGaussianLaw(Fraction(1, 2)).variance() == pytest.approx(0.2150126751, abs=1e-10)
    assert DiscreteGaussianLaw(Fraction(1)).variance() == pytest.approx(0.9999997888, abs=1e-10)
    laplace = DiscreteLaplaceLaw(Fraction(1))
    assert laplace.pmf(np.array([0.0]))[0] == pytest.approx(0.46211716, abs=1e-8)
    assert laplace.variance() == pytest.approx(1.841347, abs=1e-6)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(17)], ids=str)
def test_pmf_has_the_shape_of_its_definition(scale: Fraction) -> None:
    z = np.arange(-60.0, 61.0)
    laplace, gaussian, geometric = (
        DiscreteLaplaceLaw(scale).pmf(z),
        DiscreteGaussianLaw(scale).pmf(z),
        GeometricLaw(scale).pmf(z),
    )
    b = float(scale)
    assert laplace / laplace[60] == pytest.approx(np.exp(-np.abs(z) / b), abs=1e-12)
    assert gaussian / gaussian[60] == pytest.approx(np.exp(-(z**2) / (2 * b * b)), abs=1e-12)
    assert geometric[60:] / geometric[60] == pytest.approx(np.exp(-z[60:] / b), abs=1e-12)
    assert geometric[:60].sum() == 0


def test_gaussian_of_large_sigma_continues_the_sum() -> None:
    """At sigma = 5000 both forms are available and differ by less than 0.011 / sigma^2 = 4.4e-10."""
    z = np.arange(-20000.0, 20001.0, 37)
    summed = DiscreteGaussianLaw(Fraction(5000)).cdf(z)
    stretched = DiscreteGaussianLaw(Fraction(10**4)).cdf(2 * z + 0.5)  # (2 z + 1) / 10^4 = (z + 1/2) / 5000
    assert np.abs(summed - stretched).max() < 1e-9


@pytest.mark.parametrize("law", [UniformLaw(10), BernoulliLaw(0.3), GeometricLaw(Fraction(3))], ids=str)
def test_p_value_is_one_for_a_perfect_sample_and_small_for_a_shifted_one(law: Law) -> None:
    values = np.arange(0, 60)
    perfect = np.repeat(values, np.round(law.pmf(values.astype(float)) * 100_000).astype(int))
    assert p_value(perfect, law) > 0.9
    assert p_value(perfect + 1, law) < 1e-9


def test_share() -> None:
    assert share_p_value(500, 1000, 0.5) == 1
    assert share_p_value(600, 1000, 0.5) < 1e-8  # 2 exp(-20)
