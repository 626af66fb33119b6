"""How often a guess whether somebody is in the data can be right: exact where a law attains it, else a bound."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from discreet.accounting.risk import risk
from discreet.errors import InvalidParameter
from discreet.privacy import GDP, ZCDP, ApproxDP, PureDP, events
from discreet.privacy.best_guess import best_guess


@pytest.mark.parametrize("epsilon", ["0", "0.1", "1", "5", "30", "1000"])
def test_pure_and_approximate_guarantees_are_attained(epsilon: str) -> None:
    """Randomized response attains the first; mixed with a release of everything, it attains the second."""
    odds, delta = float(epsilon), 0.01
    right = 1 / (1 + math.exp(-odds))
    assert best_guess(PureDP(epsilon)) == pytest.approx(right, rel=1e-12)
    assert best_guess(ApproxDP(epsilon, "0.01")) == pytest.approx(delta + (1 - delta) * right, rel=1e-12)


def test_the_figures_of_the_sentence() -> None:
    """(e^epsilon + delta) / (1 + e^epsilon), as it is written."""
    assert best_guess(ApproxDP(2, "1e-6")) == pytest.approx((math.exp(2) + 1e-6) / (1 + math.exp(2)), rel=1e-12)
    assert round(best_guess(PureDP("0.5")), 4) == 0.6225


@pytest.mark.parametrize("multiplier", ["0.3", "1", "4", "30"])
def test_gaussian_noise_attains_its_own_curve_and_stays_below_that_of_zcdp(multiplier: str) -> None:
    noise = Fraction(multiplier)
    exact = risk(events.Gaussian(noise)).guess
    assert best_guess(GDP(1 / noise)) == pytest.approx(exact, rel=1e-6)
    bound = best_guess(ZCDP(1 / (2 * noise**2)))
    assert exact <= bound <= min(1.0, 1.3 * exact)
    assert best_guess(ZCDP(1 / (2 * noise**2), "0.1")) == pytest.approx(min(bound + 0.05, 1.0), rel=1e-12)


def test_a_larger_budget_is_never_a_safer_one() -> None:
    steps = [Fraction(step, 10) for step in range(60)]
    for kind in (PureDP, ZCDP, GDP, lambda epsilon: ApproxDP(epsilon, "1e-6")):
        found = [best_guess(kind(step)) for step in steps]
        assert found == sorted(found)
        assert 0.5 <= found[0] <= found[-1] <= 1


def test_other_guarantees_have_no_figure() -> None:
    with pytest.raises(InvalidParameter, match="Budget"):
        best_guess(1)  # type: ignore[arg-type]
