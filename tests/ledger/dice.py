"""Choices of a test that are the same in every run."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TypeVar

from discreet.noise import SeededBits

T = TypeVar("T")


class Dice:
    """Draws by a seed."""

    def __init__(self, seed: int) -> None:
        self._bits = SeededBits(seed)

    def random(self) -> float:
        """A number from 0 on and below 1."""
        return self._bits.integer(53) / 2**53

    def below(self, count: int) -> int:
        return int(self.random() * count)

    def choice(self, things: Sequence[T]) -> T:
        return things[self.below(len(things))]

    def exponential(self, mean: float) -> float:
        return -mean * log(1 - self.random())
