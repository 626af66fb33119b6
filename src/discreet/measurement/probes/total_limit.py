"""How many rows of one person should count, found by one private release of a whole table.

With a limit of L rows the noise of a COUNT grows with L, and rows beyond L are left out. The error is least where about
1 / epsilon people have more than L rows: raising L by one gains their rows, and costs noise of 1 / epsilon. So the
limit is the first of a public list that few people exceed.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from functools import cached_property

from discreet.dataclass import dataclass
from discreet.measurement.probes.probes import ONCE, Schemas, describe_counted_rows, read_by
from discreet.measurement.program.execution import Reader, answerable
from discreet.measurement.program.program import choose
from discreet.measurement.releases.releaser import Releaser
from discreet.mechanisms import SparseVector
from discreet.plan.analysis.relation_schema import own_rows
from discreet.plan.model.nodes import Aggregate, ColumnRef, Expression, FunctionCall, Key, Literal, Output, Question
from discreet.plan.model.readings import Reading
from discreet.plan.model.relations import Fold, UnitAggregation
from discreet.plan.model.schema import Limits, TableSchema
from discreet.plan.model.types import Type
from discreet.privacy import Neighbours, events

FEW = 3
"""How many times 1 / epsilon people may have more rows than the limit, epsilon being the price of the release.

The noise of the threshold and of a count reach about that far, each: of fewer people nothing would be seen, and the
search would pass over all limits that are large enough.
"""


def _fibonacci(most: int) -> tuple[int, ...]:
    found = [1, 2]
    while found[-1] < most:
        found.append(found[-1] + found[-2])
    return tuple(found)


LIMITS = _fibonacci(1 << 20)
"""The limits that can be found: 1, 2, 3, 5, 8, ... 1,346,269."""

_SIZE = ColumnRef("#f0", Type.INT)


@dataclass(frozen=True, kw_only=True)
class TotalLimit:
    """The search for how many rows of one person count, in all groups together, over all rows of a table.

    Formal guarantee: epsilon-DP, as `SparseVector` proves, for the one answer that it gives. Its queries are the
    numbers of people with more than L rows, for each L of `LIMITS`. A person who comes or goes moves each of them by
    one at most, all in the same direction; one who is replaced moves each by one. The list is public, and the search
    ends at the first yes.

    Args:
        table: which is searched.
        schemas: the declared tables by name.
        epsilon: what it costs.
        salt: of the rule by which rows are kept.
    """

    table: str
    schemas: Schemas = field(repr=False)
    epsilon: Fraction
    salt: str = field(repr=False)

    @property
    def schema(self) -> TableSchema:
        """Returns the declared table."""
        return self.schemas[self.table]

    @property
    def tables(self) -> list[TableSchema]:
        """Returns the table, and those that tell whose rows it has."""
        return read_by(self.question, self.schemas)

    @property
    def mechanism(self) -> SparseVector:
        """Returns the search: of people with more rows, as negative numbers, the first that is high enough."""
        neighbours = self.schema.neighbours
        return SparseVector(
            epsilon=self.epsilon,
            sensitivity=1,
            threshold=-(FEW / self.epsilon).__ceil__(),
            monotone=neighbours is Neighbours.ADD_REMOVE,
            neighbours=neighbours,
        )

    @property
    def event(self) -> events.Event:
        """Returns what it costs."""
        return self.mechanism.event

    @cached_property
    def question(self) -> Question:
        """Returns the count of people by the number of their rows."""
        counted = Fold(name=_SIZE.name, kind="count", type=Type.INT)
        return Question(
            table=self.table,
            source=UnitAggregation(own_rows(self.table, self.schemas), (), (counted,)),
            keys=(Key("rows", _place_of(_SIZE)),),
            aggregates=(Aggregate(name="#1", kind="count"),),
            outputs=(
                Output("rows per person", ColumnRef("rows", Type.INT)),
                Output("people", ColumnRef("#1", Type.INT)),
            ),
        )

    @property
    def reading(self) -> Reading:
        """Returns what is read: for each limit of the list, how many people have as many rows, and more than before."""
        keys = tuple((place,) for place in range(len(LIMITS)))
        schema = describe_counted_rows(self.question, self.schemas)
        program = choose(self.question, schema, epsilon=self.epsilon, limits=ONCE, salt=self.salt, keys=keys)
        return answerable(program, self.schemas).reading

    def release(self, engine: Reader, releaser: Releaser) -> Limits:
        """Reads the table and returns the limit that was found."""
        people = engine.read(self.reading).align_to(self.reading.public_keys or ())
        return Limits(total=LIMITS[releaser.first_of_few(self.mechanism, people)])


def _place_of(size: Expression) -> Expression:
    """Returns in which place of `LIMITS` the smallest limit stands that a number does not exceed; else the last."""
    return _between(size, 0, len(LIMITS) - 1)


def _between(size: Expression, first: int, last: int) -> Expression:
    if first == last:
        return Literal(first, Type.INT)
    middle = (first + last) // 2
    small = FunctionCall("less_equal", (size, Literal(LIMITS[middle], Type.INT)), Type.BOOL)
    return FunctionCall("if", (small, _between(size, first, middle), _between(size, middle + 1, last)), Type.INT)
