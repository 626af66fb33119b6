"""Streams under pure differential privacy: sums over blocks of 1, 2, 4, ... periods, each with Laplace noise.

Notation: a *node* of level h is a block of 2^h periods that begins at a multiple of 2^h. A value lies in one node of
each level, so that L levels with the budgets e_0, ..., e_(L-1) cost their sum.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.mechanisms.sums import laplace_logs, laplace_tilts, tilted_reach
from discreet.noise import Bits
from discreet.noise.draw_buffer import DiscreteLaplaces
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.stream.factor import EstimateError, StreamLine, StreamMechanism

UNKNOWN_LEVELS = 41  # for streams of unknown horizon, which end after 2^40 periods
_TINY = 1e-280  # a variance that is none


@dataclass(frozen=True, eq=False)
class LaplaceTree(StreamMechanism):
    """Adds exact discrete Laplace noise to the sum of each node when its last period ends.

    Formal guarantee: pure DP with epsilon the sum of `epsilons`, also if values depend on earlier releases: whatever
    was released, one unit moves the sums of level h by at most `steps` in the L1 norm (Dwork, Naor, Pitassi, Rothblum
    2010; Chan, Shi, Song 2011).

    A node's estimate is the combination of least variance of its own measurement and of its children's estimates,
    which are independent of it (Honaker 2015): v_0 = s_0 and v_h = 1 / (1 / s_h + 1 / (2 v_(h-1))) for noise of the
    variances s_h.

    Args:
        epsilons: of the levels, lowest first.
        steps: how far one unit moves all values of a stream together, in the L1 norm.
        window: over how many periods sums go; None for all.
    """

    epsilons: tuple[Fraction, ...]
    steps: int
    window: int | None = None
    method: str = "tree"

    @property
    def levels(self) -> int:
        """Returns how many levels are measured."""
        return len(self.epsilons)

    @property
    def event(self) -> Event:
        """Returns what all periods together cost, for accounting."""
        if len(set(self.epsilons)) == 1:  # all levels are one release of more dimensions
            return events.DiscreteLaplace(scale=self.steps / self.epsilons[0], sensitivity=self.steps * self.levels)
        parts = [events.DiscreteLaplace(scale=self.steps / e, sensitivity=self.steps) for e in self.epsilons]
        return events.Composed(tuple(parts))

    def line(self) -> StreamLine:
        """Returns a new line, before the first period."""
        return _TreeLine(self.levels, self.shares, self.window)

    def noise(self, bits: Bits) -> Callable[[list[int]], list[int]]:
        """Returns the function that adds the noise of each level to the nodes that end in a period."""
        laplaces = [DiscreteLaplaces(self.steps / e, bits) for e in self.epsilons]
        return lambda sums: [laplace.around(value) for laplace, value in zip(laplaces, sums, strict=False)]

    @cached_property
    def _noise_variances(self) -> list[float]:
        """Returns the variance of one draw of each level: 2 a / (1 - a)^2 with a = exp(-1 / scale)."""
        rates = [float(e / self.steps) for e in self.epsilons]
        return [max(2 * math.exp(-rate) / math.expm1(-rate) ** 2, _TINY) for rate in rates]

    @cached_property
    def variances(self) -> list[float]:
        """Returns the variance of a node's estimate, for each level."""
        found: list[float] = []
        for noise in self._noise_variances:
            found.append(1 / (1 / noise + 1 / (2 * found[-1])) if found else noise)
        return found

    @cached_property
    def shares(self) -> list[float]:
        """Returns the weight of a node's own measurement in its estimate, for each level."""
        pairs = zip(self.variances, self._noise_variances, strict=True)
        return [v / noise for v, noise in pairs]

    def errors(self, confidence: Fraction) -> Iterator[EstimateError]:
        """Yields the error of each period; its reach is Chernoff's bound for the weighted sum of all draws."""
        tilts, logs = self._logs
        variances, outside = np.array(self.variances), float(1 - confidence)
        for nodes in _counts(self.levels, self.window):
            yield EstimateError(float(nodes @ variances), tilted_reach(nodes @ logs, tilts, outside))

    @cached_property
    def _logs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns tilts, and the logarithms of the mean of e^(tilt Z) for the error Z of one node of each level."""
        scales = [float(self.steps / e) for e in self.epsilons]
        largest = max(share * scale for share, scale in zip(self.shares, scales, strict=True))
        tilts = laplace_tilts(max(largest, scales[0]))
        found: list[NDArray[np.float64]] = []
        for level in range(self.levels):
            weights, counts = _draws(self.shares[: level + 1])
            terms = zip(weights, counts, scales, strict=False)
            found.append(np.sum([n * laplace_logs(w, s, tilts) for w, n, s in terms], axis=0))
        return tilts, np.array(found)


def _draws(shares: list[float]) -> tuple[list[float], list[int]]:
    """Returns the weights of draws in the top node's estimate, and their number, for each level from the lowest."""
    weights, counts, rest = [], [], 1.0
    for depth, share in enumerate(reversed(shares)):
        weights.append(rest * share)
        counts.append(1 << depth)
        rest *= 1 - share
    return weights[::-1], counts[::-1]


def _counts(levels: int, window: int | None) -> Iterator[NDArray[np.float64]]:
    """Yields the number of nodes of each level that a sum is made of, period by period."""
    period = 0
    while True:
        period += 1
        if window is None:
            low = [float(period >> h & 1) for h in range(levels - 1)]
            yield np.array([*low, float(period >> (levels - 1))])
        else:
            found = [0.0] * levels
            for level, _ in blocks(max(0, period - window), period, levels):
                found[level] += 1
            yield np.array(found)


def blocks(first: int, end: int, levels: int) -> Iterator[tuple[int, int]]:
    """Yields level and number of the fewest nodes that cover the periods from `first` to before `end`.

    >>> list(blocks(3, 9, 3))
    [(0, 3), (2, 1), (0, 8)]
    """
    while first < end:
        level = levels - 1
        while first % (1 << level) or first + (1 << level) > end:
            level -= 1
        yield level, first >> level
        first += 1 << level


class _TreeLine(StreamLine):
    __slots__ = ("_base", "_count", "_left", "_levels", "_nodes", "_seen", "_shares", "_window")

    def __init__(self, levels: int, shares: list[float], window: int | None) -> None:
        self._levels, self._shares, self._window = levels, shares, window
        self._count = self._seen = 0  # periods on the private and on the public side
        self._left = [0] * levels  # the sum of the last left node of each level
        self._base = 0.0  # of finished nodes of the highest level, of running sums
        kept = [1 if window is None else window // (1 << h) + 2 for h in range(levels)]
        self._nodes = [deque[float](maxlen=max(2, size)) for size in kept]

    def measure(self, value: int) -> list[int]:
        """Takes the next value, and returns the sums of nodes that end with it, lowest level first."""
        self._count += 1
        sums, node = [value], value
        for level in range(self._levels - 1):
            if self._count >> level & 1:
                self._left[level] = node
                return sums
            node += self._left[level]
            sums.append(node)
        return sums

    def absorb(self, noisy: list[int]) -> float:
        """Takes them with their noise, and returns the estimate of this period's sum."""
        self._seen += 1
        estimate = 0.0
        for level, measured in enumerate(noisy):
            estimate = float(measured)
            if level:
                share, below = self._shares[level], self._nodes[level - 1]
                estimate = share * measured + (1 - share) * (below[-1] + below[-2])
            self._nodes[level].append(estimate)
        return self._running_sum(len(noisy), estimate) if self._window is None else self._window_sum(self._window)

    def _running_sum(self, finished: int, highest: float) -> float:
        if finished == self._levels:
            self._base += highest
        low = range(self._levels - 1)
        return self._base + sum(self._nodes[h][-1] for h in low if self._seen >> h & 1)

    def _window_sum(self, window: int) -> float:
        total = 0.0
        for level, number in blocks(max(0, self._seen - window), self._seen, self._levels):
            total += self._nodes[level][number - (self._seen >> level)]  # counted from the last one
        return total


def best_tree(epsilon: Fraction, steps: int, *, horizon: int | None, window: int | None) -> LaplaceTree:
    """Returns the tree with the number of levels, chosen by public facts, whose largest error is the least.

    Few levels cost less each, many need fewer nodes for a long sum. If there is no horizon to choose by, level h gets
    a budget proportional to (h + 6)^-2, for 2^40 periods.
    """
    if horizon is None and window is None:
        shares = [Fraction(1, (h + 6) ** 2) for h in range(UNKNOWN_LEVELS)]
        return LaplaceTree(tuple(epsilon * share / sum(shares) for share in shares), steps)
    longest = min(size for size in (horizon, window) if size is not None)
    trees = [LaplaceTree((epsilon / count,) * count, steps, window) for count in range(1, longest.bit_length() + 1)]
    return min(trees, key=lambda tree: _worst(tree.variances, longest, window))


def _worst(variances: list[float], longest: int, window: int | None) -> float:
    """Returns the largest variance of a running sum, or a bound for windows, which may begin and end with any nodes."""
    *low, top = variances
    if window is not None:
        return 2 * sum(low) + (longest >> len(low)) * top
    number, rest = longest >> len(low), longest & ((1 << len(low)) - 1)
    full = (number - 1) * top + sum(low) if number else 0.0
    cleared = [h for h in range(len(low)) if rest >> h & 1]
    ends = [sum(v for h, v in enumerate(low) if rest >> h & 1)]
    ends += [sum(v for h, v in enumerate(low) if (rest >> h & 1 and h > c) or h < c) for c in cleared]
    return max(full, number * top + max(ends))
