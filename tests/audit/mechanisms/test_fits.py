"""Samples beside the laws declared for them: the true one is accepted, a scale 30 % off and bumps are refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from discreet import audit
from discreet.audit.mechanisms.goodness_of_fit import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    Law,
    UniformLaw,
)
from discreet.errors import InvalidParameter
from discreet.noise import SeededBits, discrete_gaussian, discrete_laplace, geometric, uniform_below
from discreet.noise.experiment import normals
from tests.statistical.laws import FALSE_ALARM, WRONG

DRAWS = 20_000


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(1000)])
@pytest.mark.parametrize(
    ("law", "draw"),
    [(DiscreteLaplaceLaw, discrete_laplace), (DiscreteGaussianLaw, discrete_gaussian), (GeometricLaw, geometric)],
)
def test_the_law_is_accepted_and_a_wrong_scale_refused(
    law: type[Law], draw: object, scale: Fraction, bits: SeededBits
) -> None:
    sample = draw(scale, DRAWS, bits=bits)  # type: ignore[operator]
    found = audit.fits(sample, law(scale), level=FALSE_ALARM)  # type: ignore[call-arg]
    assert found.passed
    assert "as far as it shows" in found.summary()
    for wrong in WRONG:
        refused = audit.fits(sample, law(scale * wrong), level=FALSE_ALARM)  # type: ignore[call-arg]
        assert not refused.passed
        assert "does not follow" in refused.summary()


def test_one_value_too_often_is_seen_although_the_curves_stay_near(bits: SeededBits) -> None:
    """Two per cent of 100 values' mass moved to a neighbour: a gap of 0.0002 that only the cells show."""
    sample = uniform_below(100, 50 * DRAWS, bits=bits)
    assert audit.fits(sample, UniformLaw(100)).passed
    bumpy = np.where((sample == 50) & (uniform_below(10, sample.size, bits=bits) == 0), 51, sample)
    found = audit.fits(bumpy, UniformLaw(100))
    assert not found.passed
    assert found.gap < 0.005


def test_continuous_laws_too(bits: SeededBits) -> None:
    sample = normals(DRAWS, bits=bits)
    assert audit.fits(sample, special.ndtr).passed
    assert not audit.fits(sample * 1.3, special.ndtr).passed


def test_true_laws_are_refused_as_rarely_as_stated(bits: SeededBits) -> None:
    """400 samples at the level 5 %: at most 5 % + 4 deviations."""
    trials = 400
    failed = sum(
        not audit.fits(discrete_laplace(3, 500, bits=bits), DiscreteLaplaceLaw(Fraction(3)), level=0.05).passed
        for _ in range(trials)
    )
    assert failed / trials <= 0.05 + 4 * (0.05 * 0.95 / trials) ** 0.5


@pytest.mark.parametrize("sample", [[], [np.nan], [np.inf, 1]])
def test_bad_samples_are_refused(sample: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        audit.fits(sample, UniformLaw(3))
