"""What every mechanism offers: a release, the event that describes it, and the error of what was released."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, Literal

from discreet import check
from discreet.exact import Interval
from discreet.noise import Bits, source_of
from discreet.privacy import Estimate
from discreet.privacy.events import Event

CONFIDENCE = Fraction(19, 20)

Law = Literal["laplace", "gaussian"]
"""The noise of a release, and what its budget is told in: an epsilon for Laplace noise, a rho for Gaussian noise."""


class Mechanism(ABC):
    """A randomised function of private values; its parameters are public and checked before anything is drawn.

    Formal guarantee: whatever the value, one call of `release` is described by `event`, under the neighbour relation
    for which the sensitivity was computed. Several calls are several events.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one release costs, for accounting."""

    @abstractmethod
    def release(self, value: Any, *, bits: Bits | None = None) -> Any:
        """A private version of the value; `bits` is the source of randomness, by default the secure one."""

    @abstractmethod
    def interval(self, released: Any, *, confidence: check.Number = CONFIDENCE) -> Interval:
        """Where the exact value lies, given the released one, with at least this probability over the noise."""

    def estimate(self, value: Any, *, confidence: check.Number = CONFIDENCE, bits: Bits | None = None) -> Estimate:
        """A release together with its interval, its event, and a mark if the randomness was seeded."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        released = self.release(value, bits=source)
        low, high = self.interval(released, confidence=chance)
        return Estimate(released, low, high, self.event, confidence=chance, private=source.private)
