"""The arithmetic behind losses: amounts held to their domain, kept short, rounded up and shown."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from decimal import Decimal as Dec
from fractions import Fraction

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, upper
from discreet.hint_text import Hint

LARGEST_COUNT = 10**18  # of repetitions or of a group; beyond it a number is a slip of the hand
LONGEST_SUM = 1 << 11  # bits of a denominator; a longer sum is rounded up to SUM_BITS significant bits
SUM_BITS = 256
VACUOUS_EXPONENT = 700  # e^700 > 1e303, and no delta is below 1e-300: the product is above 1
DIGITS = 40
EXACT_DIGITS, SHOWN_DIGITS = 12, 6


def below_one(**parameter: object) -> Fraction:
    """Returns the parameter as a rational of at least 0 and below 1: a delta.

    Raises:
        InvalidParameter: outside that domain; at 1 and above a guarantee would say nothing.

    >>> below_one(delta=1e-6)
    Fraction(1, 1000000)
    """
    ((name, value),) = parameter.items()
    result = check.not_negative(floats="decimal", **parameter)
    if result >= 1:
        hint = Hint(f"A guarantee with {{{name}:1}} holds for every release, even of the data itself.")
        raise InvalidParameter(name, value, "< 1", hint)
    return result


def repetitions(count: object) -> int:
    """Returns a number of releases, from 0."""
    return check.integer(count=count, at_least=0, at_most=LARGEST_COUNT)


def group_size(size: object) -> int:
    """Returns a number of units, from 1."""
    return check.integer(size=size, at_least=1, at_most=LARGEST_COUNT)


def short(total: Fraction) -> Fraction:
    """Returns the sum itself, or a little more if its denominator has become absurdly long.

    Adding thousands of fractions with unrelated denominators would grow numbers without end; decimals and floats
    never do.

    >>> short(Fraction(1, 3))
    Fraction(1, 3)
    """
    if total.denominator.bit_length() <= LONGEST_SUM:
        return total
    shift = SUM_BITS + total.denominator.bit_length() - total.numerator.bit_length()
    return Fraction(-((-total.numerator << shift) // total.denominator), 1 << shift)


def group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """Returns the sum of delta e^(i epsilon) for i from 0 to size - 1, rounded up in the 40th digit.

    Raises:
        InvalidParameter: if the sum reaches 1.
    """
    if not delta:
        return delta
    if not epsilon:
        total = size * delta
    elif (size - 1) * epsilon > VACUOUS_EXPONENT:
        total = Fraction(1)
    else:
        total = delta * _geometric_sum(epsilon, size)
    if total >= 1:
        raise InvalidParameter(
            "size",
            size,
            f"to be small enough to keep delta below 1 with epsilon={decimal(epsilon)} and delta={decimal(delta)}",
            "The bound says nothing about such a group. Recompute the mechanism at that many times its sensitivity.",
        )
    return upper(lambda digits: Enclosure.of(total, digits), DIGITS)


def _geometric_sum(epsilon: Fraction, size: int) -> Fraction:
    """(e^(size epsilon) - 1) / (e^epsilon - 1) from above; a small epsilon cancels digits, so it gets as many more."""
    cancelled = max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length() + 1) * 302 // 1000

    def ratio(digits: int) -> Enclosure:
        one, all_of_them = Enclosure.of(epsilon, digits), Enclosure.of(epsilon * size, digits)
        return (all_of_them.exp() - 1) / (one.exp() - 1)

    return upper(ratio, 2 * DIGITS + cancelled)


def decimal(amount: Number) -> str:
    """Returns an amount for people: exact if twelve digits suffice, else rounded up to six.

    No guarantee looks stronger.

    >>> decimal(Fraction(1, 10)), decimal(Fraction(1, 10**6)), decimal(Fraction(1, 3))
    ('0.1', '1e-06', '0.333334')
    """
    exact = Fraction(amount)
    top, bottom = Dec(exact.numerator), Dec(exact.denominator)
    shown = Context(prec=EXACT_DIGITS).divide(top, bottom)
    if Fraction(shown) != exact:
        shown = Context(prec=SHOWN_DIGITS, rounding=ROUND_CEILING).divide(top, bottom)
    return f"{float(shown):.{EXACT_DIGITS}g}"
