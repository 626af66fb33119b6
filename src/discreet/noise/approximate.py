"""exp(-x) in floats with a proven error, from nothing but correctly rounded additions and products.

The reduced argument r = x - i/64 is exact, being a multiple of the last bit of x below 1/64. The Taylor polynomial of
degree 6 leaves out less than (1/64)^7 / 7! < 2^-54, and its roundings, two table entries and two products add less than
2^-48, all relative. An error of x itself below 2^-42 adds as much, relative. Together: below 2^-41.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

RELATIVE_ERROR = 2.0**-41
LARGEST = 64.0  # beyond, exp(-x) < 2^-92
_PARTS = 64

_WHOLE = [float(Decimal(-i).exp()) for i in range(int(LARGEST) + 1)]
_PART = [float((Decimal(-i) / _PARTS).exp()) for i in range(_PARTS)]
_WHOLE_ARRAY, _PART_ARRAY = np.array(_WHOLE), np.array(_PART)


def exponential(x: float) -> float:
    """Returns exp(-x) for x from 0 to 64, up to a relative error of 2^-41."""
    whole = int(x)
    part = int((x - whole) * _PARTS)
    r = x - whole - part / _PARTS
    series = 1 - r * (1 - r / 2 * (1 - r / 3 * (1 - r / 4 * (1 - r / 5 * (1 - r / 6)))))
    return _WHOLE[whole] * _PART[part] * series


def exponentials(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the same for an array."""
    whole = x.astype(np.int64)
    rest = x - whole
    part = (rest * _PARTS).astype(np.int64)
    rest -= part / _PARTS
    series = 1 - rest / 6
    for k in (5, 4, 3, 2, 1):
        series *= rest
        series /= -k
        series += 1
    result: NDArray[np.float64] = _WHOLE_ARRAY[whole] * _PART_ARRAY[part] * series
    return result
