"""The first numbers that a linear classifier pays for: rows of each class, where their middle is, their reach."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact import root_above
from discreet.learn.features import Features
from discreet.learn.linear.vector_noise import VectorNoise
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, matrix, whole, within

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FINE = 1 << 20  # the length of the longest row in the survey, so that short ones can still be enlarged
REACH = 1.2  # how long rows may be afterwards, in units of their root mean square length
LEVEL = 0.2  # is added to the variances of entries, over their mean, before they are made equal
CONSTANT = 0.3  # the entry of the intercept, in units of that length
COUNTED = 2  # how much a count of a class weighs against a row: counts decide where weights would be noise
SHORTEST = FINE >> 8  # of the lengths that rows may have afterwards: their entries keep 12 bits


def fine_rows(X: Any, features: Features) -> Integers:
    """Returns rows as integer vectors of length at most FINE.

    Each is a function of itself alone, missing values are 0.
    """
    steps = whole(matrix(X) - features.centre, FINE / (features.spread * features.norm))
    return within(steps, FINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSummary:
    """One release of the sum of rows, the sum of their squared lengths, and the number of rows of each class.

    Formal guarantee: a row of class c adds (x, floor(||x||^2 / F), COUNTED F e_c) with ||x|| <= F = 2^20, which is no
    longer than sqrt(2 + COUNTED^2) F: it has one class, so that all counts together cost what one count costs. In the
    place of another it moves the first part by at most 2 F, the second by F, and two counts by COUNTED F each: sqrt(5 +
    2 COUNTED^2) F. The noise is made for that (`VectorNoise`).

    Attributes:
        noise: what the release costs.
        neighbours: the relation to protect.
    """

    noise: VectorNoise
    neighbours: Neighbours

    @classmethod
    def of(cls, spending: Spending, neighbours: Neighbours) -> RowSummary:
        """Returns the survey that uses all of a budget."""
        return cls(noise=VectorNoise(part=spending), neighbours=neighbours)

    @property
    def event(self) -> events.Event:
        """Returns what it costs."""
        return self.noise.event

    @property
    def sensitivity(self) -> Fraction:
        """Returns how far one row moves the sums in the L2 norm, rounded up."""
        squared = 2 + COUNTED**2 if self.neighbours is Neighbours.ADD_REMOVE else 5 + 2 * COUNTED**2
        return root_above(Fraction(squared)) * FINE

    def sums(self, fine: Integers, codes: Integers, classes: int) -> Integers:
        """Returns what meets the noise: exact sums over the rows; codes that are no class are counted nowhere."""
        squares = np.sum(fine * fine, axis=1) // FINE
        counts = np.bincount(codes[(codes >= 0) & (codes < classes)], minlength=classes)
        return np.array([*np.sum(fine, axis=0), np.sum(squares), *(COUNTED * FINE * counts)], dtype=np.int64)

    def release(self, fine: Integers, codes: Integers, classes: int, *, centred: bool, bits: Bits) -> Place:
        """Releases where the rows are, and how many of each class: from here on public."""
        width = fine.shape[1]
        size = width + 1 + classes
        mechanism = self.noise.mechanism(self.sensitivity, size)
        noisy = np.asarray(mechanism.release(self.sums(fine, codes, classes), bits=bits), dtype=np.float64) / FINE
        sigma = self.noise.deviation(self.sensitivity, size) / FINE
        counts = noisy[width + 1 :] / COUNTED
        count = float(np.sum(counts)) if self.neighbours is Neighbours.ADD_REMOVE else float(len(fine))
        return find_place(
            noisy[:width],
            float(noisy[width]),
            max(count, 1.0),
            sigma,
            centred=centred,
            shares=class_shares(counts, sigma / COUNTED),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySquares:
    """One release of the sum of squares of each entry.

    Formal guarantee: a row adds floor(x_j^2 / F) for each j with ||x|| <= F = 2^20; they have no negative entries and
    are no longer together than their sum, F. In the place of another it moves the sums by at most sqrt(2) F.

    Attributes:
        noise: what the release costs.
        neighbours: the relation to protect.
    """

    noise: VectorNoise
    neighbours: Neighbours

    @property
    def sensitivity(self) -> Fraction:
        """Returns how far one row moves the sums in the L2 norm, rounded up."""
        return Fraction(FINE) if self.neighbours is Neighbours.ADD_REMOVE else root_above(Fraction(2)) * FINE

    def sums(self, fine: Integers) -> Integers:
        """Returns what meets the noise: exact sums over the rows."""
        return np.asarray(np.sum(fine * fine // FINE, axis=0), dtype=np.int64)

    def release(self, fine: Integers, place: Place, bits: Bits) -> Place:
        """Releases how much entries differ between rows, and returns the place that knows it."""
        mechanism = self.noise.mechanism(self.sensitivity, fine.shape[1])
        noisy = np.asarray(mechanism.release(self.sums(fine), bits=bits), dtype=np.float64) / FINE
        return place.scale_entries(noisy, self.noise.deviation(self.sensitivity, fine.shape[1]) / FINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is public about rows after the survey, and the map that it makes of them.

    Attributes:
        count: how many rows there are, about; at least 1.
        centre: their middle, in units of 1 / FINE of the longest row allowed.
        length: how far from it they may be, in the same units, once each entry is multiplied by its scale.
        scale: of each entry, 1 until `scale_entries` knows better.
        mean_square: of the length of rows around the middle, in units of the longest row allowed.
        constant: the entry of the intercept in integer rows; 0 for none.
        shares: the part of rows that each class has, about; they add up to 1.
    """

    count: float
    centre: Integers
    length: float
    scale: Floats
    mean_square: float
    constant: int
    shares: Floats

    @property
    def radius(self) -> int:
        """Returns how long an integer row may be without its constant."""
        return math.isqrt(RADIUS * RADIUS - self.constant * self.constant)

    @property
    def width(self) -> int:
        """Returns how many entries an integer row has."""
        return int(self.centre.size) + (self.constant > 0)

    def rows(self, fine: Integers) -> Integers:
        """Returns rows around the middle, ||row||^2 <= RADIUS^2 exactly.

        Each is a function of itself and of public numbers.
        """
        steps = np.rint((fine - self.centre) * (self.scale * (self.radius / self.length))).astype(np.int64)
        kept = within(steps, self.radius)
        if not self.constant:
            return kept
        return np.hstack([kept, np.full((len(kept), 1), self.constant, dtype=np.int64)])

    def scale_entries(self, squares: Floats, sigma: float) -> Place:
        """Returns the place where entries that differ little between rows are enlarged, so that a descent hears them.

        Args:
            squares: noisy sums of squared entries, in units of the longest row allowed.
            sigma: the deviation of their noise.
        """
        centre = self.centre / FINE
        mean = self.mean_square / centre.size
        variances = entry_variances(squares / self.count - centre**2, mean, sigma / self.count)
        scale = np.sqrt((1 + LEVEL) / (variances + LEVEL))
        length = self.length * math.sqrt(max(float(np.mean(variances * scale**2)), LEVEL))
        return replace(self, scale=scale, length=max(length, float(SHORTEST)))

    def weights(self, theta: Floats, norm: float) -> tuple[Floats, Floats]:
        """Returns weights of integer rows (over RADIUS), as weights of rows of length `norm` and a shift.

        This is post-processing.
        """
        per_step = theta[..., : self.centre.size] * (self.scale * (self.radius / (self.length * RADIUS)))
        shift = -np.sum(per_step * self.centre, axis=-1)
        if self.constant:
            shift = shift + theta[..., -1] * (self.constant / RADIUS)
        return per_step * (FINE / norm), np.asarray(shift)


def class_shares(counts: Floats, sigma: float) -> Floats:
    """Returns the part of rows that each class has, from noisy counts of deviation sigma: post-processing.

    Differences of classes are shrunk by James and Stein's factor: where they are noise all classes are equal. No count
    is below the noise.

    >>> class_shares(np.array([300.0, 100.0]), 1.0).round(3).tolist(), class_shares(np.array([3.0, -4.0]), 9.0).tolist()
    ([0.75, 0.25], [0.5, 0.5])
    """
    middle = float(np.mean(counts))
    apart = counts - middle
    kept = max(0.0, 1 - (counts.size - 1) * sigma**2 / max(float(np.sum(apart**2)), 1e-300))
    found = np.maximum(middle + kept * apart, max(sigma, 1.0))
    return np.asarray(found / np.sum(found))


def find_place(sums: Floats, squares: float, count: float, sigma: float, *, centred: bool, shares: Floats) -> Place:
    """Returns the middle and the reach of rows from noisy sums, in units of the longest row: post-processing.

    The middle is shrunk toward zero by James and Stein's factor, so that a middle that is all noise is left alone.
    """
    width = sums.size
    kept = max(0.0, 1 - width * sigma**2 / max(float(np.sum(sums**2)), 1e-300)) if centred else 0.0
    centre = kept * sums / count
    away = float(np.sqrt(np.sum(centre**2)))
    if away > 1:
        centre, away = centre / away, 1.0
    mean_square = max(squares / count - away**2, sigma / count / 2, 0.0)
    length = REACH * math.sqrt(mean_square) * FINE
    return Place(
        count=count,
        centre=np.rint(centre * FINE).astype(np.int64),
        length=min(max(length, SHORTEST), (1 + away) * FINE),
        scale=np.ones(width),
        mean_square=mean_square,
        constant=int(RADIUS * CONSTANT / math.hypot(1, CONSTANT)) if centred else 0,
        shares=shares,
    )


def entry_variances(noisy: Floats, mean: float, sigma: float) -> Floats:
    """Returns the variances of entries over their mean: post-processing.

    They are shrunk toward it by James and Stein's factor: where their differences are noise, all are 1.

    >>> entry_variances(np.array([0.3, 0.1]), 0.2, 0.001).round(2).tolist()
    [1.5, 0.5]
    >>> entry_variances(np.array([0.3, 0.1]), 0.2, 0.2).tolist()
    [1.0, 1.0]
    """
    apart = noisy - mean
    kept = max(0.0, 1 - noisy.size * sigma**2 / max(float(np.sum(apart**2)), 1e-300))
    return np.asarray(np.maximum(1 + kept * apart / max(mean, 1e-300), 0.0))
