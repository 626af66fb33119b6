"""Integers far from the middle of their law: the profile of one release against sums of 60 digits, at both ends."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet import accounting
from discreet.accounting.loss_distributions.dominating_pairs import WideGaussianPair, discrete_gaussian_delta
from discreet.errors import UnsupportedEvent
from discreet.privacy import events
from tests.accounting import reference
from tests.accounting.checks import above_and_near

FAR = [
    (Fraction(10), 1000, 100.0),  # the boundary of the best test lies 49 sigmas above all that P has: delta is 1
    (Fraction(10), 1000, 5400.0),  # and here within its bulk
    (Fraction(10), 1000, 9000.0),  # and here 40 sigmas below it
    (Fraction(1, 4), 9, 700.0),
    (Fraction(2), 2000, 5.05e5),
    (Fraction(1, 1500), 1, 1e6),  # a single integer has all the mass in floats
    (Fraction(40), 1500, 738.0),  # e^epsilon Q, of which Q alone has few digits left as a float
    (Fraction(40), 1, 1e-9),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("sigma", "shift", "epsilon"), FAR)
def test_the_profile_is_above_the_truth_and_near_it(sigma: Fraction, shift: int, epsilon: float) -> None:
    """The edge is lowered by a share 2^-40 of epsilon, which here moves delta by less than a millionth of it."""
    exact = reference.hockey_stick(reference.discrete_gaussian(sigma, shift), epsilon)
    above_and_near(discrete_gaussian_delta(sigma, shift, epsilon), exact, near=1e-5)


SIGMA = 24


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("shift", "epsilon"), [(1, 1e-9), (1, 0.1), (30, 1.0), (898, 700.0), (897, 738.0), (2400, 5200.0)]
)
def test_integrals_in_the_place_of_sums(shift: int, epsilon: float) -> None:
    """With so small a sigma the claimed error of an integral is seen: for x sigmas, (x^2 + x + 3) / (16 sigma^2).

    It is counted for P and for Q. P is the larger and reaches out to 5 sigmas, except where Q counts as nothing.
    """
    found = WideGaussianPair(float(SIGMA), shift).delta(epsilon)
    law = reference.discrete_gaussian(Fraction(SIGMA), shift)
    exact = reference.hockey_stick(law, epsilon)
    share = sum((mass for loss, mass in law.items() if loss > epsilon), reference.mpf(0))
    error = share * (2 * (5**2 + 5 + 3) / (16 * SIGMA**2) + 0.1 * (epsilon > 600))
    assert exact <= found <= exact + error + 1e-300


CALIBRATED = [("100", "1e-6", 400), ("1e6", "1e-6", 1), ("1e5", "1e-9", 300), ("1000", "0.5", 17), ("50", "1e-300", 3)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("epsilon", "delta", "shift"), CALIBRATED)
def test_calibrated_noise_for_a_large_epsilon(epsilon: str, delta: str, shift: int) -> None:
    sigma = accounting.discrete_gaussian_sigma(epsilon, delta, shift)
    target = reference.real(Fraction(delta))
    for share, kept in ((1, True), (Fraction(99, 100), False)):
        law = reference.discrete_gaussian(sigma * share, shift)
        assert (reference.hockey_stick(law, float(epsilon)) <= target) is kept


def test_the_search_ends_above_what_is_not_enough() -> None:
    """At epsilon = 20, 0.2 is too little; 0.16 would do, since hardly any noise is drawn, but costs thrice the rho."""
    sigma = accounting.discrete_gaussian_sigma(20, "1e-6")
    assert 0.27 < sigma < 0.28
    law = reference.discrete_gaussian(Fraction(1, 5), 1)
    assert reference.hockey_stick(law, 20) > reference.real(Fraction(1, 10**6))


def test_beyond_what_floats_resolve_the_sigma_of_zcdp_stands() -> None:
    with pytest.raises(UnsupportedEvent):
        discrete_gaussian_delta(Fraction(1), 10**6, 1.0)
    for epsilon in ("1e9", "1e250"):
        sigma = accounting.discrete_gaussian_sigma(epsilon, "1e-6", 10**250)
        assert accounting.epsilon(events.DiscreteGaussian(sigma, 10**250), "1e-6") <= Fraction(epsilon)


def test_a_leak_beside_one_release_is_added_exactly() -> None:
    """(1 - d) delta(epsilon) + d, without a grid, whose error a price at a small epsilon would show."""
    sigma = accounting.discrete_gaussian_sigma("1e-9", "1e-6", 1)
    leaky = events.Composed([events.DiscreteGaussian(sigma, 1), events.Approx(0, "1e-6")])
    assert accounting.epsilon(leaky, "2e-6") <= 1e-9
    assert accounting.epsilon(leaky, "1.99e-6") > 1e-9
    law = reference.discrete_gaussian(Fraction(2), 3)
    exact = reference.mpf("0.01") + reference.mpf("0.99") * reference.hockey_stick(law, 4)
    leaky = events.Composed([events.DiscreteGaussian(2, 3), events.Approx(0, "0.004"), events.Approx(0, "6/996")])
    above_and_near(accounting.delta(leaky, 4, method="PLD"), exact)
    sure = events.Composed([events.DiscreteGaussian(2, 3), events.Approx(0, 1 - Fraction(1, 10**30))])
    assert accounting.delta(sure, 4, method="PLD") == 1
