"""Floats that err on a known side, rationals that bound irrational numbers from a known side, and pairs of ends."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


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
