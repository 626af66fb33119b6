"""Additive noise: forms of exact integers, weighted sums of them, and the noise that they meet.

Every exact integer that leaves an engine to be added to meets its noise in `AdditiveNoise.release` and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import root_above
from discreet.exact.integer_columns import Column, Int64sOrObjects, add_columns, largest
from discreet.mechanisms.laplace import calibrate_noise
from discreet.mechanisms.mechanism import Law
from discreet.noise import Bits, discrete_gaussian, discrete_laplace, truncated_laplace
from discreet.plan.analysis.stability import Corner, QueryContribution
from discreet.plan.model.readings import Statistic
from discreet.privacy import events

Integers = NDArray[np.int64 | np.object_]
"""A row for each group and a column for each statistic; Python's integers where 64 bits do not hold all."""

_MOST = 1 << 60  # in 64 bits there is room for three more factors of two


@dataclass(frozen=True, slots=True)
class LinearCombination:
    """A sum of weight times statistic, the statistics named by their places in a reading.

    >>> count = LinearCombination.of({0: Fraction(1, 2), 1: Fraction(1, 2)})
    >>> (count * 3 + LinearCombination.at(1)).weights
    ((0, Fraction(3, 2)), (1, Fraction(5, 2)))
    >>> count.value([3, 5])
    Fraction(4, 1)
    """

    weights: tuple[tuple[int, Fraction], ...]

    @classmethod
    def of(cls, weights: Mapping[int, Fraction]) -> LinearCombination:
        """Returns the sum with these weights by place."""
        return cls(tuple(sorted((place, weight) for place, weight in weights.items() if weight)))

    @classmethod
    def at(cls, place: int) -> LinearCombination:
        """Returns the combination of one statistic, with weight one."""
        return cls(((place, Fraction(1)),))

    def __add__(self, other: LinearCombination) -> LinearCombination:
        added = dict(self.weights)
        for place, weight in other.weights:
            added[place] = added.get(place, Fraction(0)) + weight
        return LinearCombination.of(added)

    def __mul__(self, factor: Fraction | int) -> LinearCombination:
        return LinearCombination.of({place: weight * factor for place, weight in self.weights})

    def value(self, statistics: Sequence[int]) -> Fraction:
        """Returns the sum for these statistics, exactly."""
        return sum((weight * int(statistics[place]) for place, weight in self.weights), Fraction(0))

    def values(self, rows: Integers) -> tuple[list[int], int]:
        """Returns numerators for many rows of statistics, and their common denominator."""
        numerators, denominator = self.numerators(rows)
        found: list[int] = numerators.tolist()
        return found, denominator

    def numerators(self, rows: Integers) -> tuple[Integers | NDArray[np.int64], int]:
        """Returns the same as an array: of 64 bits where sums of these cannot overflow, else of Python's integers."""
        bottom = math.lcm(*(weight.denominator for _, weight in self.weights))
        whole = [(place, int(weight * bottom)) for place, weight in self.weights]
        columns = _in_64_bits([rows[:, place] for place, _ in whole], [weight for _, weight in whole])
        if columns is None:
            columns = [rows[:, place].astype(object) for place, _ in whole]
        totals = sum(weight * column for (_, weight), column in zip(whole, columns, strict=True))
        return (np.zeros(len(rows), dtype=np.int64) if not whole else np.asarray(totals)), bottom


def _in_64_bits(columns: Sequence[Integers], weights: Sequence[int]) -> list[NDArray[np.int64]] | None:
    """Returns statistics as numbers of 64 bits; None if a sum of them with these weights might not be one.

    Statistics that were fitted to each other may be fractions, which stay what they are.
    """
    if any(column.dtype == object and set(map(type, column.tolist())) - {int} for column in columns):
        return None
    try:
        small = [column.astype(np.int64, copy=False) for column in columns]  # raises where one does not fit
    except OverflowError:
        return None
    most = sum(abs(weight) * largest(column) for weight, column in zip(weights, small, strict=True))
    return small if most <= _MOST and all(abs(weight) <= _MOST for weight in weights) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JointStatistics:
    """Exact integers that meet their noise together.

    Formal guarantee. Totals are read in fine steps, and each is rounded half up to multiples of 2^grain of them before
    it meets its noise. What lies between two whole multiples is rounded to what lies between them, and one multiple
    more is one more when it is rounded. So rows that move a total by something between two whole multiples move the
    rounded one by something between the same two: as far as values that were rounded one by one could. That is all
    there is to say where corners bound each statistic alone, or where all but one of them count rows. Corners of
    other shapes leave room for less than one multiple in every direction.

    Args:
        statistics: exact integers per group.
        corners: the extreme contributions of one row to them, in multiples; a row may also add nothing.
        once: whether a unit counts once per group, however many rows it has.
        grains: what each is rounded to, as a power of two; nothing is rounded unless they are given.
    """

    statistics: tuple[Statistic, ...]
    corners: tuple[Corner, ...]
    once: bool = False
    grains: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveNoise:
    """Integer noise for every statistic of a form, in all groups at once.

    Formal guarantee: whatever the data, releasing the noisy statistics of all groups is described by `event`, under the
    relation and the limits of the contribution it was built for.

    Args:
        form: the statistics and how far a row moves them.
        law: discrete Laplace or discrete Gaussian.
        scales: of the noise of each statistic, its scale or its sigma, in steps.
        event: what it costs.
        cuts: Laplace noise at these places among the statistics never exceeds so much, where private keys are selected
            by it; that they are selected for their noisy size pays for it (see `Threshold`).
    """

    form: JointStatistics
    law: Law
    scales: tuple[Fraction, ...]
    event: events.Event
    cuts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, law: Law, form: JointStatistics, contribution: QueryContribution, share: Fraction) -> AdditiveNoise:
        """Returns noise of a law, for an epsilon, or for a rho where the law is Gaussian."""
        return (cls.laplace if law == "laplace" else cls.gaussian)(form, contribution, share)

    @classmethod
    def laplace(cls, form: JointStatistics, contribution: QueryContribution, epsilon: Fraction) -> AdditiveNoise:
        """Returns one scale for all statistics of the form: how far a unit moves them in the L1 norm, over epsilon."""
        ones = [Fraction(1)] * len(form.statistics)
        moves = contribution.l1(form.corners, ones, once=form.once)
        event = calibrate_noise(int(moves), epsilon)
        return cls(form=form, law="laplace", scales=(event.scale,) * len(ones), event=event)

    @classmethod
    def gaussian(cls, form: JointStatistics, contribution: QueryContribution, rho: Fraction) -> AdditiveNoise:
        """Returns sigmas in proportion to how far a row moves each statistic, such that the whole is rho-zCDP.

        With weights 1 / m_j for the largest move m_j of statistic j, let L be the square of the longest weighted move.
        Sigma_j = m_j sqrt(L / (2 rho)), rounded up, makes the longest move have the square 2 rho in units of the
        sigmas, which is rho-zCDP for independent discrete Gaussian noise (Canonne, Kamath, Steinke 2020, Theorem 14).
        """
        moves = [max(abs(corner[j]) for corner in form.corners) for j in range(len(form.statistics))]
        square = contribution.l2_squared(form.corners, [Fraction(1, m) for m in moves], once=form.once)
        sigma = root_above(square / (2 * rho))
        return cls(form=form, law="gaussian", scales=tuple(m * sigma for m in moves), event=events.Concentrated(rho))

    def __str__(self) -> str:
        name = "scale" if self.law == "laplace" else "sigma"
        scales = ", ".join(dict.fromkeys(f"{float(scale):,.6g}" for scale in self.scales))
        return f"discrete {self.law.capitalize()}, {name} {scales} steps"

    @property
    def uncut(self) -> AdditiveNoise:
        """Returns the same with noise that reaches any distance, for groups that are shown in any case."""
        return replace(self, cuts=()) if self.cuts else self

    def release(self, exact: Sequence[Column], groups: int, bits: Bits) -> Integers:
        """Adds fresh noise to exact integers; returns a row for each group and a column for each statistic.

        Args:
            exact: a column for each statistic of the form, rounded as its grains say.
            groups: how many there are.
            bits: the source of randomness.
        """
        cuts = dict(self.cuts)
        noise = [_noise(self.law, scale, cuts.get(place), groups, bits) for place, scale in enumerate(self.scales)]
        sums = [add_columns(one, more) for one, more in zip(exact, noise, strict=True)]
        return np.stack(sums).T  # of objects as soon as one column is


def grains_of(measures: Sequence[AdditiveNoise]) -> list[int]:
    """Returns what each statistic is rounded to before it meets its noise, as a power of two."""
    return [grain for measure in measures for grain in measure.form.grains or (0,) * len(measure.scales)]


def _noise(law: Law, scale: Fraction, cut: int | None, size: int, bits: Bits) -> Int64sOrObjects:
    if cut is not None:
        return truncated_laplace(scale, cut, size, bits=bits)
    if law == "laplace":
        return discrete_laplace(scale, size, bits=bits)
    return discrete_gaussian(scale, size, bits=bits)
