"""Private quantiles: the exponential mechanism over all points of a grid, in every group, what it costs and tells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from discreet.curator.measure import Law
from discreet.errors import InternalError
from discreet.exact import Enclosure, root_below, upper
from discreet.plan.aggregates import Steps, Target, shift_of
from discreet.plan.finish import Noisy
from discreet.plan.nodes import Aggregate, Expression
from discreet.plan.stability import Contribution
from discreet.privacy import events

RANKED = ("quantile", "min", "max")
"""The aggregates that are answered here."""

RISK = Fraction(1, 200)
"""How often the ends of an interval may miss, at most; for less risk than this the ends are the bounds."""

SHARES = Fraction(9, 10), Fraction(1, 20), Fraction(1, 20)
"""Of a quantile's budget: for the quantile itself, and for a fence on either side of it."""

FARTHEST = 1 << 32
"""A rank that no table reaches; fences that would be as far away are not made."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One point in every group, of probability proportional to e^(-rate loss).

    Formal guarantee: whatever the data, releasing the points of all groups, or of those that were selected to be shown,
    is described by `event` under the relation and the limits of the contribution it was built for.

    Proof. Let the loss of every point of group g move by at most m_g between two neighbours. Then the privacy loss of
    the point that is drawn there lies in an interval of length 2 rate m_g: it is rate times the move of that point's
    loss, plus the same constant for all points (Durfee, Rogers 2019). Groups are drawn independently. For `laplace`
    budgets, the lengths of all groups add up to at most epsilon = 2 rate `Target.l1`. They can be put together as G
    releases of range epsilon / G each, G being the groups that a unit can enter: under ADD_REMOVE the groups
    themselves, under REPLACE a group left with a group entered, or one in which the unit stays. For `gaussian` budgets,
    a range e is e^2 / 8-zCDP (Cesar, Rogers 2021), and these add up to at most rate^2 `Target.l2_squared` / 2 = rho.

    Args:
        target: the rank that is looked for.
        rate: in units of ranks.
        event: the price.
    """

    target: Target
    rate: Fraction
    event: events.Event

    @classmethod
    def of(cls, law: Law, target: Target, contribution: Contribution, share: Fraction) -> Pick:
        """The pick for an epsilon, or for a rho where the law is Gaussian."""
        if law == "laplace":
            each = events.BoundedRange(share / contribution.groups)
            event = each if contribution.groups == 1 else events.Repeated(each, contribution.groups)
            return cls(target, share / (2 * target.l1(contribution)), event)
        rate = root_below(2 * share / target.l2_squared(contribution))
        return cls(target, rate, events.Concentrated(share))

    def moved(self, ranks: int) -> Pick:
        """The pick of a rank that is so far away: neither moves of losses nor the price change."""
        return replace(self, target=replace(self.target, offset=self.target.offset + ranks))

    def reach(self, points: int, risk: Fraction) -> int:
        """A loss that is reached with at most this probability, whatever the data.

        Some point has a loss of zero. So the points of a loss of t or more have the probability points e^(-rate t) at
        most, which is the risk for t = ln(points / risk) / rate.
        """
        return _reach(self.rate, points, risk)


@lru_cache(maxsize=4096)
def _reach(rate: Fraction, points: int, risk: Fraction) -> int:
    return math.ceil(upper(lambda digits: Enclosure.of(points / risk, digits).log() / rate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """How a quantile, MIN or MAX follows from released points: a recipe.

    Formal guarantee. Intervals hold the aggregate of the kept, clipped values on the grid, but for RISK.

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
        picks: what is released: the point, and for a quantile two fences unless they are too far away to be made.
        place: of the first of these columns among the released ones.
        certain: whether the ends are any better than the bounds.
    """

    kind: str
    argument: Expression
    steps: Steps
    picks: tuple[Pick, ...]
    place: int
    certain: bool

    @property
    def variance(self) -> Fraction:
        """The square of the error's scale, in ranks."""
        return 1 / self.picks[0].rate ** 2

    @property
    def fences(self) -> bool:
        """Whether ends of the interval are released beside the point."""
        return len(self.picks) > 1

    def finish(self, rows: Iterable[Sequence[int]], outside: Fraction) -> list[Noisy]:
        """The aggregate of each row of released points, with its interval."""
        return [self._noisy(row, outside) for row in rows]

    def imagined(self, rows: int) -> list[int]:
        """The points as they may come out for so many values spread evenly between the bounds, fences at their worst.

        A fence is a reach away from its target, which is as far away from the quantile.
        """
        points = []
        for pick in self.picks:
            rank = pick.target.share * rows + (2 if self.fences else 1) * pick.target.offset
            step = self.steps.low + round(min(max(rank / rows, Fraction(0)), Fraction(1)) * self.steps.width)
            points.append(step)
        return points

    def _noisy(self, row: Sequence[int], outside: Fraction) -> Noisy:
        value = row[self.place]
        low, high = self._ends(row, value) if self.certain and outside >= RISK else (self.steps.low, self.steps.high)
        return Noisy(*(self._value(step) for step in (min(max(value, low), high), low, high)))

    def _ends(self, row: Sequence[int], value: int) -> tuple[int, int]:
        if self.fences:
            one, other = row[self.place + 1], row[self.place + 2]
            return min(one, other), max(one, other)
        return (value, self.steps.high) if self.kind == "max" else (self.steps.low, value)

    def _value(self, step: int) -> int | Fraction:
        exact = step * self.steps.step
        return exact.numerator if self.steps.whole else exact


def ranked(aggregate: Aggregate, steps: Steps, contribution: Contribution, budget: tuple[Law, Fraction]) -> Ranked:
    """The picks of one aggregate for its share of an epsilon, or of a rho where the law is Gaussian; at place 0.

    Raises:
        InternalError: if it has no argument.
    """
    if aggregate.argument is None:
        raise InternalError("A quantile has an argument.")
    make = _quantile if aggregate.quantile is not None else _extreme
    picks, certain = make(aggregate, steps, contribution, *budget)
    return Ranked(kind=aggregate.kind, argument=aggregate.argument, steps=steps, picks=picks, place=0, certain=certain)


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
