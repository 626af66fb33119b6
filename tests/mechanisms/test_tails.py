"""Tail probabilities against mpmath-free references, and distances that are never too short."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from discreet.exact import Enclosure, Real
from discreet.mechanisms import tails
from discreet.mechanisms.tails import at_most, discrete_gaussian_reach, normal_reach, normal_tail, smallest_whole


# P(N > x) to 30 digits, from an independent program (mpmath 1.3, 60 digits).
@pytest.mark.parametrize(
    ("x", "digits"),
    [
        (Fraction(1, 3), "0.369441340181763638272792282069573583"),
        (Fraction(3), "0.00134989803163009452665181476759497737782936815838"),
        (Fraction(49, 10), "4.79183276590319853298393494174204336338e-7"),
        (Fraction(51, 10), "1.69826740714759827393792528430913342488144847275606e-7"),
        (Fraction(20), "2.75362411860623369507562278085746533280749773475933e-89"),
    ],
)
def test_normal_tails_enclose_the_truth(x: Fraction, digits: str) -> None:
    truth = Fraction(digits)
    for count in (12, 30):
        low, high = normal_tail(Enclosure.of(x, count)).fractions()
        slack = truth / 10**30
        assert low - slack <= truth <= high + slack
        assert high - low <= truth / 10 ** (count - 8)
    low, high = normal_tail(Enclosure.of(-x, 30)).fractions()
    assert low <= 1 - truth + Fraction(1, 10**30)
    assert 1 - truth - Fraction(1, 10**30) <= high


@given(st.fractions(-8, 30, max_denominator=1000))
def test_normal_tails_agree_with_floats(x: Fraction) -> None:
    low, high = normal_tail(Enclosure.of(x, 25)).fractions()
    assert float(low) == pytest.approx(special.ndtr(-float(x)), rel=1e-11)
    assert float(high) == pytest.approx(special.ndtr(-float(x)), rel=1e-11)


def test_a_wide_argument_gives_a_wide_tail() -> None:
    low, high = normal_tail(Enclosure.between(Fraction(-1), Fraction(6), 20)).fractions()
    assert float(low) == pytest.approx(special.ndtr(-6.0))
    assert float(high) == pytest.approx(special.ndtr(1.0))


@pytest.mark.parametrize("outside", [Fraction(999, 1000), Fraction(1, 20), Fraction(1, 10**6), Fraction(1, 10**250)])
def test_normal_reach_is_safe_and_tight(outside: Fraction) -> None:
    x = normal_reach(outside)
    assert at_most(lambda digits: normal_tail(Enclosure.of(x, digits)), outside / 2)
    assert float(x) == pytest.approx(-special.ndtri(float(outside) / 2), rel=1e-8)


def test_the_bound_for_large_sigma_meets_the_sum() -> None:
    outside = Fraction(1, 20)
    summed, bounded = (
        discrete_gaussian_reach(Fraction(32), outside),
        discrete_gaussian_reach(Fraction(321, 10), outside),
    )
    assert 0 <= bounded - summed <= 2


@pytest.mark.parametrize("outside", ["1/20", "1/2", "99/100", "1", "3/2", "1e-9", "1e-300"])
@pytest.mark.parametrize("weights", [("1", "1/2"), ("1", "5/8", "1/4"), ("1", "1", "1", "1"), ("1/8",)])
def test_an_estimate_changes_no_distance_and_saves_most_looks(
    outside: str, weights: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a sum's tail; where doubles do not reach so far, it is looked for from the beginning."""
    tails_of, risk = [Enclosure.of(Fraction(weight), tails.DIGITS) for weight in weights], Fraction(outside)
    looks = list[Fraction]()

    def look(real: Real, bound: Fraction) -> bool:
        looks.append(bound)
        return at_most(real, bound)

    monkeypatch.setattr(tails, "at_most", look)
    found, with_estimate = tails.polynomial_reach(tails_of, risk), len(looks)
    monkeypatch.setattr(tails, "_polynomial_estimate", lambda *_: 0.0)
    assert tails.polynomial_reach(tails_of, risk) == found
    assert with_estimate <= min(6, len(looks) - with_estimate)


@given(st.integers(0, 10**9), st.integers(-5, 10**9))
def test_smallest_whole_finds_the_edge_wherever_it_looks_first(edge: int, near: int) -> None:
    assert smallest_whole(lambda n: n >= edge) == edge
    for start in (near, edge - 17, edge - 1, edge, edge + 1, edge + 17):
        assert smallest_whole(lambda n: n >= edge, near=start) == edge
    assert all(smallest_whole(e.__le__, near=n) == e for e in range(12) for n in range(20))


def test_what_is_undecided_is_not_at_most() -> None:
    assert not at_most(lambda digits: 1 / Enclosure.between(-1, 1, digits), Fraction(1))
    assert at_most(lambda digits: Enclosure.of(Fraction(1, 3), digits), Fraction(1, 3) + Fraction(1, 10**49))
    assert not at_most(lambda digits: Enclosure.of(Fraction(1, 3), digits), Fraction(1, 3))
    assert math.isclose(float(normal_reach(Fraction(1, 20))), 1.959964, rel_tol=1e-6)
