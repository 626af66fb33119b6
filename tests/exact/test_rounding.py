"""Rounding errs on the side that its name says, by the least possible."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exact import Interval, float_above, float_below, root_above, root_below

wide = st.one_of(
    st.fractions(),
    st.builds(
        lambda top, power: Fraction(top) * Fraction(2) ** power, st.integers(-(10**30), 10**30), st.integers(-1200, 900)
    ),
)


@given(wide)
def test_floats_enclose_tightly(value: Fraction) -> None:
    above, below = float_above(value), float_below(value)
    assert Fraction(below) <= value <= Fraction(above)
    assert above == below or above == math.nextafter(below, math.inf)
    assert (above == below) == (Fraction(above) == value)


def test_floats_end_at_infinity() -> None:
    huge = Fraction(10**400)
    assert (float_above(huge), float_below(huge)) == (math.inf, sys.float_info.max)
    assert (float_above(-huge), float_below(-huge)) == (-sys.float_info.max, -math.inf)


@given(st.fractions(min_value=0), st.integers(1, 200))
def test_roots_enclose(value: Fraction, bits: int) -> None:
    above, below = root_above(value, bits), root_below(value, bits)
    assert 0 <= below <= above
    assert below**2 <= value <= above**2
    assert above - below <= Fraction(2, 2**bits) * max(Fraction(1), above)


@given(st.fractions(min_value=0))
def test_roots_of_squares_are_exact(value: Fraction) -> None:
    assert root_above(value**2) == root_below(value**2) == value


@pytest.mark.parametrize("value", [Fraction(1, 10**40), Fraction(3, 10**200), Fraction(10**40 + 1)])
def test_small_and_large_roots_keep_relative_precision(value: Fraction) -> None:
    assert root_above(value) ** 2 / value < 1 + Fraction(1, 2**30)
    assert root_below(value) ** 2 / value > 1 - Fraction(1, 2**30)


def test_interval() -> None:
    low, high = Interval(97, 103)
    assert (low, high, Interval(97, 103).width) == (97, 103, 6)
