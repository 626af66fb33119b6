"""The checks have power: each sampler broken on purpose is rejected by the check that guards against its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet.exact import grid
from discreet.noise import Bits, SecureBits, SeededBits, coin, gaussian, laplace, rng, uniform
from tests.exact.test_grid import judge_rounding_pairs
from tests.noise.forks import draws_of_children
from tests.noise.judges import (
    coin_draws,
    judge_accept_near_threshold,
    judge_beyond,
    judge_exponential_walk,
    judge_geometric_walk,
    judge_laplace_walk,
    judge_rational_coin,
    judge_same_lanes,
    judge_sample,
    judge_ties,
    judge_uniform,
    scalar_draws,
)
from tests.noise.test_approximate import DENSE, judge_approximation
from tests.statistical.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, GeometricLaw

THIRD, ONE = Fraction(1, 3), Fraction(1)


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    """No threshold computed by sound code helps a mutant, and none of a mutant's outlives it."""
    caches = (laplace._digits_of, gaussian._target_of, coin.exponential_coin)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def rejected(judge: Callable[[], object]) -> None:
    with pytest.raises(AssertionError):
        judge()


# ------------------------------------------------------------------------------------------------------------- coins
@pytest.mark.parametrize("shift", [1, -1])
@pytest.mark.parametrize("array", [False, True])
def test_first_look_off_by_one(shift: int, array: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = coin.Coin._first_look
    monkeypatch.setattr(coin.Coin, "_first_look", lambda self, x: max(0, sound(self, x) + shift))
    rejected(lambda: judge_geometric_walk(Fraction(2, 11), array=array))
    rejected(lambda: judge_exponential_walk(ONE, coin_draws(ONE)[int(array)]))


def test_a_tie_counts_as_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """lane <= threshold instead of lane < threshold: 2^-16 too likely."""
    monkeypatch.setattr(coin.Coin, "resume", lambda self, lane, _bits: lane <= self.lane)
    rejected(lambda: judge_ties(ONE))
    rejected(lambda: judge_laplace_walk(THIRD, array=False))
    rejected(lambda: judge_laplace_walk(THIRD, array=True))


def test_a_tie_counts_as_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coin.Coin, "resume", lambda self, lane, _bits: lane < self.lane)
    rejected(lambda: judge_ties(ONE))
    rejected(lambda: judge_laplace_walk(THIRD, array=True))


@pytest.mark.parametrize("verdict", [lambda drawn, word: drawn <= word, lambda drawn, word: drawn < word])
def test_no_refinement_after_64_bits(verdict: Callable[[int, int], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coin.Coin, "resume_word", lambda self, drawn, _bits: verdict(drawn, self.word))
    rejected(lambda: judge_ties(ONE))
    rejected(lambda: judge_accept_near_threshold(ONE))


def test_refinement_compares_with_the_same_word_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = coin.Coin._chunk
    monkeypatch.setattr(coin.Coin, "_chunk", lambda self, _index: sound(self, 0))
    rejected(lambda: judge_ties(ONE))


# ------------------------------------------------------------------------------------------------------------- digits
def test_scalar_without_the_way_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    def careful(digits: laplace._Digits, drawn: list[int], bits: Bits) -> int:
        value = 0
        for each, lane in zip(reversed(digits.coins), drawn[1:], strict=True):
            value += value + each.resume(lane, bits)
        return value

    monkeypatch.setattr(laplace, "_careful", careful)
    rejected(lambda: judge_beyond(ONE, array=False))
    rejected(lambda: judge_laplace_walk(Fraction(2, 11), array=False))


def test_array_without_the_way_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = laplace._late

    def late(digits: laplace._Digits, digit: int, lane: int, bits: Bits) -> int:
        return sound(digits, digit, lane, bits) if digit < len(digits.coins) else 0

    monkeypatch.setattr(laplace, "_late", late)
    rejected(lambda: judge_beyond(ONE, array=True))
    rejected(lambda: judge_laplace_walk(Fraction(2, 11), array=True))


@pytest.mark.parametrize("array", [False, True])
def test_the_way_beyond_ends_after_one_step(array: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "_upper", lambda _digits, _bits: 1)
    rejected(lambda: judge_beyond(ONE, array=array))


def test_array_forgets_the_sign_of_late_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = laplace._late
    monkeypatch.setattr(laplace, "_late", lambda *arguments: abs(sound(*arguments)) * 2)
    rejected(lambda: judge_ties(ONE))


def test_a_digit_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "_RARE", 5)
    rejected(lambda: judge_beyond(ONE, array=False))


def test_digits_wrap_in_16_bits(monkeypatch: pytest.MonkeyPatch, bits: SeededBits) -> None:
    """Only digits 15 and 16 of rare draws suffer, which no distribution function shows: the bit-by-bit check does."""
    monkeypatch.setattr(laplace, "_GROUP", 17)
    rejected(lambda: judge_same_lanes(Fraction(10**6), bits))


# ------------------------------------------------------------------------------------------------------------- samples
def with_half_scale(sampler: Callable[..., Any], parameter: Fraction, *size: int, bits: Bits) -> Any:
    return sampler(parameter / 2, *size, bits=bits)


@pytest.mark.parametrize("scale", [ONE, Fraction(1000)], ids=str)
def test_half_scale(scale: Fraction, bits: SeededBits) -> None:
    for sampler, law in (
        (laplace.geometric, GeometricLaw),
        (laplace.discrete_laplace, DiscreteLaplaceLaw),
        (gaussian.discrete_gaussian, DiscreteGaussianLaw),
    ):
        mutant = partial(with_half_scale, sampler)
        rejected(lambda: judge_sample(mutant(scale, 50_000, bits=bits), law, scale))  # noqa: B023
        rejected(lambda: judge_sample(scalar_draws(mutant, scale, 5_000, bits), law, scale))  # noqa: B023


def test_sign_bias(bits: SeededBits) -> None:
    """A sign drawn apart from the size counts 0 twice: what the textbook method must reject."""
    scale = Fraction(3)
    sizes, signs = laplace.geometric(scale, 50_000, bits=bits), uniform.uniform_below(2, 50_000, bits=bits)
    rejected(lambda: judge_sample(np.where(signs == 1, sizes, -sizes), DiscreteLaplaceLaw, scale))


def test_slight_lean_to_one_side(bits: SeededBits) -> None:
    """One draw in fifty turned positive moves the distribution function by about 0.008: seen by 10^6 draws."""
    scale = Fraction(17)
    draws = laplace.discrete_laplace(scale, 1_000_000, bits=bits)
    draws[::50] = np.abs(draws[::50])
    rejected(lambda: judge_sample(draws, DiscreteLaplaceLaw, scale))


def test_every_proposal_is_accepted(bits: SeededBits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "accept_many", lambda x, _exact, _bits: np.ones(x.size, dtype=bool))
    monkeypatch.setattr(gaussian, "accept_one", lambda _x, _exact, _bits: True)
    scale = Fraction(17)
    rejected(lambda: judge_sample(gaussian.discrete_gaussian(scale, 50_000, bits=bits), DiscreteGaussianLaw, scale))
    draws = scalar_draws(gaussian.discrete_gaussian, scale, 20_000, bits)
    rejected(lambda: judge_sample(draws, DiscreteGaussianLaw, scale))


# ---------------------------------------------------------------------------------------------- approximate exponential
def test_no_margin_around_the_float(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coin, "_MARGIN", 0.0)

    def judge() -> None:
        for n in range(1, 200):
            judge_accept_near_threshold(Fraction(n, 64))

    rejected(judge)


def test_undecided_draws_settled_by_the_float(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coin, "_settle", lambda drawn, x, _bits: drawn < int(np.exp(-float(x)) * 2.0**64))
    rejected(lambda: judge_accept_near_threshold(Fraction(1)))


def test_a_series_one_term_short(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = 16  # a coarser table leaves r < 1/16, where degree 6 is off by 2^-40
    monkeypatch.setattr(coin, "_PARTS", parts)
    monkeypatch.setattr(coin, "_PART", [float(np.exp(-i / parts)) for i in range(parts)])
    monkeypatch.setattr(coin, "_PART_ARRAY", np.exp(-np.arange(parts) / parts))
    rejected(lambda: judge_approximation(DENSE))


# ------------------------------------------------------------------------------------------------------------- uniform
@pytest.mark.ci
def test_modulo_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform, "_one_below", lambda limit, bits: bits.integer(16) % limit)
    rejected(lambda: judge_uniform(10))
    rejected(lambda: judge_rational_coin(Fraction(3, 7)))


def test_modulo_bias_in_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    def many(limit: int, count: int, bits: Bits) -> Any:
        return (bits.words(count) % np.uint64(limit)).astype(np.int64)

    monkeypatch.setattr(uniform, "_many_below", many)
    rejected(lambda: judge_uniform(10))
    rejected(lambda: judge_rational_coin(Fraction(3, 7)))


def test_the_largest_value_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = uniform._many_below
    monkeypatch.setattr(uniform, "_many_below", lambda limit, *rest: sound(max(1, limit - 1), *rest))
    rejected(lambda: judge_uniform(10))


# ------------------------------------------------------------------------------------------------- randomness and grid
def test_fork_without_a_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SecureBits, "after_fork", rng._StreamBits.after_fork)
    source = SecureBits()
    source.lanes(7)
    drawn = [*draws_of_children(source, 3), source.lanes(16)]
    assert len({tuple(lanes) for lanes in drawn}) == 1


def test_rounding_half_to_even(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.5 and 1.5 round to 0 and 2: two values one step apart end two steps apart."""
    monkeypatch.setattr(grid.Grid, "_floats", lambda _self, values: np.rint(values).astype(np.int64))
    rejected(lambda: judge_rounding_pairs(grid.Grid(0), [(0.5, 1.5)]))
