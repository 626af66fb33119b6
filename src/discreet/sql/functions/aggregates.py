"""Aggregates: how each is read. Those that say so in the registry are plain functions; others have a syntax.

FILTER and COUNT_IF are aggregates of the rows that satisfy a condition, as ones of values that are NULL elsewhere:
agg(x) FILTER (WHERE c) is agg(CASE WHEN c THEN x END), and COUNT(*) counts a constant. So a condition changes nothing
about what one row can add, bounds follow from the argument's, and equal questions are equal plans however they are
written.
"""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from discreet.errors import InternalError
from discreet.measurement.aggregates import AGGREGATIONS, Aggregation
from discreet.plan.analysis.relation_schema import is_whole_id
from discreet.plan.expressions.calls import NULL, call
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import Read, only, read, reads, refuse_node
from discreet.sql.scope import Scope

FINEST = 10**6
"""The largest denominator of a quantile: losses of ranks are counted in units of it."""

_SHARE = re.compile(r"[0-9]*\.?[0-9]*")


# ---------------------------------------------------------------------------------------------------- plain functions


def _plain(registered: Aggregation) -> Read:
    """Reads NAME(x), or NAME(x, y) of an aggregate of two arguments."""

    def plain(node: exp.Expr, scope: Scope) -> Expression:
        if isinstance(node.this, exp.Distinct):
            return _of_different(registered.kind, node.this, node, scope)
        values = [_argument(node.args[part], node, scope) for part in _parts(registered)]
        value, *others = map(as_number, values) if registered.power else values
        return scope.aggregate(registered.kind, value, node, other=others[0] if others else None)

    return plain


_DIFFERENT = {"sum": "sum_distinct", "mean": "mean_distinct", "min": "min", "max": "max"}
"""What aggregates are of different values; the smallest and the largest stay what they are."""


def _of_different(kind: str, distinct: exp.Distinct, node: exp.Expr, scope: Scope) -> Expression:
    """Reads SUM, AVG, MIN or MAX (DISTINCT x)."""
    only(distinct, scope, "expressions")
    if kind not in _DIFFERENT or len(distinct.expressions) != 1:
        scope.refuse("DISTINCT is accepted in COUNT, SUM and AVG of one argument.", "Leave it out: {mean}.", node)
    (part,) = distinct.expressions
    value = _argument(part, node, scope)
    number = value if kind in ("min", "max") else as_number(value)
    return scope.aggregate(_DIFFERENT[kind], number, node, written=part)


def as_number(value: Expression) -> Expression:
    """Returns what is added up of an expression: a condition is 1 where it is TRUE and 0 where it is FALSE."""
    return call("to_int", value) if value.type is Type.BOOL and value is not NULL else value


def _parts(registered: Aggregation) -> tuple[str, ...]:
    return ("this", "expression")[: registered.arguments]


def _argument(part: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    """Returns what an aggregate is about: an expression over one row."""
    found = read(part, scope.row)
    if found is NULL:
        scope.refuse("NULL is not a number.", "Name a column: {mean}.", node)
    return found


def _register(registered: Aggregation) -> None:
    for name in registered.functions:
        kind = exp.FUNCTION_BY_NAME.get(name)
        if kind is None:
            raise InternalError(f"The parser knows no function {name}.")
        reads(kind, *_parts(registered))(_plain(registered))


for _registered in AGGREGATIONS.values():
    _register(_registered)


# -------------------------------------------------------------------------------------------------------------- counts


@reads(exp.Count, "this", "big_int")
def _count(node: exp.Expr, scope: Scope) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Distinct):
        return _count_distinct(inner, node, scope)
    if inner is None or (isinstance(inner, exp.Star) and not any(inner.args.values())):
        return scope.aggregate("count", None, node)
    argument = read(inner, scope.row)
    if argument is NULL:
        scope.refuse("COUNT(NULL) is always 0.", "Count rows: {count}.", node)
    if isinstance(argument, Literal):
        return scope.aggregate("count", None, node)
    return scope.aggregate("count_values", argument, node)


def _count_distinct(distinct: exp.Distinct, node: exp.Expr, scope: Scope) -> Expression:
    """Returns units, if the column says whose row it is; else different values."""
    only(distinct, scope, "expressions")
    columns = [read(part, scope.row) for part in _distinct_columns(distinct.expressions)]
    if is_whole_id(columns, scope.schema):
        return scope.aggregate("count_units", None, node)
    if len(columns) != 1 or columns[0] is NULL:
        scope.refuse("COUNT(DISTINCT ...) takes one column.", "Count one: {varieties}.", node)
    return scope.aggregate("count_distinct", columns[0], node)


def _distinct_columns(nodes: list[exp.Expr]) -> list[exp.Expr]:
    """Returns the columns of COUNT(DISTINCT a, b), which may also stand in brackets of their own."""
    inner = nodes[0] if len(nodes) == 1 else None
    return inner.expressions if isinstance(inner, exp.Tuple) else nodes


# --------------------------------------------------------------------------------------------------- quantiles, modes


@reads(exp.Median, "this")
def _median(node: exp.Expr, scope: Scope) -> Expression:
    return _quantile(node.this, Fraction(1, 2), node, scope)


def _of(part: str) -> Read:
    return lambda node, scope: _quantile(node.this, _share(node.args.get(part), node, scope), node, scope)


reads(exp.Quantile, "this", "quantile")(_of("quantile"))
reads(exp.ApproxQuantile, "this", "quantile")(_of("quantile"))
reads(exp.PercentileCont, "this", "expression")(_of("expression"))
reads(exp.PercentileDisc, "this", "expression")(_of("expression"))


@reads(exp.WithinGroup, "this", "expression")
def _within_group(node: exp.Expr, scope: Scope) -> Expression:
    """PERCENTILE_CONT(q), PERCENTILE_DISC(q) or MODE() WITHIN GROUP (ORDER BY x); downwards it is the quantile 1 - q.

    The two quantiles are one here: a point that is drawn among all points between the public bounds, whether or not a
    value lies there, near the rank that both mean. Its interval holds either of them.
    """
    inner, order = node.this, node.expression
    is_mode = isinstance(inner, exp.Mode) and not any(inner.args.values())
    is_quantile = isinstance(inner, exp.PercentileCont | exp.PercentileDisc)
    if not is_mode and (not is_quantile or inner.args.get("expression") is not None):
        refuse_node(inner, scope)
    only(order, scope, "expressions")
    if len(order.expressions) != 1:
        scope.refuse("WITHIN GROUP sorts by one expression.", "Name one: {median}.", order)
    (ordered,) = order.expressions
    only(ordered, scope, "this", "desc")
    if is_mode:
        return _mode(ordered.this, node, scope)
    share = _share(inner.this, node, scope)
    return _quantile(ordered.this, 1 - share if ordered.args.get("desc") else share, node, scope)


def _quantile(argument: exp.Expr, share: Fraction, node: exp.Expr, scope: Scope) -> Expression:
    if isinstance(argument, exp.Distinct):
        scope.refuse("DISTINCT is accepted in COUNT, SUM and AVG.", "Leave it out: {median}.", node)
    value = read(argument, scope.row)
    if value is NULL:
        scope.refuse("NULL has no quantile.", "Name a column: {median}.", node)
    return scope.aggregate("quantile", value, node, share=share, written=argument)


@reads(exp.Mode, "this")
def _mode_of(node: exp.Expr, scope: Scope) -> Expression:
    if node.this is None:
        scope.refuse("MODE takes a column.", "Name one, or ask for the groups: {top}.", node)
    return _mode(node.this, node, scope)


def _mode(argument: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    if isinstance(argument, exp.Distinct):
        scope.refuse("Among different values, none is the most frequent.", "Leave DISTINCT out: {top}.", node)
    value = read(argument, scope.row)
    if value is NULL:
        scope.refuse("NULL has no mode.", "Name a column: {top}.", node)
    return scope.aggregate("mode", value, node, written=argument)


def _share(node: exp.Expr | Fraction | None, of: exp.Expr, scope: Scope) -> Fraction:
    """Returns the q of a quantile, which is written out, or given as it is by the fluent front."""
    if isinstance(node, Fraction):
        return node
    if isinstance(node, exp.Array):
        scope.refuse("Several quantiles make several columns.", "Ask for one here: {median}.", of)
    text = node.name if isinstance(node, exp.Literal) and not node.is_string else ""
    if _SHARE.fullmatch(text) and any(map(str.isdigit, text)) and len(text) <= 20:
        share = Fraction(text)
        if share <= 1 and share.denominator <= FINEST:
            return share
    return scope.refuse(
        "A quantile is a number from 0 to 1 with at most six digits, written out.",
        "For example 0.9 for the value that nine tenths lie below; 0.5 is {median}.",
        of,
    )


@reads(exp.AnyValue, "this")
def _any_value(node: exp.Expr, scope: Scope) -> Expression:
    return scope.any_value(_argument(node.this, node, scope), node)


@reads(exp.IgnoreNulls, "this")
def _ignore_nulls(node: exp.Expr, scope: Scope) -> Expression:
    """Drops what the parser writes around ANY_VALUE, which is never NULL where there is a value."""
    if not isinstance(node.this, exp.AnyValue):
        refuse_node(node, scope)
    return read(node.this, scope)


# ---------------------------------------------------------------------------------------------------------- conditions


@reads(exp.Filter, "this", "expression")
def _filter(node: exp.Expr, scope: Scope) -> Expression:
    inner, where = node.this, node.expression
    if isinstance(inner, exp.IgnoreNulls) and isinstance(inner.this, exp.AnyValue):
        inner = inner.this
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
    """Returns the aggregate with the condition in its argument; what counts rows counts a constant.

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
    """Reads COUNT(DISTINCT x) of rows that satisfy a condition; people are counted among the rows of the question."""
    parts = aggregate.this.expressions
    if len(parts) != 1 or _is_id(parts[0], scope):
        scope.refuse(
            "COUNT(DISTINCT ...) of units takes no FILTER.", "Put the condition into WHERE: {some_units}.", aggregate
        )
    inner = exp.Distinct(expressions=[_case(condition, parts[0])])
    return type(aggregate)(**{**aggregate.args, "this": inner})


def _is_id(node: exp.Expr, scope: Scope) -> bool:
    return isinstance(node, exp.Column) and getattr(read(node, scope.row), "name", None) in scope.schema.ids
