"""Casts and aggregates: how each is read."""

from __future__ import annotations

from sqlglot import exp

from discreet.plan.analysis.relation_schema import is_whole_id
from discreet.plan.expressions.calls import NULL, call, dated
from discreet.plan.model.nodes import AggregateKind, Expression, ExtremeKind, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import Read, only, read, reads
from discreet.sql.scope import Scope

# ---------------------------------------------------------------------------------------------------------------- casts

_CASTS = {
    **dict.fromkeys(("INT", "BIGINT"), Type.INT),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Type.FLOAT),
    **dict.fromkeys(("TEXT", "VARCHAR"), Type.TEXT),
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMPNTZ": Type.TIMESTAMP,
}


def _cast(node: exp.Expr, scope: Scope) -> Expression:
    kind = node.args["to"]
    target = _CASTS.get(kind.this.name) if isinstance(kind.this, exp.DType) else None
    if target is None:
        word = kind.sql(dialect="duckdb")[:40]
        scope.refuse(f"{word} is not a type of ours.", "Cast to INT, DOUBLE, TEXT or DATE: {bands}.", node)
    value = read(node.this, scope)
    return _converted(target, value, node, scope)


def _converted(target: Type, value: Expression, node: exp.Expr, scope: Scope) -> Expression:
    if value is NULL:
        return Literal(None, target)
    if isinstance(value, Literal) and isinstance(value.value, str) and target in (Type.DATE, Type.TIMESTAMP):
        return dated(target, value.value)
    if value.type is target:
        return value
    if target is Type.TIMESTAMP:
        scope.refuse("Only a written timestamp is cast to TIMESTAMP.", "Compare dates instead: {since}.", node)
    return call(f"to_{target.value}", value)


reads(exp.Cast, "this", "to")(_cast)
reads(exp.TryCast, "this", "to", "safe")(_cast)

# ----------------------------------------------------------------------------------------------------------- aggregates


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
    """Units, if the column says whose row it is; else different values."""
    only(distinct, scope, "expressions")
    columns = [read(part, scope.row) for part in _listed(distinct.expressions)]
    if is_whole_id(columns, scope.schema):
        return scope.aggregate("count_units", None, node)
    if len(columns) != 1 or columns[0] is NULL:
        scope.refuse("COUNT(DISTINCT ...) takes one column.", "Count one: {varieties}.", node)
    return scope.aggregate("count_distinct", columns[0], node)


def _listed(nodes: list[exp.Expr]) -> list[exp.Expr]:
    """The columns of COUNT(DISTINCT a, b), which may also stand in brackets of their own."""
    inner = nodes[0] if len(nodes) == 1 else None
    return inner.expressions if isinstance(inner, exp.Tuple) else nodes


def _total(kind: AggregateKind) -> Read:
    def total(node: exp.Expr, scope: Scope) -> Expression:
        if isinstance(node.this, exp.Distinct):
            scope.refuse("DISTINCT is accepted in COUNT of the unit only.", "Leave it out: {mean}.", node)
        argument = read(node.this, scope.row)
        if argument is NULL:
            scope.refuse("NULL has no sum.", "Name a column: {mean}.", node)
        return scope.aggregate(kind, argument, node)

    return total


def _extreme(kind: ExtremeKind) -> Read:
    return lambda node, scope: _where_extreme(kind, node.this, node.expression, node, scope)


def _where_extreme(kind: ExtremeKind, of: exp.Expr, order: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    value, by = read(of, scope.row), read(order, scope.row)
    if value is NULL or by is NULL:
        scope.refuse("NULL has no smallest and no largest value.", "Name a column: {count}.", node)
    return scope.extreme(kind, value, by, node)


def _end(kind: ExtremeKind, other: ExtremeKind) -> Read:
    """FIRST and LAST of rows in an order; downwards each is the other."""

    def end(node: exp.Expr, scope: Scope) -> Expression:
        order = node.this
        if not isinstance(order, exp.Order) or len(order.expressions) != 1:
            return scope.extreme(
                kind, read(order.this if isinstance(order, exp.Order) else order, scope.row), None, node
            )
        (term,) = order.expressions
        only(order, scope, "this", "expressions")
        only(term, scope, "this", "desc", "nulls_first")
        if term.args.get("nulls_first"):
            scope.refuse("Rows without a place in the order do not count.", "Leave NULLS FIRST out: {top}.", node)
        return _where_extreme(other if term.args.get("desc") else kind, order.this, term.this, node, scope)

    return end


@reads(exp.Grouping, "expressions")
def _grouping(node: exp.Expr, scope: Scope) -> Expression:
    return scope.grouping([read(part, scope.row) for part in node.expressions], node)


@reads(exp.Subquery, "this")
def _scalar(node: exp.Expr, scope: Scope) -> Expression:
    return scope.scalar(node)


@reads(exp.Window, "this", "partition_by", "order", "spec", "over")
def _window(node: exp.Expr, scope: Scope) -> Expression:
    return scope.window(node)  # type: ignore[arg-type]


reads(exp.ArgMin, "this", "expression")(_extreme("arg_min"))
reads(exp.ArgMax, "this", "expression")(_extreme("arg_max"))
reads(exp.First, "this")(_end("first", "last"))
reads(exp.Last, "this")(_end("last", "first"))
reads(exp.Sum, "this")(_total("sum"))
reads(exp.Avg, "this")(_total("mean"))
reads(exp.Min, "this")(_total("min"))
reads(exp.Max, "this")(_total("max"))
