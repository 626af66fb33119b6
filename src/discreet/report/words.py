"""Released values as text: an interval decides how many digits its number deserves."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

Number = int | float
"""A released number or an end of its interval, which may be infinite."""

_MOST_PLACES = 6
_LARGEST = 1e15  # from here on, digits before the point are noise themselves


def plain(value: object) -> str:
    r"""A key of a group, or any other value, as a text without control characters.

    >>> plain("A\x1b[31m"), plain(None), plain(True), plain(1234.5)
    ('A\\x1b[31m', 'NULL', 'true', '1234.5')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))


def measured(value: Number | None, low: Number, high: Number) -> str:
    """A number and its interval, whose ends are rounded outwards.

    >>> measured(632.1036, 447.3053, 816.9019)
    '632 (447 to 817)'
    >>> measured(0.51234, 0.50117, 0.52481), measured(1466, 1346, 1586)
    ('0.512 (0.501 to 0.525)', '1,466 (1,346 to 1,586)')
    >>> measured(None, -math.inf, math.inf), measured(3.25, -math.inf, 4.0), measured(3.25, -math.inf, math.inf)
    ('no value', '3.25 (no bound to 4.00)', '3.2 (no bounds)')
    """
    if value is None:
        return "no value"
    if math.isinf(low) and math.isinf(high):
        return f"{_rounded(value, _places(value, low, high))} (no bounds)"
    places = _places(value, low, high)
    return f"{_rounded(value, places)} ({_end(low, places, ROUND_FLOOR)} to {_end(high, places, ROUND_CEILING)})"


def number(value: Number | Fraction, places: int = 0) -> str:
    """A number with so many digits after the point.

    >>> number(Fraction(48751, 2)), number(0.125, 2)
    ('24,376', '0.12')
    """
    return _rounded(value, places)


def percent(share: float | Fraction) -> str:
    """A share for people.

    >>> percent(Fraction(19, 20))
    '95 %'
    """
    return f"{float(100 * share):g} %"


def rate(share: float) -> str:
    """A measured share of some targets, with as many digits as it is worth.

    >>> rate(0.8795), rate(0.0014), rate(1.0), rate(0.0), rate(0.9987)
    ('88 %', '0.14 %', '100 %', '0 %', '99.9 %')
    """
    shown = 100 * share
    near = min(shown, 100 - shown)  # 99.9 % is not everybody
    places = 0 if near <= 0 or (near >= 0.5 and shown >= 10) else 1 if shown >= 1 else 2
    text = f"{shown:.{places}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def _places(*parts: Number) -> int:
    """Two significant digits of the shortest distance between a number and a finite end of its interval."""
    if all(isinstance(part, int) or math.isinf(part) for part in parts):
        return 0
    value, *ends = parts
    reaches = [abs(end - value) for end in ends if math.isfinite(end) and end != value]
    size = min(reaches, default=abs(value)) or 1.0
    return min(max(0, 1 - math.floor(math.log10(size))), _MOST_PLACES)


def _end(end: Number, places: int, rounding: str) -> str:
    return "no bound" if math.isinf(end) else _rounded(end, places, rounding)


def _rounded(value: Number | Fraction, places: int, rounding: str = ROUND_HALF_EVEN) -> str:
    if isinstance(value, Fraction):
        value = float(value)
    if abs(value) >= _LARGEST:
        return f"{float(value):.4g}"
    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding):,}"
