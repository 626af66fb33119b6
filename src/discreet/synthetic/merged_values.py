"""Values that noise hides are one value in a model, and are separated again when rows are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter
from discreet.synthetic.coded_rows import Integers
from discreet.synthetic.domain import Domain
from discreet.synthetic.inference.factors import Factor, Table
from discreet.synthetic.inference.noisy_marginals import NoisyMarginal


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """Holds which values of a column are one, and how likely each of them is among those.

    Args:
        places: for each value the number of its group.
        weights: of each value, not negative; those of a group add up to 1.
    """

    places: Integers
    weights: Table

    @property
    def size(self) -> int:
        """Returns the number of groups."""
        return int(self.places.max()) + 1

    def split(self, groups: Integers, uniforms: Table) -> Integers:
        """Returns a value for each group that was drawn, by numbers in (0, 1).

        >>> Merge(np.array([0, 1, 1]), np.array([1.0, 0.5, 0.5])).split(np.array([1, 1, 0]), np.array([0.2, 0.8, 0.9]))
        array([1, 2, 0])
        """
        order = np.argsort(self.places, kind="stable")
        starts = np.searchsorted(self.places[order], np.arange(self.size))
        sums = np.cumsum(self.weights[order])
        before = sums[starts] - self.weights[order][starts]
        ends = np.append(starts[1:], order.size) - 1
        target = before[groups] + uniforms * (sums[ends] - before)[groups]
        found = np.searchsorted(sums, target, side="right")
        return np.asarray(order[np.clip(found, starts[groups], ends[groups])])

    def spread(self, table: Table, axis: int) -> Table:
        """Returns a table over all values, made of one over groups."""
        shape = [1] * table.ndim
        shape[axis] = self.weights.size
        return np.take(table, self.places, axis=axis) * self.weights.reshape(shape)

    def merge_axis(self, table: Table, axis: int) -> Table:
        """Returns a table over groups, made of one over all values by adding up."""
        moved = np.moveaxis(table, axis, 0)
        made = np.zeros((self.size, *moved.shape[1:]))
        np.add.at(made, self.places, moved)
        return np.moveaxis(made, 0, axis)

    def as_dict(self) -> dict[str, Any]:
        """Returns plain data for JSON."""
        return {"places": self.places.tolist(), "weights": self.weights.tolist()}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Merge:
        """Returns what `as_dict` wrote."""
        places, weights = np.array(found["places"], dtype=np.int64), np.array(found["weights"], dtype=np.float64)
        used = set(places.tolist())
        if places.shape != weights.shape or places.ndim != 1 or used != set(range(len(used))):
            raise InvalidParameter("merges", "other numbers", "to be groups of values")
        return cls(places, weights)


def rare_values(
    domain: Domain, measured: Sequence[NoisyMarginal], estimates: Mapping[str, Table], *, deviations: float
) -> dict[str, Merge]:
    """Returns for each column which values are one: those whose noisy count is below some deviations of its noise.

    Values that a public rule separates stay apart: what is forbidden is a matter of groups then.

    Formal guarantee: a function of released numbers and of the public domain.

    Args:
        domain: the columns.
        measured: one-way marginals, one of each column.
        estimates: the estimated shares of each column's values, by which a group is separated again.
        deviations: below how many a count is rare.
    """
    found: dict[str, Merge] = {}
    for marginal in measured:
        (name,) = marginal.attributes
        rare = marginal.values < deviations * marginal.sigma
        kinds = [tuple(value in rule[name] for rule in domain.forbidden if name in rule) for value in range(rare.size)]
        groups: dict[Any, int] = {}
        keys = [(kind, -1 if rare[value] else value) for value, kind in enumerate(kinds)]
        places = np.array([groups.setdefault(key, len(groups)) for key in keys], dtype=np.int64)
        if len(groups) < rare.size:
            found[name] = Merge(places, _within(places, estimates[name]))
    return found


def _within(places: Integers, shares: Table) -> Table:
    """Returns the shares of values within their groups, evenly where a group has none."""
    positive = np.maximum(shares, 0.0)
    totals = np.bincount(places, weights=positive)[places]
    even = 1.0 / np.bincount(places)[places]
    return np.where(totals > 0, positive / np.where(totals > 0, totals, 1.0), even)


def merged_zeros(zeros: Iterable[Factor], merges: Mapping[str, Merge]) -> list[Factor]:
    """Returns public zeros over groups; each group lies within a rule or outside of it, so that nothing is lost."""
    found = []
    for zero in zeros:
        logs = zero.logs
        for axis, name in enumerate(zero.attributes):
            if name in merges:
                first = np.array([np.flatnonzero(merges[name].places == g)[0] for g in range(merges[name].size)])
                logs = np.take(logs, first, axis=axis)
        found.append(Factor(zero.attributes, logs))
    return found


def merged_marginal(marginal: NoisyMarginal, merges: Mapping[str, Merge], estimate: Table) -> NoisyMarginal:
    """Returns the marginal of one column over groups.

    The sum of g noisy counts has g times the variance of one. The estimate knows the total and that no count is
    negative, so that its sum is closer, and is what a group of several values gets.

    Args:
        marginal: as it was measured.
        merges: the groups.
        estimate: the estimated counts of the column's values.
    """
    (name,) = marginal.attributes
    if name not in merges:
        return marginal
    merge = merges[name]
    single = np.bincount(merge.places) == 1
    values = np.where(single, merge.merge_axis(marginal.values, 0), merge.merge_axis(estimate, 0))
    return NoisyMarginal(marginal.attributes, values, marginal.sigma)
