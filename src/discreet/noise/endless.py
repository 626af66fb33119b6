"""The end of loops that honest bits always end: one number of turns for all of them, and one error.

A sampler that draws until a proposal is accepted has no longest draw. Honest bits need more than a few turns hardly
ever; bits that are stuck may never come to an end, and the answer would hang instead of failing. So every such loop
has at most so many turns, written ``for _ in range(TURNS)`` with ``raise endless()`` behind it.

*The price.* A turn of any sampler here accepts with probability at least 2/5, whatever its scale: the law of a draw
that came to an end differs from the exact one by less than 0.6^TURNS = 2^-188 in total variation, for an array of n
entries by n times that. Ties of random bits with the digits of a number go on with probability 2^-64 for each word, and
TIES of them in a row have the probability 2^-256.
"""

from __future__ import annotations

from discreet.errors import RandomnessUnavailable

TURNS = 256
TIES = 4
MOST_BITS = 1 << 12
"""Of one uniform real. Digits are doubled while a comparison is open, so at least 600 are known when no more are given:
open has then a probability below 10^-600 times the largest number of steps in the noise, 10^290 / 2^-900 < 10^562."""


def endless() -> RandomnessUnavailable:
    """The error of a draw that did not end."""
    return RandomnessUnavailable("The random bits do not end a draw, as honest ones do; nothing was released.")
