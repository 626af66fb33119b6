"""Private modes: the exponential mechanism over the candidates of every group, what it costs and tells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.exact import Enclosure, root_below, upper
from discreet.measurement.aggregates import Candidates, range_l1, range_l2_squared
from discreet.mechanisms.base import Law
from discreet.noise import Bits, choose_exponential
from discreet.plan.analysis.stability import Contribution
from discreet.plan.model.nodes import Value
from discreet.plan.model.readings import Groups
from discreet.privacy import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Modal:
    """One candidate in every group, of probability proportional to e^(rate count).

    Formal guarantee: whatever the data, releasing the candidates of all groups, or of those that were selected to be
    shown, is described by `event` under the relation and the limits of the contribution it was built for.

    Proof. Between two neighbours, let the count of candidate v in group g change by d_v. The privacy loss of v, the
    logarithm of the ratio of its two probabilities, is rate d_v plus the same constant for all v: it lies in an
    interval of length rate (max d - min d), rate times the *range* of the move in g (Durfee, Rogers 2019). Counts of
    one group all grow or all fall if a unit is added or removed, so that this range is that of one sign alone, half of
    what bounds on |d_v| would give (`range_l1`). Groups are drawn independently, and ranges of independent draws add
    up. For `laplace` budgets they add up to rate `range_l1` = epsilon at most, put together as G releases of range
    epsilon / G each: under ADD_REMOVE the G groups themselves; under REPLACE a group in which the unit stays, or a
    group left together with one entered, which have the range of one stay. For `gaussian` budgets, a range e is
    e^2 / 8-zCDP (Cesar, Rogers 2021), and these add up to at most rate^2 `range_l2_squared` / 8 = rho. Which of the
    candidates are looked at is no function of the data, and a selection of groups is made by other noise.

    Permute-and-flip would err less for the same pure epsilon, but its loss is not bounded in range: it costs up to four
    times the rho, and does not compose over groups as well.

    Utility: the candidates of a count of t or more below the largest have a probability of n e^(-rate t) at most, n
    being the number of all. See `reach`.

    Args:
        candidates: the candidates.
        rate: in units of rows.
        event: the price.
        place: of its column among the released ones.
    """

    candidates: Candidates
    rate: Fraction
    event: events.Event
    place: int = 0

    @classmethod
    def of(cls, law: Law, candidates: Candidates, contribution: Contribution, share: Fraction) -> Modal:
        """The mode for an epsilon, or for a rho where the law is Gaussian; at place 0."""
        if law == "laplace":
            each = events.BoundedRange(share / contribution.groups)
            event = each if contribution.groups == 1 else events.Repeated(each, contribution.groups)
            return cls(candidates=candidates, rate=share / range_l1(contribution), event=event)
        rate = root_below(8 * share / range_l2_squared(contribution))
        return cls(candidates=candidates, rate=rate, event=events.Concentrated(share))

    @property
    def variance(self) -> Fraction:
        """The square of the error's scale, in rows."""
        return 1 / self.rate**2

    def reach(self, risk: Fraction) -> int:
        """But for this probability, the count of the candidate is at most so far below the largest, whatever the data.

        Counts are whole: what is more than t below is floor(t) + 1 below at least.
        """
        return _reach(self.rate, len(self.candidates.values), risk)

    def release(self, groups: Groups, keys: Sequence[tuple[Value, ...]], bits: Bits) -> list[int]:
        """The place of one candidate for each of these groups; their laws are exact.

        Args:
            groups: the places of candidates that have rows, then how many rows each has, as an engine counts them.
            keys: of the groups that are shown.
            bits: the source of randomness.
        """
        return [self._drawn(groups.get(key, ()), bits) for key in keys]

    def _drawn(self, numbers: Sequence[int], bits: Bits) -> int:
        counts = np.zeros(len(self.candidates.values), dtype=np.int64)
        half = len(numbers) // 2
        counts[list(numbers[:half])] = numbers[half:]
        return choose_exponential(counts.max() - counts, self.rate, bits)

    def finish(self, rows: Iterable[Sequence[int]]) -> list[Value]:
        """The value of each row of released places."""
        return [self.candidates.values[row[self.place]] for row in rows]


@lru_cache(maxsize=4096)
def _reach(rate: Fraction, candidates: int, risk: Fraction) -> int:
    return math.floor(upper(lambda digits: Enclosure.of(candidates / risk, digits).log() / rate))
