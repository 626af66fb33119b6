"""One draw in an array of its own: it is worked out without arrays, from the same bits."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.noise import SeededBits, discrete_laplace, geometric, laplace
from discreet.noise.rng import Bits
from tests.noise.judges import in_array
from tests.noise.tape import Tape

SCALES = pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(10**4, 7), Fraction(2**40)], ids=str)
PARTS = pytest.mark.parametrize("parts", [1, 2])


def alone(scale: Fraction, parts: int, bits: Bits) -> int:
    draw = discrete_laplace if parts > 1 else geometric
    return int(draw(scale, 1, bits=bits)[0])


@SCALES
@PARTS
def test_one_draw_alone_is_what_an_array_would_hold(scale: Fraction, parts: int) -> None:
    one, other = SeededBits(5), SeededBits(5)
    for _ in range(200):
        assert alone(scale, parts, one) == in_array(scale, parts, other)
    assert one.word() == other.word()


@SCALES
@PARTS
def test_each_digit_may_be_tied_and_the_last_exceeded(scale: Fraction, parts: int) -> None:
    looks = laplace._digits(scale).looks[::-1]
    for place in range(parts * len(looks)):
        for below in (0, 1):
            drawn = [65535] * (parts * len(looks))
            drawn[place] = max(looks[place % len(looks)] - below, 0)
            tapes = [Tape([*drawn, *range(7, 7 + 40)]) for _ in range(2)]
            assert alone(scale, parts, tapes[0]) == in_array(scale, parts, tapes[1])
            assert tapes[0].lanes(1) == tapes[1].lanes(1)
