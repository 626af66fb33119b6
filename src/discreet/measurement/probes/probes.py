"""Facts that were not declared, found out privately: a noisy histogram over public buckets, and what follows from it.

A probe is a question like any other: a count by public keys, in which every unit counts once. What it releases is
noisy; everything that is read off it is post-processing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal, Protocol

from discreet.dataclass import dataclass
from discreet.measurement.probes.magnitudes import bucket_of, buckets, edge, fallback, range_of, widest
from discreet.measurement.program.execution import ReleasedStatistics, answerable
from discreet.measurement.program.program import Program, choose
from discreet.measurement.releases.additive import LinearCombination
from discreet.plan.analysis.relation_schema import add_source, describe
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, Key, Output, Question, Relation, Value
from discreet.plan.model.relations import BaseTable, Fold, UnitAggregation, tables
from discreet.plan.model.schema import ColumnBounds, Limits, TableSchema
from discreet.plan.model.types import Type

SHARE = Fraction(1, 5)
"""Of a question's epsilon, for all its probes together."""

MISTAKE = Fraction(1, 1000)
"""The chance that some bucket which is empty is taken for one in use."""

WIDER = Fraction(1, 20)
"""The chance that bounds are twice as wide as they need be, and so on: a quarter of it for twice that."""

WHOLE = Fraction(19, 20)
"""The part of all people whose groups limits should keep, by the noisy counts."""

_NOISE = 3 * (SHARE / (1 - SHARE))
"""How far the noise of a question reaches with 95 % confidence, in scales of the noise of its probe."""

ONCE = Limits(1, 1)
LARGEST_LIMIT = 20  # as a power of two

Spot = tuple[str, str]
"""A table and a column of it, or what is counted in it: "#rows" or "#groups"."""

Schemas = Mapping[str, TableSchema]
Fact = ColumnBounds | int
Counted = Literal["#rows", "#groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts that a program is built from, besides the declarations: found by probes, or supposed in their place.

    Attributes:
        known: bounds of columns, and limits.
        guessed: those about which no bucket said anything.
        times: bounds of days and moments, which are numbers of days.
    """

    known: Mapping[Spot, Fact]
    guessed: frozenset[Spot] = frozenset()
    times: frozenset[Spot] = frozenset()

    def having(self, probe: Probe, found: Fact | None) -> Facts:
        """Returns these facts and one more; a fixed one if nothing was found."""
        return Facts(
            known={**self.known, probe.spot: probe.fallback if found is None else found},
            guessed=self.guessed if found is not None else self.guessed | {probe.spot},
            times=self.times | ({probe.spot} if isinstance(probe, BoundsProbe) and probe.kind.is_time else set()),
        )

    @property
    def bounds(self) -> dict[Spot, ColumnBounds]:
        """Returns the bounds of columns."""
        return {spot: fact for spot, fact in self.known.items() if isinstance(fact, ColumnBounds)}

    def limits(self, usual: Limits) -> Limits:
        """Returns how much one unit counts, if that was to be found out."""
        found = {what: fact for (_, what), fact in self.known.items() if isinstance(fact, int)}
        return Limits(found.get("#groups", usual.groups), found.get("#rows", usual.rows)) if found else usual

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns what they mean for the numbers, in sentences."""
        told = [
            _about_bounds(spot[1], _between(found, spot in self.times), spot in self.guessed)
            for spot, found in self.bounds.items()
        ]
        limits = [spot for spot, fact in self.known.items() if isinstance(fact, int)]
        if self.guessed.intersection(limits):
            told.append("Too few people to choose limits. The limits of the table are used.")
        elif limits:
            told.append("Limits were chosen privately, to leave out few rows and add little noise, and are remembered.")
        return tuple(told)


def _between(bounds: ColumnBounds, are_days: bool) -> str:
    if are_days:
        first, last = (dt.date.fromordinal(int(end)) for end in (bounds.low, bounds.high))
        return f"{first} to {last}"
    return f"{float(bounds.low):,.10g} to {float(bounds.high):,.10g}"


def _about_bounds(column: str, between: str, guessed: bool) -> str:
    if guessed:
        return (
            f"Too few people to choose bounds of {column}. Its values are clipped to {between}, a range that "
            "does not depend on the data. Declare bounds, or ask with a larger epsilon. If the column should be full, "
            "its steward can see with discreet check whether its values are read."
        )
    return f"Values of {column} are clipped to {between}, bounds that were chosen privately and are remembered."


NOTHING = Facts(known={})


def describe_counted_rows(plan: Question, schemas: Schemas) -> TableSchema:
    """Returns what is public about the rows that a question counts."""
    return schemas[plan.table] if plan.source is None else describe(plan.source, schemas)


def read_by(plan: Question, schemas: Schemas) -> list[TableSchema]:
    """Returns the tables that a question reads, by name."""
    plans = (plan, *plan.beside)
    names = {name for one in plans for name in (one.table, *(tables(one.source) if one.source is not None else ()))}
    return [schemas[name] for name in sorted(names)]


class Probe(Protocol):
    """Finds out one fact."""

    @property
    def spot(self) -> Spot:
        """Returns the table, and the column or the number, that the fact is about."""

    @property
    def tables(self) -> list[TableSchema]:
        """Returns what it reads."""

    @property
    def fallback(self) -> Fact:
        """Returns what is taken where nothing is found: a constant."""

    @property
    def assumed_fact(self) -> Fact:
        """Returns what a price is made with before anything is found."""

    @property
    def subject(self) -> str:
        """Returns what it finds out, in words."""

    def program(self, epsilon: Fraction) -> Program:
        """Returns what it reads, at a budget."""

    def find_fact(self, released: ReleasedStatistics, *, former: bool = False) -> Fact | None:
        """Returns what follows from what it released, or followed when it was; None if nothing follows."""


@dataclass(frozen=True)
class BoundsProbe:
    """Finds bounds of a column: on the whole table, unfiltered, so that every question about it may use them.

    Formal guarantee: the released histogram costs what its program's event says, each unit counting once in one bucket
    (Laplace noise of scale 1/epsilon, 2/epsilon under REPLACE). With a probability of at least 1 - MISTAKE no bucket
    is taken for one in use while it and all between it and others are empty, but for some next to those: of d empty
    ones beyond the last, the farthest is with a chance of WIDER / 4^d.

    Bounds aim for the least error of a sum. Values beyond them are off by half of the last bucket or more, each; bounds
    twice as wide have twice the noise, of a few such values' size. So a bucket beyond is worth its noise as soon as it
    differs clearly from noise, and what a mistake costs, 2^d times the noise, is rare enough to cost WIDER on average.
    """

    schemas: Schemas = field(repr=False)
    table: str
    column: str
    salt: str = field(repr=False)

    @property
    def spot(self) -> Spot:
        """Returns the table and the column."""
        return self.table, self.column

    @property
    def tables(self) -> list[TableSchema]:
        """Returns the column's table, and those that tell whose rows it has."""
        return read_by(self._question, self.schemas)

    @property
    def fallback(self) -> ColumnBounds:
        """Returns a small range around zero; of days and moments, a hundred years around today's."""
        return fallback(self.kind)

    @property
    def assumed_fact(self) -> ColumnBounds:
        """Returns the widest bounds there are."""
        return widest(self.kind)

    @property
    def subject(self) -> str:
        """Returns what it finds out."""
        return f"Bounds of {self.column}"

    @property
    def kind(self) -> Type:
        """Returns the column's type."""
        return self.schemas[self.table].columns[self.column].type

    def program(self, epsilon: Fraction) -> Program:
        """Returns a count of people by magnitude."""
        return self._programs(epsilon)

    @cached_property
    def _programs(self) -> Callable[[Fraction], Program]:
        return _by_budget(self._question, buckets(self.kind), self.schemas, self.salt)

    @cached_property
    def _question(self) -> Question:
        x = ColumnRef(self.column, self.kind)
        return add_source(_histogram(self.table, None, x, f"magnitude of {self.column}"), self.schemas)

    def find_fact(self, released: ReleasedStatistics, *, former: bool = False) -> ColumnBounds | None:
        """Returns the smallest range of all buckets that noise alone does not explain, and of their neighbours."""
        least = threshold(released.program)
        counts: dict[int, int] = {bucket: n for (bucket,), (n,) in zip(released.keys, released.noisy, strict=True)}  # type: ignore[misc]
        used = {bucket for bucket, count in counts.items() if count > least}
        if used and not former and not self.kind.is_time:
            ends = ((min(used), -1), (max(used), 1))
            used |= {_farthest(counts, last, side, released.program) for last, side in ends}
        return range_of(self.kind, used.__contains__)


@dataclass(frozen=True, kw_only=True)
class LimitsProbe:
    """Finds how many rows people have in a group, or how many groups: over all rows, unfiltered.

    Formal guarantee: one person's rows are folded into one number, so that each unit counts once in one bucket, and the
    released histogram costs what its program's event says. The limit of rows is the power of two with the least error
    of a count by the noisy counts: rows beyond it and noise, which grows with it. That of groups is the smallest one
    that keeps all groups of `WHOLE` of the people: what noise costs depends on how many groups there are.

    Args:
        counted: which of the two.
        plan: the question whose rows and groups are counted.
        schemas: the declared tables by name.
        fallback: the table's own limit.
        salt: of the rule by which rows are kept.
    """

    counted: Counted
    plan: Question
    schemas: Schemas = field(repr=False)
    fallback: int
    salt: str = field(repr=False)

    @property
    def spot(self) -> Spot:
        """Returns the table and which number is counted."""
        return self.plan.table, self.counted

    @property
    def tables(self) -> list[TableSchema]:
        """Returns those of the question."""
        return read_by(self.plan, self.schemas)

    @property
    def assumed_fact(self) -> int:
        """Returns the table's own limit: no price depends on it."""
        return self.fallback

    @property
    def subject(self) -> str:
        """Returns what it finds out."""
        return "The limit of rows per person and group" if self.counted == "#rows" else "The limit of groups per person"

    def program(self, epsilon: Fraction) -> Program:
        """Returns a count of people by the number of their rows, or of their groups."""
        return self._programs(epsilon)

    @cached_property
    def _programs(self) -> Callable[[Fraction], Program]:
        plan = add_source(self.plan, self.schemas)
        rows = plan.source or BaseTable(plan.table, self.schemas[plan.table].unit)
        by_group = _per_unit(rows, _count("#f0"), tuple(key.expression for key in plan.keys))
        most = Fold(name="#f0", kind="max", type=Type.INT, argument=ColumnRef("#f0", Type.INT))
        each = _per_unit(by_group, most if self.counted == "#rows" else _count("#f0"))
        asked = _histogram(plan.table, each, ColumnRef("#f0", Type.INT), self.counted[1:])
        return _by_budget(asked, _SIZES, self.schemas, self.salt)

    def find_fact(self, released: ReleasedStatistics, *, former: bool = False) -> int | None:
        """Returns the power of two that suits most people, or a count; None if there may be no people."""
        counts = [max(0, int(count)) for (count,) in released.noisy]
        least = threshold(released.program)
        if max(counts) <= least:
            return None
        used = [count if count > least else 0 for count in counts]
        if self.counted == "#rows" and not former:
            return _least_error(used, released.program.noise.scales[0] * _NOISE)
        kept = (place for place in range(len(used)) if sum(used[: place + 1]) >= WHOLE * sum(used))
        return int(edge(Type.INT, _SIZES[next(kept)]))


_SIZES = range(1, LARGEST_LIMIT + 2)


def _count(name: str) -> Fold:
    return Fold(name=name, kind="count", type=Type.INT)


def _per_unit(rows: Relation, fold: Fold, keys: tuple[Expression, ...] = ()) -> UnitAggregation:
    return UnitAggregation(rows, tuple(Output(f"k{place}", key) for place, key in enumerate(keys)), (fold,))


def _histogram(table: str, source: Relation | None, x: ColumnRef, name: str) -> Question:
    return Question(
        table=table,
        source=source,
        keys=(Key("magnitude", bucket_of(x)),),
        aggregates=(Aggregate(name="#1", kind="count"),),
        outputs=(Output(name, ColumnRef("magnitude", Type.INT)), Output("people", ColumnRef("#1", Type.INT))),
    )


def _by_budget(asked: Question, numbered: range, schemas: Schemas, salt: str) -> Callable[[Fraction], Program]:
    """Returns a function from an epsilon to a histogram over these buckets, in which every unit counts once."""
    keys: tuple[tuple[Value, ...], ...] = tuple((bucket,) for bucket in numbered)

    @lru_cache(maxsize=8)
    def program(epsilon: Fraction) -> Program:
        made = choose(asked, describe_counted_rows(asked, schemas), epsilon=epsilon, limits=ONCE, salt=salt, keys=keys)
        return answerable(made, schemas)

    return program


def _farthest(counts: Mapping[int, int], last: int, side: int, program: Program) -> int:
    """Returns the farthest bucket beyond the last one that is in use, if its count is too large for its distance."""
    found, risk = last, WIDER
    beyond = last + side
    while beyond in counts:
        risk /= 4
        if counts[beyond] > program.noise.certain_reach(LinearCombination.at(0), 2 * risk):  # above zero only
            found = beyond
        beyond += side
    return found


def _least_error(people: Sequence[int], noise: Fraction) -> int:
    """Returns the limit with the least sum of rows left out and noise; people of a bucket have its middle as size.

    Args:
        people: how many there are in each bucket of sizes.
        noise: how far that of a count reaches, for a limit of one row.
    """
    ends = [int(edge(Type.INT, bucket)) for bucket in _SIZES]
    sizes = [Fraction(low + 1 + high, 2) for low, high in zip([0, *ends], ends, strict=False)]

    def error(limit: int) -> Fraction:
        left = sum(count * max(size - limit, Fraction(0)) for count, size in zip(people, sizes, strict=True))
        return left + limit * noise

    return min(ends, key=error)


def threshold(program: Program) -> Fraction:
    """Returns a count that no empty bucket exceeds, but for a probability of MISTAKE for all of them together."""
    keys = program.reading.public_keys or ((),)
    return program.noise.certain_reach(
        LinearCombination.at(0), 2 * MISTAKE / len(keys)
    )  # above zero only: half of the risk
