"""An exponential function that shares nothing with the library: integers only, rounded outwards at every step."""

from __future__ import annotations

from fractions import Fraction


def exp_minus(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals below and above exp(-x), x >= 0, at most 2^-bits apart.

    y = x / 2^m <= 1/2 makes the Taylor terms of exp(-y) shrink and alternate, so that two neighbouring partial sums
    enclose it; m squarings follow. A squaring doubles the width at most (all numbers are below 1) and adds one unit, so
    m + 8 spare bits keep the promise.
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    spare = bits + 2 * halvings + 16
    low, high = _small(x / 2**halvings, spare)
    for _ in range(halvings):
        low, high = low * low >> spare, -(-high * high >> spare)
    return Fraction(low, 1 << spare), Fraction(high, 1 << spare)


def _small(y: Fraction, bits: int) -> tuple[int, int]:
    """Integers below and above 2^bits exp(-y) for 0 <= y <= 1/2."""
    term, total, k = Fraction(1), Fraction(1), 0
    while k % 2 == 0 or term > Fraction(1, 1 << bits):  # ends after an odd term, on a sum below the limit
        k += 1
        term = _shorten(term * y / k, bits)
        total += term if k % 2 == 0 else -term
    slack = k + 2  # every shortened term is off by less than one unit, and so is the first term left out
    return max(0, int(total * (1 << bits)) - slack), int(total * (1 << bits)) + slack


def _shorten(value: Fraction, bits: int) -> Fraction:
    """Cut off below the last unit, which keeps the fractions short."""
    return Fraction((value.numerator << bits) // value.denominator, 1 << bits)


def leading(low: Fraction, high: Fraction, bits: int) -> int:
    """floor(2^bits x) for the x between; fails loudly where the ends do not agree."""
    first, second = (int(end * (1 << bits)) for end in (low, high))
    assert first == second, "the reference needs more digits"
    return first
