"""Private keys: which groups of a question may be shown, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dataclass import dataclass
from discreet.exact.integer_columns import added_up, column_of
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.releases.additive import AdditiveNoise, Integers, grains_of
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.layouts import Size
from discreet.measurement.releases.open_exact import open_exact, opens
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms import PartitionSelection, WeightedSelection
from discreet.mechanisms.partition_selection import share_of_delta
from discreet.mechanisms.tails import laplace_cut
from discreet.plan.analysis.group_keys import in_order
from discreet.plan.analysis.stability import QueryContribution
from discreet.plan.model.group_columns import GroupColumns, Key, KeyRows
from discreet.plan.model.readings import Reading, Spread, Statistic
from discreet.privacy import Neighbours, events

Kept = NDArray[np.bool_]

LARGEST_EPSILON = Fraction(1000)  # of an optimal selection, which keeps everything long before
SMALLEST_EPSILON, SMALLEST_DELTA = Fraction(1, 10**6), Fraction(1, 10**100)  # of a weighted one
MOST_WEIGHED = 10**4  # groups of one person that are weighed
FEW_ROWS = 2
"""Of a person in a group: up to here, a threshold on a noisy size is lower than half of a budget makes any other."""

Read = Callable[[Reading], ExactGroups]


@dataclass(frozen=True, slots=True)
class Threshold:
    """A group is shown if its noisy size, which is released anyway, reaches a threshold.

    Formal guarantee: (0, delta), added to the noise. A unit has at most `limits.groups` groups; alone in one it makes
    its size at most `size.most`, and noise carries that over the threshold with at most a share of delta. So the
    probabilities q and q' that no group is shown that only D, or only D', has are both at least 1 - delta. Let the
    groups that both have satisfy P(S) <= e^a P'(S) + b for all sets S. Then D shows something in S with a chance of at
    most 1 - q + q P(S). If q <= q', this is at most (1 - q) + q b + e^a q' P'(S). If not, q P(S) <= q' P(S) + q - q'
    makes it at most (1 - q') + q' b + e^a q' P'(S). Either way it is what the noise has when it is composed with an
    event of (0, delta), under add/remove (where one of q and q' is 1) as under replace.

    With a `cut`, Laplace noise of the size never exceeds it, and groups above it are shown. Then an empty
    group would not be shown if it had noise as well, and nothing needs to be said of groups that only D or D' has: the
    release is a function of noisy statistics of all groups there could be. Between neighbours a unit moves the sizes of
    g groups, 2 g under replace, by at most `size.most` each, and truncated noise lies outside what both sizes can
    become with at most a share of delta for each of them; inside, it reveals no more than the whole noise does (see
    `PartitionSelection`, whose proof holds for one statistic among several, since their noise is independent). So this
    is also (0, delta), added to the event of the noise. Intervals for the whole noise hold: what is cut off is the
    farthest, and sums of symmetric noise with one peak reach less far if one of them does (Birnbaum 1948).
    """

    size: Size
    smallest: int
    delta: Fraction
    cut: int | None = None

    @classmethod
    def of(cls, size: Size, noise: Noise, contribution: QueryContribution, delta: Fraction) -> Threshold:
        """Returns the smallest size that noise reaches from one unit's rows with at most a share of delta."""
        share = share_of_delta(delta, contribution.groups)
        reach = noise.certain_reach(size.linear, 2 * share)
        return cls(size, math.floor(size.most + reach) + 1, delta)

    @classmethod
    def lowest(
        cls, size: Size, noise: Noise, contribution: QueryContribution, delta: Fraction, *, cuts: bool
    ) -> Threshold:
        """Returns the lower one of whole and, if it may be cut, of truncated noise."""
        whole = cls.of(size, noise, contribution, delta)
        cut = cls.cutting(size, noise, contribution, delta) if cuts else None
        return whole if cut is None or cut.smallest > whole.smallest else cut

    @classmethod
    def cutting(cls, size: Size, noise: Noise, contribution: QueryContribution, delta: Fraction) -> Threshold | None:
        """Returns the threshold above the longest noise; None if the size is not one statistic with Laplace noise."""
        ((place, weight), *more) = size.linear.weights
        if noise.law != "laplace" or more or weight != 1 or (noise.rounded and noise.rounded[place]):
            return None
        sides = 1 if contribution.neighbours is Neighbours.ADD_REMOVE else 2
        share = share_of_delta(delta, sides * contribution.groups)
        cut = laplace_cut(noise.scales[place], size.most, share)
        return cls(size, cut + 1, delta, cut)

    def cuts(self, measures: Sequence[AdditiveNoise]) -> tuple[AdditiveNoise, ...]:
        """Returns the measures with the noise of the size held to its cut."""
        if self.cut is None:
            return tuple(measures)
        ((place, _),) = self.size.linear.weights
        found, start = [], 0
        for measure in measures:
            inside = 0 <= place - start < len(measure.scales)
            found.append(replace(measure, cuts=((place - start, self.cut),)) if inside else measure)
            start += len(measure.scales)
        return tuple(found)

    @property
    def event(self) -> events.Event:
        """Returns what it costs in addition to the noise."""
        return events.Approx(0, self.delta)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Returns what the engine computes for it alone: nothing."""
        return ()

    @property
    def half_kept(self) -> int:
        """Returns the number of people, of one row each, whose group is shown with a probability of one half."""
        return self.smallest

    def select_groups(self, noisy: Integers, exact: ExactGroups, releaser: Releaser) -> Kept:
        """Selects the groups that are shown, given their noisy statistics."""
        del exact, releaser
        found = self.size.linear.numerators(noisy)
        sizes: Any = found[0]
        return np.asarray(sizes >= self.smallest * found[1], dtype=bool)

    def __str__(self) -> str:
        return f"Groups are shown only if their noisy count reaches {self.smallest}."


@dataclass(frozen=True, slots=True)
class OptimalGroupSelection:
    """A group is shown with the largest probability that its number of people allows, for a budget of its own.

    Formal guarantee: (epsilon, delta)-DP as `PartitionSelection` proves; under REPLACE one unit leaves at most
    `limits.groups` groups and enters as many, so the mechanism is built for twice the number.
    """

    mechanism: PartitionSelection

    @classmethod
    def of(cls, contribution: QueryContribution, epsilon: Fraction, delta: Fraction) -> OptimalGroupSelection:
        """Returns the selection for this budget."""
        sides = 1 if contribution.neighbours is Neighbours.ADD_REMOVE else 2
        return cls(PartitionSelection(epsilon=epsilon, delta=delta, max_groups=sides * contribution.groups))

    @property
    def event(self) -> events.Event:
        """Returns what it costs."""
        return self.mechanism.event

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Returns what the engine computes for it alone: the number of people."""
        return (Statistic(kind="units"),)

    @property
    def half_kept(self) -> int:
        """Returns the number of people whose group is shown with a probability of one half."""
        return self.mechanism.half_kept_count()

    def select_groups(self, noisy: Integers, exact: ExactGroups, releaser: Releaser) -> Kept:
        """Selects the groups that are shown, given how many people each has: the statistic after the noisy ones."""
        start = noisy.shape[1]
        return releaser.select(self.mechanism, exact.slice_statistics(start, start + 1))

    def __str__(self) -> str:
        return f"Groups are shown at random: a group of {self.half_kept} people with a probability of one half."


@dataclass(frozen=True, slots=True)
class WeightedGroupSelection:
    """Groups are found in rounds, for a budget of their own, by the weights of people who are in several of them.

    A person who is kept in k groups gives each the weight 1 / sqrt(k). Every round reads the groups that were not found
    before, bounded anew, and what it finds is public for those after it. What else is asked is read of the groups that
    were found, as of public keys.

    Formal guarantee: (epsilon, delta)-DP, by the proof of `WeightedSelection`. The reading of a round depends on what
    earlier rounds released, and on nothing else that is private. Which of its groups a unit is kept in is a function of
    its own rows and of what was found: given that, neighbours differ in one unit's weights alone.
    """

    mechanism: WeightedSelection

    @classmethod
    def of(cls, contribution: QueryContribution, epsilon: Fraction, delta: Fraction) -> WeightedGroupSelection | None:
        """Returns the selection for this budget; None where it can be no better than others, or budgets are extreme."""
        most = contribution.groups
        if most == 1 or most > MOST_WEIGHED or not epsilon >= SMALLEST_EPSILON or delta < SMALLEST_DELTA:
            return None
        spent, relation = min(epsilon, LARGEST_EPSILON), contribution.neighbours
        return cls(WeightedSelection(epsilon=spent, delta=delta, max_groups=most, neighbours=relation))

    @property
    def event(self) -> events.Event:
        """Returns what all rounds cost: the (epsilon, delta) that they keep to, which any account can add up."""
        return events.Approx(self.mechanism.epsilon, self.mechanism.delta)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Returns no statistics: the engine computes nothing more for it."""
        return ()

    @property
    def half_kept(self) -> int:
        """Returns the number of people, of as many groups as may be, whose group is shown with a chance of one half."""
        return self.mechanism.half_kept_count()

    def reading(self, reading: Reading, found: Sequence[Key] = ()) -> Reading:
        """Returns what a round reads, given what was found before."""
        return replace(reading, statistics=(), split=None, spread=Spread(tuple(found)))

    @opens
    def find(self, reading: Reading, read: Read, releaser: Releaser) -> list[Key]:
        """Reads and releases, round by round, and returns the groups that are shown, in the order of their values."""
        found: list[Key] = []
        for turn in range(self.mechanism.rounds):
            groups = open_exact(read(self.reading(reading, found)).in_order())
            weights = column_of(map(self._weight, groups.numbers))
            kept = releaser.weigh(self.mechanism, turn, ExactGroups(groups.with_statistics([weights])))
            found += groups.take_places(np.flatnonzero(kept)).key_tuples
        return in_order(found)

    def _weight(self, numbers: Sequence[int]) -> int:
        """Returns the steps of a group, from how many people are in how many groups."""
        half = len(numbers) // 2
        return sum(self.mechanism.weight(n) * people for n, people in zip(numbers[:half], numbers[half:], strict=True))

    def __str__(self) -> str:
        fewest, most = self.mechanism.half_kept_count(1), self.half_kept
        groups = self.mechanism.max_groups
        return (
            f"Groups are found in {self.mechanism.rounds} rounds by people's weights: one of {fewest} people who are "
            f"in no other, or of {most} who are in {groups}, is shown with a probability of one half."
        )


Selection = Threshold | OptimalGroupSelection | WeightedGroupSelection


@opens
def release_shown(
    selection: Threshold | OptimalGroupSelection,
    groups: ExactGroups,
    measures: Sequence[AdditiveNoise],
    releaser: Releaser,
    *,
    other: Key | None,
) -> tuple[KeyRows, Integers]:
    """Returns the keys and noisy statistics of the private groups that are shown, and of all others together.

    Args:
        selection: which says what is shown; it pays for it.
        groups: all of them, in an order of their keys, which does not depend on how rows lie.
        measures: what their statistics meet.
        releaser: draws all noise.
        other: the key under which all that is not shown is added up, if it is.
    """
    grains = grains_of(measures)
    noisy = releaser.statistics(measures, groups.slice_statistics(0, len(grains)).round_statistics(grains))
    kept = np.flatnonzero(selection.select_groups(noisy, groups, releaser))
    content = open_exact(groups)
    shown, released = content.take_places(kept).key_rows, noisy[kept]
    if other is None:
        return shown, released
    hidden = content.take_places(np.setdiff1d(np.arange(content.length), kept))
    sums = [column_of([added_up(column)]) for column in hidden.statistics[: len(grains)]]
    together = ExactGroups(GroupColumns(1, (), tuple(sums))).round_statistics(grains)
    uncut = [measure.uncut for measure in measures]
    return shown.with_key(other), np.concatenate([released, releaser.statistics(uncut, together)], axis=0)


def own_budget(
    contribution: QueryContribution, epsilon: Fraction, delta: Fraction, *, weighs: bool
) -> OptimalGroupSelection | WeightedGroupSelection:
    """Returns the selection that shows the smaller groups, of people who are in as many as they may be.

    Args:
        contribution: what one unit can change.
        epsilon: what the selection may cost.
        delta: its chance of more.
        weighs: whether weights may be taken: they are for one grouping that gathers nothing.
    """
    optimal = OptimalGroupSelection.of(contribution, min(epsilon, LARGEST_EPSILON), delta)
    weighted = WeightedGroupSelection.of(contribution, epsilon, delta) if weighs else None
    return optimal if weighted is None or optimal.half_kept <= weighted.half_kept else weighted
