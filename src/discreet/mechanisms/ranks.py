"""Ranks to look for, how far one unit moves the distance from them, and points drawn near them for a price.

Values lie on a public grid. Of n values, the point y of the grid claims all ranks from `below`, the number of values
below it, to `upto`, the number up to it; the first point claims all smaller ranks as well, and the last one all larger.
So every real number is a rank that some point claims. The *loss* of a point is the distance of the target from the
ranks that it claims. A point is drawn by the exponential mechanism, with a weight that falls with its loss.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from discreet.dataclass import dataclass
from discreet.exact import Enclosure, root_below, upper
from discreet.mechanisms.mechanism import Law
from discreet.privacy import Neighbours, events

FARTHEST = 1 << 32
"""A rank that no table reaches; fences that would be as far away are not made."""


class ContributionLimits(Protocol):
    """How much one unit can touch: so many rows in each of so many groups of values, or in fewer of those it enters."""

    @property
    def rows(self) -> int:
        """Returns the rows that a unit has in a group, at most."""

    @property
    def full_groups(self) -> int:
        """Returns in how many groups a unit can have so many rows at once."""

    @property
    def full_overlap(self) -> int:
        """Returns in how many of them a replaced unit stays at least, if it leaves and enters as many as it can."""

    @property
    def neighbours(self) -> Neighbours:
        """Returns the relation to protect."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class OneValueEach:
    """The contribution of units that have one value each, all in one group."""

    neighbours: Neighbours
    rows: int = 1
    full_groups: int = 1
    full_overlap: int = 1


Pieces = tuple[tuple[int, Fraction], ...]
"""How far one unit moves something in all groups together: so many times so far."""


def pieces(contribution: ContributionLimits, alone: Fraction | int, stays: Fraction | int) -> Pieces:
    """Returns the largest moves of all groups, from those of one.

    Let a unit that comes to a group or goes move it by at most `alone`, and one that stays in it, its rows replaced, by
    at most `stays` >= `alone`. Under ADD_REMOVE there are G groups. Under REPLACE there are G pieces: groups that it
    stays in, and pairs of a group left and a group entered, of 2 `alone`. Two sets of G groups share the `overlap` O at
    least, where there are that few: then O of the pieces are groups that it stays in, or one that it leaves or enters,
    which is no more. The others are whichever is more. Every move of neighbours is one of these lists, or smaller in
    each of its pieces. Where a unit has so many rows in all groups together, its moves add up to that of one group (or,
    squared, to less), and so do pairs of a move out of groups and one into others: then G is 1 for each grouping.
    """
    groups, overlap = contribution.full_groups, contribution.full_overlap
    if contribution.neighbours is Neighbours.ADD_REMOVE:
        found = [(groups, Fraction(alone))]
    else:
        apart = max(Fraction(stays), 2 * Fraction(alone))
        found = [(overlap, Fraction(stays)), (groups - overlap, apart)]
        if stays == apart:
            found = [(groups, apart)]
    return tuple((count, size) for count, size in found if count)


def total(moves: Pieces) -> Fraction:
    """Returns the sum of all pieces."""
    return sum((count * size for count, size in moves), Fraction(0))


@dataclass(frozen=True, slots=True)
class RankTarget:
    """The rank `share` n + `offset` of n values.

    Formal guarantee. With q = share and r = q n + offset, the loss of a point is the largest of 0, below - r and
    r - upto, where the second is left out for the first point and the third for the last one. One more value changes
    below and upto by 0 or 1 and r by q: each of the three changes by at most max(q, 1 - q), and so does their maximum.
    A value replaced by another leaves r alone and changes below and upto by at most 1 each, and so the loss. A NULL is
    no value; one that becomes a value, or the other way round, is a value more or less.

    Several rows change the loss by at most the sum (triangle inequality along tables that differ by one row each). So
    with at most R rows of a unit in a group, whatever they hold, the loss of every point of a group moves by at most

    - R max(q, 1 - q), if the unit's rows are added to the group or removed;
    - R, if up to R rows are replaced by up to R others: as many as possible are paired and move it by 1 each, those
      left over are added or removed and move it by less.
    """

    share: Fraction
    offset: int = 0

    @property
    def one(self) -> Fraction:
        """Returns how far one value more or less moves a loss."""
        return max(self.share, 1 - self.share)

    def moves(self, contribution: ContributionLimits) -> Pieces:
        """Returns how far one unit moves losses: R in a group that it stays in, R max(q, 1 - q) in another."""
        rows = contribution.rows
        return pieces(contribution, rows * self.one, rows)

    def l1(self, contribution: ContributionLimits) -> Fraction:
        """Returns the largest sum, over groups, of the moves of losses between neighbours."""
        return total(self.moves(contribution))

    def l2_squared(self, contribution: ContributionLimits) -> Fraction:
        """Returns the largest sum, over groups, of the squares of these moves.

        A group that a replaced unit stays in counts R^2, and two that it leaves and enters count 2 R^2 max(q, 1 - q)^2
        together: which of them is larger depends on q.
        """
        square = contribution.rows**2
        return total(pieces(contribution, square * self.one**2, square))


@dataclass(frozen=True, slots=True)
class DisjointRanks:
    """Ranks that are looked for at once in disjoint parts of the values: for each part, the share of its own values.

    A value at the point y is thought of as spread evenly from y to y + 1, so that a part may end within a point: below
    a real number z there is the mass M(z), the sum over values of F(z) = min(max(z - y, 0), 1). In the part from a to b
    with the share s let m(z) = M(z) - M(a). What lies from y to z, a <= y <= z <= b, has the loss max(0, m(y) - s m(b),
    s m(b) - m(z)).

    Formal guarantee. One more value adds w = F(b) - F(a) to m(b), and something from 0 to w to m(y) and to m(z). So
    m(y) - s m(b) changes by -s w to (1 - s) w, as does m(z) - s m(b), and the loss by at most w `one`, where `one` =
    max(s, 1 - s). The parts are disjoint: the w of one value add up to at most 1, those of R values to at most R.

    Moves below are in units of each part's own `one`: points are drawn with rates in inverse proportion to it.

    Args:
        shares: of the parts.
    """

    shares: tuple[Fraction, ...]

    @property
    def ones(self) -> tuple[Fraction, ...]:
        """Returns for each part how far one value more or less moves its losses, at most."""
        return tuple(RankTarget(share).one for share in self.shares)

    def moves(self, contribution: ContributionLimits) -> Pieces:
        """Returns how far one unit moves the losses of all parts of a group together: by R if it comes or goes.

        In a group that it stays in, its old rows leave parts and its new ones enter: 2 R. But a single part whose rows
        of weight w are replaced by those of weight v, both at most R, moves by (1 - s) v + s w or s v + (1 - s) w at
        most, which is R, or R / one in units of its own.
        """
        rows = contribution.rows
        return pieces(contribution, rows, 2 * rows if len(self.shares) > 1 else rows / self.ones[0])

    def l1(self, contribution: ContributionLimits) -> Fraction:
        """Returns the largest sum, over groups and parts, of the moves of losses between neighbours."""
        return total(self.moves(contribution))

    def l2_squared(self, contribution: ContributionLimits) -> Fraction:
        """Returns the largest sum, over groups and parts, of the squares of these moves.

        Weights in the parts of one group that add up to R have squares that add up to R^2 at most. Where rows are
        replaced within a group, the sum of squares is a convex function of the weights that leave the parts and of
        those that enter, so that it is largest where all leave one part and enter one: R^2 / one^2 if it is the same
        part, 2 R^2 if there is another.
        """
        square, stays = contribution.rows**2, 1 / min(self.ones) ** 2
        if len(self.shares) > 1:
            stays = max(stays, Fraction(2))
        return total(pieces(contribution, square, square * stays))


@dataclass(frozen=True, slots=True)
class RankAim:
    """A rank that is looked for, and how sharply: points have the weight e^(-rate loss)."""

    target: RankTarget
    rate: Fraction

    def reach(self, points: int, risk: Fraction) -> int:
        """Returns a loss that is reached with at most this probability, whatever the data.

        Some point has a loss of zero. So the points of a loss of t or more have the probability points e^(-rate t) at
        most, which is the risk for t = ln(points / risk) / rate.
        """
        return _reach(self.rate, points, risk)


@dataclass(frozen=True, slots=True)
class Pick(RankAim):
    """One point in every group, of probability proportional to e^(-rate loss).

    Formal guarantee: whatever the data, releasing the points of all groups, or of those that were selected to be shown,
    is described by `event` under the relation and the limits of the contribution it was built for.

    Proof. Let the loss of every point of group g move by at most m_g between two neighbours. Then the privacy loss of
    the point that is drawn there lies in an interval of length 2 rate m_g: it is rate times the move of that point's
    loss, plus the same constant for all points (Durfee, Rogers 2019). Groups are drawn independently. For `laplace`
    budgets, the lengths of all groups add up to at most epsilon = 2 rate `RankTarget.l1`. They can be put together as G
    releases, one for each of the `pieces`, G being the groups that a unit can enter: under ADD_REMOVE the groups
    themselves, under REPLACE a group left with a group entered, or one in which the unit stays. For `gaussian` budgets,
    a range e is e^2 / 8-zCDP (Cesar, Rogers 2021), and these add up to at most rate^2 `RankTarget.l2_squared` / 2 =
    rho.

    Args:
        target: the rank that is looked for.
        rate: in units of ranks.
        event: the price.
    """

    event: events.Event

    @classmethod
    def of(cls, law: Law, target: RankTarget, contribution: ContributionLimits, share: Fraction) -> Pick:
        """Returns the pick for an epsilon, or for a rho where the law is Gaussian."""
        return cls(target, *price_ranks(law, target, contribution, share))

    def shift_rank(self, ranks: int) -> Pick:
        """Returns the pick of a rank that is so far away: neither moves of losses nor the price change."""
        return replace(self, target=replace(self.target, offset=self.target.offset + ranks))


class Moves(Protocol):
    """How far one unit moves the losses, or the counts, that draws of the exponential mechanism are made by."""

    def moves(self, contribution: ContributionLimits) -> Pieces:
        """Returns the largest moves between neighbours."""

    def l1(self, contribution: ContributionLimits) -> Fraction:
        """Returns the largest sum, over groups, of the moves between neighbours."""

    def l2_squared(self, contribution: ContributionLimits) -> Fraction:
        """Returns the largest sum, over groups, of the squares of these moves."""


def price_ranks(
    law: Law, moves: Moves, contribution: ContributionLimits, share: Fraction
) -> tuple[Fraction, events.Event]:
    """Returns the rate of draws and their event, for an epsilon, or for a rho where the law is Gaussian.

    The rate of a target is in units of ranks, that of parts in units of the `ones` of each. For an epsilon, points are
    drawn in as many groups as a unit can enter, each a release of bounded range. A move by m in either direction lets
    the privacy loss range over 2 rate m (Durfee, Rogers 2019), which adds up to epsilon over all pieces of the move.
    """
    if law == "gaussian":
        return root_below(2 * share / moves.l2_squared(contribution)), events.Concentrated(share)
    rate = share / (2 * moves.l1(contribution))
    ranges = [(count, events.BoundedRange(2 * rate * size)) for count, size in moves.moves(contribution)]
    each = [event if count == 1 else events.Repeated(event, count) for count, event in ranges]
    return rate, each[0] if len(each) == 1 else events.Repeated(events.Composed(each), 1)  # one release, of two parts


@lru_cache(maxsize=4096)
def _reach(rate: Fraction, points: int, risk: Fraction) -> int:
    return math.ceil(upper(lambda digits: Enclosure.of(points / risk, digits).log() / rate))
