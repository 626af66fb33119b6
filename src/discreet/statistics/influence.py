"""Estimators of location as functions of a distribution, and how far a little contamination moves them.

The influence function is IF(z) = lim_(t -> 0) (T((1 - t) F + t delta_z) - T(F)) / t, for an M-estimator M^-1 psi(z,
T(F)) with M = -E[d psi / d theta] (Hampel 1974); the fixed-scale version IF_t keeps t, and t = 1 / n is one more value.
Every number here is an exact property of private data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.errors import InvalidParameter
from discreet.lazy import optimize

Floats = NDArray[np.float64]

HUBER = 1.345  # 95 % efficiency for normal data


class Functional(ABC):
    """An estimator of location: a function of weighted points that moves in the direction in which a point moves."""

    @abstractmethod
    def at(self, points: Floats, weights: Floats) -> float:
        """T of the distribution that gives sorted points these weights, which add up to 1."""

    @abstractmethod
    def influence(self, points: Floats, at: float) -> float:
        """IF at a place, for the distribution that gives every point the same weight."""

    def of(self, points: Floats) -> float:
        """T of the data."""
        return self.at(points, np.full(points.size, 1 / points.size))

    def fixed(self, points: Floats, at: float, share: float) -> float:
        """IF_t at a place, t = share."""
        mixed = np.append(points, at)
        weights = np.append(np.full(points.size, (1 - share) / points.size), share)
        order = np.argsort(mixed, kind="stable")
        return (self.at(mixed[order], weights[order]) - self.of(points)) / share


@dataclass(frozen=True, slots=True)
class Mean(Functional):
    """The mean."""

    def at(self, points: Floats, weights: Floats) -> float:
        """The weighted sum."""
        return float(np.sum(weights * points))

    def influence(self, points: Floats, at: float) -> float:
        """The distance from the mean."""
        return at - float(np.mean(points))


@dataclass(frozen=True, slots=True)
class TrimmedMean(Functional):
    """The mean between the quantiles `trim` and 1 - trim."""

    trim: float

    def at(self, points: Floats, weights: Floats) -> float:
        """The integral of the quantile function over the middle, divided by its length."""
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        inside = np.diff(np.clip(ends, self.trim, 1 - self.trim))
        return float(np.sum(inside * points) / np.sum(inside))

    def influence(self, points: Floats, at: float) -> float:
        """(w(z) - mean of w) / (1 - 2 trim), w clipping to the two quantiles."""
        low, high = np.quantile(points, [self.trim, 1 - self.trim], method="inverted_cdf").tolist()
        return float((np.clip(at, low, high) - np.mean(np.clip(points, low, high))) / (1 - 2 * self.trim))


@dataclass(frozen=True, slots=True)
class Median(Functional):
    """The median; half-way between the ends of the interval where the distribution function is one half."""

    def at(self, points: Floats, weights: Floats) -> float:
        """The middle of all points at which half of the weight is reached."""
        reached = np.cumsum(weights)
        low = int(np.searchsorted(reached, 0.5 - 1e-12))
        high = int(np.searchsorted(reached, 0.5 + 1e-12))
        return float(points[low] + points[min(high, points.size - 1)]) / 2

    def influence(self, points: Floats, at: float) -> float:  # noqa: ARG002  # refused whatever they are
        """There is none: it would be sign(z - T) / (2 f(T)), and data has no density f."""
        hint = "Pass share=1/len(x) for the influence of one more value."
        raise InvalidParameter("share", None, "to be given for a median", hint)


@dataclass(frozen=True, slots=True)
class Huber(Functional):
    """The root of the sum of psi((x - T) / scale), psi clipping to [-k, k]; the scale is fixed."""

    k: float
    scale: float

    def at(self, points: Floats, weights: Floats) -> float:
        """Where the sum, which falls in T, passes 0; the middle of the places if there are several."""

        def total(theta: float) -> float:
            return float(np.sum(weights * np.clip((points - theta) / self.scale, -self.k, self.k)))

        low, high = float(points[0]), float(points[-1])
        if low == high:
            return low
        nearly = 1e-13 * self.k
        left = _crossing(lambda theta: total(theta) - nearly, low, high)
        right = _crossing(lambda theta: total(theta) + nearly, low, high)
        return (left + right) / 2

    def influence(self, points: Floats, at: float) -> float:
        """scale psi(r) / P(|r| < k); infinite if no point is inside."""
        residuals = (points - self.of(points)) / self.scale
        inside = float(np.mean(np.abs(residuals) < self.k))
        own = float(np.clip((at - self.of(points)) / self.scale, -self.k, self.k))
        return self.scale * own / inside if inside else float(np.copysign(np.inf, own))


def _crossing(falling: Any, low: float, high: float) -> float:
    """Where a falling function passes 0 between two places, or the nearer end if it does not."""
    if falling(low) <= 0:
        return low
    if falling(high) >= 0:
        return high
    return float(optimize.brentq(falling, low, high, xtol=1e-13, rtol=1e-15))


def functional(estimator: str, *, trim: Number = 0.1, k: Number = HUBER, scale: Number = 1) -> Functional:
    """An estimator by its name: "mean", "median", "trimmed_mean" or "huber".

    >>> functional("huber").of(np.array([0.0, 0.0, 100.0]))
    0.6725
    """
    share = check.share(trim=trim)
    if share >= 1 / 2:
        raise InvalidParameter("trim", trim, "below 1/2")
    known = {
        "mean": Mean(),
        "median": Median(),
        "trimmed_mean": TrimmedMean(float(share)),
        "huber": Huber(float(check.positive(k=k)), float(check.positive(scale=scale))),
    }
    if estimator not in known:
        raise InvalidParameter("estimator", estimator, f"to be one of {', '.join(known)}")
    return known[estimator]
