"""Roundings, powers, signs and buckets in questions, and how each is read."""

from __future__ import annotations

import math

from sqlglot import exp

from discreet.plan.expressions.calls import NULL, call
from discreet.plan.model.nodes import Expression, Literal
from discreet.plan.model.types import Type
from discreet.sql.functions.grammar import Read, read, reads
from discreet.sql.scope import Scope

MOST_BUCKETS = 1000
LARGEST_PRODUCT = 8
ZERO, ONE = Literal(0.0, Type.FLOAT), Literal(1.0, Type.FLOAT)


# ------------------------------------------------------------------------------------------------- powers, signs, parts


@reads(exp.Pow, "this", "expression")
def _power(node: exp.Expr, scope: Scope) -> Expression:
    """x^n with a small whole n is a product of n doubles, formed by squaring; x^-n is 1 / x^n, and x^0.5 the root."""
    exponent = read(node.expression, scope)
    given = exponent.value if isinstance(exponent, Literal) and exponent.type.is_number else None
    if not isinstance(given, int | float) or (given != 0.5 and (given != int(given) or abs(given) > LARGEST_PRODUCT)):
        return call("power", read(node.this, scope), exponent)
    value = call("add", read(node.this, scope), ZERO)
    if given == 0.5:
        return call("square_root", value)
    if given == 0:
        return call("if", call("is_null", value), NULL, ONE)
    product = _product(value, abs(int(given)))
    return product if given > 0 else call("divide", ONE, product)


def _product(value: Expression, count: int) -> Expression:
    if count == 1:
        return value
    half = _product(value, count // 2)
    square = call("multiply", half, half)
    return call("multiply", square, value) if count % 2 else square


_ELEMENTARY: dict[type[exp.Expr], str] = {
    exp.Ln: "ln",
    exp.Exp: "exp",
    exp.Cbrt: "cube_root",
    exp.Sin: "sin",
    exp.Cos: "cos",
    exp.Tan: "tan",
    exp.Asin: "asin",
    exp.Acos: "acos",
    exp.Atan: "atan",
    exp.Sinh: "sinh",
    exp.Cosh: "cosh",
    exp.Tanh: "tanh",
}


def _plain(function: str) -> Read:
    return lambda node, scope: call(function, read(node.this, scope))


for _kind, _function in _ELEMENTARY.items():
    reads(_kind, "this")(_plain(_function))


@reads(exp.Log, "this", "expression")
def _log(node: exp.Expr, scope: Scope) -> Expression:
    """LOG(x) is to the base 10, as in DuckDB and PostgreSQL; LOG(b, x) to the base b."""
    if node.expression is None:
        return call("log10", read(node.this, scope))
    base, value = read(node.this, scope), read(node.expression, scope)
    known = _LOGARITHMS.get(base.value) if isinstance(base, Literal) and base.type.is_number else None
    return call("log", base, value) if known is None else call(known, value)


_LOGARITHMS: dict[object, str] = {2: "log2", 10: "log10"}


@reads(exp.Atan2, "this", "expression")
def _atan2(node: exp.Expr, scope: Scope) -> Expression:
    return call("atan2", read(node.this, scope), read(node.expression, scope))


def _scaled(factor: float) -> Read:
    """Degrees as radians, or the other way round."""
    return lambda node, scope: call("multiply", read(node.this, scope), Literal(factor, Type.FLOAT))


reads(exp.Radians, "this")(_scaled(math.pi / 180))
reads(exp.Degrees, "this")(_scaled(180 / math.pi))
reads(exp.Pi)(lambda _node, _scope: Literal(math.pi, Type.FLOAT))


@reads(exp.Sign, "this")
def _sign(node: exp.Expr, scope: Scope) -> Expression:
    """-1, 0 or 1."""
    value = read(node.this, scope)
    zero, one, minus = (Literal(number, Type.INT) for number in (0, 1, -1))
    below = call("if", call("less", value, zero), minus, call("if", call("is_null", value), NULL, zero))
    return call("if", call("greater", value, zero), one, below)


@reads(exp.Trunc, "this")
def _trunc(node: exp.Expr, scope: Scope) -> Expression:
    """The whole number next to x on the way to zero, in doubles."""
    value = call("add", read(node.this, scope), ZERO)
    return call("if", call("less", value, ZERO), call("ceil", value), call("floor", value))


# ------------------------------------------------------------------------------------------------ roundings and buckets


@reads(exp.Round, "this", "decimals")
def _round(node: exp.Expr, scope: Scope) -> Expression:
    """ROUND(x, n) is round(x * 10^n) / 10^n, both steps in doubles."""
    value = read(node.this, scope)
    digits = node.args.get("decimals")
    return rounded(value, 0 if digits is None else _places(digits, scope))


def rounded(value: Expression, places: int) -> Expression:
    """Returns a number with so many digits after the point, computed in doubles."""
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
