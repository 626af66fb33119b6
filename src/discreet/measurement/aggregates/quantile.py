"""MEDIAN, QUANTILE, MIN and MAX: ranks to look for, and how far one unit can move the distance from them.

Values lie on a public grid. Of n values, the point y of the grid claims all ranks from `below`, the number of values
below it, to `upto`, the number up to it; the first point claims all smaller ranks as well, and the last one all larger.
So every real number is a rank that some point claims. The *loss* of a point is the distance of the target from the
ranks that it claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import UnsupportedQuery
from discreet.measurement.aggregates.steps import Steps
from discreet.plan.analysis.function_bounds import is_whole
from discreet.plan.analysis.stability import Contribution
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.model.readings import Split
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours

MOST_POINTS = 4096
"""A grid of at most so many points is read as it is."""

_BLOCKS = 1024


@dataclass(frozen=True, slots=True)
class Target:
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
        """How far one value more or less moves a loss."""
        return max(self.share, 1 - self.share)

    def l1(self, contribution: Contribution) -> Fraction:
        """The largest sum, over groups, of the moves of losses between neighbours.

        Under ADD_REMOVE a unit enters at most G groups. Under REPLACE with keys it leaves at most G groups and enters
        at most G; a group that it stays in moves by R at most, which is no more than the 2 R max(q, 1 - q) of two
        groups. Without keys there is one group, in which rows are replaced.
        """
        rows = contribution.limits.rows
        if contribution.neighbours is Neighbours.ADD_REMOVE:
            return contribution.groups * rows * self.one
        return 2 * contribution.groups * rows * self.one if contribution.grouped else Fraction(rows)

    def l2_squared(self, contribution: Contribution) -> Fraction:
        """The largest sum, over groups, of the squares of these moves.

        Under REPLACE with keys, a group that the unit stays in counts R^2, and two that it leaves and enters count
        2 R^2 max(q, 1 - q)^2 together: which of them is larger depends on q.
        """
        rows = contribution.limits.rows
        if contribution.neighbours is Neighbours.ADD_REMOVE:
            return contribution.groups * (rows * self.one) ** 2
        most = max(Fraction(1), 2 * self.one**2) if contribution.grouped else Fraction(1)
        return contribution.groups * rows**2 * most


@dataclass(frozen=True, slots=True)
class Parts:
    """Ranks that are looked for at once in disjoint parts of the values: for each part, the share of its own values.

    A value at the point y is thought of as spread evenly from y to y + 1, so that a part may end within a point: below
    a real number z there is the mass M(z), the sum over values of F(z) = min(max(z - y, 0), 1). In the part from a to b
    with the share s let m(z) = M(z) - M(a). What lies from y to z, a <= y <= z <= b, has the loss max(0, m(y) - s m(b),
    s m(b) - m(z)).

    Formal guarantee. One more value adds w = F(b) - F(a) to m(b), and something from 0 to w to m(y) and to m(z). So
    m(y) - s m(b) changes by -s w to (1 - s) w, as does m(z) - s m(b), and the loss by at most w `one`, where `one` =
    max(s, 1 - s). The parts are disjoint: the w of one value add up to at most 1, those of R values to at most R.

    Moves are told below in units of each part's own `one`: points are drawn with rates in inverse proportion to it.

    Args:
        shares: of the parts.
    """

    shares: tuple[Fraction, ...]

    @property
    def ones(self) -> tuple[Fraction, ...]:
        """For each part how far one value more or less moves its losses, at most."""
        return tuple(Target(share).one for share in self.shares)

    def l1(self, contribution: Contribution) -> Fraction:
        """The largest sum, over groups and parts, of the moves of losses between neighbours.

        Under ADD_REMOVE it is R in each of G groups. Under REPLACE with keys it is R in each of G groups that the unit
        leaves and of G that it enters, and in one that it stays in not more than the 2 R of two groups: its old rows
        leave parts, its new ones enter. So it is without keys; but a single part whose rows of weight w are replaced by
        those of weight v, both at most R, moves by (1 - s) v + s w or s v + (1 - s) w at most, which is R.
        """
        rows, groups = contribution.limits.rows, contribution.groups
        if contribution.neighbours is Neighbours.ADD_REMOVE:
            return Fraction(groups * rows)
        if contribution.grouped or len(self.shares) > 1:
            return Fraction(2 * groups * rows)
        return rows / self.ones[0]

    def l2_squared(self, contribution: Contribution) -> Fraction:
        """The largest sum, over groups and parts, of the squares of these moves.

        Weights in the parts of one group that add up to R have squares that add up to R^2 at most. Where rows are
        replaced within a group, the sum of squares is a convex function of the weights that leave the parts and of
        those that enter, so that it is largest where all leave one part and enter one: R^2 / one^2 if it is the same
        part, 2 R^2 if there is another. Two groups that a unit leaves and enters count 2 R^2 together.
        """
        rows, groups = contribution.limits.rows, contribution.groups
        if contribution.neighbours is Neighbours.ADD_REMOVE:
            return Fraction(groups * rows**2)
        most = 1 / min(self.ones) ** 2
        if contribution.grouped or len(self.shares) > 1:
            most = max(most, Fraction(2))
        return groups * rows**2 * most


def steps_of(aggregate: Aggregate, schema: TableSchema, *, former: bool = False) -> Steps:
    """The grid of an aggregate's argument; releases of earlier versions do not count how it rounds.

    Raises:
        UnsupportedQuery: if it has no public bounds.
    """
    argument = aggregate.argument
    limits = None if argument is None else bounds(argument, schema)
    if argument is None or limits is None:
        raise UnsupportedQuery(
            "A quantile needs public bounds of its argument.",
            "Declare them with bounds=..., or clip in the question: MEDIAN(GREATEST(LEAST(x, 100), 0)).",
        )
    found = Steps.of(limits, argument.type)
    return found if former or argument.type is Type.INT else found.clipping(limits, whole=is_whole(argument))


def shift_of(steps: Steps) -> int:
    """How wide blocks of points are, as a power of two: a function of the public grid alone.

    >>> shift_of(Steps(0, 0, 120)), shift_of(Steps(-10, 0, 1 << 20))
    (0, 11)
    """
    return 0 if steps.width < MOST_POINTS else (steps.width // _BLOCKS).bit_length()


def counted(argument: Expression, steps: Steps) -> Split:
    """How the values of an argument are counted first: by blocks."""
    return Split(argument=argument, exponent=steps.exponent, low=steps.low, high=steps.high, shift=shift_of(steps))
