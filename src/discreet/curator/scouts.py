"""Facts that nobody declared, found out privately: a noisy histogram over public buckets, and what follows from it.

A scout is a question like any other: a count by public keys, in which every unit counts once. What it releases is
noisy; everything that is read off it is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.curator.magnitudes import FALLBACK, bucket_of, buckets, range_of
from discreet.curator.program import Program, choose
from discreet.curator.run import Released
from discreet.plan.aggregates import Linear
from discreet.plan.nodes import Aggregate, Column, Key, Output, Question
from discreet.plan.schema import Bounds, Limits, TableSchema
from discreet.plan.types import Type

SHARE = Fraction(1, 5)
"""Of a question's epsilon, for all its scouts together."""

MISTAKE = Fraction(1, 1000)
"""The chance that some bucket which is empty is taken for one in use."""

ONCE = Limits(1, 1)

Spot = tuple[str, str]
"""A table and a column of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a program is built from beside the declarations: found out by scouts, or supposed in their place.

    Attributes:
        bounds: of columns.
        guessed: the columns that no bucket told anything about.
    """

    bounds: Mapping[Spot, Bounds]
    guessed: frozenset[Spot] = frozenset()

    def with_bounds(self, spot: Spot, found: Bounds | None) -> Facts:
        """These facts and one more; a fixed range if nothing was found."""
        guessed = self.guessed if found is not None else self.guessed | {spot}
        return Facts(bounds={**self.bounds, spot: found or FALLBACK}, guessed=guessed)


@dataclass(frozen=True, slots=True)
class BoundsScout:
    """Finds bounds of a column: on the whole table, unfiltered, so that every question about it may use them.

    Formal guarantee: the released histogram costs what its program's event says, each unit counting once in one bucket
    (Laplace noise of scale 1/epsilon, 2/epsilon under REPLACE). With a probability of at least 1 - MISTAKE no empty
    bucket is taken for one in use.
    """

    table: TableSchema
    column: str
    salt: str

    @property
    def spot(self) -> Spot:
        """Which column."""
        return self.table.name, self.column

    @property
    def kind(self) -> Type:
        """The column's type."""
        return self.table.columns[self.column].type

    def program(self, epsilon: Fraction) -> Program:
        """A count of people by magnitude."""
        keys = tuple((bucket,) for bucket in buckets(self.kind))
        return choose(self._question(), self.table, epsilon=epsilon, limits=ONCE, salt=self.salt, keys=keys)

    def found(self, released: Released) -> Bounds | None:
        """The smallest range of all buckets that noise alone does not explain."""
        least = threshold(released.program)
        used = {key[0] for key, (count,) in zip(released.keys, released.noisy, strict=True) if count > least}
        return range_of(self.kind, used.__contains__)

    def _question(self) -> Question:
        x = Column(self.column, self.kind)
        return Question(
            table=self.table.name,
            keys=(Key("magnitude", bucket_of(x)),),
            aggregates=(Aggregate(name="#1", kind="count"),),
            outputs=(
                Output(f"magnitude of {self.column}", Column("magnitude", Type.INT)),
                Output("people", Column("#1", Type.INT)),
            ),
        )


def threshold(program: Program) -> Fraction:
    """A count that no empty bucket exceeds, with a probability of at least 1 - MISTAKE for all of them together."""
    keys = program.reading.public_keys or ((),)
    return program.noise.certain_reach(Linear.at(0), 2 * MISTAKE / len(keys))  # above zero only: half of the risk
