"""Intervals of exact numbers, possibly without an end: the arithmetic behind bounds and behind intervals of outputs.

Each operation returns an interval that holds every result for every pair of members. Ends are rationals, or infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from discreet.dataclass import dataclass
from discreet.exact import float_above, float_below

End = Fraction | float
"""A rational, or minus or plus infinity."""

INT_LOW, INT_HIGH = Fraction(-(2**63)), Fraction(2**63 - 1)


@dataclass(frozen=True, slots=True)
class Span:
    """The numbers from low to high, and whether NULL may be among them; nothing but NULL if low > high.

    An end is a float only if it is infinite.

    >>> Span(Fraction(-1), Fraction(2)) * Span(Fraction(3), Fraction(4))
    Span(low=Fraction(-4, 1), high=Fraction(8, 1), nullable=True)
    """

    low: End
    high: End
    nullable: bool = True

    @classmethod
    def exactly(cls, value: float | Fraction) -> Span:
        """Returns the interval of one number, never NULL."""
        return cls(Fraction(value), Fraction(value), nullable=False)

    @property
    def is_empty(self) -> bool:
        """Returns whether it holds no number."""
        return self.low > self.high

    @property
    def is_bounded(self) -> bool:
        """Returns whether both ends are finite."""
        return not (isinstance(self.low, float) or isinstance(self.high, float))

    def __neg__(self) -> Span:
        return Span(-self.high, -self.low)

    def __add__(self, other: Span) -> Span:
        return self._none(other) or Span(_plus(self.low, other.low), _plus(self.high, other.high))

    def __sub__(self, other: Span) -> Span:
        return self + -other

    def __mul__(self, other: Span) -> Span:
        ends = [_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return self._none(other) or Span(min(ends), max(ends))

    def __truediv__(self, other: Span) -> Span:
        """Returns the quotient; everything if the divisor may be zero."""
        if self.is_empty or other.is_empty:
            return EMPTY
        if other.low <= 0 <= other.high:
            return EVERYTHING
        return self * Span(_inverse(other.high), _inverse(other.low))

    def __abs__(self) -> Span:
        if self.is_empty or self.low >= 0:
            return Span(self.low, self.high)
        return -self if self.high <= 0 else Span(Fraction(0), max(-self.low, self.high))

    def map(self, monotone: Callable[[Fraction], int | Fraction]) -> Span:
        """Returns the image under a function that never decreases; infinite ends stay."""
        low, high = (end if isinstance(end, float) else Fraction(monotone(end)) for end in (self.low, self.high))
        return Span(low, high)

    def within(self, low: End, high: End) -> Span:
        """Returns the part between two numbers, results outside being NULL."""
        return Span(max(self.low, low), min(self.high, high), self.nullable)

    def as_floats(self) -> Span:
        """Returns an interval that holds every member rounded to a double; doubles that do not exist are left out."""
        if self.is_empty:
            return self
        low = self.low if isinstance(self.low, float) else _finite(float_below(self.low))
        high = self.high if isinstance(self.high, float) else _finite(float_above(self.high))
        return Span(low, high, self.nullable)

    def _none(self, other: Span) -> Span | None:
        return EMPTY if self.is_empty or other.is_empty else None


EVERYTHING = Span(-math.inf, math.inf)
EMPTY = Span(math.inf, -math.inf)


def hull(spans: Iterable[Span]) -> Span:
    """Returns the smallest interval around all of them, nullable if one is."""
    parts = list(spans)
    return Span(min(s.low for s in parts), max(s.high for s in parts), any(s.nullable for s in parts))


def greatest(spans: Iterable[Span]) -> Span:
    """Returns the interval of the largest value that is not NULL; only parts never NULL lift the lower end."""
    parts = list(spans)
    around = hull(parts)
    sure = [s.low for s in parts if not s.nullable]
    return Span(max([around.low, *sure]), around.high, nullable=not sure)


def least(spans: Iterable[Span]) -> Span:
    """Returns the interval of the smallest value that is not NULL."""
    flipped = greatest(Span(-s.high, -s.low, s.nullable) for s in spans)
    return Span(-flipped.high, -flipped.low, flipped.nullable)


def _plus(a: End, b: End) -> End:
    """Infinities are not added to rationals, which Python makes doubles of: one that is too large would raise."""
    if isinstance(a, float):
        return a
    return b if isinstance(b, float) else a + b


def _times(a: End, b: End) -> End:
    if a == 0 or b == 0:
        return Fraction(0)
    if isinstance(a, float) or isinstance(b, float):
        return math.inf if (a > 0) is (b > 0) else -math.inf
    return a * b


def _inverse(end: End) -> End:
    return Fraction(0) if isinstance(end, float) else 1 / end


def _finite(end: float) -> End:
    return end if math.isinf(end) else Fraction(end)
