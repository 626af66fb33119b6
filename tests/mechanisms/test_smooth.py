"""Noise for smooth sensitivity: the factors, the worst neighbours, the laws, and what stays private."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Lomax
from discreet.mechanisms.smooth import lomax_is_private
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from tests.conformance.nothing import NoBits
from tests.mechanisms.judges import (
    has_scale,
    lomax_cdf,
    lomax_keeps_its_promise,
    released,
)


# -------------------------------------------------------------------------------------------------------------- Lomax
@pytest.mark.parametrize(
    ("epsilon", "beta", "a", "c", "deviation"),
    [
        (1, "0.1", 11, 10.612874, 1.768812),
        (1, "0.05", 21, 20.555148, 1.571891),
        (1, "0.25", 5, 4.812336, 2.778404),
        ("0.5", "0.05", 11, 22.779903, 3.796650),
        (2, "0.2", 11, 5.015143, 0.835857),
    ],
)
def test_test_vectors_of_the_lomax_law(epsilon: Any, beta: str, a: int, c: float, deviation: float) -> None:
    mechanism = Lomax(epsilon=epsilon, beta=beta, floor=1)
    assert mechanism.exponent == a
    assert float(mechanism.factor) == pytest.approx(c, abs=5e-7)
    assert mechanism.deviation == pytest.approx(deviation, abs=5e-7)
    assert mechanism.event == events.Pure(epsilon)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("epsilon", "beta"), [(1, 0.1), (1, 0.05), (1, 0.25), (0.5, 0.05), (2, 0.2), (0.1, 0.09), (8, 1)]
)
def test_the_loss_of_all_neighbours_is_at_most_epsilon(epsilon: float, beta: float) -> None:
    lomax_keeps_its_promise(Lomax, epsilon, beta)


@given(
    st.fractions(Fraction(1, 10), 10, max_denominator=100),
    st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100),
    st.fractions(0, 1, max_denominator=10),
)
def test_the_conditions_hold_and_a_smaller_factor_breaks_them(
    epsilon: Fraction, share: Fraction, cut: Fraction
) -> None:
    beta = epsilon * share
    a = 1 + epsilon / beta
    a = a - (a - 2) * cut * Fraction(9, 10)
    mechanism = Lomax(epsilon=epsilon, beta=beta, floor=1, exponent=a)
    assert lomax_is_private(mechanism.factor, epsilon, beta, a)
    assert not lomax_is_private(mechanism.factor * (1 - Fraction(1, 10**12)), epsilon, beta, a)


def test_small_beta_approaches_laplace() -> None:
    assert Lomax(epsilon=1, beta="1e-4", floor=1).deviation == pytest.approx(math.sqrt(2), rel=1e-3)
    assert Lomax(epsilon=1, beta="0.6", floor=1).deviation == math.inf


def test_inflation_widens_beta() -> None:
    """If the sensitivities are known up to 10 %, they are as smooth as beta + ln 1.1, rounded up."""
    rough = Lomax(epsilon=1, beta="0.1", floor=1, inflation="0.1")
    assert rough.ratio >= Fraction(1, 10) + Fraction(math.log(1.1)) - Fraction(1, 10**16)
    assert float(rough.ratio) == pytest.approx(0.1 + math.log(1.1), rel=1e-15)
    assert rough.factor * rough.deviation > Lomax(epsilon=1, beta="0.1", floor=1).factor
    assert lomax_is_private(rough.factor, Fraction(1), rough.ratio, rough.exponent)
    with pytest.raises(InvalidParameter) as refused:
        Lomax(epsilon=1, beta="0.9", floor=1, inflation="0.2")
    assert refused.value.name == "beta"


@pytest.mark.ci
def test_the_law_of_the_lomax_noise() -> None:
    mechanism = Lomax(epsilon=1, beta="0.25", floor=Fraction(1, 100))
    noise = released(mechanism, 10.0, 2.0, count=2500) - 10
    has_scale(noise, lomax_cdf(5.0), 2 * float(mechanism.factor))


# ------------------------------------------------------------------------------------------------- floors and ceilings
def test_sensitivities_are_raised_to_the_floor_and_never_lowered() -> None:
    mechanism = Lomax(epsilon=1, beta=0.005, floor="0.5", ceiling=4)
    assert mechanism.scale(0) == mechanism.scale(0.1) == mechanism.factor / 2
    assert mechanism.scale(2.5) == mechanism.factor * Fraction(5, 2)
    assert mechanism.scale(100) == mechanism.factor * 100  # above the ceiling: noise is never taken away
    assert mechanism.interval(0.0).width == 2 * mechanism.error(4)
    for wrong in (None, -1, -0.5, math.nan, math.inf, True, "1", [1.0]):
        with pytest.raises(InvalidValue):
            mechanism.release(1.0, wrong, bits=NoBits())


def test_a_zero_sensitivity_never_releases_the_value() -> None:
    mechanism = Lomax(epsilon=1, beta="0.1", floor=1)
    assert len({mechanism.release(5.0, 0, bits=SeededBits(seed)) for seed in range(50)}) > 40


def test_no_interval_without_a_public_ceiling() -> None:
    mechanism = Lomax(epsilon=1, beta="0.1", floor=1)
    for refused_call in (lambda: mechanism.interval(1.0), lambda: mechanism.estimate(1.0, 2.0, bits=NoBits())):
        with pytest.raises(InvalidParameter) as refused:
            refused_call()
        assert refused.value.name == "ceiling"
    assert mechanism.error(2.0) == mechanism.error(2)


def test_only_the_replace_relation() -> None:
    Lomax(epsilon=1, beta=0.005, floor=1, neighbours="replace")
    with pytest.raises(InvalidParameter) as refused:
        Lomax(epsilon=1, beta=0.005, floor=1, neighbours=Neighbours.ADD_REMOVE)
    assert refused.value.name == "neighbours"


def test_coverage_with_the_private_scale() -> None:
    mechanism = Lomax(epsilon=1, beta="0.25", floor="0.01", ceiling=2)
    noise = np.abs(released(mechanism, 10.0, 2.0, count=1500) - 10)
    for confidence in (0.5, 0.95):
        covered = float(np.mean(noise <= mechanism.error(2.0, confidence=confidence)))
        assert abs(covered - confidence) < 6 * math.sqrt(confidence * (1 - confidence) / noise.size)


@pytest.mark.slow
def test_outliers_of_a_heavy_tail_are_finite() -> None:
    mechanism = Lomax(epsilon=1, beta="0.9", floor="1e-3", exponent="2.1")
    values = released(mechanism, 1e300, 1e300, count=300)
    assert np.isfinite(values).all()
