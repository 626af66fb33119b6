"""People by the size of a number of theirs: sums over public buckets, with the reach of all their noise together.

Each interval misses with at most the stated probability. How much the heaviest people have is unknown to any private
release: where no largest number per person is declared, no finite upper end is valid, and there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property, lru_cache

from discreet.dataclass import dataclass
from discreet.measurement.intervals.noise import Noise
from discreet.measurement.probes.probes import MISTAKE
from discreet.measurement.profile.parts import BUCKETS, EXCESS, PEOPLE, width
from discreet.measurement.program.execution import ReleasedStatistics
from discreet.measurement.releases.additive import LinearCombination
from discreet.report.display import amount

Weights = tuple[Fraction, Fraction]
"""What one person of a bucket counts for, and what each unit of their excess does."""


@dataclass(frozen=True, slots=True)
class Figure:
    """An estimate and its interval; an end may be infinite."""

    value: float
    low: float
    high: float

    def __add__(self, other: Figure) -> Figure:
        return Figure(self.value + other.value, self.low + other.low, self.high + other.high)

    def __str__(self) -> str:
        end = "no bound" if math.isinf(self.high) else amount(math.ceil(self.high))
        return f"{amount(round(self.value))} ({amount(math.floor(self.low))} to {end})"


ZERO = Figure(0.0, 0.0, 0.0)


def less(every: Figure, some: Figure) -> Figure:
    """Returns how many are left without some of them, or with all: it is not known which ones both are about."""
    ends = (every.value, some.value), (every.low, some.high), (every.high, 0.0)
    return Figure(*(max(0.0, a - b) for a, b in ends))


@dataclass(frozen=True)
class Sizes:
    """People by the bucket of a number of theirs, as they were released.

    Args:
        released: counts of people, and sums of how far they are above where their bucket begins.
        most: the largest number that one person has, if it is declared.
    """

    released: ReleasedStatistics
    most: int | None = None

    @cached_property
    def _significant_buckets(self) -> frozenset[int]:
        """Returns the buckets that noise alone does not explain."""
        counts = self._linear(PEOPLE)
        least = self.released.program.noise.reach(counts, 2 * MISTAKE / len(BUCKETS))  # above zero only
        return frozenset(
            bucket
            for bucket, row in zip(BUCKETS, self.released.noisy, strict=True)
            if counts.value(row) > least and self._possible(bucket)
        )

    def _possible(self, bucket: int) -> bool:
        return self.most is None or width(bucket) < self.most

    def _linear(self, name: str) -> LinearCombination:
        total = self.released.program.estimators[name].total
        assert total is not None  # noqa: S101 - counts and sums are totals
        return total.linear

    def people(self, outside: Fraction) -> Figure:
        """Returns how many people there are."""
        return self._sum_buckets({bucket: (Fraction(1), Fraction(0)) for bucket in BUCKETS}, outside)

    def sum_within_limit(self, limit: int, outside: Fraction) -> Figure:
        """Returns the sum over all people of their numbers, each cut to a limit."""
        low = {bucket: _weights_within(bucket, limit, upper=False) for bucket in BUCKETS}
        high = {bucket: _weights_within(bucket, limit, upper=True) for bucket in BUCKETS}
        first, second = self._sum_buckets(low, outside / 2), self._sum_buckets(high, outside / 2)
        return Figure((first.value + second.value) / 2, first.low, second.high)

    def beyond(self, limit: int, outside: Fraction) -> Figure:
        """Returns the sum over all people of what their numbers exceed a limit by.

        Without a declared largest number there is no upper end, and the lower one is that of the buckets that
        certainly have people, each within its own share of the risk.
        """
        if self.most is not None and self.most <= limit:
            return ZERO
        low = {bucket: _beyond(bucket, limit, upper=False) for bucket in BUCKETS if self._possible(bucket)}
        high = {bucket: _beyond(bucket, limit, upper=True) for bucket in low}
        if self.most is not None:
            first, second = self._sum_buckets(low, outside / 2), self._sum_buckets(high, outside / 2)
            value = sum(max(0.0, self._one(b, low[b]) + self._one(b, high[b])) / 2 for b in self._significant_buckets)
            return Figure(min(max(value, first.low), second.high), first.low, second.high)
        value, least, share = 0.0, 0.0, outside / len(BUCKETS)
        for bucket in self._significant_buckets:
            value += max(0.0, self._one(bucket, low[bucket]) + self._one(bucket, high[bucket])) / 2
            least += self._sum_buckets({bucket: low[bucket]}, share).low
        return Figure(max(value, least), least, math.inf)

    def share_above(self, limit: int, outside: Fraction = Fraction(1, 20)) -> Figure:
        """Returns the share of people whose number is above a limit; one inside a bucket counts the whole bucket."""
        above = {bucket: (Fraction(1), Fraction(0)) for bucket in BUCKETS if 2 * max(width(bucket), 1) > limit}
        above.pop(1, None)
        return share(self._sum_buckets(above, outside / 2), self._rest(above, outside / 2))

    def _rest(self, above: Mapping[int, Weights], outside: Fraction) -> Figure:
        return self._sum_buckets({b: (Fraction(1), Fraction(0)) for b in BUCKETS if b not in above}, outside)

    def quantile(self, place: Fraction) -> int:
        """Returns the end of the bucket in which a share of people is reached, by the buckets that are in use."""
        counts = self._linear(PEOPLE)
        used = {
            b: counts.value(row)
            for b, row in zip(BUCKETS, self.released.noisy, strict=True)
            if b in self._significant_buckets
        }
        total, so_far = sum(used.values(), Fraction(0)), Fraction(0)
        for bucket in sorted(used):
            so_far += used[bucket]
            if so_far >= place * total:
                return max(1, 2 * width(bucket))
        return 0

    def _one(self, bucket: int, weights: Weights) -> float:
        row = self.released.noisy[bucket - BUCKETS[0]]
        people, excess = weights
        return float(people * self._linear(PEOPLE).value(row) + excess * self._linear(EXCESS).value(row))

    def _sum_buckets(self, weights: Mapping[int, Weights], outside: Fraction) -> Figure:
        """Returns a sum over buckets of counts and excesses, with the reach of all their noise together."""
        program, columns = self.released.program, len(self.released.program.noise.scales)
        used = {bucket: parts for bucket, parts in weights.items() if any(parts) and self._possible(bucket)}
        if not used:
            return ZERO
        linear = LinearCombination(())
        for bucket, (people, excess) in used.items():
            own = self._linear(PEOPLE) * people + self._linear(EXCESS) * excess
            place = columns * (bucket - BUCKETS[0])
            linear = linear + LinearCombination.of({place + at: weight for at, weight in own.weights})
        value = sum(self._one(bucket, parts) for bucket, parts in used.items())
        reach = float(_reach(program.noise, linear, outside) + self._rounding(used))
        return Figure(max(value, 0.0), max(value - reach, 0.0), max(value + reach, 0.0))

    def _rounding(self, used: Mapping[int, Weights]) -> Fraction:
        """Returns how far rounding excesses to their grid moves a sum, for as many people as a table may have."""
        total = self.released.program.estimators[EXCESS].total
        each = Fraction(0) if total is None else total.most_rounding
        return each * sum((abs(excess) for _, excess in used.values()), Fraction(0))


@lru_cache(maxsize=1024)  # the same sums are asked about with every answer
def _reach(noise: Noise, linear: LinearCombination, outside: Fraction) -> Fraction:
    return noise.repeat_for_groups(len(BUCKETS)).reach(linear, outside)


def _beyond(bucket: int, limit: int, *, upper: bool) -> Weights:
    """Returns by how much people of a bucket exceed a limit.

    A person is at w + w e, 0 < e <= 1. Where the limit lies inside the bucket, max(0, w + w e - limit) is convex in e:
    at most its chord from 0 at e = 0 to 2 w - limit at e = 1, at least its second branch.
    """
    start = width(bucket)
    if bucket == 1:
        return Fraction(limit == 0), Fraction(0)
    if limit >= 2 * start:
        return Fraction(0), Fraction(0)
    if limit <= start or not upper:
        return Fraction(start - limit), Fraction(start)
    return Fraction(0), Fraction(2 * start - limit)


def _weights_within(bucket: int, limit: int, *, upper: bool) -> Weights:
    """Returns what people of a bucket have up to a limit: all of it less the excess."""
    start = width(bucket)
    if bucket == 1:
        return Fraction(1), Fraction(0)
    people, excess = _beyond(bucket, limit, upper=not upper)
    return Fraction(start) - people, Fraction(start) - excess


def share(part: Figure, rest: Figure) -> Figure:
    """Returns which share of both together one of them is.

    >>> share(Figure(1, 0, 2), Figure(3, 2, 6))
    Figure(value=0.25, low=0.0, high=0.5)
    """
    low, high = _share(part.low, rest.high), _share(part.high, rest.low)
    return Figure(min(max(_share(part.value, rest.value), low), high), low, high)


def _share(part: float, rest: float) -> float:
    if math.isinf(part):
        return 1.0
    return part / (part + rest) if part + rest > 0 else 0.0
