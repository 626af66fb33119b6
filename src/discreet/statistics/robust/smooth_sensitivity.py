"""How far estimators of location move: smooth sensitivities, exactly, and influence functions. All of it is private.

*Smooth sensitivity.* Write x_1 <= ... <= x_n for the sorted values, x_i = low for i < 1 and x_i = high for i > n, and
for ranks l <= r

    M_k(x) = max over a, b >= 0 with a + b = k of x_(r + b) - x_(l - a).

For neighbours x, x' under REPLACE M_k(x) <= M_(k + 1)(x'): if the replaced value grew, x_i <= x'_i and x'_(i - 1) <=
x_i for all i, so that the pair (a, b) of x is no further apart than (a + 1, b) of x'; if it fell, (a, b + 1). Hence

* U(x) = max_k e^(-beta k) M_k(x) is a beta-smooth bound of the gap x_r - x_l: U(x) >= M_0, U(x) <= e^beta U(x');
* one replaced value moves an order statistic (l = r), or n - 2m times a trimmed mean (l = m + 1, r = n - m), by at most
  M_1, so S(x) = max_k e^(-beta k) M_(k + 1)(x) is beta-smooth. It is the smallest such function, the smooth sensitivity
  (Nissim, Raskhodnikova, Smith 2007), since k replaced values can be chosen so that one more moves it by M_(k + 1).

*Influence.* Estimators are functions of a distribution, and a little contamination moves them. The influence function
is IF(z) = lim_(t -> 0) (T((1 - t) F + t delta_z) - T(F)) / t, for an M-estimator M^-1 psi(z, T(F)) with M =
-E[d psi / d theta] (Hampel 1974); the fixed-scale version IF_t keeps t, and t = 1 / n is one more value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import Number
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.exact import Enclosure, upper
from discreet.lazy import optimize

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_POWERS = np.append(0, 1 << np.arange(40))

INFLATION = Fraction(1, 1 << 24)
"""By which share what is returned here may exceed the exact smooth function; it is never below it."""

HUBER = 1.345  # 95 % efficiency for normal data


def order_statistic(steps: Integers, width: int, rank: int, beta: Fraction, floor: Fraction) -> Fraction:
    """Returns the smooth sensitivity of the value of a rank, in steps, raised to the floor.

    Args:
        steps: sorted values from 0 to `width`.
        width: the public upper end.
        rank: from 1 to the number of values.
        beta: the public smoothness.
        floor: public, above 0, in steps.

    >>> found = order_statistic(np.array([1, 4, 5, 7, 9]), 10, 3, Fraction(1, 10), Fraction(1, 1000))
    >>> round(float(found), 5)
    6.06531
    """
    return smooth_gap(steps, width, (rank, rank), beta, floor, changes=1)


def trimmed_mean(steps: Integers, width: int, trimmed: int, beta: Fraction, floor: Fraction) -> Fraction:
    """Returns the smooth sensitivity of the mean without the `trimmed` smallest and largest values, floored.

    >>> found = trimmed_mean(np.array([1, 4, 5, 7, 9]), 10, 1, Fraction(1, 10), Fraction(1, 1000))
    >>> round(float(found), 6)
    2.469394
    """
    kept = steps.size - 2 * trimmed
    ranks = trimmed + 1, steps.size - trimmed
    return smooth_gap(steps, width, ranks, beta, floor * kept, changes=1) / kept


def smooth_gap(
    steps: Integers, width: int, ranks: tuple[int, int], beta: Fraction, floor: Fraction, *, changes: int = 0
) -> Fraction:
    """Returns max over k of e^(-beta k) M_(k + changes), raised to the floor, at most 1 + INFLATION times as large.

    Work is O(K log K) for the K = ln(width / floor) / beta places next to the two ranks: what lies further away weighs
    less than the floor. The pair that is found by floats may miss the best one by less than 10^-9 of its weight (see
    `_Sides.best_pair`); its own weight is enclosed exactly, and INFLATION covers both.

    Args:
        steps: sorted values from 0 to `width`.
        width: the public upper end.
        ranks: the lower and the upper rank, from 1 to the number of values.
        beta: the public smoothness.
        floor: public, above 0, in steps.
        changes: 0 for a bound of the gap itself, 1 for how far one replaced value can move it.
    """
    sides = _Sides.of(steps, width, ranks, float(beta), changes)
    best = max(math.log(floor), sides.sample_lower_bound())
    found = sides.within(int(max(0.0, (math.log(width) - best) / float(beta))) + changes + 2).best_pair()
    if found is None:
        return floor
    a, b = found
    gap, k = int(sides.highs[b] - sides.lows[a]), a + b - changes
    exact = upper(lambda digits: Enclosure.of(-beta * k, digits).exp() * gap)
    return max(exact * (1 + INFLATION / 2), floor)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Holds what can come to the two ranks.

    Attributes:
        lows: x_l, x_(l - 1), ..., x_1, 0.
        highs: x_r, x_(r + 1), ..., x_n, width.
        rate: beta.
        changes: the smallest a + b that counts.
    """

    lows: Integers
    highs: Integers
    rate: float
    changes: int

    @classmethod
    def of(cls, steps: Integers, width: int, ranks: tuple[int, int], rate: float, changes: int) -> _Sides:
        left, right = ranks
        return cls(np.append(steps[:left][::-1], 0), np.append(steps[right - 1 :], width), rate, changes)

    def within(self, reach: int) -> _Sides:
        """Returns only the pairs that are that near."""
        return _Sides(self.lows[: reach + 1], self.highs[: reach + 1], self.rate, self.changes)

    def scores(self, a: Integers, b: Integers) -> Floats:
        """Returns ln((x_(r + b) - x_(l - a)) e^(-rate (a + b))).

        It is minus infinity where nothing moves or too little changes.
        """
        with np.errstate(divide="ignore"):
            scores: Floats = np.log((self.highs[b] - self.lows[a]).astype(np.float64)) - self.rate * (a + b)
        scores[(a + b) < self.changes] = -np.inf
        return scores

    def sample_lower_bound(self) -> float:
        """Returns a lower bound of the logarithm of the result, from few pairs: those at powers of two."""
        a, b = (np.unique(np.minimum(_POWERS, side.size - 1)) for side in (self.lows, self.highs))
        scores = self.scores(np.repeat(a, b.size), np.tile(b, a.size))
        return float(scores.max()) + self.rate * self.changes

    def best_pair(self) -> tuple[int, int] | None:
        """Returns the a and b of the largest score.

        The best b falls as a grows, so rows are halved, a whole level at once.

        For a > a' the ratio of the weights of b' > b is proportional to (x_(r + b') - x_(l - a)) / (x_(r + b) - x_(l -
        a)), which grows with x_(l - a): if b' beats b for a, it does so for every smaller a'. If b' is only nearly as
        good, by a factor 1 - u of rounding, the same ratio shows that a row which must do without b loses at most that
        factor. All levels together lose below 60 u, and u < 10^-12 because no logarithm exceeds 2^11.
        """
        best, pair = -math.inf, None
        first, last = np.array([0]), np.array([self.lows.size - 1])
        bottom, top = np.array([0]), np.array([self.highs.size - 1])
        while first.size:
            middle = (first + last) // 2
            peaks, chosen = self._row_peaks(middle, bottom, top)
            row = int(np.argmax(peaks))
            if peaks[row] > best:
                best, pair = float(peaks[row]), (int(middle[row]), int(chosen[row]))
            first, last = np.concatenate([first, middle + 1]), np.concatenate([middle - 1, last])
            bottom, top = np.concatenate([chosen, bottom]), np.concatenate([top, chosen])
            some = first <= last
            first, last, bottom, top = first[some], last[some], bottom[some], top[some]
        return pair

    def _row_peaks(self, rows: Integers, bottom: Integers, top: Integers) -> tuple[Floats, Integers]:
        """Returns the largest score of each row a among b from bottom to top, and the first b that has it."""
        counts = top - bottom + 1
        starts = np.cumsum(counts) - counts
        b = np.arange(int(counts.sum())) - np.repeat(starts - bottom, counts)
        scores = self.scores(np.repeat(rows, counts), b)
        peaks = np.maximum.reduceat(scores, starts)
        ties = np.flatnonzero(scores == np.repeat(peaks, counts))
        return peaks, b[ties[np.searchsorted(ties, starts)]]


class Functional(ABC):
    """An estimator of location: a function of weighted points that moves in the direction in which a point moves."""

    @abstractmethod
    def at(self, points: Floats, weights: Floats) -> float:
        """Returns T of the distribution that gives sorted points these weights, which add up to 1."""

    @abstractmethod
    def influence(self, points: Floats, at: float) -> float:
        """Returns IF at a place, for the distribution that gives every point the same weight."""

    def of(self, points: Floats) -> float:
        """Returns T of the data."""
        return self.at(points, np.full(points.size, 1 / points.size))

    def influence_at(self, points: Floats, at: float, share: float) -> float:
        """Returns IF_t at a place, t = share."""
        mixed = np.append(points, at)
        weights = np.append(np.full(points.size, (1 - share) / points.size), share)
        order = np.argsort(mixed, kind="stable")
        return (self.at(mixed[order], weights[order]) - self.of(points)) / share


@dataclass(frozen=True, slots=True)
class MeanFunctional(Functional):
    """Computes the mean of weighted points."""

    def at(self, points: Floats, weights: Floats) -> float:
        """Returns the weighted sum."""
        return float(np.sum(weights * points))

    def influence(self, points: Floats, at: float) -> float:
        """Returns the distance from the mean."""
        return at - float(np.mean(points))


@dataclass(frozen=True, slots=True)
class TrimmedMeanFunctional(Functional):
    """The mean between the quantiles `trim` and 1 - trim."""

    trim: float

    def at(self, points: Floats, weights: Floats) -> float:
        """Returns the integral of the quantile function over the middle, divided by its length."""
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        inside = np.diff(np.clip(ends, self.trim, 1 - self.trim))
        return float(np.sum(inside * points) / np.sum(inside))

    def influence(self, points: Floats, at: float) -> float:
        """Returns (w(z) - mean of w) / (1 - 2 trim), w clipping to the two quantiles."""
        low, high = np.quantile(points, [self.trim, 1 - self.trim], method="inverted_cdf").tolist()
        return float((np.clip(at, low, high) - np.mean(np.clip(points, low, high))) / (1 - 2 * self.trim))


@dataclass(frozen=True, slots=True)
class MedianFunctional(Functional):
    """The median; half-way between the ends of the interval where the distribution function is one half."""

    def at(self, points: Floats, weights: Floats) -> float:
        """Returns the middle of all points at which half of the weight is reached."""
        reached = np.cumsum(weights)
        low = int(np.searchsorted(reached, 0.5 - 1e-12))
        high = int(np.searchsorted(reached, 0.5 + 1e-12))
        return float(points[low] + points[min(high, points.size - 1)]) / 2

    def influence(self, points: Floats, at: float) -> float:  # noqa: ARG002  # refused whatever they are
        """Refuses: it would be sign(z - T) / (2 f(T)), and data has no density f."""
        hint = "Pass share=1/len(x) for the influence of one more value."
        raise InvalidParameter("share", None, "to be given for a median", hint)


@dataclass(frozen=True, slots=True)
class HuberFunctional(Functional):
    """The root of the sum of psi((x - T) / scale), psi clipping to [-k, k]; the scale is fixed."""

    k: float
    scale: float

    def at(self, points: Floats, weights: Floats) -> float:
        """Returns where the sum, which falls in T, passes 0; the middle of the places if there are several."""

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
        """Returns scale psi(r) / P(|r| < k); infinite if no point is inside."""
        residuals = (points - self.of(points)) / self.scale
        inside = float(np.mean(np.abs(residuals) < self.k))
        own = float(np.clip((at - self.of(points)) / self.scale, -self.k, self.k))
        return self.scale * own / inside if inside else float(np.copysign(np.inf, own))


def _crossing(falling: Any, low: float, high: float) -> float:
    """Returns where a falling function passes 0 between two places, or the nearer end if it does not."""
    if falling(low) <= 0:
        return low
    if falling(high) >= 0:
        return high
    return float(optimize.brentq(falling, low, high, xtol=1e-13, rtol=1e-15))


def functional(estimator: str, *, trim: Number = 0.1, k: Number = HUBER, scale: Number = 1) -> Functional:
    """Returns an estimator by its name: "mean", "median", "trimmed_mean" or "huber".

    >>> functional("huber").of(np.array([0.0, 0.0, 100.0]))
    0.6725
    """
    share = check.share(trim=trim)
    if share >= 1 / 2:
        raise InvalidParameter("trim", trim, "below 1/2")
    known = {
        "mean": MeanFunctional(),
        "median": MedianFunctional(),
        "trimmed_mean": TrimmedMeanFunctional(float(share)),
        "huber": HuberFunctional(float(check.positive(k=k)), float(check.positive(scale=scale))),
    }
    if estimator not in known:
        raise InvalidParameter("estimator", estimator, f"to be one of {', '.join(known)}")
    return known[estimator]
