"""How far the values of an expression can lie apart, from public declarations alone.

The bounds decide to which limits an aggregate clips, and so how much noise it needs. Privacy never rests on them:
whatever a row holds, its value is clipped to them before it is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import singledispatch
from operator import add, mul, sub, truediv
from typing import Any

from discreet.plan.nodes import Call, Column, Expression, Literal
from discreet.plan.schema import Bounds, TableSchema
from discreet.plan.spans import EMPTY, EVERYTHING, INT_HIGH, INT_LOW, Span, greatest, hull, least
from discreet.plan.types import Type

Spans = Mapping[str, Span]
"""What is known of each column."""


def bounds(expression: Expression, schema: TableSchema) -> Bounds | None:
    """Limits that hold every value of an expression whose columns are within their declared bounds.

    Returns:
        None if there are none. A constant's limits reach to zero, since limits must lie apart.

    >>> from discreet.plan.schema import ColumnSchema
    >>> age = ColumnSchema(name="age", type=Type.INT, bounds=Bounds(Fraction(0), Fraction(120)))
    >>> schema = TableSchema(name="visits", columns={"age": age})
    >>> ten = Literal(10, Type.INT)
    >>> bounds(Call("subtract", (Column("age", Type.INT), ten), Type.INT), schema)
    Bounds(low=Fraction(-10, 1), high=Fraction(110, 1))
    """
    if not expression.type.is_number:
        return None
    found = span(expression, {name: _declared(column.bounds) for name, column in schema.columns.items()})
    if found.is_empty:
        return Bounds(Fraction(0), Fraction(1))
    if not found.is_bounded:
        return None
    low, high = Fraction(found.low), Fraction(found.high)
    if low < high:
        return Bounds(low, high)
    return Bounds(min(low, Fraction(0)), max(high, Fraction(0))) if low else Bounds(Fraction(0), Fraction(1))


def _declared(declared: Bounds | None) -> Span:
    return EVERYTHING if declared is None else Span(declared.low, declared.high)


@singledispatch
def span(expression: Expression, columns: Spans) -> Span:
    """An interval that holds every value of an expression of numbers, given one for each column.

    Everything that is not known to be bounded is unbounded, and expressions that are no numbers are.
    """
    del expression, columns
    return EVERYTHING


@span.register
def _(expression: Column, columns: Spans) -> Span:
    return columns.get(expression.name, EVERYTHING)


@span.register
def _(expression: Literal, columns: Spans) -> Span:
    del columns
    if expression.value is None:
        return EMPTY
    return Span.exactly(expression.value) if isinstance(expression.value, int | float) else EVERYTHING


@span.register
def _(expression: Call, columns: Spans) -> Span:
    rule = _RULES.get(expression.function)
    if rule is None or not expression.type.is_number:
        return EVERYTHING
    if expression.function == "to_int" and expression.arguments[0].type is Type.BOOL:
        return Span(Fraction(0), Fraction(1))
    found = rule([span(argument, columns) for argument in expression.arguments])
    return found.as_floats() if expression.type is Type.FLOAT else _as_int(found)


def _as_int(found: Span) -> Span:
    """What is certainly in 64 bits; an unbounded whole number stays unbounded, for no use has bounds of 2^63."""
    return found.within(INT_LOW, INT_HIGH) if found.is_bounded else found


Rule = Callable[[Sequence[Span]], Span]


def _pair(operation: Callable[[Any, Any], Any]) -> Rule:
    return lambda spans: operation(spans[0], spans[1])


def _mapped(monotone: Callable[[Fraction], int | Fraction]) -> Rule:
    return lambda spans: spans[0].map(monotone)


def _between(low: int, high: int) -> Rule:
    return lambda _: Span(Fraction(low), Fraction(high))


def _half_away(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2)) if value >= 0 else -math.floor(-value + Fraction(1, 2))


def _integer_divide(spans: Sequence[Span]) -> Span:
    """Towards zero, by a whole number that is not zero: never further from zero than the dividend."""
    exact = spans[0] / spans[1]
    return exact.map(math.trunc) if exact.is_bounded else hull([spans[0], -spans[0]])


def _modulo(spans: Sequence[Span]) -> Span:
    """The sign of the dividend, and smaller in size than dividend and divisor."""
    dividend, largest = spans[0], abs(spans[1]).high - 1
    if dividend.is_empty or spans[1].is_empty:
        return EMPTY
    return Span(
        max(min(dividend.low, Fraction(0)), -max(largest, Fraction(0))),
        min(max(dividend.high, Fraction(0)), max(largest, Fraction(0))),
    )


def _coalesce(spans: Sequence[Span]) -> Span:
    around = hull(spans)
    return Span(around.low, around.high, nullable=all(s.nullable for s in spans))


_RULES: dict[str, Rule] = {
    "add": _pair(add),
    "subtract": _pair(sub),
    "multiply": _pair(mul),
    "divide": _pair(truediv),
    "integer_divide": _integer_divide,
    "modulo": _modulo,
    "negate": lambda spans: -spans[0],
    "absolute": lambda spans: abs(spans[0]),
    "round": _mapped(_half_away),
    "floor": _mapped(math.floor),
    "ceil": _mapped(math.ceil),
    "greatest": greatest,
    "least": least,
    "if": lambda spans: hull(spans[1:]),
    "coalesce": _coalesce,
    "null_if": lambda spans: Span(spans[0].low, spans[0].high),
    "to_int": _mapped(math.trunc),
    "to_float": _mapped(Fraction),
    "quarter": _between(1, 4),
    "month": _between(1, 12),
    "day": _between(1, 31),
    "day_of_week": _between(1, 7),
    "hour": _between(0, 23),
}
