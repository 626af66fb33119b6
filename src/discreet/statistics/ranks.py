"""Points near given ranks of a column: one by itself, or several by dividing the values again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.exact import root_below
from discreet.mechanisms import Quantile
from discreet.noise import Bits
from discreet.privacy import Neighbours
from discreet.privacy.events import Concentrated, Event, Pure
from discreet.statistics.column import Column
from discreet.statistics.spending import Spending

Integers = NDArray[np.int64]

_GRAIN = 20  # bits by which equal values are told apart
_LONGEST = 1 << 20  # of the denominator of a share within a part


def one_point(column: Column, share: Fraction, spending: Spending, bits: Bits) -> tuple[int, Event]:
    """The step of a private quantile of a column, and its price."""
    mechanism = choice(share, column.width, spending, column.neighbours)
    return int(mechanism.release(column.steps, bits=bits)), mechanism.event


def choice(share: Fraction, last: int, spending: Spending, neighbours: Neighbours) -> Quantile:
    """The draw of a quantile among the whole numbers from 0 to `last`, for all of a budget."""
    return Quantile(
        epsilon=spending.range_epsilon, quantile=share, bounds=(0, max(last, 1)), grid=1, neighbours=neighbours
    )


def levels(count: int) -> int:
    """How often values are divided until each of so many quantiles has been a middle: floor(log2 count) + 1."""
    return count.bit_length()


def many_points(column: Column, shares: Sequence[Fraction], spending: Spending, bits: Bits) -> tuple[list[int], Event]:
    """The steps of several private quantiles, given in ascending order, and their price.

    The middle one is drawn among all values. It divides them, and the others are drawn in their part, at the rank that
    is theirs within it, and so on (Kaplan, Schnapp, Stemmer 2022). Values that are equal would all fall to one side:
    each value is given random bits after its last one first, which are its own and independent of all else.

    Formal guarantee: the budget. Fix those bits, and what earlier levels have released: both bound the loss for every
    choice of them, and pure DP and zCDP are kept by mixing. A value is in one part of a level.

    - ADD_REMOVE: one part is moved, by one value more or less, and the other parts are drawn as before: a level costs
      what one draw costs, epsilon_0, or epsilon_0^2 / 8 in zCDP.
    - REPLACE, the first level: one part, and a draw for this relation. Other levels, with draws for ADD_REMOVE of
      epsilon_0: either one part loses a value and another gets one, which is 2 epsilon_0; or one part keeps its number
      and its losses move by 1, where epsilon_0 pays for max(q, 1 - q) >= 1/2: at most 2 epsilon_0 again.
    - REPLACE in zCDP: draws for REPLACE, which pay for moves of 1: 2 epsilon_0^2 / 8 in two parts, half of it in one.
    """
    if len(shares) == 1:
        point, price = one_point(column, shares[0], spending, bits)
        return [point], price
    part = spending.share(Fraction(1, levels(len(shares))))
    spread = (column.steps << _GRAIN) | (bits.words(column.size) >> np.uint64(64 - _GRAIN)).astype(np.int64)
    tree = _Tree(tuple(shares), column.neighbours, part, bits)
    ends = 0, ((column.width + 1) << _GRAIN) - 1
    tops = tree.divide(np.sort(spread), (0, len(shares)), ends, (Fraction(0), Fraction(1)))
    event: Event = Pure(spending.pure_epsilon) if spending.is_pure else Concentrated(spending.rho)
    return [top >> _GRAIN for top in tops], event


@dataclass(frozen=True, slots=True)
class _Tree:
    """How quantiles are drawn in the parts of one column, each level for the same budget."""

    shares: tuple[Fraction, ...]
    neighbours: Neighbours
    spending: Spending
    bits: Bits

    def divide(
        self, values: Integers, among: tuple[int, int], ends: tuple[int, int], of: tuple[Fraction, Fraction]
    ) -> list[int]:
        """The points of the quantiles numbered `among`, in the part of the sorted values between two ends."""
        first, stop = among
        if first == stop:
            return []
        middle = (first + stop) // 2
        own = ((self.shares[middle] - of[0]) / (of[1] - of[0])).limit_denominator(_LONGEST)
        point = self._draw(values, own, ends, whole=stop - first == len(self.shares))
        cut = int(np.searchsorted(values, point, side="right"))
        left = self.divide(values[:cut], (first, middle), (ends[0], point), (of[0], self.shares[middle]))
        right = self.divide(values[cut:], (middle + 1, stop), (point, ends[1]), (self.shares[middle], of[1]))
        return [*left, point, *right]

    def _draw(self, values: Integers, share: Fraction, ends: tuple[int, int], *, whole: bool) -> int:
        if ends[0] == ends[1]:
            return ends[0]
        relation, epsilon = self._price(whole=whole)
        mechanism = Quantile(epsilon=epsilon, quantile=share, bounds=ends, grid=1, neighbours=relation)
        return int(mechanism.release(values, bits=self.bits))

    def _price(self, *, whole: bool) -> tuple[Neighbours, Fraction]:
        epsilon = self.spending.range_epsilon
        if self.neighbours is Neighbours.ADD_REMOVE or whole:
            return self.neighbours, epsilon
        if self.spending.is_pure:
            return Neighbours.ADD_REMOVE, epsilon / 2
        return Neighbours.REPLACE, root_below(epsilon**2 / 2)
