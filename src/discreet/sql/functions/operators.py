"""Names, literals, operators and conditions: how each is read."""

from __future__ import annotations

import math
import re

from sqlglot import exp

from discreet.plan.expressions.calls import NULL, alike, call
from discreet.plan.model.nodes import ColumnRef, Expression, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import Read, read, reads, refuse_node
from discreet.sql.scope import Scope

MOST_CASES = 40
INT_LOW, INT_HIGH = -(2**63), 2**63 - 1
FALSE = Literal(False, Type.BOOL)
MARK = "mark"
"""What a node of ours says in its notes: the column of the row that it replaces (`subqueries`)."""

# ------------------------------------------------------------------------------------------------------ names, literals


@reads(exp.Column, "this", "table", "db", "catalog")
def _column(node: exp.Expr, scope: Scope) -> Expression:
    if MARK in node.meta:
        mark: ColumnRef = node.meta[MARK]
        return mark
    if not isinstance(node.this, exp.Identifier):
        refuse_node(node.this, scope)
    return scope.column(node)  # type: ignore[arg-type]


@reads(exp.Paren, "this")
def _paren(node: exp.Expr, scope: Scope) -> Expression:
    return read(node.this, scope)


@reads(exp.Null)
def _null(node: exp.Expr, scope: Scope) -> Expression:
    del node, scope
    return NULL


@reads(exp.Boolean, "this")
def _boolean(node: exp.Expr, scope: Scope) -> Expression:
    del scope
    return Literal(bool(node.this), Type.BOOL)


@reads(exp.Literal, "this", "is_string")
def _literal(node: exp.Expr, scope: Scope) -> Expression:
    return Literal(node.name, Type.TEXT) if node.is_string else _number(node, scope, 1)


def _number(node: exp.Expr, scope: Scope, sign: int) -> Expression:
    text = node.name
    if re.fullmatch(r"[0-9]{1,30}", text):
        value = sign * int(text)
        if INT_LOW <= value <= INT_HIGH:
            return Literal(value, Type.INT)
    elif re.fullmatch(r"[0-9]{1,30}\.?[0-9]{0,60}([eE][+-]?[0-9]{1,4})?", text):
        real = float(text)
        if math.isfinite(real) and (real or not re.search("[1-9]", re.split("[eE]", text)[0])):
            return Literal(sign * real + 0.0, Type.FLOAT)  # + 0.0: there is one zero
    return scope.refuse("The number is too large or too small.", "Use at most 18 digits or a double: {filtered}.", node)


@reads(exp.Neg, "this")
def _negate(node: exp.Expr, scope: Scope) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        return _number(inner, scope, -1)
    return call("negate", read(inner, scope))


# ------------------------------------------------------------------------------------------------------------ operators

_BINARY: dict[type[exp.Expr], str] = {
    exp.Mul: "multiply",
    exp.IntDiv: "integer_divide",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.And: "and",
    exp.Or: "or",
}


def _plain(function: str, *parts: str) -> Read:
    return lambda node, scope: call(function, *(read(node.args[part], scope) for part in parts))


for _kind, _function in _BINARY.items():
    reads(_kind, "this", "expression")(_plain(_function, "this", "expression"))
reads(exp.Not, "this")(_plain("not", "this"))
reads(exp.Div, "this", "expression", "typed", "safe")(_plain("divide", "this", "expression"))


@reads(exp.Between, "this", "low", "high")
def _between(node: exp.Expr, scope: Scope) -> Expression:
    value, low, high = (read(node.args[part], scope) for part in ("this", "low", "high"))
    return call("and", call("greater_equal", value, low), call("less_equal", value, high))


@reads(exp.In, "this", "expressions")
def _in(node: exp.Expr, scope: Scope) -> Expression:
    members = [read(member, scope) for member in node.expressions]
    if not members or not all(isinstance(member, Literal) and member.value is not None for member in members):
        scope.refuse("IN takes a list of values, without NULL.", "Write the values out: {filtered}.", node)
    return call("in", read(node.this, scope), *members)


@reads(exp.Is, "this", "expression")
def _is(node: exp.Expr, scope: Scope) -> Expression:
    value, other = read(node.this, scope), node.expression
    if isinstance(other, exp.Null):
        return call("is_null", value)
    if isinstance(other, exp.Boolean):
        return call("coalesce", value if other.this else call("not", value), FALSE)
    return scope.refuse("IS takes NULL, TRUE or FALSE.", "For example {filtered}.", node)


def _same(node: exp.Expr, scope: Scope) -> Expression:
    """IS NOT DISTINCT FROM: equality that takes NULL for a value; never NULL itself."""
    one, other = read(node.this, scope), read(node.expression, scope)
    if one is NULL or other is NULL:
        return call("is_null", other if one is NULL else one)
    equal = call("coalesce", call("equal", one, other), FALSE)
    if isinstance(one, Literal) or isinstance(other, Literal):
        return equal
    return call("if", call("is_null", one), call("is_null", other), equal)


reads(exp.NullSafeEQ, "this", "expression")(_same)
reads(exp.NullSafeNEQ, "this", "expression")(lambda node, scope: call("not", _same(node, scope)))


# ----------------------------------------------------------------------------------------------------------- conditions


@reads(exp.Case, "this", "ifs", "default")
def _case(node: exp.Expr, scope: Scope) -> Expression:
    branches, default = node.args["ifs"], node.args.get("default")
    if len(branches) > MOST_CASES:
        scope.refuse(f"CASE has more than {MOST_CASES} branches.", "Use bands: {bands}.", node)
    subject = read(node.this, scope) if node.this is not None else None
    conditions = [_condition(subject, read(branch.this, scope)) for branch in branches]
    values = [read(branch.args["true"], scope) for branch in branches]
    *values, result = alike([*values, read(default, scope) if default is not None else NULL])
    for condition, value in reversed(list(zip(conditions, values, strict=True))):
        result = call("if", condition, value, result)
    return result


def _condition(subject: Expression | None, test: Expression) -> Expression:
    return test if subject is None else call("equal", subject, test)
