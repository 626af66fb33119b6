"""Values as text for a terminal."""

from __future__ import annotations

import math
from fractions import Fraction


def printable(text: str, *, lines: bool = False) -> str:
    r"""A text whose control characters are spelled out: a group's name must not steer the terminal.

    >>> printable("A\x1b[31m")
    'A\\x1b[31m'
    """
    return "".join(c if c.isprintable() or (lines and c == "\n") else ascii(c)[1:-1] for c in text)


def number(value: float | Fraction) -> str:
    """A number of at most six digits after the point, whole ones in full.

    >>> number(12345), number(0.125), number(float("inf")), number(1234567.891)
    ('12,345', '0.125', 'inf', '1,234,567.891')
    """
    if isinstance(value, int) or not math.isfinite(value):
        return f"{value:,}"
    size = abs(float(value))
    if size and not 1e-4 <= size < 1e12:
        return f"{float(value):.4g}"
    places = 3 if size >= 1 else 6
    return f"{float(value):,.{places}f}".rstrip("0").rstrip(".")


def shown(value: object) -> str:
    """Any value of an answer."""
    if value is None:
        return "NULL"
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        return number(value)
    return printable(str(value))


def percent(confidence: Fraction) -> str:
    """A confidence for people.

    >>> percent(Fraction(19, 20))
    '95 %'
    """
    return f"{float(100 * confidence):g} %"
