"""Names, literals, operators and conditions: how each is read."""

from __future__ import annotations

import math
import re

from sqlglot import exp

from discreet.plan.calls import NULL, alike, call
from discreet.plan.grammar import Read, read, reads, refuse_node
from discreet.plan.nodes import Expression, Literal
from discreet.plan.scope import Scope
from discreet.plan.types import Type

MOST_CASES = 40
MOST_BUCKETS = 1000
INT_LOW, INT_HIGH = -(2**63), 2**63 - 1
FALSE = Literal(False, Type.BOOL)

# ------------------------------------------------------------------------------------------------------ names, literals


@reads(exp.Column, "this", "table", "db", "catalog")
def _column(node: exp.Expr, scope: Scope) -> Expression:
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
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.IntDiv: "integer_divide",
    exp.Mod: "modulo",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.And: "and",
    exp.Or: "or",
    exp.Nullif: "null_if",
}
_UNARY: dict[type[exp.Expr], str] = {
    exp.Not: "not",
    exp.Abs: "absolute",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Trim: "trim",
    exp.Length: "length",
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.Hour: "hour",
    exp.DayOfWeekIso: "day_of_week",
}


def _plain(function: str, *parts: str) -> Read:
    return lambda node, scope: call(function, *(read(node.args[part], scope) for part in parts))


for _kind, _function in _BINARY.items():
    reads(_kind, "this", "expression")(_plain(_function, "this", "expression"))
for _kind, _function in _UNARY.items():
    reads(_kind, "this")(_plain(_function, "this"))
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
    return call("in", *alike([read(node.this, scope), *members]))


@reads(exp.Is, "this", "expression")
def _is(node: exp.Expr, scope: Scope) -> Expression:
    value, other = read(node.this, scope), node.expression
    if isinstance(other, exp.Null):
        return call("is_null", value)
    if isinstance(other, exp.Boolean):
        return call("coalesce", value if other.this else call("not", value), FALSE)
    return scope.refuse("IS takes NULL, TRUE or FALSE.", "For example {filtered}.", node)


@reads(exp.Like, "this", "expression", "negate")
def _like(node: exp.Expr, scope: Scope) -> Expression:
    pattern = read(node.expression, scope)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        scope.refuse("LIKE takes a pattern that is written out.", "Write it in quotes: {pattern}.", node)
    found = call("like", read(node.this, scope), pattern)
    return call("not", found) if node.args.get("negate") else found


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


@reads(exp.If, "this", "true", "false")
def _if(node: exp.Expr, scope: Scope) -> Expression:
    default = node.args.get("false")
    other = read(default, scope) if default is not None else NULL
    return call("if", read(node.this, scope), read(node.args["true"], scope), other)


@reads(exp.Coalesce, "this", "expressions")
def _coalesce(node: exp.Expr, scope: Scope) -> Expression:
    return call("coalesce", *(read(part, scope) for part in [node.this, *node.expressions]))


def _extreme(function: str) -> Read:
    return lambda node, scope: call(function, *(read(part, scope) for part in [node.this, *node.expressions]))


reads(exp.Greatest, "this", "expressions", "ignore_nulls")(_extreme("greatest"))
reads(exp.Least, "this", "expressions", "ignore_nulls")(_extreme("least"))

# -------------------------------------------------------------------------------------------------------------- numbers


@reads(exp.Round, "this", "decimals")
def _round(node: exp.Expr, scope: Scope) -> Expression:
    """ROUND(x, n) is round(x * 10^n) / 10^n, both steps in doubles."""
    value = read(node.this, scope)
    digits = node.args.get("decimals")
    places = 0 if digits is None else _places(digits, scope)
    scale = Literal(10.0 ** abs(places), Type.FLOAT)
    if places == 0:
        return call("round", value)
    grow, shrink = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    return call(shrink, call("round", call(grow, value, scale)), scale)


def _places(node: exp.Expr, scope: Scope) -> int:
    found = read(node, scope)
    if isinstance(found, Literal) and found.type is Type.INT and isinstance(found.value, int) and abs(found.value) <= 9:
        return found.value
    return scope.refuse("ROUND takes a number of places from -9 to 9, written out.", "For example {count}.", node)


@reads(exp.WidthBucket, "this", "min_value", "max_value", "num_buckets")
def _width_bucket(node: exp.Expr, scope: Scope) -> Expression:
    """0 below low, n + 1 from high on, else floor((x - low) * n / (high - low)) + 1 in doubles, held to 1 ... n."""
    value = call("add", read(node.this, scope), Literal(0.0, Type.FLOAT))
    low, high = (_edge(node.args.get(part), scope, node) for part in ("min_value", "max_value"))
    count = _buckets(node.args.get("num_buckets"), scope, node)
    if not low < high or not math.isfinite((high - low) * count):
        scope.refuse("WIDTH_BUCKET goes from a lower to a higher limit.", "For example {buckets}.", node)
    first, last = Literal(low, Type.FLOAT), Literal(high, Type.FLOAT)
    step = call("multiply", call("subtract", value, first), Literal(float(count), Type.FLOAT))
    place = call("to_int", call("floor", call("divide", step, Literal(high - low, Type.FLOAT))))
    one = Literal(1, Type.INT)
    inside = call("greatest", one, call("least", Literal(count, Type.INT), call("add", place, one)))
    beyond = call("if", call("greater_equal", value, last), Literal(count + 1, Type.INT), inside)
    below = call("if", call("less", value, first), Literal(0, Type.INT), beyond)
    return call("if", call("is_null", value), NULL, below)


def _edge(part: exp.Expr | None, scope: Scope, node: exp.Expr) -> float:
    found = None if part is None else read(part, scope)
    if isinstance(found, Literal) and found.type.is_number and isinstance(found.value, int | float):
        return float(found.value)
    return scope.refuse("WIDTH_BUCKET takes limits that are written out.", "For example {buckets}.", node)


def _buckets(part: exp.Expr | None, scope: Scope, node: exp.Expr) -> int:
    found = None if part is None else read(part, scope)
    count = found.value if isinstance(found, Literal) and found.type is Type.INT else None
    if isinstance(count, int) and 1 <= count <= MOST_BUCKETS:
        return count
    reason = f"WIDTH_BUCKET makes 1 to {MOST_BUCKETS} buckets, a number that is written out."
    return scope.refuse(reason, "For example {buckets}.", node)
