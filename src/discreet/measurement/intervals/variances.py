"""Aggregates that are no sums and no means: variances, from means whose intervals hold together. Post-processing.

Formal guarantee: with k means, each with an interval that misses with a k-th of the probability, all of them hold but
for the whole of it, and then interval arithmetic holds the aggregate of the kept, clipped rows. Values
are defined for all integers, however small or negative a noisy count is, and ends stay within what any rows could give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.exact import float_above, float_below
from discreet.measurement.aggregates import Linear, Ratio, Variance
from discreet.plan.post.outputs import Noisy

Integers = NDArray[np.object_]
Floats = NDArray[np.float64]

ULPS = 2.0**-48  # what some dozen operations on doubles near 1 lose


@dataclass(frozen=True, slots=True)
class Ends:
    """Numbers and their intervals."""

    value: Floats
    low: Floats
    high: Floats

    def clipped(self, low: Floats | float, high: Floats | float) -> Ends:
        """What is left of them between two numbers, which hold the true ones."""
        ends = np.clip(self.low, low, high), np.clip(self.high, low, high)
        return Ends(np.clip(self.value, *ends), *ends)


class Noise(Protocol):
    """What is known of the noise of statistics."""

    def reach(self, linear: Linear, outside: Fraction) -> Fraction:
        """A distance that the noise of a sum exceeds with at most this probability."""

    def ratios(self, recipe: Ratio, rows: Integers, outside: float) -> Ends:
        """Means, counted from the centre in units of the width."""


def variances(noise: Noise, recipe: Variance, rows: Integers, outside: Fraction) -> list[Noisy]:
    """Variances, or their roots, with their intervals."""
    share = outside / (3 if recipe.sample else 2)
    width = recipe.mean.high - recipe.mean.low
    found = population(noise, recipe, rows, float(share))
    if recipe.sample:
        found = _shared_by_one_less(found, *counts(noise, recipe.mean.bottom, rows, share))
    return listed(_root(found, recipe.sample), width) if recipe.root else listed(found, width**2)


def population(noise: Noise, recipe: Variance, rows: Integers, outside: float) -> Ends:
    """Variances in squares of the width, between 0 and 1/4.

    The mean of squares less the square of the mean; and no more than (high - mean) (mean - low), which holds for
    whatever lies between the bounds (Bhatia, Davis 2000).
    """
    width = recipe.mean.high - recipe.mean.low
    mean = noise.ratios(recipe.mean, rows, outside)
    squares = noise.ratios(recipe.squares, rows, outside)
    scale = float((recipe.squares.high - recipe.squares.low) / width**2)
    centre = float(recipe.squares.centre / width**2)
    moved = float((recipe.mean.centre - recipe.origin) / width)
    least, most = _squared(mean.low + moved, mean.high + moved)
    found = Ends(
        centre + scale * squares.value - (mean.value + moved) ** 2,
        centre + scale * squares.low - most - ULPS,
        centre + scale * squares.high - least + ULPS,
    )
    middle = float((recipe.mean.low + recipe.mean.high) / 2 - recipe.mean.centre) / float(width)
    off = np.maximum(np.maximum(mean.low - middle, middle - mean.high), 0.0)
    return found.clipped(0.0, np.minimum(0.25 - off**2 + ULPS, 0.25))


def _squared(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The smallest and the largest square of a number between two."""
    inside = (low <= 0) & (high >= 0)
    one, other = low**2, high**2
    return np.where(inside, 0.0, np.minimum(one, other)), np.maximum(one, other)


def counts(noise: Noise, number: Linear, rows: Integers, outside: Fraction) -> tuple[Floats, ...]:
    """How many values there are, and the fewest and the most there may be; two at least, for fewer have no variance."""
    reach = noise.reach(number, outside)
    tops, bottom = number.values(rows)
    far = reach * bottom
    ends = [[float(-((far - n) // bottom)), float((far + n) // bottom)] for n in tops]
    value = [float((2 * n + bottom) // (2 * bottom)) for n in tops]
    low, high = np.array(ends, dtype=np.float64).reshape(len(tops), 2).T
    best = np.array(value, dtype=np.float64)
    return tuple(np.maximum(part, 2.0) for part in (best, np.minimum(low, best), np.maximum(high, best)))


def _shared_by_one_less(found: Ends, value: Floats, fewest: Floats, most: Floats) -> Ends:
    """Times n / (n - 1), which falls with n; 1/2 at most, for two values at the ends."""
    return Ends(
        found.value * value / (value - 1),
        found.low * most / (most - 1) * (1 - ULPS),
        found.high * fewest / (fewest - 1) * (1 + ULPS),
    ).clipped(0.0, 0.5)


def _root(found: Ends, sample: bool) -> Ends:
    value, low, high = (np.sqrt(part) for part in (found.value, found.low, found.high))
    most = math.sqrt(0.5) * (1 + ULPS) if sample else 0.5
    return Ends(value, low * (1 - ULPS), np.minimum(high * (1 + ULPS), most))


def listed(found: Ends, unit: Fraction) -> list[Noisy]:
    """In their own units, ends rounded outwards; those inside their range were moved by more than a product loses."""
    below, above = float_below(unit), float_above(unit)
    low = np.where(found.low < 0, found.low * above, found.low * below)
    high = np.where(found.high < 0, found.high * below, found.high * above)
    value = np.clip(found.value * float(unit), low, high).tolist()
    rows = zip(value, low.tolist(), high.tolist(), strict=True)
    return [Noisy(None if math.isnan(value) else value, low, high) for value, low, high in rows]
