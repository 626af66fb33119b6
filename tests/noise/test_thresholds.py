"""The bits that coins compare with are the leading bits of their true probability, all of them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.exact import Enclosure
from discreet.noise.coin import Coin, exponential_coin
from discreet.noise.laplace import _digits_of
from discreet.noise.rng import Bits
from tests.cases import every
from tests.noise.judges import Threshold, digit_count, digit_threshold, exponential_threshold, thresholds
from tests.noise.tape import Tape, spread

SCALES = [
    Fraction(1, 1000),
    Fraction(1, 12),
    Fraction(1, 11),
    Fraction(1, 10),
    Fraction(1, 3),
    Fraction(1),
    Fraction(10, 11),
    Fraction(17),
    Fraction(1000),
    Fraction(10**6),
    Fraction(0.1),
    Fraction(2**40 + 1, 3),
    Fraction(2**52),
    Fraction(10**18),
]


def judge_coin(coin: Coin, truth: Threshold) -> None:
    assert coin.lane == truth.lane
    assert coin.word == truth.word(0)
    assert coin._chunk(1) == truth.word(1)


@every("scale", SCALES)
def test_digits_of_a_scale(scale: Fraction) -> None:
    digits = _digits_of(scale)
    truth = thresholds(scale)
    assert len(digits.coins) == digit_count(scale)
    assert list(digits.looks) == [t.lane for t in truth[::-1]]
    assert digits.lanes.ravel().tolist() == [t.lane for t in truth]
    for coin, expected in zip([*digits.coins, digits.beyond], truth, strict=True):
        judge_coin(coin, expected)


@given(st.fractions(min_value=Fraction(1, 40), max_value=10**7, max_denominator=10**6))
def test_digits_of_any_scale(scale: Fraction) -> None:
    assert list(_digits_of(scale).looks) == [t.lane for t in thresholds(scale)[::-1]]


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=80, max_denominator=10**9))
def test_exponential_coins(x: Fraction) -> None:
    judge_coin(exponential_coin(x), exponential_threshold(x))


def test_the_chance_to_go_beyond_is_small_enough_for_one_lane() -> None:
    assert all(_digits_of(scale).beyond.lane <= 1 for scale in SCALES)


def test_an_approximation_that_straddles_a_boundary_is_not_trusted() -> None:
    exact = Fraction(1, 2) - Fraction(1, 2**60)  # 0.0111...1 in binary, but 0.1000...0 as a float of 40 good bits
    coin = Coin(lambda digits: Enclosure.of(exact, digits), float(exact))
    assert coin.lane == 2**15 - 1


@pytest.mark.parametrize("x", [10**6, 10**9, 10**100, 10**299])
def test_hopeless_coins_answer_at_once(x: int) -> None:
    """exp(-10^9) has 4 * 10^8 leading zeros: no number of that length may ever be written out."""
    coin = exponential_coin(Fraction(x))
    assert (coin.lane, coin.word, coin._chunk(3)) == (0, 0, 0)
    assert not coin.toss(Tape([0, 0, 0, 1]))


def test_chunks_survive_a_race() -> None:
    """Coins are shared by threads: a chunk computed while another thread computes the same one is stored once."""
    coins: list[Coin] = []

    def recipe(digits: int) -> Enclosure:
        if coins and not coins[0]._chunks:
            coin, other = coins[0], coins.pop()
            other._chunk(0)  # what another thread does in the middle of this call
            coins.append(coin)
        return Enclosure.of(-1, digits).exp()

    coin = Coin(recipe, 0.36787944117)
    coins.append(coin)
    truth = exponential_threshold(Fraction(1))
    assert [coin._chunk(i) for i in range(3)] == [truth.word(i) for i in range(3)]


def test_one_toss_reads_one_lane() -> None:
    class Counting(Tape):
        read = 0

        def lanes(self, count: int) -> list[int]:
            self.read += count
            return super().lanes(count)

    source = Counting([5, 60000])
    coin = exponential_coin(Fraction(1))
    assert coin.toss(source)
    assert not coin.toss(source)
    assert source.read == 2


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1000)], ids=str)
def test_full_bit_strings_decide(scale: Fraction) -> None:
    """A string equal to the threshold for 128 bits is decided by the next word."""
    truth = digit_threshold(scale, 0)
    coin = _digits_of(scale).coins[0]
    head = spread(truth.word(0), 64) + spread(truth.word(1), 64)
    below: Bits = Tape(head + spread(truth.word(2) - 1, 64))
    above: Bits = Tape(head + spread(truth.word(2) + 1, 64))
    assert coin.toss(below)
    assert not coin.toss(above)
