"""Interval arithmetic on arrays of numbers near 1, with ends rounded outwards.

Formal guarantee: with k means, each with an interval that misses with a k-th of the probability, all of them hold but
for the whole of it, and then interval arithmetic holds what is computed from them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import float_above, float_below
from discreet.plan.post.outputs import NoisyNumber

Floats = NDArray[np.float64]

ULPS = 2.0**-48  # what some dozen operations on doubles near 1 lose


@dataclass(frozen=True, slots=True)
class Ends:
    """Numbers and their intervals."""

    value: Floats
    low: Floats
    high: Floats

    def clip_to(self, low: Floats | float, high: Floats | float) -> Ends:
        """Returns them clipped to two numbers, between which the true ones lie."""
        ends = np.clip(self.low, low, high), np.clip(self.high, low, high)
        return Ends(np.clip(self.value, *ends), *ends)

    def to_noisy(self, unit: Fraction) -> list[NoisyNumber]:
        """Returns them in their own units, ends rounded outwards.

        Those inside their range were moved by more than a product loses.
        """
        below, above = float_below(unit), float_above(unit)
        low = np.where(self.low < 0, self.low * above, self.low * below)
        high = np.where(self.high < 0, self.high * below, self.high * above)
        value = np.clip(self.value * float(unit), low, high).tolist()
        rows = zip(value, low.tolist(), high.tolist(), strict=True)
        return [NoisyNumber(None if math.isnan(value) else value, low, high) for value, low, high in rows]


def squares(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Returns the smallest and the largest square of a number between two."""
    inside = (low <= 0) & (high >= 0)
    one, other = low**2, high**2
    return np.where(inside, 0.0, np.minimum(one, other)), np.maximum(one, other)


def product(one: Ends, other: Ends) -> Ends:
    """Returns the products of two numbers each, as exactly as doubles multiply: the caller rounds outwards."""
    ends = np.stack([a * b for a in (one.low, one.high) for b in (other.low, other.high)])
    return Ends(one.value * other.value, ends.min(axis=0), ends.max(axis=0))


def quotient(top: Ends, bottom: Ends) -> Ends:
    """Divides by numbers that are not negative: infinite ends where one may be zero, no value where it is.

    A quotient moves away from zero as its divisor falls, so each end belongs to one end of the divisor.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low = top.low / np.where(top.low < 0, bottom.low, bottom.high) * np.where(top.low < 0, 1 + ULPS, 1 - ULPS)
        high = top.high / np.where(top.high > 0, bottom.low, bottom.high) * np.where(top.high > 0, 1 + ULPS, 1 - ULPS)
        value = np.where(bottom.value > 0, top.value / bottom.value, np.nan)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return Ends(np.clip(value, low, high), low, high)
