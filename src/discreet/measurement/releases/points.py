"""Points near a rank: the exponential mechanism over all points of a grid, in every group, and what it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from discreet.exact import Enclosure, root_below, upper
from discreet.measurement.aggregates import Target
from discreet.measurement.releases.additive import Law
from discreet.plan.analysis.stability import Contribution
from discreet.privacy import events

FARTHEST = 1 << 32
"""A rank that no table reaches; fences that would be as far away are not made."""


@dataclass(frozen=True, slots=True)
class Aim:
    """A rank that is looked for, and how sharply: points have the weight e^(-rate loss)."""

    target: Target
    rate: Fraction

    def reach(self, points: int, risk: Fraction) -> int:
        """A loss that is reached with at most this probability, whatever the data.

        Some point has a loss of zero. So the points of a loss of t or more have the probability points e^(-rate t) at
        most, which is the risk for t = ln(points / risk) / rate.
        """
        return _reach(self.rate, points, risk)


@dataclass(frozen=True, slots=True)
class Pick(Aim):
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

    event: events.Event

    @classmethod
    def of(cls, law: Law, target: Target, contribution: Contribution, share: Fraction) -> Pick:
        """The pick for an epsilon, or for a rho where the law is Gaussian."""
        if law == "laplace":
            return cls(target, share / (2 * target.l1(contribution)), ranges(share, contribution))
        rate = root_below(2 * share / target.l2_squared(contribution))
        return cls(target, rate, events.Concentrated(share))

    def moved(self, ranks: int) -> Pick:
        """The pick of a rank that is so far away: neither moves of losses nor the price change."""
        return replace(self, target=replace(self.target, offset=self.target.offset + ranks))


def ranges(epsilon: Fraction, contribution: Contribution) -> events.Event:
    """Points drawn in as many groups as a unit can enter, each a release of bounded range, for one epsilon."""
    each = events.BoundedRange(epsilon / contribution.groups)
    return each if contribution.groups == 1 else events.Repeated(each, contribution.groups)


@lru_cache(maxsize=4096)
def _reach(rate: Fraction, points: int, risk: Fraction) -> int:
    return math.ceil(upper(lambda digits: Enclosure.of(points / risk, digits).log() / rate))
