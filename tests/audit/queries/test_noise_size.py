"""The size of noise: exact means, honest noise accepted, noise of another size rejected."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit.queries.recorder import RecordedRelease
from discreet.audit.queries.verdicts import NoiseSize, mean_size
from discreet.measurement.releases.additive import AdditiveNoise
from discreet.mechanisms.mechanism import Law
from discreet.noise import SeededBits, discrete_gaussian, discrete_laplace


@pytest.mark.parametrize("scale", ["2", "7/2", "40"])
def test_mean_sizes(scale: str) -> None:
    k, b = np.arange(-4000, 4001), float(Fraction(scale))
    for law, weights in (("laplace", np.exp(-np.abs(k) / b)), ("gaussian", np.exp(-(k**2) / (2 * b * b)))):
        exact = float((np.abs(k) * weights).sum() / weights.sum())
        chosen: Any = law
        # On integers a Gaussian's mean size differs by the trapezoid rule's error at the kink, about 1 / (12 sigma^2).
        assert mean_size(chosen, Fraction(scale)) == pytest.approx(exact, rel=1e-12 if law == "laplace" else 0.06)


def heard(law: Law, scale: str, size: int, factor: Fraction, seed: int) -> NoiseSize:
    draw = discrete_laplace if law == "laplace" else discrete_gaussian
    drawn: list[tuple[int, ...]] = [(int(n),) for n in draw(Fraction(scale) * factor, size, bits=SeededBits(seed))]
    made: Any = object.__new__(AdditiveNoise)
    for name, value in {"form": None, "law": law, "scales": (Fraction(scale),), "event": None}.items():
        object.__setattr__(made, name, value)
    found = NoiseSize()
    found.add(replace(RecordedRelease(made, [()] * size, [(0,)] * size, drawn, 1), drawn=drawn))
    return found


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", ["2", "5/2", "300"])
def test_honest_noise_is_accepted_and_other_noise_is_not(law: Law, scale: str) -> None:
    """A ratio of 1/3 has the exponent 0.8 * 100 * 0.43 = 34, one of 3 more: both beyond log(10^12) = 27.6."""
    assert all(heard(law, scale, 100, Fraction(1), seed).is_plausible for seed in range(40))
    assert not any(heard(law, scale, 100, Fraction(1, 3), seed).is_plausible for seed in range(5))
    assert not any(heard(law, scale, 100, Fraction(3), seed).is_plausible for seed in range(5))


def test_silence() -> None:
    assert NoiseSize().is_plausible  # nothing was heard
    assert not NoiseSize(total=0.0, count=1).is_plausible
    assert NoiseSize(total=100.0, count=100).chance == 1
    assert math.isclose(NoiseSize(total=50.0, count=100).chance, math.exp(-80 * (-0.5 - math.log(0.5))))


def test_small_scales_are_not_listened_to() -> None:
    assert heard("laplace", "1", 50, Fraction(1), 1).count == 0
