"""Checks that samplers must pass and that broken samplers (see test_mutants) must fail. Each raises AssertionError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.noise import (
    Bits,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    laplace,
    uniform_below,
)
from discreet.noise.coin import accept_many, accept_one
from tests.exact.reference import exp_minus, leading
from tests.noise.tape import LANES, Branching, Cell, Tape, cells, law_of, spread
from tests.statistical.laws import FALSE_ALARM, WRONG, Law, p_value

CUTOFF = Fraction(1, 10**13)
UNREAD = Fraction(1, 10**9)  # some thousand branches below the cut-off, and no more

Ends = tuple[Fraction, Fraction]


# ------------------------------------------------------------------------------------------------ thresholds, by hand
@dataclass(frozen=True)
class Threshold:
    """The leading bits of a coin's probability, from the reference and not from the library."""

    ends: Ends

    @property
    def lane(self) -> int:
        return leading(*self.ends, 16)

    @property
    def rest(self) -> int:
        return leading(*self.ends, 64) & ((1 << 48) - 1)

    def word(self, index: int) -> int:
        return leading(*self.ends, 64 * (index + 1)) & ((1 << 64) - 1)


@lru_cache(maxsize=4096)
def exponential_threshold(x: Fraction) -> Threshold:
    return Threshold(exp_minus(x, 330))


@lru_cache(maxsize=4096)
def digit_threshold(scale: Fraction, k: int) -> Threshold:
    """exp(-x) / (1 + exp(-x)), x = 2^k / scale, which grows with exp(-x)."""
    low, high = exp_minus(2**k / scale, 330)
    return Threshold((low / (1 + low), high / (1 + high)))


def digit_count(scale: Fraction) -> int:
    """The first K with 2^K >= 11 scale."""
    return next(k for k in range(2000) if 2**k >= 11 * scale)


def thresholds(scale: Fraction) -> list[Threshold]:
    """Those of all digits, lowest first, and that of the way beyond them at the end."""
    count = digit_count(scale)
    return [*(digit_threshold(scale, k) for k in range(count)), exponential_threshold(2**count / scale)]


# --------------------------------------------------------------------------------------- every bit string there can be
def laplace_chance(scale: Fraction, z: int) -> Ends:
    """(1 - a) / (1 + a) a^|z|, rounded outwards."""
    low, high = exp_minus(1 / scale, 200)
    return (1 - high) / (1 + high) * low ** abs(z), (1 - low) / (1 + low) * high ** abs(z)


def geometric_chance(scale: Fraction, g: int) -> Ends:
    low, high = exp_minus(1 / scale, 200)
    return (1 - high) * low**g, (1 - low) * high**g


def walk(scale: Fraction, draw: Callable[[Bits], int], *, array: bool) -> tuple[dict[int, Fraction], Fraction]:
    """The exact law of a sampler whose lanes belong to digits: from the top for scalars, from the bottom for arrays."""
    known = thresholds(scale)
    order = known if array else known[::-1]
    by_position = [cells([threshold.lane], LANES) for threshold in order]
    toss = cells([known[-1].lane], LANES)

    def lane_cells(position: int, count: int) -> list[Cell]:
        return toss if count == 1 else by_position[position % len(order)]

    rest = cells((threshold.rest for threshold in known), 1 << 48)
    return law_of(draw, Branching(lane_cells, rest, CUTOFF))


def judge_walk(scale: Fraction, draw: Callable[[Bits], int], chance: Callable[[int], Ends], *, array: bool) -> None:
    """Known mass <= true probability <= known mass + unread mass, for every value, in exact fractions."""
    known, unread = walk(scale, draw, array=array)
    assert unread < UNREAD
    for value in {*known, *range(-5, 6)}:
        low, high = chance(value)
        found = known.get(value, Fraction(0))
        assert found <= high, value
        assert low <= found + unread, value


def in_array(scale: Fraction, parts: int, bits: Bits) -> int:
    """A draw as an array of many has it: one in an array of its own is worked out otherwise (`test_one_draw`)."""
    out = np.empty(1, dtype=np.int64)
    laplace._fill(laplace._digits(scale), out, parts, bits)
    return int(out[0])


def judge_laplace_walk(scale: Fraction, *, array: bool) -> None:
    def draw(bits: Bits) -> int:
        return in_array(scale, 2, bits) if array else discrete_laplace(scale, bits=bits)

    judge_walk(scale, draw, lambda z: laplace_chance(scale, z), array=array)


def judge_geometric_walk(scale: Fraction, *, array: bool) -> None:
    def draw(bits: Bits) -> int:
        return in_array(scale, 1, bits) if array else geometric(scale, bits=bits)

    def chance(g: int) -> Ends:
        return geometric_chance(scale, g) if g >= 0 else (Fraction(0), Fraction(0))

    judge_walk(scale, draw, chance, array=array)


def judge_exponential_walk(x: Fraction, draw: Callable[[Bits], bool]) -> None:
    """P(True) = exp(-x) to 2^-64, the chance of a tie of 64 bits."""
    threshold = exponential_threshold(x)
    lane, rest = cells([threshold.lane], LANES), cells([threshold.rest], 1 << 48)
    known, unread = law_of(draw, Branching(lambda _i, _n: lane, rest, Fraction(1, 1 << 70)))
    assert unread <= Fraction(1, 1 << 64)
    assert known.get(True, Fraction(0)) <= threshold.ends[1]
    assert threshold.ends[0] <= known.get(True, Fraction(0)) + unread


def coin_draws(x: Fraction) -> list[Callable[[Bits], bool]]:
    """All ways to toss Bernoulli(exp(-x)) from lanes."""
    return [
        lambda bits: bernoulli_exp(x, bits=bits),
        lambda bits: bool(bernoulli_exp(x, 1, bits=bits)[0]),
        lambda bits: accept_one(float(x), lambda: x, bits),
    ]


# ------------------------------------------------------------------------------------------------------------ ties
def tie_scripts(threshold: Threshold) -> Iterator[tuple[list[int], bool]]:
    """What may follow a lane tied with a threshold, as lanes, and what the full bit string says: below or not."""
    rest, second = threshold.rest, threshold.word(1)
    if rest > 0:
        yield spread(rest - 1, 48), True
    if rest < (1 << 48) - 1:
        yield spread(rest + 1, 48), False
    yield spread(rest, 48) + spread(second - 1, 64), True
    yield spread(rest, 48) + spread(second + 1, 64), False
    yield spread(rest, 48) + spread(second, 64) + spread(threshold.word(2) - 1, 64), True
    yield spread(rest, 48) + spread(second, 64) + spread(threshold.word(2) + 1, 64), False


def judge_ties(scale: Fraction) -> None:
    """One digit of one of the two parts tied, the others plainly 0, for a scalar and in the middle of an array."""
    known = thresholds(scale)
    for digit, threshold in enumerate(known[:-1]):
        for part, sign in ((0, 1), (1, -1)):
            for extra, below in tie_scripts(threshold):
                expected = sign * (1 << digit) * below
                _judge_scalar_tie(scale, (part, len(known) - 1 - digit), threshold.lane, extra, expected)
                _judge_array_tie(scale, (part, digit), threshold.lane, extra, expected)


def _judge_scalar_tie(scale: Fraction, at: tuple[int, int], lane: int, extra: list[int], expected: int) -> None:
    lanes = np.full((2, digit_count(scale) + 1), LANES - 1)
    lanes[at] = lane
    tape = Tape([*lanes.ravel().tolist(), *extra])
    assert discrete_laplace(scale, bits=tape) == expected
    assert tape.left() == 0


def _judge_array_tie(scale: Fraction, at: tuple[int, int], lane: int, extra: list[int], expected: int) -> None:
    lanes = np.full((2, digit_count(scale) + 1, 3), LANES - 1)
    lanes[(*at, 1)] = lane
    tape = Tape([*lanes.ravel().tolist(), *extra])
    assert discrete_laplace(scale, 3, bits=tape).tolist() == [0, expected, 0]
    assert tape.left() == 0


def judge_beyond(scale: Fraction, *, array: bool, part: int = 0, times: int = 3) -> int:
    """Sends the draw beyond the stored digits, `times` over; returns it after checking that nothing was cut off."""
    known = thresholds(scale)
    beyond, width = known[-1], len(known)
    assert beyond.lane > 0 or beyond.rest > 0
    reach = [0] if beyond.lane else [0, 0, 0, 0]  # a lane below the threshold, or a tie and 48 bits below the rest
    lanes = np.full((2, width), LANES - 1)
    lanes[part, width - 1 if array else 0] = 0
    script = [*lanes.ravel().tolist(), *reach[1:], *(reach * (times - 1)), LANES - 1]
    tape = Tape(script)
    value = in_array(scale, 2, tape) if array else discrete_laplace(scale, bits=tape)
    assert value == (1 if part == 0 else -1) * times << (width - 1)
    assert tape.left() == 0
    return value


def judge_accept_near_threshold(x: Fraction) -> None:
    """Words around 2^64 exp(-x), nearer than any float can tell, are decided as the exact comparison decides."""
    word = exponential_threshold(x).word(0)
    offsets = [0, *(sign * step for step in (1, 2, 3, 100, 700, 1023, 1500, 5000, 1 << 20) for sign in (1, -1))]
    words = [word + offset for offset in offsets if 0 <= word + offset < 1 << 64]
    after_tie = exponential_threshold(x).word(1)
    for follow, below in ((after_tie - 1, True), (after_tie + 1, False)):
        tape = Tape([lane for w in words for lane in spread(w, 64)] + spread(follow, 64))
        result = accept_many(np.full(len(words), float(x)), lambda _i: x, tape)
        assert result.tolist() == [w < word or (w == word and below) for w in words]


def judge_same_lanes(scale: Fraction, bits: Bits) -> None:
    """Scalars read digits from the top, arrays from the bottom; the same lane on the same digit gives the same."""
    known = [t.lane for t in thresholds(scale)]
    for _ in range(200):
        lanes = np.array(bits.lanes(2 * len(known))).reshape(2, -1)
        if (lanes == known).any() or (lanes[:, -1] <= known[-1]).any():
            continue  # ties have their own tests
        digits = (lanes < known)[:, :-1] @ (1 << np.arange(len(known) - 1))
        scalar = discrete_laplace(scale, bits=Tape(lanes[:, ::-1].ravel().tolist()))
        array = in_array(scale, 2, Tape(lanes.ravel().tolist()))
        assert scalar == array == digits[0] - digits[1]
        assert geometric(scale, bits=Tape(lanes[0, ::-1].tolist())) == digits[0]


# --------------------------------------------------------------------------------------------------------- uniform
class AllLanes(Bits):
    """An array of words whose first 16 bits take every value once; rejected entries get zeros."""

    def __init__(self) -> None:
        self.rejected: int | None = None

    def fill(self, array: NDArray[Any]) -> None:
        if self.rejected is None:
            array[:] = np.arange(LANES, dtype=np.uint64) << np.uint64(48)
            self.rejected = 0
        else:
            array[:] = 0
            self.rejected += array.size

    def lanes(self, count: int) -> list[int]:
        raise AssertionError(f"an array drew {count} lanes")


def judge_uniform(bound: int) -> None:
    """Over all lanes every value appears equally often; what is rejected is drawn again, never folded back."""
    width = max(1, (bound - 1).bit_length())
    each = LANES >> width
    source = AllLanes()
    counts = np.bincount(uniform_below(bound, LANES, bits=source), minlength=bound)
    counts[0] -= source.rejected or 0
    assert source.rejected == LANES - each * bound
    assert counts.tolist() == [each] * bound
    if bound > 1:
        scalar = np.bincount([uniform_below(bound, bits=Tape([lane, 0])) for lane in range(LANES)], minlength=bound)
        scalar[0] -= source.rejected or 0
        assert scalar.tolist() == [each] * bound


def judge_rational_coin(probability: Fraction) -> None:
    """Over all lanes the share of True is the probability, exactly; rejected lanes (drawn again as 0: True) aside."""
    each = LANES >> max(1, (probability.denominator - 1).bit_length())
    source = AllLanes()
    hits = int(bernoulli(probability, LANES, bits=source).sum()) - (source.rejected or 0)
    assert hits == each * probability.numerator
    scalar = sum(bernoulli(probability, bits=Tape([lane, 0])) for lane in range(LANES)) - (source.rejected or 0)
    assert scalar == each * probability.numerator


# ----------------------------------------------------------------------------------------------------- samples
def judge_sample(draws: Any, law: Callable[[Fraction], Law], scale: Fraction) -> None:
    """The sample fits its law, and would not fit the same law with a scale 30 % off."""
    assert p_value(draws, law(scale)) > FALSE_ALARM
    for factor in WRONG:
        assert p_value(draws, law(scale * factor)) < FALSE_ALARM


Sampler = Callable[..., Any]
SAMPLERS: dict[str, Sampler] = {
    "geometric": geometric,
    "discrete_laplace": discrete_laplace,
    "discrete_gaussian": discrete_gaussian,
}


def scalar_draws(sampler: Sampler, parameter: Any, count: int, bits: Bits) -> list[int]:
    draw = partial(sampler, parameter, bits=bits)
    return [draw() for _ in range(count)]


def relative_error(value: float, ends: Ends) -> Fraction:
    """How far a float is from a number between two rationals, relative to it, at most."""
    return max(abs(Fraction(value) - end) / ends[0] for end in ends)
