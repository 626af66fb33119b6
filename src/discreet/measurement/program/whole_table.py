"""What answers are about: whether an aggregate leaves anything of the table out, by declared facts."""

from __future__ import annotations

from discreet.measurement.aggregates import aggregation
from discreet.plan.analysis.value_bounds import bounds
from discreet.plan.model.nodes import Aggregate, Column, Expression, Question
from discreet.plan.model.schema import TableSchema
from discreet.plan.model.types import Type

FLOORED = "Logarithms near zero are clipped: below a 2^30th of the upper bound of what is under them."


def is_floored(aggregate: Aggregate, schema: TableSchema) -> bool:
    """Tells whether limits of what is added up leave logarithms near zero out."""
    added = [x for x in (aggregate.argument, aggregate.other) if x is not None and x.type is Type.FLOAT]
    return any(bounds(x, schema) != bounds(x, schema, floored=False) for x in added)


def leaves_nothing_out(aggregate: Aggregate, question: Question, schema: TableSchema) -> bool:
    """Tells whether an aggregate is of the whole table: every row counts, and no value is clipped.

    Rows count as people where each is one; people count where they are counted themselves, and there are no groups.
    Values are not clipped where a declared fact says that bounds hold all of them.
    """
    if schema.unit is not None:
        return aggregate.kind == "count_units" and not question.keys
    kind = aggregation(aggregate.kind)
    if kind.drawn:
        return False
    return not kind.bounded or all(
        _is_inside(x, schema) for x in (aggregate.argument, aggregate.other) if x is not None
    )


def _is_inside(x: Expression, schema: TableSchema) -> bool:
    column = schema.columns.get(x.name) if isinstance(x, Column) else None
    if column is None or column.domain is None or column.bounds is None:
        return False
    return column.bounds.low <= column.domain.low and column.domain.high <= column.bounds.high
