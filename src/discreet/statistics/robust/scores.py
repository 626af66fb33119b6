"""Bounded scores of M-estimators, and their integer versions: what one value adds is an exact integer.

A score psi(u) of u = (x - theta) / scale is positive where x lies above theta, so that adding a mean score to theta
moves it toward the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SLOPE_UNIT = 1 << 10  # what a slope of 1 is in integers
_BINS = 256  # of a table, in a difference of one scale
_LARGEST_BOUND = 1 << 30  # in steps: squares stay in int64, and so do sums of 2^32 scores
_FURTHEST = 64.0  # a table reaches no further, in scales


class Score(ABC):
    """A bounded score: its values, its slopes, and how far from zero it is constant.

    Subclass it for a score of your own; everything is evaluated on public tables, never on the data.

    >>> from discreet.noise import SeededBits
    >>> from discreet.statistics import Score, m_estimate
    >>> class Cauchy(Score):  # what is far away has little say, and never none
    ...     reach = 64
    ...
    ...     def psi(self, u):
    ...         return u / (1 + u**2)
    ...
    ...     def slope(self, u):
    ...         return (1 - u**2) / (1 + u**2) ** 2
    >>> ages = [30, 31, 35, 38, 40, 41, 44, 47, 52, 110] * 100
    >>> print(m_estimate(ages, psi=Cauchy(), bounds=(0, 120), scale=10, epsilon=1, bits=SeededBits(1)))
    40.0282 [39.3355, 40.7209] NOT PRIVATE (seeded randomness)
    """

    __slots__ = ()

    @property
    @abstractmethod
    def reach(self) -> float:
        """Returns the distance beyond which the score is (nearly) constant; at most 64."""

    @abstractmethod
    def psi(self, u: Floats) -> Floats:
        """Returns the score at differences in units of the scale."""

    @abstractmethod
    def slope(self, u: Floats) -> Floats:
        """Returns the derivative of psi."""


@dataclass(frozen=True, slots=True, init=False)
class Huber(Score):
    """psi(u) = clip(u, -k, k); k = 1.345 has 95 % efficiency for normal data (Huber 1964).

    >>> Huber().psi(np.array([-3.0, 0.5, 3.0])).tolist()
    [-1.345, 0.5, 1.345]
    """

    k: float

    def __init__(self, k: check.Number = 1.345) -> None:
        assign(self, k=float(check.positive(k=k)))

    @property
    def reach(self) -> float:
        """Returns k: beyond it the score is constant."""
        return self.k

    def psi(self, u: Floats) -> Floats:
        """Returns the difference, clipped."""
        return np.asarray(np.clip(u, -self.k, self.k))

    def slope(self, u: Floats) -> Floats:
        """Returns 1 within k, 0 beyond."""
        return (np.abs(u) < self.k).astype(np.float64)


@dataclass(frozen=True, slots=True, init=False)
class Logistic(Score):
    """psi(u) = tanh(u / 2): the score of the logistic law, smooth and monotone.

    >>> Logistic().psi(np.array([-3.0, 0.5, 3.0])).round(3).tolist()
    [-0.905, 0.245, 0.905]
    """

    @property
    def reach(self) -> float:
        """Returns the distance from which on the score is within 1e-6 of constant."""
        return 16.0

    def psi(self, u: Floats) -> Floats:
        """Returns tanh(u / 2)."""
        return np.asarray(np.tanh(u / 2))

    def slope(self, u: Floats) -> Floats:
        """Returns (1 - tanh^2(u / 2)) / 2."""
        return np.asarray((1 - np.tanh(u / 2) ** 2) / 2)


@dataclass(frozen=True, slots=True, init=False)
class Biweight(Score):
    """psi(u) = u (1 - (u / c)^2)^2 within c, 0 beyond: what is far away has no say (Tukey; c = 4.685 for 95 %)."""

    c: float

    def __init__(self, c: check.Number = 4.685) -> None:
        assign(self, c=float(check.positive(c=c)))

    @property
    def reach(self) -> float:
        """Returns c and a bin more: beyond c the score is 0, and its table ends with zeros."""
        return self.c + 2 / _BINS

    def psi(self, u: Floats) -> Floats:
        """Returns the difference, faded out toward c."""
        inside = np.maximum(1 - (u / self.c) ** 2, 0)
        return np.asarray(u * inside**2)

    def slope(self, u: Floats) -> Floats:
        """Returns (1 - v)(1 - 5 v) with v = (u / c)^2: negative from c / sqrt 5 on."""
        square = (u / self.c) ** 2
        return np.where(square < 1, (1 - square) * (1 - 5 * square), 0.0)


def score_of(psi: object) -> Score:
    """Returns the argument, if it is a score."""
    if not isinstance(psi, Score):
        raise InvalidParameter("psi", psi, "to be a Score", "Pass e.g. psi=Huber(), or a Score of your own.")
    return psi


@dataclass(frozen=True)
class WholeScore:
    """A score of integer differences: entry floor(d / bin) of a public table, or the clipped difference itself.

    Formal guarantee: |psi| <= `score_bound`, slopes lie in `slope_range` and squares in [0, bound], in integers, for
    every difference: these are the sensitivities of sums over values.

    Attributes:
        score: the real score.
        scale: how many steps one scale has.
    """

    score: Score
    scale: int

    def __post_init__(self) -> None:
        if not 0 < self.score.reach <= _FURTHEST:
            raise InvalidParameter("reach", self.score.reach, f"between 0 and {_FURTHEST:g}", "Rescale the score.")
        if self.score_bound > _LARGEST_BOUND:
            raise InvalidParameter("psi", self.score, "to be smaller at this scale", "Divide it by a public number.")

    @property
    def score_bound(self) -> int:
        """Returns the largest |psi|, in steps."""
        return self._clip if self._clip is not None else int(np.abs(self._psi).max())

    @property
    def slope_range(self) -> tuple[int, int]:
        """Returns the smallest and the largest slope, in units of 1 / SLOPE_UNIT."""
        return min(0, int(self._slope.min())), max(1, int(self._slope.max()))

    def psi(self, differences: Integers) -> Integers:
        """Returns the scores of differences, both in steps."""
        if self._clip is not None:
            return np.asarray(np.clip(differences, -self._clip, self._clip))
        return np.asarray(self._psi[self._bins(differences)])

    def slopes(self, differences: Integers) -> Integers:
        """Returns slopes at differences."""
        if self._clip is not None:
            return SLOPE_UNIT * (np.abs(differences) < self._clip).astype(np.int64)
        return np.asarray(self._slope[self._bins(differences)])

    def squares(self, differences: Integers) -> Integers:
        """Returns psi^2 / bound, rounded down: from 0 to `score_bound`."""
        found = self.psi(differences)
        return np.asarray(found * found // self.score_bound)

    @cached_property
    def _clip(self) -> int | None:
        return max(1, round(self.score.k * self.scale)) if isinstance(self.score, Huber) else None

    @property
    def _bin(self) -> int:
        return max(1, self.scale // _BINS)

    @property
    def _half(self) -> int:
        return math.ceil(self.score.reach * self.scale / self._bin)

    def _bins(self, differences: Integers) -> Integers:
        half = self._half
        return np.asarray(np.clip(differences // self._bin, -half, half - 1) + half)

    def _table(self, values: Floats, unit: int) -> Integers:
        if values.shape != (2 * self._half,) or not (np.abs(values) <= 1 << 10).all() or not values.any():
            hint = "psi and slope take an array and return one of the same shape; a score is bounded and not all 0."
            raise InvalidParameter("score", self.score, "to be bounded by 1024", hint)
        return np.rint(values * unit).astype(np.int64)

    @cached_property
    def _points(self) -> Floats:
        return np.asarray((np.arange(-self._half, self._half) + 0.5) * (self._bin / self.scale), dtype=np.float64)

    @cached_property
    def _psi(self) -> Integers:
        return self._table(np.asarray(self.score.psi(self._points), dtype=np.float64), self.scale)

    @cached_property
    def _slope(self) -> Integers:
        return self._table(np.asarray(self.score.slope(self._points), dtype=np.float64), SLOPE_UNIT)
