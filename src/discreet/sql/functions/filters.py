"""FILTER and COUNT_IF: an aggregate of the rows that satisfy a condition, as one of values that are NULL elsewhere.

agg(x) FILTER (WHERE c) is agg(CASE WHEN c THEN x END), and COUNT(*) counts a constant. So a condition changes nothing
about what one row can add, bounds follow from the argument's, and equal questions are equal plans however they are
written.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.plan.model.nodes import Expression
from discreet.sql.functions.grammar import only, read, reads
from discreet.sql.scope import Scope


@reads(exp.Filter, "this", "expression")
def _filter(node: exp.Expr, scope: Scope) -> Expression:
    inner, where = node.this, node.expression
    if not isinstance(inner, exp.AggFunc) or not isinstance(where, exp.Where):
        scope.refuse("FILTER belongs to an aggregate.", "Write it like {conditional}.", node)
    only(where, scope, "this")
    distinct = isinstance(inner.this, exp.Distinct)
    return read(_of_some(inner, where.this, scope) if distinct else _inside(inner, where.this), scope)


@reads(exp.CountIf, "this")
def _count_if(node: exp.Expr, scope: Scope) -> Expression:
    return read(exp.Count(this=_case(node.this, exp.Literal.number(1)), big_int=True), scope)


def _case(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _inside(aggregate: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The aggregate with the condition in its argument; what counts rows counts a constant.

    FIRST and LAST have it in their order: rows without a place there do not count, rows without a value do.
    """
    value = aggregate.this
    if isinstance(value, exp.Order):
        terms = [exp.Ordered(**{**term.args, "this": _case(condition, term.this)}) for term in value.expressions]
        return type(aggregate)(**{**aggregate.args, "this": exp.Order(this=value.this, expressions=terms)})
    if value is None or (isinstance(value, exp.Star) and not any(value.args.values())):
        value = exp.Literal.number(1)
    return type(aggregate)(**{**aggregate.args, "this": _case(condition, value)})


def _of_some(aggregate: exp.Expr, condition: exp.Expr, scope: Scope) -> exp.Expr:
    """COUNT(DISTINCT x) of the rows that satisfy a condition; people are counted among the rows of the question."""
    parts = aggregate.this.expressions
    if len(parts) != 1 or _is_id(parts[0], scope):
        scope.refuse(
            "COUNT(DISTINCT ...) of units takes no FILTER.", "Put the condition into WHERE: {some_units}.", aggregate
        )
    inner = exp.Distinct(expressions=[_case(condition, parts[0])])
    return type(aggregate)(**{**aggregate.args, "this": inner})


def _is_id(node: exp.Expr, scope: Scope) -> bool:
    return isinstance(node, exp.Column) and getattr(read(node, scope.row), "name", None) in scope.schema.ids
