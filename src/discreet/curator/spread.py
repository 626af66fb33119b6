"""How wrong aggregates are: variances and intervals of what is computed from noisy statistics. Post-processing.

Intervals are about the noise alone: they hold the aggregate of the kept, clipped rows but for the stated probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.curator.measure import Law
from discreet.errors import InternalError
from discreet.mechanisms.sums import gaussian_reaches, laplace_reaches, laplace_sum_reach
from discreet.mechanisms.tails import discrete_gaussian_reach, laplace_reach
from discreet.plan.aggregates import Linear, Ratio, Recipe, Total
from discreet.plan.finish import Noisy

Integers = NDArray[np.object_]
Floats = NDArray[np.float64]

_ULPS = 2.0**-50  # what a few operations on doubles lose
_NARROWINGS = 6  # each brings an interval of a mean nearer to its limit; all of them are valid


@dataclass(frozen=True, slots=True)
class Noise:
    """The law of the noise of all statistics of a reading, and its scale for each."""

    law: Law
    scales: tuple[Fraction, ...]

    def variance(self, recipe: Recipe) -> Fraction:
        """Of the noise of an aggregate; of a mean, times the square of its count.

        A mean's error depends on how far it is from the centre: half way to the ends is assumed.
        """
        if isinstance(recipe, Total):
            return self._variance(recipe.linear)
        return self._variance(recipe.top) + ((recipe.high - recipe.low) / 4) ** 2 * self._variance(recipe.bottom)

    def _variance(self, linear: Linear) -> Fraction:
        factor = 2 if self.law == "laplace" else 1
        return factor * sum(((weight * self.scales[place]) ** 2 for place, weight in linear.weights), Fraction(0))

    def certain_reach(self, linear: Linear, outside: Fraction) -> Fraction:
        """A distance that the noise exceeds with at most this probability, proven with directed rounding.

        Raises:
            InternalError: for sums of Gaussian or of unequal noise, which no selection of keys looks at.
        """
        sizes = {abs(weight) * self.scales[place] for place, weight in linear.weights}
        ((place, weight), *more) = linear.weights
        if not more:
            return abs(weight) * _single(self.law, self.scales[place], outside)
        if self.law != "laplace" or len(sizes) > 1:
            raise InternalError("The size of a group has noise of several kinds.")
        return abs(weight) * laplace_sum_reach(self.scales[place], len(linear.weights), outside)

    def reach(self, linear: Linear, outside: Fraction) -> Fraction:
        """A distance that the noise of a sum exceeds with at most this probability."""
        sizes = {abs(weight) * self.scales[place] for place, weight in linear.weights}
        if len(linear.weights) == 1 or (self.law == "laplace" and len(sizes) == 1 and len(linear.weights) <= 3):
            return self.certain_reach(linear, outside)
        places = [place for place, _ in linear.weights]
        weights = _weights(linear, places)[:, None]
        return Fraction(float(self._reaches(weights, self._floats(places), float(outside))[0]))

    def _floats(self, places: Sequence[int]) -> Floats:
        return np.array([float(self.scales[place]) for place in places])

    def _reaches(self, weights: Floats, scales: Floats, outside: float) -> Floats:
        law = laplace_reaches if self.law == "laplace" else gaussian_reaches
        return law(weights, scales, outside)

    def finish(self, recipe: Recipe, rows: Integers, outside: Fraction) -> list[Noisy]:
        """The aggregate of each row of noisy statistics, with its interval."""
        if isinstance(recipe, Total):
            return _totals(recipe, rows, self.reach(recipe.linear, outside))
        return self._ratios(recipe, rows, float(outside))

    def _ratios(self, recipe: Ratio, rows: Integers, outside: float) -> list[Noisy]:
        """Means: all m whose residual top - m bottom is within reach of its noise, as Fieller's sets are.

        At the true mean the exact residual is zero, so the noisy one is pure noise, whose law is known for each m. Its
        reach grows towards the ends of an interval of m; the larger of the two gives a smaller interval, and so on.
        """
        places = sorted({place for linear in (recipe.top, recipe.bottom) for place, _ in linear.weights})
        scales = self._floats(places)
        tops, bottoms = (_weights(linear, places) for linear in (recipe.top, recipe.bottom))
        top, bottom = _float_values(recipe.top, rows), _float_values(recipe.bottom, rows)
        ends = float(recipe.low - recipe.centre), float(recipe.high - recipe.centre)
        low, high = np.full(len(rows), ends[0]), np.full(len(rows), ends[1])
        for _ in range(_NARROWINGS):
            reaches = [self._reaches(tops[:, None] - bottoms[:, None] * m, scales, outside) for m in (low, high)]
            low, high = _narrowed(low, high, top, bottom, np.maximum(*reaches))
        value = np.clip(top / np.maximum(bottom, 1.0), low, high)
        least, most, centre = float(recipe.low), float(recipe.high), float(recipe.centre)
        return [
            Noisy(
                centre + v,
                max(least, math.nextafter(centre + a, -math.inf)),
                min(most, math.nextafter(centre + b, math.inf)),
            )
            for v, a, b in zip(value.tolist(), low.tolist(), high.tolist(), strict=True)
        ]


def _narrowed(low: Floats, high: Floats, top: Floats, bottom: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """The part of an interval where |top - m bottom| <= reach; its nearest point if there is none."""
    counted = np.abs(bottom) > 0
    safe = np.where(counted, bottom, 1.0)
    far = reach + _ULPS * (np.abs(top) + reach)
    first, second = (top - far) / safe, (top + far) / safe
    left, right = np.where(counted, np.minimum(first, second), low), np.where(counted, np.maximum(first, second), high)
    return np.clip(left, low, high), np.clip(right, low, high)


def _weights(linear: Linear, places: Sequence[int]) -> Floats:
    given = dict(linear.weights)
    return np.array([float(given.get(place, 0)) for place in places])


def _float_values(linear: Linear, rows: Integers) -> Floats:
    numerators, denominator = linear.values(rows)
    return np.array([n / denominator for n in numerators], dtype=np.float64)


def _totals(recipe: Total, rows: Integers, reach: Fraction) -> list[Noisy]:
    """Sums with the same error for all; one that is whole is rounded, and its interval has whole ends."""
    numerators, denominator = recipe.linear.values(rows)
    values = [Fraction(n, denominator) for n in numerators]
    if recipe.whole:
        return [Noisy(round(v), math.ceil(v - reach), math.floor(v + reach)) for v in values]
    return [Noisy(v, v - reach, v + reach) for v in values]


@lru_cache(maxsize=4096)
def _single(law: Law, scale: Fraction, outside: Fraction) -> Fraction:
    reach = laplace_reach if law == "laplace" else discrete_gaussian_reach
    return Fraction(reach(scale, outside))
