"""Private quantiles, MIN and MAX: what is drawn for each of a question, and how answers and intervals follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.errors import InternalError
from discreet.measurement.aggregates import Steps, shift_of
from discreet.mechanisms.base import Law
from discreet.mechanisms.quantile_tree import QuantileTree
from discreet.mechanisms.ranks import FARTHEST, Pick, Target
from discreet.plan.analysis.stability import Contribution
from discreet.plan.model.nodes import Aggregate, Expression
from discreet.plan.post.outputs import Noisy
from discreet.privacy import events

RANKED = ("quantile", "min", "max")
"""The aggregates that are answered here."""

RISK = Fraction(1, 200)
"""How often the ends of an interval may miss, at most; for less risk than this the ends are the bounds."""

SHARES = Fraction(9, 10), Fraction(1, 20), Fraction(1, 20)
"""Of a quantile's budget: for the quantile itself, and for a fence on either side of it."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The point of one of several quantiles of an argument, which are drawn together."""

    tree: QuantileTree
    number: int

    @property
    def target(self) -> Target:
        """Its rank among all values."""
        return Target(self.tree.shares[self.number])

    @property
    def variance(self) -> Fraction:
        """The square of the error's scale, in ranks."""
        return self.tree.variance(self.number)

    def reach(self, points: int, risk: Fraction) -> int:
        """A distance in ranks that is reached with at most this probability."""
        return self.tree.reach(self.number, points, risk)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """How a quantile, MIN or MAX follows from released points: a recipe.

    Formal guarantee. Intervals hold the aggregate of the kept, clipped values, but for RISK. Rounding to the grid keeps
    the order of values, so that it moves a quantile no further than it can move one of them; what is said below of
    values on the grid holds of the values themselves with ends that are as much wider.

    *Quantiles.* Fences are drawn among blocks of points, as if each block were one point of a coarser grid: it claims
    the ranks from the number of values before it to the number of those in it as well. Fewer candidates err less. Let a
    fence have the target q n - o with o = t + 1, where t is the reach of its loss for half of RISK. But for that risk
    its loss is below t, so it is the first block, or fewer than q n - 1 values are before it. Either way its first
    point is at or below all values from rank q n on, and below both values between which PERCENTILE_CONT interpolates,
    whose ranks lie between q n - 1 and q n + 2. Likewise above, with q n + o and the last point of a block: it is the
    last block, or more than q n + 1 values are in it and before it. The two together miss with RISK at most; where they
    come out in the wrong order, the hull holds what either does.

    *MAX.* The target is n - t, t being the reach for RISK. But for that risk the point is the first one, or fewer than
    n values are below it: the largest value is at or above it. Nothing private bounds that value from above but its
    public bound. MIN likewise.

    Args:
        kind: which of the three.
        argument: whose values they are.
        steps: the grid.
        point: what is released of it: a point by itself, or together with those of other quantiles.
        fences: what is released of a quantile's interval, unless the two are too far away to be made.
        place: of the first of these columns among the released ones.
        certain: whether the ends are any better than the bounds.
    """

    kind: str
    argument: Expression
    steps: Steps
    point: Pick | Branch
    fences: tuple[Pick, ...]
    place: int
    certain: bool

    @property
    def variance(self) -> Fraction:
        """The square of the error's scale, in ranks."""
        return self.point.variance if isinstance(self.point, Branch) else 1 / self.point.rate**2

    @property
    def picks(self) -> tuple[Pick, ...]:
        """What is drawn and paid by itself."""
        return self.fences if isinstance(self.point, Branch) else (self.point, *self.fences)

    @property
    def columns(self) -> int:
        """How many numbers are released of each group."""
        return 1 + len(self.fences)

    def finish(self, rows: Iterable[Sequence[int]], outside: Fraction) -> list[Noisy]:
        """The aggregate of each row of released points, with its interval."""
        return [self._noisy(row, outside) for row in rows]

    def imagined(self, rows: int) -> list[int]:
        """The points as they may come out for so many values spread evenly between the bounds, fences at their worst.

        A fence is a reach away from its target, which is as far away from the quantile.
        """
        points = []
        for target in (self.point.target, *(pick.target for pick in self.fences)):
            rank = target.share * rows + (2 if self.fences else 1) * target.offset
            step = self.steps.low + round(min(max(rank / rows, Fraction(0)), Fraction(1)) * self.steps.width)
            points.append(step)
        return points

    def _noisy(self, row: Sequence[int], outside: Fraction) -> Noisy:
        value = row[self.place]
        low, high = self._ends(row, value) if self.certain and outside >= RISK else (self.steps.low, self.steps.high)
        middle, least, most = (self._value(step) for step in (min(max(value, low), high), low, high))
        error, bounds = self.steps.error, self.steps.bounds
        if not error:
            return Noisy(middle, least, most)
        return Noisy(middle, max(least - error, bounds.low), min(most + error, bounds.high))

    def _ends(self, row: Sequence[int], value: int) -> tuple[int, int]:
        if self.fences:
            one, other = row[self.place + 1], row[self.place + 2]
            return min(one, other), max(one, other)
        return (value, self.steps.high) if self.kind == "max" else (self.steps.low, value)

    def _value(self, step: int) -> int | Fraction:
        exact = step * self.steps.step
        return exact.numerator if self.steps.whole else exact


def trees(recipes: Iterable[Ranked]) -> tuple[QuantileTree, ...]:
    """The quantiles that are drawn together, for each argument that has such."""
    return tuple(dict.fromkeys(recipe.point.tree for recipe in recipes if isinstance(recipe.point, Branch)))


def prices(recipes: Iterable[Ranked]) -> list[events.Event]:
    """What all points cost: each that is drawn by itself, and each level of those that are drawn together."""
    listed = list(recipes)
    alone = [pick.event for recipe in listed for pick in recipe.picks]
    return [*alone, *(event for tree in trees(listed) for event in tree.levels)]


def ranked(
    quantiles: Mapping[Aggregate, Steps], contribution: Contribution, budget: tuple[Law, Fraction], place: int
) -> dict[str, Ranked]:
    """Quantiles, MIN and MAX, each for the same share of an epsilon, or of a rho where the law is Gaussian.

    Several quantiles of one argument put what they have for their points together, if they err less so.

    Args:
        quantiles: what is wanted, and the grid of each.
        contribution: what one unit can change.
        budget: of each.
        place: of the first column.

    Raises:
        InternalError: if one has no argument.
    """
    found = {}
    for aggregate, steps in quantiles.items():
        found[aggregate] = replace(_alone(aggregate, steps, contribution, budget), place=place)
        place += found[aggregate].columns
    for argument in dict.fromkeys(aggregate.argument for aggregate in quantiles):
        alike = {a: r for a, r in found.items() if a.argument == argument and a.quantile is not None}
        found |= _together(alike, contribution, budget)
    return {aggregate.name: recipe for aggregate, recipe in found.items()}


def _together(
    alike: Mapping[Aggregate, Ranked], contribution: Contribution, budget: tuple[Law, Fraction]
) -> dict[Aggregate, Ranked]:
    """Quantiles of one argument, their points drawn from a tree for what they had one by one, if there is one."""
    if len(alike) < 2:
        return {}
    law, share = budget
    recipes = list(alike.values())
    total = sum((share * (SHARES[0] if recipe.fences else 1) for recipe in recipes), Fraction(0))
    shares = [recipe.point.target.share for recipe in recipes]
    tree = QuantileTree.of(recipes[0].argument, shares, recipes[0].steps.width, contribution, (law, total))
    if tree is None:
        return {}
    branches = {share: Branch(tree, number) for number, share in enumerate(tree.shares)}
    return {a: replace(recipe, point=branches[recipe.point.target.share]) for a, recipe in alike.items()}


def _alone(aggregate: Aggregate, steps: Steps, contribution: Contribution, budget: tuple[Law, Fraction]) -> Ranked:
    """The picks of one aggregate."""
    if aggregate.argument is None:
        raise InternalError("A quantile has an argument.")
    make = _quantile if aggregate.quantile is not None else _extreme
    (point, *fences), certain = make(aggregate, steps, contribution, *budget)
    return Ranked(
        kind=aggregate.kind,
        argument=aggregate.argument,
        steps=steps,
        point=point,
        fences=tuple(fences),
        place=0,
        certain=certain,
    )


def _quantile(
    aggregate: Aggregate, steps: Steps, contribution: Contribution, law: Law, share: Fraction
) -> tuple[tuple[Pick, ...], bool]:
    target, blocks = Target(aggregate.quantile or Fraction(0)), (steps.width >> shift_of(steps)) + 1
    value, low, high = (Pick.of(law, target, contribution, share * part) for part in SHARES)
    away = low.reach(blocks, RISK / 2) + 1
    if away >= FARTHEST:
        return (Pick.of(law, target, contribution, share),), False
    return (value, low.moved(-away), high.moved(away)), True


def _extreme(
    aggregate: Aggregate, steps: Steps, contribution: Contribution, law: Law, share: Fraction
) -> tuple[tuple[Pick, ...], bool]:
    is_max = aggregate.kind == "max"
    pick = Pick.of(law, Target(Fraction(is_max)), contribution, share)
    away = min(pick.reach(steps.width + 1, RISK), FARTHEST)
    return (pick.moved(-away if is_max else away),), away < FARTHEST
