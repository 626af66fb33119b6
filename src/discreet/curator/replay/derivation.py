"""Answers that follow from what was released before, for nothing.

A question follows from a release if its groups are unions of the release's: it keeps some of them (its WHERE says one
thing more, about keys alone) or puts several together (it groups by fewer keys, or by what follows from them). Then its
counts and sums are sums of released ones, and means, variances and correlations follow from those. Nothing private is
looked at, neither to find out nor to answer: whether a question is free is a function of released values and
declarations.

What is bounded must be the same, too. Where each row is a unit nothing is bounded. Where people own rows, the release
must have kept all groups of each person, and groups may be left out but not put together: a person counts with a number
of rows in each group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.curator.replay.stored_releases import conditions
from discreet.dataclass import dataclass
from discreet.errors import InternalError
from discreet.exact import float_above, float_below
from discreet.measurement.aggregates import aggregation
from discreet.measurement.intervals.estimators import Estimator, RatioEstimator, sum_over_groups
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.program.execution import Change, ReleasedStatistics
from discreet.measurement.program.program import Program
from discreet.plan.analysis.group_keys import in_order
from discreet.plan.canonical import replay_order
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.model.group_columns import Key, KeyRows
from discreet.plan.model.nodes import (
    Aggregate,
    ColumnRef,
    Expression,
    Question,
    substitute,
)
from discreet.plan.post.outputs import NoisyNumber
from discreet.privacy import events

Parts = tuple[tuple[int, ...], ...]
"""For each group of a question, the places of the released groups that it is made of."""
Alike = Sequence[tuple[ReleasedStatistics, Parts]]  # releases of the same keys
MOST_PARTS = 10_000  # released groups in one of a question's


class _OutsideTheKeys(Exception):
    """A column was met that is not in the released groups."""


@dataclass(frozen=True, slots=True)
class AggregateSource:
    """One aggregate of a question, from the release `released`.

    Args:
        estimator: how the aggregate follows from the release's statistics, in one of its groups.
        parts: which of its groups make up each group of the question.
    """

    released: ReleasedStatistics
    estimator: Estimator
    parts: Parts

    def variance(self) -> Fraction:
        """Returns the variance of the aggregate's noise in the group of the question that is made of most."""
        noise, estimator = self._combine_groups(max([1, *map(len, self.parts)]))
        return estimator.variance(noise)

    def adapt(self, aggregate: Aggregate, change: Change) -> AggregateSource:
        """Returns the source with another estimator."""
        return replace(self, estimator=change(aggregate, self.estimator))

    def cells(self, outside: Fraction) -> list[NoisyNumber]:
        """Returns the aggregate of each group, with an interval that misses with at most this probability."""
        return [self._cell(places, outside) for places in self.parts]

    def _cell(self, places: Sequence[int], outside: Fraction) -> NoisyNumber:
        if not places and self.estimator.total is not None:  # no row can be in this group
            return NoisyNumber(0, 0, 0)
        nothing = np.zeros((1, self._width), dtype=object)
        noisy = [self.released.noisy[[place], : self._width] for place in places] or [nothing]
        noise, estimator = self._combine_groups(len(noisy))
        (cell,) = estimator.cells(noise, np.concatenate(noisy, axis=1), outside)
        if not isinstance(cell, NoisyNumber):
            raise InternalError("Drawn values cannot be added up.")
        return cell

    @property
    def _width(self) -> int:
        return len(self.released.program.noise.scales)

    def _combine_groups(self, count: int) -> tuple[Noise, Estimator]:
        """Returns the noise of so many groups side by side, and the estimator that adds them up."""
        noise, width = self.released.program.noise, self._width
        return noise.repeat_for_groups(count), sum_over_groups(self.estimator, range(0, count * width, width))


@dataclass(frozen=True, slots=True)
class Quotient:
    """A mean as the quotient of a released sum and a released count, held to the bounds of its values."""

    top: AggregateSource
    bottom: AggregateSource
    low: Fraction
    high: Fraction

    def variance(self) -> Fraction:
        """Returns the variance of the residual sum - m count, at the end m that makes it largest."""
        return self.top.variance() + max(abs(self.low), abs(self.high)) ** 2 * self.bottom.variance()

    def adapt(self, aggregate: Aggregate, change: Change) -> Quotient:
        """Returns the quotient with other estimators of its two parts."""
        kinds = aggregation(aggregate.kind).quotient or (aggregate.kind, aggregate.kind)
        parts = zip(kinds, (self.top, self.bottom), strict=True)
        top, bottom = (part.adapt(replace(aggregate, kind=kind), change) for kind, part in parts)
        return replace(self, top=top, bottom=bottom)

    def cells(self, outside: Fraction) -> list[NoisyNumber]:
        """Returns the mean of each group; each of the two may miss with half of the probability."""
        pairs = zip(self.top.cells(outside / 2), self.bottom.cells(outside / 2), strict=True)
        return [self._quotient(top, bottom) for top, bottom in pairs]

    def _quotient(self, top: NoisyNumber, bottom: NoisyNumber) -> NoisyNumber:
        ends = [Fraction(end) for end in (top.low, top.high)]
        counts = [Fraction(max(end, 1)) for end in (bottom.low, bottom.high)]  # a mean has one value at least
        quotients = [end / count for end in ends for count in counts]
        low, high = (self._clamp_mean(end) for end in (min(quotients), max(quotients)))
        value = self._clamp_mean(Fraction(top.value or 0) / max(Fraction(bottom.value or 1), Fraction(1)))
        return NoisyNumber(float(min(max(value, low), high)), float_below(low), float_above(high))

    def _clamp_mean(self, mean: Fraction) -> Fraction:
        return min(max(mean, self.low), self.high)


class DerivedStatistics(ReleasedStatistics):
    """The answer to a question that follows from releases; it is finished like any other.

    Args:
        program: what the question would have read and spent.
        keys: of its groups.
        sources: where each of its aggregates comes from, by name.
    """

    def __init__(self, program: Program, keys: Sequence[Key], sources: dict[str, AggregateSource | Quotient]) -> None:
        super().__init__(program, KeyRows.of(keys), np.empty((len(keys), 0), dtype=object))
        self.sources = sources

    def adapt(self, change: Change) -> DerivedStatistics:
        """Returns the same groups with other estimators of their aggregates."""
        named = {aggregate.name: aggregate for aggregate in self.program.question.aggregates}
        sources = {name: source.adapt(named[name], change) for name, source in self.sources.items()}
        return DerivedStatistics(self.program, self.keys, sources)

    def _estimate_cells(self, outside: Fraction) -> dict[str, list[NoisyNumber]]:
        return {name: source.cells(outside) for name, source in self.sources.items()}

    @property
    def own_statistics(self) -> None:
        """Returns None, because the noise is that of other releases, and several groups may share it."""

    @property
    def without_salt(self) -> ReleasedStatistics:
        """Returns the answer itself: it was made of programs without secrets."""
        return self

    @property
    def event(self) -> events.Event:
        """Returns everything that was released for it."""
        releases = {id(source.released): source.released for source in self._plain()}.values()
        return events.Composed([released.program.event for released in releases])

    @property
    def excess(self) -> Fraction:
        """Returns how many times larger the variance of its noise is than was asked for, at most; 1 or less serves."""
        noises = {name: self.program.estimators[name].variance(self.program.noise) for name in self.sources}
        return max((source.variance() / noises[name] for name, source in self.sources.items()), default=Fraction(0))

    @property
    def is_of_single_groups(self) -> bool:
        """Returns whether no groups were put together, so that rows with other keys are missing nowhere."""
        return all(len(places) <= 1 for source in self._plain() for places in source.parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns where the numbers come from, and whom they leave out."""
        said = ["The numbers follow from earlier answers, and cost nothing."]
        if not self.is_of_single_groups:
            said.append("Rows that have none of the public keys of those answers are not counted.")
        return tuple(said)

    def _plain(self) -> Iterator[AggregateSource]:
        for source in self.sources.values():
            yield from (source.top, source.bottom) if isinstance(source, Quotient) else (source,)


def derive(wanted: Program, releases: Sequence[ReleasedStatistics]) -> DerivedStatistics | None:
    """Returns the answer to a question from releases about the same rows, if it follows, with however much noise.

    Args:
        wanted: the program that would answer it otherwise.
        releases: the ones to look at, the best first.
    """
    grouped = [(release, found) for release in releases if (found := _match_groups(wanted, release)) is not None]
    for keys in dict.fromkeys(keys for _, (keys, _) in grouped):
        alike = [(release, parts) for release, (others, parts) in grouped if others == keys]
        sources = {aggregate.name: _source(aggregate, wanted, alike) for aggregate in wanted.question.aggregates}
        complete = {name: source for name, source in sources.items() if source is not None}
        if len(complete) == len(sources):
            return DerivedStatistics(wanted, keys, complete)
    return None


def may_follow(wanted: Question, given: Question) -> bool:
    """Returns whether the groups of a question may be unions of another's, by the two alone, before any is rebuilt."""
    try:
        _assign_groups(wanted, given, ())
    except _OutsideTheKeys:
        return False
    return True


def may_serve(wanted: Program, given: Question, header: Mapping[str, Any], *, as_precise: bool) -> bool:
    """Returns whether the numbers of a release may answer a question that follows from it, before they are read.

    Args:
        wanted: the program that would answer it otherwise.
        given: what was asked then.
        header: of the release.
        as_precise: whether the answer may have no more noise than the program would add.
    """
    asked, added = wanted.question, 1
    if not asked.keys and conditions(asked.where) == conditions(given.where):
        added = max(header.get("groups", 1), 1)  # all groups make up the one
    variances = header.get("variances")
    if added > MOST_PARTS or not as_precise or not variances:
        return added <= MOST_PARTS
    if any(aggregation(aggregate.kind).quotient is not None for aggregate in asked.aggregates):
        return True  # a mean may follow from two releases, each with other noise
    known = zip(replay_order(given), map(Fraction, variances), strict=True)
    return any(
        replace(one, name=aggregate.name) == aggregate
        and added * variance <= wanted.estimators[aggregate.name].variance(wanted.noise)
        for one, variance in known
        for aggregate in asked.aggregates
    )


def _source(aggregate: Aggregate, wanted: Program, alike: Alike) -> AggregateSource | Quotient | None:
    """Returns the source with the most precise estimate of an aggregate, if there is one."""
    told: list[AggregateSource | Quotient] = [*_telling(aggregate, alike)]
    mean, parts = wanted.estimators[aggregate.name], aggregation(aggregate.kind).quotient
    if parts is not None and isinstance(mean, RatioEstimator):
        tops, bottoms = ([*_telling(replace(aggregate, kind=kind), alike)] for kind in parts)
        told += [Quotient(top, bottom, mean.low, mean.high) for top in tops for bottom in bottoms]
    return min(told, key=lambda source: source.variance(), default=None)


def _telling(aggregate: Aggregate, alike: Alike) -> Iterator[AggregateSource]:
    """Yields an aggregate from each release that has it."""
    for release, parts in alike:
        for given in release.program.question.aggregates:
            if replace(given, name=aggregate.name) == aggregate:
                yield AggregateSource(release, release.program.estimators[given.name], parts)


def _match_groups(wanted: Program, release: ReleasedStatistics) -> tuple[tuple[Key, ...], Parts] | None:
    """Returns the groups of a question as unions of released ones; None if they are not."""
    given = release.program
    if given.groupings or wanted.groupings:
        return None
    if given.selection is not None or given.contribution.neighbours is not wanted.contribution.neighbours:
        return None
    try:
        assigned = _assign_groups(wanted.question, given.question, release.keys)
    except _OutsideTheKeys:
        return None
    keys = wanted.reading.public_keys
    if keys is None:
        keys = tuple(in_order(assigned)) if wanted.question.keys else ((),)
    if not all(key in assigned and len(assigned[key]) <= MOST_PARTS for key in keys):
        return None
    parts = tuple(tuple(assigned[key]) for key in keys)
    return (tuple(keys), parts) if _alike(wanted, release, parts) else None


def _alike(wanted: Program, release: ReleasedStatistics, parts: Parts) -> bool:
    """Returns whether contributions are bounded alike, each group by itself, and aggregates of unions are sums."""
    alone = all(len(places) <= 1 for places in parts)
    asked_for = [aggregation(aggregate.kind) for aggregate in wanted.question.aggregates]
    if any(each.drawn or not (alone or each.adds_up(1)) for each in asked_for):
        return False
    if release.program.reading.bounding is None:
        return True
    given, asked = release.program.contribution, wanted.contribution
    complete = given.groups >= len(release.keys) and asked.groups >= len(parts)
    return (
        alone and complete and given.limits.rows == asked.limits.rows and not (given.limits.total or asked.limits.total)
    )


def _assign_groups(wanted: Question, given: Question, keys: Sequence[Key]) -> dict[Key, list[int]]:
    """Returns for each group of a question the places of released groups in it; none if its WHERE leaves all out.

    Raises:
        _OutsideTheKeys: if that depends on more than the released keys.
    """
    here, there = conditions(wanted.where), conditions(given.where)
    if not there <= here:
        raise _OutsideTheKeys
    known: dict[Expression, Expression] = {
        key.expression: ColumnRef(f"#key{place}", key.expression.type) for place, key in enumerate(given.keys)
    }
    further = [substitute(condition, known, _unknown) for condition in here - there]
    made = [substitute(key.expression, known, _unknown) for key in wanted.keys]
    found: dict[Key, list[int]] = {}
    for place, key in enumerate(keys):
        values = {f"#key{i}": value for i, value in enumerate(key)}
        places = found.setdefault(tuple(evaluate(part, values) for part in made), [])
        if all(evaluate(condition, values) is True for condition in further):
            places.append(place)
    return found


def _unknown(column: ColumnRef) -> Expression:
    raise _OutsideTheKeys(column.name)
