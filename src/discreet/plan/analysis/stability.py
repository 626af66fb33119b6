"""What one unit can change: from the extreme contributions of one row to the distances that noise must cover.

A row adds a vector to the statistics of its group. Whatever the row, that vector lies in the convex hull of a few
corners and of zero (a row that is filtered out adds nothing). Norms are convex, so their largest value is at a corner:
the maxima below are over finitely many integer vectors, exact, and named by relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from discreet.plan.model.schema import Limits
from discreet.privacy import Neighbours

Corner = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """How much of a question one unit can touch.

    Args:
        limits: at most so many groups per unit, and so many rows in each.
        grouped: whether there are several groups; without keys all rows are in one.
        neighbours: the relation.
        groupings: whether each of several groupings has several groups; none if there is but one grouping.
        gathers: whether the groups that are not shown are put together in one more.
    """

    limits: Limits
    grouped: bool
    neighbours: Neighbours
    groupings: tuple[bool, ...] = ()
    gathers: bool = False

    @property
    def rows(self) -> int:
        """Returns the rows that one unit has in a group, at most."""
        return self.limits.rows

    @property
    def groups(self) -> int:
        """Groups that one unit can enter: of several groupings, in all of them together."""
        if self.groupings:
            return sum(self.limits.groups if grouped else 1 for grouped in self.groupings)
        return self.limits.groups if self.grouped else 1

    def l1(self, corners: Sequence[Corner], weights: Sequence[Fraction], *, once: bool = False) -> Fraction:
        """Computes the largest weighted L1 distance between the statistics of neighbours.

        Args:
            corners: extreme contributions of one row.
            weights: of each statistic, the inverse of its noise scale.
            once: whether a unit counts once per group, however many rows it has.

        Under ADD_REMOVE rows of one unit add up, in all its groups. Under REPLACE the old rows go and others come: the
        difference of two contributions if there is one group, else both in full, because they may fall into different
        groups.

        A group of what is not shown comes in addition, since which groups these are follows from released numbers of
        all of them. All rows of a unit may be in it, those of several groups added up.
        """
        if self.gathers:
            gathered = self._in_all_groups(once) * max(_length(move, weights) for move in self._moves(corners))
            return replace(self, gathers=False).l1(corners, weights, once=once) + gathered
        rows = 1 if once else self.limits.rows
        one = max(_length(corner, weights) for corner in corners)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return self.groups * rows * one
        if self.grouped:
            return 2 * self.groups * rows * one
        return rows * max(_length(move, weights) for move in _differences(corners))

    def l2_squared(self, corners: Sequence[Corner], weights: Sequence[Fraction], *, once: bool = False) -> Fraction:
        """Computes the largest square of the weighted L2 distance; weights are inverse standard deviations.

        Rows of one unit in one group add up before squaring, groups after.
        """
        if self.gathers:
            gathered = self._in_all_groups(once) ** 2 * max(_square(move, weights) for move in self._moves(corners))
            return replace(self, gathers=False).l2_squared(corners, weights, once=once) + gathered
        rows = 1 if once else self.limits.rows
        one = max(_square(corner, weights) for corner in corners)
        if self.neighbours is Neighbours.ADD_REMOVE:
            return self.groups * rows**2 * one
        moved = max(_square(move, weights) for move in _differences(corners))
        apart = 2 * one if self.grouped else Fraction(0)
        return self.groups * rows**2 * max(moved, apart)

    def _in_all_groups(self, once: bool) -> int:
        """How many rows one unit has in all its groups together, or how often it counts."""
        return self.groups * (1 if once else self.limits.rows)

    def _moves(self, corners: Sequence[Corner]) -> Sequence[Corner]:
        """The extreme changes that one row makes to a sum: it comes or goes, or becomes another one."""
        return corners if self.neighbours is Neighbours.ADD_REMOVE else _differences(corners)


def _differences(corners: Sequence[Corner]) -> list[Corner]:
    points = [*corners, (0,) * len(corners[0])]
    return [tuple(a - b for a, b in zip(new, old, strict=True)) for new, old in product(points, points)]


def _length(vector: Corner, weights: Sequence[Fraction]) -> Fraction:
    return sum((abs(x) * w for x, w in zip(vector, weights, strict=True)), Fraction(0))


def _square(vector: Corner, weights: Sequence[Fraction]) -> Fraction:
    return sum(((x * w) ** 2 for x, w in zip(vector, weights, strict=True)), Fraction(0))
