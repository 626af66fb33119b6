"""The noise of released statistics, and how far sums of them may be from the truth.

Reaches hold but for the stated probability, which is that of the noise. What is rounded is not random: totals are
rounded to the grid of their noise, by half a step each at most, and reaches are wider by as much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.exact import float_above
from discreet.measurement.intervals.arithmetic import Floats
from discreet.measurement.releases.additive import Integers, LinearCombination
from discreet.mechanisms.mechanism import Law
from discreet.mechanisms.sums import (
    gaussian_reaches,
    laplace_reaches,
    laplace_sum_reach,
    many_gaussian_reaches,
    many_laplace_reaches,
)
from discreet.mechanisms.tails import discrete_gaussian_reach, laplace_reach

_LARGEST = 1e150
_MANY, _PLACES = 4096, 1 << 14  # a table costs as much as searches for some thousand groups
_NEAR = 1024.0
_WIDER = 1.5e-4  # moves the ends of an interval by half as much of its width each
_SEARCHED = 1 + 1e-8  # covers that a search ends above a reach, and that an end may be in the next cell by rounding
ULPS = 2.0**-50  # what a few operations on doubles lose


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseDraws:
    """Independent draws that all have the same weight in the noise of a group.

    Args:
        weight: of each.
        scales: for each statistic.
        count: how many there are.
    """

    weight: Fraction
    scales: tuple[Fraction, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Noise:
    """The law of the noise of all statistics of a reading, its scale for each, and which were rounded before it.

    Args:
        law: of every draw.
        scales: for each statistic; each has one draw, unless there are several.
        rounded: which statistics were rounded.
        draws: where a group's noise is a weighted sum of draws, these.
        moved: then, how far rounding moves each statistic at most.
        tabled: whether reaches of many groups may be looked up in a table instead of being searched for.
    """

    law: Law
    scales: tuple[Fraction, ...]
    rounded: tuple[bool, ...] = ()
    draws: tuple[NoiseDraws, ...] = ()
    moved: tuple[Fraction, ...] = ()
    tabled: bool = True

    def repeat_for_groups(self, count: int) -> Noise:
        """Returns the noise of the statistics of so many groups side by side.

        Raises:
            InternalError: if groups share draws, so that their noise is not independent.
        """
        if self.draws:
            raise InternalError("Groups whose noise is shared were to be added up as if it were not.")
        return replace(self, scales=self.scales * count, rounded=self.rounded * count)

    def weighted_draws(self, place: int) -> list[tuple[Fraction, Fraction, int]]:
        """Returns weight, scale and number of the draws of a statistic."""
        if not self.draws:
            return [(Fraction(1), self.scales[place], 1)]
        return [(draw.weight, draw.scales[place], draw.count) for draw in self.draws]

    def half(self, place: int) -> Fraction:
        """Returns how far rounding moves a statistic at most."""
        if self.moved:
            return self.moved[place]
        return Fraction(1, 2) if any(self.rounded) and self.rounded[place] else Fraction(0)

    def rounding(self, linear: LinearCombination) -> Fraction:
        """Bounds how far a sum is moved by the rounding of its statistics: half a step of each at most."""
        if not any(self.rounded) and not self.moved:
            return Fraction(0)
        return sum((abs(weight) * self.half(place) for place, weight in linear.weights), Fraction(0))

    def variance(self, linear: LinearCombination) -> Fraction:
        """Returns the variance of the noise of a sum."""
        factor = 2 if self.law == "laplace" else 1
        if not self.draws:
            return factor * sum(((weight * self.scales[place]) ** 2 for place, weight in linear.weights), Fraction(0))
        squares = (
            count * (weight * part * scale) ** 2
            for place, weight in linear.weights
            for part, scale, count in self.weighted_draws(place)
        )
        return factor * sum(squares, Fraction(0))

    def certain_reach(self, linear: LinearCombination, outside: Fraction) -> Fraction:
        """Returns a distance that the noise exceeds with at most this probability, proven with directed rounding.

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

    def reach(self, linear: LinearCombination, outside: Fraction) -> Fraction:
        """Returns a distance that the noise of a sum and its rounding exceed with at most this probability."""
        sizes = {abs(weight) * self.scales[place] for place, weight in linear.weights}
        if not self.draws and self._is_simple(linear, sizes):
            return self.certain_reach(linear, outside) + self.rounding(linear)
        largest = max(sizes)
        made = NoiseTerms.of(self, [linear * (1 / largest)])
        return largest * Fraction(float(made.reaches(np.ones((1, 1)), float(outside))[0]))

    def _is_simple(self, linear: LinearCombination, sizes: set[Fraction]) -> bool:
        few = self.law == "laplace" and len(sizes) == 1 and len(linear.weights) <= 3
        return len(linear.weights) == 1 or few


Farthest = Callable[[Floats, Floats], Floats]
"""How far something reaches anywhere in intervals, of which the lower and the upper ends are given."""


@dataclass(frozen=True, slots=True)
class NoiseTerms:
    """Sums of statistics as arrays: the weight of each draw in each sum, and that weight times its scale.

    Each statistic that was rounded adds a half; where a statistic has several draws, its weight is kept apart.
    """

    noise: Noise
    steps: Floats
    sizes: Floats
    sigmas: Floats
    halves: Floats
    counts: Floats | None = None
    rows: Floats | None = None

    @classmethod
    def of(cls, noise: Noise, sums: Sequence[LinearCombination]) -> NoiseTerms:
        """Returns the arrays of sums whose statistics meet this noise."""
        places = sorted({place for linear in sums for place, _ in linear.weights})
        weights = [[dict(linear.weights).get(place, Fraction(0)) for linear in sums] for place in places]
        if noise.draws:
            return cls._of_draws(noise, places, weights)
        scales = [noise.scales[place] for place in places]
        sizes = [[weight * scale for weight in row] for row, scale in zip(weights, scales, strict=True)]
        halves = [0.5 if any(noise.rounded) and noise.rounded[place] else 0.0 for place in places]
        return cls(noise, reals(weights), reals(sizes), np.asarray(reals([scales])[0]), np.array(halves))

    @classmethod
    def _of_draws(cls, noise: Noise, places: Sequence[int], weights: Sequence[Sequence[Fraction]]) -> NoiseTerms:
        drawn = [
            (row, draw) for place, row in zip(places, weights, strict=True) for draw in noise.weighted_draws(place)
        ]
        return cls(
            noise,
            reals([[weight * part for weight in row] for row, (part, _, _) in drawn]),
            reals([[weight * part * scale for weight in row] for row, (part, scale, _) in drawn]),
            np.asarray(reals([[scale for _, (_, scale, _) in drawn]])[0]),
            np.array([float_above(noise.half(place)) for place in places]),
            counts=np.array([float(count) for _, (_, _, count) in drawn]),
            rows=reals(weights),
        )

    def reaches(self, factors: Floats, outside: float) -> Floats:
        """Returns how far each combination of the sums reaches; a row of factors for each sum."""
        sizes, steps = self.sizes @ factors, self.steps @ factors
        rows = steps if self.rows is None else self.rows @ factors
        return self._of_noise(sizes, steps, outside) + self._of_rounding(rows)

    def farthest(self, first: Floats, second: Floats, outside: float) -> Floats:
        """Returns the larger of the reaches of two combinations each; computed at once, since columns do not meet.

        Of more than three draws, all columns together decide which bound is taken: there each has its turn.
        """
        if len(self.sizes) > 3 or self.rows is not None:
            return np.maximum(self.reaches(first, outside), self.reaches(second, outside))
        sizes, steps = ([weights @ factors for factors in (first, second)] for weights in (self.sizes, self.steps))
        noise = self._of_noise(np.concatenate(sizes, axis=1), np.concatenate(steps, axis=1), outside)
        rounding = np.concatenate([self._of_rounding(part) for part in steps])
        at_first, at_second = np.split(noise + rounding, 2)
        return np.asarray(np.maximum(at_first, at_second))

    def residual_reaches(self, low: float, high: float, count: int, outside: float) -> Farthest:
        """Returns a function of intervals of m: how far first - m second reaches anywhere in them.

        Args:
            low: the smallest m.
            high: the largest.
            count: how many intervals there are: for many a table is made, which is wider by `_WIDER` at most.
            outside: the probability of more.

        The reach is largest at an end of an interval. So between two places of the table it is at most the larger of
        theirs, and it is never less than the one that is searched for.
        """
        near = low < high and max(abs(low), abs(high)) <= _NEAR  # doubles tell the places of a table apart
        if count > _MANY and self.noise.tabled and self.rows is None and near:
            places = np.linspace(low, high, _PLACES + 1)
            found = self.reaches(_residual(places), outside)
            most = np.maximum(found[:-1], found[1:])
            if np.all(most <= np.minimum(found[:-1], found[1:]) * (1 + _WIDER)):
                return partial(_looked_up, most * _SEARCHED, low, (high - low) / _PLACES)
        return lambda one, other: self.farthest(_residual(one), _residual(other), outside)

    def _of_noise(self, sizes: Floats, steps: Floats, outside: float) -> Floats:
        if self.counts is not None:
            many = many_laplace_reaches if self.noise.law == "laplace" else many_gaussian_reaches
            return many(steps, self.sigmas, self.counts, outside)
        if self.noise.law == "laplace":
            return laplace_reaches(sizes, steps, outside)
        return gaussian_reaches(sizes, steps, self.sigmas, outside)

    def _of_rounding(self, steps: Floats) -> Floats:
        return np.asarray(self.halves @ np.abs(steps) * (1 + ULPS))


def _residual(m: Floats) -> Floats:
    return np.stack([np.ones_like(m), -m])


def _looked_up(most: Floats, low: float, step: float, one: Floats, other: Floats) -> Floats:
    """Returns the larger of what a table says of the two ends of intervals."""
    first, second = (np.clip((ends - low) / step, 0, len(most) - 1).astype(np.int64) for ends in (one, other))
    return np.asarray(np.maximum(most[first], most[second]))


def reals(rows: Sequence[Sequence[Fraction]]) -> Floats:
    """Returns numbers as doubles; what is beyond all reason is held to it."""
    return np.array([[_real(x) for x in row] for row in rows], dtype=np.float64)


def _real(x: Fraction) -> float:
    try:
        return min(max(float(x), -_LARGEST), _LARGEST)
    except OverflowError:
        return _LARGEST if x > 0 else -_LARGEST


def real_values(linear: LinearCombination, rows: Integers) -> Floats:
    """Returns the sum of each row of statistics, as doubles."""
    numerators, denominator = linear.numerators(rows)
    try:
        return np.asarray(numerators.astype(np.float64) / float(denominator))
    except OverflowError:
        return np.asarray(reals([[Fraction(n, denominator) for n in numerators.tolist()]])[0])


@lru_cache(maxsize=4096)
def _single(law: Law, scale: Fraction, outside: Fraction) -> Fraction:
    reach = laplace_reach if law == "laplace" else discrete_gaussian_reach
    return Fraction(reach(scale, outside))
