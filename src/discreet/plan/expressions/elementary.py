"""Elementary functions: logarithms, powers, angles, each rounded to a public grid of 32 binary digits.

Libraries compute them to the last of 53 digits or nearly so, and differ there. On the grid their results are the same
but where the true value lies so near to the middle of two steps that they fall on different sides, about once in a
million values; then they are one step apart. What a row becomes depends on that row alone in any case, and an aggregate
clips it afterwards: privacy rests on the clip, equality of engines on the grid.

Rounding is Dekker's and Veltkamp's splitting, three operations of doubles that every engine does alike. Results beyond
2^1000 in size, where it would overflow, are NULL, as are arguments outside a function's domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

DIGITS = 32
SPLITTER = 2.0 ** (53 - DIGITS) + 1
LARGEST = 2.0**1000


def on_grid(value: float) -> float | None:
    """Rounds a double to so many binary digits; None beyond the largest, or if it is no number.

    >>> on_grid(3.0000000000000004), on_grid(1e302)
    (3.0, None)
    """
    if not abs(value) <= LARGEST:
        return None
    split = value * SPLITTER
    return split - (split - value)


def _total(function: Callable[..., float]) -> Callable[..., float | None]:
    """The function on the grid, None where Python raises: outside its domain, and where it overflows."""

    def total(*arguments: float) -> float | None:
        try:
            return on_grid(function(*arguments))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None

    return total


_EXACT: dict[str, Callable[..., float]] = {
    "ln": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "log": lambda base, value: math.log(value) / math.log(base),
    "exp": math.exp,
    "power": math.pow,
    "cube_root": math.cbrt,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": lambda y, x: math.atan2(y + 0.0, x + 0.0),  # there is one zero
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
}

ELEMENTARY: dict[str, Callable[..., Any]] = {name: _total(function) for name, function in _EXACT.items()}
"""By the names of `functions.FUNCTIONS`; no argument is NULL."""
