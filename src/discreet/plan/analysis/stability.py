"""What one unit can change: from the extreme contributions of one row to the distances that noise must cover.

A row adds a vector to the statistics of its group. Whatever the row, that vector lies in the convex hull of a few
corners and of zero (a row that is filtered out adds nothing). Norms are convex, so their largest value is at a corner:
the maxima below are over finitely many integer vectors, exact, and named by relation.

*Groups.* A unit is kept in at most `limits.groups` groups. Of a grouping whose groups are K public keys, rows with
other keys are dropped before contributions are bounded, so that it is kept in at most g = min(limit, K). Without keys
there is one group: K = 1. Groups of private keys, and those that `other=` gathers, have no such number: g is the limit.

*One group.* Let f be a norm of the statistics of one group, or its square, and a unit have at most R rows there. Its
rows move the statistics by at most

    alone = max f(R c)          over corners c, if it comes or goes,
    stays = max f(R (c - c'))   over corners and zero, if its old rows go and others come: fewer than R are filled up
                                with zeros, R pairs of rows differ by at most the largest difference each, and the
                                largest value of a convex function is at corners.

Zero is among c', so that alone <= stays. For a norm stays <= 2 alone; for a square it may be up to 4 alone.

*All groups* (f adds up over groups). Under ADD_REMOVE the distance is at most g alone. Under REPLACE let the unit stay
in s groups, leave some and enter t in all of the others: s stays + t alone, where each of its two sets of groups has at
most g, t <= 2 (g - s), and there are K groups, t <= K - s. With overlap o = max(0, 2 g - K),

- for s <= o, t is at most K - s: the distance s stays + (K - s) alone grows with s, as stays >= alone;
- for s >= o, t is at most 2 (g - s): the distance s stays + 2 (g - s) alone is linear in s, so that it is largest at
  s = o or at s = g.

So the largest distance is

    o stays + (g - o) max(stays, 2 alone),

where the maximum is 2 alone for norms. Both ends exist: sets of g groups out of K overlap in o groups, or in all of g.
With K = 1 that is stays, with two groups that may both be entered it is 2 stays (a COUNT by two genders moves by 2,
not by 4), and with K >= 2 g, or K unknown, g max(stays, 2 alone). Several groupings are bounded one by one, and
what a unit moves in all of them adds up: g and o are the sums of theirs.

*Sums of groups.* Rows may be bounded once, by groups of many keys, and added up by fewer: then up to m of a unit's g
groups are parts of one sum. In the L1 norm sums are no farther apart than their parts. For squares, a unit that comes
or goes moves a sum by at most m R rows and all of them by at most g R: the sum of squares is largest where as many as
possible are in one, S = floor(g / m) m^2 + (g mod m)^2, times R^2 alone. A unit that is replaced moves sum k by
v_k - w_k, with the sums of its new rows and of its old ones, and

    sum |v_k - w_k|^2  <=  sum |v_k|^2 + sum |w_k|^2 + 2 sum a_k b_k h R^2  <=  2 S R^2 (alone + h),

where a_k and b_k are the numbers of its groups in sum k, sum a_k b_k <= S by Cauchy and Schwarz, and h is the largest
of -<c, c'> over corners, or zero: two rows point away from each other by no more. If there is one sum, g R pairs of
rows differ in it: g^2 R^2 stays.

*A total.* Where a unit has at most R rows in all groups of a grouping together, its rows are a point of R conv(C), the
hull of all corners in all groups and of zero. A change is a difference of two such points. It lies in a convex set
whose extreme points are R (c - c'), each corner in some group: in one group that is R rows which others replace, in two
R rows that go and R that come. So the distance is that of one group with R rows and no overlap:

    R alone                   under ADD_REMOVE,
    max(stays, 2 alone)       under REPLACE, where f adds up over groups; `stays` if K = 1.

Sums of groups are linear: the extreme points are the same, and so is the distance.

The distance is attained where corners are moves of rows, each statistic counts rows of its own or all move together:
all counts, sums, pairs and their NULLs. Corners around a curve (squares, cubes, products) lie outside of it, and what
two of them differ by is more than rows can: under REPLACE the bound is up to half as large again as the distance. Of
several groupings the same rows may not be able to attain all maxima at once. `tests/plan/test_stability.py` tries all
neighbours of small worlds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Self

from discreet.dataclass import dataclass
from discreet.plan.model.schema import Limits
from discreet.privacy import Neighbours

Corner = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContribution:
    """How much of a question one unit can touch.

    Args:
        limits: at most so many groups of a grouping per unit, and so many rows in each.
        neighbours: the relation.
        groups: that one unit can enter: of several groupings, in all of them together.
        overlap: in how many of them a replaced unit stays at least, if it leaves and enters as many as it can.
        gathers: whether the groups that are not shown are put together in one more.
        merged: how many of them may be parts of one sum, where groups are added up.
        single: whether all of them are.
        groupings: how many there are.
    """

    limits: Limits
    neighbours: Neighbours
    groups: int = 1
    overlap: int = 1
    gathers: bool = False
    merged: int = 1
    single: bool = False
    groupings: int = 1

    def added_up(self, *, sums: int, parts: int) -> Self:
        """Returns the contribution to so many sums of so many groups each."""
        return replace(self, merged=min(self.groups, parts), single=sums == 1)

    @classmethod
    def of(cls, *, limits: Limits, neighbours: Neighbours, shown: Sequence[int | None] = (1,)) -> Self:
        """Returns the contribution to groupings that show so many groups; None of private keys, 1 without keys.

        >>> both = QueryContribution.of(limits=Limits(5, 1), neighbours=Neighbours.REPLACE, shown=[2])
        >>> both.groups, both.overlap, both.l1([(1,)], [Fraction(1)])
        (2, 2, Fraction(2, 1))
        """
        counts = [None if count is None else max(count, 1) for count in shown]
        entered = [limits.groups if count is None else min(limits.groups, count) for count in counts]
        overlaps = [0 if n is None else max(0, 2 * g - n) for g, n in zip(entered, counts, strict=True)]
        return cls(
            limits=limits,
            neighbours=neighbours,
            groups=sum(entered),
            overlap=sum(overlaps),
            groupings=max(len(counts), 1),
        )

    @classmethod
    def by_limits(cls, *, limits: Limits, neighbours: Neighbours, grouped: Sequence[bool]) -> Self:
        """Returns the contribution by limits alone, as releases of earlier versions had it: more, never less."""
        groups = sum(limits.groups if has_keys else 1 for has_keys in grouped)
        overlap, groupings = 0 if any(grouped) else 1, max(len(grouped), 1)
        return cls(limits=limits, neighbours=neighbours, groups=groups, overlap=overlap, groupings=groupings)

    @property
    def rows(self) -> int:
        """Returns the rows that one unit has in a group, at most."""
        return self.limits.rows

    @property
    def full_groups(self) -> int:
        """Returns in how many groups one unit can have that many rows at once."""
        return self.groups if self.limits.total is None else min(self.groups, self.groupings)

    @property
    def full_overlap(self) -> int:
        """Returns in how many of these a replaced unit stays at least."""
        keeps = self.full_groups == self.groups or self.single
        return min(self.overlap, self.full_groups) if keeps else 0

    def l1(self, corners: Sequence[Corner], weights: Sequence[Fraction], *, once: bool = False) -> Fraction:
        """Computes the largest weighted L1 distance between the statistics of neighbours.

        Args:
            corners: extreme contributions of one row.
            weights: of each statistic, the inverse of its noise scale.
            once: whether a unit counts once per group, however many rows it has.

        Rows of one unit add up, in one group as in all of them.

        A group of what is not shown comes in addition, since which groups these are follows from released numbers of
        all of them. All rows of a unit may be in it, those of several groups added up.
        """
        whole, unit = _whole(weights)
        if self.gathers:
            gathered = self._in_all_groups(once) * max(_length(move, whole) for move in self._moves(corners))
            return replace(self, gathers=False).l1(corners, weights, once=once) + gathered * unit
        rows = 1 if once else self.limits.rows
        return rows * self._farthest(corners, lambda move: _length(move, whole), once=once) * unit

    def l2_squared(self, corners: Sequence[Corner], weights: Sequence[Fraction], *, once: bool = False) -> Fraction:
        """Computes the largest square of the weighted L2 distance; weights are inverse standard deviations.

        Rows of one unit in one group add up before squaring, groups after.
        """
        whole, unit = _whole(weights)
        if self.gathers:
            gathered = self._in_all_groups(once) ** 2 * max(_square(move, whole) for move in self._moves(corners))
            return replace(self, gathers=False).l2_squared(corners, weights, once=once) + gathered * unit**2
        rows = 1 if once else self.limits.rows
        if self.merged > 1 and (once or self.limits.total is None):
            return rows**2 * self._farthest_sums(corners, whole) * unit**2
        return rows**2 * self._farthest(corners, lambda move: _square(move, whole), once=once) * unit**2

    def _farthest_sums(self, corners: Sequence[Corner], weights: Sequence[int]) -> int:
        """Returns the largest square of a distance between sums of groups, of units with one row in each group."""
        full, rest = divmod(self.groups, self.merged)
        squares = full * self.merged**2 + rest**2
        alone = max(_square(corner, weights) for corner in corners)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return squares * alone
        apart = max(0, *(-_inner(one, other, weights) for one in corners for other in corners))
        bound = 2 * squares * (alone + apart)
        if not self.single:
            return bound
        return min(bound, squares * max(_square(move, weights) for move in _differences(corners)))

    def _farthest(self, corners: Sequence[Corner], size: Callable[[Corner], int], *, once: bool) -> int:
        """Returns the largest distance in all groups of units with one row in each."""
        groups, overlap = (self.groups, self.overlap) if once else (self.full_groups, self.full_overlap)
        alone = max(map(size, corners))
        if self.neighbours is Neighbours.ADD_REMOVE:
            return groups * alone
        stays = max(map(size, _differences(corners)))
        return overlap * stays + (groups - overlap) * max(stays, 2 * alone)

    def _in_all_groups(self, once: bool) -> int:
        """Returns how many rows one unit has in all its groups together, or how often it counts."""
        return self.groups if once else self.full_groups * self.limits.rows

    def _moves(self, corners: Sequence[Corner]) -> Sequence[Corner]:
        """Returns the extreme changes that one row makes to a sum: it comes or goes, or becomes another one."""
        return corners if self.neighbours is Neighbours.ADD_REMOVE else _differences(corners)


def _differences(corners: Sequence[Corner]) -> list[Corner]:
    """Returns what a row that becomes another one changes; opposite changes are of one size, and one is enough."""
    points = [*corners, (0,) * len(corners[0])]
    return [tuple([a - b for a, b in zip(new, old, strict=True)]) for new, old in combinations(points, 2)]


def _whole(weights: Sequence[Fraction]) -> tuple[list[int], Fraction]:
    """Weights as multiples of a unit that they have in common: sums of fractions would take most of the planning."""
    bottom = math.lcm(*(weight.denominator for weight in weights))
    return [weight.numerator * (bottom // weight.denominator) for weight in weights], Fraction(1, bottom)


def _length(vector: Corner, weights: Sequence[int]) -> int:
    return sum([abs(x) * w for x, w in zip(vector, weights, strict=True)])


def _inner(one: Corner, other: Corner, weights: Sequence[int]) -> int:
    return sum([x * y * w * w for x, y, w in zip(one, other, weights, strict=True)])


def _square(vector: Corner, weights: Sequence[int]) -> int:
    return sum([(x * w) ** 2 for x, w in zip(vector, weights, strict=True)])
