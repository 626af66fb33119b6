"""Float results that err on the safe side, and one-dimensional searches that end there.

Closed forms are evaluated with relative errors far below 2^-40; every published bound is raised by that much.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

SLACK = 2.0**-40

_DOUBLINGS = 1100  # enough to walk through all floats
_HALVINGS = 64  # beyond the 53 bits of a float
_STRIDE = 7  # about the root of the numbers of points that are looked at


def safe(value: float) -> float:
    """Returns the value, raised by more than any rounding error of its computation; zero and infinity stay.

    >>> safe(1.0) > 1.0
    True
    """
    if value <= 0 or math.isinf(value):
        return max(value, 0.0)
    return math.nextafter(value * (1 + SLACK), math.inf)


def smallest(holds: Callable[[float], bool], start: float, halvings: int = _HALVINGS, shrinking: float = 0.5) -> float:
    """Returns a float at which the condition was seen to hold, just above the boundary below which it fails.

    The boundary is found up to a share 2^-halvings of it, or as well as floats tell.

    The condition is false up to some positive number and true from there on. What is returned was tested: rounding
    can make it a little too large, never too small. Infinity if the condition holds nowhere.

    A condition that fails somewhere above is seen to do so where the way down, in steps of the share `shrinking`, meets
    it; the search then ends above that place.

    >>> smallest(lambda x: x * x >= 2, start=1.0)
    1.414213562373095...
    """
    high = start
    for _ in range(_DOUBLINGS):
        if holds(high):
            break
        high *= 2
    else:
        return math.inf
    low = high * shrinking
    while low > 0 and holds(low):
        low, high = low * shrinking, low
    for _ in range(halvings):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def least(function: Callable[[float], float], low: float, high: float, steps: int = 100) -> float:
    """Returns the smallest value seen of a function with one valley.

    Where every value is a valid bound, so is the result.
    """
    return function(argmin(function, low, high, steps))


def argmin(function: Callable[[float], float], low: float, high: float, steps: int = 100) -> float:
    """Returns where a function with one valley was seen lowest, by golden sections.

    >>> round(argmin(lambda x: (x - 2) ** 2, 0, 5), 6)
    2.0
    """
    ratio = (math.sqrt(5) - 1) / 2
    seen: dict[float, float] = {}

    def at(x: float) -> float:
        if x not in seen:
            seen[x] = function(x)
        return seen[x]

    for _ in range(steps):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return min(seen, key=seen.__getitem__)


def valley(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns the function at some of the points, its lowest among them, and infinity at the others.

    The function falls up to some point and rises from there on, as g(t) / t does for every convex g. So the lowest of
    all points lies between the neighbours of the lowest of every few of them.

    >>> valley(lambda x: (x - 7) ** 2, np.arange(20.0)).argmin()
    np.int64(7)
    """
    values = np.full(points.size, np.inf)
    few = np.append(np.arange(0, points.size - 1, _STRIDE), points.size - 1)
    values[few] = function(points[few])
    best = int(values[few].argmin())
    between = np.arange(few[max(best - 1, 0)] + 1, few[min(best + 1, few.size - 1)])
    left = between[np.isinf(values[between])]
    values[left] = function(points[left])
    return values
