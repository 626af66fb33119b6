"""Casts, and what only some scopes understand: ARG_MIN, FIRST, GROUPING, questions in brackets, windows."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from discreet.plan.expressions.calls import NULL, call, parse_date
from discreet.plan.expressions.evaluation import evaluate
from discreet.plan.expressions.shorthands.date_shorthands import as_date
from discreet.plan.expressions.shorthands.number_shorthands import round_number
from discreet.plan.model.nodes import Expression, ExtremeKind, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.durations import moment, now, today
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
        scope.refuse(f"The type {word} is not supported.", "Cast to INT, DOUBLE, TEXT or DATE: {bands}.", node)
    value = today(scope, node) if target is Type.DATE and now(node.this) else read(node.this, scope)
    made = _convert_value(target, value, node, scope)
    return _with_places(made, kind, node, scope) if kind.this.name == "DECIMAL" else made


def _convert_value(target: Type, value: Expression, node: exp.Expr, scope: Scope) -> Expression:
    if target is Type.DATE:
        return as_date(value)
    if value is NULL:
        return Literal(None, target)
    if value.type is target:
        return value
    if target is Type.TIMESTAMP:
        return _as_moment(value, node, scope)
    if target is Type.INT and value.type is Type.FLOAT:
        return _nearest(value)
    return call(f"to_{target.value}", value)


def _as_moment(value: Expression, node: exp.Expr, scope: Scope) -> Expression:
    if isinstance(value, Literal) and isinstance(value.value, str):
        return parse_date(Type.TIMESTAMP, value.value)
    if value.type is Type.DATE:
        return moment(value)
    return scope.refuse("Only dates and written timestamps become TIMESTAMP.", "Compare dates instead: {since}.", node)


def _nearest(value: Expression) -> Expression:
    """Rounds to a whole number as PostgreSQL does: halves of doubles to the even one, of written numbers to the larger.

    A number that is written with a point is exact there, a NUMERIC; every other FLOAT is a double.
    """
    if isinstance(value, Literal) and value.value is not None:
        return Literal(evaluate(call("to_int", call("round", value)), {}), Type.INT)
    return call("round_to_int", value)


def _with_places(value: Expression, kind: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    """Reads DECIMAL(p, s) as ROUND(x, s), and NULL if that has more than p - s digits before the point.

    The dialect that questions are read in takes DECIMAL alone for DECIMAL(18, 3).
    """
    given = [part.this.name for part in kind.expressions]
    if not given:
        return value
    digits, places = ([int(text) for text in given] + [0])[:2] if all(map(str.isdecimal, given)) else (0, -1)
    if not 1 <= digits <= MOST_DIGITS or not 0 <= places <= min(digits, MOST_PLACES):
        hint = f"DECIMAL(p, s) has 1 to {MOST_DIGITS} digits, 0 to {MOST_PLACES} of them after the point: {{mean}}."
        scope.refuse("This DECIMAL is not understood.", hint, node)
    end = Literal(float(10 ** (digits - places) - Fraction(1, 2 * 10**places)), Type.FLOAT)
    fitting = call("if", call("less", call("absolute", value), end), value, NULL)
    return round_number(fitting, places)


MOST_DIGITS, MOST_PLACES = 38, 9

reads(exp.Cast, "this", "to")(_cast)
reads(exp.TryCast, "this", "to", "safe")(_cast)

# ------------------------------------------------------------------------------------------------------- by the scope


def _extreme(kind: ExtremeKind) -> Read:
    return lambda node, scope: _where_extreme(kind, node.this, node.expression, node, scope)


def _where_extreme(kind: ExtremeKind, of: exp.Expr, order: exp.Expr, node: exp.Expr, scope: Scope) -> Expression:
    value, by = read(of, scope.row), read(order, scope.row)
    if value is NULL or by is NULL:
        scope.refuse("NULL has no smallest and no largest value.", "Name a column: {count}.", node)
    return scope.extreme(kind, value, by, node)


def _end(kind: ExtremeKind, other: ExtremeKind) -> Read:
    """Reads FIRST and LAST of rows in an order; downwards each is the other."""

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
    return scope.grouping([scope.key(part) or read(part, scope.row) for part in node.expressions], node)


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
