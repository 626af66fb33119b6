"""Noise drawn in blocks before it is needed, and handed out once: what makes one number at a time as cheap as many."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Generic, NoReturn, TypeVar

from discreet.errors import InvalidParameter
from discreet.noise.laplace import discrete_laplace
from discreet.noise.rng import Bits
from discreet.noise.rounded_gaussian import LARGEST_RATIO, NORMAL_ERROR, Disc, normal_block, rounded_normal

FIRST, LARGEST = 64, 4096  # draws of a block: few for short streams, then more

T = TypeVar("T")


class DrawBuffer(Generic[T]):
    """Hands out what a function draws in blocks: each draw once, in one process, and never after a fork.

    A child process throws the waiting draws away, since its parent hands them out, too; copies and pickles are refused.

    >>> ahead = DrawBuffer(lambda count: list(range(count)))
    >>> sorted(ahead.next() for _ in range(64)) == list(range(64))
    True
    """

    __slots__ = ("_block", "_draw", "_owner", "_waiting")

    def __init__(self, draw: Callable[[int], list[T]]) -> None:
        self._draw, self._block = draw, FIRST
        self._owner, self._waiting = os.getpid(), list[T]()

    def next(self) -> T:
        """Returns the next draw, which no other caller gets."""
        if self._owner != os.getpid():
            self._owner, self._waiting = os.getpid(), []
        try:
            return self._waiting.pop()
        except IndexError:
            fresh = self._draw(self._block)
            self._block = min(2 * self._block, LARGEST)
            first = fresh.pop()
            self._waiting = fresh
            return first

    def __reduce__(self) -> NoReturn:
        raise TypeError("Noise drawn ahead cannot be copied or pickled: both copies would hand out the same draws.")


class RoundedNormals:
    """Rounds exact numbers plus normal noise to whole numbers, correctly, with noise that was drawn ahead.

    Formal guarantee: what `around` returns is the nearest integer to v + sigma Z with a real normal Z of its own, as
    of `rounded_gaussian`: exactly mu-GDP, because rounding is post-processing. The float form of Z is certain up to an
    error; where that leaves two integers, the same bits, continued, decide.

    Args:
        sigma: above 0, at most 2^20.
        bits: the source of randomness.
    """

    __slots__ = ("_ahead", "_bits", "_margin", "_sigma", "sigma")

    def __init__(self, sigma: Fraction, bits: Bits) -> None:
        if not 0 < sigma <= LARGEST_RATIO:
            raise InvalidParameter("sigma", sigma, f"above 0 and at most {LARGEST_RATIO}")
        self.sigma, self._bits, self._sigma = sigma, bits, float(sigma)
        # as in `rounded_gaussians`, plus the rounding of the fractional part, 2^-53
        self._margin = self._sigma * (NORMAL_ERROR + 2.0**-49) + 2.0**-48
        self._ahead = DrawBuffer[tuple[float, int, Disc]](lambda count: normal_block(count, bits))

    def around(self, value: int, exponent: int) -> int:
        """Returns the nearest integer to value / 2^exponent + sigma Z."""
        normal, index, block = self._ahead.next()
        whole = value >> exponent
        scaled = (value - (whole << exponent)) / (1 << exponent) + self._sigma * normal
        if scaled == scaled:  # noqa: PLR0124 - NaN marks points whose float form is not certain
            nearest = math.floor(scaled + 0.5)
            if abs(scaled - nearest) < 0.5 - self._margin:
                return whole + nearest
        return rounded_normal(block, index, self.sigma, Fraction(value, 1 << exponent), self._bits)


class DiscreteLaplaces:
    """Adds exact discrete Laplace noise, drawn ahead, to integers.

    Args:
        scale: above 0; P(z) ~ exp(-|z| / scale).
        bits: the source of randomness.
    """

    __slots__ = ("_ahead", "scale")

    def __init__(self, scale: Fraction, bits: Bits) -> None:
        self.scale = scale
        self._ahead = DrawBuffer[int](lambda count: [int(z) for z in discrete_laplace(scale, count, bits=bits)])

    def around(self, value: int) -> int:
        """Returns the value plus noise of its own."""
        return value + self._ahead.next()
