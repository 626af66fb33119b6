"""RT-004: samplers fed with every bit string, ties and the way beyond the stored digits forced."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.errors import RandomnessUnavailable
from discreet.noise import SeededBits, discrete_laplace, geometric
from tests.noise.judges import (
    digit_count,
    judge_beyond,
    judge_geometric_walk,
    judge_laplace_walk,
    judge_rational_coin,
    judge_same_lanes,
    judge_ties,
    judge_uniform,
)
from tests.noise.tape import LANES, Tape

SMALL = [Fraction(1, 12), Fraction(1, 11), Fraction(2, 11), Fraction(1, 3)]  # no, no, one and two stored digits
BOTH = pytest.mark.parametrize("array", [False, True], ids=["scalar", "array"])


@pytest.mark.sampled(2)
@BOTH
@pytest.mark.parametrize("scale", SMALL, ids=str)
def test_law_of_laplace_over_all_bit_strings(scale: Fraction, array: bool) -> None:
    judge_laplace_walk(scale, array=array)


@pytest.mark.sampled(4)
@BOTH
@pytest.mark.parametrize("scale", [*SMALL, Fraction(1, 2), Fraction(1)], ids=str)
def test_law_of_geometric_over_all_bit_strings(scale: Fraction, array: bool) -> None:
    judge_geometric_walk(scale, array=array)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(17), Fraction(0.3), Fraction(10**6)], ids=str)
def test_ties_end_as_the_full_bit_string_says(scale: Fraction) -> None:
    judge_ties(scale)


@BOTH
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(17), Fraction(10**6)], ids=str)
def test_nothing_is_cut_off_beyond_the_stored_digits(scale: Fraction, part: int, array: bool) -> None:
    assert abs(judge_beyond(scale, array=array, part=part)) >= 2 ** digit_count(scale)


def test_draws_past_64_bits_are_exact_for_scalars_and_refused_in_arrays() -> None:
    scale = Fraction(2**52)
    assert digit_count(scale) == 56
    times = 200  # 200 * 2^56 > 2^63, at a probability of exp(-16 * 200)
    assert judge_beyond(scale, array=False, times=times) == 200 << 56
    for part in (0, 1):
        with pytest.raises(RandomnessUnavailable):
            judge_beyond(scale, array=True, part=part, times=times)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(1000), Fraction(10**6)], ids=str)
def test_scalar_and_array_read_the_same_lanes_alike(scale: Fraction, bits: SeededBits) -> None:
    judge_same_lanes(scale, bits)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bound", [1, 2, 3, 7, 10, 255, 256, 257, 1000])
def test_uniform_over_all_lanes(bound: int) -> None:
    judge_uniform(bound)


@pytest.mark.ci
@pytest.mark.sampled(2)
@pytest.mark.parametrize("probability", [Fraction(1, 2), Fraction(3, 7), Fraction(1, 10), Fraction(99, 100)], ids=str)
def test_rational_coin_over_all_lanes(probability: Fraction) -> None:
    judge_rational_coin(probability)


def test_sure_coins_never_differ() -> None:
    everything = [0, LANES - 1, 0, 0]
    assert geometric(Fraction(1, 10**9), bits=Tape([1])) == 0
    assert discrete_laplace(Fraction(1, 10**9), bits=Tape([*everything[:2], 0, 0, 1])) == 0
