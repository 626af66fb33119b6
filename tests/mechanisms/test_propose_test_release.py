"""Propose-test-release: the cut, both halves of the proof, and what comes out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from discreet.errors import InvalidValue
from discreet.exact import Interval
from discreet.mechanisms import Laplace, ProposeTestRelease
from discreet.mechanisms import laplace as release_module
from discreet.mechanisms.propose_test_release import smallest_cut
from discreet.noise import SeededBits
from discreet.privacy import events
from tests.conformance.nothing import NoBits
from tests.mechanisms.judges import recorded, trial_keeps_its_promise
from tests.statistical.laws import FALSE_ALARM, share_p_value

BUDGETS = [(1, "1e-5"), ("0.1", "1e-6"), ("1/3", "0.01"), (5, "1e-9"), (1, "0.6"), (1, "0.99")]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_test_part(epsilon: Any, delta: str) -> None:
    trial_keeps_its_promise(ProposeTestRelease(epsilon=epsilon, delta=delta, bound=1))


def test_the_cut_of_the_test_vector_and_of_the_continuous_formula() -> None:
    """The continuous cut, ln(1 / (2 delta)) / epsilon = 10.82, would let 1.2210e-5 through instead of 1e-5."""
    cut = smallest_cut(Fraction(1), Fraction(1, 10**5))
    assert cut == 12
    tail = [math.exp(-k) / (1 + math.exp(-1)) for k in range(14)]
    assert tail[cut] == pytest.approx(4.4918e-6, rel=1e-4)
    assert tail[math.ceil(math.log(1 / 2e-5))] == pytest.approx(1.2210e-5, rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS[:4])
def test_the_cut_is_the_smallest(epsilon: Any, delta: str) -> None:
    rate, most = float(Fraction(epsilon)), float(delta)
    cut = smallest_cut(Fraction(epsilon), Fraction(delta))
    assert math.exp(-rate * cut) / (1 + math.exp(-rate)) <= most < math.exp(-rate * (cut - 1)) / (1 + math.exp(-rate))


def test_the_release_part_is_the_laplace_mechanism_of_the_bound() -> None:
    mechanism = ProposeTestRelease(epsilon="1/2", delta=1e-5, bound=3, grid="1/4")
    with recorded(release_module, "discrete_laplace") as scales:
        assert mechanism.release(7.25, 10**9) == 7.25
    assert scales == [Laplace(epsilon="1/2", sensitivity=3, grid="1/4").event.scale] == [24]
    assert mechanism.event == events.Approx(1, 1e-5)


@pytest.mark.ci
def test_how_often_it_answers(bits: SeededBits) -> None:
    mechanism = ProposeTestRelease(epsilon=1, delta="0.01", bound=1)
    runs = 5000
    for distance in (0, mechanism.cut, mechanism.cut + 2):
        a, k = math.exp(-1), mechanism.cut - distance
        chance = a**k / (1 + a) if k >= 0 else 1 - a ** (1 - k) / (1 + a)
        answered = sum(mechanism.release(5, distance, bits=bits) is not None for _ in range(runs))
        assert share_p_value(answered, runs, chance) > FALSE_ALARM


def test_nothing_comes_with_an_interval_that_says_nothing(bits: SeededBits) -> None:
    mechanism = ProposeTestRelease(epsilon=1, delta=1e-9, bound=1)
    nothing = mechanism.estimate(5, 0, bits=bits)
    assert nothing.value is None
    assert nothing.interval == Interval(-math.inf, math.inf)
    assert mechanism.interval(5) == Laplace(epsilon=1, sensitivity=1).interval(5)
    answer = mechanism.estimate(5, 10**6, bits=bits)
    assert answer.low <= answer.value <= answer.high


def test_an_estimate_holds_what_the_grid_rounds(bits: SeededBits) -> None:
    mechanism = ProposeTestRelease(epsilon=10**4, delta=1e-9, bound=1)
    answer = mechanism.estimate(0.4, 10**6, bits=bits)
    assert answer.low <= 0.4 <= answer.high
    assert mechanism.estimate(5, 10**6, bits=bits).interval == Interval(5, 5)


@pytest.mark.parametrize("distance", [None, -1, 1.0, True, math.nan, "3", [1], Fraction(1, 2)])
def test_distances_are_whole_numbers(distance: Any) -> None:
    with pytest.raises(InvalidValue):
        ProposeTestRelease(epsilon=1, delta=1e-5, bound=1).release(5, distance, bits=NoBits())


def test_single_numbers_only() -> None:
    with pytest.raises(InvalidValue, match="single"):
        ProposeTestRelease(epsilon=1, delta=1e-5, bound=1).release([5, 6], 3, bits=NoBits())
