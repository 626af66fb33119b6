"""Rehearsals: the shape of an answer on synthetic rows, from declarations and the question's own text alone."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from discreet.curator.measurement_plan import MeasurementPlan, QueryBudget
from discreet.curator.replay.stored_releases import MeasurementResult
from discreet.engines.memory.engine import Memory
from discreet.measurement.probes.probes import BoundsProbe, Fact, Probe
from discreet.measurement.program.execution import ReleasedStatistics, run
from discreet.measurement.program.program import Program
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.releaser import Releaser
from discreet.noise import SeededBits, uniform_below
from discreet.plan.expressions.functions import LAST_DAY
from discreet.plan.model.nodes import Expression, FunctionCall, Literal, Question, Value
from discreet.plan.model.readings import Reading
from discreet.plan.model.schema import ColumnBounds, ColumnSchema, TableSchema
from discreet.plan.model.types import Type

NOTE = "Synthetic rows: nothing was read and nothing was spent. Columns, types and errors are those of a real answer."
SALT = "rehearsal"

INVENTED = ColumnBounds(Fraction(0), Fraction(4))
"""Of columns that have none."""

_SEED = 1  # every rehearsal of a question is the same one
_WORDS = ("amber", "birch", "cedar", "delta", "ember")
_ROWS_OF_ONE = 2
_LARGEST_CROWD = 1 << 40
_GROWTH = 1 << 5

Row = dict[str, Value]


def rehearse_query(measurement: MeasurementPlan, terms: QueryBudget, rows: int) -> MeasurementResult:
    """Returns what a question would release about invented people; facts that are missing are made up as well."""
    facts = measurement.facts
    for probe in measurement.missing:
        facts = facts.having(probe, _made_up(probe))
    program = measurement.program(terms, facts)
    released = rehearsal(program, measurement.tables(facts), rows)
    return MeasurementResult(released=released, facts=facts, event=program.event, private=False)


def _made_up(probe: Probe) -> Fact:
    """Returns what a probe finds out in a rehearsal."""
    if isinstance(probe, BoundsProbe):
        return probe.fallback if probe.kind.is_time else INVENTED
    return probe.assumed_fact


def rehearsal(program: Program, tables: Sequence[TableSchema], rows: int) -> ReleasedStatistics:
    """Returns what a program releases about invented people, with seeded noise.

    Private groups show only what many people share, so a rehearsal without any row is repeated on a larger crowd.
    """
    engine, releaser = Memory(), Releaser(SeededBits(_SEED))
    for schema in tables:
        engine.register(schema.name, generate_rows(schema, program.question, rows), _types(schema))
    copies = 1
    released = run(program, engine, releaser)
    always = int(program.contribution.gathers)  # what is not shown has a row in any case
    while program.question.keys and len(released.rows(Fraction(1, 2))) <= always and copies < _LARGEST_CROWD:
        copies *= _GROWTH
        released = run(program, _Crowd(engine, copies), releaser)
    return released


class _Crowd:
    """Several copies of a table, each about other people: every exact statistic is that many times as large."""

    def __init__(self, engine: Memory, copies: int) -> None:
        self._engine, self._copies = engine, copies

    def read(self, reading: Reading) -> ExactGroups:
        """Returns the statistics of all copies together; see `Engine.read`."""
        return self._engine.read(reading).times(self._copies)


def generate_rows(schema: TableSchema, question: Question, count: int) -> list[Row]:
    """Returns synthetic rows: keys and bounds as declared, a few words for texts, values that the question names.

    >>> from discreet.plan.model.nodes import Aggregate
    >>> visits = TableSchema(name="visits", columns={"ward": ColumnSchema(name="ward", type=Type.TEXT, keys=("A",))})
    >>> generate_rows(visits, Question(table="visits", aggregates=(Aggregate(name="#1", kind="count"),), outputs=()), 2)
    [{'ward': 'A'}, {'ward': 'A'}]
    """
    bits = SeededBits(_SEED)
    named = list(_literals(question))
    values = {name: _values(column, named) for name, column in schema.stored_columns.items() if name != schema.unit}
    rows = [{name: few[uniform_below(len(few), bits=bits)] for name, few in values.items()} for _ in range(count)]
    if schema.unit in schema.stored_columns:
        ids = _IDS[schema.columns[schema.unit].type]
        rows = [{schema.unit: ids(place // _ROWS_OF_ONE), **row} for place, row in enumerate(rows)]
    return rows


def _types(schema: TableSchema) -> dict[str, Type]:
    return {name: column.type for name, column in schema.stored_columns.items()}


def _values(column: ColumnSchema, named: list[Literal]) -> list[Value]:
    """Returns a few values that a column may have; so few that groups are large."""
    if column.keys is not None:
        return list(column.keys)
    asked = [literal.value for literal in named if literal.type is column.type and literal.value is not None]
    return [*_INVENTED[column.type](column.bounds or INVENTED), *asked]


def _whole(bounds: ColumnBounds) -> Iterator[Value]:
    yield from sorted({max(math.ceil(bounds.low), math.floor(value)) for value in _spread(bounds)})


def _spread(bounds: ColumnBounds) -> Iterator[Fraction]:
    yield from (bounds.low + bounds.width * place / 4 for place in range(5))


_DAYS = [dt.date(2025, month, 1) for month in (1, 4, 7, 10)]
_MIDNIGHT = dt.time()


def _days(bounds: ColumnBounds) -> Iterator[dt.date]:
    """Returns days within bounds; without bounds, four of our own choice."""
    if bounds is INVENTED:
        yield from _DAYS
    else:
        yield from (dt.date.fromordinal(min(math.floor(value), LAST_DAY)) for value in _spread(bounds))


_INVENTED: dict[Type, Callable[[ColumnBounds], Iterator[Value]]] = {
    Type.INT: _whole,
    Type.FLOAT: lambda bounds: (float(value) for value in _spread(bounds)),
    Type.BOOL: lambda _: iter((False, True)),
    Type.TEXT: lambda _: iter(_WORDS),
    Type.DATE: _days,
    Type.TIMESTAMP: lambda bounds: (dt.datetime.combine(day, _MIDNIGHT) for day in _days(bounds)),
}

_IDS: dict[Type, Callable[[int], Value]] = {
    Type.INT: int,
    Type.BOOL: bool,
    Type.TEXT: lambda place: f"person {place}",
    Type.DATE: lambda place: _DAYS[0] + dt.timedelta(days=place),
    Type.TIMESTAMP: lambda place: dt.datetime.combine(_DAYS[0], _MIDNIGHT) + dt.timedelta(seconds=place),
}


def _literals(question: Question) -> Iterator[Literal]:
    """Returns every value that the question compares with, so that its filters keep something."""
    parts = [question.where, *(key.expression for key in question.keys)]
    parts += [aggregate.argument for aggregate in question.aggregates]
    for part in parts:
        if part is not None:
            yield from _inside(part)


def _inside(expression: Expression) -> Iterator[Literal]:
    if isinstance(expression, Literal):
        yield expression
    elif isinstance(expression, FunctionCall):
        for argument in expression.arguments:
            yield from _inside(argument)
