"""Smooth sensitivity of order statistics and trimmed means, exactly, and smooth bounds of gaps between ranks.

Write x_1 <= ... <= x_n for the sorted values, x_i = low for i < 1 and x_i = high for i > n, and for ranks l <= r

    M_k(x) = max over a, b >= 0 with a + b = k of x_(r + b) - x_(l - a).

For neighbours x, x' under REPLACE M_k(x) <= M_(k + 1)(x'): if the replaced value grew, x_i <= x'_i and x'_(i - 1) <=
x_i for all i, so that the pair (a, b) of x is no further apart than (a + 1, b) of x'; if it fell, (a, b + 1). Hence

* U(x) = max_k e^(-beta k) M_k(x) is a beta-smooth bound of the gap x_r - x_l: U(x) >= M_0, U(x) <= e^beta U(x');
* one replaced value moves an order statistic (l = r), or n - 2m times a trimmed mean (l = m + 1, r = n - m), by at most
  M_1, so S(x) = max_k e^(-beta k) M_(k + 1)(x) is beta-smooth. It is the smallest such function, the smooth sensitivity
  (Nissim, Raskhodnikova, Smith 2007), since k replaced values can be chosen so that one more moves it by M_(k + 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.exact import Enclosure, upper

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_POWERS = np.append(0, 1 << np.arange(40))

INFLATION = Fraction(1, 1 << 24)
"""By which share what is returned here may exceed the exact smooth function; it is never below it."""


def order_statistic(steps: Integers, width: int, rank: int, beta: Fraction, floor: Fraction) -> Fraction:
    """The smooth sensitivity of the value of a rank, in steps, raised to the floor.

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
    """The smooth sensitivity of the mean of all but the `trimmed` smallest and largest values, raised to the floor.

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
    """max over k of e^(-beta k) M_(k + changes), raised to the floor, at most 1 + INFLATION times as large.

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
    best = max(math.log(floor), sides.sampled())
    found = sides.within(int(max(0.0, (math.log(width) - best) / float(beta))) + changes + 2).best_pair()
    if found is None:
        return floor
    a, b = found
    gap, k = int(sides.highs[b] - sides.lows[a]), a + b - changes
    exact = upper(lambda digits: Enclosure.of(-beta * k, digits).exp() * gap)
    return max(exact * (1 + INFLATION / 2), floor)


@dataclass(frozen=True, slots=True)
class _Sides:
    """What can come to the two ranks.

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
        """Only what is that near."""
        return _Sides(self.lows[: reach + 1], self.highs[: reach + 1], self.rate, self.changes)

    def scores(self, a: Integers, b: Integers) -> Floats:
        """ln((x_(r + b) - x_(l - a)) e^(-rate (a + b))): minus infinity where nothing moves or too little changes."""
        with np.errstate(divide="ignore"):
            scores: Floats = np.log((self.highs[b] - self.lows[a]).astype(np.float64)) - self.rate * (a + b)
        scores[(a + b) < self.changes] = -np.inf
        return scores

    def sampled(self) -> float:
        """A lower bound of the logarithm of the result, from few pairs: those at powers of two."""
        a, b = (np.unique(np.minimum(_POWERS, side.size - 1)) for side in (self.lows, self.highs))
        scores = self.scores(np.repeat(a, b.size), np.tile(b, a.size))
        return float(scores.max()) + self.rate * self.changes

    def best_pair(self) -> tuple[int, int] | None:
        """The a and b of the largest score: the best b falls as a grows, so rows are halved, a whole level at once.

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
        """The largest score of each row a among b from bottom to top, and the first b that has it."""
        counts = top - bottom + 1
        starts = np.cumsum(counts) - counts
        b = np.arange(int(counts.sum())) - np.repeat(starts - bottom, counts)
        scores = self.scores(np.repeat(rows, counts), b)
        peaks = np.maximum.reduceat(scores, starts)
        ties = np.flatnonzero(scores == np.repeat(peaks, counts))
        return peaks, b[ties[np.searchsorted(ties, starts)]]
