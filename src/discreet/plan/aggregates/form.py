"""What an aggregation says of itself: which integers to compute, how far a row can move them, how to finish them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.plan.reading import Statistic
from discreet.plan.stability import Corner


@dataclass(frozen=True, slots=True)
class Finished:
    """An aggregate made of noisy statistics: a value and the interval that follows from theirs."""

    value: Fraction
    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True)
class Noised:
    """A statistic after noise: a whole number, and how far it may be from the exact one."""

    value: int
    error: int

    @property
    def low(self) -> int:
        """The smallest exact value."""
        return self.value - self.error

    @property
    def high(self) -> int:
        """The largest exact value."""
        return self.value + self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class Form(ABC):
    """A way to compute an aggregation.

    Args:
        statistics: exact integers per group.
        corners: the extreme contributions of one row to them, beside nothing at all.
        once: whether a unit counts once per group, however many rows it has.
    """

    statistics: tuple[Statistic, ...]
    corners: tuple[Corner, ...]
    once: bool = False

    @abstractmethod
    def finish(self, noised: Sequence[Noised]) -> Finished:
        """The aggregate, from one noisy number for each statistic: post-processing, defined for all integers.

        If every statistic is within its error, the aggregate of the kept, clipped rows lies in the interval.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled(Form):
    """One statistic, counted in steps of a power of two."""

    exponent: int = 0

    def finish(self, noised: Sequence[Noised]) -> Finished:
        """The statistic times the step."""
        (only,) = noised
        step = Fraction(2) ** self.exponent
        return Finished(only.value * step, only.low * step, only.high * step)
