"""Propose-test-release: a guess of the local sensitivity, tested privately before it is used."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet import check
from discreet.check import Number, assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidValue
from discreet.exact import Enclosure, Grid, Interval, settle
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.mechanism import CONFIDENCE, Mechanism, numeric, whole_by_type
from discreet.noise import Bits, discrete_laplace, source_of
from discreet.privacy import Estimate, events


@dataclass(frozen=True, slots=True, init=False)
class ProposeTestRelease(Mechanism):
    """Releases a number with noise for a proposed bound on its local sensitivity, or nothing if a private test fails.

    Formal guarantee: (2 epsilon, delta)-DP (Dwork, Lei 2009). `distance` must change by at most 1 between neighbours,
    and be 0 wherever the local sensitivity exceeds `bound`: the fewest units to change until it does, or any such
    lower bound. Take two neighbours. If their values are at most `bound` apart, the test costs epsilon and the noisy
    value epsilon. If they are further apart, the local sensitivity exceeds the bound at both, both distances are 0,
    and in each case the test passes with probability at most delta; otherwise nothing is released, in either case. The
    test is distance + Z >= cut with discrete Laplace Z, P(Z >= k) = e^(-epsilon k) / (1 + e^-epsilon), so that the cut
    is ceil(ln(1 / ((1 + e^-epsilon) delta)) / epsilon).

    Args:
        epsilon: above 0, of the test and of the release each.
        delta: strictly between 0 and 1.
        bound: above 0, the proposed local sensitivity, in the units of the value; fixed without looking at the data.
        grid: a `Grid`, or its step, a power of two.

    Raises:
        InvalidParameter: outside these domains.

    >>> mechanism = ProposeTestRelease(epsilon=1, delta=1e-5, bound=1)
    >>> mechanism.cut, mechanism.event
    (12, Approx(epsilon=Fraction(2, 1), delta=Fraction(1, 100000)))
    >>> mechanism.release(100, 10**6) is None  # a million units away from trouble
    False
    """

    epsilon: Fraction
    delta: Fraction
    bound: Fraction
    grid: Grid

    def __init__(self, *, epsilon: Number, delta: Number, bound: Number, grid: Grid | Number = Grid.integers()) -> None:
        slack, move = check.probability(delta=delta), check.positive(bound=bound)
        laplace = Laplace(epsilon=epsilon, sensitivity=move, grid=grid)
        assign(self, epsilon=laplace.epsilon, delta=slack, bound=move, grid=laplace.grid)

    @property
    def _laplace(self) -> Laplace:
        return Laplace(epsilon=self.epsilon, sensitivity=self.bound, grid=self.grid)

    @property
    def cut(self) -> int:
        """Returns what the noisy distance must reach."""
        return smallest_cut(self.epsilon, self.delta)

    @property
    def event(self) -> events.Approx:
        """Returns what one release costs, for accounting, whether a number comes out or not."""
        return events.Approx(2 * self.epsilon, self.delta)

    def release(self, value: Any, distance: Any = None, *, bits: Bits | None = None) -> Any:
        """Releases the value plus noise, or None if the test fails.

        Args:
            value: one number.
            distance: a whole number from 0.
            bits: the source of randomness; None is the secure one of the system.

        Raises:
            InvalidValue: if the value is no single finite number, or the distance is missing, negative or no integer.
        """
        source = source_of(bits)
        found, far = numeric(value), _whole(distance)
        if isinstance(found, np.ndarray):
            raise InvalidValue("to be a single number", "Release entries one by one; each is an event of its own.")
        self.grid.steps(found)  # refuses here what cannot be released, before anything is drawn
        if not self.passes(far, bits=source):
            return None
        return self._laplace.release(found, bits=source)

    def estimate(
        self, value: Any, distance: Any = None, *, confidence: Number = CONFIDENCE, bits: Bits | None = None
    ) -> Estimate:
        """Releases a value, or None, with its interval, its event, and a mark if the randomness was seeded."""
        source = source_of(bits)
        chance = check.probability(confidence=confidence)
        released = self.release(value, distance, bits=source)
        rounded = not whole_by_type(numeric(value), self.grid)
        low, high = self.interval(released, confidence=chance, rounded=rounded)
        return Estimate(released, low, high, self.event, confidence=chance, private=source.private)

    def passes(self, distance: int, *, bits: Bits | None = None) -> bool:
        """Returns the test alone: pure epsilon-DP for distances that change by at most 1."""
        return distance + discrete_laplace(1 / self.epsilon, bits=bits) >= self.cut

    def interval(self, released: Any, *, confidence: Number = CONFIDENCE, rounded: bool | None = None) -> Interval:
        """Returns where the exact value lies.

        It lies anywhere if nothing was released. See `Laplace.interval` for `rounded`.
        """
        if released is None:
            check.probability(confidence=confidence)
            return Interval(-math.inf, math.inf)
        return self._laplace.interval(released, confidence=confidence, rounded=rounded)


def _whole(distance: Any) -> int:
    if distance is None or not whole_by_type(numeric(distance), Grid.integers()) or np.ndim(distance) or distance < 0:
        raise InvalidValue("to come with a distance, a whole number from 0", "Pass release(value, distance).")
    return int(distance)


@lru_cache(maxsize=1024)
def smallest_cut(epsilon: Fraction, delta: Fraction) -> int:
    """Returns the smallest whole k >= 0 with P(Z >= k) <= delta, for P(z) ~ exp(-epsilon |z|).

    k solves no equation e^(-epsilon k) = (1 + e^-epsilon) delta exactly, because e^-epsilon is transcendental.
    """

    def ceiling(digits: int) -> int:
        mass = (Enclosure.of(-epsilon, digits).exp() + 1) * delta
        return (-mass.log() / epsilon).floor() + 1

    return max(0, settle(ceiling))
