"""Secrets: long enough, never twice, through the one door."""

from __future__ import annotations

import pytest

from discreet.errors import InvalidParameter
from discreet.noise import SeededBits
from discreet.noise.tokens import random_bytes, token


def test_tokens_are_long_and_differ() -> None:
    made = {token() for _ in range(1000)}
    assert len(made) == 1000
    assert {len(each) for each in made} == {64}
    assert {len(random_bytes(20)) for _ in range(100)} == {20}


def test_every_bit_of_them_is_drawn() -> None:
    """Of 200 draws each bit is 0 and 1 at least once; a fair one fails with 2^-199, all 256 with less than 2^-190."""
    ones, zeros = 0, 0
    for _ in range(200):
        drawn = int.from_bytes(random_bytes(32), "big")
        ones |= drawn
        zeros |= ~drawn
    assert ones == 2**256 - 1
    assert zeros & (2**256 - 1) == 2**256 - 1


def test_they_come_from_the_given_bits() -> None:
    assert token(16, bits=SeededBits(1)) == token(16, bits=SeededBits(1)) != token(16, bits=SeededBits(2))


@pytest.mark.parametrize("count", [0, 8, 15, -1, 16.0, True])
def test_short_ones_are_no_secrets(count: int) -> None:
    with pytest.raises(InvalidParameter):
        token(count)
