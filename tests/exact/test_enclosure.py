"""The true value always lies inside, decisions are only made when certain, and they are made in the end."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from discreet.exact import Enclosure, UndecidedComparison, leading_bits, lower, settle, upper
from tests.exact.reference import exp_minus, leading

rationals = st.fractions(min_value=-1000, max_value=1000, max_denominator=10**12)
few_digits = st.integers(2, 60)


def holds(enclosure: Enclosure, low: Fraction, high: Fraction | None = None) -> bool:
    """Whether the enclosure reaches from below one number to above the other (the same unless given)."""
    a, b = enclosure.fractions()
    return a <= low and (low if high is None else high) <= b


@given(rationals, rationals, few_digits)
def test_arithmetic_encloses(x: Fraction, y: Fraction, digits: int) -> None:
    a, b = Enclosure.of(x, digits), Enclosure.of(y, digits)
    assert holds(a, x)
    assert holds(a + b, x + y)
    assert holds(a - b, x - y)
    assert holds(a * b, x * y)
    assert holds(-a, -x)
    assert holds(x + b, x + y)
    assert holds(x - b, x - y)
    assert holds(x * b, x * y)
    if y:
        assert holds(a / b, x / y)
        assert holds(x / b, x / y)


@given(rationals, rationals, rationals, rationals, few_digits)
def test_arithmetic_encloses_for_every_pair_of_members(
    p: Fraction, q: Fraction, r: Fraction, s: Fraction, digits: int
) -> None:
    (p, q), (r, s) = sorted((p, q)), sorted((r, s))
    a, b = Enclosure.between(p, q, digits), Enclosure.between(r, s, digits)
    products = [x * y for x in (p, q) for y in (r, s)]
    assert holds(a * b, min(products), max(products))
    assert holds(a - b, p - s, q - r)
    if r > 0 or s < 0:
        quotients = [x / y for x in (p, q) for y in (r, s)]
        assert holds(a / b, min(quotients), max(quotients))


@given(st.fractions(min_value=0, max_value=50, max_denominator=10**9), few_digits)
def test_exponential_encloses(x: Fraction, digits: int) -> None:
    low, high = exp_minus(x, 400)
    assert holds(Enclosure.of(-x, digits).exp(), low, high)
    assert holds(Enclosure.of(x, digits).exp(), 1 / high, 1 / low)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6), few_digits)
def test_logarithm_and_root_enclose(x: Fraction, digits: int) -> None:
    log = Enclosure.of(x, digits).log()
    assert (Enclosure.between(log.fractions()[0], log.fractions()[0], 300).exp()).fractions()[0] <= x
    assert (Enclosure.between(log.fractions()[1], log.fractions()[1], 300).exp()).fractions()[1] >= x
    a, b = Enclosure.of(x, digits).sqrt().fractions()
    assert a**2 <= x <= b**2
    assert a >= 0


@given(rationals, st.integers(20, 60))
def test_enclosures_are_narrow(x: Fraction, digits: int) -> None:
    """A few units in the last place: exp of an argument of up to 1000, itself off by 10^(3 - digits)."""
    assume(x != 0)
    a, b = Enclosure.of(x / 100, digits).exp().fractions()
    assert (b - a) / a < Fraction(10) ** (4 - digits)


@pytest.mark.parametrize("operation", [lambda e: 1 / e, lambda e: e.log(), lambda e: e.below(0), lambda e: e.floor()])
def test_what_cannot_be_known_is_undecided(operation: Callable[[Enclosure], object]) -> None:
    with pytest.raises(UndecidedComparison):
        operation(Enclosure.between(Fraction(-1, 10), Fraction(1, 10), 5))


def test_below() -> None:
    third = Enclosure.of(Fraction(1, 3), 10)
    assert third.below(1)
    assert not third.below(Fraction(1, 4))
    assert not Enclosure.of(2, 5).below(2)
    with pytest.raises(UndecidedComparison):
        third.below(Fraction(1, 3))


def test_floor_never_writes_out_a_hopeless_exponent() -> None:
    tiny = Enclosure.of(-(10**300), 40).exp()
    assert tiny.low == 0
    assert 0 < tiny.high < Decimal("1e-99999999")
    assert (tiny * 2**64).floor() == 0
    assert Enclosure.of(Fraction(-7, 2), 10).floor() == -4


def test_ends_too_near_to_zero_move_to_the_safe_side() -> None:
    low, high = Enclosure.of(1, 40).log().fractions()  # 0, with one step of the last digit to each side
    assert low < 0 < high
    assert high - low < Fraction(1, 10**9999)
    low, high = Enclosure.of(-(10**300), 40).exp().fractions()
    assert low == 0 < high < Fraction(1, 10**9999)
    low, high = (-Enclosure.of(-(10**9), 40).exp()).fractions()
    assert -Fraction(1, 10**9999) < low < 0 == high
    assert upper(lambda digits: Enclosure.of(1, digits).log()) > 0


def test_settle_takes_as_many_digits_as_it_needs() -> None:
    asked: list[int] = []

    def decide(digits: int) -> bool:
        asked.append(digits)
        return Enclosure.of(Fraction(1, 3), digits).below(Fraction(1, 3) + Fraction(1, 10**100))

    assert settle(decide, digits=10)
    assert asked == [10, 20, 40, 80, 160]


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=30, max_denominator=10**6), st.integers(1, 300))
def test_leading_bits_of_exponentials(x: Fraction, count: int) -> None:
    assert leading_bits(lambda digits: Enclosure.of(-x, digits).exp(), count) == leading(*exp_minus(x, 500), count)


def test_leading_bits_behind_a_long_run_of_ones_and_zeros() -> None:
    """Numbers 10^-200 from a boundary need 200 digits before their first bit is certain."""
    dust = Fraction(1, 10**200)
    for exact, bits in (
        (Fraction(1, 2) - dust, "0" + "1" * 63),
        (Fraction(1, 2) + dust, "1" + "0" * 63),
        (1 - dust, "1" * 64),
    ):
        assert leading_bits(lambda digits: Enclosure.of(exact, digits), 64) == int(bits, 2)  # noqa: B023


def test_upper_and_lower() -> None:
    assert lower(lambda digits: Enclosure.of(1, digits).exp()) < Fraction(math.e) + Fraction(1, 2**51)
    below, above = (side(lambda digits: Enclosure.of(1, digits).exp()) for side in (lower, upper))
    assert below < above < below + Fraction(1, 10**37)
