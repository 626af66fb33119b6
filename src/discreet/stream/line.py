"""One line of a stream: the values of one group, what is measured of them, and the estimates made of that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from discreet.noise import Bits
from discreet.privacy.events import Event


class Line(ABC):
    """The state of one line: a private side that takes values, and a public side that takes noisy measurements."""

    __slots__ = ()

    @abstractmethod
    def measure(self, value: int) -> list[int]:
        """Takes the next value, and returns the exact integers to which noise is added in this period."""

    @abstractmethod
    def absorb(self, noisy: list[int]) -> float:
        """Takes these integers with their noise, and returns the estimate of this period, in steps of the value."""


class Error(NamedTuple):
    """How wrong one estimate is, in steps of the value: its variance, and a distance that it keeps to."""

    variance: float
    reach: float


class StreamMechanism(ABC):
    """What is released over a whole stream, for one budget: all its lines, and the noise of every period."""

    method: str

    @property
    @abstractmethod
    def event(self) -> Event:
        """Returns what all periods together cost, for accounting."""

    @abstractmethod
    def line(self) -> Line:
        """Returns a new line, before the first period."""

    @abstractmethod
    def noise(self, bits: Bits) -> Callable[[list[int]], list[int]]:
        """Returns the function that adds noise to the measured integers of a period; each gets noise of its own."""

    @abstractmethod
    def errors(self, confidence: Fraction) -> Iterator[Error]:
        """Yields the error of each period; the estimate is nearer to the sum than its reach so often, at least."""

    def worst_variance(self, horizon: int) -> float:
        """Returns the largest variance of any period, in squared steps."""
        errors = self.errors(Fraction(1, 2))
        return max(error.variance for _, error in zip(range(horizon), errors, strict=False))
