"""The first numbers that a linear classifier pays for: how many rows there are, where their middle is, their reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact import root_above
from discreet.learn.features import Features
from discreet.mechanisms import Gaussian
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.statistics.budget_split import Spending
from discreet.statistics.inputs import RADIUS, matrix, whole, within

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FINE = 1 << 20  # the length of the longest row in the survey, so that short ones can still be enlarged
REACH = 1.2  # how long rows may be afterwards, in units of their root mean square length
CONSTANT = 0.3  # the entry of the intercept, in units of that length
SHORTEST = FINE >> 8  # of the lengths that rows may have afterwards: 12 bits are left of their entries


def fine_rows(X: Any, features: Features) -> Integers:
    """Returns rows as integer vectors of length at most FINE.

    Each is a function of itself alone, missing values are 0.
    """
    steps = whole(matrix(X) - features.centre, FINE / (features.spread * features.norm))
    return within(steps, FINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One Gaussian release of the sum of rows, the sum of their squared lengths and, if it is private, their number.

    Formal guarantee: a row adds (x, floor(||x||^2 / F), F) with ||x|| <= F = 2^20, which is no longer than sqrt(3) F;
    replaced, it moves the first part by 2 F, the second by F, and their number is public: sqrt(5) F. Hence sqrt(share)
    mu-GDP under the relation.

    Attributes:
        noise_multiplier: sigma over the sensitivity.
        neighbours: the relation to protect.
    """

    noise_multiplier: Fraction
    neighbours: Neighbours

    @classmethod
    def of(cls, spending: Spending, neighbours: Neighbours) -> Survey:
        """Returns the survey that uses all of a budget."""
        return cls(noise_multiplier=spending.noise_multiplier, neighbours=neighbours)

    @property
    def event(self) -> events.Gaussian:
        """Returns what it costs."""
        return events.Gaussian(self.noise_multiplier)

    @property
    def mechanism(self) -> Gaussian:
        """Returns the noise, in units of 1 / FINE of the longest row."""
        squared = 3 if self.neighbours is Neighbours.ADD_REMOVE else 5
        return Gaussian.with_multiplier(
            noise_multiplier=self.noise_multiplier, sensitivity=root_above(Fraction(squared)) * FINE
        )

    def sums(self, fine: Integers) -> Integers:
        """Returns what meets the noise: exact sums over the rows."""
        squares = np.sum(fine * fine, axis=1) // FINE
        found = [*np.sum(fine, axis=0), np.sum(squares)]
        if self.neighbours is Neighbours.ADD_REMOVE:
            found.append(FINE * len(fine))
        return np.array(found, dtype=np.int64)

    def release(self, fine: Integers, *, centred: bool, bits: Bits) -> Place:
        """Releases where the rows are, and how many: from here on public."""
        mechanism = self.mechanism
        noisy = np.asarray(mechanism.release(self.sums(fine), bits=bits), dtype=np.float64) / FINE
        sigma = float(mechanism.sigma) / FINE
        width = fine.shape[1]
        count = float(noisy[width + 1]) if self.neighbours is Neighbours.ADD_REMOVE else float(len(fine))
        return placed(noisy[:width], float(noisy[width]), max(count, 1.0), sigma, centred=centred)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is public about rows after the survey, and the map that it makes of them.

    Attributes:
        count: how many rows there are, about; at least 1.
        centre: their middle, in units of 1 / FINE of the longest row allowed.
        length: how far from it they may be, in the same units.
        constant: the entry of the intercept in integer rows; 0 for none.
    """

    count: float
    centre: Integers
    length: float
    constant: int

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
        steps = np.rint((fine - self.centre) * (self.radius / self.length)).astype(np.int64)
        kept = within(steps, self.radius)
        if not self.constant:
            return kept
        return np.hstack([kept, np.full((len(kept), 1), self.constant, dtype=np.int64)])

    def weights(self, theta: Floats, norm: float) -> tuple[Floats, Floats]:
        """Returns weights of integer rows (over RADIUS), as weights of rows of length `norm` and a shift.

        This is post-processing.
        """
        per_step = theta[..., : self.centre.size] * (self.radius / (self.length * RADIUS))
        shift = -np.sum(per_step * self.centre, axis=-1)
        if self.constant:
            shift = shift + theta[..., -1] * (self.constant / RADIUS)
        return per_step * (FINE / norm), np.asarray(shift)


def placed(sums: Floats, squares: float, count: float, sigma: float, *, centred: bool) -> Place:
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
        constant=int(RADIUS * CONSTANT / math.hypot(1, CONSTANT)) if centred else 0,
    )
