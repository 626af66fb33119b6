"""Sums of statistics in 64 bits are those of Python's integers, and leave 64 bits before they could overflow."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.measurement.intervals.estimators import TotalEstimator
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.additive import LinearCombination

SIZES = st.one_of(st.integers(-9, 9), st.sampled_from([2**31, 2**59, 2**60, 2**62, 2**63 - 1, -(2**63), 2**64, 10**40]))
WEIGHTS = st.sampled_from([Fraction(1), Fraction(-1, 2), Fraction(3, 4), Fraction(2**61), Fraction(1, 2**62)])


def array(rows: list[list[Any]]) -> Any:
    return np.array(rows, dtype=object).reshape(len(rows), 2)


@given(st.lists(st.lists(SIZES, min_size=2, max_size=2), max_size=4), st.lists(WEIGHTS, min_size=2, max_size=2))
def test_numerators_are_exact(rows: list[list[int]], weights: list[Fraction]) -> None:
    linear = LinearCombination.of(dict(enumerate(weights)))
    found, bottom = linear.values(array(rows))
    assert [Fraction(n, bottom) for n in found] == [linear.value(row) for row in rows]
    assert {type(n) for n in found} <= {int}


@given(st.lists(st.lists(SIZES, min_size=2, max_size=2), max_size=4), WEIGHTS)
def test_whole_totals_are_those_of_integers_of_any_size(rows: list[list[int]], weight: Fraction) -> None:
    linear, noise = LinearCombination.of({0: weight, 1: Fraction(1)}), Noise("laplace", (Fraction(3), Fraction(3)))
    reach = noise.reach(linear, Fraction(1, 20))
    for row, cell in zip(
        rows, TotalEstimator(linear, whole=True).cells(noise, array(rows), Fraction(1, 20)), strict=True
    ):
        exact = linear.value(row)
        assert cell.value == math.floor(exact + Fraction(1, 2))
        assert cell.low == min(cell.value, math.ceil(exact - reach))
        assert cell.high == max(cell.value, math.floor(exact + reach))


def test_fractions_stay_fractions() -> None:
    (found,), bottom = LinearCombination.at(0).values(array([[Fraction(7, 2), 0]]))
    assert Fraction(found, bottom) == Fraction(7, 2)
