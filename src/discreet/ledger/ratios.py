"""Amounts as pairs of whole numbers: exact rationals in lowest terms, added and compared many times faster.

A charge is made while every other process waits, so its sums are kept in the form in which they are written: "p/q" is
(p, q). Everywhere else an amount is a `Fraction`.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from discreet import check
from discreet.errors import InternalError
from discreet.privacy.amounts import LONGEST_SUM, short

Amount = tuple[int, int]
"""Numerator and denominator in lowest terms; no amount is negative."""

Amounts = tuple[Amount, ...]
"""A loss as its amounts in the order of its class: (epsilon,), (epsilon, delta) or (rho, delta)."""

ZERO: Amount = (0, 1)
_SMALLEST = 10**check.LARGEST_EXPONENT  # the inverse of the smallest amount there is


def amount(number: Fraction) -> Amount:
    """Returns a rational as a pair.

    >>> amount(Fraction(3, 6))
    (1, 2)
    """
    return number.numerator, number.denominator


def plus(one: Amount, other: Amount) -> Amount:
    """Returns the sum, exact, or a little more if the numbers have become absurdly long (`privacy.amounts.short`).

    >>> plus((1, 6), (1, 3))
    (1, 2)
    """
    more, bottom = other
    if not more:
        return one
    top, below = one
    if bottom == below:
        top += more
    else:
        top, bottom = top * bottom + more * below, below * bottom
    common = gcd(top, bottom)
    if common != 1:
        top, bottom = top // common, bottom // common
    return (top, bottom) if bottom.bit_length() <= LONGEST_SUM else amount(short(Fraction(top, bottom)))


def times(one: Amount, count: int) -> Amount:
    """Returns so many times an amount.

    >>> times((1, 6), 3)
    (1, 2)
    """
    return amount(Fraction(*one) * count)


def at_most(one: Amount, limit: Amount) -> bool:
    """Returns whether an amount is within a limit.

    >>> at_most((1, 3), (1, 3)), at_most((1, 3), (1, 4))
    (True, False)
    """
    return one[0] * limit[1] <= limit[0] * one[1]


def within(spent: Amounts, limits: Amounts) -> bool:
    """Returns whether each amount is within its limit.

    >>> within(((1, 3), (0, 1)), ((1, 3), (0, 1))), within(((1, 3), (1, 9)), ((1, 2), (1, 10)))
    (True, False)
    """
    (top, bottom), (most, below) = spent[0], limits[0]
    return top * below <= most * bottom and (len(spent) == 1 or at_most(spent[1], limits[1]))


def rest(limit: Amount, spent: Amount) -> Amount:
    """Returns the rest of a limit; never negative, and less than the smallest amount there is counts as nothing.

    >>> rest((1, 2), (1, 3)), rest((1, 3), (1, 2))
    ((1, 6), (0, 1))
    """
    if not spent[0] and limit[1] <= _SMALLEST:
        return limit
    top, bottom = limit[0] * spent[1] - spent[0] * limit[1], limit[1] * spent[1]
    if top <= 0 or (bottom > _SMALLEST and top * _SMALLEST < bottom):
        return ZERO
    common = gcd(top, bottom)
    return top // common, bottom // common


def rests(limits: Amounts, spent: Amounts) -> Amounts:
    """Returns the rest of each limit.

    >>> rests(((1, 2), (1, 9)), ((1, 3), (0, 1)))
    ((1, 6), (1, 9))
    """
    first = rest(limits[0], spent[0])
    return (first,) if len(limits) == 1 else (first, rest(limits[1], spent[1]))


def write(amounts: Amounts) -> str:
    """Writes amounts with spaces between them.

    >>> write(((1, 2), (0, 1)))
    '1/2 0/1'
    """
    top, bottom = amounts[0]
    if len(amounts) == 1:
        return f"{top}/{bottom}"
    return f"{top}/{bottom} {amounts[1][0]}/{amounts[1][1]}"


def read(text: str) -> Amounts:
    """Reads the amounts that `write` wrote.

    Raises:
        InternalError: if the text was written by something else.
    """
    try:
        return tuple([_pair(*part.split("/")) for part in text.split()])
    except (TypeError, ValueError):
        raise InternalError("An amount in the ledger is not written as 'p/q'.") from None


def _pair(top: str, bottom: str) -> Amount:
    return int(top), int(bottom)
