"""Scales far from one: wide noise does not wrap, narrow noise does not hang."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.noise import SeededBits, bernoulli_exp, discrete_gaussian, discrete_laplace, geometric
from tests.noise.judges import SAMPLERS, judge_sample
from tests.noise.tape import Tape
from tests.statistical.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, GeometricLaw

LAWS: dict[str, Any] = {
    "geometric": GeometricLaw,
    "discrete_laplace": DiscreteLaplaceLaw,
    "discrete_gaussian": DiscreteGaussianLaw,
}


@pytest.mark.ci
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", [10**18, 10**40, Fraction(10**60, 7)], ids=str)
def test_wide_arrays_hold_python_integers(name: str, scale: Any, bits: SeededBits) -> None:
    draws = SAMPLERS[name](scale, (60, 100), bits=bits)
    assert draws.dtype == object
    assert all(type(draw) is int for draw in draws.ravel())
    # 6000 draws see a gap of 0.048 only at p = 10^-12; their floats are exact to 10^-16 of the scale
    judge_sample(draws.ravel(), LAWS[name], Fraction(scale))


@pytest.mark.parametrize("sigma", [10**150, 10**160, 10**299], ids=["1e150", "1e160", "1e299"])
def test_gaussians_whose_variance_no_float_can_hold(sigma: int, bits: SeededBits) -> None:
    """Acceptance must not be decided from inf * 0; a share of 0.68 within sigma, 40 draws: 14 < hits surely (10^-5)."""
    draws = [discrete_gaussian(sigma, bits=bits) for _ in range(40)]
    assert max(abs(draw) for draw in draws) < 8 * sigma
    assert 14 < sum(abs(draw) <= sigma for draw in draws) <= 40


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("scale", ["1e-3", "1e-9", 1e-160, 1e-299, 2.0**-990], ids=str)
def test_narrow_noise_is_zero(name: str, scale: Any, bits: SeededBits) -> None:
    """P(not 0) < 2 exp(-1000). Among 200 000 lanes about three tie with the threshold 0 and ask for exp(-10^299)."""
    assert not SAMPLERS[name](scale, 200_000, bits=bits).any()
    assert all(SAMPLERS[name](scale, bits=bits) == 0 for _ in range(500))


def test_ties_of_narrow_noise_are_settled_at_once() -> None:
    for scale in (Fraction(1, 10**3), Fraction(1, 10**9), Fraction(1, 10**299)):
        assert geometric(scale, bits=Tape([0, 0, 0, 1])) == 0
        assert discrete_laplace(scale, 1, bits=Tape([0, 9, 0, 0, 1])).tolist() == [0]
    assert not bernoulli_exp(10**250, bits=Tape([0, 0, 0, 1]))


def test_boundary_between_int64_and_python_integers(bits: SeededBits) -> None:
    assert discrete_laplace(2**52, 10, bits=bits).dtype == np.int64
    assert discrete_laplace(2**52 + 1, 10, bits=bits).dtype == object
    assert discrete_gaussian(2**45 - 1, 10, bits=bits).dtype == np.int64
    assert discrete_gaussian(2**45, 10, bits=bits).dtype == object


@pytest.mark.parametrize("sigma", [2**44, 2**46], ids=str)
def test_both_sides_of_the_gaussian_boundary_have_the_law(sigma: int, bits: SeededBits) -> None:
    judge_sample(discrete_gaussian(sigma, 6000, bits=bits), DiscreteGaussianLaw, Fraction(sigma))


def test_widest_int64_noise_has_its_law(bits: SeededBits) -> None:
    draws = discrete_laplace(2**52, 100_000, bits=bits)
    judge_sample(draws, DiscreteLaplaceLaw, Fraction(2**52))
    assert math.log2(np.abs(draws).max()) > 54
