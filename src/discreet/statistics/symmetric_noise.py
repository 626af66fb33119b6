"""Noise for symmetric matrices of integers under either kind of budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms import KNorm
from discreet.noise import Bits
from discreet.privacy import Neighbours, events
from discreet.privacy.events import Event
from discreet.statistics.spending import Spending
from discreet.statistics.symmetric import moment_sensitivity, release_symmetric

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SymmetricNoise:
    """The release of a sum of w x x^T over units, with |w| ||x||^2 <= limit for each.

    Formal guarantee: all of `part` is used. One unit more or less moves the sum by at most `limit` in the Frobenius
    norm; a replaced one by sqrt(2) limit if no w is negative, because then <w x x^T, v z z^T> >= 0, and by 2 limit
    else. With a pure budget the upper half is released by the K-norm mechanism: its L2 norm is at most Frobenius'.

    Attributes:
        part: the budget of one release.
        limit: of one unit.
        dimension: of the matrix.
        neighbours: the relation to protect.
        signed: whether some w may be negative.
    """

    part: Spending
    limit: int
    dimension: int
    neighbours: Neighbours
    signed: bool = False

    @property
    def sensitivity(self) -> Fraction:
        """How far one unit can move the sum in the Frobenius norm."""
        if self.signed and self.neighbours is Neighbours.REPLACE:
            return Fraction(2 * self.limit)
        return moment_sensitivity(self.limit, self.neighbours)

    @property
    def _pure(self) -> KNorm | None:
        if self.part.epsilon is None:
            return None
        size = self.dimension * (self.dimension + 1) // 2
        return KNorm(epsilon=self.part.epsilon, sensitivity=self.sensitivity, dimension=size)

    @property
    def event(self) -> Event:
        """What one release costs."""
        mechanism = self._pure
        return mechanism.event if mechanism is not None else events.Gaussian(self.part.noise_multiplier)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on the diagonal; beside it there is no more."""
        mechanism = self._pure
        if mechanism is None:
            return float(self.part.noise_multiplier * self.sensitivity)
        return float(mechanism.sensitivity / mechanism.epsilon) * float(np.sqrt(mechanism.dimension + 1))

    def release(self, sums: NDArray[np.int64], bits: Bits) -> Floats:
        """The sums plus noise, symmetric."""
        mechanism = self._pure
        if mechanism is None:
            multiplier = self.part.noise_multiplier
            return release_symmetric(sums, noise_multiplier=multiplier, sensitivity=self.sensitivity, bits=bits)
        upper = np.triu_indices(self.dimension)
        released = np.zeros((self.dimension, self.dimension))
        released[upper] = mechanism.release(sums[upper], bits=bits)
        return np.asarray(released + np.triu(released, 1).T)
