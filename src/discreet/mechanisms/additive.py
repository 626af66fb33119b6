"""What mechanisms that add noise have in common: a public grid, and an error that does not depend on the value."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any

from discreet import check
from discreet.exact import Grid, Interval
from discreet.mechanisms.base import CONFIDENCE, Mechanism
from discreet.mechanisms.values import around, numeric, whole_by_type
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate

HALF = Fraction(1, 2)


class Additive(Mechanism):
    """A mechanism whose release is the value plus noise of a public law, on a public grid."""

    __slots__ = ()

    grid: Grid

    @abstractmethod
    def error(self, *, confidence: check.Number = CONFIDENCE) -> Fraction:
        """The distance between the released number and the exact one that is kept with at least this probability."""

    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Where the exact value lies; each entry of an array has its own interval, and its own probability.

        Raises:
            InvalidParameter: if the confidence is not strictly between 0 and 1.
            InvalidValue: if the released value is no finite number.
        """
        return around(released, self.error(confidence=confidence), self.grid)


class Lattice(Additive):
    """A mechanism that rounds the value to its grid first and then adds whole steps of noise.

    On the grid of whole numbers the value is taken to be whole, and the interval covers the noise only; on any other
    grid, or if `rounded` says so, it also covers half a step of rounding. `estimate` decides by the type of the value,
    which is public.
    """

    __slots__ = ()

    @abstractmethod
    def noise_steps(self, outside: Fraction) -> int:
        """A number of steps that the noise of one entry exceeds with at most this probability."""

    def error(self, *, confidence: check.Number = CONFIDENCE, rounded: bool | None = None) -> Fraction:
        """The distance between the released number and the exact one that is kept with at least this probability."""
        steps = self.noise_steps(1 - check.probability(confidence=confidence))
        with_rounding = self.grid.exponent != 0 if rounded is None else rounded
        return (steps + HALF if with_rounding else Fraction(steps)) * self.grid.step

    def interval(
        self, released: Any, *, confidence: check.Number = CONFIDENCE, rounded: bool | None = None
    ) -> Interval:
        """Where the exact value lies; each entry of an array has its own interval, and its own probability.

        Args:
            released: what `release` returned.
            confidence: the probability, over the noise, that the interval of one entry covers its exact value.
            rounded: whether the value may have been off the grid; None means on every grid but that of whole numbers.
        """
        return around(released, self.error(confidence=confidence, rounded=rounded), self.grid)

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """A release together with its interval, its event, and a mark if the randomness was seeded."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        released = self.release(value, bits=source)
        rounded = not whole_by_type(numeric(value), self.grid)
        low, high = self.interval(released, confidence=chance, rounded=rounded)
        return Estimate(released, low, high, self.event, confidence=chance, private=source.private)
