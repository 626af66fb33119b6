"""Noise for smooth sensitivity: the factors, the worst neighbours, the laws, and what stays private."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from discreet.errors import InvalidParameter, InvalidValue
from discreet.mechanisms import Lomax, SmoothGaussian, SmoothLaplace
from discreet.mechanisms.smooth import lomax_is_private
from discreet.mechanisms.smooth_reference import gaussian_corner, laplace_corner
from discreet.noise import SeededBits
from discreet.privacy import Neighbours, events
from tests.conformance.nothing import NoBits
from tests.mechanisms.judges import (
    has_scale,
    laplace_cdf,
    lomax_cdf,
    lomax_keeps_its_promise,
    normal_cdf,
    places,
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


def test_the_law_of_the_lomax_noise() -> None:
    mechanism = Lomax(epsilon=1, beta="0.25", floor=Fraction(1, 100))
    noise = released(mechanism, 10.0, 2.0, count=2500) - 10
    has_scale(noise, lomax_cdf(5.0), 2 * float(mechanism.factor))


# ------------------------------------------------------------------------------------------------ Laplace and Gaussian
@pytest.mark.parametrize(
    ("beta", "c"), [("0.01", 1.081723), ("0.02", 1.198839), ("0.03446218", 1.442908), ("0.05", 1.879442)]
)
def test_test_vectors_of_the_laplace_factor(beta: str, c: float) -> None:
    mechanism = SmoothLaplace(epsilon=1, delta=1e-6, beta=beta, floor=1)
    assert float(mechanism.factor) == pytest.approx(c, rel=1e-6)
    assert mechanism.event == events.Approx(1, 1e-6)


def test_test_vector_of_the_gaussian_factor() -> None:
    beta = 1 / (4 * (1 + 2 * math.log(2e6)))
    assert beta == pytest.approx(0.00833, abs=5e-6)
    mechanism = SmoothGaussian(epsilon=1, delta=1e-6, beta=beta, floor=1)
    assert float(mechanism.factor) == pytest.approx(4.9451, abs=5e-5)


def log_density(law: Any, x: Any) -> Any:
    """Up to a constant of the family; scipy's own underflows far out."""
    centre, scale = law.args
    size = np.abs(x - centre) / scale
    return -np.log(scale) - (size if law.dist.name == "laplace" else size**2 / 2)


def hockey_stick(first: Any, second: Any, epsilon: float) -> float:
    """sup_S P(S) - e^epsilon Q(S): the ends of S by root finding, its probabilities by distribution functions."""

    def loss(x: Any) -> Any:
        return log_density(first, x) - log_density(second, x) - epsilon

    far = np.logspace(-3, 5, 800)
    x = np.concatenate([-far[::-1], [0.0], far])
    inside = loss(x) > 0
    flips = np.flatnonzero(inside[1:] != inside[:-1])
    ends = [-math.inf, *(optimize.brentq(loss, x[i], x[i + 1], xtol=1e-13) for i in flips), math.inf]
    pieces = list(pairwise(ends))[0 if inside[0] else 1 :: 2]
    return sum(mass(first, *piece) - math.exp(epsilon) * mass(second, *piece) for piece in pieces)


def mass(law: Any, low: float, high: float) -> float:
    """P(low < X < high), accurate in either tail."""
    return float(law.sf(low) - law.sf(high) if low > 0 else law.cdf(high) - law.cdf(low))


@pytest.mark.parametrize(
    ("family", "kind", "corner", "delta", "beta"),
    [
        (stats.laplace, SmoothLaplace, laplace_corner, 1e-3, 0.05),
        (stats.laplace, SmoothLaplace, laplace_corner, 1e-6, 0.02),
        (stats.norm, SmoothGaussian, gaussian_corner, 1e-3, 0.02),
        (stats.norm, SmoothGaussian, gaussian_corner, 1e-6, 0.00833),
    ],
)
def test_no_neighbour_costs_more_than_delta(family: Any, kind: Any, corner: Any, delta: float, beta: float) -> None:
    """All corners, and points between them: the one used for calibration is the worst, and reaches delta."""
    mechanism = kind(epsilon=1, delta=delta, beta=beta, floor=1)
    c = float(mechanism.factor)
    seen = {}
    for exponent in np.linspace(-beta, beta, 9).tolist():
        for share in (0.1, 0.5, 0.9, 1.0):
            first, second = c, c * math.exp(exponent)
            shift = share * min(first, second) / c
            pair = family(0, first), family(shift, second)
            seen[exponent, share] = hockey_stick(*pair, 1.0)
    worst = max(seen.values())
    assert worst <= delta * (1 + 1e-5)
    assert seen[-beta, 1.0] == worst == pytest.approx(delta, rel=1e-4)
    assert float(corner(1 / mechanism.factor, Fraction(1), mechanism.beta)(40).high) == pytest.approx(worst, rel=1e-4)


@pytest.mark.parametrize(("family", "kind"), [(stats.laplace, SmoothLaplace), (stats.norm, SmoothGaussian)])
@pytest.mark.parametrize("epsilon", [0.2, 1, 5])
def test_the_wider_neighbour_is_never_the_worst_one(family: Any, kind: Any, epsilon: float) -> None:
    delta, beta = 1e-2, 0.1 * epsilon
    c = float(kind(epsilon=epsilon, delta=delta, beta=beta / 4, floor=1).factor)
    wider = [hockey_stick(family(0, c), family(1, c * math.exp(x)), epsilon) for x in np.linspace(0, beta / 4, 7)]
    assert max(wider) <= delta * (1 + 1e-5)


@pytest.mark.parametrize(("kind", "cdf"), [(SmoothLaplace, laplace_cdf), (SmoothGaussian, normal_cdf)])
def test_the_laws_of_the_references(kind: Any, cdf: Any) -> None:
    mechanism = kind(epsilon=1, delta=1e-6, beta=0.005, floor=Fraction(1, 100))
    has_scale(released(mechanism, -3, 2.5, count=1700) + 3, cdf, 2.5 * float(mechanism.factor))


def test_the_loss_of_the_laplace_pair_is_linear_in_the_tails() -> None:
    """With a wider first law the loss has no bound: that is what delta pays for, and Lomax noise does not need."""
    z = places([0.0, 1.0], 1.0)
    loss = log_density(stats.laplace(0, 1.05), z) - log_density(stats.laplace(1, 1), z)
    assert loss.max() > 1e6


# ----------------------------------------------------------------------------------------------------- what they share
@pytest.mark.parametrize("kind", [Lomax, SmoothLaplace, SmoothGaussian])
def test_sensitivities_are_raised_to_the_floor_and_never_lowered(kind: Any) -> None:
    delta = {} if kind is Lomax else {"delta": 1e-6}
    mechanism = kind(epsilon=1, beta=0.005, floor="0.5", ceiling=4, **delta)
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


@pytest.mark.parametrize("kind", [Lomax, SmoothLaplace, SmoothGaussian])
def test_only_the_replace_relation(kind: Any) -> None:
    delta = {} if kind is Lomax else {"delta": 1e-6}
    assert kind(epsilon=1, beta=0.005, floor=1, neighbours="replace", **delta)
    with pytest.raises(InvalidParameter) as refused:
        kind(epsilon=1, beta=0.005, floor=1, neighbours=Neighbours.ADD_REMOVE, **delta)
    assert refused.value.name == "neighbours"


@pytest.mark.parametrize("kind", [SmoothLaplace, SmoothGaussian])
def test_a_beta_for_which_no_factor_would_do_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidParameter) as refused:
        kind(epsilon=1, delta=1e-6, beta=0.3, floor=1)
    assert refused.value.name == "beta"


def test_coverage_with_the_private_scale() -> None:
    mechanism = Lomax(epsilon=1, beta="0.25", floor="0.01", ceiling=2)
    noise = np.abs(released(mechanism, 10.0, 2.0, count=1500) - 10)
    for confidence in (0.5, 0.95):
        covered = float(np.mean(noise <= mechanism.error(2.0, confidence=confidence)))
        assert abs(covered - confidence) < 6 * math.sqrt(confidence * (1 - confidence) / noise.size)


def test_outliers_of_a_heavy_tail_are_finite() -> None:
    mechanism = Lomax(epsilon=1, beta="0.9", floor="1e-3", exponent="2.1")
    values = released(mechanism, 1e300, 1e300, count=300)
    assert np.isfinite(values).all()
