"""Numbers that err on a known side: floats, rational bounds of roots, and real numbers between two decimals.

An `Enclosure` is computed to any number of digits: it is the referee of every fast approximation. Sums, products and
quotients are rounded outwards by directed contexts. `Decimal.exp`, `ln` and `sqrt` are correctly rounded (the General
Decimal Arithmetic specification, as libmpdec implements it), so one step of the last digit on each side encloses the
true value. No enclosure is ever an estimate: the true value lies inside, always.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from discreet.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """The closed interval from low to high; for arrays, one interval per entry.

    >>> low, high = Interval(97, 103)
    >>> Interval(97, 103).width
    6
    """

    low: Any
    high: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.low, self.high))

    @property
    def width(self) -> Any:
        """Returns the distance between the ends."""
        return self.high - self.low


def float_above(value: Fraction | int) -> float:
    """Returns the smallest float that is not below the rational; zero has no sign.

    >>> Fraction(float_above(Fraction(1, 3))) >= Fraction(1, 3)
    True
    >>> float_above(Fraction(-1, 10**400))
    0.0
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return (nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)) + 0.0  # and not -0.0


def float_below(value: Fraction | int) -> float:
    """Returns the largest float that is not above the rational; zero has no sign.

    >>> float_below(Fraction(1, 3)), float_above(Fraction(1, 3))
    (0.3333333333333333, 0.33333333333333337)
    """
    return 0.0 - float_above(-value)


def root_above(value: Fraction, bits: int = 64) -> Fraction:
    """Returns a rational at or just above the square root, off by less than 2^-bits relative to max(1, root).

    >>> root_above(Fraction(9, 4))
    Fraction(3, 2)
    """
    exact = _exact_root(value)
    if exact is not None:
        return exact
    shift = 2 * (bits + max(0, value.denominator.bit_length() - value.numerator.bit_length()))
    scaled = -((-value.numerator << shift) // value.denominator)
    return Fraction(math.isqrt(scaled - 1) + 1, 1 << (shift // 2))


def root_below(value: Fraction, bits: int = 64) -> Fraction:
    """Returns a rational at or just below the square root, off by less than 2^-bits relative to max(1, root).

    >>> root_below(Fraction(2), bits=8), root_above(Fraction(2), bits=8)
    (Fraction(181, 128), Fraction(363, 256))
    """
    exact = _exact_root(value)
    if exact is not None:
        return exact
    shift = 2 * (bits + max(0, value.denominator.bit_length() - value.numerator.bit_length()))
    return Fraction(math.isqrt((value.numerator << shift) // value.denominator), 1 << (shift // 2))


def _exact_root(value: Fraction) -> Fraction | None:
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    return Fraction(top, bottom) if top * top == value.numerator and bottom * bottom == value.denominator else None


T = TypeVar("T")

_DUST = Decimal("1e-10000")

Real = Callable[[int], "Enclosure"]
"""A real number as a recipe: given a number of digits, an enclosure computed with that many."""


@lru_cache(maxsize=64)
def _contexts(digits: int) -> tuple[Context, Context]:
    traps = [InvalidOperation, DivisionByZero, Overflow]
    down, up = (
        Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=traps)
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    return down, up


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A closed interval of decimals that contains one real number.

    >>> one = Enclosure.of(1, digits=6)
    >>> (one / 3).exp()
    Enclosure(low=Decimal('1.39560'), high=Decimal('1.39562'), digits=6)
    """

    low: Decimal
    high: Decimal
    digits: int

    @classmethod
    def of(cls, value: int | Fraction, digits: int) -> Enclosure:
        """Returns the tightest enclosure of a rational with so many digits."""
        return cls.between(value, value, digits)

    @classmethod
    def between(cls, low: int | Fraction, high: int | Fraction, digits: int) -> Enclosure:
        """Returns the tightest enclosure of everything from one rational to another."""
        down, up = _contexts(digits)
        return cls(
            down.divide(Decimal(low.numerator), Decimal(low.denominator)),
            up.divide(Decimal(high.numerator), Decimal(high.denominator)),
            digits,
        )

    @classmethod
    def quotients(cls, low: int, high: int, divisor: int, digits: int) -> Enclosure:
        """Returns the tightest enclosure of everything from one quotient to another, not reduced first.

        >>> Enclosure.quotients(1, 2, 6, digits=3)
        Enclosure(low=Decimal('0.166'), high=Decimal('0.334'), digits=3)
        """
        (down, up), below = _contexts(digits), Decimal(divisor)
        return cls(down.divide(Decimal(low), below), up.divide(Decimal(high), below), digits)

    def _lift(self, other: Enclosure | int | Fraction) -> Enclosure:
        return other if isinstance(other, Enclosure) else Enclosure.of(other, self.digits)

    def __neg__(self) -> Enclosure:
        return Enclosure(self.high.copy_negate(), self.low.copy_negate(), self.digits)

    def __add__(self, other: Enclosure | int | Fraction) -> Enclosure:
        down, up = _contexts(self.digits)
        that = self._lift(other)
        return Enclosure(down.add(self.low, that.low), up.add(self.high, that.high), self.digits)

    def __sub__(self, other: Enclosure | int | Fraction) -> Enclosure:
        return self + -self._lift(other)

    def __rsub__(self, other: int | Fraction) -> Enclosure:
        return self._lift(other) - self

    def __mul__(self, other: Enclosure | int | Fraction) -> Enclosure:
        down, up = _contexts(self.digits)
        that = self._lift(other)
        if self.low >= 0 and that.low >= 0:  # as most are: the ends are known without trying all four pairs
            return Enclosure(down.multiply(self.low, that.low), up.multiply(self.high, that.high), self.digits)
        ends = [(a, b) for a in (self.low, self.high) for b in (that.low, that.high)]
        return Enclosure(
            min(down.multiply(a, b) for a, b in ends), max(up.multiply(a, b) for a, b in ends), self.digits
        )

    def __truediv__(self, other: Enclosure | int | Fraction) -> Enclosure:
        """Divides; a divisor that may be zero raises `UndecidedComparison`, because more digits may separate it."""
        down, up = _contexts(self.digits)
        that = self._lift(other)
        if that.low <= 0 <= that.high:
            raise UndecidedComparison
        if self.low >= 0 and that.low > 0:
            return Enclosure(down.divide(self.low, that.high), up.divide(self.high, that.low), self.digits)
        ends = [(a, b) for a in (self.low, self.high) for b in (that.low, that.high)]
        return Enclosure(min(down.divide(a, b) for a, b in ends), max(up.divide(a, b) for a, b in ends), self.digits)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rtruediv__(self, other: int | Fraction) -> Enclosure:
        return self._lift(other) / self

    def exp(self) -> Enclosure:
        """Returns e to this power."""
        down, up = _contexts(self.digits)
        low = down.exp(self.low)  # half-even, whatever the direction of the context
        high = low if self.low == self.high else up.exp(self.high)
        return Enclosure(max(Decimal(0), low.next_minus(down)), high.next_plus(up), self.digits)

    def log(self) -> Enclosure:
        """Returns the natural logarithm; raises `UndecidedComparison` while the number may be zero."""
        if self.low <= 0:
            raise UndecidedComparison
        down, up = _contexts(self.digits)
        return Enclosure(down.ln(self.low).next_minus(down), up.ln(self.high).next_plus(up), self.digits)

    def sqrt(self) -> Enclosure:
        """Returns the square root of a number known to be at least zero."""
        down, up = _contexts(self.digits)
        low, high = down.sqrt(max(self.low, Decimal(0))), up.sqrt(self.high)
        return Enclosure(max(Decimal(0), low.next_minus(down)), high.next_plus(up), self.digits)

    def below(self, other: Enclosure | int | Fraction) -> bool:
        """Returns whether this number is less; raises `UndecidedComparison` while the enclosures overlap."""
        that = self._lift(other)
        if self.high < that.low:
            return True
        if self.low >= that.high:
            return False
        raise UndecidedComparison

    def floor(self) -> int:
        """Returns the integer part; raises `UndecidedComparison` while an integer boundary lies inside."""
        low, high = math.floor(self.low), math.floor(self.high)  # never as fractions: exp(-10^9) has 4 * 10^8 digits
        if low != high:
            raise UndecidedComparison
        return low

    def fractions(self) -> tuple[Fraction, Fraction]:
        """Returns both ends as rationals.

        They are exact, but for ends too near to 0 to write out, which move to the safe side.
        """
        low, high = self.low, self.high
        if low and low.copy_abs() < _DUST:  # log(1) starts at -10^-(10^18)
            low = Decimal(0) if low > 0 else _DUST.copy_negate()
        if high and high.copy_abs() < _DUST:
            high = _DUST if high > 0 else Decimal(0)
        return Fraction(low), Fraction(high)


class UndecidedComparison(Exception):
    """The digits computed so far do not decide a comparison: a request for more, caught by `settle`, never an error.

    >>> limit = Fraction("1.41422")
    >>> Enclosure.of(2, digits=4).sqrt().below(limit)  # between 1.413 and 1.415
    Traceback (most recent call last):
    discreet.exact.rounding.UndecidedComparison
    >>> Enclosure.of(2, digits=8).sqrt().below(limit)
    True
    """


def settle(decide: Callable[[int], T], digits: int = 40) -> T:
    """Runs a decision with more and more digits until it no longer raises `UndecidedComparison`.

    >>> settle(lambda digits: (Enclosure.of(2, digits).sqrt() * 10**50).floor())
    141421356237309504880168872420969807856967187537694
    """
    while True:
        try:
            return decide(digits)
        except UndecidedComparison:
            digits *= 2


def leading_bits(real: Real, count: int) -> int:
    """Returns floor(2^count * x) for an irrational x in [0, 1), certain in its last bit.

    >>> bin(leading_bits(lambda digits: Enclosure.of(-1, digits).exp(), 8))  # 1/e = 0.01011110...
    '0b1011110'
    """
    return settle(lambda digits: (real(digits) * (1 << count)).floor(), digits=count * 3 // 10 + 12)


def upper(real: Real, digits: int = 40) -> Fraction:
    """Returns a rational just above the number."""
    return real(digits).fractions()[1]


def lower(real: Real, digits: int = 40) -> Fraction:
    """Returns a rational just below the number."""
    return real(digits).fractions()[0]
